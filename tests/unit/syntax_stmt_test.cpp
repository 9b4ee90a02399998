#include <gtest/gtest.h>

#include "tests/unit/syntax_helpers.h"

namespace gk::syntax {
namespace {

using testing::Parsed;
using testing::short_errors;
using testing::tree;

TEST(SyntaxStmt, bindings) {
  EXPECT_EQ(tree("const B = 16, D: i64 = 256"), "(const (B 16) (D (type i64) 256))");
  EXPECT_EQ(tree("var x: f32[N, _]"), "(var (x (type f32 (dims N _))))");
  EXPECT_EQ(tree("let m: m.Layer = y"), "(let (m (type m.Layer) y))");
}

TEST(SyntaxStmt, types) {
  EXPECT_EQ(tree("type P = { w: f32[D, 2 * N], b: f32 }"),
            "(typedef P (record-type (w (type f32 (dims D (* 2 N)))) (b (type f32))))");
  EXPECT_EQ(tree("type P = {\n  w: f32\n  b: f32[]\n}"),
            "(typedef P (record-type (w (type f32)) (b (type f32 (dims)))))");
  EXPECT_EQ(tree("var a: pinned f32[N], b: host [f32[N]; 3], c: (f32, i32)"),
            "(var (a (pinned (type f32 (dims N)))) (b (host (list-type (type f32 (dims N)) 3))) (c "
            "(tuple-type (type f32) "
            "(type i32))))");
  EXPECT_EQ(tree("fn f(a: [[f32; 2]; n]) = a"),
            "(fn f (params (a (list-type (list-type (type f32) 2) n))) a)");
}

TEST(SyntaxStmt, host_and_pinned_are_functions_too) {
  EXPECT_EQ(tree("let a = host(x)[0]"), "(let (a (index (call host x) 0)))");
  EXPECT_EQ(tree("let a = pinned(x)"), "(let (a (call pinned x)))");
}

TEST(SyntaxStmt, assignments) {
  EXPECT_EQ(
      tree("x = 1; x .= 2; x += 3; x .+= 4; x -= 5; x .-= 6; x *= 7; x .*= 8; x /= 9; x ./= 10\n"),
      "(; (= x 1))\n  (; (.= x 2))\n  (; (+= x 3))\n  (; (.+= x 4))\n  (; (-= x 5))\n  (; (.-= x 6))\n  "
      "(; (*= x 7))\n  (; (.*= x 8))\n  (; (/= x 9))\n  (./= x 10)");
  EXPECT_EQ(tree("x[1:3, :] .= e\np.w .+= e"),
            "(.= (index x (slice 1 3 -) (slice - - -)) e)\n  (.+= (field p w) e)");
}

TEST(SyntaxStmt, functions) {
  EXPECT_EQ(tree("fn f(a: f32[N], k = 8/3, mut z) -> f32[N] = a * k"),
            "(fn f (params (a (type f32 (dims N))) (k (default (/ 8 3))) (mut z)) (result (type f32 (dims "
            "N))) (* a k))");
  EXPECT_EQ(tree("fn step(x: f32[N]) -> f32[N] { var y = x; for _ in 0..50 { y = y * 0.99 }; y }"),
            "(fn step (params (x (type f32 (dims N)))) (result (type f32 (dims N))) (body\n"
            "    (; (var (y x)))\n"
            "    (; (for _ (.. 0 50) (body\n      (= y (* y 0.99)))))\n"
            "    y))");
  EXPECT_EQ(tree("captured fn f() { return }"), "(captured-fn f (params) (body\n    (return)))");
  EXPECT_EQ(tree("fn f() -> { a: f32 } = g()"),
            "(fn f (params) (result (record-type (a (type f32)))) (call g))");
  EXPECT_EQ(tree("fn f(x) {\n  if x { 1 } else { 2 }\n}"),
            "(fn f (params (x)) (body\n    (if x (then\n      1) (else\n      2))))");
}

TEST(SyntaxStmt, if_at_the_start_of_a_line_is_a_statement) {
  Parsed p("if a { b } else if c { d } else { e }\n(if a { b } else { c })\nlet x = if a { b } else { c }");
  ASSERT_EQ(p.result.module.stmts.size(), 3u);
  EXPECT_EQ(p.result.module.stmts[0]->kind, StmtKind::IfStmt);
  ASSERT_NE(p.result.module.stmts[0]->else_if, nullptr);
  EXPECT_EQ(p.result.module.stmts[0]->else_if->kind, StmtKind::IfStmt);
  EXPECT_NE(p.result.module.stmts[0]->else_if->else_body, nullptr);
  EXPECT_EQ(p.result.module.stmts[1]->kind, StmtKind::ExprStmt);
}

TEST(SyntaxStmt, kernels) {
  EXPECT_EQ(
      tree("kernel k(mut z: f32[n, m], x: f32[n]) over (i, j) in (n, m) { z[i, j] = x[i] }"),
      "(kernel k (params (mut z (type f32 (dims n m))) (x (type f32 (dims n)))) (over (i n) (j m)) (body\n"
      "    (= (index z i j) (index x i))))");
  EXPECT_EQ(tree("kernel k(mut z: f32[n])\n  over i in n {\n  while true { break }\n  continue\n}"),
            "(kernel k (params (mut z (type f32 (dims n)))) (over (i n)) (body\n"
            "    (while true (body\n      (break)))\n    (continue)))");
  EXPECT_EQ(short_errors("kernel k(mut z: f32[n]) over (i, j) in (n) { }"),
            "t.gk:1:40: error[E0106]: a kernel needs one extent for each index\n");
}

TEST(SyntaxStmt, graphs_on_one_line_and_on_many) {
  const std::string expected =
      "(graph g\n    (node a (body\n      (.= x 1)))\n    (node b (body))\n    (node c (after a b) (body\n   "
      "   (.= z y))))";
  EXPECT_EQ(tree("graph g { node a { x .= 1 }  node b { }  node c after (a, b) { z .= y } }"), expected);
  EXPECT_EQ(tree("graph g {\n  node a {\n    x .= 1\n  }\n\n  node b { };\n  node c\n    after (a, b) { z .= "
                 "y }\n}\n"),
            expected);
}

TEST(SyntaxStmt, updates) {
  EXPECT_EQ(tree("update e.c { launch(threads=256) combine(mut z2, x) }"),
            "(update (field e c) (body\n    (launch (options (= threads 256)) (call combine (mut z2) x))))");
  EXPECT_EQ(tree("update e { x -> x2, p.w -> w2 }"), "(update e (-> x x2) (-> (field p w) w2))");
  EXPECT_EQ(tree("update e {\n  x -> x2\n  z -> z2,\n}"), "(update e (-> x x2) (-> z z2))");
  EXPECT_EQ(tree("update e { x .= 1 }"), "(update e (body\n    (.= x 1)))");
}

TEST(SyntaxStmt, loops) {
  EXPECT_EQ(tree("for b in batches { batch .= b; launch e }"),
            "(for b batches (body\n    (; (.= batch b))\n    (launch e)))");
  EXPECT_EQ(tree("while item(err) > 1e-3 { step() }"),
            "(while (> (call item err) 0.001) (body\n    (call step)))");
}

TEST(SyntaxStmt, tests_and_assertions) {
  EXPECT_EQ(tree("test \"a b\" { assert a ~= b, rtol=1e-5, atol=0.0 }"),
            "(test \"a b\" (body\n    (assert (~= a b) (= rtol 1e-05) (= atol 0.0))))");
  EXPECT_EQ(tree("bench \"x\" { f(x) }"), "(bench \"x\" (body\n    (call f x)))");
  EXPECT_EQ(tree("expect_error E0301 { a + b }"), "(expect_error E0301 (body\n    (+ a b)))");
}

TEST(SyntaxStmt, imports_and_pragmas) {
  EXPECT_EQ(tree("import \"m.gk\" as m\nimport \"f/n.gk\" as k"),
            "(import \"m.gk\" m)\n  (import \"f/n.gk\" k)");
  EXPECT_EQ(tree("pragma fuse off; pragma fast_math\npragma default_float f64"),
            "(; (pragma fuse off))\n  (pragma fast_math)\n  (pragma default_float f64)");
}

TEST(SyntaxStmt, doc_comments_attach_to_the_definition_below) {
  EXPECT_EQ(tree("## Adds.\n##  Twice.\nfn f(x) = x"), "(fn f (doc \"Adds.\\n Twice.\") (params (x)) x)");
  EXPECT_EQ(tree("## A file.\n\n## A type.\ntype P = f32"), "(typedef P (doc \"A type.\") (type f32))");
  EXPECT_EQ(tree("let a = 1 ## no doc\nfn f(x) = x"), "(let (a 1))\n  (fn f (params (x)) x)");
  EXPECT_EQ(tree("## K.\nkernel k(mut z: f32[n]) over i in n { }\n## G.\ngraph g { }"),
            "(kernel k (doc \"K.\") (params (mut z (type f32 (dims n)))) (over (i n)) (body))\n  (graph g "
            "(doc \"G.\"))");
}

TEST(SyntaxStmt, newlines_end_statements_but_not_inside_brackets) {
  EXPECT_EQ(tree("f(a,\n  b\n)\n[1,\n 2]"), "(call f a b)\n  (array 1 2)");
  EXPECT_EQ(tree("let a = f\n(x)"), "(let (a f))\n  x");
  EXPECT_EQ(tree("let a = f\n[x]"), "(let (a f))\n  (array x)");
  EXPECT_EQ(tree("let a = 1 +\n  2 *\n\n  # comment\n  3"), "(let (a (+ 1 (* 2 3))))");
  EXPECT_EQ(tree("let a =\n  b\n  |> f\n  |> g"), "(let (a (pipe g (pipe f b))))");
  EXPECT_EQ(tree("let ok = a and\n  not\n  b"), "(let (ok (and a (not b))))");
  EXPECT_EQ(tree("if a { b }\nelse { c }"), "(if a (then\n    b) (else\n    c))");
  EXPECT_EQ(tree("fn f(x) ->\n  f32 =\n  x"), "(fn f (params (x)) (result (type f32)) x)");
  EXPECT_EQ(tree("a\r\nb\rc\n"), "a\n  b\n  c");
  EXPECT_EQ(tree(";;\n;a;;\n"), "(; a)");
  EXPECT_EQ(tree("for i in 0..2 { } for j in 0..2 { }"),
            "(for i (.. 0 2) (body))\n  (for j (.. 0 2) (body))");
}

TEST(SyntaxStmt, muted_by_a_semicolon) {
  Parsed p("a;\nb");
  EXPECT_TRUE(p.result.module.stmts.at(0)->muted);
  EXPECT_FALSE(p.result.module.stmts.at(1)->muted);
}

TEST(SyntaxStmt, contextual_keywords_are_names_elsewhere) {
  EXPECT_EQ(tree("let node = after + over * as"), "(let (node (+ after (* over as))))");
  EXPECT_EQ(tree("test = bench(update, type, graph, kernel)"),
            "(= test (call bench update type graph kernel))");
  EXPECT_EQ(tree("p.type.node[captured]"), "(index (field (field p type) node) captured)");
  EXPECT_EQ(tree("graph graph { node node { } node after after (node) { } }"),
            "(graph graph\n    (node node (body))\n    (node after (after node) (body)))");
  EXPECT_EQ(tree("fn test(over, as) = over"), "(fn test (params (over) (as)) over)");
  EXPECT_EQ(tree("type type = { test: f32 }"), "(typedef type (record-type (test (type f32))))");
}

TEST(SyntaxStmt, empty_texts) {
  EXPECT_EQ(tree(""), "");
  EXPECT_EQ(tree("\n\n# only a comment"), "");
  EXPECT_EQ(tree("\xEF\xBB\xBF"), "");
}

}  // namespace
}  // namespace gk::syntax
