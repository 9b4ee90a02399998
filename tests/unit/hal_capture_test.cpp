// Work that a stream gets captured into a graph. The host has no such work: there the calls only keep their
// rules.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "tests/fake_libcuda/fake_libcuda.h"
#include "tests/unit/hal_fixture.h"
#include "tests/unit/product.h"

namespace gk::test {
namespace {

using hal::CaptureMode;

class HalCapture : public HalTest {
 protected:
  void SetUp() override {
    HalTest::SetUp();
    if (device == nullptr) return;
    stream = need(device->create_stream());
    captured = need(device->create_stream());
  }
  void launch(hal::GraphExec& e) {
    GK_OK(e.launch(*stream));
    GK_OK(stream->synchronize());
  }
  std::unique_ptr<hal::Stream> stream, captured;
};

TEST_P(HalCapture, work_of_a_stream_and_own_nodes_take_turns) {
  const auto x = block(0), y = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId own = give(*g, "fill", args(x->address(), 1, kN), {});
  GK_OK(g->begin_capture(*captured, CaptureMode::Relaxed, {{own}}));
  EXPECT_EQ(need(g->captured()), -1) << "nothing was given yet";
  EXPECT_EQ(need(captured->is_capturing()), !is_host());
  if (is_host()) {
    // What is given to a stream of the host runs: nothing is captured there.
    add(*captured, y, 1);
    GK_OK(captured->synchronize());
    EXPECT_TRUE(all(y, 1));
    EXPECT_EQ(need(g->captured()), -1);
    GK_OK(g->resume_capture(own));
    GK_OK(g->end_capture());
    EXPECT_EQ(g->num_nodes(), 1);
    return;
  }
  add(*captured, x, 2);
  add(*captured, x, 3);
  const hal::NodeId theirs = need(g->captured());
  ASSERT_GT(theirs, own);
  EXPECT_EQ(need(g->captured()), theirs) << "no work since";
  EXPECT_EQ(g->native_nodes(theirs).size(), 1U);
  const hal::NodeId mine = need(g->copy({y->address(), x->address(), kN * 4}, {{theirs}}));
  GK_OK(g->resume_capture(mine));
  EXPECT_EQ(need(g->captured()), -1);
  add(*captured, y, 100);
  GK_OK(g->end_capture());
  EXPECT_FALSE(need(captured->is_capturing()));
  EXPECT_EQ(g->num_nodes(), 5);
  EXPECT_EQ(g->num_edges(), 4);
  EXPECT_TRUE(all(x, 0)) << "capturing runs nothing";
  auto e = need(g->instantiate());
  launch(*e);
  EXPECT_TRUE(all(x, 6));
  EXPECT_TRUE(all(y, 106));
  // The stream is an ordinary one again.
  add(*captured, x, 1);
  GK_OK(captured->synchronize());
  EXPECT_TRUE(all(x, 7));
}

TEST_P(HalCapture, the_rules_of_the_stream) {
  auto g = need(device->create_graph()), other = need(device->create_graph());
  const auto code = [](const auto& r) { return r.has_value() ? std::string("none") : r.error().code; };
  EXPECT_EQ(code(g->captured()), "E0713");
  EXPECT_EQ(code(g->end_capture()), "E0713");
  const hal::NodeId missing = 3;
  EXPECT_EQ(code(g->begin_capture(*captured, CaptureMode::Relaxed, {&missing, 1})), "E0508");
  GK_OK(g->begin_capture(*captured, CaptureMode::Relaxed, {}));
  EXPECT_EQ(code(g->begin_capture(*stream, CaptureMode::Relaxed, {})), "E0712");
  EXPECT_EQ(code(other->begin_capture(*captured, CaptureMode::Relaxed, {})), "E0712");
  EXPECT_EQ(code(g->instantiate()), "E0712");
  EXPECT_EQ(code(g->resume_capture(missing)), "E0508");
  // A second one at the same time.
  GK_OK(other->begin_capture(*stream, CaptureMode::Relaxed, {}));
  GK_OK(other->end_capture());
  GK_OK(g->end_capture());
  GK_OK(other->begin_capture(*captured, CaptureMode::Relaxed, {}));
  other.reset();  // a graph that goes ends it
  GK_OK(g->begin_capture(*captured, CaptureMode::Relaxed, {}));
  GK_OK(g->end_capture());
  const auto x = block(0);
  give(*captured, "slow", args(x->address(), 1, kN), {});
  EXPECT_EQ(code(g->begin_capture(*captured, CaptureMode::Relaxed, {})), "E0712") << "it is not idle";
  GK_OK(captured->synchronize());
  GK_OK(need(g->instantiate())->launch(*stream));
  if (is_host()) return;
  auto standard = need(device->wrap_stream(nullptr));
  EXPECT_EQ(code(g->begin_capture(*standard, CaptureMode::Relaxed, {})), "E0712");
}

TEST_P(HalCapture, the_device_may_be_used_meanwhile_in_every_mode) {
  const auto x = block(0);
  for (const CaptureMode mode : {CaptureMode::Relaxed, CaptureMode::ThreadLocal, CaptureMode::Global}) {
    auto g = need(device->create_graph());
    GK_OK(g->begin_capture(*captured, mode, {}));
    if (!is_host()) add(*captured, x, 1);
    const auto use = [&] {
      auto s = need(device->create_stream());
      const auto a = need(device->allocate(1 << 20, hal::Placement::Device));
      const auto p = need(device->allocate(1 << 12, hal::Placement::Pinned));
      auto m = need(device->load(*code_for(device->info().target)));
      need(m->function("add"));
      float v = 1;
      need(device->write(a.address, &v, 4, *s));
      need(device->read(&v, a.address, 4, *s));
      auto e = need(s->record());
      need(e->wait());
      EXPECT_TRUE(need(e->done()));
      auto inner = need(device->create_graph());
      need(inner->copy({p.address, a.address, 4}, {}));
      auto exec = need(inner->instantiate());
      need(exec->launch(*s));
      need(s->synchronize());
      need(exec->destroy());
      need(device->release(a));
      need(device->release(p));
    };
    use();
    std::thread(use).join();
    EXPECT_EQ(need(g->captured()) >= 0, !is_host());
    GK_OK(g->end_capture());
    launch(*need(g->instantiate()));
  }
  EXPECT_TRUE(all(x, is_host() ? 0 : 3));
}

TEST_P(HalCapture, nodes_are_removed_while_a_stream_is_captured) {
  const auto x = block(0), y = block(0);
  auto g = need(device->create_graph());
  GK_OK(g->begin_capture(*captured, CaptureMode::Relaxed, {}));
  if (!is_host()) add(*captured, x, 1);
  const hal::NodeId first = need(g->captured());
  std::vector<hal::NodeId> deps;
  if (first >= 0) deps.push_back(first);
  const int64_t mark = g->mark(), nodes = g->num_nodes();
  const hal::NodeId own = add(*g, y, 100, deps);
  add(*g, y, 100, {own});
  GK_OK(g->rollback(mark));
  EXPECT_EQ(g->num_nodes(), nodes);
  EXPECT_EQ(need(g->captured()), first);
  // Work given to the stream after the mark goes too.
  if (!is_host()) {
    add(*captured, x, 1000);
    EXPECT_GT(need(g->captured()), first);
    GK_OK(g->rollback(mark));
    EXPECT_EQ(g->num_nodes(), nodes);
    add(*captured, x, 10);
  }
  GK_OK(g->end_capture());
  launch(*need(g->instantiate()));
  EXPECT_TRUE(all(x, is_host() ? 0 : 11));
  EXPECT_TRUE(all(y, 0));
}

TEST_P(HalCapture, a_capture_that_was_broken_from_outside_is_reported) {
  if (is_host()) GTEST_SKIP() << "nothing is captured on the host";
  const auto x = block(0);
  auto g = need(device->create_graph());
  GK_OK(g->begin_capture(*captured, CaptureMode::Relaxed, {}));
  add(*captured, x, 1);
  // A wait for a stream that is captured breaks the capture.
  const auto waited = captured->synchronize();
  ASSERT_FALSE(waited.has_value());
  EXPECT_EQ(waited.error().kind, ErrorKind::Capture);
  const auto r = g->captured();
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0715");
  ASSERT_FALSE(r.error().notes.empty());
  EXPECT_NE(r.error().notes[0].find("cuStreamSynchronize"), std::string::npos) << r.error().notes[0];
  const auto ended = g->end_capture();
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, "E0715");
  Args a = args(x->address(), 1, kN);
  EXPECT_EQ(g->kernel(kernel("add", a), {}).error().code, "E0715");
  g.reset();
  // The stream is restored, and the device goes on.
  add(*captured, x, 5);
  GK_OK(captured->synchronize());
  EXPECT_TRUE(all(x, 5));
}

TEST_P(HalCapture, a_product_is_added_while_a_stream_is_captured) {
  program::MatMulCall call;
  call.m = call.n = call.k = 8;
  call.lda = call.ldb = call.ldc = 8;
  call.stride_a = call.stride_b = call.stride_c = 64;
  if (!device->supports(call)) GTEST_SKIP() << "no library for it here";
  const auto a = block(0), b = block(2), c = block(0);
  auto g = need(device->create_graph());
  GK_OK(g->begin_capture(*captured, CaptureMode::ThreadLocal, {}));
  give(is_host() ? static_cast<hal::Recorder&>(*g) : *captured, "fill", args(a->address(), 1, kN), {});
  std::vector<hal::NodeId> deps;
  if (const hal::NodeId n = need(g->captured()); n >= 0) deps.push_back(n);
  const hal::NodeId n =
      need(g->library(test::Product(call, a->address(), b->address(), nullptr, c->address()).op, deps));
  GK_OK(g->resume_capture(n));
  EXPECT_EQ(need(g->captured()), -1);
  if (!is_host()) add(*captured, c, 1);
  GK_OK(g->end_capture());
  launch(*need(g->instantiate()));
  EXPECT_TRUE(all(c, is_host() ? 16 : 17, 64));
}

/// The driver's own functions, as a host program calls them.
template <class F>
F driver_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<F>(dlsym(library, name));
}

TEST_P(HalCapture, work_is_added_to_a_graph_of_the_host_programs_own) {
  if (is_host()) GTEST_SKIP() << "the host has no graphs of a driver's";
  const auto create = driver_function<int (*)(void**, unsigned)>("cuGraphCreate");
  const auto add_empty = driver_function<int (*)(void**, void*, void* const*, size_t)>("cuGraphAddEmptyNode");
  const auto instantiate =
      driver_function<int (*)(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags");
  const auto launch_it = driver_function<int (*)(void*, void*)>("cuGraphLaunch");
  const auto destroy_exec = driver_function<int (*)(void*)>("cuGraphExecDestroy");
  const auto destroy = driver_function<int (*)(void*)>("cuGraphDestroy");
  ASSERT_TRUE(create && add_empty && instantiate && launch_it && destroy_exec && destroy);

  const auto x = block(0);
  std::atomic<int> released{0}, calls{0};
  void *theirs = nullptr, *first = nullptr, *foreign = nullptr, *foreign_node = nullptr, *exec = nullptr;
  ASSERT_EQ(create(&theirs, 0), 0);
  ASSERT_EQ(add_empty(&first, theirs, nullptr, 0), 0);
  ASSERT_EQ(create(&foreign, 0), 0);
  ASSERT_EQ(add_empty(&foreign_node, foreign, nullptr, 0), 0);
  hal::NodeId frontier = 5;
  const auto refused = device->wrap_graph(theirs, {&foreign_node, 1}, frontier);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "E0510");
  {
    auto g = need(device->wrap_graph(theirs, {}, frontier));
    EXPECT_EQ(frontier, -1);
    g = need(device->wrap_graph(theirs, {&first, 1}, frontier));
    ASSERT_GE(frontier, 0);
    EXPECT_EQ(g->native_nodes(frontier), std::vector<void*>{first});
    const hal::NodeId n = add(*g, x, 1, {frontier});
    need(g->host_call([&] { ++calls; }, {{n}}));
    GK_OK(g->retain([&] { ++released; }));
    EXPECT_EQ(g->num_nodes(), 3);
    EXPECT_EQ(g->num_edges(), 2);
    EXPECT_EQ(g->native_nodes(n).size(), 1U);
    EXPECT_TRUE(g->native_nodes(99).empty());
  }
  // The wrapper is gone; the graph and what it keeps are not.
  ASSERT_EQ(instantiate(&exec, theirs, 0), 0);
  ASSERT_EQ(destroy(theirs), 0);
  ASSERT_EQ(destroy(foreign), 0);
  EXPECT_EQ(released, 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch_it(exec, stream->native()), 0);
  GK_OK(stream->synchronize());
  EXPECT_TRUE(all(x, 3));
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(destroy_exec(exec), 0);
  for (int i = 0; i < 5000 && released == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(released, 1);
}

TEST_P(HalCapture, a_stream_that_somebody_else_captures_is_left_alone) {
  if (is_host()) GTEST_SKIP() << "nothing is captured on the host";
  const auto begin = driver_function<int (*)(void*, int)>("cuStreamBeginCapture_v2");
  const auto end = driver_function<int (*)(void*, void**)>("cuStreamEndCapture");
  const auto destroy = driver_function<int (*)(void*)>("cuGraphDestroy");
  ASSERT_TRUE(begin && end && destroy);
  auto wrapped = need(device->wrap_stream(captured->native()));
  const auto x = block(0);
  constexpr int kRelaxed = 2;
  ASSERT_EQ(begin(captured->native(), kRelaxed), 0);
  EXPECT_TRUE(need(wrapped->is_capturing()));
  float v = 0;
  const hal::ConditionalOp op{hal::ConditionalOp::Kind::If, x->address(), false,
                              [](hal::Recorder&, int) -> Result<void> { return {}; }};
  EXPECT_EQ(wrapped->synchronize().error().code, "E0711");
  EXPECT_EQ(device->read(&v, x->address(), 4, *wrapped).error().code, "E0711");
  EXPECT_EQ(device->write(x->address(), &v, 4, *wrapped).error().code, "E0711");
  EXPECT_EQ(wrapped->host_call([] {}, {}).error().code, "E0711");
  EXPECT_EQ(wrapped->conditional(op, {}).error().code, "E0711");
  auto g = need(device->create_graph());
  EXPECT_EQ(g->begin_capture(*wrapped, CaptureMode::Relaxed, {}).error().code, "E0712");
  // None of it broke their capture.
  void* graph = nullptr;
  ASSERT_EQ(end(captured->native(), &graph), 0);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(destroy(graph), 0);
  GK_OK(wrapped->synchronize());
}

// The driver destroys the graph of a capture whose end fails; destroying it once more would take whichever
// graph has its handle by now.
TEST_P(HalCapture, a_capture_whose_end_fails_takes_its_graph_and_no_other) {
  if (is_host()) GTEST_SKIP() << "nothing is captured on the host";
  const FakeLibcuda fake;
  const auto create = driver_function<int (*)(void**, unsigned)>("cuEventCreate");
  const auto record = driver_function<int (*)(void*, void*)>("cuEventRecord");
  const auto wait = driver_function<int (*)(void*, void*, unsigned)>("cuStreamWaitEvent");
  const auto destroy = driver_function<int (*)(void*)>("cuEventDestroy_v2");
  ASSERT_TRUE(create && record && wait && destroy);
  if (fake.ok()) fake.reset();
  const auto x = block(0);
  for (const bool by_another_thread : {true, false}) {
    auto g = need(device->create_graph());
    GK_OK(
        g->begin_capture(*captured, by_another_thread ? CaptureMode::ThreadLocal : CaptureMode::Relaxed, {}));
    add(*captured, x, 1);
    Result<void> ended;
    if (by_another_thread) {
      std::thread([&] { ended = g->end_capture(); }).join();
      EXPECT_EQ(ended.error().code, "E0710");
    } else {
      // Work of another stream that does not come back.
      void* e = nullptr;
      ASSERT_EQ(create(&e, 2), 0);
      ASSERT_EQ(record(e, captured->native()), 0);
      ASSERT_EQ(wait(stream->native(), e, 0), 0);
      add(*stream, x, 1);
      ended = g->end_capture();
      ASSERT_FALSE(ended.has_value());
      EXPECT_EQ(ended.error().code, "E0715");
      ASSERT_EQ(destroy(e), 0);
    }
    EXPECT_EQ(g->instantiate().error().code, "E0715");
    EXPECT_FALSE(need(captured->is_capturing()));
    std::vector<std::unique_ptr<hal::Graph>> others;
    for (int i = 0; i < 8; ++i) others.push_back(need(device->create_graph()));
    g.reset();
    for (const auto& other : others) {
      add(*other, x, 1);
      launch(*need(other->instantiate()));
    }
  }
  EXPECT_TRUE(all(x, 16));
  if (fake.ok()) {
    EXPECT_EQ(fake.violations(nullptr), 0);
  }
}

TEST_P(HalCapture, a_device_works_in_a_context_of_the_host_programs_own) {
  hal::OpenOptions options;
  options.threads = 1;
  if (is_host()) {
    options.native_context = &options;
    EXPECT_EQ(hal::open(GetParam(), options).error().code, "E0510");
    return;
  }
  const auto current = driver_function<int (*)(void**)>("cuCtxGetCurrent");
  const auto create = driver_function<int (*)(void**, unsigned, int)>("cuCtxCreate_v2");
  const auto destroy = driver_function<int (*)(void*)>("cuCtxDestroy_v2");
  const auto set = driver_function<int (*)(void*)>("cuCtxSetCurrent");
  ASSERT_TRUE(current && create && destroy && set);
  GK_OK(stream->synchronize());
  void *ours = nullptr, *theirs = nullptr, *now = nullptr;
  ASSERT_EQ(current(&ours), 0);
  ASSERT_EQ(create(&theirs, 0, 0), 0);
  {
    options.native_context = theirs;
    auto other = need(hal::open(GetParam(), options));
    auto s = need(other->create_stream());
    ASSERT_EQ(current(&now), 0);
    EXPECT_EQ(now, theirs);
    EXPECT_EQ(other->wrap_stream(stream->native()).error().code, "E0510");
    EXPECT_EQ(device->wrap_stream(s->native()).error().code, "E0510");
    need(other->wrap_stream(s->native()));
    const auto a = need(other->allocate(4, hal::Placement::Device));
    float v = 3, w = 0;
    // Each device goes to its own context, whichever is current.
    const auto x = block(1);
    ASSERT_EQ(set(ours), 0);
    GK_OK(other->write(a.address, &v, 4, *s));
    ASSERT_EQ(set(theirs), 0);
    add(*stream, x, 1);
    GK_OK(stream->synchronize());
    EXPECT_TRUE(all(x, 2));
    GK_OK(other->read(&w, a.address, 4, *s));
    EXPECT_EQ(w, 3);
    GK_OK(other->release(a));
  }
  // It was not destroyed with the device.
  ASSERT_EQ(set(theirs), 0);
  EXPECT_EQ(destroy(theirs), 0);
  GK_OK(stream->synchronize());
}

GK_ALL_DEVICES(HalCapture);

TEST(HalCaptureTrace, every_call_of_a_capture_is_logged_and_can_fail) {
  use_test_code();
  auto device = std::dynamic_pointer_cast<hal::trace::TraceDevice>(need(hal::open("trace", {})));
  auto s = need(device->create_stream());
  auto g = need(device->create_graph());
  device->clear_log();
  GK_OK(g->begin_capture(*s, CaptureMode::Relaxed, {}));
  need(g->captured());
  need(s->is_capturing());
  device->fail_next("end capture");
  EXPECT_FALSE(g->end_capture().has_value());
  // The stream was restored all the same.
  EXPECT_EQ(g->end_capture().error().code, "E0713");
  device->fail_next("begin capture");
  EXPECT_FALSE(g->begin_capture(*s, CaptureMode::Relaxed, {}).has_value());
  GK_OK(g->begin_capture(*s, CaptureMode::Relaxed, {}));
  GK_OK(g->rollback(0));
  GK_OK(g->end_capture());
  GK_OK(device->trim_graph_memory());
  std::string text;
  for (const auto& c : device->log()) text += c.name + "; ";
  EXPECT_EQ(text,
            "begin capture; read capture; query capture; end capture; end capture; begin capture; begin "
            "capture; remove nodes; end capture; trim graph memory; ");
}

}  // namespace
}  // namespace gk::test
