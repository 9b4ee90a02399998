// Eager runs and graphs: values, calls, arenas, leases, the ends of objects.

#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

Arg f(float v) { return value(Scalar::of_float(v)); }

class ExecRun : public RuntimeTest {};
class ExecGraph : public RuntimeTest {
 protected:
  std::shared_ptr<exec::Graph> graph(std::vector<exec::GraphNode> nodes) {
    return need(exec::Graph::create(*rt, std::move(nodes), "g"));
  }
  exec::GraphNode node(std::shared_ptr<exec::Loaded> p, exec::Bindings b, std::vector<int32_t> after = {}) {
    return {"", std::move(p), std::move(b), std::move(after), {}};
  }
};

TEST_P(ExecRun, steps_follow_each_other) {
  Builder b = builder();
  b.slots(2).scalars({3});
  b.fill(b.array(0), f(2)).add(b.array(0), scalar_slot(0)).copy(b.array(1), b.array(0)).add(b.array(1), f(1));
  const auto p = load(b.build());
  const auto x = block(0), y = block(0);
  GK_OK(exec::run(*rt, p, bind({x, y})));
  EXPECT_TRUE(all(x, 5));
  EXPECT_TRUE(all(y, 6));
  GK_OK(exec::run(*rt, p, bind({x, y}, {10})));
  EXPECT_TRUE(all(x, 12));
}

TEST_P(ExecRun, temporaries_lie_in_an_arena) {
  Builder b = builder();
  b.slots(1).temporaries(2);
  b.fill(b.temporary(0), f(2)).fill(b.temporary(1), f(5)).axpy(b.array(0), b.temporary(0), f(10));
  b.axpy(b.array(0), b.temporary(1), f(1));
  const auto p = load(b.build());
  const auto x = block(1);
  for (int i = 1; i <= 3; ++i) {
    GK_OK(exec::run(*rt, p, bind({x})));
    EXPECT_TRUE(all(x, 1 + 25.0F * static_cast<float>(i)));
  }
}

TEST_P(ExecRun, refuses_what_does_not_fit) {
  Builder b = builder();
  b.slots(1).add(b.array(0), f(1));
  const auto p = load(b.build());
  EXPECT_EQ(exec::run(*rt, p, bind({})).error().code, "E0902");
  EXPECT_EQ(exec::run(*rt, p, bind({block(0, 10)})).error().code, "E0902");
  const auto gone = block(0);
  rt->pool().release(gone);
  EXPECT_EQ(exec::run(*rt, p, bind({gone})).error().kind, ErrorKind::Lease);
  Builder bad = builder();
  bad.slots(1).add(bad.array(4), f(1));
  EXPECT_FALSE(exec::Loaded::create(*rt, bad.build()).has_value());
  Builder outside = builder();
  outside.slots(1).add(outside.temporary(0), f(1));  // no arena was declared
  EXPECT_FALSE(exec::Loaded::create(*rt, outside.build()).has_value());
}

TEST_P(ExecRun, faults_are_raised_once_with_their_place) {
  Builder b = builder();
  b.slots(1).add(b.array(0), f(1)).fault(7, 5);
  const auto other = load(Builder(*device, "q", 4).slots(1).build());
  const auto p = load(b.build());
  const auto x = block(0);
  GK_OK(exec::run(*rt, p, bind({x})));
  const auto r = rt->synchronize();
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0801");
  EXPECT_EQ(r.error().message, "index 7 is out of range for axis 0 with extent 5");
  EXPECT_EQ(r.error().span.begin, 10U);
  GK_OK(rt->synchronize());
  Builder d = builder();
  d.slots(0).fault(-1, 0, 2);
  auto division = load(d.build());
  GK_OK(exec::run(*rt, division, bind({})));
  division.reset();  // the fault still finds its place
  const auto again = rt->synchronize();
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, "E0802");
  EXPECT_EQ(again.error().span.begin, 10U);
}

TEST_P(ExecRun, code_outlives_its_program_while_it_runs) {
  Builder b = builder();
  b.slots(1).slow(b.array(0), f(1));
  auto p = load(b.build());
  const auto x = block(0);
  GK_OK(exec::run(*rt, p, bind({x})));
  p.reset();
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ExecGraph, capture_executes_nothing_and_each_launch_once) {
  Builder b = builder();
  b.slots(1).add(b.array(0), f(1));
  const auto x = block(0);
  const auto g = graph({node(load(b.build()), bind({x}))});
  EXPECT_TRUE(all(x, 0));
  const auto e = need(g->instantiate());
  EXPECT_TRUE(all(x, 0));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 1));
  GK_OK(e->launch(*rt, 9));
  EXPECT_TRUE(all(x, 10));
}

TEST_P(ExecGraph, an_empty_graph_does_nothing) {
  const auto g = graph({});
  const auto e = need(g->instantiate());
  EXPECT_EQ(e->num_driver_nodes(), 0);
  GK_OK(e->launch(*rt, 3));
  GK_OK(rt->synchronize());
}

TEST_P(ExecGraph, a_launch_is_one_driver_call) {
  Builder b = builder();
  b.slots(2).temporaries(1);
  for (int i = 0; i < 20; ++i)
    b.add(b.array(0), f(1)).fill(b.temporary(0), f(1)).axpy(b.array(1), b.temporary(0), f(1));
  const auto x = block(0), y = block(0);
  const auto e = need(graph({node(load(b.build()), bind({x, y}))})->instantiate());
  EXPECT_EQ(e->num_driver_nodes(), 60);
  GK_OK(e->launch(*rt));
  const int64_t before = device->driver_calls();
  for (int i = 0; i < 10; ++i) GK_OK(e->launch(*rt));
  EXPECT_EQ(device->driver_calls() - before, 10);
  EXPECT_TRUE(all(x, 220));
  EXPECT_TRUE(all(y, 220));
}

TEST_P(ExecGraph, declared_nodes_run_in_a_valid_order) {
  Builder inc = builder("inc"), sum = builder("sum");
  inc.slots(1).scalars({0}).add(inc.array(0), scalar_slot(0));
  sum.slots(3).copy(sum.array(2), sum.array(0)).axpy(sum.array(2), sum.array(1), f(1));
  const auto pi = load(inc.build()), ps = load(sum.build());
  const auto x = block(1), y = block(1), z = block(0);
  std::vector<exec::GraphNode> nodes = {node(pi, bind({x}, {1})), node(pi, bind({y}, {2})),
                                        node(ps, bind({x, y, z}), {0, 1})};
  nodes[0].name = "a";
  nodes[1].name = "b";
  nodes[2].name = "z";
  const auto g = graph(std::move(nodes));
  GK_OK(need(g->instantiate())->launch(*rt));
  EXPECT_TRUE(all(z, 5));
  EXPECT_EQ(g->print(),
            "graph g nodes=3 edges=2 driver_nodes=4 driver_edges=3 leases=3 arena=0\n"
            "  node 0 a\n    kernel add\n  node 1 b\n    kernel add\n  node 2 z after a, b\n    copy\n"
            "    kernel axpy\n");
  EXPECT_EQ(g->dot(),
            "digraph \"g\" {\n  rankdir=LR;\n  node [shape=box];\n  n0 [label=\"a\\nkernel add\"];\n"
            "  n1 [label=\"b\\nkernel add\"];\n  n2 [label=\"z\\ncopy\\nkernel axpy\"];\n"
            "  n0 -> n2;\n  n1 -> n2;\n}\n");
  auto bad = exec::Graph::create(*rt, {node(pi, bind({x}), {0})}, "g");
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, "E0704");
}

TEST_P(ExecGraph, freed_input_survives) {
  Builder b = builder();
  b.slots(2).axpy(b.array(1), b.array(0), f(1));
  auto x = block(3);
  const auto y = block(0);
  const auto g = graph({node(load(b.build()), bind({x, y}))});
  const auto e = need(g->instantiate());
  rt->pool().release(x);
  x.reset();
  GK_OK(rt->pool().trim());
  std::vector<memory::BlockPtr> others;
  for (int i = 0; i < 20; ++i) others.push_back(block(99));
  GK_OK(e->launch(*rt, 2));
  EXPECT_TRUE(all(y, 6));
  for (const auto& o : others) EXPECT_TRUE(all(o, 99));
}

TEST_P(ExecGraph, leases_come_and_go_in_stages) {
  Builder b = builder();
  b.slots(3).copy(b.array(0), b.array(1)).copy(b.array(2), b.array(1));
  const auto x = block(1), y = block(2);
  auto g = graph({node(load(b.build()), bind({x, y, x}))});
  EXPECT_EQ(x->leases(), 1);
  auto e1 = need(g->instantiate());
  auto e2 = need(g->instantiate());
  EXPECT_EQ(e1->num_leases(), 2);
  EXPECT_EQ(x->leases(), 3);
  EXPECT_EQ(rt->pool().stats().leases, 6);
  e1.reset();
  EXPECT_EQ(x->leases(), 2);
  g.reset();
  EXPECT_EQ(x->leases(), 1);
  GK_OK(e2->launch(*rt));
  EXPECT_TRUE(all(x, 2));
  GK_OK(rt->synchronize());
  e2.reset();
  EXPECT_EQ(x->leases(), 0);
  EXPECT_EQ(rt->pool().stats().leases, 0);
}

TEST_P(ExecGraph, executables_have_arenas_of_their_own) {
  // y = 2x by way of a temporary, and the temporary's last value in z.
  Builder b = builder();
  b.slots(1).scalars({1}).temporaries(1);
  b.fill(b.temporary(0), scalar_slot(0)).axpy(b.array(0), b.temporary(0), f(1));
  const auto x = block(0);
  const auto g = graph({node(load(b.build()), bind({x}, {4}))});
  const int64_t before = rt->pool().stats().in_use_bytes;
  auto e1 = need(g->instantiate());
  EXPECT_EQ(rt->pool().stats().in_use_bytes, before);  // the graph's own
  auto e2 = need(g->instantiate());
  EXPECT_GT(rt->pool().stats().in_use_bytes, before);
  EXPECT_EQ(e1->arena_bytes(), 4096);
  for (int i = 0; i < 10; ++i) {
    GK_OK(e1->launch(*rt));
    GK_OK(e2->launch(*rt));
  }
  EXPECT_TRUE(all(x, 80));
  GK_OK(rt->synchronize());
  e2.reset();
  EXPECT_EQ(rt->pool().stats().in_use_bytes, before);
}

TEST_P(ExecGraph, nodes_share_one_arena_of_the_greatest_need) {
  Builder small = builder(), big = builder();
  small.slots(1).temporaries(1).fill(small.temporary(0), f(1)).axpy(small.array(0), small.temporary(0), f(1));
  big.slots(1).temporaries(3).fill(big.temporary(2), f(1)).axpy(big.array(0), big.temporary(2), f(1));
  const auto x = block(0);
  const auto e =
      need(graph({node(load(small.build()), bind({x})), node(load(big.build()), bind({x}))})->instantiate());
  EXPECT_EQ(e->arena_bytes(), 3 * 4096);
  GK_OK(e->launch(*rt, 2));
  EXPECT_TRUE(all(x, 4));
}

TEST_P(ExecGraph, an_executable_may_go_while_it_runs) {
  Builder b = builder();
  b.slots(1).temporaries(1).slow(b.array(0), f(1)).fill(b.temporary(0), f(1));
  b.axpy(b.array(0), b.temporary(0), f(1));
  auto x = block(0);
  const auto keep = x;
  auto p = load(b.build());
  auto g = graph({node(p, bind({x}))});
  p.reset();
  auto e = need(g->instantiate());
  GK_OK(e->launch(*rt, 2));
  g.reset();
  e.reset();
  x.reset();
  EXPECT_EQ(keep->leases(), 0);  // its memory is handed on in the order of the launches
  EXPECT_TRUE(all(keep, 4));
}

TEST_P(ExecGraph, cycles_do_not_grow) {
  Builder b = builder("p", 16);
  b.slots(1).temporaries(1).fill(b.temporary(0), f(1)).axpy(b.array(0), b.temporary(0), f(1));
  const auto p = load(b.build());
  const auto x = block(0, 16);
  int64_t reserved = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto e = need(graph({node(p, bind({x}))})->instantiate());
    GK_OK(e->launch(*rt));
    if (i == 100) reserved = rt->pool().stats().in_use_bytes + rt->pool().stats().cached_bytes;
  }
  EXPECT_TRUE(all(x, 1000, 16));
  GK_OK(rt->synchronize());
  EXPECT_EQ(rt->pool().stats().in_use_bytes + rt->pool().stats().cached_bytes, reserved);
  EXPECT_EQ(x->leases(), 0);
}

TEST_P(ExecGraph, graph_and_eager_agree) {
  Builder b = builder();
  b.slots(2).scalars({1}).temporaries(2);
  b.fill(b.temporary(0), scalar_slot(0))
      .copy(b.temporary(1), b.temporary(0))
      .axpy(b.array(0), b.temporary(1), f(0.3F));
  b.axpy(b.array(1), b.array(0), f(1.7F));
  const auto p = load(b.build());
  const auto x = block(0.1F), y = block(0.2F), u = block(0.1F), v = block(0.2F);
  const auto e = need(graph({node(p, bind({u, v}, {0.7F}))})->instantiate());
  for (int i = 0; i < 5; ++i) {
    GK_OK(exec::run(*rt, p, bind({x, y}, {0.7F})));
    GK_OK(e->launch(*rt));
  }
  EXPECT_EQ(values(x), values(u));
  EXPECT_EQ(values(y), values(v));
}

GK_ALL_DEVICES(ExecRun);
GK_ALL_DEVICES(ExecGraph);

}  // namespace
}  // namespace gk::test
