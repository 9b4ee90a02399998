#include <gtest/gtest.h>

#include "tests/unit/syntax_helpers.h"

namespace gk::syntax {
namespace {

using testing::Parsed;
using testing::short_errors;
using testing::tree;

TEST(SyntaxExpr, precedence) {
  EXPECT_EQ(tree("a + b * c"), "(+ a (* b c))");
  EXPECT_EQ(tree("a - b - c"), "(- (- a b) c)");
  EXPECT_EQ(tree("-x ** 2"), "(- (** x 2))");
  EXPECT_EQ(tree("a ** b ** c"), "(** a (** b c))");
  EXPECT_EQ(tree("2 ** -x ** 2 * 3"), "(* (** 2 (- (** x 2))) 3)");
  EXPECT_EQ(tree("-a * b"), "(* (- a) b)");
  EXPECT_EQ(tree("~a & b | c ^ d & e"), "(| (& (~ a) b) (^ c (& d e)))");
  EXPECT_EQ(tree("a << b + c & d"), "(& (<< a (+ b c)) d)");
  EXPECT_EQ(tree("0 .. n + 1"), "(.. 0 (+ n 1))");
  EXPECT_EQ(tree("1 << 0..n"), "(<< 1 (.. 0 n))");
  EXPECT_EQ(tree("a & b == c | d"), "(== (& a b) (| c d))");
  EXPECT_EQ(tree("not a == b and c or d"), "(or (and (not (== a b)) c) d)");
  EXPECT_EQ(tree("a or b |> f"), "(pipe f (or a b))");
  EXPECT_EQ(tree("x => a |> f"), "(lambda (params (x)) (pipe f a))");
  EXPECT_EQ(tree("a // b % c @ d / e"), "(/ (@ (% (// a b) c) d) e)");
  EXPECT_EQ(tree("-f(x)[1].y"), "(- (field (index (call f x) 1) y))");
  EXPECT_EQ(tree("(a + b) * c"), "(* (+ a b) c)");
  EXPECT_EQ(tree("a ~= b"), "(~= a b)");
  EXPECT_EQ(tree("a >> 1 <= b"), "(<= (>> a 1) b)");
}

TEST(SyntaxExpr, parenthesised_comparisons_may_be_compared) {
  EXPECT_EQ(tree("(a < b) == c"), "(== (< a b) c)");
  EXPECT_EQ(tree("a == (b < c)"), "(== a (< b c))");
}

TEST(SyntaxExpr, numbers) {
  EXPECT_EQ(tree("[1, 1_000, 0xff, 0b101, 0o17, 0XAB_cd]"), "(array 1 1000 255 5 15 43981)");
  EXPECT_EQ(tree("[1.5, 1e3, .5, 2.5e-3, 1_0.0_1]"), "(array 1.5 1000.0 0.5 0.0025 10.01)");
  EXPECT_EQ(tree("[1u8, 2.5f64, 3f32, 0x1fi16, 1e3bf16]"), "(array 1u8 2.5f64 3.0f32 31i16 1000.0bf16)");
  EXPECT_EQ(tree("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(tree("1..3"), "(.. 1 3)");
  EXPECT_EQ(short_errors("18446744073709551616"),
            "t.gk:1:1: error[E0106]: this integer is over 18446744073709551615 (2^64 - 1)\n");
  EXPECT_EQ(short_errors("3x"), "t.gk:1:2: error[E0106]: `x` is not the suffix of a number\n");
  EXPECT_EQ(short_errors("1.5i32"),
            "t.gk:1:1: error[E0106]: a number with a fraction or an exponent cannot be i32\n");
  EXPECT_EQ(short_errors("0b12"), "t.gk:1:1: error[E0106]: `0b12` is not a number in base 2\n");
  EXPECT_EQ(short_errors("0x_"), "t.gk:1:1: error[E0106]: `0x_` is not a number in base 16\n");
}

TEST(SyntaxExpr, literal_keeps_its_text_and_kind) {
  Parsed p("0x1_0u8");
  const Expr& e = *p.result.module.stmts.at(0)->rhs;
  EXPECT_EQ(e.kind, ExprKind::Int);
  EXPECT_EQ(e.text, "0x1_0u8");
  EXPECT_EQ(e.suffix, "u8");
  EXPECT_EQ(e.uint_value, 16u);
}

TEST(SyntaxExpr, strings) {
  EXPECT_EQ(tree(R"("a\n\t\\\"\u{e9}\u{1F600}")"), "\"a\\n\\t\\\\\\\"é😀\"");
  EXPECT_EQ(tree(R"("")"), "\"\"");
  EXPECT_EQ(short_errors(R"("a\q")"), "t.gk:1:3: error[E0103]: unknown escape `\\q`\n");
  EXPECT_EQ(short_errors(R"("\u{D800}")"), "t.gk:1:2: error[E0103]: this is not the number of a character\n");
  EXPECT_EQ(short_errors(R"("\u{}")"), "t.gk:1:2: error[E0103]: this is not the number of a character\n");
  EXPECT_EQ(short_errors("let s = \"abc\nlet t = 1\n"),
            "t.gk:1:9: error[E0103]: this string is not closed\n");
  EXPECT_EQ(short_errors("\"abc\\"), "t.gk:1:1: error[E0103]: this string is not closed\n");
}

TEST(SyntaxExpr, f_strings) {
  EXPECT_EQ(tree(R"(f"a{x}b")"), R"((f "a" (x) "b"))");
  EXPECT_EQ(tree(R"(f"{x:.4f}{y + 1}")"), R"((f "" (x : ".4f") "" ((+ y 1)) ""))");
  EXPECT_EQ(tree(R"(f"{{{x}}}\n")"), R"((f "{" (x) "}\n"))");
  EXPECT_EQ(tree(R"(f"{d["k"]} {a[1:2]:d}")"),
            R"((f "" ((index d "k")) " " ((index a (slice 1 2 -)) : "d") ""))");
  EXPECT_EQ(tree(R"(f"{list(2, i => { i })}")"),
            "(f \"\" ((call list 2 (lambda (params (i)) (body\n    i)))) \"\")");
  EXPECT_EQ(tree(R"(f"plain")"), R"((f "plain"))");
  EXPECT_EQ(short_errors(R"(print(f"é {a +}"))"),
            "t.gk:1:15: error[E0104]: expected an expression, found the end of the expression\n");
  EXPECT_EQ(short_errors(R"(f"{}")"), "t.gk:1:3: error[E0103]: an empty `{}` in an f-string\n");
  EXPECT_EQ(short_errors(R"(f"a } b")"), "t.gk:1:1: error[E0103]: this string is not closed\n");
}

TEST(SyntaxExpr, f_string_expressions_have_their_place_in_the_file) {
  Parsed p("let é = 1; print(f\"ü {foo.bar:3d}\")");
  ASSERT_TRUE(p.result.errors.empty());
  const Expr& f = *p.result.module.stmts.at(1)->rhs->args.at(0).value;
  EXPECT_EQ(p.slice(f.elements.at(0)->span), "foo.bar");
}

TEST(SyntaxExpr, calls_and_arguments) {
  EXPECT_EQ(tree("f(a, mut b, k=1, g(),)"), "(call f a (mut b) (= k 1) (call g))");
  EXPECT_EQ(tree("f(mut p.w, mut x[1:2])"), "(call f (mut (field p w)) (mut (index x (slice 1 2 -))))");
  EXPECT_EQ(tree("x |> f |> g(a, k=2) |> m.h"), "(pipe (field m h) (pipe g (pipe f x) a (= k 2)))");
  EXPECT_EQ(tree("f32(x)"), "(call f32 x)");
  EXPECT_EQ(tree("zeros(f32[B, D])"), "(call zeros (index f32 B D))");
  EXPECT_EQ(tree("zeros(f32[])"), "(call zeros (index f32))");
  EXPECT_EQ(tree("f([T; n + 1])"), "(call f (type-value (list-type (type T) (+ n 1))))");
  EXPECT_EQ(tree("f([f32[B]; 3])"), "(call f (type-value (list-type (type f32 (dims B)) 3)))");
}

TEST(SyntaxExpr, indices) {
  EXPECT_EQ(tree("x[1, -1, :, a:b, a:b:k, ::2, :b, a:, ..., new]"),
            "(index x 1 (- 1) (slice - - -) (slice a b -) (slice a b k) (slice - - 2) (slice - b -) (slice a "
            "- -) ... new)");
  EXPECT_EQ(tree("x[m > 0]"), "(index x (> m 0))");
}

TEST(SyntaxExpr, lambdas) {
  EXPECT_EQ(tree("x => x + 1"), "(lambda (params (x)) (+ x 1))");
  EXPECT_EQ(tree("(x, y) => x"), "(lambda (params (x) (y)) x)");
  EXPECT_EQ(tree("(mut x: f32[N], y) => y"), "(lambda (params (mut x (type f32 (dims N))) (y)) y)");
  EXPECT_EQ(tree("_ => 1"), "(lambda (params (_)) 1)");
  EXPECT_EQ(tree("() => 1"), "(lambda (params) 1)");
  EXPECT_EQ(tree("f(i => {\n  let a = i\n  a\n}, 2)"),
            "(call f (lambda (params (i)) (body\n    (let (a i))\n    a)) 2)");
  EXPECT_EQ(tree("x => y => x"), "(lambda (params (x)) (lambda (params (y)) x))");
}

TEST(SyntaxExpr, tuples_and_arrays) {
  EXPECT_EQ(tree("(a, b)"), "(tuple a b)");
  EXPECT_EQ(tree("(a,)"), "(tuple a)");
  EXPECT_EQ(tree("(a)"), "a");
  EXPECT_EQ(tree("[[1, 2], [3, 4],]"), "(array (array 1 2) (array 3 4))");
  EXPECT_EQ(tree("[]"), "(array)");
  EXPECT_EQ(short_errors("let a = ()"), "t.gk:1:9: error[E0106]: `()` is not a value\n");
}

TEST(SyntaxExpr, if_is_an_expression) {
  EXPECT_EQ(tree("let a = if c { 1 } else { 2 }"), "(let (a (if c (then\n    1) (else\n    2))))");
  EXPECT_EQ(tree("let a = if c { 1 } else if d { 2 } else { 3 }"),
            "(let (a (if c (then\n    1) (if d (then\n    2) (else\n    3)))))");
  EXPECT_EQ(tree("let a = 1 + if c { 1 } else { 2 }"), "(let (a (+ 1 (if c (then\n    1) (else\n    2)))))");
}

TEST(SyntaxExpr, launch) {
  EXPECT_EQ(tree("launch e"), "(launch e)");
  EXPECT_EQ(tree("launch (e)"), "(launch e)");
  EXPECT_EQ(tree("launch(e)"), "(launch e)");
  EXPECT_EQ(tree("launch(times=1000) e"), "(launch (options (= times 1000)) e)");
  EXPECT_EQ(tree("launch(threads=256) combine(mut z, x)"),
            "(launch (options (= threads 256)) (call combine (mut z) x))");
  EXPECT_EQ(tree("launch capture { x .= 1 } |> instantiate"),
            "(pipe instantiate (launch (capture (body\n    (.= x 1)))))");
}

TEST(SyntaxExpr, capture_and_blocks) {
  EXPECT_EQ(tree("let e = capture { x .= 1 } |> instantiate"),
            "(let (e (pipe instantiate (capture (body\n    (.= x 1))))))");
  EXPECT_EQ(tree("let e = capture { }"), "(let (e (capture (body))))");
  EXPECT_EQ(tree("let y = { let a = 1; a }"), "(let (y (do (body\n    (; (let (a 1)))\n    a))))");
}

TEST(SyntaxExpr, spans_cover_the_whole_text_of_a_node) {
  Parsed p("let z = (a + b) * foo(c)[1]  # end\n");
  const Binding& b = p.result.module.stmts.at(0)->bindings.at(0);
  const Expr& product = *b.init;
  EXPECT_EQ(p.slice(p.result.module.stmts.at(0)->span), "let z = (a + b) * foo(c)[1]");
  EXPECT_EQ(p.slice(b.span), "z = (a + b) * foo(c)[1]");
  EXPECT_EQ(p.slice(b.name_span), "z");
  EXPECT_EQ(p.slice(product.span), "(a + b) * foo(c)[1]");
  EXPECT_EQ(p.slice(product.op_span), "*");
  EXPECT_EQ(p.slice(product.lhs->span), "a + b");
  EXPECT_EQ(p.slice(product.rhs->span), "foo(c)[1]");
  EXPECT_EQ(p.slice(product.rhs->lhs->span), "foo(c)");
  EXPECT_EQ(p.slice(product.rhs->indices.at(0).span), "1");
}

TEST(SyntaxExpr, spans_count_bytes_behind_other_scripts_and_a_mark) {
  Parsed p("\xEF\xBB\xBFlet größe = \"日本\"; foo");
  ASSERT_TRUE(p.result.errors.empty());
  EXPECT_EQ(p.slice(p.result.module.stmts.at(0)->bindings.at(0).name_span), "größe");
  EXPECT_EQ(p.slice(p.result.module.stmts.at(1)->span), "foo");
}

TEST(SyntaxExpr, spans_of_else_if_start_at_their_if) {
  Parsed p("if a { 1 } else if b { 2 } else { 3 }");
  const Stmt& s = *p.result.module.stmts.at(0);
  EXPECT_EQ(p.slice(s.else_if->span), "if b { 2 } else { 3 }");
}

}  // namespace
}  // namespace gk::syntax
