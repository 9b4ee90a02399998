// Updates: retargeting nodes, rebinding arrays, the ladder of rungs, atomicity when the driver fails.
#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

using exec::UpdateRung;
Arg f(float v) { return value(Scalar::of_float(v)); }

class ExecUpdate : public RuntimeTest {
 protected:
  std::shared_ptr<exec::Loaded> adder() {
    Builder b = builder("adder");
    b.slots(1).scalars({1}).add(b.array(0), scalar_slot(0));
    return load(b.build());
  }
  std::shared_ptr<exec::Executable> make(
      std::vector<std::pair<std::shared_ptr<exec::Loaded>, exec::Bindings>> nodes) {
    std::vector<exec::GraphNode> declared;
    for (auto& [p, b] : nodes) declared.push_back({"", p, b, {}, Span{1, 2, 3}});
    return need(need(exec::Graph::create(*rt, std::move(declared), "g"))->instantiate());
  }
  hal::trace::TraceDevice* trace() { return dynamic_cast<hal::trace::TraceDevice*>(device.get()); }
};

TEST_P(ExecUpdate, a_node_is_pointed_elsewhere) {
  const auto p = adder();
  const auto a = block(0), b = block(0);
  const auto e = make({{p, bind({a}, {1})}});
  GK_OK(e->launch(*rt));
  GK_OK(e->update(0, p, bind({b}, {2})));
  EXPECT_EQ(e->last_update(), UpdateRung::Patched);
  GK_OK(e->launch(*rt, 2));
  EXPECT_TRUE(all(a, 1));
  EXPECT_TRUE(all(b, 4));
  GK_OK(rt->synchronize());
  EXPECT_EQ(a->leases(), 0);  // the declared graph is gone, and its driver graph's old addresses are not used
}

TEST_P(ExecUpdate, another_program_of_the_same_kinds_is_patched_in) {
  Builder b = builder("filler");
  b.slots(2).fill(b.array(1), f(7));
  const auto filler = load(b.build());
  const auto x = block(0), y = block(0);
  const auto e = make({{adder(), bind({x})}});
  GK_OK(e->update(0, filler, bind({x, y})));
  EXPECT_EQ(e->last_update(), UpdateRung::Patched);
  EXPECT_EQ(e->num_leases(), 2);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 0));
  EXPECT_TRUE(all(y, 7));
}

TEST_P(ExecUpdate, another_topology_is_built_anew_and_says_why) {
  Builder b = builder("two");
  b.slots(1).temporaries(1).fill(b.temporary(0), f(5)).axpy(b.array(0), b.temporary(0), f(1));
  const auto two = load(b.build());
  const auto x = block(0), y = block(0);
  const auto p = adder();
  const auto e = make({{p, bind({x}, {1})}, {p, bind({y}, {1})}});
  GK_OK(e->launch(*rt));
  GK_OK(e->update(0, two, bind({x})));
  EXPECT_EQ(e->last_update(), UpdateRung::Reinstantiated);
  EXPECT_EQ(e->last_update_reason(), "the node has 1 operations and the new program 2");
  EXPECT_EQ(e->num_driver_nodes(), 3);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 6));
  EXPECT_TRUE(all(y, 2));
  Builder c = builder("copier");
  c.slots(2).copy(c.array(1), c.array(0));
  GK_OK(e->update(1, load(c.build()), bind({x, y})));
  EXPECT_EQ(e->last_update_reason(), "operation 0 is a kernel and would become a copy");
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(y, 11));
}

TEST_P(ExecUpdate, a_launch_in_flight_keeps_the_old_binding) {
  Builder b = builder("slow");
  b.slots(1).slow(b.array(0), f(1)).add(b.array(0), f(1));
  const auto p = load(b.build());
  auto x = block(0);
  const auto y = block(0);
  const auto e = make({{p, bind({x})}});
  const int64_t in_use = rt->pool().stats().in_use_bytes;
  GK_OK(e->launch(*rt));
  GK_OK(e->update(0, p, bind({y})));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 2));
  EXPECT_TRUE(all(y, 2));
  x.reset();
  GK_OK(rt->synchronize());
  EXPECT_LT(rt->pool().stats().in_use_bytes, in_use);  // x went once no launch used it
}

TEST_P(ExecUpdate, rebinding_patches_what_uses_the_array_and_nothing_else) {
  const auto p = adder();
  Builder b = builder("axpy");
  b.slots(2).axpy(b.array(1), b.array(0), f(1)).add(b.array(0), f(10));
  const auto q = load(b.build());
  const auto x = block(0), y = block(0), z = block(100);
  const auto e = make({{p, bind({x}, {1})}, {p, bind({y}, {1})}, {q, bind({x, y})}});
  const int64_t before = device->driver_calls();
  const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{x, 0}, {z, 0}};
  GK_OK(e->rebind({&pair, 1}));
  EXPECT_EQ(e->last_update(), UpdateRung::Patched);
  if (trace() != nullptr) {
    EXPECT_EQ(device->driver_calls() - before, 3);
  }
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 0));
  EXPECT_TRUE(all(y, 102));
  EXPECT_TRUE(all(z, 111));
  EXPECT_EQ(e->num_leases(), 2);
  // A swap, at once.
  const std::pair<exec::SlotBinding, exec::SlotBinding> swap[] = {{{y, 0}, {z, 0}}, {{z, 0}, {y, 0}}};
  GK_OK(e->rebind(swap));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(y, 113));
  EXPECT_TRUE(all(z, 111 + 1 + 103));
  // The same again changes nothing.
  const std::pair<exec::SlotBinding, exec::SlotBinding> same{{y, 0}, {y, 0}};
  GK_OK(e->rebind({&same, 1}));
  EXPECT_EQ(e->last_update(), UpdateRung::None);
}

TEST_P(ExecUpdate, refusals_leave_it_as_it_was_and_name_the_place) {
  const auto p = adder();
  const auto x = block(0);
  const auto e = make({{p, bind({x}, {1})}});
  const auto expect = [&](Result<void> r, std::string_view code) {
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().code, code);
  };
  expect(e->update(1, p, bind({x}, {1})), "E0704");
  expect(e->update(-1, p, bind({x}, {1})), "E0704");
  expect(e->update(0, p, bind({x, x}, {1})), "E0902");
  expect(e->update(0, p, bind({x}, {1, 2})), "E0902");
  expect(e->update(0, p, bind({block(0, 10)}, {1})), "E0902");
  const auto gone = block(0);
  rt->pool().release(gone);
  const auto r = e->update(0, p, bind({gone}, {1}));
  expect(r, "E0602");
  EXPECT_EQ(r.error().span.begin, 2U);
  const auto other = need(exec::Runtime::create(device, 0));
  Builder b = builder("foreign");
  b.slots(1).add(b.array(0), f(1));
  const auto foreign = need(exec::Loaded::create(*other, b.build()));
  expect(e->update(0, foreign, bind({x})), "E0717");
  const auto odd = block(0, kN + 1);
  const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{x, 0}, {odd, 4}};
  expect(e->rebind({&pair, 1}), "E0706");
  EXPECT_EQ(e->num_leases(), 1);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 1));
}

// At the k-th driver call of an update of three nodes, the driver fails: all nodes change or none does.
TEST_P(ExecUpdate, all_nodes_change_or_none) {
  if (trace() == nullptr) GTEST_SKIP() << "faults can be injected into the trace device only";
  const auto p = adder();
  int failures = 0, climbed = 0;
  for (int64_t k = 0; k < 40; ++k) {
    const auto x = block(0), y = block(0);
    const auto e = make({{p, bind({x}, {1})}, {p, bind({x}, {2})}, {p, bind({x}, {4})}});
    GK_OK(rt->synchronize());
    const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{x, 0}, {y, 0}};
    trace()->fail_at(k);
    const Result<void> r = e->rebind({&pair, 1});
    const bool injected = trace()->failed();
    trace()->fail_at(-1);
    if (!r) ++failures;
    if (r && e->last_update() == UpdateRung::GraphUpdated) ++climbed;
    GK_OK(e->launch(*rt));
    EXPECT_TRUE(all(x, r ? 0 : 7));
    EXPECT_TRUE(all(y, r ? 7 : 0));
    GK_OK(rt->synchronize());
    EXPECT_EQ(x->leases(), r ? 0 : 1);
    EXPECT_EQ(y->leases(), r ? 1 : 0);
    if (!injected) break;
  }
  EXPECT_EQ(climbed, 3);   // each of the three patches refused once
  EXPECT_EQ(failures, 0);  // with one failure, the next rung serves
}

// The patch is refused, and so is building anew: everything goes back.
TEST_P(ExecUpdate, a_failed_rebuild_leaves_the_old_one) {
  if (trace() == nullptr) GTEST_SKIP() << "faults can be injected into the trace device only";
  const auto p = adder();
  Builder b = builder("two");
  b.slots(1).temporaries(1).fill(b.temporary(0), f(5)).axpy(b.array(0), b.temporary(0), f(1));
  const auto two = load(b.build());
  bool injected = true;
  int failures = 0;
  for (int64_t k = 0; injected && k < 40; ++k) {
    const auto x = block(0), y = block(0);
    const auto e = make({{p, bind({x}, {1})}});
    GK_OK(rt->synchronize());
    trace()->fail_at(k);
    const Result<void> r = e->update(0, two, bind({y}));
    injected = trace()->failed();
    trace()->fail_at(-1);
    if (!r) ++failures;
    GK_OK(e->launch(*rt));
    EXPECT_TRUE(all(x, r ? 0 : 1));
    EXPECT_TRUE(all(y, r ? 5 : 0));
    EXPECT_EQ(e->num_leases(), 1);
  }
  EXPECT_GE(failures, 4);  // create graph, two nodes, instantiate
}

GK_ALL_DEVICES(ExecUpdate);

}  // namespace
}  // namespace gk::test
