// Failures of the driver, one call at a time, over whole programs.
#include "tests/unit/fake_libcuda_fixture.h"
#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

Arg f(float v) { return value(Scalar::of_float(v)); }

// The k-th driver call of a whole program fails, for every k: a typed error, nothing leaked, the next one
// right.
TEST(ExecFaults, any_driver_call_may_fail) {
  use_test_code();
  hal::OpenOptions options;
  options.threads = 2;
  auto device = std::dynamic_pointer_cast<hal::trace::TraceDevice>(need(hal::open("trace", options)));
  ASSERT_NE(device, nullptr);
  const auto attempt = [&]() -> Result<float> {
    GK_TRY(const std::shared_ptr<exec::Runtime> rt, exec::Runtime::create(device, 0));
    Builder b(*device, "p", 100);
    b.slots(2).temporaries(1).fill(b.temporary(0), f(3)).axpy(b.array(0), b.temporary(0), f(1));
    b.copy(b.array(1), b.array(0));
    GK_TRY(const std::shared_ptr<exec::Loaded> p, exec::Loaded::create(*rt, b.build()));
    exec::Bindings bindings;
    const std::vector<float> zeros(100);
    for (int i = 0; i < 2; ++i) {
      GK_TRY(const memory::BlockPtr x, rt->allocate(400));
      GK_CHECK(rt->upload(x, zeros.data(), 400));
      bindings.slots.push_back({x, 0});
    }
    GK_CHECK(exec::run(*rt, p, bindings));
    GK_TRY(const std::shared_ptr<exec::Graph> g, exec::Graph::create(*rt, {{"", p, bindings, {}, {}}}, "g"));
    GK_TRY(const std::shared_ptr<exec::Executable> e1, g->instantiate());
    GK_TRY(const std::shared_ptr<exec::Executable> e2, g->instantiate());
    GK_CHECK(e1->launch(*rt));
    GK_CHECK(e2->launch(*rt));
    GK_CHECK(e2->update(0, p, bindings));
    // Of an executable that nobody has any more.
    for (int i = 0; i < 2; ++i) {
      GK_TRY(const auto next, exec::Graph::create(*rt, {{"", p, bindings, {}, {}}}, "next"));
      GK_TRY(const auto e3, next->instantiate());
      GK_CHECK(e3->launch(*rt));
    }
    GK_CHECK(rt->synchronize());
    float v = 0;
    GK_CHECK(rt->download(&v, bindings.slots[1].block, 4));
    return v;
  };
  ASSERT_EQ(need(attempt()), 15);
  hal::trace::Alive idle = device->alive();
  EXPECT_EQ(idle, hal::trace::Alive{});
  int64_t k = 0;
  for (bool injected = true; injected; ++k) {
    ASSERT_LT(k, 500);
    device->fail_at(k, k % 2 == 0 ? ErrorKind::Device : ErrorKind::OutOfMemory);
    const Result<float> r = attempt();
    injected = device->failed();
    device->fail_at(-1);
    if (!r) {
      EXPECT_TRUE(r.error().kind == ErrorKind::Device || r.error().kind == ErrorKind::OutOfMemory);
    } else {
      EXPECT_EQ(*r, 15);
    }
    // An executable whose destruction failed counts as there for good.
    if (injected && device->failed_call() == "destroy executable") ++idle.execs;
    EXPECT_EQ(device->alive(), idle) << "after a failure at call " << k;
  }
  EXPECT_GT(k, 25);
  EXPECT_EQ(need(attempt()), 15);
}

/// Everything the runtime does, in one program; returns what it has computed.
Result<float> everything(const std::shared_ptr<hal::Device>& device, hal::CaptureMode mode) {
  constexpr int64_t kN = 100;
  GK_TRY(const std::shared_ptr<exec::Runtime> rt, exec::Runtime::create(device, 0));
  GK_TRY(const std::shared_ptr<exec::Runtime> other, rt->fork());
  const auto load = [&](Builder& b) { return exec::Loaded::create(*rt, b.build()); };
  Builder a(*device, "adder", kN), fill(*device, "filler", kN), loop(*device, "loop", kN);
  GK_TRY(const auto add, load(a.slots(1).scalars({1}).add(a.array(0), scalar_slot(0))));
  fill.slots(1).scalars({1}).temporaries(1).fill(fill.temporary(0), scalar_slot(0));
  GK_TRY(const auto filler, load(fill.copy(fill.array(0), fill.temporary(0))));
  Builder body(*device, "body", kN);
  body.slots(1).slot_of("go", 1).add(body.array(0), f(1)).below(slot(1, 1), body.array(0), f(4));
  loop.slots(1).temporaries(1).below(arena(0, 1), loop.array(0), f(4));
  loop.conditional(program::Step::Kind::While, arena(0, 1),
                   {{body.build(), {slot(0, kN * 4), arena(0, 1)}, {}, 0}}, {loop.array(0)});
  GK_TRY(const auto counting, load(loop));
  const auto bind = [](std::vector<memory::BlockPtr> blocks, std::vector<float> scalars = {}) {
    exec::Bindings b;
    for (auto& block : blocks) b.slots.push_back({std::move(block), 0});
    for (const float v : scalars) b.scalars.push_back(Scalar::of_float(v));
    return b;
  };
  const std::vector<float> zeros(kN);
  GK_TRY(const memory::BlockPtr x, rt->allocate(kN * 4));
  GK_TRY(const memory::BlockPtr y, rt->allocate(kN * 4));
  GK_CHECK(rt->upload(x, zeros.data(), kN * 4));
  GK_CHECK(exec::run(*rt, counting, bind({x})));        // x = 4
  GK_CHECK(exec::run(*other, filler, bind({y}, {1})));  // y = 1
  // A recording that ends well, one that is dropped, one more that adds to the first.
  GK_TRY(auto r, exec::Recording::begin(*rt, {.name = "r", .mode = mode}));
  GK_CHECK(r->join(*other));
  GK_CHECK(r->begin_node("a", {}));
  GK_CHECK(rt->upload(x, zeros.data(), kN * 4));  // x = 0
  {
    GK_TRY(const memory::BlockPtr dead, rt->allocate(kN * 4));
    GK_CHECK(exec::run(*other, filler, bind({dead}, {9})));
  }
  GK_TRY(const memory::BlockPtr born, rt->allocate(kN * 4));
  GK_CHECK(exec::run(*rt, filler, bind({born}, {3})));
  GK_CHECK(r->end_node());
  GK_CHECK(r->leave(*other));
  int calls = 0;
  GK_CHECK(rt->host_call([&] { ++calls; }));
  GK_CHECK(exec::run(*rt, counting, bind({x})));  // x = 4
  GK_TRY(const auto g, r->finish());
  GK_TRY(r, exec::Recording::begin(*other, {.name = "dropped"}));
  GK_CHECK(exec::run(*other, add, bind({x}, {100})));
  r->discard();
  GK_TRY(r, exec::Recording::extend(*rt, *g));
  GK_CHECK(exec::run(*rt, add, bind({x}, {10})));  // x = 14
  GK_CHECK(r->finish());
  GK_TRY(const auto e1, g->instantiate());
  GK_TRY(const auto e2, g->instantiate());
  GK_CHECK(e1->upload(*rt));
  GK_CHECK(e1->launch(*rt));
  GK_CHECK(e2->launch(*other, 2));  // x = 14, calls = 3
  // The ladder: a patch, a program that needs the graph anew, another graph, another array.
  const auto last = static_cast<int32_t>(e1->nodes().size()) - 1;
  GK_CHECK(e1->update(last, add, bind({x}, {20})));
  GK_CHECK(e1->update(last, filler, bind({y}, {5})));
  GK_CHECK(e1->launch(*other));  // x = 4, y = 5, calls = 4
  GK_CHECK(e2->update(*g));
  const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{y, 0}, {born, 0}};
  GK_CHECK(e1->rebind({&pair, 1}));
  GK_CHECK(e1->launch(*rt));  // born = 5, calls = 5
  GK_CHECK(e1->close());
  GK_CHECK(other->synchronize());
  GK_CHECK(rt->synchronize());
  GK_CHECK(rt->reclaim());
  float sum = static_cast<float>(calls);
  for (const memory::BlockPtr& b : {x, y, born}) {
    float v = 0;
    GK_CHECK(rt->download(&v, b, 4));
    sum = sum * 10 + v;
  }
  return sum;
}

TEST(ExecFaults, any_call_of_everything_may_fail) {
  use_test_code();
  hal::OpenOptions options;
  options.threads = 2;
  auto device = std::dynamic_pointer_cast<hal::trace::TraceDevice>(need(hal::open("trace", options)));
  for (const hal::CaptureMode mode : {hal::CaptureMode::Relaxed, hal::CaptureMode::Global}) {
    ASSERT_EQ(need(everything(device, mode)), 5455);
    hal::trace::Alive idle = device->alive();
    int64_t k = 0, failures = 0;
    for (bool injected = true; injected; ++k) {
      ASSERT_LT(k, 1000);
      device->fail_at(k, k % 2 == 0 ? ErrorKind::Device : ErrorKind::OutOfMemory);
      const Result<float> r = everything(device, mode);
      injected = device->failed();
      device->fail_at(-1);
      if (!r) {
        ++failures;
        EXPECT_TRUE(r.error().kind == ErrorKind::Device || r.error().kind == ErrorKind::OutOfMemory)
            << device->failed_call() << ": " << r.error().code << " " << r.error().message;
      } else {
        EXPECT_EQ(*r, 5455) << "after a failure of " << device->failed_call();
      }
      if (injected && device->failed_call() == "destroy executable") ++idle.execs;
      ASSERT_EQ(device->alive(), idle) << "after a failure at call " << k << ", " << device->failed_call();
    }
    EXPECT_GT(k, 80);
    EXPECT_GT(failures, 60);
    EXPECT_EQ(need(everything(device, mode)), 5455);
  }
}

/// Calls that give something back, after whose failure it is still there; or without which nothing can be.
bool keeps_something(std::string_view call) {
  for (const char* part : {"Free", "Destroy", "Unload", "Release", "cuCtxSetCurrent"}) {
    if (call.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// The same over hal/cuda: each single call of the driver's may fail, and each way to fail.
class FakeLibcudaFaults : public ::testing::TestWithParam<int> {};

TEST_P(FakeLibcudaFaults, any_driver_call_of_everything_may_fail) {
  const FakeLibcuda fake;
  if (!fake.ok()) GTEST_SKIP() << "the driver is no stand-in";
  use_test_code();
  const auto attempt = [&](hal::CaptureMode mode) -> Result<float> {
    GK_TRY(const std::shared_ptr<hal::Device> device, hal::open("cuda", {}));
    return everything(device, mode);
  };
  const auto clean = [&] {
    const char* text = "";
    fake.violations(&text);
    return std::to_string(fake.live(nullptr)) + " left " + text;
  };
  for (const hal::CaptureMode mode : {hal::CaptureMode::Relaxed, hal::CaptureMode::Global}) {
    fake.reset();
    ASSERT_EQ(need(attempt(mode)), 5455);
    ASSERT_EQ(clean(), "0 left ");
    int64_t failures = 0;
    for (int64_t k = 0;; ++k) {
      ASSERT_LT(k, 2000);
      fake.reset();
      fake.fail_at(nullptr, k, GetParam());
      const Result<float> r = attempt(mode);
      const char* const failed = fake.failed_call();
      fake.fail_at(nullptr, -1, 0);
      if (failed == nullptr) {
        EXPECT_GT(k, 200);
        break;
      }
      const std::string where = "call " + std::to_string(k) + ", " + failed;
      const bool is_mode = std::string_view(failed) == "cuThreadExchangeStreamCaptureMode";
      if (r) {
        EXPECT_EQ(*r, 5455) << where;
      } else {
        ++failures;
        EXPECT_FALSE(r.error().code.empty() || r.error().message.empty()) << where;
        ErrorKind kind = ErrorKind::Device;
        if (GetParam() == kOutOfMemory && r.error().code == "E0601") kind = ErrorKind::OutOfMemory;
        // Without its mode the thread breaks the capture that is open.
        if (is_mode && r.error().code == "E0715") kind = ErrorKind::Capture;
        EXPECT_EQ(r.error().kind, kind) << where << ": " << r.error().code << " " << r.error().message;
      }
      if (!keeps_something(failed)) {
        EXPECT_EQ(clean(), "0 left ") << where;
      }
      // What this thread lets captures of others forbid to it is as it was.
      if (std::exchange(fake.capture_mode(), 0) != 0) {
        EXPECT_TRUE(is_mode) << where;
      }
      fake.configure("release", 1);  // where that failed
    }
    EXPECT_GT(failures, 100);
    fake.reset();
    EXPECT_EQ(need(attempt(mode)), 5455);
    EXPECT_EQ(clean(), "0 left ");
  }
}

INSTANTIATE_TEST_SUITE_P(FakeLibcuda, FakeLibcudaFaults,
                         ::testing::Values(kInvalidValue, kOutOfMemory, kLaunchFailed, kUnknown));

}  // namespace
}  // namespace gk::test
