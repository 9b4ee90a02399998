// Graphs made live: what is recorded, temporaries, declared nodes, what is refused, ends on every path.
#include <thread>

#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

using exec::Recording;

class ExecRecording : public RuntimeTest {
 protected:
  std::shared_ptr<Recording> begin(exec::RecordingOptions options = {}) {
    if (options.name.empty()) options.name = "r";
    return need(Recording::begin(*rt, std::move(options)));
  }
  /// a += v
  std::shared_ptr<exec::Loaded> adder() {
    Builder b = builder("adder");
    b.slots(1).scalars({1}).add(b.array(0), scalar_slot(0));
    return load(b.build());
  }
  /// y += v x
  std::shared_ptr<exec::Loaded> axpy() {
    Builder b = builder("axpy");
    b.slots(2).scalars({1}).axpy(b.array(0), b.array(1), scalar_slot(0));
    return load(b.build());
  }
  /// x = v, by way of a temporary
  std::shared_ptr<exec::Loaded> filler() {
    Builder b = builder("filler");
    b.slots(1).scalars({1}).temporaries(1);
    b.fill(b.temporary(0), scalar_slot(0)).copy(b.array(0), b.temporary(0));
    return load(b.build());
  }
  static std::vector<float> values_of(float v) { return std::vector<float>(kN, v); }
  memory::BlockPtr temporary(int64_t n = kN) { return need(rt->allocate(n * 4)); }
};

template <class T>
void expect_error(const Result<T>& r, std::string_view code) {
  ASSERT_FALSE(r.has_value()) << "expected " << code;
  EXPECT_EQ(r.error().code, code) << r.error().message;
}

TEST_P(ExecRecording, what_runs_inside_becomes_a_graph) {
  const auto p = adder();
  const auto x = block(1);
  const auto r = begin();
  EXPECT_EQ(rt->recording(), r.get());
  GK_OK(exec::run(*rt, p, bind({x}, {1})));
  GK_OK(exec::run(*rt, p, bind({x}, {10})));
  const auto g = need(r->finish());
  EXPECT_EQ(rt->recording(), nullptr);
  EXPECT_TRUE(all(x, 1));
  EXPECT_EQ(g->num_leases(), 1);
  EXPECT_EQ(g->print(),
            "graph r nodes=2 edges=1 driver_nodes=2 driver_edges=1 leases=1 arena=0\n"
            "  node 0 #0\n    kernel add\n  node 1 #1 after #0\n    kernel add\n");
  const auto e = need(g->instantiate());
  GK_OK(e->launch(*rt, 2));
  EXPECT_TRUE(all(x, 23));
  GK_OK(exec::run(*rt, p, bind({x}, {1})));  // the runtime runs again
  EXPECT_TRUE(all(x, 24));
}

TEST_P(ExecRecording, dropped_buffers_are_used_again) {
  const auto fill = filler();
  const auto ax = axpy();
  const auto y = block(0);
  GK_OK(rt->synchronize());
  const int64_t before = rt->pool().stats().in_use_bytes;
  const auto r = begin();
  // Each turn needs one buffer and the call a temporary: two blocks, however many turns.
  for (int i = 0; i < 50; ++i) {
    const auto t = temporary();
    GK_OK(exec::run(*rt, fill, bind({t}, {2})));
    GK_OK(exec::run(*rt, ax, bind({y, t}, {1})));
  }
  const auto g = need(r->finish());
  EXPECT_EQ(rt->pool().stats().in_use_bytes - before, 2 * 4096);
  EXPECT_EQ(g->num_leases(), 3);
  const auto e = need(g->instantiate());
  GK_OK(e->launch(*rt, 2));
  EXPECT_TRUE(all(y, 200));
}

TEST_P(ExecRecording, a_buffer_with_a_handle_is_nobody_elses) {
  const auto fill = filler();
  const auto r = begin();
  const auto a = temporary();
  auto b = a;  // two handles
  GK_OK(exec::run(*rt, fill, bind({a}, {3})));
  b.reset();
  const auto c = temporary();
  EXPECT_NE(c->address(), a->address());
  GK_OK(exec::run(*rt, fill, bind({c}, {4})));
  const auto g = need(r->finish());
  const auto e = need(g->instantiate());
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(a, 3));
  EXPECT_TRUE(all(c, 4));
}

TEST_P(ExecRecording, memory_born_inside_lives_with_the_graph) {
  const auto fill = filler();
  auto r = begin();
  auto t = temporary();
  GK_OK(exec::run(*rt, fill, bind({t}, {5})));
  auto g = need(r->finish());
  r.reset();
  auto e = need(g->instantiate());
  g.reset();
  std::vector<memory::BlockPtr> others;
  const auto keep = t;
  t.reset();
  for (int i = 0; i < 10; ++i) others.push_back(block(9));
  GK_OK(e->launch(*rt, 3));
  EXPECT_TRUE(all(keep, 5));
  for (const auto& o : others) EXPECT_TRUE(all(o, 9));
  GK_OK(e->close());
  EXPECT_EQ(keep->leases(), 0);
}

TEST_P(ExecRecording, two_executables_share_recorded_temporaries_in_order) {
  const auto fill = filler();
  const auto ax = axpy();
  const auto y = block(0);
  const auto r = begin();
  {
    const auto t = temporary();
    GK_OK(exec::run(*rt, fill, bind({t}, {1})));
    GK_OK(exec::run(*rt, ax, bind({y, t}, {1})));
  }
  const auto g = need(r->finish());
  const auto e1 = need(g->instantiate()), e2 = need(g->instantiate());
  const auto other = need(rt->fork());
  for (int i = 0; i < 20; ++i) {
    GK_OK(e1->launch(*rt));
    GK_OK(e2->launch(*other));
  }
  EXPECT_TRUE(all(y, 40));
}

TEST_P(ExecRecording, uploads_send_what_the_source_held) {
  const auto x = block(0);
  std::vector<float> v(kN, 7);
  const auto r = begin();
  GK_OK(rt->upload(x, v.data(), kN * 4));
  std::fill(v.begin(), v.end(), 8);
  GK_OK(rt->upload(x, v.data(), 40, 40));
  std::fill(v.begin(), v.end(), 9);
  const auto g = need(r->finish());
  EXPECT_TRUE(all(x, 0));
  const auto e = need(g->instantiate());
  for (int i = 0; i < 2; ++i) {
    GK_OK(rt->upload(x, v.data(), kN * 4));
    GK_OK(e->launch(*rt));
    const std::vector<float> got = values(x);
    EXPECT_EQ(got[9], 7);
    EXPECT_EQ(got[10], 8);
    EXPECT_EQ(got[19], 8);
    EXPECT_EQ(got[20], 7);
  }
}

TEST_P(ExecRecording, refusals_inside_leave_it_unharmed) {
  const auto p = adder();
  const auto x = block(1);
  const auto made =
      need(need(exec::Graph::create(*rt, {{"", p, bind({x}, {100}), {}, {}}}, "g"))->instantiate());
  const auto r = begin();
  GK_OK(exec::run(*rt, p, bind({x}, {1})));
  float v = 0;
  expect_error(rt->download(&v, x, 4), "E0703");
  expect_error(rt->synchronize(), "E0703");
  expect_error(made->launch(*rt), "E0703");
  expect_error(made->upload(*rt), "E0703");
  expect_error(rt->reclaim(), "E0708");
  const auto nested = Recording::begin(*rt, {});
  ASSERT_FALSE(nested.has_value());
  EXPECT_EQ(nested.error().code, "E0718");
  expect_error(exec::run(*rt, p, bind({})), "E0902");
  GK_OK(exec::run(*rt, p, bind({x}, {2})));
  const auto g = need(r->finish());
  EXPECT_EQ(g->nodes().size(), 2U);
  GK_OK(need(g->instantiate())->launch(*rt));
  EXPECT_TRUE(all(x, 4));
  expect_error(r->finish(), "E0713");
}

TEST_P(ExecRecording, a_discarded_one_leaves_nothing) {
  const auto fill = filler();
  const auto x = block(1);
  GK_OK(rt->synchronize());
  const auto before = rt->pool().stats();
  memory::BlockPtr kept;
  {
    const auto r = begin();
    kept = temporary();
    GK_OK(exec::run(*rt, fill, bind({kept}, {5})));
    GK_OK(exec::run(*rt, fill, bind({x}, {6})));
    GK_OK(rt->upload(x, values_of(3).data(), kN * 4));
  }  // as an exception would
  EXPECT_EQ(rt->recording(), nullptr);
  EXPECT_EQ(x->leases(), 0);
  EXPECT_EQ(kept->leases(), 0);
  kept.reset();
  EXPECT_EQ(rt->pool().stats().leases, before.leases);
  EXPECT_EQ(rt->pool().stats().in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(rt->pool().retired().captures(), 0);
  GK_OK(exec::run(*rt, fill, bind({x}, {2})));
  EXPECT_TRUE(all(x, 2));
}

TEST_P(ExecRecording, a_runtime_that_goes_discards_it) {
  const auto p = adder();
  const auto x = block(1);
  auto other = need(rt->fork());
  const auto r = need(Recording::begin(*other, {}));
  GK_OK(exec::run(*other, p, bind({x}, {1})));
  other.reset();
  EXPECT_EQ(rt->pool().retired().captures(), 0);
  EXPECT_EQ(x->leases(), 0);
  expect_error(r->begin_node("a", {}), "E0713");
}

// ---- declared nodes ----

TEST_P(ExecRecording, declared_nodes_have_the_edges_that_were_declared) {
  const auto p = adder();
  const auto ax = axpy();
  const auto x = block(1), y = block(1), z = block(0);
  const auto r = begin();
  GK_OK(r->begin_node("a", std::vector<std::string>{}));
  GK_OK(exec::run(*rt, p, bind({x}, {1})));
  GK_OK(r->end_node());
  GK_OK(r->begin_node("b", std::vector<std::string>{}));
  GK_OK(exec::run(*rt, p, bind({y}, {2})));
  GK_OK(r->end_node());
  GK_OK(r->begin_node("z", std::vector<std::string>{"a", "b"}));
  GK_OK(exec::run(*rt, ax, bind({z, x}, {1})));
  GK_OK(exec::run(*rt, ax, bind({z, y}, {1})));
  GK_OK(r->end_node());
  GK_OK(r->begin_node("last", {}));
  GK_OK(exec::run(*rt, p, bind({z}, {0})));
  GK_OK(r->end_node());
  const auto g = need(r->finish());
  EXPECT_EQ(g->print(),
            "graph r nodes=5 edges=4 driver_nodes=5 driver_edges=4 leases=3 arena=0\n"
            "  node 0 a\n    kernel add\n  node 1 b\n    kernel add\n  node 2 z after a, b\n    kernel axpy\n"
            "  node 3 z after z\n    kernel axpy\n  node 4 last after z\n    kernel add\n");
  GK_OK(need(g->instantiate())->launch(*rt));
  EXPECT_TRUE(all(z, 5));
}

TEST_P(ExecRecording, an_order_that_is_missing_is_named) {
  const auto p = adder();
  const auto ax = axpy();
  const auto x = block(1), y = block(1);
  const auto r = begin();
  GK_OK(r->begin_node("a", {}));
  GK_OK(exec::run(*rt, p, bind({x}, {1})));
  GK_OK(r->end_node());
  GK_OK(r->begin_node("b", std::vector<std::string>{}, Span{1, 20, 30}));
  const auto missing = exec::run(*rt, ax, bind({y, x}, {2}), Span{1, 21, 25});
  expect_error(missing, "E0701");
  EXPECT_EQ(missing.error().message,
            "nodes `a` and `b` use the same array, but no order between them is declared");
  EXPECT_EQ(missing.error().notes.at(0), "`a` writes it as `x0`, `b` reads it as `x1`");
  EXPECT_EQ(missing.error().helps.at(0), "let `b` come after `a`");
  EXPECT_EQ(missing.error().span.begin, 21U);
  // What shares nothing may be there, and the recording goes on.
  GK_OK(exec::run(*rt, p, bind({y}, {2})));
  GK_OK(r->end_node());
  expect_error(r->begin_node("c", std::vector<std::string>{"nobody"}), "E0704");
  expect_error(r->begin_node("a", {}), "E0408");
  expect_error(r->begin_node("", {}), "E0704");
  expect_error(r->end_node(), "E0704");
  GK_OK(r->begin_node("c", std::vector<std::string>{"a"}));
  expect_error(r->begin_node("d", {}), "E0718");
  expect_error(exec::run(*rt, p, bind({y}, {1})), "E0701");
  GK_OK(exec::run(*rt, p, bind({x}, {1})));
  GK_OK(r->end_node());
  // Work outside of nodes comes after all before it, and before all after it.
  GK_OK(exec::run(*rt, ax, bind({y, x}, {1})));
  GK_OK(r->begin_node("e", std::vector<std::string>{}));
  GK_OK(exec::run(*rt, p, bind({y}, {1})));
  GK_OK(r->end_node());
  const auto g = need(r->finish());
  EXPECT_EQ(x->leases(), 1);
  GK_OK(need(g->instantiate())->launch(*rt));
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(y, 7));
}

TEST_P(ExecRecording, temporaries_of_unordered_nodes_are_no_conflict) {
  const auto fill = filler();
  const auto ax = axpy();
  const auto x = block(0), y = block(0);
  const auto r = begin();
  for (const auto& [name, target] : {std::pair{"a", x}, std::pair{"b", y}}) {
    GK_OK(r->begin_node(name, std::vector<std::string>{}));
    const auto t = temporary();
    GK_OK(exec::run(*rt, fill, bind({t}, {4})));
    GK_OK(exec::run(*rt, ax, bind({target, t}, {1})));
    GK_OK(r->end_node());
  }
  const auto g = need(r->finish());
  EXPECT_EQ(g->num_leases(), 4);  // two arrays, and two blocks for all temporaries
  const auto e = need(g->instantiate());
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 4));
  EXPECT_TRUE(all(y, 4));
  // An update is held against the declared order, too.
  const auto refused = e->update(1, ax, bind({y, y}, {1}));
  expect_error(refused, "E0705");
  EXPECT_EQ(refused.error().message,
            "nodes `b` and `a` use the same array, but no order between them is declared");
  GK_OK(e->update(1, ax, bind({x, x}, {1})));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 8));
  EXPECT_TRUE(all(y, 8));
}

// ---- going on with a graph ----

TEST_P(ExecRecording, a_graph_is_added_to) {
  const auto fill = filler();
  const auto p = adder();
  const auto ax = axpy();
  const auto x = block(0), y = block(0);
  auto r = begin();
  GK_OK(r->begin_node("a", {}));
  {
    const auto t = temporary();
    GK_OK(exec::run(*rt, fill, bind({t}, {4})));
    GK_OK(exec::run(*rt, ax, bind({x, t}, {1})));
  }
  GK_OK(r->end_node());
  const auto g = need(r->finish());
  const auto first = need(g->instantiate());
  const int64_t in_use = rt->pool().stats().in_use_bytes;

  r = need(Recording::extend(*rt, *g));
  {
    const auto busy = g->instantiate();
    ASSERT_FALSE(busy.has_value());
    EXPECT_EQ(busy.error().code, "E0718");
    const auto twice = Recording::extend(*need(rt->fork()), *g);
    ASSERT_FALSE(twice.has_value());
    EXPECT_EQ(twice.error().code, "E0718");
  }
  GK_OK(r->begin_node("b", std::vector<std::string>{}));
  expect_error(exec::run(*rt, p, bind({x}, {1})), "E0701");
  {
    const auto t = temporary();  // where the first node's lay
    GK_OK(exec::run(*rt, fill, bind({t}, {3})));
    GK_OK(exec::run(*rt, ax, bind({y, t}, {1})));
  }
  GK_OK(r->end_node());
  GK_OK(r->begin_node("c", std::vector<std::string>{"a"}));
  GK_OK(exec::run(*rt, p, bind({x}, {1})));
  GK_OK(r->end_node());
  const auto same = need(r->finish());
  EXPECT_EQ(rt->pool().stats().in_use_bytes, in_use);
  EXPECT_EQ(&same->nodes(), &g->nodes());
  EXPECT_EQ(g->nodes().size(), 5U);
  EXPECT_EQ(g->nodes()[4].after, (std::vector<int32_t>{1}));
  const auto second = need(g->instantiate());
  GK_OK(first->launch(*rt));
  GK_OK(second->launch(*rt));
  EXPECT_TRUE(all(x, 9));
  EXPECT_TRUE(all(y, 3));
}

// Row 38.
TEST_P(ExecRecording, a_failed_addition_leaves_the_graph_as_it_was) {
  auto* trace = dynamic_cast<hal::trace::TraceDevice*>(device.get());
  const auto fill = filler();
  const auto ax = axpy();
  const auto p = adder();
  const auto x = block(0), y = block(0);
  auto r = begin();
  GK_OK(r->begin_node("a", {}));
  {
    const auto t = temporary();
    GK_OK(exec::run(*rt, fill, bind({t}, {4})));
    GK_OK(exec::run(*rt, ax, bind({x, t}, {1})));
  }
  GK_OK(r->end_node());
  const auto g = need(r->finish());
  r.reset();
  const std::string text = g->print();
  const auto add = [&]() -> Result<void> {
    GK_TRY(const auto more, Recording::extend(*rt, *g));
    GK_CHECK(more->begin_node("b", {}));
    {
      GK_TRY(const auto t, rt->allocate(kN * 4));
      GK_TRY(const auto big, rt->allocate(kN * 40));
      GK_CHECK(exec::run(*rt, fill, bind({t}, {3})));
      GK_CHECK(exec::run(*rt, ax, bind({y, t}, {1})));
      GK_CHECK(rt->upload(big, values_of(1).data(), kN * 4));
    }
    GK_CHECK(more->end_node());
    return fail(ErrorKind::Runtime, "E0801", "the host program threw");
  };
  const auto leases = rt->pool().stats().leases;
  for (int64_t k = -1; k < 30; ++k) {
    if (k >= 0 && trace == nullptr) break;
    if (trace != nullptr) trace->fail_at(k);
    EXPECT_FALSE(add().has_value());
    if (trace != nullptr) trace->fail_at(-1);
    EXPECT_EQ(g->print(), text);
    EXPECT_EQ(rt->pool().stats().leases, leases);
    EXPECT_EQ(rt->recording(), nullptr);
  }
  // One of the temporaries that were lent to the addition is held on to: nobody else gets it.
  memory::BlockPtr held;
  {
    const auto more = need(Recording::extend(*rt, *g));
    held = temporary();
  }
  {
    const auto more = need(Recording::extend(*rt, *g));
    EXPECT_NE(temporary()->address(), held->address());
    GK_OK(exec::run(*rt, p, bind({x}, {1})));
    GK_OK(more->finish());
  }
  GK_OK(need(g->instantiate())->launch(*rt));
  EXPECT_TRUE(all(x, 5));
  EXPECT_TRUE(all(y, 0));
}

TEST_P(ExecRecording, it_does_not_begin_while_a_release_waits) {
  const auto waiting = need(rt->pool().retired().begin_blocking());
  const auto r = Recording::begin(*rt, {});
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0708");
  EXPECT_EQ(rt->recording(), nullptr);
  const auto g = need(exec::Graph::create(*rt, {}, "g"));
  const auto more = Recording::extend(*rt, *g);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code, "E0708");
  GK_OK(g->instantiate());
}

// A strict capture forbids calls to everybody, so an executable that goes meanwhile is destroyed afterwards.
TEST_P(ExecRecording, strict_ones_put_off_what_the_driver_would_refuse) {
  const auto p = adder();
  const auto x = block(0);
  // Not one that could serve another graph instead.
  auto both =
      need(exec::Graph::create(*rt, {{"", p, bind({x}, {1}), {}, {}}, {"", p, bind({x}, {0}), {}, {}}}, "g"));
  auto e = need(both->instantiate());
  both.reset();
  GK_OK(e->launch(*rt));
  const auto r = begin({.name = "strict", .mode = hal::CaptureMode::ThreadLocal});
  GK_OK(exec::run(*rt, p, bind({x}, {10})));
  e.reset();
  EXPECT_EQ(x->leases(), 2);
  const auto g = need(r->finish());
  GK_OK(rt->synchronize());
  EXPECT_EQ(x->leases(), 1);
  GK_OK(need(g->instantiate())->launch(*rt));
  EXPECT_TRUE(all(x, 11));
}

GK_ALL_DEVICES(ExecRecording);

}  // namespace
}  // namespace gk::test
