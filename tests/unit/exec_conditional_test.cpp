// Conditional steps: branches and loops on the device, the same eagerly and in a graph, patched inside.
#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

using program::Body;
using program::Step;
Arg f(float v) { return value(Scalar::of_float(v)); }

class ExecConditional : public RuntimeTest {
 protected:
  // The condition lies in the arena, 256 bytes; temporaries after it.
  Ref flag() const { return arena(0, 1); }
  static constexpr int64_t kFlags = 4096;

  /// x += step; t = 2 by way of the body's arena; y += t; flag = x < limit
  Body counting() const {
    Builder b = builder("counting");
    b.slots(2).slot_of("flag", 1).scalars({1, 10}).temporaries(1);
    b.add(b.array(0), scalar_slot(0)).fill(b.temporary(0), f(2)).axpy(b.array(1), b.temporary(0), f(1));
    b.below(slot(2, 1), b.array(0), scalar_slot(1));
    return {b.build(), {slot(0, kN * 4), slot(1, kN * 4), flag()}, {0, 1}, kFlags};
  }
  /// while x < limit { x += step; y += 2 }
  std::shared_ptr<const program::Program> loop() const {
    Builder b = builder("loop");
    b.slots(2).scalars({1, 10}).temporaries(2);
    b.below(flag(), b.array(0), scalar_slot(1));
    b.conditional(Step::Kind::While, flag(), {counting()}, {b.array(0), b.array(1), arena(0, 2 * kFlags)});
    b.add(b.array(1), f(100));
    return b.build();
  }
  Body adding(float v) const {
    Builder b = builder("adding");
    b.slots(1).add(b.array(0), f(v));
    return {b.build(), {slot(0, kN * 4)}, {}, 0};
  }
  /// if x < limit { x += 1 } else { x += 1000 }
  std::shared_ptr<const program::Program> branch() const {
    Builder b = builder("branch");
    b.slots(1).scalars({5}).temporaries(1);
    b.below(flag(), b.array(0), scalar_slot(0));
    b.conditional(Step::Kind::If, flag(), {adding(1), adding(1000)}, {b.array(0)});
    return b.build();
  }
  std::shared_ptr<exec::Executable> make(const std::shared_ptr<exec::Loaded>& p, exec::Bindings b) {
    return need(need(exec::Graph::create(*rt, {{"", p, std::move(b), {}, {}}}, "g"))->instantiate());
  }
};

TEST_P(ExecConditional, a_loop_runs_as_often_eagerly_and_in_a_graph) {
  const auto p = load(loop());
  const auto x = block(0), y = block(0), u = block(0), v = block(0);
  GK_OK(exec::run(*rt, p, bind({x, y})));
  EXPECT_TRUE(all(x, 10));
  EXPECT_TRUE(all(y, 120));
  const auto e = make(p, bind({u, v}));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(u, 10));
  EXPECT_TRUE(all(v, 120));
  GK_OK(e->launch(*rt));  // no turn at all
  EXPECT_TRUE(all(u, 10));
  EXPECT_TRUE(all(v, 220));
}

TEST_P(ExecConditional, both_branches) {
  const auto p = load(branch());
  const auto x = block(4), u = block(4);
  const auto e = make(p, bind({u}));
  for (const float expected : {5.0F, 1005.0F, 2005.0F}) {
    GK_OK(exec::run(*rt, p, bind({x})));
    GK_OK(e->launch(*rt));
    EXPECT_TRUE(all(x, expected));
    EXPECT_TRUE(all(u, expected));
  }
}

TEST_P(ExecConditional, arrays_and_scalars_inside_are_patched) {
  const auto p = load(loop());
  const auto x = block(0), y = block(0), z = block(0), w = block(0);
  const auto e = make(p, bind({x, y}));
  const int64_t nodes = e->num_driver_nodes();
  EXPECT_GE(nodes, 7);  // three outside, four inside
  GK_OK(e->launch(*rt));
  GK_OK(e->update(0, p, bind({z, y}, {2, 9})));
  EXPECT_EQ(e->last_update(), exec::UpdateRung::Patched) << e->last_update_reason();
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 10));
  EXPECT_TRUE(all(z, 10));
  EXPECT_TRUE(all(y, 120 + 110));
  const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{y, 0}, {w, 0}};
  GK_OK(e->rebind({&pair, 1}));
  EXPECT_EQ(e->last_update(), exec::UpdateRung::Patched);
  const auto again = block(5);
  GK_OK(e->update(0, p, bind({again, w}, {1, 7})));
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(again, 7));
  EXPECT_TRUE(all(w, 104));
  EXPECT_TRUE(all(y, 230));
  EXPECT_EQ(e->num_driver_nodes(), nodes);
}

// for turn in 0..times { x += turn; y += step }, and x += 100
TEST_P(ExecConditional, a_repetition_knows_its_turn_and_is_patched) {
  const auto repeated = [&](int64_t times) {
    Builder b = builder("body");
    b.slots(2).scalars({0, 1}).add(b.array(0), scalar_slot(0)).add(b.array(1), scalar_slot(1));
    Builder around = builder("repeated");
    around.slots(2).scalars({3});
    around.repeat(times, {b.build(), {slot(0, kN * 4), slot(1, kN * 4)}, {Body::kTurn, 0}, 0},
                  {around.array(0), around.array(1)});
    around.add(around.array(0), f(100));
    return load(around.build());
  };
  const auto p = repeated(5);
  const auto x = block(0), y = block(0), u = block(0), v = block(0);
  GK_OK(exec::run(*rt, p, bind({x, y})));
  EXPECT_TRUE(all(x, 110));
  EXPECT_TRUE(all(y, 15));
  const auto e = make(p, bind({x, y}));
  EXPECT_EQ(e->num_driver_nodes(), 11);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 220));
  GK_OK(e->update(0, p, bind({u, v}, {7})));
  EXPECT_EQ(e->last_update(), exec::UpdateRung::Patched) << e->last_update_reason();
  GK_OK(e->launch(*rt, 2));
  EXPECT_TRUE(all(u, 220));
  EXPECT_TRUE(all(v, 70));
  EXPECT_TRUE(all(x, 220));
  const std::pair<exec::SlotBinding, exec::SlotBinding> pair{{v, 0}, {y, 0}};
  GK_OK(e->rebind({&pair, 1}));
  EXPECT_EQ(e->last_update(), exec::UpdateRung::Patched);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(y, 30 + 35));
  // Another number of turns is another number of nodes.
  GK_OK(e->update(0, repeated(2), bind({u, v}, {1})));
  EXPECT_GT(e->last_update(), exec::UpdateRung::Patched);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(u, 330 + 101));
  EXPECT_TRUE(all(v, 72));
  const auto none = block(1), other = block(2);
  GK_OK(exec::run(*rt, repeated(0), bind({none, other})));
  EXPECT_TRUE(all(none, 101));
  EXPECT_TRUE(all(other, 2));
}

TEST_P(ExecConditional, another_condition_takes_a_lower_rung) {
  Builder b = builder("slots");
  b.slots(1).slot_of("flag", 1);
  b.below(slot(1, 1), b.array(0), f(3));
  b.conditional(Step::Kind::If, slot(1, 1), {adding(1)}, {b.array(0)});
  const auto p = load(b.build());
  const auto x = block(0), one = block(0, 1), two = block(0, 1);
  const auto e = make(p, bind({x, one}));
  GK_OK(e->update(0, p, bind({x, two})));
  EXPECT_GT(e->last_update(), exec::UpdateRung::Patched);
  EXPECT_TRUE(
      e->last_update_reason().starts_with("operation 2 is a branch, whose condition cannot be patched"))
      << e->last_update_reason();
  GK_OK(e->launch(*rt, 9));
  EXPECT_TRUE(all(x, 3));
  // Executables have arenas, and with them conditions, of their own.
  const auto q = load(branch());
  const auto u = block(4);
  const auto g = need(exec::Graph::create(*rt, {{"", q, bind({u}), {}, {}}}, "g"));
  const auto e1 = need(g->instantiate()), e2 = need(g->instantiate());
  GK_OK(e1->launch(*rt));
  GK_OK(e2->launch(*rt));
  EXPECT_TRUE(all(u, 1005));
}

TEST_P(ExecConditional, nested_and_recorded) {
  // while x < 6 { x += 1; if x < 4 { y += 1 } }
  Builder inner = builder("inner");
  inner.slots(2).slot_of("go", 1).temporaries(1);
  inner.add(inner.array(0), f(1)).below(arena(0, 1), inner.array(0), f(4));
  Body grow = adding(1);
  grow.slots = {slot(1, kN * 4)};
  inner.conditional(Step::Kind::If, arena(0, 1), {grow}, {inner.array(1)});
  inner.below(slot(2, 1), inner.array(0), f(6));
  Builder b = builder("outer");
  b.slots(2).temporaries(2).below(flag(), b.array(0), f(6));
  b.conditional(Step::Kind::While, flag(),
                {{inner.build(), {slot(0, kN * 4), slot(1, kN * 4), flag()}, {}, kFlags}},
                {b.array(0), b.array(1), arena(0, 2 * kFlags)});
  const auto p = load(b.build());
  const auto x = block(0), y = block(0);
  const auto r = need(exec::Recording::begin(*rt, {.name = "r"}));
  GK_OK(exec::run(*rt, p, bind({x, y})));
  const auto g = need(r->finish());
  EXPECT_TRUE(all(x, 0));
  const auto e = need(g->instantiate());
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 6));
  EXPECT_TRUE(all(y, 3));
  EXPECT_NE(g->print().find("    kernel below\n    while\n      kernel add\n      kernel below\n      if\n"
                            "        kernel add\n      kernel below\n"),
            std::string::npos)
      << g->print();
}

TEST_P(ExecConditional, faults_inside_find_their_place) {
  Builder body = builder("body");
  body.slots(0).fault(9, 5);
  Builder b = builder("outer");
  b.slots(1).temporaries(1).below(flag(), b.array(0), f(1));
  b.conditional(Step::Kind::If, flag(), {{body.build(), {}, {}, 0}}, {});
  const auto x = block(0);
  const auto e = make(load(b.build()), bind({x}));
  GK_OK(e->launch(*rt));
  const auto r = rt->synchronize();
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0801");
  EXPECT_EQ(r.error().span.begin, 10U);
}

TEST_P(ExecConditional, empty_branches_are_no_step_and_endless_loops_no_program) {
  Builder nothing = builder("nothing");
  Builder b = builder("empty");
  b.slots(1).temporaries(1).below(flag(), b.array(0), f(1));
  b.conditional(Step::Kind::If, flag(), {{nothing.slots(0).build(), {}, {}, 0}}, {});
  const auto e = make(load(b.build()), bind({block(0)}));
  EXPECT_EQ(e->num_driver_nodes(), 1);
  GK_OK(e->launch(*rt));
  const auto refused = [&](Builder& broken) {
    const auto r = exec::Loaded::create(*rt, broken.build());
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().code, "E0902");
  };
  const auto conditional = [&](Step::Kind kind, Ref condition, std::vector<Body> bodies) {
    Builder c = builder("c");
    c.slots(1).temporaries(1).conditional(kind, condition, std::move(bodies), {});
    refused(c);
  };
  conditional(Step::Kind::While, flag(), {{builder().slots(0).build(), {}, {}, 0}});
  conditional(Step::Kind::If, flag(), {});
  conditional(Step::Kind::If, flag(), {adding(1), adding(2), adding(3)});
  conditional(Step::Kind::If, arena(0, 4), {adding(1)});
  Body small = adding(1);
  small.slots = {slot(0, 4)};
  conditional(Step::Kind::If, flag(), {small});
  Body far = counting();
  far.arena_offset_bytes = kFlags;
  conditional(Step::Kind::If, flag(), {far});
  Body missing = adding(1);
  missing.slots.clear();
  conditional(Step::Kind::If, flag(), {missing});
  Body null;
  conditional(Step::Kind::If, flag(), {null});
}

TEST(ExecPlanConditional, text_is_exact) {
  auto device = need(hal::open("host", {}));
  Builder inner(*device, "inner", 8);
  inner.slots(1).scalars({1}).add(inner.array(0), scalar_slot(0));
  Builder b(*device, "outer", 8);
  b.slots(1).scalars({1, 2}).temporaries(1);
  b.conditional(Step::Kind::While, arena(0, 1), {{inner.build(), {slot(0, 32)}, {1}, 256}}, {b.array(0)});
  b.conditional(Step::Kind::If, arena(0, 1),
                {{inner.build(), {slot(0, 32)}, {0}, 0}, {inner.build(), {slot(0, 32)}, {1}, 0}},
                {b.array(0)});
  const std::string text = program::print(*b.build());
  EXPECT_EQ(text.substr(text.find("  step 0")),
            "  step 0 while arena[0..1) reads arena[0..1), x0 writes x0\n"
            "    do steps=1 arena=0 at 256\n"
            "      slot 0 x0: f32[8] = x0\n"
            "      scalar 0 = scalar 1 around\n"
            "      step 0 launch add items=8 grain=64 (x0, scalar 0: f32, 8: i64) reads x0 writes x0\n"
            "  step 1 if arena[0..1) reads arena[0..1), x0 writes x0\n"
            "    then steps=1 arena=0 at 0\n"
            "      slot 0 x0: f32[8] = x0\n"
            "      scalar 0 = scalar 0 around\n"
            "      step 0 launch add items=8 grain=64 (x0, scalar 0: f32, 8: i64) reads x0 writes x0\n"
            "    else steps=1 arena=0 at 0\n"
            "      slot 0 x0: f32[8] = x0\n"
            "      scalar 0 = scalar 1 around\n"
            "      step 0 launch add items=8 grain=64 (x0, scalar 0: f32, 8: i64) reads x0 writes x0\n");
}

GK_ALL_DEVICES(ExecConditional);

}  // namespace
}  // namespace gk::test
