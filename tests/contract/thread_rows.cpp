// Rows on threads: those beside a capture, which it does not disturb, and those that take part in it.
#include <mutex>
#include <set>
#include <vector>

#include "tests/contract/contract.h"

namespace gk::contract_test {

CONTRACT_ROW(
    20J,
    "unrelated work on the capturing thread: {alloc, sync, download, free} x {while it sleeps, on a lock}") {
  Worker other(engine);
  Tensor x = array(1), theirs = other.array(3);
  const auto unrelated = [&](Worker& w) {
    Tensor t = w.array(4);
    w.kernel("axpy")(t, theirs, 2.0F);
    w.ctx.synchronize();
    EXPECT_TRUE(w.all(t, 10));
    Tensor p = w.ctx.empty(f32, {kN}, MemoryPlace::Pinned);
    p.copy_from(w.ctx, t);
    w.ctx.synchronize();
    EXPECT_EQ(static_cast<float*>(p.host_data())[kN - 1], 10);
    t.free();
    p = Tensor();
    Graph g = w.ctx.capture([&] { w.kernel("add")(theirs, 0.0F); });
    g.instantiate().launch(w.ctx);
    w.ctx.synchronize();
  };
  std::mutex lock;
  const int64_t before = settled_bytes();
  for (int round = 0; round < 2; ++round) {
    fill(x, 1);
    Graph g = ctx.capture([&] {
      add(x, 1);
      unrelated(other);  // on this thread itself, in between
      add(x, 2);
      Signal held, done;
      Thread t([&] {
        std::lock_guard guard(lock);
        held.set();
        Worker w(engine);
        unrelated(w);
        done.set();
      });
      held.wait();
      { std::lock_guard guard(lock); }  // waits on the lock while the other one works
      EXPECT_TRUE(done.is_set());
      scale(x, 10);
      on_thread([&] {
        Worker w(engine);
        unrelated(w);
      });
    });
    EXPECT_EQ(g.num_nodes(), 3);
    g.instantiate().launch(ctx);
    EXPECT_TRUE(all(x, 40));
  }
  other.ctx.synchronize();
  EXPECT_EQ(settled_bytes(), before);
}

CONTRACT_ROW(21J, "captures at the same time give graphs of their own; streams are restored") {
  constexpr int kThreads = 4;
  Meeting meeting(kThreads);
  std::vector<CUstream_st*> streams(kThreads);
  on_threads(kThreads, [&](int i) {
    Worker w(engine);
    CUstream_st* const own = w.ctx.stream();
    Tensor x = w.array(0), t;
    Graph g = w.ctx.capture([&] {
      meeting.wait();
      w.kernel("add")(x, static_cast<float>(i + 1));
      streams[static_cast<size_t>(i)] = w.ctx.stream();
      meeting.wait();
      for (int k = 0; k < i; ++k) w.kernel("scale")(x, 2.0F);
      t = w.ctx.empty(f32, {kN});
      w.kernel("copy_to")(t, x);
      meeting.wait();
      w.kernel("add")(t, 0.5F);
    });
    EXPECT_FALSE(w.ctx.is_capturing());
    EXPECT_EQ(w.ctx.stream(), own);
    EXPECT_EQ(g.num_nodes(), 3 + i);
    EXPECT_TRUE(w.all(x, 0));
    Exec e = g.instantiate();
    meeting.wait();
    e.launch(w.ctx);
    e.launch(w.ctx);
    // x = 2^i (2^i (i + 1) + i + 1)
    const auto f = static_cast<float>(1 << i), add = static_cast<float>(i + 1);
    EXPECT_TRUE(w.all(x, f * (f * add + add)));
    EXPECT_TRUE(w.all(t, f * (f * add + add) + 0.5F));
  });
  if (on_gpu()) {
    std::set<CUstream_st*> distinct(streams.begin(), streams.end());
    EXPECT_EQ(distinct.size(), streams.size());
    EXPECT_EQ(distinct.count(ctx.stream()), 0U);
  }
}

CONTRACT_ROW(23J, "others use an array made before: read, compute, free; on the same and on another thread") {
  for (const bool same_thread : {true, false}) {
    SCOPED_TRACE(same_thread);
    Tensor y = array(0), read = array(0), freed = array(0), leased = array(0);
    const auto plus = lib.fn<Tensor(Tensor, float)>("plus");
    // Still being made while the capture is open.
    keep_busy(20);
    add(read, 7);
    add(freed, 8);
    add(leased, 9);
    Tensor computed = plus(read, 1);
    Graph g = ctx.capture([&] {
      axpy(y, leased, 1);
      const auto use = [&] {
        Worker w(engine);
        EXPECT_TRUE(w.all(read, 7));
        EXPECT_TRUE(w.all(computed, 8));
        Tensor sum = w.lib.fn<Tensor(Tensor, Tensor)>("sum_of")(read, freed);
        freed.free();
        Tensor next = w.array(100);
        EXPECT_TRUE(w.all(sum, 15));
        w.kernel("add")(leased, 1.0F);
        leased.free();
        Tensor another = w.array(100);
        w.ctx.synchronize();
      };
      if (same_thread) {
        use();
      } else {
        on_thread(use);
      }
      axpy(y, read, 1);
    });
    EXPECT_EQ(g.num_nodes(), 2);
    Exec e = g.instantiate();
    const std::vector<Tensor> fresh = churn(4, 100);
    e.launch(ctx);
    EXPECT_TRUE(all(y, 10 + 7));
    for (const Tensor& t : fresh) EXPECT_TRUE(all(t, 100));
  }
}

}  // namespace gk::contract_test
