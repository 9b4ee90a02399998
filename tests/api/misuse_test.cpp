// Handles, callbacks and numbers that a host program should not give: each has its documented error, and
// everything goes on as it was.
#include <atomic>
#include <chrono>
#include <stdexcept>

#include "tests/api/graph_fixture.h"

namespace gk_test {
namespace {

class ApiHandles : public GraphTest {};

TEST_P(ApiHandles, a_context_that_was_moved_from_is_closed) {
  const auto x = filled(1);
  auto exec = ctx->capture([&] { (void)axpy(x, 1); }).instantiate();
  gk::Context moved = std::move(*ctx);
  gk::Context& c = *ctx;
  const std::function<std::string()> calls[] = {
      [&] { return code_of(c.try_stream()); },
      [&] { return code_of(c.try_use(x)); },
      [&] { return code_of(c.try_compile("a.gk", "")); },
      [&] { return code_of(c.try_empty(gk::f32, {1})); },
      [&] { return code_of(c.try_synchronize()); },
      [&] { return code_of(c.try_host_call([] {})); },
      [&] { return code_of(c.try_capture([] {})); },
      [&] { return code_of(c.try_node("a", {}, [] {})); },
      [&] { return code_of(c.try_capture_token()); },
      [&] { return code_of(x.try_to_host<float>(c)); },
      [&] { return code_of(exec.try_launch(c)); },
      [&] { return code_of(exec.try_upload(c)); },
      [&] { return code_of(gk::Tensor::try_wrap(c, nullptr, gk::f32, {0})); },
  };
  for (size_t i = 0; i < std::size(calls); ++i) EXPECT_EQ(calls[i](), "E0716") << "call " << i;
  EXPECT_FALSE(c.is_capturing());
  EXPECT_TRUE(c.try_close());
  c.interrupt();
  EXPECT_EQ(thrown([&] { (void)c.engine().stats(); }), "E0716");
  c = std::move(moved);
  exec.launch(c);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiHandles, an_engine_that_was_moved_from_is_empty) {
  gk::Engine moved = std::move(*engine);
  gk::Engine& e = *engine;
  EXPECT_EQ(thrown([&] { (void)e.device(); }), "E0716");
  EXPECT_EQ(thrown([&] { (void)e.device_name(); }), "E0716");
  EXPECT_EQ(thrown([&] { (void)e.is_cuda(); }), "E0716");
  EXPECT_EQ(thrown([&] { (void)e.stats(); }), "E0716");
  EXPECT_EQ(thrown([&] { e.reset_peak(); }), "E0716");
  EXPECT_EQ(thrown([&] { (void)e.release_failures(); }), "E0716");
  EXPECT_EQ(code_of(e.try_reclaim()), "E0716");
  EXPECT_EQ(code_of(gk::Context::open(e)), "E0716");
  e = std::move(moved);
  EXPECT_EQ(e.stats().leases, 0);
}

TEST_P(ApiHandles, numbers_that_name_nothing_are_refused) {
  const auto x = filled(1);
  EXPECT_EQ(code_of(ctx->try_empty(gk::f32, {1}, static_cast<gk::MemoryPlace>(9))), "E0512");
  EXPECT_EQ(code_of(ctx->try_empty(static_cast<gk::DType>(99), {1})), "E0202");
  EXPECT_EQ(code_of(ctx->try_capture([] {}, {.mode = static_cast<gk::CaptureMode>(9)})), "E0512");
  EXPECT_EQ(code_of(gk::Value::try_scalar(static_cast<gk::DType>(99), 1)), "E0202");
  EXPECT_EQ(gk::name(static_cast<gk::DType>(99)), "?");
  EXPECT_EQ(gk::size_bytes(static_cast<gk::DType>(99)), 0);
  const auto rows = x.try_rows(INT64_MAX, 2);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().message(), "f32[1000] has no 2 rows from row 9223372036854775807");
}

TEST_P(ApiHandles, records_have_a_name_for_each_value) {
  const gk::Module m = ctx->compile("r.gk", "fn b(r) = r.b");
  const gk::Value x = filled(1);
  const auto call = [&](std::vector<std::string> names, std::vector<gk::Value> items) {
    return code_of(m.function("b").try_call({gk::Value::record(std::move(names), std::move(items))}));
  };
  EXPECT_EQ(call({"a", "b"}, {x, x}), "");
  EXPECT_EQ(call({"a", "b", "c"}, {x}), "E0202");
  EXPECT_EQ(call({"b"}, {x, x}), "E0202");
  EXPECT_EQ(call({"b", "b"}, {x, x}), "E0202");
}

TEST_P(ApiHandles, any_number_of_host_threads_serves) {
  for (const int threads : {1, 3, 1'000'000, INT32_MAX}) {
    gk::Engine e({.device = GetParam(), .use_cache = false, .host_threads = threads});
    gk::Context c(e);
    auto m = c.compile("m.gk", "fn twice(x: f32[n]) = x * 2");
    const auto y = m.fn<gk::Tensor(gk::Tensor)>("twice")(c.full(gk::f32, {300'000}, 3));
    EXPECT_EQ(y.to_host<float>(c), std::vector<float>(300'000, 6)) << threads;
  }
}

TEST_P(ApiHandles, arrays_of_nothing_are_not_one_another) {
  auto z = ctx->zeros(gk::f32, {0}), x = ctx->zeros(gk::f32, {0}), y = ctx->zeros(gk::f32, {0});
  combine(z, x, y);
  auto w = gk::Tensor::wrap(*ctx, nullptr, gk::f32, {0});
  combine(w, z, x);
  EXPECT_EQ(code_of(combine.try_call({z, z, y})), "E0404");
}

TEST_P(ApiHandles, wrapped_memory_let_go_of_in_a_loop_goes_back_without_a_wait) {
  std::vector<float> memory(16, 0);
  const auto is_gpu = engine->is_cuda();
  gk::Tensor own = filled(0, 16);
  int gone = 0, made = 0;
  const auto turn = [&] {
    void* at = is_gpu ? own.data() : memory.data();
    auto w = gk::Tensor::wrap(*ctx, at, gk::f32, {16}, {.deleter = [&] { ++gone; }});
    ++made;
    bump(w, 1);
  };
  for (int i = 0; i < 1000; ++i) turn();
  // The device has long done what came first when it does what comes last.
  for (int i = 0; i < 2000 && gone < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    turn();
  }
  EXPECT_GE(gone, 1000);
  ctx->synchronize();
  EXPECT_EQ(gone, made);
}

TEST_P(ApiHandles, a_deleter_that_throws_is_noted) {
  std::vector<float> memory(16, 0);
  gk::Tensor own = filled(0, 16);
  void* at = engine->is_cuda() ? own.data() : memory.data();
  {
    auto w = gk::Tensor::wrap(*ctx, at, gk::f32, {16}, {.deleter = [] { throw std::runtime_error("boo"); }});
  }
  ctx->synchronize();
  const auto noted = engine->release_failures();
  ASSERT_EQ(noted.size(), 1U);
  EXPECT_EQ(noted[0], "telling the owner of wrapped memory: E0512 it threw: boo");
}

TEST_P(ApiHandles, an_output_function_that_throws_is_an_error_of_the_call) {
  gk::Engine e({.device = GetParam(), .use_cache = false, .out = [](std::string_view) {
                  throw std::runtime_error("full");
                }});
  gk::Context c(e);
  const auto r =
      c.compile("m.gk", "fn f(x: f32[n]) { print(x) }").function("f").try_call({c.zeros(gk::f32, {1})});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), "E0512");
  EXPECT_EQ(r.error().message(), "a function of the host program threw: full");
}

TEST_P(ApiHandles, a_fault_of_a_context_that_is_gone_is_heard) {
  auto z = ctx->zeros(gk::f32, {8}), x = ctx->full(gk::f32, {8}, 1);
  const char* text = "kernel oob(mut z: f32[n], x: f32[m]) over i in n { z[i] = x[i+5] }";
  gk::Exec exec;
  {
    gk::Context maker(*engine);
    exec = maker.capture([&, oob = maker.compile("m.gk", text).kernel("oob")] { oob(z, x); }).instantiate();
  }
  exec.launch(*ctx);
  EXPECT_EQ(code_of(ctx->try_synchronize()), "E0801") << "of a graph that it launched";
  EXPECT_EQ(code_of(ctx->try_synchronize()), "");
  {
    gk::Context runner(*engine);
    runner.compile("m.gk", text).kernel("oob")(z, x);  // and nobody waits for it
  }
  EXPECT_EQ(code_of(z.try_to_host<float>(*ctx)), "E0801") << "of work that it reads";
  EXPECT_EQ(code_of(z.try_to_host<float>(*ctx)), "");
}

TEST_P(ApiHandles, a_rebinding_cannot_put_what_a_node_writes_over_what_it_reads) {
  auto big = ctx->from_host(std::vector<float>(2016, 3), {2016});
  auto z = filled(0), x = filled(1), y = filled(2);
  auto exec = ctx->capture([&] { combine(z, x, y); }).instantiate();
  EXPECT_EQ(code_of(exec.try_rebind({{z, big.rows(16, kN)}, {x, big.rows(0, kN)}})), "E0706");
  exec.launch(*ctx);
  EXPECT_TRUE(all(z, 3));
  exec.rebind({{z, big.rows(0, kN)}, {x, big.rows(kN, kN)}});
  exec.launch(*ctx);
  EXPECT_TRUE(all(big.rows(0, kN), 11));
}

TEST_P(ApiHandles, quiet_captures_are_loud_about_misuse) {
  gk::Tensor none;
  const gk::CaptureOptions quiet{.quiet = true};
  EXPECT_EQ(thrown([&] { ctx->capture([&] { (void)axpy(none, 1); }, quiet); }), "E0716");
  EXPECT_EQ(thrown([&] { ctx->capture([&] { ctx->capture([] {}); }, quiet); }), "E0718");
  gk::Engine other({.device = GetParam(), .use_cache = false});
  gk::Context foreign(other);
  const auto theirs = foreign.zeros(gk::f32, {4});
  EXPECT_EQ(thrown([&] { ctx->capture([&] { (void)axpy(theirs, 1); }, quiet); }), "E0717");
  EXPECT_FALSE(ctx->capture([&] { ctx->synchronize(); }, quiet));
}

TEST_P(ApiHandles, an_update_does_not_run_what_another_context_compiled) {
  gk::Context other(*engine);
  auto theirs = other.compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
  auto x = filled(1);
  auto g = ctx->graph();
  g.add("a", [&] { bump(x, 1); });
  auto exec = g.instantiate();
  EXPECT_EQ(code_of(exec.node("a").try_update(*ctx, [&] { theirs(x, 5); })), "E0717");
  EXPECT_TRUE(all(x, 1)) << "nothing ran";
  exec.launch(*ctx);
  EXPECT_TRUE(all(x, 2));
}

TEST_P(ApiHandles, a_great_many_launches_can_be_interrupted) {
  auto x = filled(0, 4);
  auto exec = ctx->capture([&] { bump(x, 1); }).instantiate();
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      ctx->interrupt();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  EXPECT_EQ(code_of(exec.try_launch(*ctx, INT64_MAX)), "E0806");
  over = true;
  other.join();
  ctx->synchronize();
}

GK_API_DEVICES(ApiHandles);

}  // namespace
}  // namespace gk_test
