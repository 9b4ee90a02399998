// One mistake each, with the exact text that a user reads.
#include <gtest/gtest.h>

#include "tests/unit/syntax_helpers.h"

namespace gk::syntax {
namespace {

using testing::human_errors;
using testing::Parsed;
using testing::short_errors;

TEST(SyntaxErrors, comparison_in_a_condition) {
  EXPECT_EQ(human_errors("if x = 3 { y }\n"), R"(
error[E0104]: expected `{`, found `=`
  --> t.gk:1:6
 1 | if x = 3 { y }
   |      ^
help: to compare, write `==`
)" + 1);
}

TEST(SyntaxErrors, comparison_in_an_assertion) {
  EXPECT_EQ(human_errors("assert a = b\n"), R"(
error[E0104]: expected the end of the statement, found `=`
  --> t.gk:1:10
 1 | assert a = b
   |          ^
help: to compare, write `==`
)" + 1);
}

TEST(SyntaxErrors, elementwise_assignment_in_a_binding) {
  EXPECT_EQ(human_errors("let x .= 3\n"), R"(
error[E0104]: expected `=`, found `.=`
  --> t.gk:1:7
 1 | let x .= 3
   |       ^^
help: a new name is given its value with `=`; `.=` writes into an array that exists
)" + 1);
}

TEST(SyntaxErrors, python_function) {
  EXPECT_EQ(human_errors("def f(x):\n  return x\n"), R"(
error[E0104]: `def` is not gk
  --> t.gk:1:1
 1 | def f(x):
   | ^^^
help: write `fn`
)" + 1);
}

TEST(SyntaxErrors, python_body) {
  EXPECT_EQ(human_errors("while x > 3:\n  y = 2\n"), R"(
error[E0104]: expected `{`, found `:`
  --> t.gk:1:12
 1 | while x > 3:
   |            ^
help: a body stands between braces: `{ … }`
)" + 1);
}

TEST(SyntaxErrors, python_words) {
  EXPECT_EQ(human_errors("if not a { None } elif b { True }\n"), R"(
error[E0104]: `None` is not gk
  --> t.gk:1:12
 1 | if not a { None } elif b { True }
   |            ^^^^
   = every name has a value; there is no empty one
help: for a new axis in an index, write `new`
error[E0104]: `elif` is not gk
  --> t.gk:1:19
 1 | if not a { None } elif b { True }
   |                   ^^^^
help: write `else if`
error[E0104]: `True` is not gk
  --> t.gk:1:28
 1 | if not a { None } elif b { True }
   |                            ^^^^
help: write `true`
)" + 1);
}

TEST(SyntaxErrors, python_lambda) {
  EXPECT_EQ(human_errors("let f = lambda x: x + 1\n"), R"(
error[E0104]: `lambda` is not gk
  --> t.gk:1:9
 1 | let f = lambda x: x + 1
   |         ^^^^^^
help: write `x => x + 1`
)" + 1);
}

TEST(SyntaxErrors, c_operators) {
  EXPECT_EQ(human_errors("if !a && b || c { d }\n"), R"(
error[E0104]: `!` is not gk
  --> t.gk:1:4
 1 | if !a && b || c { d }
   |    ^
help: write `not a` or, for an array, `~a`
error[E0104]: `&&` is not gk
  --> t.gk:1:7
 1 | if !a && b || c { d }
   |       ^^
help: write `and` or, between arrays, `&`
error[E0104]: `||` is not gk
  --> t.gk:1:12
 1 | if !a && b || c { d }
   |            ^^
help: write `or` or, between arrays, `|`
)" + 1);
}

TEST(SyntaxErrors, c_increment) {
  EXPECT_EQ(human_errors("for i in 0..3 { x++ }\n"), R"(
error[E0104]: `++` is not gk
  --> t.gk:1:18
 1 | for i in 0..3 { x++ }
   |                  ^^
help: write `x += 1`
)" + 1);
}

TEST(SyntaxErrors, c_comment) {
  EXPECT_EQ(human_errors("// comment\nlet a = 1\n"), R"(
error[E0104]: expected a statement, found `//`
  --> t.gk:1:1
 1 | // comment
   | ^^
help: a comment starts with `#`
)" + 1);
}

TEST(SyntaxErrors, missing_brace_points_at_its_opening) {
  EXPECT_EQ(human_errors("fn f(x) {\n  for i in 0..3 {\n    x\n}\nlet a = 1\n"), R"(
error[E0107]: this `{` is never closed
  --> t.gk:1:9
 1 | fn f(x) {
   |         ^ no `}` for it
 2 |   for i in 0..3 {
   |                 - the `}` for this one stands further left: the missing one may belong here
)" + 1);
}

TEST(SyntaxErrors, missing_parenthesis) {
  EXPECT_EQ(human_errors("let a = f(x\nlet b = 2\n"), R"(
error[E0107]: this `(` is never closed
  --> t.gk:1:10
 1 | let a = f(x
   |          ^ no `)` for it
 2 | let b = 2
   | --- a new statement starts here
)" + 1);
}

TEST(SyntaxErrors, wrong_bracket) {
  EXPECT_EQ(human_errors("f(1, 2]\n"), R"(
error[E0107]: expected `)`, found `]`
  --> t.gk:1:7
 1 | f(1, 2]
   |  -    ^
   |  to close this
)" + 1);
}

TEST(SyntaxErrors, stray_bracket) {
  EXPECT_EQ(human_errors("let a = 1)\n"), R"(
error[E0107]: `)` closes nothing
  --> t.gk:1:10
 1 | let a = 1)
   |          ^
)" + 1);
}

TEST(SyntaxErrors, chained_comparison) {
  EXPECT_EQ(human_errors("assert 0 < x < 1\n"), R"(
error[E0106]: comparisons do not chain
  --> t.gk:1:14
 1 | assert 0 < x < 1
   |          -   ^ second comparison
   |          first comparison
help: write `0 < x and x < 1`; between arrays `(0 < x) & (x < 1)`
)" + 1);
}

TEST(SyntaxErrors, unpacking) {
  EXPECT_EQ(human_errors("let (a, b) = f()\n"), R"(
error[E0104]: expected a name, found `(`
  --> t.gk:1:5
 1 | let (a, b) = f()
   |     ^
help: take the parts by index: `let t = f()`, then `t[0]` and `t[1]`
)" + 1);
}

TEST(SyntaxErrors, two_operands) {
  EXPECT_EQ(human_errors("let z = x y\n"), R"(
error[E0104]: expected the end of the statement, found `y`
  --> t.gk:1:11
 1 | let z = x y
   |           ^
)" + 1);
}

TEST(SyntaxErrors, call_without_parentheses) {
  EXPECT_EQ(human_errors("print \"a\"\n"), R"(
error[E0104]: expected the end of the statement, found a string
  --> t.gk:1:7
 1 | print "a"
   |       ^^^
help: call it with parentheses: `print(x)`
)" + 1);
}

TEST(SyntaxErrors, missing_comma) {
  EXPECT_EQ(human_errors("f(a b)\n"), R"(
error[E0104]: expected `,` or `)`, found `b`
  --> t.gk:1:5
 1 | f(a b)
   |     ^
)" + 1);
}

TEST(SyntaxErrors, keyword_as_a_name) {
  EXPECT_EQ(human_errors("let in = 3\n"), R"(
error[E0104]: expected a name, found the keyword `in`
  --> t.gk:1:5
 1 | let in = 3
   |     ^^
   = `in` is a keyword; choose another name
)" + 1);
}

TEST(SyntaxErrors, missing_operand) {
  EXPECT_EQ(human_errors("let a = b +\n"), R"(
error[E0104]: expected an expression, found the end of the text
  --> t.gk:1:12
 1 | let a = b +
   |            ^
)" + 1);
}

TEST(SyntaxErrors, operator_at_the_start_of_a_line) {
  EXPECT_EQ(human_errors("let x = 1\n  * 3\n"), R"(
error[E0104]: expected a statement, found `*`
  --> t.gk:2:3
 2 |   * 3
   |   ^
help: an operator that goes on with a line stands at the end of the line above
)" + 1);
}

TEST(SyntaxErrors, float_without_digits) {
  EXPECT_EQ(human_errors("a = 1.\nb = 2\n"), R"(
error[E0104]: expected a name, found the end of the line
  --> t.gk:1:7
 1 | a = 1.
   |       ^
help: write `1.0`
)" + 1);
}

TEST(SyntaxErrors, walrus) {
  EXPECT_EQ(human_errors("y := 3\n"), R"(
error[E0104]: expected the end of the statement, found `:`
  --> t.gk:1:3
 1 | y := 3
   |   ^
help: a new name is declared as `let x = …`
)" + 1);
}

TEST(SyntaxErrors, import_without_quotes) {
  EXPECT_EQ(human_errors("import foo\n"), R"(
error[E0104]: expected a string, found `foo`
  --> t.gk:1:8
 1 | import foo
   |        ^^^
help: write `import "foo.gk" as foo`
)" + 1);
}

TEST(SyntaxErrors, import_without_a_name) {
  EXPECT_EQ(human_errors("import \"f/util.gk\"\n"), R"(
error[E0104]: what is imported needs a name
  --> t.gk:1:1
 1 | import "f/util.gk"
   | ^^^^^^^^^^^^^^^^^^
help: write `import "f/util.gk" as util`
)" + 1);
}

TEST(SyntaxErrors, assignment_in_a_loop) {
  EXPECT_EQ(human_errors("for i = 0..3 { }\n"), R"(
error[E0104]: expected `in`, found `=`
  --> t.gk:1:7
 1 | for i = 0..3 { }
   |       ^
help: write `for i in 0..n { … }`
)" + 1);
}

TEST(SyntaxErrors, brace_on_the_next_line) {
  EXPECT_EQ(human_errors("fn f(x)\n{ x }\n"), R"(
error[E0104]: expected `{` or `=`, found the end of the line
  --> t.gk:1:8
 1 | fn f(x)
   |        ^
help: the `{` belongs on the same line
)" + 1);
}

TEST(SyntaxErrors, second_assignment) {
  EXPECT_EQ(human_errors("x = y = z\n"), R"(
error[E0104]: expected the end of the statement, found `=`
  --> t.gk:1:7
 1 | x = y = z
   |       ^
help: one assignment a statement; to compare, write `==`
)" + 1);
}

TEST(SyntaxErrors, else_without_if) {
  EXPECT_EQ(human_errors("else { x }\n"), R"(
error[E0104]: expected a statement, found the keyword `else`
  --> t.gk:1:1
 1 | else { x }
   | ^^^^
help: `else` follows the `}` of an `if`
)" + 1);
}

TEST(SyntaxErrors, statement_in_a_graph) {
  EXPECT_EQ(human_errors("graph g {\n  x = 1\n}\n"), R"(
error[E0104]: expected `node`, found `x`
  --> t.gk:2:3
 2 |   x = 1
   |   ^
   = a graph holds nodes alone: `node name { … }` or `node name after (a, b) { … }`
)" + 1);
}

TEST(SyntaxErrors, smart_quotes) {
  EXPECT_EQ(human_errors("print(“a”)\n"), R"(
error[E0101]: unexpected character `“`
  --> t.gk:1:7
 1 | print(“a”)
   |       ^^^
help: strings are written with straight double quotes: `"a"`
)" + 1);
}

TEST(SyntaxErrors, missing_result_type) {
  EXPECT_EQ(human_errors("fn f(x) -> = x\n"), R"(
error[E0104]: expected a type, found `=`
  --> t.gk:1:12
 1 | fn f(x) -> = x
   |            ^
)" + 1);
}

TEST(SyntaxErrors, missing_name) {
  EXPECT_EQ(human_errors("fn (x) = x\n"), R"(
error[E0104]: expected a name, found `(`
  --> t.gk:1:4
 1 | fn (x) = x
   |    ^
)" + 1);
}

TEST(SyntaxErrors, index_without_end) {
  EXPECT_EQ(human_errors("let y = x[1 2]\n"), R"(
error[E0104]: expected `,` or `]`, found `2`
  --> t.gk:1:13
 1 | let y = x[1 2]
   |             ^
)" + 1);
}

TEST(SyntaxErrors, type_without_equals) {
  EXPECT_EQ(human_errors("type P { w: f32 }\n"), R"(
error[E0104]: expected `=`, found `{`
  --> t.gk:1:8
 1 | type P { w: f32 }
   |        ^
)" + 1);
}

TEST(SyntaxErrors, kernel_without_over) {
  EXPECT_EQ(human_errors("kernel k(mut z: f32[n]) { }\n"), R"(
error[E0104]: expected `over`, found `{`
  --> t.gk:1:25
 1 | kernel k(mut z: f32[n]) { }
   |                         ^
)" + 1);
}

TEST(SyntaxErrors, if_without_braces) {
  EXPECT_EQ(human_errors("if (x) y = 1\n"), R"(
error[E0104]: expected `{`, found `y`
  --> t.gk:1:8
 1 | if (x) y = 1
   |        ^
help: a body stands between braces: `if c { … }`
)" + 1);
}

TEST(SyntaxErrors, missing_operand_before_a_line) {
  EXPECT_EQ(human_errors("let a = b +\nlet c = 1\n"), R"(
error[E0104]: expected an expression, found the end of the line
  --> t.gk:1:12
 1 | let a = b +
   |            ^
)" + 1);
}

TEST(SyntaxErrors, missing_condition) {
  EXPECT_EQ(human_errors("if { y }\n"), R"(
error[E0104]: expected `{`, found the end of the line
  --> t.gk:1:9
 1 | if { y }
   |         ^
help: a body stands between braces: `if c { … }`
)" + 1);
}

TEST(SyntaxErrors, missing_type) {
  EXPECT_EQ(human_errors("let a: = 3\n"), R"(
error[E0104]: expected a type, found `=`
  --> t.gk:1:8
 1 | let a: = 3
   |        ^
)" + 1);
}

TEST(SyntaxErrors, not_utf8) {
  EXPECT_EQ(human_errors("let a = 1\nlet b = \xFF\n"), R"(
error[E0102]: the byte 0xFF at offset 18 is not UTF-8
  --> t.gk:2:9
 2 | let b = �
   |         ^
help: save the file as UTF-8
)" + 1);
}

TEST(SyntaxErrors, several_in_one_run_in_source_order) {
  EXPECT_EQ(short_errors("let a = \nfn f(x) {\n  let = 2\n  x y\n  x\n}\nlet b = [1, 2\nlet c = 3 4\n"),
            "t.gk:1:8: error[E0104]: expected an expression, found the end of the line\n"
            "t.gk:3:7: error[E0104]: expected a name, found `=`\n"
            "t.gk:4:5: error[E0104]: expected the end of the statement, found `y`\n"
            "t.gk:7:9: error[E0107]: this `[` is never closed\n"
            "t.gk:8:11: error[E0104]: expected the end of the statement, found `4`\n");
}

TEST(SyntaxErrors, a_mistake_is_reported_once) {
  EXPECT_EQ(short_errors("def f(x):\n"), "t.gk:1:1: error[E0104]: `def` is not gk\n");
  EXPECT_EQ(short_errors("assert a < b < c < d < e"), "t.gk:1:14: error[E0106]: comparisons do not chain\n");
  EXPECT_EQ(short_errors("let x = $$$$ 3"), "t.gk:1:9: error[E0101]: unexpected character `$`\n");
}

TEST(SyntaxErrors, statements_around_a_mistake_are_kept) {
  Parsed p("let a = 1\nlet = 2\nlet c = 3\n");
  ASSERT_EQ(p.result.errors.size(), 1u);
  ASSERT_EQ(p.result.module.stmts.size(), 2u);
  EXPECT_EQ(p.result.module.stmts[1]->bindings[0].name, "c");
}

TEST(SyntaxErrors, of_the_tree_builder_come_with_those_of_the_parser) {
  EXPECT_EQ(short_errors("let a = 3x\nlet = 2\nlet c = 1 < 2 < 3\n"),
            "t.gk:1:10: error[E0106]: `x` is not the suffix of a number\n"
            "t.gk:2:5: error[E0104]: expected a name, found `=`\n"
            "t.gk:3:15: error[E0106]: comparisons do not chain\n");
}

TEST(SyntaxErrors, are_bounded_in_number) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "let = 3\n";
  EXPECT_EQ(Parsed(text).result.errors.size(), 50u);
}

}  // namespace
}  // namespace gk::syntax
