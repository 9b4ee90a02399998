// Executables that nobody has any more and the graphs that are given them: see runtime/exec/spares.h.
#include "runtime/hal/trace/trace.h"
#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

class ExecSpares : public RuntimeTest {
 protected:
  std::shared_ptr<exec::Graph> graph(const std::shared_ptr<exec::Loaded>& p, exec::Bindings b) {
    return need(exec::Graph::create(*rt, {{"", p, std::move(b), {}, {}}}, "g"));
  }
  std::shared_ptr<exec::Executable> made(const std::shared_ptr<exec::Loaded>& p, exec::Bindings b) {
    return need(graph(p, std::move(b))->instantiate());
  }
  /// y = y + x * s, through a temporary; then x = x + 1.
  std::shared_ptr<exec::Loaded> program() {
    Builder b = builder();
    b.slots(2).scalars({1}).temporaries(1);
    b.fill(b.temporary(0), scalar_slot(0)).axpy(b.array(0), b.temporary(0), value(Scalar::of_float(1)));
    b.add(b.array(1), scalar_slot(0));
    return load(b.build());
  }
  /// How many of the driver's executables were made so far; -1 where nobody counts.
  int64_t alive() const {
    const auto trace = std::dynamic_pointer_cast<hal::trace::TraceDevice>(device);
    return trace ? trace->alive().execs : -1;
  }
};

TEST_P(ExecSpares, the_next_graph_has_arrays_and_numbers_of_its_own) {
  const auto p = program();
  const auto x = block(0), y = block(0), z = block(10);
  for (int i = 1; i <= 5; ++i) {
    auto e = made(p, bind({x, y}, {static_cast<float>(i)}));
    GK_OK(e->launch(*rt));  // still runs when the next one is made of it
  }
  EXPECT_TRUE(all(x, 15));
  EXPECT_TRUE(all(y, 15));
  auto e = made(p, bind({z, y}, {100}));
  EXPECT_EQ(x->leases(), 0);
  EXPECT_EQ(z->leases(), 1);
  GK_OK(e->launch(*rt, 2));
  EXPECT_TRUE(all(z, 210));
  EXPECT_TRUE(all(y, 215));
  EXPECT_TRUE(all(x, 15));
}

TEST_P(ExecSpares, one_serves_after_the_other) {
  if (alive() < 0) GTEST_SKIP() << "only a trace counts";
  const auto p = program();
  const auto x = block(0), y = block(0);
  const int64_t before = alive();
  made(p, bind({x, y}, {1}));
  for (int i = 0; i < 4; ++i) {
    auto e = made(p, bind({y, x}, {2}));
    EXPECT_EQ(alive(), before + 1);
  }
  // Two at a time are two.
  auto e = made(p, bind({x, y}, {1})), f = made(p, bind({y, x}, {1}));
  EXPECT_EQ(alive(), before + 2);
  GK_OK(e->launch(*rt));
  GK_OK(f->launch(*rt));
  EXPECT_TRUE(all(x, 2));
  e.reset();
  f.reset();
  GK_OK(rt->reclaim());
  EXPECT_EQ(alive(), before);
}

TEST_P(ExecSpares, all_that_a_graph_can_do) {
  const auto p = program();
  const auto x = block(0), y = block(0), z = block(0);
  made(p, bind({x, y}, {1}));
  const auto g = graph(p, bind({x, y}, {1}));
  EXPECT_NE(g->print().find("driver_nodes=3"), std::string::npos) << g->print();
  const auto e1 = need(g->instantiate()), e2 = need(g->instantiate());
  GK_OK(e1->launch(*rt));
  GK_OK(e2->launch(*rt));
  EXPECT_TRUE(all(x, 2));
  GK_OK(e1->update(0, p, bind({z, y}, {5})));
  GK_OK(e1->launch(*rt));
  EXPECT_TRUE(all(z, 5));
  GK_OK(e1->update(*graph(p, bind({x, z}, {3}))));
  GK_OK(e1->launch(*rt));
  EXPECT_TRUE(all(x, 5));
  EXPECT_TRUE(all(z, 8));
  EXPECT_TRUE(all(y, 7));
}

TEST_P(ExecSpares, a_graph_that_is_not_instantiated_gives_it_back) {
  if (alive() < 0) GTEST_SKIP() << "only a trace counts";
  const auto p = program();
  const auto x = block(0), y = block(0);
  const int64_t before = alive();
  made(p, bind({x, y}, {1}));
  graph(p, bind({x, y}, {1}));
  auto e = made(p, bind({x, y}, {1}));
  EXPECT_EQ(alive(), before + 1);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ExecSpares, it_goes_with_its_program) {
  if (alive() < 0) GTEST_SKIP() << "only a trace counts";
  auto p = program();
  const auto x = block(0), y = block(0);
  const int64_t before = alive();
  GK_OK(made(p, bind({x, y}, {1}))->launch(*rt));
  p.reset();
  EXPECT_EQ(alive(), before);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ExecSpares, a_closed_one_serves_nobody) {
  if (alive() < 0) GTEST_SKIP() << "only a trace counts";
  const auto p = program();
  const auto x = block(0), y = block(0);
  const int64_t before = alive();
  GK_OK(made(p, bind({x, y}, {1}))->close());
  EXPECT_EQ(alive(), before);
}

TEST_P(ExecSpares, where_the_driver_refuses_another_is_made) {
  const auto trace = std::dynamic_pointer_cast<hal::trace::TraceDevice>(device);
  if (!trace) GTEST_SKIP() << "only a trace fails on request";
  const auto p = program();
  const auto x = block(0), y = block(0);
  for (int k = 0; k < 12; ++k) {
    made(p, bind({x, y}, {1}));
    trace->fail_at(k);
    auto g = exec::Graph::create(*rt, {{"", p, bind({y, x}, {1}), {}, {}}}, "g");
    auto e = g ? (*g)->instantiate() : Result<std::shared_ptr<exec::Executable>>(fail(g.error()));
    trace->fail_at(-1);
    if (e) GK_OK((*e)->launch(*rt));
  }
  auto e = made(p, bind({x, y}, {1}));
  GK_OK(rt->synchronize());
  GK_OK(e->launch(*rt));
  GK_OK(rt->synchronize());
}

TEST_P(ExecSpares, another_runtime_comes_after_the_first) {
  const auto p = program();
  const auto x = block(0), y = block(0);
  const auto other = need(rt->fork());
  for (int i = 0; i < 20; ++i) {
    auto e = made(p, bind({x, y}, {1}));
    GK_OK(e->launch(i % 2 == 0 ? *rt : *other, 3));
  }
  GK_OK(other->synchronize());
  GK_OK(rt->synchronize());
  EXPECT_TRUE(all(x, 60));
}

GK_ALL_DEVICES(ExecSpares);

}  // namespace
}  // namespace gk::test
