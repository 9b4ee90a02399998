// Rows on threads that take part in a capture by its token.
#include <optional>

#include "tests/contract/contract.h"

namespace gk::contract_test {

CONTRACT_ROW(27J, "threads inside a capture: what they submit is recorded, in the order in which it comes") {
  Tensor x = array(100), t;
  Graph g = ctx.capture([&] {
    fill(x, 1);
    const CaptureToken token = ctx.capture_token();
    on_thread([&] {
      Worker w(token);
      EXPECT_TRUE(w.ctx.is_capturing());
      w.kernel("add")(x, 1.0F);
      t = w.ctx.empty(f32, {kN});
    });
    scale(x, 3);
    // Two threads in turn; no other order gives this result.
    Meeting turn(2);
    on_threads(2, [&](int me) {
      Worker w(token);
      for (int k = 0; k < 10; ++k) {
        if (me == 0) w.kernel("add")(x, 1.0F);
        turn.wait();
        if (me == 1) w.kernel("scale")(x, 2.0F);
        turn.wait();
      }
      EXPECT_EQ(code_of([&] { w.all(x, 0); }), "E0703");
      EXPECT_EQ(code_of([&] { w.ctx.synchronize(); }), "E0703");
    });
    lib.kernel("copy_to")(t, x);
  });
  EXPECT_TRUE(all(x, 100)) << "what a thread submits was run";
  EXPECT_EQ(g.num_nodes(), 24);
  float expected = 6;
  for (int k = 0; k < 10; ++k) expected = (expected + 1) * 2;
  Exec e = g.instantiate();
  for (int i = 0; i < 2; ++i) {
    e.launch(ctx);
    EXPECT_TRUE(all(x, expected));
    EXPECT_TRUE(all(t, expected));
  }
}

CONTRACT_ROW(
    28J,
    "threads inside a capture: threads of theirs, captures of their own, and threads without the token") {
  Tensor x = array(0), own = array(0), beside = array(0);
  Graph g = ctx.capture([&] {
    add(x, 1);
    on_thread([&, token = ctx.capture_token()] {
      Worker child(token);
      child.kernel("scale")(x, 3.0F);
      on_thread([&, inner = child.ctx.capture_token()] {
        Worker grandchild(inner);
        grandchild.kernel("add")(x, 1.0F);
        bool entered = false;
        EXPECT_EQ(code_of([&] { grandchild.ctx.capture([&] { entered = true; }); }), "E0718");
        EXPECT_FALSE(entered);
      });
      child.kernel("scale")(x, 2.0F);
      // A context of the engine's takes part in nothing: it runs, and captures, for itself.
      Worker free(engine);
      EXPECT_FALSE(free.ctx.is_capturing());
      free.kernel("add")(beside, 5.0F);
      EXPECT_TRUE(free.all(beside, 5));
      Graph h = free.ctx.capture([&] {
        free.kernel("add")(own, 1.0F);
        on_thread([&, other = free.ctx.capture_token()] { Worker(other).kernel("scale")(own, 4.0F); });
        child.kernel("add")(x, 0.5F);
      });
      EXPECT_EQ(h.num_nodes(), 2);
      h.instantiate().launch(free.ctx, 2);
      EXPECT_TRUE(free.all(own, 20));
    });
  });
  EXPECT_EQ(g.num_nodes(), 5);
  EXPECT_TRUE(all(x, 0));
  EXPECT_TRUE(all(beside, 5));
  g.instantiate().launch(ctx);
  EXPECT_TRUE(all(x, 8.5F));
  EXPECT_TRUE(all(own, 20));
}

CONTRACT_ROW(29J,
             "threads inside a capture: 8 at once; unfinished or late: an error; another's stream: refused") {
  constexpr int kThreads = 8, kEach = 25;
  Tensor shared = array(0);
  std::vector<Tensor> own;
  for (int i = 0; i < kThreads; ++i) own.push_back(array(0));
  CaptureToken token;
  Graph g = ctx.capture([&] {
    token = ctx.capture_token();
    Meeting start(kThreads);
    on_threads(kThreads, [&](int i) {
      Worker w(token);
      Tensor& mine = own[static_cast<size_t>(i)];
      start.wait();
      for (int k = 0; k < kEach; ++k) {
        w.kernel("add")(mine, 1.0F);
        if (k % 5 == 4) w.kernel("scale")(mine, -1.0F);
        Tensor dead = w.ctx.empty(f32, {kN});
        w.kernel("copy_to")(dead, mine);
        w.kernel("axpy")(shared, dead, 1.0F);
      }
    });
  });
  EXPECT_EQ(g.num_nodes(), kThreads * (3 * kEach + kEach / 5));
  Exec e = g.instantiate();
  float mine = 0, sum = 0;
  for (int i = 0; i < 3; ++i) {
    e.launch(ctx);
    for (int k = 0; k < kEach; ++k) {
      mine += 1;
      if (k % 5 == 4) mine = -mine;
      sum += mine * kThreads;
    }
  }
  for (const Tensor& t : own) EXPECT_TRUE(all(t, mine));
  EXPECT_TRUE(all(shared, sum));

  // Late: the capture is over.
  EXPECT_EQ(code_of([&] { Context{token}; }), "E0713");
  std::optional<Worker> unfinished;
  Tensor x = array(0);
  const auto leave_one = [&] {
    on_thread([&, t = ctx.capture_token()] {
      unfinished.emplace(t);
      unfinished->kernel("add")(x, 1.0F);
    });
  };
  EXPECT_EQ(code_of([&] { ctx.capture(leave_one); }), "E0714");
  EXPECT_FALSE(ctx.is_capturing());
  EXPECT_EQ(code_of([&] { unfinished->kernel("add")(x, 1.0F); }), "E0713");
  EXPECT_EQ(code_of([&] { unfinished->ctx.host_call([] {}); }), "E0713");
  unfinished.reset();
  EXPECT_TRUE(all(x, 0));
  EXPECT_EQ(x.leases(), 0);
  Graph h = ctx.capture([&] {
    leave_one();
    unfinished->ctx.close();  // it is done after all
    EXPECT_EQ(code_of([&] { unfinished->kernel("add")(x, 1.0F); }), "E0716");
  });
  EXPECT_EQ(h.num_nodes(), 1);
  unfinished.reset();

  // The capturing thread's own context is not another thread's to use.
  Graph own_only = ctx.capture([&] {
    add(x, 1);
    on_thread([&] {
      EXPECT_EQ(code_of([&] { add(x, 10); }), "E0710");
      EXPECT_EQ(code_of([&] { (void)ctx.capture_token(); }), "E0710");
    });
    if (!on_gpu()) return;
    // Nor is the stream of a capture, whatever way it is come by.
    CUstream_st* const theirs = ctx.stream();
    on_thread([&] {
      Worker w(engine);
      EXPECT_EQ(code_of([&] { w.ctx.capture([] {}, {.stream = theirs}); }), "E0712");
      EXPECT_EQ(code_of([&] { Worker(engine, {.stream = theirs}).kernel("add")(x, 10.0F); }), "E0711");
    });
  });
  EXPECT_EQ(own_only.num_nodes(), 1);
  own_only.instantiate().launch(ctx);
  EXPECT_TRUE(all(x, 1));
}

}  // namespace gk::contract_test
