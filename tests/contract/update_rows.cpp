// Rows about graphs that change: nodes added with an order, nodes retargeted, arrays rebound.
#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"
#include "tests/contract/script.h"

namespace gk::contract_test {
namespace {

/// "c after a, b" for each declared node, in order.
std::vector<std::string> declared(const Graph& g) {
  std::vector<std::string> nodes;
  std::istringstream text(g.print());
  for (std::string line; std::getline(text, line);) {
    constexpr std::string_view kStart = "  node ";
    if (line.compare(0, kStart.size(), kStart) != 0) continue;
    nodes.push_back(line.substr(line.find(' ', kStart.size()) + 1));
  }
  return nodes;
}

CONTRACT_ROW(30J, "a `captured fn` compiles at its first call; later calls patch arrays and numbers") {
  Module m = ctx.compile("captured.gk", R"(
captured fn step(mut s: f32[N], x: f32[N], h: f32) { s .= s + h * x }
)");
  auto step = m.fn<void(Tensor&, Tensor, float)>("step");
  Tensor s = array(0), t = array(100), x = array(1), x2 = array(2);
  step(s, x, 0.0F);
  const EngineStats first = engine.stats();
  const int64_t instantiated = probe::calls(engine, "instantiate graph");
  for (int i = 1; i < 10; ++i) step(s, x, static_cast<float>(i));
  step(t, x2, 3.0F);
  EXPECT_TRUE(all(s, 45));
  EXPECT_TRUE(all(t, 106));
  EXPECT_TRUE(all(x, 1));
  EXPECT_EQ(engine.stats().kernels_compiled, first.kernels_compiled);
  EXPECT_EQ(engine.stats().compiles, first.compiles);
  EXPECT_EQ(probe::calls(engine, "instantiate graph"), instantiated);
  // Inside a capture it is an ordinary function.
  Graph g = ctx.capture([&] { step(s, x, 5.0F); });
  EXPECT_TRUE(all(s, 45));
  Exec e = g.instantiate();
  e.launch(ctx, 2);
  EXPECT_TRUE(all(s, 55));

  Script script;
  ASSERT_EQ(script.run(R"(
captured fn step(mut s: f32[N], x: f32[N], h: f32) { s .= s + h * x }
var s = zeros(f32[100]), t = full(f32[100], 100), x = ones(f32[100])
step(mut s, x, 0.0)
)"),
            Status::Ok)
      << script.err;
  const int64_t executables = script.stat("executables"), compiles = script.stat("compiles");
  EXPECT_EQ(executables, 1);
  ASSERT_EQ(script.run(R"(
for i in 1..10 { step(mut s, x, f32(i)) }
step(mut t, x, 3.0)
assert all(s == 45) and all(t == 103)
)"),
            Status::Ok)
      << script.err;
  EXPECT_EQ(script.stat("executables"), executables);
  EXPECT_EQ(script.stat("launches"), 11);
  EXPECT_LE(script.stat("compiles"), compiles + 1);  // what the assertion computes
}

CONTRACT_ROW(37J, "`after` makes a diamond: three nodes, z = 5, the declared edges and no others") {
  Kernel fill = lib.kernel("fill"), combine = lib.kernel("combine");
  Tensor x = array(-7), y = array(-7), z = array(-7);
  Graph g = ctx.graph("diamond");
  Node a = g.add("a", {.after = std::vector<Node>{}}, [&] { fill(x, 2.0F); });
  Node b = g.add("b", {.after = std::vector<Node>{}}, [&] { fill(y, 1.0F); });
  Node c = g.add("c", {.after = std::vector<Node>{a, b}}, [&] { combine(z, x, y); });
  EXPECT_TRUE(all(x, -7));
  EXPECT_TRUE(all(z, -7));
  EXPECT_EQ(g.num_nodes(), 3);
  EXPECT_EQ(c.name(), "c");
  EXPECT_EQ(g.num_leases(), 3);
  EXPECT_EQ(declared(g), (std::vector<std::string>{"a", "b", "c after a, b"}));
  const std::string dot = g.dot();
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '>'), 2) << dot;
  Exec e = g.instantiate();
  EXPECT_EQ(e.num_driver_nodes(), 3);
  e.launch(ctx);
  EXPECT_TRUE(all(z, 5));
  // The order holds at every launch, not by what an earlier one left.
  for (int i = 0; i < 20; ++i) {
    fill(x, 100.0F);
    fill(y, 100.0F);
    e.launch(ctx);
    ASSERT_TRUE(all(z, 5));
  }
}

CONTRACT_ROW(38J, "an addition that fails leaves nodes, leases and executables as they were") {
  Kernel fill = lib.kernel("fill"), combine = lib.kernel("combine");
  Tensor x = array(0), y = array(0), z = array(0);
  Graph g = ctx.graph("grown");
  Node a = g.add("a", {.after = std::vector<Node>{}}, [&] { fill(x, 2.0F); });
  Node b = g.add("b", {.after = std::vector<Node>{}}, [&] { fill(y, 1.0F); });
  Exec before = g.instantiate();
  Graph other = ctx.graph("other");
  Node foreign = other.add("foreign", [&] { fill(x, 9.0F); });
  const std::string text = g.print();
  const int64_t leases_x = x.leases(), in_graph = g.num_leases();
  const auto unchanged = [&](const char* what) {
    EXPECT_EQ(g.print(), text) << what;
    EXPECT_EQ(g.num_leases(), in_graph) << what;
    EXPECT_EQ(x.leases(), leases_x) << what;
    EXPECT_EQ(z.leases(), 0) << what;
    EXPECT_FALSE(ctx.is_capturing()) << what;
  };
  const auto add = [&](std::string name, std::vector<Node> after, const std::function<void()>& f) {
    return code_of([&] { g.add(std::move(name), {.after = std::move(after)}, f); });
  };
  const auto combined = [&] { combine(z, x, y); };
  EXPECT_EQ(add("c", {a}, combined), "E0701");  // the order after b is missing
  unchanged("an order missing");
  EXPECT_EQ(add("a", {a, b}, combined), "E0408");
  unchanged("a name taken");
  EXPECT_EQ(add("c", {a, foreign}, combined), "E0717");
  unchanged("a node of another graph");
  EXPECT_EQ(add("c", {a, b}, [&] { combined(), ctx.synchronize(); }), "E0703");
  unchanged("a wait inside");
  EXPECT_THROW(
      g.add("c", {.after = std::vector<Node>{a, b}}, [&] { combined(), throw std::domain_error("mine"); }),
      std::domain_error);
  unchanged("an exception");
  int64_t failures = 0;
  for (int64_t k = 0; k < 100; ++k) {
    probe::fail_at(engine, k);
    const std::string code = add("c", {a, b}, combined);
    const bool given = probe::failed(engine);
    probe::fail_at(engine, -1);
    if (!given) break;
    ++failures;
    ASSERT_EQ(code, "E0503") << "call " << k;
    unchanged("a call of the driver");
  }
  EXPECT_GT(failures, 0);
  // The last round added it.
  EXPECT_EQ(declared(g), (std::vector<std::string>{"a", "b", "c after a, b"}));
  EXPECT_EQ(z.leases(), 1);
  before.launch(ctx);
  EXPECT_TRUE(all(z, 0));
  Exec after = g.instantiate();
  after.launch(ctx);
  EXPECT_TRUE(all(z, 5));
}

CONTRACT_ROW(
    39J, "a node retargeted: its old array stops changing, its new one changes; one parameter is patched") {
  Kernel add = lib.kernel("add");
  Tensor a = array(0), b = array(0), other = array(0);
  Graph g = ctx.capture([&] {
    ctx.node("n", [&] { add(a, 1.0F); });
    add(other, 1.0F);
  });
  Exec e = g.instantiate(), untouched = g.instantiate();
  e.launch(ctx);
  probe::clear_calls(engine);
  e.node("n").update(add, {b, 2.0F});
  EXPECT_EQ(probe::calls(engine, "set kernel"), 1);
  EXPECT_EQ(probe::calls(engine, "instantiate graph"), 0);
  EXPECT_EQ(e.last_update().rung, UpdateRung::Patched);
  EXPECT_EQ(e.last_update().reason, "");
  e.launch(ctx, 3);
  EXPECT_TRUE(all(a, 1));
  EXPECT_TRUE(all(b, 6));
  EXPECT_TRUE(all(other, 4));
  untouched.launch(ctx);
  EXPECT_TRUE(all(a, 2));
  EXPECT_TRUE(all(b, 6));
  // Another function, of another module, with another shape of launch; by its own call.
  Module more =
      ctx.compile("more.gk", "kernel times(mut y: f32[n], x: f32[n]) over i in n { y[i] = y[i] * x[i] }");
  Tensor three = array(3);
  e.node("n").update(more.kernel("times"), {b, three}, {.block = 64});
  EXPECT_EQ(e.last_update().rung, UpdateRung::Patched);
  e.launch(ctx);
  EXPECT_TRUE(all(b, 18));
  e.node("n").update(ctx, [&] { add(a, 10.0F); });
  e.launch(ctx);
  EXPECT_TRUE(all(a, 12));
  EXPECT_TRUE(all(b, 18));
  EXPECT_EQ(b.leases(), 0);
  // A function with another number of kernels goes down the ladder and means the same.
  Module steps = ctx.compile("steps.gk", "fn centre(mut y: f32[N]) { y .= y - sum(y) / N }");
  Tensor c = ctx.from_host(std::vector<float>{1, 2, 3, 6}, {4});
  e.node("n").update(steps.function("centre"), {c});
  EXPECT_NE(e.last_update().rung, UpdateRung::None);
  if (e.last_update().rung != UpdateRung::Patched) {
    EXPECT_NE(e.last_update().reason, "");
  }
  e.launch(ctx);
  EXPECT_EQ(values(c), (std::vector<float>{-2, -1, 0, 3}));
  EXPECT_TRUE(all(a, 12));
}

CONTRACT_ROW(40J,
             "retargets that are refused: two operations, a foreign node, wrong types; nothing is patched") {
  Kernel add = lib.kernel("add");
  Tensor a = array(0), b = array(0), d = ctx.full(f64, {kN}, 0);
  Graph g = ctx.capture([&] {
    ctx.node("one", [&] { add(a, 1.0F); });
    ctx.node("two", [&] {
      add(a, 1.0F);
      add(a, 1.0F);
    });
  });
  Exec e = g.instantiate();
  Graph elsewhere = ctx.capture([&] { ctx.node("one", [&] { add(b, 1.0F); }); });
  Engine second = open();
  Context its{second};
  Tensor foreign = its.full(f32, {kN}, 0), freed = array(0);
  freed.free();
  e.launch(ctx);
  probe::clear_calls(engine);
  const auto update = [&](const char* node, std::vector<Value> args) {
    return code_of([&] { e.node(node).update(add, std::move(args)); });
  };
  EXPECT_EQ(update("two", {b, 1.0F}), "E0705");
  EXPECT_EQ(update("three", {b, 1.0F}), "E0704");
  EXPECT_EQ(code_of([&] { e.node(elsewhere.node("one")).update(add, {b, 1.0F}); }), "E0717");
  const std::string dtype = update("one", {d, 1.0F});
  EXPECT_TRUE(dtype == "E0202" || dtype == "E0211") << dtype;
  const std::string number = update("one", {1.0F, 1.0F});
  EXPECT_TRUE(number == "E0202" || number == "E0211" || number == "E0206") << number;
  EXPECT_EQ(update("one", {b}), "E0206");
  EXPECT_EQ(update("one", {freed, 1.0F}), "E0716");
  EXPECT_EQ(update("one", {foreign, 1.0F}), "E0717");
  Kernel copy = lib.kernel("copy_to");
  EXPECT_EQ(code_of([&] { e.node("one").update(copy, {b, b}); }), "E0404");
  EXPECT_EQ(code_of([&] { e.node("one").update(ctx, [&] { add(b, 1.0F), add(b, 1.0F); }); }), "E0705");
  EXPECT_EQ(code_of([&] { e.node("one").update(ctx, [] {}); }), "E0705");
  EXPECT_EQ(code_of([&] { e.node("one").update(ctx, [&] { ctx.synchronize(); }); }), "E0705");
  EXPECT_EQ(probe::calls(engine, "set kernel"), 0);
  EXPECT_EQ(probe::calls(engine, "update graph"), 0);
  EXPECT_EQ(probe::calls(engine, "instantiate graph"), 0);
  EXPECT_EQ(e.last_update().rung, UpdateRung::None);
  EXPECT_EQ(b.leases(), 1);  // elsewhere's
  e.launch(ctx);
  EXPECT_TRUE(all(a, 6));
  EXPECT_TRUE(all(b, 0));
  e.close();
  EXPECT_EQ(update("one", {b, 1.0F}), "E0716");
}

CONTRACT_ROW(
    51P,
    "an update is checked first: each refusal names its line, the node and the array, and changes nothing") {
  // In the language every refusal stands at its statement.
  Script script;
  ASSERT_EQ(script.run(R"(
var x = zeros(f32[4]), y = zeros(f32[4]), longer = zeros(f32[5]), wide = zeros(f64[4])
graph g {
  node a { x .+= 1 }
  node b { y .+= 2 }
}
let e = instantiate(g)
)"),
            Status::Ok)
      << script.err;
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"update e.c { x .+= 1 }", "E0704"},   {"update e.a { x .= y }", "E0705"},
      {"update e.b { x .+= 5 }", "E0705"},   {"update e { x -> longer }", "E0706"},
      {"update e { x -> wide }", "E0706"},   {"update e { x -> y }", "E0706"},
      {"update e { longer -> x }", "E0706"},
  };
  for (const auto& [statement, code] : refused) {
    EXPECT_NE(script.run("\n\n" + statement + "\n"), Status::Ok) << statement;
    EXPECT_NE(script.err.find("script.gk:3:"), std::string::npos) << statement << ": " << script.err;
    EXPECT_NE(script.err.find(code), std::string::npos) << statement << ": " << script.err;
  }
  ASSERT_EQ(script.run("launch e\nassert all(x == 1) and all(y == 2)"), Status::Ok) << script.err;

  // From C++: the definition that the argument does not fit, by its line.
  Kernel add = lib.kernel("add"), fill = lib.kernel("fill"), axpy = lib.kernel("axpy");
  Tensor p = array(0), q = array(0), d = ctx.full(f64, {kN}, 0);
  Graph g = ctx.graph("g");
  Node first = g.add("first", {.after = std::vector<Node>{}}, [&] { add(p, 1.0F); });
  g.add("second", {.after = std::vector<Node>{}}, [&] { fill(q, 4.0F); });
  Exec e = g.instantiate();
  auto wrong = e.node("first").try_update(add, {d, 1.0F});
  ASSERT_FALSE(wrong);
  ASSERT_FALSE(wrong.error().places().empty());
  EXPECT_EQ(wrong.error().places()[0].file, "lib.gk");
  EXPECT_EQ(wrong.error().places()[0].line, 3);
  // It would read what `second` writes, and no order is declared between the two.
  auto unordered = e.node("first").try_update(axpy, {p, q, 1.0F});
  ASSERT_FALSE(unordered);
  EXPECT_EQ(unordered.error().code(), "E0705");
  EXPECT_NE(std::string(unordered.error().what()).find("second"), std::string::npos)
      << unordered.error().what();
  EXPECT_EQ(q.leases(), 2);
  e.launch(ctx, 2);
  EXPECT_TRUE(all(p, 2));
  EXPECT_TRUE(all(q, 4));
  // Rebinding: dtype, shape, an array that the graph does not use, one that it uses already.
  Tensor shorter = array(0, kN - 1), unused = array(0);
  const auto rebind = [&](const Tensor& from, const Tensor& to) {
    return code_of([&] { e.rebind({{from, to}}); });
  };
  EXPECT_EQ(rebind(p, d), "E0706");
  EXPECT_EQ(rebind(p, shorter), "E0706");
  EXPECT_EQ(rebind(unused, p), "E0706");
  EXPECT_EQ(rebind(p, q), "E0706");
  EXPECT_EQ(rebind(p, Tensor()), "E0716");
  e.launch(ctx);
  EXPECT_TRUE(all(p, 3));
}

}  // namespace
}  // namespace gk::contract_test
