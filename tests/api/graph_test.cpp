// Captures, graphs and executables: what is recorded, what is refused, what is left after an error.
#include <atomic>
#include <latch>
#include <thread>

#include "tests/api/fixture.h"

namespace gk_test {
namespace {

class ApiGraph : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (IsSkipped()) return;
    axpy = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy");
    bump = mod.fn<void(gk::Tensor&, float)>("bump");
    combine = mod.kernel("combine");
  }
  void TearDown() override {
    axpy = {};
    bump = {};
    combine = {};
    ApiTest::TearDown();
  }
  gk::Function<gk::Tensor(gk::Tensor, float)> axpy;
  gk::Function<void(gk::Tensor&, float)> bump;
  gk::Kernel combine;
};

TEST_P(ApiGraph, capturing_executes_nothing_and_each_launch_once) {
  auto x = filled(0);
  auto g = ctx->capture([&] { bump(x, 1); });
  EXPECT_TRUE(all(x, 0));
  EXPECT_EQ(g.num_nodes(), 1);
  auto e = g.instantiate();
  e.launch(*ctx);
  EXPECT_TRUE(all(x, 1));
  e.launch(*ctx, 3);
  EXPECT_TRUE(all(x, 4));
  e.launch(*ctx, 0);
  EXPECT_TRUE(all(x, 4));
  EXPECT_EQ(code_of(e.try_launch(*ctx, -1)), "E0512");
}

TEST_P(ApiGraph, a_graph_equals_eager) {
  std::vector<float> data(kN);
  for (size_t i = 0; i < data.size(); ++i) data[i] = 0.01f * static_cast<float>(i);
  auto x = ctx->from_host(data, {kN});
  auto chain = mod.fn<gk::Tensor(gk::Tensor)>("chain");
  auto eager = chain(axpy(x, 2));
  gk::Tensor y;
  auto g = ctx->capture([&] { y = chain(axpy(x, 2)); });
  g.instantiate().launch(*ctx);
  EXPECT_EQ(values(y), values(eager));
}

TEST_P(ApiGraph, an_empty_graph_is_a_graph) {
  auto g = ctx->graph("nothing");
  EXPECT_TRUE(g);
  EXPECT_EQ(g.name(), "nothing");
  EXPECT_EQ(g.num_nodes(), 0);
  auto e = g.instantiate();
  e.upload(*ctx);
  e.launch(*ctx);
  ctx->synchronize();
  EXPECT_FALSE(gk::Graph());
  EXPECT_EQ(code_of(gk::Graph().try_instantiate()), "E0716");
}

TEST_P(ApiGraph, upload_then_launch) {
  auto x = filled(0);
  auto e = ctx->capture([&] { bump(x, 1); }).instantiate();
  e.upload(*ctx);
  EXPECT_TRUE(all(x, 0));
  e.launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiGraph, what_a_graph_uses_lives_as_long_as_it) {
  gk::Exec e;
  gk::Tensor y;
  {
    auto x = filled(3);
    auto g = ctx->capture([&] { y = axpy(x, 2); });
    e = g.instantiate();
    x.free();
  }
  std::vector<gk::Tensor> churn;
  for (int i = 0; i < 8; ++i) churn.push_back(filled(9));
  e.launch(*ctx);
  EXPECT_TRUE(all(y, 7));
  for (auto& t : churn) EXPECT_TRUE(all(t, 9));
}

TEST_P(ApiGraph, wrapped_memory_is_kept_until_the_last_executable_is_gone) {
  auto owner = filled(1);
  std::atomic<int> deleted{0};
  gk::Exec e1, e2;
  {
    gk::WrapOptions options;
    options.deleter = [&] { ++deleted; };
    auto w = gk::Tensor::wrap(*ctx, owner.data(), gk::f32, {kN}, options);
    auto g = ctx->capture([&] { bump(w, 1); });
    e1 = g.instantiate();
    e2 = g.instantiate();
  }
  e1.launch(*ctx);
  ctx->synchronize();
  EXPECT_EQ(deleted, 0);
  e1.close();
  e2.launch(*ctx);
  ctx->synchronize();
  EXPECT_EQ(deleted, 0);
  e2 = {};
  engine->reclaim();
  EXPECT_EQ(deleted, 1);
  EXPECT_TRUE(all(owner, 3));
}

TEST_P(ApiGraph, leases_come_and_go) {
  auto x = filled(1);
  EXPECT_EQ(x.leases(), 0);
  auto g = ctx->capture([&] { bump(x, 1); });
  EXPECT_EQ(x.leases(), 1);
  auto e = g.instantiate();
  EXPECT_EQ(x.leases(), 2);
  EXPECT_GE(e.num_leases(), 1);
  g.close();
  EXPECT_EQ(x.leases(), 1);
  e.close();
  e.close();
  EXPECT_EQ(x.leases(), 0);
  EXPECT_EQ(engine->stats().leases, 0);
}

TEST_P(ApiGraph, temporaries_that_die_inside_are_used_again) {
  ctx->synchronize();
  engine->reset_peak();
  const int64_t before = engine->stats().in_use_bytes;
  const int64_t n = 1 << 20;
  auto x = ctx->full(gk::f32, {n}, 1);
  gk::Tensor y;
  auto g = ctx->capture([&] {
    y = axpy(x, 1);
    for (int i = 0; i < 20; ++i) y = axpy(y, 1);
  });
  auto e = g.instantiate();
  e.launch(*ctx);
  EXPECT_EQ(y.to_host<float>(*ctx)[5], 22);
  EXPECT_LE(engine->stats().peak_bytes - before, 5 * 4 * n) << "not the sum of 21 temporaries";
}

TEST_P(ApiGraph, memory_allocated_inside_is_usable_at_once) {
  gk::Tensor inside;
  gk::Context other(*engine);
  auto g = ctx->capture([&] {
    inside = ctx->empty(gk::f32, {kN});
    bump(inside, 0);
    auto mine = other.full(gk::f32, {kN}, 4);
    inside.copy_from(other, mine);
    EXPECT_EQ(inside.to_host<float>(other)[0], 4);
  });
  EXPECT_TRUE(all(inside, 4));
}

TEST_P(ApiGraph, the_bytes_of_an_upload_are_kept) {
  std::vector<float> data(kN, 5);
  auto x = filled(0);
  auto e = ctx->capture([&] {
                x.copy_from(*ctx, data.data(), x.size_bytes());
                bump(x, 1);
              })
               .instantiate();
  data.assign(kN, 9);
  for (int i = 0; i < 3; ++i) {
    e.launch(*ctx);
    EXPECT_TRUE(all(x, 6));
  }
}

TEST_P(ApiGraph, pinned_arrays_are_live) {
  auto p = ctx->empty(gk::f32, {kN}, gk::MemoryPlace::Pinned);
  auto* host = static_cast<float*>(p.host_data());
  std::fill(host, host + kN, 1.0f);
  gk::Tensor y;
  auto e = ctx->capture([&] { y = axpy(p, 2); }).instantiate();
  std::fill(host, host + kN, 4.0f);
  e.launch(*ctx);
  EXPECT_TRUE(all(y, 9));
}

TEST_P(ApiGraph, reading_back_inside_is_refused_and_the_capture_goes_on) {
  auto x = filled(1);
  std::vector<float> out(kN);
  gk::Tensor y;
  auto printing = ctx->compile("p", "fn p(x) { print(x) }\nfn c(x: f32[n]) = if sum(x) > 0 { 1 } else { 2 }");
  auto g = ctx->capture([&] {
    EXPECT_EQ(code_of(x.try_to_host(*ctx, out.data(), x.size_bytes())), "E0703");
    EXPECT_EQ(code_of(ctx->try_synchronize()), "E0703");
    EXPECT_EQ(thrown([&] { mod.fn<float(gk::Tensor)>("total")(x); }), "E0703");
    EXPECT_EQ(thrown([&] { printing.function("p").call({x}); }), "E0703");
    EXPECT_EQ(code_of(x.try_to_dlpack(*ctx)), "E0703");
    EXPECT_THROW(ctx->synchronize(), gk::CaptureError);
    y = axpy(x, 1);
  });
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(y, 2));
}

TEST_P(ApiGraph, launching_updating_and_instantiating_inside) {
  auto x = filled(0);
  auto inner = ctx->capture([&] { bump(x, 1); });
  auto e = inner.instantiate();
  auto g = ctx->capture([&] {
    EXPECT_EQ(code_of(e.try_launch(*ctx)), "E0703");
    EXPECT_EQ(code_of(e.try_upload(*ctx)), "E0703");
    EXPECT_EQ(code_of(e.node(inner.nodes()[0]).try_update(bump, {x, 2.0f})), "E0703");
    bump(x, 10);
  });
  EXPECT_TRUE(all(x, 0));
  e.launch(*ctx);
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 11));
}

TEST_P(ApiGraph, captures_do_not_nest_and_the_outer_one_is_unharmed) {
  auto x = filled(0);
  auto g = ctx->capture([&] {
    EXPECT_EQ(code_of(ctx->try_capture([&] { bump(x, 100); })), "E0718");
    EXPECT_EQ(thrown([&] { ctx->capture([&] { bump(x, 100); }); }), "E0718");
    EXPECT_TRUE(ctx->is_capturing());
    bump(x, 1);
  });
  EXPECT_FALSE(ctx->is_capturing());
  EXPECT_EQ(g.num_nodes(), 1);
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

struct Own : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST_P(ApiGraph, exceptions_end_the_capture_and_go_on_as_they_were) {
  auto x = filled(0);
  const auto leases = x.leases();
  const auto fail = [&] {
    bump(x, 1);
    throw Own("mine");
  };
  EXPECT_THROW(ctx->capture(fail), Own);
  EXPECT_THROW((void)ctx->try_capture(fail), Own) << "only gk's errors are returned";
  EXPECT_THROW(ctx->capture(fail, {.quiet = true}), Own);
  EXPECT_THROW(ctx->capture([&] { throw 42; }), int);
  EXPECT_FALSE(ctx->is_capturing());
  EXPECT_EQ(x.leases(), leases);
  bump(x, 1);
  EXPECT_TRUE(all(x, 1)) << "eager again";
  auto r = ctx->try_capture([&] { axpy(ctx->zeros(gk::f64, {2}), 1); });
  EXPECT_EQ(code_of(r), "E0211");
}

TEST_P(ApiGraph, quiet_captures_give_no_graph_for_capture_errors_alone) {
  auto x = filled(0);
  auto none = ctx->capture([&] { ctx->synchronize(); }, {.quiet = true});
  EXPECT_FALSE(none);
  auto tried = ctx->try_capture([&] { (void)values(x); }, {.quiet = true});
  ASSERT_TRUE(tried);
  EXPECT_FALSE(*tried);
  EXPECT_EQ(thrown([&] { ctx->capture([&] { axpy(ctx->zeros(gk::f64, {2}), 1); }, {.quiet = true}); }),
            "E0211");
  auto some = ctx->capture([&] { bump(x, 1); }, {.quiet = true});
  EXPECT_TRUE(some);
  some.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiGraph, compiling_inside_a_capture) {
  auto x = filled(0);
  gk::Tensor y;
  auto g = ctx->capture([&] {
    auto m = ctx->compile("late", "fn late(x: f32[n]) = x * 3 + 4");
    y = m.fn<gk::Tensor(gk::Tensor)>("late")(x);
  });
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(y, 4));
}

TEST_P(ApiGraph, conditions_on_device_values_are_decided_at_each_launch) {
  auto m = ctx->compile("m", R"(
fn grow(x: f32[n]) { var y = x; while sum(y) < 5000 { y = y * 2 }; y }
fn flip(mut x: f32[n]) { if sum(x) > 0 { x .= -x } else { x .= 1 - x } }
)");
  auto grow = m.fn<gk::Tensor(gk::Tensor)>("grow");
  auto flip = m.fn<void(gk::Tensor&)>("flip");
  auto x = filled(1), z = filled(3);
  auto eager = values(grow(x));
  EXPECT_EQ(eager[0], 8);
  gk::Tensor y;
  auto e = ctx->capture([&] {
                y = grow(x);
                flip(z);
              })
               .instantiate();
  e.launch(*ctx);
  EXPECT_EQ(values(y), eager);
  EXPECT_TRUE(all(z, -3));
  x.copy_from(*ctx, filled(3));
  e.launch(*ctx);
  EXPECT_TRUE(all(y, 6));
  EXPECT_TRUE(all(z, 4));
}

// ---- named nodes

TEST_P(ApiGraph, a_diamond_of_named_nodes) {
  auto x = filled(1), y = filled(1), z = filled(0);
  auto g = ctx->graph("diamond");
  gk::Node a = g.add("a", {.after = {{}}}, [&] { bump(x, 1); });
  gk::Node b = g.add("b", {.after = {{}}}, [&] { bump(y, 0); });
  gk::Node c = g.add("c", {.after = {{a, b}}}, [&] { combine(z, x, y); });
  EXPECT_EQ(g.num_nodes(), 3);
  EXPECT_EQ(c.name(), "c");
  EXPECT_EQ(g.node("b").name(), "b");
  EXPECT_TRUE(all(z, 0));
  auto e = g.instantiate();
  e.launch(*ctx);
  EXPECT_TRUE(all(z, 5));
  auto text = g.print(), dot = g.dot();
  for (const char* name : {"a", "b", "c"}) EXPECT_NE(text.find(name), std::string::npos) << text;
  EXPECT_NE(dot.find("digraph"), std::string::npos);
}

TEST_P(ApiGraph, a_failed_addition_leaves_the_graph_as_it_was) {
  auto x = filled(0), y = filled(0);
  auto g = ctx->graph();
  auto a = g.add("a", [&] { bump(x, 1); });
  const auto text = g.print();
  const auto leases = g.num_leases();
  EXPECT_EQ(code_of(g.try_add("a", {}, [&] { bump(x, 2); })), "E0408");
  EXPECT_EQ(code_of(g.try_add("b", {.after = {{}}}, [&] { bump(x, 2); })), "E0701");
  EXPECT_EQ(code_of(g.try_add("b", {},
                              [&] {
                                bump(y, 2);
                                ctx->synchronize();
                              })),
            "E0703");
  EXPECT_EQ(code_of(g.try_add("", {}, [&] { bump(y, 2); })), "E0512");
  EXPECT_EQ(code_of(g.try_add("b", {}, {})), "E0512");
  EXPECT_EQ(thrown([&] { g.add("b", [&] { g.instantiate(); }); }), "E0703");
  EXPECT_EQ(thrown([&] { g.add("b", [&] { g.add("c", [&] { bump(y, 2); }); }); }), "E0718");
  EXPECT_THROW(g.add("b",
                     [&] {
                       bump(y, 2);
                       throw Own("mine");
                     }),
               Own);
  auto other = ctx->graph();
  auto foreign = other.add("f", [&] { bump(y, 1); });
  EXPECT_EQ(code_of(g.try_add("b", {.after = {{foreign}}}, [&] { bump(y, 2); })), "E0717");
  EXPECT_EQ(code_of(g.try_add("b", {.after = {{gk::Node()}}}, [&] { bump(y, 2); })), "E0717");
  EXPECT_EQ(g.print(), text);
  EXPECT_EQ(g.num_leases(), leases);
  EXPECT_FALSE(ctx->is_capturing());
  g.add("b", {.after = {{a}}}, [&] { bump(x, 10); });
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 11));
  EXPECT_TRUE(all(y, 0));
}

TEST_P(ApiGraph, executables_do_not_change_when_their_graph_grows) {
  auto x = filled(0);
  auto g = ctx->graph();
  g.add("a", [&] { bump(x, 1); });
  auto e = g.instantiate();
  g.add("b", [&] { bump(x, 10); });
  e.launch(*ctx);
  EXPECT_TRUE(all(x, 1));
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 12));
  EXPECT_EQ(code_of(e.try_node("b")), "E0704");
}

TEST_P(ApiGraph, nodes_inside_one_capture) {
  auto x = filled(0), z = filled(0);
  auto g = ctx->capture([&] {
    auto a = ctx->node("a", [&] { bump(x, 2); });
    ctx->node("b", {.after = {{a}}}, [&] { combine(z, x, x); });
    EXPECT_EQ(code_of(ctx->try_node("a", {}, [&] { bump(x, 2); })), "E0408");
  });
  EXPECT_EQ(g.num_nodes(), 2);
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(z, 6));
  EXPECT_EQ(code_of(ctx->try_node("c", {}, [] {})), "E0703") << "no capture is open";
}

// ---- updates

TEST_P(ApiGraph, one_node_is_retargeted) {
  auto x = filled(2), y = filled(1), z = filled(0), z2 = filled(0);
  auto g = ctx->graph();
  g.add("c", [&] { combine(z, x, y); });
  auto e = g.instantiate();
  e.launch(*ctx);
  EXPECT_TRUE(all(z, 5));
  bump(z, 1);
  e.node("c").update(mod.kernel("combine"), {z2, x, x});
  EXPECT_NE(e.last_update().rung, gk::UpdateRung::None);
  e.launch(*ctx);
  EXPECT_TRUE(all(z, 6));
  EXPECT_TRUE(all(z2, 6));
  e.node("c").update(*ctx, [&] { combine(z, y, y); });
  e.launch(*ctx);
  EXPECT_TRUE(all(z, 2));
  e.node(g.node("c")).update(combine, {z, x, y}, {.grid = 2, .block = 128});
  e.launch(*ctx);
  EXPECT_TRUE(all(z, 5));
}

TEST_P(ApiGraph, what_the_old_binding_alone_used_is_released) {
  auto x = filled(1);
  auto g = ctx->graph();
  g.add("a", [&] { bump(x, 1); });
  auto e = g.instantiate();
  g.close();
  EXPECT_EQ(x.leases(), 1);
  auto y = filled(5);
  e.node("a").update(bump, {y, 1.0f});
  EXPECT_EQ(x.leases(), 0);
  e.launch(*ctx);
  EXPECT_TRUE(all(x, 1));
  EXPECT_TRUE(all(y, 6));
}

TEST_P(ApiGraph, updates_that_are_refused_change_nothing) {
  auto x = filled(1), y = filled(1), z = filled(0);
  auto g = ctx->graph();
  g.add("a", [&] {
    bump(x, 1);
    bump(x, 1);
  });
  g.add("b", {.after = {{}}}, [&] { combine(z, y, y); });
  auto e = g.instantiate();
  EXPECT_EQ(code_of(e.node("a").try_update(bump, {x, 1.0f})), "E0705") << "two operations";
  EXPECT_EQ(code_of(e.node("b").try_update(*ctx,
                                           [&] {
                                             combine(z, y, y);
                                             combine(z, y, y);
                                           })),
            "E0705");
  EXPECT_EQ(code_of(e.node("b").try_update(*ctx, [] {})), "E0705");
  EXPECT_EQ(code_of(e.node("b").try_update(*ctx, [&] { ctx->synchronize(); })), "E0705");
  EXPECT_EQ(code_of(e.node("b").try_update(*ctx, [&] { x.copy_from(*ctx, values(x).data(), 4); })), "E0705");
  EXPECT_EQ(code_of(e.node("b").try_update(combine, {z, x, y})), "E0705")
      << "b reads what a writes, unordered";
  EXPECT_EQ(code_of(e.node("b").try_update(combine, {ctx->zeros(gk::f64, {kN}), y, y})), "E0211");
  EXPECT_EQ(code_of(e.node("b").try_update(combine, {z, z, y})), "E0404");
  EXPECT_THROW(e.node("b").update(*ctx, [] { throw Own("mine"); }), Own);
  EXPECT_EQ(code_of(e.try_node("nothing")), "E0704");
  auto other = ctx->graph();
  auto foreign = other.add("b", [&] { bump(y, 1); });
  EXPECT_EQ(code_of(e.try_node(foreign)), "E0717");
  EXPECT_EQ(code_of(e.try_node(gk::Node())), "E0717");
  e.launch(*ctx);
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(z, 2));
}

TEST_P(ApiGraph, all_nodes_are_updated_from_another_graph) {
  auto a = filled(0), b = filled(0);
  auto g1 = ctx->capture([&] { bump(a, 1); });
  auto e = g1.instantiate();
  e.update(ctx->capture([&] { bump(b, 2); }));
  e.launch(*ctx);
  EXPECT_TRUE(all(a, 0));
  EXPECT_TRUE(all(b, 2));
  auto longer = ctx->capture([&] {
    bump(a, 1);
    bump(b, 1);
  });
  EXPECT_EQ(code_of(e.try_update(longer)), "E0709");
  e.launch(*ctx);
  EXPECT_TRUE(all(b, 4));
  longer.close();
  EXPECT_EQ(code_of(e.try_update(longer)), "E0716");
}

TEST_P(ApiGraph, arrays_are_rebound_everywhere) {
  auto x = filled(2), y = filled(1), z = filled(0);
  auto e = ctx->capture([&] {
                combine(z, x, y);
                bump(z, 1);
              })
               .instantiate();
  auto x2 = filled(3), z2 = filled(0);
  e.rebind({{x, x2}, {z, z2}});
  e.launch(*ctx);
  EXPECT_TRUE(all(z, 0));
  EXPECT_TRUE(all(z2, 11));
  EXPECT_EQ(code_of(e.try_rebind({{x2, ctx->zeros(gk::f64, {kN})}})), "E0706");
  EXPECT_EQ(code_of(e.try_rebind({{x2, filled(0, 3)}})), "E0706");
  EXPECT_EQ(code_of(e.try_rebind({{x2, ctx->empty(gk::f32, {kN}, gk::MemoryPlace::Pinned)}})), "E0706");
  EXPECT_EQ(code_of(e.try_rebind({{filled(1), x}})), "E0706") << "no node uses it";
  EXPECT_EQ(code_of(e.try_rebind({{x2, z2}})), "E0706") << "used by the graph already";
  auto freed = filled(1);
  freed.free();
  EXPECT_EQ(code_of(e.try_rebind({{x2, freed}})), "E0716");
  EXPECT_EQ(code_of(e.try_rebind({{x2, gk::Tensor()}})), "E0716");
  z2.copy_from(*ctx, z);
  e.launch(*ctx);
  EXPECT_TRUE(all(z2, 11));
}

// ---- misuse

TEST_P(ApiGraph, closed_things_are_refused) {
  auto x = filled(0);
  auto g = ctx->capture([&] { bump(x, 1); });
  auto e = g.instantiate();
  auto node = e.node(g.nodes()[0]);
  e.close();
  EXPECT_EQ(code_of(e.try_launch(*ctx)), "E0716");
  EXPECT_EQ(code_of(e.try_upload(*ctx)), "E0716");
  EXPECT_EQ(code_of(e.try_node("a")), "E0716");
  EXPECT_EQ(code_of(node.try_update(bump, {x, 1.0f})), "E0716");
  EXPECT_EQ(code_of(e.try_rebind({{x, x}})), "E0716");
  EXPECT_EQ(code_of(e.try_update(g)), "E0716");
  EXPECT_EQ(e.num_leases(), 0);
  EXPECT_EQ(code_of(gk::Exec().try_launch(*ctx)), "E0716");
  g.close();
  g.close();
  EXPECT_EQ(code_of(g.try_instantiate()), "E0716");
  EXPECT_EQ(code_of(g.try_add("n", {}, [] {})), "E0716");
  EXPECT_EQ(g.num_nodes(), 0);
  EXPECT_EQ(code_of(ctx->try_capture({})), "E0512");
}

TEST_P(ApiGraph, objects_of_another_engine_are_refused) {
  gk::Engine other({.device = GetParam(), .use_cache = false});
  gk::Context theirs(other);
  auto x = filled(0);
  auto g = ctx->capture([&] { bump(x, 1); });
  auto e = g.instantiate();
  EXPECT_EQ(code_of(e.try_launch(theirs)), "E0717");
  auto tx = theirs.full(gk::f32, {kN}, 1);
  EXPECT_EQ(code_of(e.try_rebind({{x, tx}})), "E0717");
  auto tm = theirs.compile("test.gk", kText);
  auto tg = theirs.capture([&] { tm.function("bump").call({tx, 1.0f}); });
  EXPECT_EQ(code_of(e.try_update(tg)), "E0717");
  EXPECT_EQ(code_of(e.node(g.nodes()[0]).try_update(tm.function("bump"), {tx, 1.0f})), "E0717");
  EXPECT_EQ(code_of(e.node(g.nodes()[0]).try_update(theirs, [] {})), "E0717");
  e.launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiGraph, a_second_thread_inside_a_capture_is_refused) {
  auto x = filled(0);
  auto g = ctx->capture([&] {
    std::thread([&] {
      EXPECT_EQ(code_of(ctx->try_empty(gk::f32, {1})), "E0710");
      EXPECT_EQ(thrown([&] { bump(x, 100); }), "E0710");
    }).join();
    bump(x, 1);
  });
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiGraph, others_work_undisturbed_while_a_graph_is_made) {
  auto x = filled(1);
  gk::Tensor y;
  auto g = ctx->capture([&] {
    y = axpy(x, 1);
    std::thread([&] {
      gk::Context c(*engine);
      auto m = c.compile("test.gk", kText);
      auto v = m.fn<gk::Tensor(gk::Tensor, float)>("axpy")(x, 4).to_host<float>(c);
      EXPECT_EQ(v[0], 5);
      auto t = c.full(gk::f32, {1 << 16}, 2);
      t.free();
      c.synchronize();
    }).join();
  });
  EXPECT_EQ(g.num_nodes(), 1);
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(y, 2));
}

TEST_P(ApiGraph, threads_with_a_token_take_part) {
  auto x = filled(0);
  gk::CaptureToken late;
  std::optional<gk::Context> stayed;
  auto g = ctx->capture([&] {
    bump(x, 1);
    std::vector<std::thread> threads;
    auto token = ctx->capture_token();
    late = token;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, token] {
        gk::Context worker(token);
        EXPECT_TRUE(worker.is_capturing());
        auto theirs = worker.compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
        for (int i = 0; i < 5; ++i) theirs(x, 1);
        EXPECT_EQ(code_of(worker.try_synchronize()), "E0703");
        EXPECT_EQ(code_of(worker.try_capture([] {})), "E0718");
      });
    for (auto& t : threads) t.join();
    bump(x, 100);
  });
  EXPECT_TRUE(all(x, 0));
  EXPECT_EQ(g.num_nodes(), 22);
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 121));
  EXPECT_EQ(code_of(gk::Context::open(late)), "E0713");
  EXPECT_EQ(code_of(gk::Context::open(gk::CaptureToken())), "E0716");
  EXPECT_EQ(code_of(ctx->try_capture_token()), "E0703");
}

TEST_P(ApiGraph, threads_that_are_not_done_spoil_the_capture) {
  auto x = filled(0);
  std::optional<gk::Context> worker;
  auto r = ctx->try_capture([&] {
    auto token = ctx->capture_token();
    std::thread([&] { worker.emplace(token); }).join();
    bump(x, 1);
  });
  EXPECT_EQ(code_of(r), "E0714");
  EXPECT_FALSE(ctx->is_capturing());
  auto theirs = worker->compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
  EXPECT_EQ(thrown([&] { theirs(x, 1); }), "E0713") << "a late submission does not run";
  worker->close();
  bump(x, 2);
  EXPECT_TRUE(all(x, 2));
}

TEST_P(ApiGraph, reclaim_inside_is_refused) {
  auto x = filled(0);
  auto g = ctx->capture([&] {
    EXPECT_EQ(code_of(engine->try_reclaim()), "E0708");
    bump(x, 1);
  });
  engine->reclaim();
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiGraph, several_threads_launch_in_turn) {
  auto a = filled(1), b = filled(0);
  auto e = ctx->capture([&] {
                bump(a, 1);
                mod.fn<void(gk::Tensor&, float)>("bump")(b, 1);
              })
               .instantiate();
  gk::Context other(*engine);
  for (int round = 0; round < 10; ++round) {
    gk::Context& c = round % 2 ? other : *ctx;
    std::thread([&] { e.launch(c); }).join();
  }
  EXPECT_TRUE(all(a, 11));
  EXPECT_TRUE(all(b, 10));
}

TEST_P(ApiGraph, graphs_outlive_their_context) {
  gk::Exec e;
  auto x = filled(0);
  {
    gk::Context c(*engine);
    auto f = c.compile("test.gk", kText).fn<void(gk::Tensor&, float)>("bump");
    e = c.capture([&] { f(x, 1); }).instantiate();
  }
  e.launch(*ctx, 2);
  EXPECT_TRUE(all(x, 2));
}

TEST_P(ApiGraph, host_calls_are_made_at_every_launch) {
  std::atomic<int> calls{0};
  auto x = filled(0);
  auto g = ctx->capture([&] {
    bump(x, 1);
    ctx->host_call([&] { ++calls; });
  });
  EXPECT_EQ(calls, 0);
  auto e = g.instantiate();
  e.launch(*ctx, 3);
  ctx->synchronize();
  EXPECT_EQ(calls, 3);
}

TEST_P(ApiGraph, memory_freed_inside_a_capture_is_not_handed_on) {
  auto x = filled(3);
  gk::Tensor y;
  auto g = ctx->capture([&] {
    auto t = axpy(x, 1);
    y = axpy(t, 1);
    t.free();
    auto u = axpy(x, 10);
    y = axpy(u, 1);
    EXPECT_FALSE(y.is_freed());
  });
  g.instantiate().launch(*ctx);
  EXPECT_TRUE(all(y, 32));
}

TEST_P(ApiGraph, arrays_of_the_host_programs_work_are_kept) {
  auto x = filled(0);
  ctx->use(x);
  EXPECT_EQ(x.leases(), 0) << "outside a capture it is an order alone";
  auto g = ctx->capture([&] {
    ctx->use(x);
    (void)ctx->stream();
  });
  EXPECT_EQ(x.leases(), 1);
  auto e = g.instantiate();
  EXPECT_EQ(x.leases(), 2);
  e.launch(*ctx);
  g.close();
  e.close();
  EXPECT_EQ(x.leases(), 0);
  x.free();
  EXPECT_EQ(code_of(ctx->try_use(x)), "E0716");
}

TEST_P(ApiGraph, faults_in_launches_come_at_the_next_wait) {
  auto pick = mod.fn<gk::Tensor(gk::Tensor, gk::Tensor)>("pick");
  auto x = filled(1, 4), i = ctx->from_host(std::vector<int32_t>{0, 9}, {2});
  gk::Tensor y;
  auto e = ctx->capture([&] { y = pick(x, i); }).instantiate();
  e.launch(*ctx);
  EXPECT_EQ(code_of(ctx->try_synchronize()), "E0801");
  EXPECT_EQ(code_of(ctx->try_synchronize()), "");
}

GK_API_DEVICES(ApiGraph);

}  // namespace
}  // namespace gk_test
