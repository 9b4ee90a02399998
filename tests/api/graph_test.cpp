// Captures and launches: what is recorded, what is kept, what is refused, what is left after an error.
#include <atomic>
#include <thread>

#include "tests/api/graph_fixture.h"

namespace gk_test {
namespace {

class ApiGraph : public GraphTest {};

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

GK_API_DEVICES(ApiGraph);

}  // namespace
}  // namespace gk_test
