// Rows about what graphs and executables keep: lease counts in stages, foreign owners, code, and executables
// destroyed while they run.
#include <atomic>
#include <optional>

#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

CONTRACT_ROW(31J, "leases of a graph and two executables come and go in stages") {
  Kernel axpy = lib.kernel("axpy");
  Tensor a = array(1), b = array(2);
  const int64_t none = engine.stats().leases;
  EXPECT_EQ(a.leases(), 0);
  Graph g = ctx.capture([&] {
    axpy(a, b, 1.0F);
    axpy(a, b, 1.0F);  // the same arrays once more: one lease each
  });
  EXPECT_EQ(a.leases(), 1);
  EXPECT_EQ(g.num_leases(), 2);
  EXPECT_EQ(engine.stats().leases, none + 2);
  Exec e1 = g.instantiate(), e2 = g.instantiate();
  EXPECT_EQ(a.leases(), 3);
  EXPECT_EQ(b.leases(), 3);
  EXPECT_EQ(e1.num_leases(), 2);
  e1.launch(ctx);
  EXPECT_EQ(a.leases(), 3);  // a launch takes none of its own
  g.close();
  EXPECT_EQ(a.leases(), 2);
  EXPECT_EQ(code_of([&] { (void)g.instantiate(); }), "E0716");
  e1.launch(ctx);
  e1.close();
  e1.close();
  ctx.synchronize();
  EXPECT_EQ(a.leases(), 1);
  EXPECT_EQ(code_of([&] { e1.launch(ctx); }), "E0716");
  e2.launch(ctx);
  EXPECT_TRUE(all(a, 1 + 3 * 4));
  // The handle's end is not the memory's, as long as there is a lease.
  const int64_t in_use = engine.stats().in_use_bytes;
  b = Tensor();
  ctx.synchronize();
  EXPECT_EQ(engine.stats().in_use_bytes, in_use);
  e2.launch(ctx);
  EXPECT_TRUE(all(a, 17));
  e2 = Exec();
  ctx.synchronize();
  engine.reclaim();
  EXPECT_EQ(a.leases(), 0);
  EXPECT_EQ(engine.stats().leases, none);
  EXPECT_LE(engine.stats().in_use_bytes, in_use - kN * 4);
}

CONTRACT_ROW(
    32J, "an executable that the driver fails to destroy keeps its memory for good; nothing else is lost") {
  Kernel add = lib.kernel("add");
  const int64_t size_bytes = 1 << 20;
  Tensor a = array(1, size_bytes / 4), b = array(5, size_bytes / 4);
  Graph g = ctx.capture([&] { add(a, 1.0F); });
  Exec closed = g.instantiate(), dropped = g.instantiate(), fine = g.instantiate();
  closed.launch(ctx);
  probe::fail_next(engine, "destroy executable");
  EXPECT_EQ(code_of([&] { closed.close(); }), "E0503");
  EXPECT_TRUE(probe::failed(engine));
  probe::clear_calls(engine);
  EXPECT_EQ(code_of([&] { closed.close(); }), "");  // not tried again
  EXPECT_EQ(probe::calls(engine, "destroy executable"), 0);
  EXPECT_EQ(code_of([&] { closed.launch(ctx); }), "E0716");
  ctx.synchronize();
  EXPECT_EQ(a.leases(), 4);
  probe::fail_next(engine, "destroy executable");
  dropped = Exec();  // a destructor says nothing
  ctx.synchronize();
  (void)ctx.zeros(f32, {16});
  engine.reclaim();
  EXPECT_TRUE(probe::failed(engine));
  EXPECT_EQ(a.leases(), 4);
  fine.close();
  g.close();
  ctx.synchronize();
  EXPECT_EQ(a.leases(), 2);
  // Leak rather than use after free: the memory is never handed on.
  void* kept = a.data();
  EXPECT_TRUE(all(a, 2));
  const int64_t in_use = engine.stats().in_use_bytes;
  a.free();
  engine.reclaim();
  EXPECT_EQ(engine.stats().in_use_bytes, in_use);
  for (int i = 0; i < 50; ++i) {
    Tensor t = array(static_cast<float>(i), size_bytes / 4);
    ASSERT_NE(t.data(), kept);
  }
  EXPECT_TRUE(all(b, 5));
}

CONTRACT_ROW(33J,
             "a foreign owner goes last: its deleter runs once, after the last executable and its work") {
  std::optional<cuda::Host> host;
  if (on_gpu()) host.emplace();
  cuda::ForeignMemory memory(kN);
  memory.write(std::vector<float>(kN, 1));
  std::atomic<int> deleted{0};
  auto keeper = std::make_shared<int>(1);
  const std::weak_ptr<int> kept = keeper;
  Exec last;
  {
    Engine own = open();
    Context c{own};
    Module m = c.compile("lib.gk", Worker::library());
    Tensor t = Tensor::wrap(c, memory.get(), f32, {kN}, {.keepalive = keeper, .deleter = [&] { ++deleted; }});
    keeper.reset();
    EXPECT_EQ(t.data(), memory.get());
    Graph g = c.capture([&] { m.kernel("add")(t, 1.0F); });
    Exec first = g.instantiate();
    last = g.instantiate();
    t = Tensor();
    own.reclaim();
    EXPECT_EQ(deleted, 0);
    g = Graph();
    first.launch(c);
    first.close();
    own.reclaim();
    EXPECT_EQ(deleted, 0);
    EXPECT_FALSE(kept.expired());
    Gate gate(c);
    last.launch(c, 3);
    last = Exec();
    // The work that uses the memory is still to come.
    (void)c.empty(f32, {16});
    EXPECT_EQ(deleted, 0);
    EXPECT_FALSE(kept.expired());
    gate.open();
    c.synchronize();
    own.reclaim();
    EXPECT_TRUE(eventually([&] { return deleted == 1; }));
    EXPECT_TRUE(eventually([&] { return kept.expired(); }));
    EXPECT_FALSE(gate.was_forced());
    EXPECT_EQ(memory.read(), std::vector<float>(kN, 5));

    // Once more, with the executable outliving engine and context.
    deleted = 0;
    Tensor u = Tensor::wrap(c, memory.get(), f32, {kN}, {.deleter = [&] { ++deleted; }});
    last = c.capture([&] { m.kernel("add")(u, 1.0F); }).instantiate();
    last.launch(c);
    c.synchronize();
  }
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(memory.read(), std::vector<float>(kN, 6));
  last = Exec();
  EXPECT_TRUE(eventually([&] { return deleted == 1; }));
  EXPECT_EQ(deleted, 1);
}

CONTRACT_ROW(49P, "code is leased: the module is dropped, the cache churned, and the graph still runs it") {
  Tensor a = array(0), b = array(0);
  Exec e;
  {
    Context other{engine};
    Module m =
        other.compile("once.gk", "kernel unique(mut y: f32[n]) over i in n { y[i] = y[i] * 2 + 1.25 }");
    Tensor warm = other.zeros(f32, {kN});
    m.kernel("unique")(warm);
    e = other.capture([&] { other.node("n", [&] { m.kernel("unique")(a); }); }).instantiate();
  }
  const auto churn = [&](int from) {
    for (int i = from; i < from + 20; ++i) {
      Module m =
          ctx.compile("churn" + std::to_string(i) + ".gk",
                      "kernel k(mut y: f32[n]) over i in n { y[i] = y[i] + " + std::to_string(i) + ".5 }");
      m.kernel("k")(b);
    }
    engine.reclaim();
  };
  churn(0);
  e.launch(ctx, 2);
  EXPECT_TRUE(all(a, 3.75));
  std::optional<Gate> gate;
  // The code of a node that is retargeted goes on as long as launches that use it are in flight. The new code
  // is loaded before: a driver may let that wait for functions of the host program's.
  {
    Module next = ctx.compile("next.gk", "kernel next(mut y: f32[n]) over i in n { y[i] = y[i] - 0.75 }");
    Tensor warm = array(0);
    next.kernel("next")(warm);
    ctx.synchronize();
    gate.emplace(ctx);
    e.launch(ctx);
    e.node("n").update(next.kernel("next"), {b});
  }
  (void)ctx.empty(f32, {16});
  gate->open();
  EXPECT_FALSE(gate->was_forced());
  EXPECT_TRUE(all(a, 8.75));
  const float before = values(b)[0];
  churn(20);
  const float added = values(b)[0] - before;
  EXPECT_EQ(added, 20 * 20 + 190 + 10);
  e.launch(ctx);
  EXPECT_TRUE(all(b, before + added - 0.75F));
  EXPECT_TRUE(all(a, 8.75));
}

CONTRACT_ROW(50P, "10,000 executables destroyed while they run: every launch counts, nothing grows") {
  Kernel add = lib.kernel("add");
  Tensor a = array(0, 16), kept = array(3, 16);
  Graph g = ctx.capture([&] {
    Tensor t = ctx.empty(f32, {16});
    lib.kernel("copy_to")(t, kept);
    add(a, 1.0F);
  });
  const auto cycles = [&](int n) {
    for (int i = 0; i < n; ++i) {
      if (i % 500 == 0) keep_busy(2);
      Exec e = g.instantiate();
      e.launch(ctx);
      if (i % 2 == 0)
        e.close();
      else
        e = Exec();
    }
  };
  const auto settled = [&] {
    ctx.synchronize();
    engine.reclaim();
    return std::make_pair(probe::alive(engine), engine.stats());
  };
  cycles(500);
  const auto [alive, stats] = settled();
  cycles(9500);
  const auto [alive_now, stats_now] = settled();
  EXPECT_TRUE(all(a, 10000));
  EXPECT_EQ(alive_now.execs, alive.execs);
  EXPECT_EQ(alive_now.graphs, alive.graphs);
  EXPECT_EQ(alive_now.bytes, alive.bytes);
  EXPECT_EQ(alive_now.allocations, alive.allocations);
  EXPECT_EQ(alive_now.events, alive.events);
  EXPECT_EQ(alive_now.streams, alive.streams);
  EXPECT_EQ(stats_now.leases, stats.leases);
  EXPECT_EQ(stats_now.in_use_bytes, stats.in_use_bytes);
  EXPECT_EQ(stats_now.pending_releases, stats.pending_releases);
  EXPECT_EQ(engine.release_failures(), std::vector<std::string>{});
  EXPECT_EQ(a.leases(), 1);
}

}  // namespace
}  // namespace gk::contract_test
