// The trace device itself: failures on request, at any call and by name, and what is alive after them.
#include <atomic>

#include "tests/unit/hal_fixture.h"

namespace gk::test {
namespace {

std::shared_ptr<hal::trace::TraceDevice> open_trace() {
  use_test_code();
  hal::OpenOptions options;
  options.threads = 2;
  return std::dynamic_pointer_cast<hal::trace::TraceDevice>(need(hal::open("trace", options)));
}

TEST(HalTraceFaults, a_name_fails_once) {
  const auto device = open_trace();
  device->fail_next("record event", ErrorKind::OutOfMemory);
  auto s = need(device->create_stream());
  GK_OK(s->synchronize());
  EXPECT_FALSE(device->failed());
  const auto r = s->record();
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0601");
  EXPECT_TRUE(device->failed());
  EXPECT_EQ(device->failed_call(), "record event");
  EXPECT_TRUE(s->record().has_value());
  // Names and positions do not get into each other's way.
  device->fail_next("synchronize stream");
  device->fail_at(1);
  EXPECT_FALSE(s->synchronize().has_value());
  EXPECT_TRUE(s->record().has_value());
  EXPECT_FALSE(s->record().has_value());
}

// The k-th call of a whole life of graphs fails, for every k: a typed error, and what it leaves is known.
TEST(HalTraceFaults, any_call_may_fail) {
  const auto device = open_trace();
  std::atomic<int> calls{0}, released{0};
  int retained = 0;
  const auto attempt = [&]() -> Result<void> {
    GK_TRY(const auto module, device->load(*code_for(program::TargetKind::Host)));
    GK_TRY(hal::Function* const add, module->function("add"));
    GK_TRY(const auto s, device->create_stream());
    float x = 0;
    uint8_t yes = 1;
    auto* p = &x;
    float one = 1;
    int64_t n = 1;
    void* params[] = {&p, &one, &n};
    const uint32_t sizes[] = {8, 4, 8};
    hal::KernelLaunch l;
    l.function = add;
    l.dims.items = 1;
    l.params = params;
    l.param_sizes = sizes;
    const hal::ConditionalOp op{hal::ConditionalOp::Kind::If, &yes, true,
                                [&](hal::Recorder& body, int) -> Result<void> {
                                  GK_CHECK(body.kernel(l, {}));
                                  return {};
                                }};
    const auto record = [&](hal::Graph& g) -> Result<void> {
      GK_TRY(const hal::NodeId a, g.kernel(l, {}));
      GK_TRY(const hal::NodeId b, g.host_call([&] { ++calls; }, {{a}}));
      GK_TRY(const hal::NodeId c, g.conditional(op, {{b}}));
      (void)c;
      const int64_t mark = g.mark();
      GK_CHECK(g.conditional(op, {{c}}));
      GK_CHECK(g.rollback(mark));
      GK_CHECK(g.retain([&] { ++released; }));
      ++retained;
      return {};
    };
    GK_TRY(const auto g1, device->create_graph());
    GK_TRY(const auto g2, device->create_graph());
    GK_CHECK(record(*g1));
    GK_CHECK(record(*g2));
    GK_CHECK(g1->begin_capture(*s, hal::CaptureMode::Relaxed, {}));
    Result<hal::NodeId> nothing = g1->captured();
    GK_CHECK(g1->end_capture());
    GK_CHECK(std::move(nothing));
    GK_TRY(const auto e, g1->instantiate());
    GK_CHECK(e->upload(*s));
    const Result<void> launched = [&]() -> Result<void> {
      GK_CHECK(e->launch(*s));
      GK_CHECK(e->update(*g2));
      GK_CHECK(e->launch(*s));
      GK_CHECK(s->host_call([&] { ++calls; }, {}));
      GK_CHECK(s->conditional(op, {}));
      return {};
    }();
    GK_CHECK(s->synchronize());  // nothing of this function is used after it
    GK_CHECK(Result<void>(launched));
    if (x != 5) return fail(ErrorKind::Assertion, "E0999", "the sum is wrong");
    return e->destroy();
  };
  need(attempt());
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(released, retained);
  hal::trace::Alive idle = device->alive();
  EXPECT_EQ(idle, hal::trace::Alive{});
  int64_t k = 0;
  int lost = 0;
  for (bool injected = true; injected; ++k) {
    ASSERT_LT(k, 200);
    device->fail_at(k, k % 2 == 0 ? ErrorKind::Device : ErrorKind::OutOfMemory);
    const Result<void> r = attempt();
    injected = device->failed();
    device->fail_at(-1);
    EXPECT_EQ(r.has_value(), !injected) << device->failed_call();
    EXPECT_EQ(r ? "" : r.error().code, !injected ? "" : k % 2 == 0 ? "E0503" : "E0601");
    if (injected && device->failed_call() == "destroy executable") ++lost, ++idle.execs;
    EXPECT_EQ(device->alive(), idle) << "after a failure of " << device->failed_call();
    EXPECT_EQ(released, retained - lost) << "after a failure of " << device->failed_call();
  }
  EXPECT_GT(k, 30);
  EXPECT_EQ(lost, 1);
  need(attempt());
}

}  // namespace
}  // namespace gk::test
