// Named nodes and their order; updates and rebinding.

#include "tests/api/graph_fixture.h"

namespace gk_test {
namespace {

class ApiNodes : public GraphTest {};

// ---- named nodes

TEST_P(ApiNodes, a_diamond_of_named_nodes) {
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

TEST_P(ApiNodes, a_failed_addition_leaves_the_graph_as_it_was) {
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

TEST_P(ApiNodes, executables_do_not_change_when_their_graph_grows) {
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

TEST_P(ApiNodes, nodes_inside_one_capture) {
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

TEST_P(ApiNodes, one_node_is_retargeted) {
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

TEST_P(ApiNodes, what_the_old_binding_alone_used_is_released) {
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

TEST_P(ApiNodes, updates_that_are_refused_change_nothing) {
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

TEST_P(ApiNodes, all_nodes_are_updated_from_another_graph) {
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

TEST_P(ApiNodes, arrays_are_rebound_everywhere) {
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

GK_API_DEVICES(ApiNodes);

}  // namespace
}  // namespace gk_test
