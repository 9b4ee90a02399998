// Rows about graphs that change: nodes added with an order, nodes retargeted, arrays rebound.
#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "gk/gk.h"
#include "tests/contract/contract.h"
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
  Kernel fill = lib.kernel("fill");
  Tensor x = array(0), y = array(0), z = array(0), count = array(0);
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
  Module m = ctx.compile("counted.gk", R"(
kernel counted(mut z: f32[n], mut count: f32[n], x: f32[n], y: f32[n]) over i in n {
  z[i] = x[i] * x[i] + y[i]
  count[i] = count[i] + 1
}
)");
  Kernel counted = m.kernel("counted");  // shows how often it is there
  const auto combined = [&] { counted(z, count, x, y); };
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
  EXPECT_TRUE(all(count, 1));
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

}  // namespace
}  // namespace gk::contract_test
