// Faults that users of other systems reported, of memory: what graphs and captures keep, reuse and free.
#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

constexpr int64_t kMiB = 1 << 20;

REPORT(1, "an 8 MB allocation in a capture, launched in a loop: memory stays flat") {
  constexpr int64_t kCount = 2 * kMiB;
  Tensor x = array(1, kCount), y = array(0, kCount);
  Exec e = ctx.capture([&] {
                Tensor t = ctx.empty(f32, {kCount});
                lib.kernel("copy_to")(t, x);
                add(t, 1.0F);
                axpy(y, t, 1.0F);
              })
               .instantiate();
  e.launch(ctx, 2);
  const int64_t bytes = settled_bytes();
  const int64_t allocated = probe::alive(engine).bytes;
  engine.reset_peak();
  for (int i = 0; i < 200; ++i) e.launch(ctx);
  EXPECT_LE(engine.stats().peak_bytes, bytes + kMiB);
  EXPECT_EQ(settled_bytes(), bytes);
  EXPECT_EQ(probe::alive(engine).bytes, allocated);
  EXPECT_TRUE(all(y, 404));
}

REPORT(3, "an inline temporary as an argument, dropped; the pool churned; launched") {
  Tensor y = array(0);
  auto twice = lib.fn<Tensor(Tensor)>("twice");
  Exec e = ctx.capture([&] { axpy(y, twice(array(3)), 1.0F); }).instantiate();
  // Eagerly made, and held by nothing but the call that records it.
  Exec eager;
  {
    Graph g = ctx.graph("g");
    g.add("n", [&, t = twice(array(10))] { axpy(y, t, 1.0F); });
    eager = g.instantiate();
  }
  for (int round = 0; round < 5; ++round) {
    const std::vector<Tensor> over = churn(40, -1e30F);
    e.launch(ctx);
    eager.launch(ctx);
    EXPECT_TRUE(all(y, static_cast<float>(26 * (round + 1))));
    for (const Tensor& t : over) ASSERT_TRUE(all(t, -1e30F));
  }
}

REPORT(4, "an operation with a table of the host's, another shape run meanwhile, replayed") {
  Tensor x = array(0), wide = array(0, 3 * kN);
  const auto look_up = [&](Tensor& to, int64_t n, float value) {
    // The table is made for this call and gone after it.
    const std::vector<float> table(static_cast<size_t>(n), value);
    Tensor t = ctx.from_host(table, {n});
    axpy(to, t, 1.0F);
  };
  Exec e = ctx.capture([&] { look_up(x, kN, 2); }).instantiate();
  e.launch(ctx);
  for (int i = 0; i < 10; ++i) look_up(wide, 3 * kN, 100);
  Exec other = ctx.capture([&] { look_up(wide, 3 * kN, 1000); }).instantiate();
  other.launch(ctx);
  for (int i = 0; i < 10; ++i) look_up(wide, 3 * kN, 10);
  const std::vector<Tensor> over = churn(20, -1e30F);
  e.launch(ctx, 2);
  other.launch(ctx);
  EXPECT_TRUE(all(x, 6));
  EXPECT_TRUE(all(wide, 1000 + 2000 + 100));
  // Copied again into the same array: the bytes of then.
  std::vector<float> table(kN, 1);
  Tensor t = array(0);
  Exec first = ctx.capture([&] { t.copy_from(ctx, table.data(), t.size_bytes()); }).instantiate();
  table.assign(kN, 2);
  Exec second = ctx.capture([&] { t.copy_from(ctx, table.data(), t.size_bytes()); }).instantiate();
  table.assign(kN, 3);
  second.launch(ctx);
  EXPECT_TRUE(all(t, 2));
  first.launch(ctx);
  EXPECT_TRUE(all(t, 1));
}

REPORT(6, "three large temporaries, each dead before the next, in one capture: the memory of one") {
  const int64_t count = on_gpu() ? 256 * kMiB : 8 * kMiB;  // 1 GB, 32 MB
  Tensor x = array(1, 16), y = array(0, 16);
  engine.reclaim();
  engine.reset_peak();
  const int64_t before = engine.stats().in_use_bytes;
  Exec e = ctx.capture([&] {
                for (int i = 1; i <= 3; ++i) {
                  Tensor t = ctx.empty(f32, {count});
                  fill(t, static_cast<float>(i));
                  axpy(y, t.rows(count - 16, 16), 1.0F);
                }
              })
               .instantiate();
  e.launch(ctx);
  EXPECT_TRUE(all(y, 6));
  const int64_t one = count * 4 + kMiB;
  EXPECT_LE(engine.stats().peak_bytes, before + one);
  EXPECT_LE(engine.stats().in_use_bytes, before + one);
  engine.reclaim();
  EXPECT_LE(engine.stats().in_use_bytes, before + one);
  e.launch(ctx);
  EXPECT_TRUE(all(y, 12));
  e.close();
  EXPECT_LE(settled_bytes(), before);
}

REPORT(8, "a graph dropped while another one is captured: the capture goes on, the memory goes later") {
  Tensor x = array(0), y = array(0);
  Graph g1 = ctx.capture([&] { add(x, 1.0F); });
  Exec e1 = g1.instantiate(), closed = g1.instantiate();
  // Its memory is its own: what the other stream used last would make it wait for that.
  Worker w(engine);
  Tensor z = w.array(0);
  const auto other_capture = [&](float total) {
    Exec own = w.ctx.capture([&] { w.kernel("add")(z, 2.0F); }).instantiate();
    own.launch(w.ctx);
    own = Exec();
    EXPECT_TRUE(w.all(z, total));
  };
  // Code is loaded once, and a driver may let that wait for the gate: all that is used behind it is loaded
  // here.
  on_thread([&] { other_capture(2); });
  Tensor warm = array(0);
  lib.kernel("copy_to")(warm, y);
  axpy(warm, y, 1.0F);
  ctx.synchronize();
  Gate gate(ctx);
  e1.launch(ctx);
  closed.launch(ctx);
  Exec e2 = ctx.capture([&] {
                 add(y, 1.0F);
                 g1 = Graph();
                 e1 = Exec();
                 closed.close();
                 Tensor t = ctx.empty(f32, {kN});
                 lib.kernel("copy_to")(t, y);
                 on_thread([&] { other_capture(4); });
                 axpy(y, t, 1.0F);
               })
                .instantiate();
  gate.open();
  EXPECT_TRUE(all(x, 2));
  EXPECT_TRUE(all(y, 0));
  e2.launch(ctx, 2);
  EXPECT_TRUE(all(y, 6));
  ctx.synchronize();
  engine.reclaim();
  EXPECT_EQ(x.leases(), 0);
  EXPECT_EQ(probe::alive(engine).execs, 1);
  EXPECT_EQ(engine.release_failures(), std::vector<std::string>{});
  EXPECT_FALSE(gate.was_forced());
}

REPORT(11, "f(a1) kept while f(a2) is computed: both are right, eagerly and captured") {
  auto f = lib.fn<Tensor(Tensor)>("twice");
  Tensor a1 = array(1), a2 = array(2);
  Tensor r1 = f(a1), r2 = f(a2);
  EXPECT_FALSE(r1.same_memory(r2));
  EXPECT_TRUE(all(r1, 2));
  EXPECT_TRUE(all(r2, 4));
  Tensor c1, c2;
  Exec e = ctx.capture([&] {
                c1 = f(a1);
                c2 = f(a2);
              })
               .instantiate();
  e.launch(ctx);
  EXPECT_FALSE(c1.same_memory(c2));
  EXPECT_TRUE(all(c1, 2));
  EXPECT_TRUE(all(c2, 4));
  // The same function captured by its own cache.
  Module m = ctx.compile("kept.gk", "captured fn twice(x: f32[N]) -> f32[N] = x * 2");
  auto captured = m.fn<Tensor(Tensor)>("twice");
  Tensor k1 = captured(a1), k2 = captured(a2), k3 = captured(k1);
  EXPECT_TRUE(all(k1, 2));
  EXPECT_TRUE(all(k2, 4));
  EXPECT_TRUE(all(k3, 4));
  // Results of replays are of the graph; a copy of one stays.
  Tensor copied = ctx.empty(f32, {kN});
  copied.copy_from(ctx, c1);
  fill(a1, 50);
  e.launch(ctx);
  EXPECT_TRUE(all(c1, 100));
  EXPECT_TRUE(all(copied, 2));
  EXPECT_TRUE(all(r1, 2));
}

REPORT(17, "parameters read, a pointer swapped, launched, destroyed: the driver's own are never touched") {
  Tensor x = array(1), y = array(2), z = array(0);
  std::vector<Exec> executables;
  Graph g = ctx.capture([&] { ctx.node("n", [&] { axpy(z, x, 1.0F); }); });
  for (int i = 0; i < 8; ++i) executables.push_back(g.instantiate());
  for (Exec& e : executables) {
    e.node("n").update(lib.kernel("axpy"), {z, y, 1.0F});
    e.rebind({{y, x}});
    e.rebind({{x, y}});
    e.launch(ctx);
  }
  g.close();
  x.free();
  EXPECT_TRUE(all(z, 16));
  // Destroyed in another order than made, half of them in flight.
  Gate gate(ctx);
  for (size_t i = 0; i < executables.size(); i += 2) executables[i].launch(ctx);
  executables.erase(executables.begin() + 2, executables.begin() + 5);
  executables.clear();
  gate.open();
  EXPECT_TRUE(all(z, 24));
  ctx.synchronize();
  engine.reclaim();
  EXPECT_EQ(y.leases(), 0);
  EXPECT_EQ(z.leases(), 0);
}

REPORT(20, "a captured copy's destination is replaced") {
  Tensor x = array(1), y = array(0), y2 = array(0), x2 = array(7);
  Exec e = ctx.capture([&] {
                ctx.node("copy", [&] { y.copy_from(ctx, x); });
                add(x, 1.0F);
              })
               .instantiate();
  e.launch(ctx);
  EXPECT_TRUE(all(y, 1));
  e.rebind({{y, y2}});
  e.launch(ctx);
  EXPECT_TRUE(all(y, 1));
  EXPECT_TRUE(all(y2, 2));
  e.rebind({{x, x2}});
  e.launch(ctx);
  EXPECT_TRUE(all(y2, 7));
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(x2, 8));
  // As a node that a function takes over.
  Module m = ctx.compile("copies.gk", "fn copy_into(mut to: f32[N], from: f32[N]) { to .= from }");
  e.node("copy").update(m.function("copy_into"), {y, x});
  e.launch(ctx);
  EXPECT_TRUE(all(y, 3));
  EXPECT_TRUE(all(y2, 7));
  EXPECT_TRUE(all(x2, 9));
}

REPORT(21, "a consumer pointed elsewhere after the capture: it works, or fails loudly and changes nothing") {
  Tensor source = array(1), made = array(0), result = array(0), elsewhere = array(100);
  Graph g = ctx.graph("g");
  g.add("make", [&] { lib.kernel("copy_to")(made, source); });
  g.add("use", [&] { axpy(result, made, 1.0F); });
  Exec e = g.instantiate();
  e.launch(ctx);
  EXPECT_TRUE(all(result, 1));
  // The producer alone is pointed elsewhere: the consumer goes on reading what was made last.
  e.node("make").update(lib.kernel("copy_to"), {elsewhere, source});
  fill(source, 50);
  e.launch(ctx);
  EXPECT_TRUE(all(result, 2));
  EXPECT_TRUE(all(elsewhere, 50));
  // Then the consumer.
  e.node("use").update(lib.kernel("axpy"), {result, elsewhere, 1.0F});
  e.launch(ctx);
  EXPECT_TRUE(all(result, 52));
  // To memory that is gone, or too small: an error, and it is as it was.
  Tensor gone = array(9), small = array(9, kN / 2);
  gone.free();
  EXPECT_EQ(code_of([&] { e.node("use").update(lib.kernel("axpy"), {result, gone, 1.0F}); }), "E0716");
  EXPECT_EQ(code_of([&] { e.node("use").update(lib.kernel("axpy"), {result, small, 1.0F}); }), "E0303");
  EXPECT_EQ(code_of([&] { e.rebind({{elsewhere, gone}}); }), "E0716");
  EXPECT_EQ(code_of([&] { e.rebind({{elsewhere, small}}); }), "E0706");
  // The handles of what it uses go; it stays.
  elsewhere = Tensor();
  source = Tensor();
  const std::vector<Tensor> over = churn(30, -1e30F);
  e.launch(ctx);
  EXPECT_TRUE(all(result, 102));
  // A fault inside a launch is raised where the device is waited for.
  Module m = ctx.compile("far.gk", "kernel far(mut y: f32[n], i0: i64) over i in n { y[i + i0] = 1 }");
  e.node("use").update(m.kernel("far"), {result, int64_t{kN - 1}});
  e.launch(ctx);
  EXPECT_EQ(code_of([&] { ctx.synchronize(); }), "E0801");
  EXPECT_EQ(code_of([&] { ctx.synchronize(); }), "");
}

}  // namespace
}  // namespace gk::contract_test
