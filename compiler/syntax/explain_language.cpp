// Rows of `--explain` for what the compiler finds in a program: E01xx to E04xx. Data, no logic.
#include "compiler/syntax/explain.h"

namespace gk::syntax {
namespace {

constexpr Explanation kRows[] = {
    // ---- E01xx: text ----
    {"E0101", "a character that is not part of the language",
     "A program is made of letters, digits, strings and the operators of the language. Text that went "
     "through a "
     "word processor often has curly quotes, long dashes or mathematical signs in their place.",
     "let a = 3 × 4", "let a = 3 * 4"},
    {"E0102", "the file is not UTF-8",
     "Program text is UTF-8. The message gives the offset of the first byte that cannot be decoded; the file "
     "may be "
     "in another encoding (Latin-1, UTF-16), or no text at all.",
     "gkrun old.gk  # saved as Latin-1", "iconv -f latin1 -t utf-8 old.gk > new.gk"},
    {"E0103", "a string is malformed",
     "A string ends on the line it starts on, and a backslash starts one of the escapes \\n \\t \\r \\0 \\\\ "
     "\\\" "
     "\\u{…}. In an f-string, braces hold an expression with an optional format after a colon; the braces "
     "themselves are written {{ and }}.",
     "print(\"C:\\data)", "print(\"C:\\\\data\")"},
    {"E0104", "the text does not follow the grammar",
     "The parser met a word or sign that cannot stand there. It says what it found and what could have stood "
     "there; "
     "the mistake is often just before the mark. Where the text is valid in Python or C, a help line gives "
     "the gk "
     "spelling.",
     "if x = 3 { print(x) }", "if x == 3 { print(x) }"},
    {"E0105", "nested too deeply, or too much in one line",
     "Brackets, blocks, prefix operators and chains of operators are limited (200 levels of brackets, 600 of "
     "expressions, 200 `else if`, 2000 operators in one expression), and so are the words and signs of one "
     "line "
     "(100000, where a long array of plain numbers counts as one), so that no text, however odd, can exhaust "
     "the compiler's stack or memory. Programs written by hand stay far below; generated ones can use arrays "
     "and loops.",
     "let s = x0 + x1 + x2  # … and 3000 more", "let s = sum(stack(xs))"},
    {"E0106", "a malformed number or expression",
     "The words are right but do not make sense together: a number with an unknown suffix or too large for "
     "64 bits, "
     "two comparisons in a row, an empty tuple, a kernel whose indices and extents differ in number.",
     "assert 0 < x < 1", "assert 0 < x and x < 1"},
    {"E0107", "a bracket without its partner",
     "Every ( [ and { needs its closing bracket, in the right order. The mark is on the bracket that has "
     "none; for a "
     "missing } the block whose indentation does not fit is pointed out as well.",
     "let a = f(1, (2 + 3)\nlet b = 1", "let a = f(1, (2 + 3))\nlet b = 1"},

    {"E0199", "malformed intermediate code",
     "Text of the compiler's intermediate form (as --emit ir prints it) could not be read back. The line and "
     "what was "
     "expected there are in the message. Programs cannot cause this; edited dumps can.",
     "%1 = add %0", "# %1 = add %0, %0 : f32[4]"},

    // ---- E02xx: types ----
    {"E0201", "an operator is not defined for these dtypes",
     "`&`, `|`, `^`, `~` and the shifts work on integers and bools, a condition of `where` is bool, and a "
     "bool "
     "does not stand for a number nor a number for a bool. Convert with the dtype's name, or compare.",
     "let a = [1.5, 2.5] ^ 2", "let a = [1.5, 2.5] ** 2"},
    {"E0202", "an argument has the wrong type",
     "The function's signature, or the operation itself, asks for another kind of value: an array where a "
     "number is given, a number where there is a string. Convert it, or pass another value.",
     "let a = \"n = \" + 3", "let a = f\"n = {3}\""},
    {"E0203", "a number does not fit the dtype it meets",
     "A number without a dtype takes that of what it meets, and must be in its range. A float is not written "
     "to "
     "integers: silent truncation would change the result. Integers that meet nothing go from -2**63 to "
     "2**64 - 1.",
     "let i = u8([1, 2, 3])\nlet a = i + 256", "let i = u8([1, 2, 3])\nlet a = i16(i) + 256"},
    {"E0204", "the operator is not defined for bool",
     "Arithmetic on bool is an error, since + could mean a count or an `or`. Count with sum, combine masks "
     "with & | "
     "^ ~, or convert first.",
     "let n = (x > 0) + (y > 0)", "let n = i32(x > 0) + i32(y > 0)"},
    {"E0205", "two dtypes have no common dtype",
     "u64 with a signed integer has none: no integer dtype holds both ranges, and going through f64 would "
     "lose low "
     "bits without notice. Convert one side.",
     "let s = u + i  # u64 and i64", "let s = i64(u) + i"},
    {"E0206", "a call has the wrong number or names of arguments",
     "The call leaves out a parameter without a default, gives one too many, names one that does not exist, "
     "or gives "
     "the same one twice. The signature is shown.",
     "fn f(a, k = 2) = a * k\nlet y = f(1, 2, 3)", "fn f(a, k = 2) = a * k\nlet y = f(1, k=3)"},
    {"E0207", "what is called is not a function",
     "Only functions, kernels, types (as constructors), dtypes (as conversions) and lambdas can be called. A "
     "missing "
     "operator in front of a parenthesis is the usual reason.",
     "let y = 2(x + 1)", "let y = 2 * (x + 1)"},
    {"E0208", "a condition is not a scalar bool",
     "if, while, and, or, not and assert decide once, so they need one bool. An array of comparisons is "
     "reduced with "
     "all or any; a number is compared with 0.",
     "if x > 0 { print(\"positive\") }  # x: f32[N]", "if all(x > 0) { print(\"positive\") }"},
    {"E0209", "no such field",
     "The record's type has no field of this name. The fields it has are listed; the nearest is suggested.",
     "type P = { w: f32[4], b: f32 }\nlet p = P(w = zeros(f32[4]), b = 0)\nprint(p.bias)",
     "type P = { w: f32[4], b: f32 }\nlet p = P(w = zeros(f32[4]), b = 0)\nprint(p.b)"},
    {"E0210", "a format in an f-string is not understood",
     "After the colon stands [[fill]align][sign][width][.precision][type] as in Python: type d x b o for "
     "integers, "
     "f e g % for floats, s for strings.",
     "print(f\"{1.5:.2q}\")", "print(f\"{1.5:.2f}\")"},
    {"E0211", "a value does not have the declared type",
     "The type after the colon is a promise, not a conversion. Convert the value, or drop the type and let "
     "it be "
     "inferred.",
     "let a: i32[3] = [1.5, 2.5, 3.5] * 2", "let a: f32[3] = [1.5, 2.5, 3.5] * 2"},
    {"E0212", "a value on the host is needed here",
     "Extents, axes, list indices, loop bounds and options are needed before the device runs. A value "
     "computed on the "
     "device is read back with item, which waits for the device and is refused inside a capture.",
     "let n = sum(mask)\nlet z = zeros(f32[n])", "let n = item(sum(mask))\nlet z = zeros(f32[n])"},

    // ---- E03xx: shapes ----
    {"E0301", "shapes do not broadcast",
     "Elementwise operations align the last axes first; two extents go together when they are equal or one "
     "of them "
     "is 1, as in NumPy. To align other axes, add an axis of extent 1 with `new`.",
     "let x = zeros(f32[2, 4]), bias = zeros(f32[2])\nlet z = x + bias",
     "let x = zeros(f32[2, 4]), bias = zeros(f32[2])\nlet z = x + bias[:, new]"},
    {"E0302", "matrix product of extents that differ",
     "a @ b sums over the last axis of a and the second to last of b (the only one of a vector); their "
     "extents have "
     "to be equal. A transposed weight is the usual reason.",
     "let a = zeros(f32[2, 3]), b = zeros(f32[4, 3])\nlet c = a @ b",
     "let a = zeros(f32[2, 3]), b = zeros(f32[4, 3])\nlet c = a @ transpose(b)"},
    {"E0303", "an extent differs from the declared one",
     "A signature or a type gives the extent by a number, a const or a dimension name that an earlier "
     "argument has "
     "bound. Each `_` is an extent of its own and matches anything.",
     "fn dot(a: f32[N], b: f32[N]) = sum(a * b)\nlet d = dot(zeros(f32[3]), zeros(f32[4]))",
     "fn dot(a: f32[N], b: f32[N]) = sum(a * b)\nlet d = dot(zeros(f32[4]), zeros(f32[4]))"},
    {"E0304", "no such axis",
     "An array of rank r has the axes 0 to r-1, also counted from the end as -1 to -r. An axis may be named "
     "once.",
     "let s = sum(zeros(f32[2, 3]), axis=2)", "let s = sum(zeros(f32[2, 3]), axis=1)"},
    {"E0305", "reshape changes the number of elements",
     "reshape keeps all elements in row-major order, so the products of old and new extents are equal. One "
     "extent may "
     "be -1 and is computed.",
     "let y = reshape(zeros(f32[6]), 2, 4)", "let y = reshape(zeros(f32[6]), 2, 3)"},
    {"E0306", "the rank is wrong or over 8",
     "Ranks are part of the type: a parameter f32[N, M] takes rank 2 alone, an index has at most as many "
     "parts as the "
     "array has axes, and no array has more than 8 axes.",
     "fn trace(a: f32[N, N]) = sum(a * eye(N))\nlet t = trace(zeros(f32[9]))",
     "fn trace(a: f32[N, N]) = sum(a * eye(N))\nlet t = trace(zeros(f32[3, 3]))"},
    {"E0307", "the number of elements overflows",
     "The product of the extents, or the size in bytes, is over 2^63 - 1. No machine has that memory; an "
     "extent was "
     "probably computed wrongly.",
     "let z = zeros(f32[2**40, 2**40])", "let z = zeros(f32[2**10, 2**10])"},
    {"E0308", "an index is out of range",
     "An axis of extent n has the indices 0 to n-1, and -1 to -n from the end. Here both index and extent "
     "are known "
     "before running.",
     "let x = [1, 2, 3]\nprint(x[3])", "let x = [1, 2, 3]\nprint(x[2])"},
    {"E0309", "a slice step of zero",
     "a:b:k takes every k-th element; k is positive or, to go backwards, negative.", "let y = x[0:10:0]",
     "let y = x[0:10:1]"},

    // ---- E04xx: names, places, what is not supported ----
    {"E0401", "unknown name",
     "Nothing of this name is in scope here: a misspelling (the nearest name is suggested), a definition "
     "further "
     "down, or a name from another block. `gkrun --builtins` lists what the language brings.",
     "let height = 1\nprint(heigth)", "let height = 1\nprint(height)"},
    {"E0402", "assignment to a let or a const",
     "let and const names keep their value. Use var for a name that changes with `=` or whose array is "
     "written with "
     "`.=`. Parameters are written only when declared mut.",
     "let x = zeros(f32[4])\nx .= 1", "var x = zeros(f32[4])\nx .= 1"},
    {"E0403", "this cannot be written to, or not in this way",
     "What `.=` writes is a place: a var or mut name, an index or a slice of one, a field of one. The result "
     "of "
     "a call or of an operator has no storage of its own. `=` rebinds whole names. A `mut` argument is a "
     "whole "
     "array, record or list, since a part of an array has no storage of its own.",
     "(a + b) .= 1", "a .= 1"},
    {"E0404", "a mut argument overlaps another argument",
     "A function that writes one argument while it reads another of the same storage would give results that "
     "depend "
     "on the order of its inner steps. Pass a copy, or different arrays.",
     "fn add(mut z: f32[N], x: f32[N]) { z .+= x }\nadd(mut a, a)",
     "fn add(mut z: f32[N], x: f32[N]) { z .+= x }\nadd(mut a, copy(a))"},
    {"E0405", "not yet implemented",
     "The language reference describes it, this version of the compiler does not do it yet. The message "
     "names what "
     "is missing and, where there is one, a way around.",
     "let x = [1, 2, 3]\nlet y = x[x > 1]", "let x = [1, 2, 3]\nlet y = where(x > 1, x, 0)"},
    {"E0406", "recursion",
     "A function may not call itself, directly or through others: calls are expanded into the graph, which "
     "has to be "
     "finite. Write a loop.",
     "fn fact(n: i64) -> i64 = if n == 0 { 1 } else { n * fact(n - 1) }",
     "fn fact(n: i64) -> i64 { var r = 1; for i in 1..n + 1 { r = r * i }; r }"},
    {"E0407", "a function uses a global variable",
     "Functions see their parameters and consts alone, so that a call says all it depends on. Pass the "
     "value, or make "
     "it a const. (Lambdas passed directly to a call, and capture, test and node blocks, do see local "
     "names.)",
     "var gain = 2.0\nfn amplify(x) = gain * x", "fn amplify(x, gain) = gain * x"},
    {"E0408", "the name is already defined here",
     "A file defines a function, kernel, type, graph or constant once; `let` and `var` may come again. Two "
     "parameters, fields or names of one statement differ.",
     "fn f(a) = a\nfn f(a) = a + 1", "fn f(a) = a\nfn g(a) = a + 1"},
    {"E0409", "break, continue or return in the wrong place",
     "break and continue belong inside for or while, return inside a function. A capture or node block is "
     "not part of "
     "the loop or function around it: it is a graph of its own.",
     "for i in 0..3 { let g = capture { break } }", "for i in 0..3 { if i == 2 { break } }"},
    {"E0410", "an import failed",
     "The file is not there, cannot be read, has errors of its own, or imports the importing file in a "
     "circle. Paths "
     "are relative to the importing file.",
     "import \"nn\" as nn", "import \"nn.gk\" as nn"},
    {"E0411", "an unknown pragma, or one that is not at the top",
     "A pragma holds for its whole file and stands before every other statement. There are default_float "
     "f32|f64, "
     "fuse on|off, fast_math and matmul tf32|f32.",
     "let x = ones(f32[4])\npragma fuse off", "pragma fuse off\nlet x = ones(f32[4])"},
    {"E0412", "a line begins with an operator",
     "A statement ends with its line unless an operator or an open bracket stands at the end. A line that "
     "begins "
     "with a minus is a statement of its own, and its value would be lost.",
     "let d = b * b\n  - 4 * a * c", "let d = b * b -\n  4 * a * c"},
};

}  // namespace

std::span<const Explanation> language_explanations() { return kRows; }

}  // namespace gk::syntax
