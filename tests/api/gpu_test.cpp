// A host program with CUDA work of its own: its streams, events, memory, kernels and graphs beside gk's.
#include <cstring>

#include "tests/api/driver.h"
#include "tests/api/fixture.h"

namespace gk_test {
namespace {

constexpr unsigned kNonBlocking = 1, kRelaxed = 2;

unsigned bits(float f) {
  unsigned u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
Driver::Pointer address(const gk::Tensor& t) { return reinterpret_cast<Driver::Pointer>(t.data()); }

// x[i] += 1 for i < n, by one block.
constexpr const char* kPtx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 p, .param .u32 n)
{
  .reg .pred %q;
  .reg .b32 %i, %n, %s;
  .reg .b64 %p, %o;
  .reg .f32 %v;
  ld.param.u64 %p, [p];
  ld.param.u32 %n, [n];
  mov.u32 %i, %tid.x;
  mov.u32 %s, %ntid.x;
again:
  setp.ge.u32 %q, %i, %n;
  @%q bra done;
  mul.wide.u32 %o, %i, 4;
  add.u64 %o, %p, %o;
  ld.global.f32 %v, [%o];
  add.f32 %v, %v, 0f3F800000;
  st.global.f32 [%o], %v;
  add.u32 %i, %i, %s;
  bra again;
done:
  ret;
}
)";

class GpuApi : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (IsSkipped()) return;
    cu = Driver::get();
    ASSERT_NE(cu, nullptr);
    ASSERT_EQ(cu->device_get(&device, 0), 0);
    ASSERT_EQ(cu->retain(&context, device), 0);
    ASSERT_EQ(cu->set_current(context), 0);
    ASSERT_EQ(cu->stream_create(&s, kNonBlocking), 0);
    ASSERT_EQ(cu->stream_create(&s2, kNonBlocking), 0);
    ASSERT_EQ(cu->module_load(&module, kPtx), 0);
    ASSERT_EQ(cu->module_function(&add_one, module, "add_one"), 0);
    axpy = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy");
    bump = mod.fn<void(gk::Tensor&, float)>("bump");
  }
  void TearDown() override {
    axpy = {};
    bump = {};
    ApiTest::TearDown();
    if (!context) return;
    cu->module_unload(module);
    cu->stream_destroy(s);
    cu->stream_destroy(s2);
    cu->release(device);
  }
  /// The host program's own kernel.
  void own_kernel(const gk::Tensor& t, CUstream_st* on) {
    Driver::Pointer p = address(t);
    unsigned n = static_cast<unsigned>(t.size());
    void* params[] = {&p, &n};
    ASSERT_EQ(cu->launch(add_one, 1, 1, 1, 128, 1, 1, 0, on, params, nullptr), 0);
  }

  const Driver* cu = nullptr;
  int device = 0;
  CUctx_st* context = nullptr;
  CUstream_st *s = nullptr, *s2 = nullptr;
  void *module = nullptr, *add_one = nullptr;
  gk::Function<gk::Tensor(gk::Tensor, float)> axpy;
  gk::Function<void(gk::Tensor&, float)> bump;
};

TEST_P(GpuApi, a_context_on_a_stream_of_the_host_program) {
  gk::Context mine(*engine, {.stream = s});
  EXPECT_EQ(mine.stream(), s);
  auto x = mine.full(gk::f32, {kN}, 1);
  auto f = mine.compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
  f(x, 1);
  own_kernel(x, s);
  f(x, 1);
  std::vector<float> out(kN);
  ASSERT_EQ(cu->copy_to_host_async(out.data(), address(x), kN * 4, s), 0);
  ASSERT_EQ(cu->stream_synchronize(s), 0);
  EXPECT_EQ(out, std::vector<float>(kN, 4));
}

TEST_P(GpuApi, own_work_goes_to_the_stream_of_the_context) {
  auto x = filled(1);
  for (int i = 0; i < 20; ++i) {
    bump(x, 1);
    own_kernel(x, ctx->stream());
  }
  EXPECT_TRUE(all(x, 41));
}

TEST_P(GpuApi, wrapped_memory_waits_for_its_event_or_stream) {
  Driver::Pointer p = 0;
  constexpr size_t n = 1 << 22;
  ASSERT_EQ(cu->mem_alloc(&p, n * 4), 0);
  CUevent_st* ready = nullptr;
  ASSERT_EQ(cu->event_create(&ready, 2), 0);
  for (int round = 1; round <= 4; ++round) {
    ASSERT_EQ(cu->memset_d32_async(p, bits(0), n, s), 0);
    ASSERT_EQ(cu->memset_d32_async(p, bits(static_cast<float>(round)), n, s), 0);
    gk::WrapOptions options;
    if (round % 2) {
      ASSERT_EQ(cu->event_record(ready, s), 0);
      options.ready = ready;
    } else {
      options.stream = s;
    }
    auto x = gk::Tensor::wrap(*ctx, reinterpret_cast<void*>(p), gk::f32, {static_cast<int64_t>(n)}, options);
    auto y = axpy(x, 1);
    EXPECT_EQ(y.rows(static_cast<int64_t>(n) - 4, 4).to_host<float>(*ctx),
              std::vector<float>(4, static_cast<float>(round) + 1));
  }
  ctx->synchronize();
  cu->event_destroy(ready);
  cu->mem_free(p);
}

TEST_P(GpuApi, a_capture_takes_the_host_programs_work_in_order) {
  auto x = filled(0);
  auto g = ctx->capture([&] {
    bump(x, 1);
    own_kernel(x, ctx->stream());
    own_kernel(x, ctx->stream());
    bump(x, 10);
    ASSERT_EQ(cu->memset_d32_async(address(x), bits(7), 10, ctx->stream()), 0);
  });
  EXPECT_TRUE(all(x, 0));
  auto e = g.instantiate();
  for (int i = 0; i < 3; ++i) e.launch(*ctx);
  auto v = values(x);
  EXPECT_EQ(v[0], 7);
  EXPECT_EQ(v[kN - 1], 39);
}

TEST_P(GpuApi, what_own_work_uses_is_kept_and_ordered) {
  gk::Context other(*engine);
  auto theirs = other.compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
  auto x = filled(0), seen = filled(0);
  gk::Exec e;
  {
    auto t = filled(0);
    auto g = ctx->capture([&] {
      ctx->use(x);
      ctx->use(t);
      own_kernel(t, ctx->stream());
      own_kernel(x, ctx->stream());
    });
    e = g.instantiate();
    t.free();
  }
  auto churn = filled(5);
  for (int i = 0; i < 10; ++i) {
    theirs(x, 1);
    e.launch(*ctx);
  }
  other.synchronize();
  EXPECT_TRUE(all(x, 20));
  EXPECT_TRUE(all(churn, 5));
  theirs(x, 1);
  ctx->use(x);
  own_kernel(x, ctx->stream());
  EXPECT_TRUE(all(x, 22));
}

TEST_P(GpuApi, a_capture_on_an_explicit_stream) {
  auto x = filled(0);
  auto g = ctx->capture(
      [&] {
        bump(x, 1);
        EXPECT_EQ(ctx->stream(), s);
        own_kernel(x, s);
      },
      {.stream = s});
  int capturing = -1;
  ASSERT_EQ(cu->stream_is_capturing(s, &capturing), 0);
  EXPECT_EQ(capturing, 0);
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 2));
}

TEST_P(GpuApi, explicit_streams_have_rules) {
  auto refused = [&](CUstream_st* on) { return code_of(ctx->try_capture([] {}, {.stream = on})); };
  EXPECT_EQ(refused(nullptr), "E0712") << "the default stream";
  CUstream_st* blocking = nullptr;
  ASSERT_EQ(cu->stream_create(&blocking, 0), 0);
  EXPECT_EQ(refused(blocking), "E0712");
  cu->stream_destroy(blocking);
  ASSERT_EQ(cu->begin_capture(s, kRelaxed), 0);
  EXPECT_EQ(refused(s), "E0712") << "it captures already";
  CUgraph_st* own = nullptr;
  ASSERT_EQ(cu->end_capture(s, &own), 0) << "the host program's capture is unharmed";
  cu->graph_destroy(own);
  EXPECT_EQ(refused(s), "");
  EXPECT_FALSE(ctx->is_capturing());
}

TEST_P(GpuApi, stricter_modes_record_the_same) {
  for (auto mode : {gk::CaptureMode::ThreadLocal, gk::CaptureMode::Global}) {
    auto x = filled(0);
    auto g = ctx->capture(
        [&] {
          bump(x, 1);
          own_kernel(x, ctx->stream());
        },
        {.mode = mode});
    g.instantiate().launch(*ctx);
    EXPECT_TRUE(all(x, 2));
  }
}

TEST_P(GpuApi, a_stream_captured_by_the_host_program_is_left_alone) {
  gk::Context mine(*engine, {.stream = s});
  auto f = mine.compile("test.gk", kText).fn<gk::Tensor(gk::Tensor, float)>("axpy");
  auto x = mine.full(gk::f32, {kN}, 1);
  mine.synchronize();
  ASSERT_EQ(cu->begin_capture(s, kRelaxed), 0);
  EXPECT_EQ(thrown([&] { f(x, 1); }), "E0711");
  CUgraph_st* own = nullptr;
  EXPECT_EQ(cu->end_capture(s, &own), 0);
  cu->graph_destroy(own);
  EXPECT_EQ(f(x, 1).to_host<float>(mine)[0], 2);
}

TEST_P(GpuApi, a_capture_broken_from_outside_is_said_and_over) {
  auto x = filled(0);
  auto r = ctx->try_capture([&] {
    bump(x, 1);
    own_kernel(x, ctx->stream());
    EXPECT_NE(cu->stream_synchronize(ctx->stream()), 0);
  });
  EXPECT_EQ(code_of(r), "E0715");
  bump(x, 1);
  EXPECT_TRUE(all(x, 1)) << "eager again";
  auto quiet = ctx->capture([&] { cu->stream_synchronize(ctx->stream()); }, {.quiet = true});
  EXPECT_FALSE(quiet);
}

TEST_P(GpuApi, launches_on_any_stream_are_ordered) {
  auto x = filled(0);
  auto e = ctx->capture([&] { bump(x, 1); }).instantiate();
  for (int i = 0; i < 10; ++i) {
    e.launch(i % 2 ? s : s2);
    bump(x, 1);
  }
  EXPECT_TRUE(all(x, 20));
  e.upload(s2);
  e.launch(nullptr);
  EXPECT_TRUE(all(x, 21));
}

TEST_P(GpuApi, work_recorded_into_a_graph_of_the_host_program) {
  CUgraph_st* graph = nullptr;
  ASSERT_EQ(cu->graph_create(&graph, 0), 0);
  auto y = filled(0);
  const auto leases = engine->stats().leases;
  std::vector<CUgraphNode_st*> nodes;
  {
    auto x = filled(3);
    nodes = ctx->record_into(graph, {}, [&] { y.copy_from(*ctx, axpy(x, 2)); });
    EXPECT_FALSE(nodes.empty());
    nodes = ctx->record_into(graph, nodes, [&] { bump(y, 1); });
    x.free();
  }
  EXPECT_GT(engine->stats().leases, leases);
  ctx->synchronize();
  void* exec = nullptr;
  ASSERT_EQ(cu->graph_instantiate(&exec, graph, 0), 0);
  cu->graph_destroy(graph);
  std::vector<gk::Tensor> churn;
  for (int i = 0; i < 8; ++i) churn.push_back(filled(99));
  ctx->synchronize();
  ASSERT_EQ(cu->graph_launch(exec, s), 0);
  ASSERT_EQ(cu->stream_synchronize(s), 0);
  EXPECT_TRUE(all(y, 8));
  cu->graph_exec_destroy(exec);
  EXPECT_EQ(code_of(ctx->try_record_into(nullptr, {}, [] {})), "E0512");
}

TEST_P(GpuApi, an_array_is_exported_in_the_order_of_a_stream) {
  auto x = filled(0);
  for (int i = 0; i < 50; ++i) bump(x, 1);
  auto* m = x.to_dlpack(*ctx, {.stream = s});
  EXPECT_EQ(m->dl_tensor.device.type, gk::dlpack::kCuda);
  std::vector<float> out(kN);
  ASSERT_EQ(
      cu->copy_to_host_async(out.data(), reinterpret_cast<Driver::Pointer>(m->dl_tensor.data), kN * 4, s), 0);
  ASSERT_EQ(cu->stream_synchronize(s), 0);
  EXPECT_EQ(out, std::vector<float>(kN, 50));
  m->deleter(m);
}

TEST_P(GpuApi, an_engine_lives_in_the_host_programs_context) {
  gk::EngineOptions options;
  options.device = GetParam();
  options.use_cache = false;
  options.native_context = context;
  gk::Engine there(options);
  gk::Context c(there, {.stream = s});
  EXPECT_EQ(c.full(gk::f32, {4}, 3).to_host<float>(c), std::vector<float>(4, 3));
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuApi, ::testing::Values("cuda", "trace:cuda"));

}  // namespace
}  // namespace gk_test
