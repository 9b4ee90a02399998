// The row on conditional nodes: if and while on values of the device, inside graphs.
#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

const char* programs() {
  return R"(
fn grow(mut x: f32[N], limit: f32) { while sum(x) < limit { x .*= 2 } }
fn swing(mut x: f32[N]) { if sum(x) > 100 { x .= x - 20 } else { x .= x + 7 } }
fn pick(x: f32[N]) -> f32[N] = if x[0] > 0 { x * 2 } else { 1 - x }
fn collatz(mut n: i64[1], mut steps: i64[1]) {
  while any(n > 1) {
    if any(n % 2 == 0) { n .= n // 2 } else { n .= 3 * n + 1 }
    steps .+= 1
  }
}
fn settle(mut x: f32[N], mut turns: i64[1]) {
  while max(abs(x)) > 0.01 {
    let half = x * 0.5
    let centred = half - sum(half) / N
    x .= centred
    turns .+= 1
  }
}
fn leaves(mut x: f32[N]) { while sum(x) < 10 { x .+= 1; if true { break } } }
fn many(mut x: f32[N]) { for i in 0..3000 { x .= x / sum(x) + 0.25 } }
)";
}

int64_t steps_on_the_host(int64_t n) {
  int64_t steps = 0;
  for (; n > 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

CONTRACT_ROW(
    54P, "if and while on device values in a graph: as the host's loop, one call a launch, nodes updated") {
  Module m = ctx.compile("loops.gk", programs());
  auto collatz = m.fn<void(Tensor&, Tensor&)>("collatz");
  Tensor n = ctx.full(i64, {1}, 27), steps = ctx.zeros(i64, {1});
  Tensor host_n = ctx.full(i64, {1}, 27), host_steps = ctx.zeros(i64, {1});
  Graph g = ctx.capture([&] { collatz(n, steps); });
  EXPECT_EQ(steps.to_host<int64_t>(ctx)[0], 0);
  Exec e = g.instantiate();
  e.launch(ctx);
  collatz(host_n, host_steps);
  EXPECT_EQ(host_steps.to_host<int64_t>(ctx)[0], 111);
  EXPECT_EQ(steps.to_host<int64_t>(ctx)[0], 111);
  EXPECT_EQ(n.to_host<int64_t>(ctx)[0], 1);
  // How often the body runs is decided at each launch, by the device: nothing is read back or allocated, and
  // the launch is the same single call.
  const int64_t arena = e.arena_bytes(), in_use = engine.stats().in_use_bytes;
  int64_t total = 111;
  for (const int64_t start : {int64_t{1}, int64_t{97}, int64_t{6171}, int64_t{2}}) {
    n.copy_from(ctx, &start, sizeof start);
    e.launch(ctx);  // takes the array over after the copy
    const int64_t before = n.to_host<int64_t>(ctx)[0];
    EXPECT_EQ(before, 1);
    total += steps_on_the_host(start);
    EXPECT_EQ(steps.to_host<int64_t>(ctx)[0], total) << start;
  }
  const int64_t start = 871;
  n.copy_from(ctx, &start, sizeof start);
  e.launch(ctx);
  probe::clear_calls(engine);
  e.launch(ctx);
  EXPECT_EQ(probe::call_names(engine), std::vector<std::string>{"launch graph"});
  EXPECT_EQ(steps.to_host<int64_t>(ctx)[0], total + 178);
  EXPECT_EQ(e.arena_bytes(), arena);
  EXPECT_EQ(engine.stats().in_use_bytes, in_use);

  // Branches: each launch takes the one that the values of then ask for.
  auto swing = m.fn<void(Tensor&)>("swing");
  auto pick = m.fn<Tensor(Tensor)>("pick");
  Tensor x = array(0, 10), y = array(0, 10), picked;
  Exec branches = ctx.capture([&] {
                       swing(x);
                       picked = pick(x);
                     })
                      .instantiate();
  float expected = 0;
  for (int i = 0; i < 12; ++i) {
    branches.launch(ctx);
    swing(y);
    expected = 10 * expected > 100 ? expected - 20 : expected + 7;
    ASSERT_TRUE(all(x, expected)) << i;
    ASSERT_TRUE(all(y, expected)) << i;
    ASSERT_TRUE(all(picked, expected > 0 ? expected * 2 : 1 - expected)) << i;
  }

  // Temporaries of a body are planned with the graph; sums inside it are those of eager calls, bit for bit.
  auto settle = m.fn<void(Tensor&, Tensor&)>("settle");
  std::vector<float> data(4096);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>((i * 37) % 101) - 50;
  Tensor a = ctx.from_host(data, {4096}), b = ctx.from_host(data, {4096});
  Tensor turns = ctx.zeros(i64, {1}), host_turns = ctx.zeros(i64, {1});
  Exec settled = ctx.capture([&] { settle(a, turns); }).instantiate();
  settled.launch(ctx);
  settle(b, host_turns);
  EXPECT_EQ(turns.to_host<int64_t>(ctx), host_turns.to_host<int64_t>(ctx));
  EXPECT_GT(turns.to_host<int64_t>(ctx)[0], 5);
  EXPECT_EQ(values(a), values(b));

  // A long `for` is a loop in the graph, not three thousand nodes.
  Tensor p = array(1, 100), q = array(1, 100);
  auto many = m.fn<void(Tensor&)>("many");
  Exec loop = ctx.capture([&] { many(p); }).instantiate();
  EXPECT_LT(loop.num_driver_nodes(), 100);
  loop.launch(ctx);
  many(q);
  EXPECT_EQ(values(p), values(q));

  // A node with a loop inside is retargeted: another array, another limit; launches in flight keep theirs.
  auto grow = m.function("grow");
  Tensor u = array(1, 10), v = array(1, 10);
  Exec growing = ctx.capture([&] { ctx.node("loop", [&] { grow.call({u, 50.0F}); }); }).instantiate();
  Gate gate(ctx);
  growing.launch(ctx);
  growing.node("loop").update(grow, {v, 700.0F});
  EXPECT_NE(growing.last_update().rung, UpdateRung::None);
  growing.launch(ctx);
  gate.open();
  EXPECT_TRUE(all(u, 8));
  EXPECT_TRUE(all(v, 128));
  EXPECT_FALSE(gate.was_forced());
  growing.rebind({{v, u}});
  growing.launch(ctx);
  EXPECT_TRUE(all(u, 128));
  EXPECT_TRUE(all(v, 128));

  // What a body cannot do is said where it is recorded, and the capture goes on.
  Tensor w = array(0, 4);
  Exec rest = ctx.capture([&] {
                   const auto refused = m.function("leaves").try_call({w});
                   ASSERT_FALSE(refused);
                   EXPECT_EQ(refused.error().code(), "E0719");
                   ASSERT_FALSE(refused.error().places().empty());
                   EXPECT_EQ(refused.error().places()[0].file, "loops.gk");
                   swing(w);
                 })
                  .instantiate();
  rest.launch(ctx);
  EXPECT_TRUE(all(w, 7));
}

}  // namespace
}  // namespace gk::contract_test
