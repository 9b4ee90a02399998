// Closed things, other engines, other threads; threads that take part in a capture.
#include <atomic>
#include <thread>

#include "tests/api/graph_fixture.h"

namespace gk_test {
namespace {

class ApiMisuse : public GraphTest {};

// ---- misuse

TEST_P(ApiMisuse, closed_things_are_refused) {
  auto x = filled(0);
  auto g = ctx->capture([&] { bump(x, 1); });
  auto e = g.instantiate();
  auto node = e.node(g.nodes()[0]);
  e.close();
  EXPECT_EQ(code_of(e.try_launch(*ctx)), "E0716");
  EXPECT_EQ(code_of(e.try_upload(*ctx)), "E0716");
  EXPECT_EQ(code_of(e.try_node("a")), "E0716");
  EXPECT_EQ(code_of(node.try_update(bump, {x, 1.0f})), "E0716");
  EXPECT_EQ(code_of(e.try_rebind({{x, x}})), "E0716");
  EXPECT_EQ(code_of(e.try_update(g)), "E0716");
  EXPECT_EQ(e.num_leases(), 0);
  EXPECT_EQ(code_of(gk::Exec().try_launch(*ctx)), "E0716");
  g.close();
  g.close();
  EXPECT_EQ(code_of(g.try_instantiate()), "E0716");
  EXPECT_EQ(code_of(g.try_add("n", {}, [] {})), "E0716");
  EXPECT_EQ(g.num_nodes(), 0);
  EXPECT_EQ(code_of(ctx->try_capture({})), "E0512");
}

TEST_P(ApiMisuse, objects_of_another_engine_are_refused) {
  gk::Engine other({.device = GetParam(), .use_cache = false});
  gk::Context theirs(other);
  auto x = filled(0);
  auto g = ctx->capture([&] { bump(x, 1); });
  auto e = g.instantiate();
  EXPECT_EQ(code_of(e.try_launch(theirs)), "E0717");
  auto tx = theirs.full(gk::f32, {kN}, 1);
  EXPECT_EQ(code_of(e.try_rebind({{x, tx}})), "E0717");
  auto tm = theirs.compile("test.gk", kText);
  auto tg = theirs.capture([&] { tm.function("bump").call({tx, 1.0f}); });
  EXPECT_EQ(code_of(e.try_update(tg)), "E0717");
  EXPECT_EQ(code_of(e.node(g.nodes()[0]).try_update(tm.function("bump"), {tx, 1.0f})), "E0717");
  EXPECT_EQ(code_of(e.node(g.nodes()[0]).try_update(theirs, [] {})), "E0717");
  e.launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiMisuse, a_second_thread_inside_a_capture_is_refused) {
  auto x = filled(0);
  auto g = ctx->capture([&] {
    std::thread([&] {
      EXPECT_EQ(code_of(ctx->try_empty(gk::f32, {1})), "E0710");
      EXPECT_EQ(thrown([&] { bump(x, 100); }), "E0710");
    }).join();
    bump(x, 1);
  });
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiMisuse, others_work_undisturbed_while_a_graph_is_made) {
  auto x = filled(1);
  gk::Tensor y;
  auto g = ctx->capture([&] {
    y = axpy(x, 1);
    std::thread([&] {
      gk::Context c(*engine);
      auto m = c.compile("test.gk", kText);
      auto v = m.fn<gk::Tensor(gk::Tensor, float)>("axpy")(x, 4).to_host<float>(c);
      EXPECT_EQ(v[0], 5);
      auto t = c.full(gk::f32, {1 << 16}, 2);
      t.free();
      c.synchronize();
    }).join();
  });
  EXPECT_EQ(g.num_nodes(), 1);
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(y, 2));
}

TEST_P(ApiMisuse, threads_with_a_token_take_part) {
  auto x = filled(0);
  gk::CaptureToken late;
  std::optional<gk::Context> stayed;
  auto g = ctx->capture([&] {
    bump(x, 1);
    std::vector<std::thread> threads;
    auto token = ctx->capture_token();
    late = token;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, token] {
        gk::Context worker(token);
        EXPECT_TRUE(worker.is_capturing());
        auto theirs = worker.compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
        for (int i = 0; i < 5; ++i) theirs(x, 1);
        EXPECT_EQ(code_of(worker.try_synchronize()), "E0703");
        EXPECT_EQ(code_of(worker.try_capture([] {})), "E0718");
      });
    for (auto& t : threads) t.join();
    bump(x, 100);
  });
  EXPECT_TRUE(all(x, 0));
  EXPECT_EQ(g.num_nodes(), 22);
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 121));
  EXPECT_EQ(code_of(gk::Context::open(late)), "E0713");
  EXPECT_EQ(code_of(gk::Context::open(gk::CaptureToken())), "E0716");
  EXPECT_EQ(code_of(ctx->try_capture_token()), "E0703");
}

TEST_P(ApiMisuse, threads_that_are_not_done_spoil_the_capture) {
  auto x = filled(0);
  std::optional<gk::Context> worker;
  auto r = ctx->try_capture([&] {
    auto token = ctx->capture_token();
    std::thread([&] { worker.emplace(token); }).join();
    bump(x, 1);
  });
  EXPECT_EQ(code_of(r), "E0714");
  EXPECT_FALSE(ctx->is_capturing());
  auto theirs = worker->compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
  EXPECT_EQ(thrown([&] { theirs(x, 1); }), "E0713") << "a late submission does not run";
  worker->close();
  bump(x, 2);
  EXPECT_TRUE(all(x, 2));
}

TEST_P(ApiMisuse, reclaim_inside_is_refused) {
  auto x = filled(0);
  auto g = ctx->capture([&] {
    EXPECT_EQ(code_of(engine->try_reclaim()), "E0708");
    bump(x, 1);
  });
  engine->reclaim();
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiMisuse, several_threads_launch_in_turn) {
  auto a = filled(1), b = filled(0);
  auto e = ctx->capture([&] {
                bump(a, 1);
                mod.fn<void(gk::Tensor&, float)>("bump")(b, 1);
              })
               .instantiate();
  gk::Context other(*engine);
  for (int round = 0; round < 10; ++round) {
    gk::Context& c = round % 2 ? other : *ctx;
    std::thread([&] { e.launch(c); }).join();
  }
  EXPECT_TRUE(all(a, 11));
  EXPECT_TRUE(all(b, 10));
}

TEST_P(ApiMisuse, graphs_outlive_their_context) {
  gk::Exec e;
  auto x = filled(0);
  {
    gk::Context c(*engine);
    auto f = c.compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
    e = c.capture([&] { f(x, 1); }).instantiate();
  }
  e.launch(*ctx, 2);
  EXPECT_TRUE(all(x, 2));
}

TEST_P(ApiMisuse, host_calls_are_made_at_every_launch) {
  std::atomic<int> calls{0};
  auto x = filled(0);
  auto g = ctx->capture([&] {
    bump(x, 1);
    ctx->host_call([&] { ++calls; });
  });
  EXPECT_EQ(calls, 0);
  auto e = g.instantiate();
  e.launch(*ctx, 3);
  ctx->synchronize();
  EXPECT_EQ(calls, 3);
}

TEST_P(ApiMisuse, memory_freed_inside_a_capture_is_not_handed_on) {
  auto x = filled(3);
  gk::Tensor y;
  auto g = ctx->capture([&] {
    auto t = axpy(x, 1);
    y = axpy(t, 1);
    t.free();
    auto u = axpy(x, 10);
    y = axpy(u, 1);
    EXPECT_FALSE(y.is_freed());
  });
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(y, 32));
}

TEST_P(ApiMisuse, arrays_of_the_host_programs_work_are_kept) {
  auto x = filled(0);
  ctx->use(x);
  EXPECT_EQ(x.leases(), 0) << "outside a capture it is an order alone";
  auto g = ctx->capture([&] {
    ctx->use(x);
    (void)ctx->stream();
  });
  EXPECT_EQ(x.leases(), 1);
  auto e = g.instantiate();
  EXPECT_EQ(x.leases(), 2);
  e.launch(*ctx);
  g.close();
  e.close();
  EXPECT_EQ(x.leases(), 0);
  x.free();
  EXPECT_EQ(code_of(ctx->try_use(x)), "E0716");
}

TEST_P(ApiMisuse, faults_in_launches_come_at_the_next_wait) {
  auto pick = mod.fn<gk::Tensor(gk::Tensor, gk::Tensor)>("pick");
  auto x = filled(1, 4), i = ctx->from_host(std::vector<int32_t>{0, 9}, {2});
  gk::Tensor y;
  auto e = ctx->capture([&] { y = pick(x, i); }).instantiate();
  e.launch(*ctx);
  EXPECT_EQ(code_of(ctx->try_synchronize()), "E0801");
  EXPECT_EQ(code_of(ctx->try_synchronize()), "");
}

GK_API_DEVICES(ApiMisuse);

}  // namespace
}  // namespace gk_test
