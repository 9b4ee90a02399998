// Rows on releases: when endings are carried out, and what they may not disturb.
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "tests/contract/contract.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {

CONTRACT_ROW(25J, "a capture that begins during a release that waits for the device fails fast") {
  Worker other(engine);
  Tensor x = array(0), y = other.array(0);
  warm();
  other.kernel("add")(y, 1.0F);
  other.ctx.synchronize();
  Gate gate(ctx);
  probe::clear_calls(engine);
  Thread release([&] { engine.reclaim(); });
  EXPECT_TRUE(eventually([&] { return probe::calls(engine, "synchronize device") > 0; }));
  bool entered = false;
  EXPECT_EQ(code_of([&] { other.ctx.capture([&] { entered = true; }); }), "E0708");
  EXPECT_FALSE(entered);
  EXPECT_FALSE(other.ctx.is_capturing());
  EXPECT_FALSE(gate.was_forced()) << "it waited instead";
  gate.open();
  release.join();
  Graph g = other.ctx.capture([&] { other.kernel("add")(y, 1.0F); });
  g.instantiate().launch(other.ctx);
  EXPECT_TRUE(other.all(y, 2));
}

CONTRACT_ROW(26J, "a capture that begins during a release that does not wait lets it end, and succeeds") {
  Worker other(engine);
  Tensor y = other.array(0);
  std::optional<cuda::Host> host;  // for memory of its own
  if (on_gpu()) host.emplace();
  cuda::ForeignMemory memory(kN);
  Signal inside, go_on, entered;
  std::atomic<bool> release_over{false};
  Tensor w = Tensor::wrap(ctx, memory.get(), f32, {kN}, {.deleter = [&] {
                            inside.set();
                            (void)go_on.wait_for(kPatience);
                            release_over = true;
                          }});
  Thread release([&] {
    w = Tensor();
    (void)Worker(engine).array(0);  // where it was not carried out at once, an allocation does
  });
  inside.wait();
  Graph g;
  Thread capture([&] {
    g = other.ctx.capture([&] {
      EXPECT_TRUE(release_over);
      entered.set();
      other.kernel("add")(y, 1.0F);
    });
  });
  EXPECT_FALSE(entered.wait_for(std::chrono::milliseconds(50)));
  go_on.set();
  capture.join();
  release.join();
  EXPECT_TRUE(entered.is_set());
  g.instantiate().launch(other.ctx);
  EXPECT_TRUE(other.all(y, 1));
}

CONTRACT_ROW(34J, "a recycled stream: a release ordered on it adds nothing to a new capture") {
  Tensor x = array(0);
  warm();
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    fill(x, 0);
    ctx.synchronize();
    Tensor t, u;
    Gate gate(ctx);
    {
      // A context, its stream and that of its capture go back; what used t last is still in flight on them.
      Worker gone(engine);
      t = gone.array(5);
      u = gone.array(6);
      Graph g = gone.ctx.capture([&] {
        (void)gone.ctx.stream();
        gone.kernel("axpy")(t, u, 1.0F);
        gone.kernel("axpy")(t, x, 1.0F);  // comes after the gate
      });
      g.instantiate().launch(gone.ctx);
    }
    Worker fresh(engine), reader(engine);
    Tensor mine = fresh.array(0), read = reader.array(0);
    reader.kernel("copy_to")(read, t);
    Graph g = fresh.ctx.capture([&] {
      (void)fresh.ctx.stream();
      fresh.kernel("add")(mine, 1.0F);
      t.free();
      u = Tensor();
      Tensor next = reader.array(100);  // of their memory
      Tensor own = fresh.ctx.empty(f32, {kN});
      fresh.kernel("fill")(own, 100.0F);
      fresh.kernel("add")(mine, 2.0F);
    });
    EXPECT_EQ(g.num_nodes(), 3);
    Exec e = g.instantiate();
    EXPECT_EQ(e.num_driver_nodes(), 3);
    EXPECT_FALSE(gate.was_forced());
    give_wrong_orders_time();
    gate.open();
    e.launch(fresh.ctx);
    EXPECT_TRUE(fresh.all(mine, 3));
    EXPECT_TRUE(reader.all(read, 11));
  }
}

CONTRACT_ROW(42J,
             "the retire list: a bounded drain (256 of 600), a drain inside one does nothing, no retry") {
  engine.reclaim();
  ASSERT_EQ(engine.stats().pending_releases, 0);
  ASSERT_TRUE(engine.release_failures().empty());
  // Shared with the endings: those that a fault leaves run after the test.
  const auto counts = std::make_shared<std::vector<int>>(600, 0);
  std::vector<int>& ran = *counts;
  int64_t inner = -1, in_allocation = -1;
  Worker other(engine);
  const auto num_ran = [&] {
    int64_t n = 0;
    for (const int r : ran) n += r;
    return n;
  };
  for (size_t i = 0; i < ran.size(); ++i) {
    probe::retire(engine, [&, counts, i] {
      ++(*counts)[i];
      if (i == 20) {
        const int64_t before = num_ran();
        inner = probe::drain(engine);
        (void)other.ctx.empty(f32, {kN});
        in_allocation = num_ran() - before;
      }
      return i != 10;
    });
  }
  EXPECT_EQ(engine.stats().pending_releases, 600);
  EXPECT_EQ(num_ran(), 0) << "publishing one carries nothing out";
  for (const int64_t expected : {256, 512, 600, 600}) {
    (void)ctx.empty(f32, {kN});
    EXPECT_EQ(num_ran(), expected);
    // The allocations' own endings may be among them.
    EXPECT_GE(engine.stats().pending_releases, 600 - expected);
    EXPECT_LT(engine.stats().pending_releases, 600 - expected + 8);
  }
  for (const int r : ran) EXPECT_EQ(r, 1);
  EXPECT_EQ(inner, 0);
  EXPECT_EQ(in_allocation, 0);
  EXPECT_EQ(engine.release_failures().size(), 1U);

  // Waiting for the device carries out all; a capture none, until its end.
  const auto publish = [&](int n) {
    for (int i = 0; i < n; ++i) probe::retire(engine, [counts] { return ++(*counts)[0] > 0; });
  };
  publish(600);
  engine.reclaim();
  EXPECT_EQ(ran[0], 601);
  Graph g = ctx.capture([&] {
    publish(600);
    (void)ctx.empty(f32, {kN});
    on_thread([&] { (void)Worker(engine).array(0); });
    EXPECT_EQ(probe::drain(engine), 0);
    EXPECT_EQ(ran[0], 601);
  });
  EXPECT_EQ(ran[0], 1201);
  EXPECT_EQ(engine.stats().pending_releases, 0);
  EXPECT_EQ(engine.release_failures().size(), 1U);
}

}  // namespace gk::contract_test
