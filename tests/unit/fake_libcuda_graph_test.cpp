// Graphs on the CUDA device: which driver calls they cost, in which order their nodes run, what they keep.
#include <dlfcn.h>

#include <algorithm>
#include <thread>

#include "tests/unit/fake_libcuda_fixture.h"

namespace gk::test {
namespace {

using exec::UpdateRung;
using Names = std::vector<std::string>;
Arg f(float v) { return value(Scalar::of_float(v)); }

class DriverGraph : public FakeLibcudaTest {
 protected:
  void SetUp() override {
    FakeLibcudaTest::SetUp();
    if (rt == nullptr) return;
    Builder b = builder("adder"), m = builder("mover");
    adder = load(b.slots(1).scalars({1}).add(b.array(0), scalar_slot(0)).build());
    m.slots(2).temporaries(1).fill(m.temporary(0), f(3)).axpy(m.array(0), m.temporary(0), f(2));
    mover = load(m.copy(m.array(1), m.array(0)).build());
  }
  void TearDown() override {
    adder.reset();
    mover.reset();
    FakeLibcudaTest::TearDown();
  }
  std::shared_ptr<exec::Graph> graph(
      std::vector<std::pair<std::shared_ptr<exec::Loaded>, exec::Bindings>> nodes) {
    std::vector<exec::GraphNode> declared;
    for (auto& [p, b] : nodes) declared.push_back({"", p, b, {}, Span{1, 2, 3}});
    return need(exec::Graph::create(*rt, std::move(declared), "g"));
  }
  std::shared_ptr<exec::Loaded> adder, mover;
};

TEST_P(DriverGraph, a_launch_is_one_call_and_an_update_patches_its_nodes) {
  const auto x = block(1), y = block(0), z = block(0);
  {
    const auto g = graph({{mover, bind({x, y})}, {adder, bind({y}, {5})}});
    const auto e = need(g->instantiate());
    GK_OK(rt->synchronize());
    EXPECT_EQ(fake.calls("cuGraphInstantiateWithFlags"), 1);
    const int64_t before = fake.log_size();
    EXPECT_EQ(calls_of([&] { need(e->launch(*rt)); }), (Names{"cuGraphLaunch"}));
    EXPECT_EQ(fake.log_size(), before) << "nothing runs before somebody waits for it";
    GK_OK(rt->synchronize());
    EXPECT_EQ(kernels_since(before), "fill axpy copy add ");
    EXPECT_TRUE(all(x, 7));
    EXPECT_TRUE(all(y, 12));
    // Another array and another scalar: one node, one call, the executable stays.
    const auto update = calls_of([&] { need(e->update(1, adder, bind({z}, {9}))); });
    EXPECT_EQ(update, (Names{"cuGraphExecKernelNodeSetParams_v2"}));
    EXPECT_EQ(e->last_update(), UpdateRung::Patched);
    EXPECT_EQ(calls_of([&] { need(e->launch(*rt)); }), (Names{"cuGraphLaunch"}));
    EXPECT_TRUE(all(x, 13));
    EXPECT_TRUE(all(y, 13));
    EXPECT_TRUE(all(z, 9));
    // A copy is patched like a kernel.
    const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{y, 0}, {z, 0}};
    const auto rebind = calls_of([&] { need(e->rebind({&pair, 1})); });
    EXPECT_EQ(std::count(rebind.begin(), rebind.end(), "cuGraphExecMemcpyNodeSetParams"), 1);
    EXPECT_EQ(std::count(rebind.begin(), rebind.end(), "cuGraphInstantiateWithFlags"), 0);
    GK_OK(e->launch(*rt));
    EXPECT_TRUE(all(z, 19 + 9));
    EXPECT_EQ(fake.calls("cuGraphInstantiateWithFlags"), 1);
  }
  GkFakeRecord r;
  ASSERT_NE(fake.log_at(0, &r), 0);
  EXPECT_EQ(std::string(r.what), "copy");  // of block()
}

TEST_P(DriverGraph, a_kernel_is_launched_as_its_dimensions_say) {
  const auto x = block(0);
  Args a = args(x->address(), 1, kN);
  hal::KernelLaunch l = kernel("add", a);
  l.dims.shared_bytes = 96 << 10;
  auto s = need(device->create_stream());
  auto g = need(device->create_graph());
  need(g->kernel(l, {}));
  auto e = need(g->instantiate());
  const int64_t before = fake.log_size();
  GK_OK(e->launch(*s));
  need(s->kernel(l, {}));
  GK_OK(s->synchronize());
  GkFakeRecord first, second;
  ASSERT_TRUE(fake.log_at(before, &first) != 0 && fake.log_at(before + 1, &second) != 0);
  for (const GkFakeRecord& r : {first, second}) {
    EXPECT_EQ(r.grid[0], 4U);
    EXPECT_EQ(r.block[0], 256U);
    EXPECT_EQ(r.grid[1] * r.grid[2] * r.block[1] * r.block[2], 1U);
    EXPECT_EQ(r.shared_bytes, 96U << 10);
    EXPECT_EQ(r.param_bytes, 8U + 4U + 8U);
    EXPECT_EQ(r.stream, first.stream);
  }
  EXPECT_NE(first.graph, 0U);
  EXPECT_EQ(second.graph, 0U);
  // More than a block can be given.
  l.dims.shared_bytes = 228 << 10;
  EXPECT_EQ(g->kernel(l, {}).error().code, "E0503");
  l.dims.shared_bytes = 0;
  l.dims.block[0] = 2048;
  EXPECT_EQ(s->kernel(l, {}).error().code, "E0503");
}

TEST_P(DriverGraph, nodes_that_nothing_orders_run_in_any_order) {
  // Shown of the stand-in: an edge that is forgotten is seen.
  const auto x = block(0);
  auto g = need(device->create_graph());
  give(*g, "fill", args(x->address(), 1, kN), {});
  give(*g, "add", args(x->address(), 10, kN), {});
  auto s = need(device->create_stream());
  auto e = need(g->instantiate());
  GK_OK(e->launch(*s));
  GK_OK(s->synchronize());
  EXPECT_TRUE(all(x, 1));
}

TEST_P(DriverGraph, an_array_that_a_graph_uses_outlives_whoever_freed_it) {
  auto x = block(1), y = block(0);
  auto g = graph({{mover, bind({x, y})}});
  auto e = need(g->instantiate());
  GK_OK(e->launch(*rt));
  x.reset();
  GK_OK(rt->synchronize());
  GK_OK(rt->reclaim());  // all that is nobody's goes back to the driver
  const int64_t held = fake.live("allocations");
  GK_OK(e->launch(*rt));  // a dangling address would be seen
  EXPECT_TRUE(all(y, 13));
  g.reset();
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(y, 19));
  GK_OK(rt->reclaim());
  EXPECT_EQ(fake.live("allocations"), held);
  // In flight as the executable goes: what it uses stays until the launch is done.
  GK_OK(e->launch(*rt));
  e.reset();
  GK_OK(rt->synchronize());
  EXPECT_TRUE(all(y, 25));
  y.reset();
  GK_OK(rt->synchronize());
  GK_OK(rt->reclaim());
  EXPECT_LT(fake.live("allocations"), held);
  EXPECT_EQ(violations(), "");
}

TEST_P(DriverGraph, a_loop_and_its_branches_are_conditional_nodes) {
  const auto x = block(0), y = block(0);
  auto condition = block(0);
  auto s = need(device->create_stream());
  const auto below = [&](hal::Recorder& r, float v, std::vector<hal::NodeId> after) {
    return give(r, "below", args(condition->address(), x->address(), v, 1), after);
  };
  auto g = need(device->create_graph());
  const hal::NodeId c = below(*g, 3, {});
  const hal::ConditionalOp loop{hal::ConditionalOp::Kind::While, condition->address(), false,
                                [&](hal::Recorder& body, int) -> Result<void> {
                                  const hal::NodeId n = add(body, x, 1);
                                  below(body, 3, {n});
                                  return {};
                                }};
  const hal::NodeId done = need(g->conditional(loop, {{c}}));
  const hal::ConditionalOp branch{hal::ConditionalOp::Kind::If, condition->address(), true,
                                  [&](hal::Recorder& body, int which) -> Result<void> {
                                    add(body, y, which == 0 ? 1 : 10);
                                    return {};
                                  }};
  need(g->conditional(branch, {{done}}));
  // Before 12.8 each branch is a node of its own.
  const bool one_body = device->info().driver.starts_with("12.4");
  EXPECT_EQ(fake.calls("cuGraphConditionalHandleCreate"), one_body ? 3 : 2);
  EXPECT_EQ(fake.calls("cuGraphAddNode_v2"), one_body ? 3 : 2);
  auto e = need(g->instantiate());
  const int64_t before = fake.log_size();
  EXPECT_EQ(calls_of([&] { need(e->launch(*s)); }), (Names{"cuGraphLaunch"}));
  GK_OK(s->synchronize());
  const std::string set = "gk_set_condition ";
  const std::string turn = "below " + set;
  EXPECT_EQ(kernels_since(before),
            turn + "add " + turn + "add " + turn + "add " + turn + set + (one_body ? set : "") + "add ");
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(y, 10));
  condition.reset();
}

TEST_P(DriverGraph, what_captured_work_allocates_goes_with_the_executable) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto allocate = reinterpret_cast<int (*)(void**, size_t, void*)>(dlsym(library, "cuMemAllocAsync"));
  const auto release = reinterpret_cast<int (*)(void*, void*)>(dlsym(library, "cuMemFreeAsync"));
  ASSERT_TRUE(allocate && release);
  const auto x = block(0);
  auto s = need(device->create_stream()), captured = need(device->create_stream());
  const int64_t before = fake.live("allocations");
  const auto graph_with = [&](bool freed) {
    auto g = need(device->create_graph());
    need(g->begin_capture(*captured, hal::CaptureMode::Relaxed, {}));
    void* p = nullptr;
    EXPECT_EQ(allocate(&p, kN * 4, captured->native()), 0);
    give(*captured, "fill", args(p, 7, kN), {});
    need(captured->copy({x->address(), p, kN * 4}, {}));
    if (freed) {
      EXPECT_EQ(release(p, captured->native()), 0);
    }
    need(g->end_capture());
    return g;
  };
  auto g = graph_with(false);
  auto e = need(g->instantiate());
  for (int i = 0; i < 3; ++i) GK_OK(e->launch(*s));
  GK_OK(s->synchronize());
  EXPECT_TRUE(all(x, 7));
  EXPECT_EQ(fake.live("allocations"), before + 1);
  // An update takes the other graph's allocation; the one of before goes behind its last launch.
  auto other = graph_with(false);
  GK_OK(e->update(*other));
  GK_OK(e->launch(*s));
  GK_OK(s->synchronize());
  EXPECT_EQ(fake.live("allocations"), before + 1);
  GK_OK(e->destroy());
  GK_OK(s->synchronize());
  EXPECT_EQ(fake.live("allocations"), before);
  auto clean = need(graph_with(true)->instantiate());
  GK_OK(clean->launch(*s));
  GK_OK(s->synchronize());
  EXPECT_EQ(fake.live("allocations"), before);
}

TEST_P(DriverGraph, two_threads_launch_each_its_own_graph) {
  constexpr int kLaunches = 200;
  std::vector<std::shared_ptr<exec::Runtime>> runtimes;
  std::vector<memory::BlockPtr> arrays;
  std::vector<std::shared_ptr<exec::Executable>> execs;
  for (int t = 0; t < 2; ++t) {
    runtimes.push_back(need(rt->fork()));
    arrays.push_back(block(0));
    execs.push_back(need(graph({{adder, bind({arrays.back()}, {1})}})->instantiate()));
  }
  const int64_t before = fake.calls("cuGraphLaunch");
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kLaunches; ++i) {
        need(execs[t]->launch(*runtimes[t]));
        if (i % 16 == 0) need(execs[t]->update(0, adder, bind({arrays[t]}, {1})));
        if (i % 32 == 0) need(runtimes[t]->synchronize());
      }
      need(runtimes[t]->synchronize());
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(fake.calls("cuGraphLaunch") - before, 2 * kLaunches);
  for (const auto& x : arrays) EXPECT_TRUE(all(x, kLaunches));
}

GK_FAKE_LIBCUDA(DriverGraph);

}  // namespace
}  // namespace gk::test
