// The update ladder below patching, updates to whole graphs, ends of executables and what they used.
#include <algorithm>

#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

using exec::Recording;
using exec::UpdateRung;
Arg f(float v) { return value(Scalar::of_float(v)); }

template <class T>
std::string code_of(const Result<T>& r) {
  return r ? "" : r.error().code;
}

class ExecLadder : public RuntimeTest {
 protected:
  std::shared_ptr<exec::Loaded> adder() {
    Builder b = builder("adder");
    return load(b.slots(1).scalars({1}).add(b.array(0), scalar_slot(0)).build());
  }
  /// x += v, by way of `temporaries` arrays
  std::shared_ptr<exec::Loaded> through(int temporaries) {
    Builder b = builder("through");
    b.slots(1).scalars({1}).temporaries(temporaries);
    b.fill(b.temporary(temporaries - 1), scalar_slot(0)).axpy(b.array(0), b.temporary(temporaries - 1), f(1));
    return load(b.build());
  }
  std::shared_ptr<exec::Graph> graph(std::vector<exec::GraphNode> nodes) {
    return need(exec::Graph::create(*rt, std::move(nodes), "g"));
  }
  static exec::GraphNode node(std::shared_ptr<exec::Loaded> p, exec::Bindings b, std::string name = "",
                              std::vector<int32_t> after = {}) {
    return {std::move(name), std::move(p), std::move(b), std::move(after), Span{1, 2, 3}};
  }
  hal::trace::TraceDevice* trace() { return dynamic_cast<hal::trace::TraceDevice*>(device.get()); }
};

// Row 5.
TEST_P(ExecLadder, a_whole_graph_is_taken_over) {
  const auto p = adder();
  auto a = block(0);
  const auto b = block(0);
  const auto e = need(graph({node(p, bind({a}, {1}))})->instantiate());
  GK_OK(e->launch(*rt));
  {
    const auto g = graph({node(p, bind({b}, {2}))});
    GK_OK(e->update(*g));
  }
  EXPECT_EQ(e->last_update(), UpdateRung::GraphUpdated);
  EXPECT_EQ(a->leases(), 0);
  EXPECT_EQ(b->leases(), 1);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(a, 1));
  EXPECT_TRUE(all(b, 2));
  // Its nodes are patched as before.
  GK_OK(e->update(0, p, bind({a}, {5})));
  EXPECT_EQ(e->last_update(), UpdateRung::Patched);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(a, 6));
  EXPECT_TRUE(all(b, 2));
}

// Row 6.
TEST_P(ExecLadder, another_topology_is_refused_whole) {
  const auto p = adder();
  Builder c = builder("copier");
  const auto copy = load(c.slots(2).copy(c.array(0), c.array(1)).build());
  const auto a = block(0), b = block(0);
  const auto e = need(graph({node(p, bind({a}, {1})), node(p, bind({a}, {1}))})->instantiate());
  EXPECT_EQ(code_of(e->update(*graph({node(p, bind({b}, {1}))}))), "E0709");
  EXPECT_EQ(code_of(e->update(*graph({node(p, bind({b}, {1})), node(copy, bind({b, a}))}))), "E0709");
  const auto other = need(exec::Runtime::create(device, 0));
  Builder f1 = builder("foreign");
  const auto foreign = need(exec::Loaded::create(*other, f1.slots(1).add(f1.array(0), f(1)).build()));
  const auto theirs =
      need(exec::Graph::create(*other, {node(foreign, bind({a})), node(foreign, bind({a}))}, "g"));
  EXPECT_EQ(code_of(e->update(*theirs)), "E0717");
  EXPECT_EQ(b->leases(), 0);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(a, 2));
  EXPECT_TRUE(all(b, 0));
}

TEST_P(ExecLadder, a_graph_with_an_arena_is_taken_over) {
  const auto x = block(0), y = block(0);
  const auto e = need(graph({node(through(1), bind({x}, {1}))})->instantiate());
  const auto g = graph({node(through(3), bind({y}, {2}))});
  const auto own = need(g->instantiate());
  GK_OK(e->launch(*rt));
  GK_OK(e->update(*g));
  EXPECT_EQ(e->arena_bytes(), 3 * 4096);
  const auto other = need(rt->fork());
  for (int i = 0; i < 5; ++i) {
    GK_OK(e->launch(*rt));
    GK_OK(own->launch(*other));
  }
  EXPECT_TRUE(all(x, 1));
  EXPECT_TRUE(all(y, 20));
}

TEST_P(ExecLadder, an_arena_that_grows_is_a_whole_graph_update) {
  const auto x = block(0), y = block(0);
  const auto e =
      need(graph({node(through(1), bind({x}, {1})), node(through(1), bind({y}, {1}))})->instantiate());
  GK_OK(e->launch(*rt));
  GK_OK(e->update(0, through(3), bind({x}, {4})));
  EXPECT_EQ(e->last_update(), UpdateRung::GraphUpdated) << e->last_update_reason();
  EXPECT_EQ(e->last_update_reason(), "the arena grows from 4096 to 12288 bytes");
  EXPECT_EQ(e->arena_bytes(), 3 * 4096);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 5));
  EXPECT_TRUE(all(y, 2));
  GK_OK(e->update(1, through(2), bind({y}, {7})));
  EXPECT_EQ(e->last_update(), UpdateRung::Patched);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 9));
  EXPECT_TRUE(all(y, 9));
}

TEST_P(ExecLadder, a_recorded_call_that_needs_more_gets_a_block_of_its_own) {
  const auto x = block(0);
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  GK_OK(exec::run(*rt, through(1), bind({x}, {1})));
  GK_OK(exec::run(*rt, through(1), bind({x}, {1})));
  const auto g = need(r->finish());
  EXPECT_EQ(g->num_leases(), 2);
  const auto e = need(g->instantiate());
  GK_OK(e->update(0, through(3), bind({x}, {10})));
  EXPECT_EQ(e->last_update(), UpdateRung::Patched);
  EXPECT_EQ(e->num_leases(), 3);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 11));
  GK_OK(e->update(0, through(1), bind({x}, {100})));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 112));
}

TEST_P(ExecLadder, a_recorded_call_may_become_a_longer_one_with_more_temporaries) {
  const auto x = block(0), y = block(0);
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  GK_OK(exec::run(*rt, through(1), bind({x}, {1})));
  GK_OK(exec::run(*rt, adder(), bind({y}, {1})));
  const auto e = need(need(r->finish())->instantiate());
  EXPECT_EQ(e->num_leases(), 3);
  Builder b = builder("longer");
  b.slots(1).temporaries(4).fill(b.temporary(3), f(5)).copy(b.temporary(1), b.temporary(3));
  b.axpy(b.array(0), b.temporary(1), f(2)).axpy(b.array(0), b.temporary(3), f(1));
  const auto longer = load(b.build());
  for (int i = 1; i <= 2; ++i) {
    GK_OK(e->update(0, longer, bind({x})));
    EXPECT_EQ(e->last_update(), i == 1 ? UpdateRung::Reinstantiated : UpdateRung::None);
    EXPECT_EQ(e->num_leases(), 4);  // what was recorded for the call stays with the graph's
    GK_OK(e->launch(*rt));
    EXPECT_TRUE(all(x, 15.0F * static_cast<float>(i)));
  }
  GK_OK(e->update(1, through(2), bind({y}, {3})));  // which had no temporaries
  EXPECT_EQ(e->last_update(), UpdateRung::Reinstantiated);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 45));
  EXPECT_TRUE(all(y, 5));
}

TEST_P(ExecLadder, a_library_call_is_changed_by_the_highest_rung_there_is) {
  program::MatMulCall call;
  call.m = call.n = call.k = 4;
  call.lda = call.ldb = call.ldc = 4;
  if (!device->supports(call)) GTEST_SKIP() << "no library does this product";
  Builder b = builder("product", 16);
  const auto p = load(b.slots(3).matmul(call, slot(0, 64), slot(1, 64), slot(2, 64)).build());
  const auto x = block(1, 16), y = block(2, 16), z = block(0, 16), w = block(0, 16);
  const auto e = need(graph({node(p, bind({x, y, z}))})->instantiate());
  GK_OK(e->launch(*rt));
  GK_OK(e->update(0, p, bind({x, y, w})));
  const bool gpu = device->info().target == program::TargetKind::Cuda;
  EXPECT_EQ(e->last_update(), gpu ? UpdateRung::GraphUpdated : UpdateRung::Patched)
      << e->last_update_reason();
  if (gpu) {
    EXPECT_EQ(e->last_update_reason(), "operation 0 is a library call, which cannot be patched");
  }
  GK_OK(rt->upload(x, std::vector<float>(16, 3).data(), 64));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(z, 8, 16));
  EXPECT_TRUE(all(w, 24, 16));
  // And on from there.
  const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{w, 0}, {z, 0}};
  GK_OK(e->rebind({&pair, 1}));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(z, 24, 16));
}

TEST_P(ExecLadder, where_the_driver_refuses_all_parameters_another_executable_is_made) {
  if (trace() == nullptr) GTEST_SKIP() << "faults can be injected into the trace device only";
  const auto x = block(0);
  const auto e = need(graph({node(through(1), bind({x}, {1}))})->instantiate());
  trace()->fail_next("update graph");
  GK_OK(e->update(0, through(2), bind({x}, {3})));
  EXPECT_TRUE(trace()->failed());
  EXPECT_EQ(e->last_update(), UpdateRung::Reinstantiated);
  EXPECT_EQ(e->last_update_reason(),
            "the arena grows from 4096 to 8192 bytes; update graph failed: a failure was asked for");
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 3));
}

TEST_P(ExecLadder, the_declared_order_stands) {
  const auto p = adder();
  Builder c = builder("reader");
  const auto reader = load(c.slots(2).axpy(c.array(0), c.array(1), f(1)).build());
  const auto x = block(1), y = block(1), z = block(1);
  const auto e = need(graph({node(p, bind({x}, {1}), "a"), node(reader, bind({y, z}), "b"),
                             node(p, bind({x}, {1}), "c", {0})})
                          ->instantiate());
  const auto refused = e->update(1, reader, bind({y, x}));
  EXPECT_EQ(code_of(refused), "E0705");
  EXPECT_EQ(refused.error().message,
            "nodes `a` and `b` use the same array, but no order between them is declared");
  EXPECT_EQ(refused.error().span.begin, 2U);
  const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{z, 0}, {x, 0}};
  EXPECT_EQ(code_of(e->rebind({&pair, 1})), "E0706");
  EXPECT_EQ(x->leases(), 1);
  EXPECT_EQ(z->leases(), 1);
  // Nodes in order may share; so may nodes that only read.
  GK_OK(e->update(2, reader, bind({x, z})));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(y, 2));
  // Both at once: x's users move together, and stay in order among themselves.
  const auto w = block(5);
  const std::pair<exec::SlotBinding, exec::SlotBinding> both[] = {{{x, 0}, {w, 0}}, {{z, 0}, {x, 0}}};
  GK_OK(e->rebind(both));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(w, 9));
  EXPECT_TRUE(all(y, 5));
}

// Neither is kept by updates that no launch followed.
TEST_P(ExecLadder, many_updates_in_a_row_keep_the_last_binding_only) {
  const auto p = adder();
  const auto x = block(0);
  const auto e = need(graph({node(p, bind({x}, {1}))})->instantiate());
  GK_OK(e->launch(*rt));
  const int64_t before = rt->pool().stats().in_use_bytes;
  for (int i = 0; i < 100; ++i) GK_OK(e->update(0, p, bind({block(0)}, {1})));
  EXPECT_EQ(rt->pool().stats().in_use_bytes, before + 4096);
  GK_OK(e->update(0, p, bind({x}, {1})));
  EXPECT_EQ(rt->pool().stats().in_use_bytes, before);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 2));
}

// Row 47: without waiting for anything.
TEST_P(ExecLadder, what_only_the_old_binding_used_is_given_back_at_once) {
  const auto p = adder();
  auto x = block(0);
  const auto y = block(0);
  const auto e = need(graph({node(p, bind({x}, {1}))})->instantiate());
  GK_OK(e->launch(*rt));
  x.reset();
  const int64_t before = rt->pool().stats().in_use_bytes;
  GK_OK(e->update(0, p, bind({y}, {1})));
  EXPECT_EQ(rt->pool().stats().in_use_bytes, before - 4096);
}

TEST_P(ExecLadder, all_of_another_graph_or_nothing) {
  if (trace() == nullptr) GTEST_SKIP() << "faults can be injected into the trace device only";
  const auto p = adder();
  bool injected = true;
  for (int64_t k = 0; injected; ++k) {
    const auto x = block(0), y = block(0);
    const auto e = need(graph({node(p, bind({x}, {1})), node(p, bind({x}, {2}))})->instantiate());
    const auto g = graph({node(p, bind({y}, {10})), node(p, bind({y}, {20}))});
    GK_OK(rt->synchronize());
    trace()->fail_at(k);
    const Result<void> r = e->update(*g);
    injected = trace()->failed();
    trace()->fail_at(-1);
    EXPECT_EQ(r.has_value(), !injected);
    EXPECT_EQ(x->leases(), r ? 0 : 1);
    EXPECT_EQ(y->leases(), r ? 2 : 1);
    GK_OK(e->launch(*rt));
    EXPECT_TRUE(all(x, r ? 0 : 3));
    EXPECT_TRUE(all(y, r ? 30 : 0));
  }
}

// A patch is refused, and so is every rung above it: the old parameters are all back.
TEST_P(ExecLadder, no_rung_leaves_half_an_update) {
  if (trace() == nullptr) GTEST_SKIP() << "faults can be injected into the trace device only";
  const auto p = adder();
  const std::vector<std::vector<std::string_view>> refused = {
      {"create graph"}, {"add kernel"}, {"update graph", "instantiate graph"}};
  for (const auto& names : refused) {
    for (int64_t k = 0; k < 2; ++k) {
      const auto x = block(0), y = block(0);
      const auto e = need(graph({node(p, bind({x}, {1})), node(p, bind({x}, {2}))})->instantiate());
      const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{x, 0}, {y, 0}};
      GK_OK(rt->synchronize());
      for (const std::string_view name : names) trace()->fail_next(name);
      trace()->fail_at(k);
      EXPECT_EQ(code_of(e->rebind({&pair, 1})), "E0503");
      EXPECT_EQ(trace()->failed_call(), names.back());
      GK_OK(e->launch(*rt));
      EXPECT_TRUE(all(x, 3));
      EXPECT_TRUE(all(y, 0));
      EXPECT_EQ(x->leases(), 1);
      EXPECT_EQ(y->leases(), 0);
      GK_OK(e->rebind({&pair, 1}));
      GK_OK(e->launch(*rt));
      EXPECT_TRUE(all(y, 3));
    }
  }
}

// ---- ends ----

TEST_P(ExecLadder, a_closed_one_is_used_no_more) {
  const auto p = adder();
  const auto x = block(0);
  const auto e = need(graph({node(p, bind({x}, {1}))})->instantiate());
  GK_OK(e->launch(*rt));
  GK_OK(e->close());
  GK_OK(e->close());
  EXPECT_EQ(code_of(e->launch(*rt)), "E0716");
  EXPECT_EQ(code_of(e->upload(*rt)), "E0716");
  EXPECT_EQ(code_of(e->update(0, p, bind({x}))), "E0716");
  EXPECT_EQ(code_of(e->update(*graph({}))), "E0716");
  EXPECT_EQ(code_of(e->rebind({})), "E0716");
  EXPECT_EQ(e->num_leases(), 0);
  EXPECT_EQ(x->leases(), 0);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ExecLadder, another_engines_runtime_is_refused) {
  const auto x = block(0);
  const auto e = need(graph({node(adder(), bind({x}, {1}))})->instantiate());
  const auto other = need(exec::Runtime::create(device, 0));
  EXPECT_EQ(code_of(e->launch(*other)), "E0717");
  EXPECT_EQ(code_of(e->upload(*other)), "E0717");
  EXPECT_EQ(code_of(exec::run(*other, adder(), bind({x}))), "E0717");
  EXPECT_EQ(code_of(exec::Recording::extend(*other, *graph({}))), "E0717");
}

TEST_P(ExecLadder, sent_ahead_it_launches_as_ever) {
  const auto x = block(0);
  const auto e = need(graph({node(adder(), bind({x}, {1}))})->instantiate());
  GK_OK(e->upload(*rt));
  EXPECT_TRUE(all(x, 0));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 1));
}

// Rows 31 to 33.
TEST_P(ExecLadder, what_cannot_be_destroyed_keeps_what_it_uses) {
  if (trace() == nullptr) GTEST_SKIP() << "faults can be injected into the trace device only";
  auto p = adder();
  auto x = block(0);
  auto g = graph({node(p, bind({x}, {1}))});
  auto e1 = need(g->instantiate()), e2 = need(g->instantiate());
  EXPECT_EQ(x->leases(), 3);
  g.reset();
  EXPECT_EQ(x->leases(), 2);
  trace()->fail_next("destroy executable");
  EXPECT_EQ(code_of(e1->close()), "E0503");
  EXPECT_EQ(x->leases(), 2);  // kept for good
  e1.reset();
  e2.reset();
  EXPECT_EQ(x->leases(), 1);
  const void* const address = x->address();
  const auto modules = trace()->alive().modules;
  x.reset();
  p.reset();
  GK_OK(rt->synchronize());
  EXPECT_EQ(trace()->alive().modules, modules);  // its code, too
  for (int i = 0; i < 20; ++i) EXPECT_NE(block(1)->address(), address);
}

// Row 50.
TEST_P(ExecLadder, ten_thousand_destroyed_in_flight_leave_nothing) {
  const auto p = through(1);
  const auto x = block(0, kN);
  int64_t reserved = 0, leases = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto e = need(graph({node(p, bind({x}, {1}))})->instantiate());
    GK_OK(e->launch(*rt));
    if (i == 100) {
      reserved = rt->pool().stats().in_use_bytes + rt->pool().stats().cached_bytes;
      leases = rt->pool().stats().leases;
    }
  }
  EXPECT_TRUE(all(x, 10000));
  GK_OK(rt->synchronize());
  EXPECT_EQ(rt->pool().stats().in_use_bytes + rt->pool().stats().cached_bytes, reserved);
  EXPECT_LE(rt->pool().stats().leases, leases);
  EXPECT_EQ(x->leases(), 0);
}

// Row 49: code lives as long as an executable, and goes in time.
TEST_P(ExecLadder, code_goes_with_its_last_user) {
  if (trace() == nullptr) GTEST_SKIP() << "only a trace counts modules";
  const auto x = block(0);
  const auto idle = trace()->alive().modules;
  auto p = adder();
  auto e = need(graph({node(p, bind({x}, {1}))})->instantiate());
  p.reset();
  GK_OK(rt->synchronize());
  EXPECT_EQ(trace()->alive().modules, idle + 1);
  GK_OK(e->launch(*rt));
  e.reset();
  EXPECT_EQ(trace()->alive().modules, idle + 1);  // the launch may still run
  GK_OK(rt->synchronize());
  EXPECT_EQ(trace()->alive().modules, idle);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ExecLadder, reclaim_gives_back_what_is_cached) {
  {
    const auto x = block(1, 1 << 20);
    const auto e = need(graph({node(through(1), bind({x}, {1}))})->instantiate());
    GK_OK(e->launch(*rt));
  }
  EXPECT_GE(rt->pool().stats().cached_bytes, int64_t{7} << 20);
  GK_OK(rt->reclaim());
  EXPECT_LT(rt->pool().stats().cached_bytes, int64_t{6} << 20);  // pieces with something in them
  const auto y = block(0);
  GK_OK(exec::run(*rt, through(1), bind({y}, {1})));
  EXPECT_TRUE(all(y, 1));
}

GK_ALL_DEVICES(ExecLadder);

}  // namespace
}  // namespace gk::test
