// What the passes do inside regions, and how the bodies that regions become use memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/passes/cse.h"
#include "compiler/passes/dce.h"
#include "compiler/passes/nan_check.h"
#include "compiler/passes/regions.h"
#include "compiler/passes/simplify.h"
#include "tests/unit/passes_support.h"

namespace gk::passes_test {
namespace {

using passes::Schedule;
using program::Step;
using Values = std::vector<ValueId>;

constexpr int64_t kN = 100;
ir::Type array() { return ir::Type::of(DType::F32, {kN}); }
ir::Type flag() { return ir::Type::of(DType::Bool, {}); }

Schedule plan(const Builder& b) {
  auto s = passes::run_pipeline(b.m, {});
  EXPECT_TRUE(s) << (s ? "" : s.error().message);
  EXPECT_EQ(check(b, {}), "") << ir::print(b.m);
  return s ? std::move(*s) : Schedule{};
}
// Steps of a kind, in bodies too.
int64_t count(const Schedule& s, Step::Kind kind) {
  int64_t n = std::count_if(s.program.steps.begin(), s.program.steps.end(),
                            [&](const Step& step) { return step.kind == kind; });
  for (const auto& bodies : s.bodies)
    for (const Schedule& body : bodies) n += count(body, kind);
  return n;
}
template <class... Passes>
void apply(ir::Module& m, Passes... passes) {
  for (auto pass : {passes...}) {
    ASSERT_TRUE(pass(m));
    const auto good = ir::verify(m);
    ASSERT_TRUE(good) << good.error().message;
  }
}
size_t nodes(const ir::Region& r) {
  size_t n = r.nodes.size();
  for (const ir::Node& node : r.nodes)
    for (const ir::Region& inner : node.regions) n += nodes(inner);
  return n;
}
const ir::Node& the(Op op, const ir::Module& m) {
  const auto at =
      std::find_if(m.top.nodes.begin(), m.top.nodes.end(), [&](const auto& n) { return n.op == op; });
  EXPECT_NE(at, m.top.nodes.end());
  return *at;
}

// Inputs x and y of slots 0 and 1, and a condition.
struct Given : Builder {
  ValueId x = input(DType::F32, {kN}, "x"), y = input(DType::F32, {kN}, "y"), c = input(DType::Bool, {}, "c");
  ir::Region left(size_t params) {  // an arm that does nothing
    return region(std::vector<ir::Type>(params, array()), [](const Values& p) { return p; });
  }
  ValueId times(ValueId v, double by) { return op(Op::Mul, {v, scalar(by, {kN})}); }
  ValueId set(ValueId v, double to) { return update(v, scalar(to, {3}), {5}, {1}); }
};

TEST(PassesRegions, one_branch_that_changes_an_array_works_in_place) {
  for (const bool part : {false, true}) {
    Given b;
    ir::Region then = b.region(
        {array()}, [&](const Values& p) { return Values{part ? b.set(p[0], 7) : b.times(p[0], 3)}; });
    b.into(b.branch({b.c, b.x}, std::move(then), b.left(1))[0], 0);
    const Schedule s = plan(b);
    EXPECT_EQ(s.program.arena_bytes, 0);
    EXPECT_EQ(count(s, Step::Kind::Copy), 0);
    ASSERT_EQ(s.program.steps.size(), 1U);
    EXPECT_EQ(s.bodies[0].size(), 1U);  // nothing to do where the condition is false
    EXPECT_EQ(s.program.steps[0].bodies[0].slots.size(), 1U);
  }
}

TEST(PassesRegions, both_branches_write_over_what_they_read_point_by_point) {
  const auto both = [](auto&& change) {
    Given b;
    const auto arm = [&](double by) {
      return b.region({array()}, [&](const Values& p) { return Values{change(b, p[0], by)}; });
    };
    ir::Region then = arm(2);
    b.into(b.branch({b.c, b.x}, std::move(then), arm(3))[0], 0);
    return plan(b);
  };
  const Schedule here = both([](Given& b, ValueId v, double by) { return b.times(v, by); });
  EXPECT_EQ(here.program.arena_bytes, 0);
  EXPECT_EQ(count(here, Step::Kind::Copy), 0);
  // Through an inner branch, too.
  const Schedule nested = both([](Given& b, ValueId v, double by) {
    const auto arm = [&](double more) {
      return b.region({array()}, [&](const Values& p) { return Values{b.times(p[0], more)}; });
    };
    ir::Region then = arm(by);
    return b.branch({b.reduce(Op::Any, b.op(Op::Gt, {v, b.scalar(1, {kN})}), {0}), v}, std::move(then),
                    arm(5))[0];
  });
  EXPECT_EQ(count(nested, Step::Kind::Copy), 0);
  // What reads at other points needs a place beside it, and one copy for both.
  const Schedule back =
      both([](Given& b, ValueId v, double by) { return b.times(b.slice(v, {kN - 1}, {kN}, {-1}), by); });
  EXPECT_EQ(count(back, Step::Kind::Copy), 1);
}

TEST(PassesRegions, a_value_that_is_kept_is_not_written_over) {
  Given b;
  const auto arm = [&](double by) {
    return b.region({array()}, [&](const Values& p) { return Values{b.times(p[0], by)}; });
  };
  ir::Region then = arm(2);
  b.out(b.branch({b.c, b.x}, std::move(then), arm(3))[0]);
  const Schedule s = plan(b);  // x stays: each branch writes the new array
  EXPECT_EQ(count(s, Step::Kind::Copy), 0);
  EXPECT_EQ(s.program.arena_bytes, 0);
}

TEST(PassesRegions, a_loop_swaps_what_it_carries) {
  Given b;
  ir::Region turn = b.region({array(), array()}, [&](const Values& p) {
    const ValueId more = b.reduce(Op::Any, b.op(Op::Gt, {p[0], p[1]}), {0});
    const ValueId still = b.reduce(Op::Any, b.op(Op::Gt, {p[1], b.scalar(100, {kN})}), {0});
    return Values{b.op(Op::And, {more, still}), p[1], p[0]};
  });
  const Values r = b.with_regions(Op::While, {b.c, b.x, b.y}, {std::move(turn)});
  b.into(r[0], 0);
  b.into(r[1], 1);
  const Schedule s = plan(b);
  EXPECT_EQ(count(s, Step::Kind::Copy), 4);  // the first condition, and a swap by way of one array more
}

TEST(PassesRegions, two_results_of_one_value_are_two_arrays) {
  Given b;
  ir::Region then = b.region({array()}, [&](const Values& p) {
    const ValueId v = b.times(p[0], 2);
    return Values{v, v, p[0]};
  });
  ir::Region other = b.region({array()}, [&](const Values& p) { return Values{p[0], p[0], p[0]}; });
  const Values r = b.branch({b.c, b.x}, std::move(then), std::move(other));
  b.into(b.set(r[0], 1), 0);
  b.into(b.set(r[1], 2), 1);
  b.out(b.set(r[2], 3));
  plan(b);
}

TEST(PassesRegions, one_array_passed_twice_and_changed_once) {
  Given b;
  ir::Region then = b.region({array(), array()}, [&](const Values& p) {
    return Values{b.update(p[0], b.slice(p[1], {10}, {20}, {1}), {11}, {1})};
  });
  ir::Region other = b.region({array(), array()}, [](const Values& p) { return Values{p[0]}; });
  b.into(b.branch({b.c, b.x, b.x}, std::move(then), std::move(other))[0], 0);
  plan(b);
}

TEST(PassesRegions, what_both_branches_leave_is_the_operand) {
  Given b;
  ir::Region then = b.region({array(), array()}, [&](const Values& p) {
    return Values{p[1], b.times(p[0], 2)};
  });
  const Values r =
      b.branch({b.c, b.x, b.y}, std::move(then), b.region({array(), array()}, [](const Values& p) {
        return Values{p[1], p[0]};
      }));
  b.out(b.op(Op::Tanh, {r[0]}));
  b.out(r[1]);
  apply(b.m, passes::tidy_regions, passes::dce);
  EXPECT_EQ(the(Op::If, b.m).results.size(), 1U);
  EXPECT_EQ(the(Op::If, b.m).operands.size(), 2U);
  EXPECT_EQ(the(Op::Tanh, b.m).operands[0], b.y);
  // Nothing but what both leave: nobody asks the condition.
  Given none;
  none.out(none.branch({none.c, none.x}, none.left(1), none.left(1))[0]);
  apply(none.m, passes::tidy_regions, passes::dce);
  EXPECT_EQ(nodes(none.m.top), 1U);
}

TEST(PassesRegions, what_stays_the_same_is_not_carried) {
  Given b;
  ir::Region turn = b.region({array(), array()}, [&](const Values& p) {
    const ValueId next = b.op(Op::Add, {p[0], p[1]});
    return Values{b.reduce(Op::Any, b.op(Op::Gt, {next, b.scalar(9, {kN})}), {0}), next, p[1]};
  });
  const Values r = b.with_regions(Op::While, {b.c, b.x, b.y}, {std::move(turn)});
  b.into(r[0], 0);
  b.out(b.op(Op::Neg, {r[1]}));
  const Schedule s = plan(b);
  EXPECT_EQ(count(s, Step::Kind::Copy), 1);  // the first condition
  EXPECT_EQ(s.program.arena_bytes, 256);
  apply(b.m, passes::tidy_regions);
  EXPECT_EQ(the(Op::While, b.m).results.size(), 1U);
  EXPECT_EQ(the(Op::While, b.m).operands.size(), 3U);
  EXPECT_EQ(the(Op::Neg, b.m).operands[0], b.y);
}

TEST(PassesRegions, dead_values_go_from_all_that_has_regions) {
  const ir::Type turn = ir::Type::of(DType::I64, {});
  for (const Op op : {Op::Loop, Op::Repeat, Op::While, Op::If}) {
    Given b;
    std::vector<ir::Type> params{array(), array(), array(), array()};
    if (ir::region_form(op).param == 1) params.insert(params.begin(), turn);
    const auto body = [&] {
      return b.region(params, [&](const Values& all) {
        const Values p(all.end() - 4, all.end());
        // The second feeds the first; the third only itself, the fourth nothing.
        const ValueId first = b.op(Op::Add, {p[0], p[1]}), third = b.op(Op::Tanh, {p[2]});
        b.op(Op::Neg, {p[3]});
        Values yields{first, b.times(p[1], 2), third};
        if (op == Op::While)
          yields.insert(yields.begin(), b.reduce(Op::Any, b.op(Op::Gt, {first, b.scalar(9, {kN})}), {0}));
        return yields;
      });
    };
    Values operands{b.x, b.y, b.x, b.y};
    if (ir::region_form(op).operand == 1) operands.insert(operands.begin(), b.c);
    std::vector<ir::Region> regions;
    regions.push_back(body());
    if (op == Op::If) regions.push_back(body());
    b.out(b.with_regions(op, operands, std::move(regions), 5)[0]);
    EXPECT_EQ(check(b, {}), "");
    apply(b.m, passes::dce);
    const ir::Node& n = the(op, b.m);
    EXPECT_EQ(n.results.size(), op == Op::If ? 1U : 2U);  // what feeds the next turn stays
    EXPECT_EQ(ir::num_inputs(n), 2U);
    for (const ir::Region& r : n.regions)
      EXPECT_EQ(std::count_if(r.nodes.begin(), r.nodes.end(),
                              [](const auto& i) { return i.op == Op::Tanh || i.op == Op::Neg; }),
                0);
  }
}

TEST(PassesRegions, equal_values_and_numbers_inside_are_one) {
  Given b;
  const auto arm = [&](double by) {
    return b.region({array(), array(), array()}, [&](const Values& p) {
      const ValueId one = b.op(Op::Tanh, {b.op(Op::Pow, {p[0], p[2]})});
      const ValueId two = b.op(Op::Tanh, {b.op(Op::Pow, {p[1], p[2]})});
      return Values{b.times(b.op(Op::Sub, {one, two}), by)};
    });
  };
  const ValueId square = b.scalar(2, {kN});
  ir::Region then = arm(2);
  b.out(b.branch({b.c, b.x, b.x, square}, std::move(then), arm(3))[0]);
  EXPECT_EQ(check(b, {}), "");
  apply(b.m, passes::simplify, passes::tidy_regions, passes::simplify, passes::cse, passes::dce);
  const ir::Node& n = the(Op::If, b.m);
  EXPECT_EQ(n.operands.size(), 2U);
  for (const ir::Region& r : n.regions)
    EXPECT_EQ(std::count_if(r.nodes.begin(), r.nodes.end(), [](const auto& i) { return i.op == Op::Tanh; }),
              1);
}

TEST(PassesRegions, numbers_reach_the_innermost_body_as_arguments) {
  Given b;
  const ValueId number = b.broadcast(b.param(0.25), {kN});
  ir::Region outer = b.region({array(), array()}, [&](const Values& p) {
    ir::Region inner = b.region({array(), array()}, [&](const Values& q) {
      return Values{b.op(Op::Add, {q[0], q[1]})};
    });
    const ValueId now = b.reduce(Op::Any, b.op(Op::Gt, {p[0], p[1]}), {0});
    return Values{b.branch({now, p[0], p[1]}, std::move(inner),
                           b.region({array(), array()}, [](const Values& q) { return Values{q[0]}; }))[0]};
  });
  ir::Region other = b.region({array(), array()}, [](const Values& p) { return Values{p[0]}; });
  b.into(b.branch({b.c, b.x, number}, std::move(outer), std::move(other))[0], 0);
  const Schedule s = plan(b);
  ASSERT_EQ(s.program.steps.size(), 1U);
  const program::Body& body = s.program.steps[0].bodies[0];
  EXPECT_EQ(body.scalars, std::vector<int32_t>{0});
  EXPECT_EQ(body.slots.size(), 1U);
  const Schedule& inside = s.bodies[0][0];
  ASSERT_EQ(inside.program.steps.size(), 2U);
  EXPECT_EQ(inside.program.steps[1].bodies[0].scalars, std::vector<int32_t>{0});
}

TEST(PassesRegions, a_loop_inside_a_branch_and_a_branch_inside_a_loop) {
  Given b;
  ir::Region then = b.region({array(), array()}, [&](const Values& p) {
    ir::Region turn = b.region({ir::Type::of(DType::I64, {}), array(), array()}, [&](const Values& q) {
      return Values{b.op(Op::Add, {b.times(q[1], 0.5), q[2]})};
    });
    return Values{b.with_regions(Op::Loop, {p[0], p[1]}, {std::move(turn)}, 1000)[0]};
  });
  ir::Region other = b.region({array(), array()}, [](const Values& p) { return Values{p[0]}; });
  const ValueId r = b.branch({b.c, b.x, b.y}, std::move(then), std::move(other))[0];
  ir::Region turn = b.region({ir::Type::of(DType::I64, {}), array(), flag()}, [&](const Values& p) {
    ir::Region half = b.region({array()}, [&](const Values& q) { return Values{b.times(q[0], 0.5)}; });
    return Values{b.branch({p[2], p[1]}, std::move(half), b.left(1))[0]};
  });
  b.into(b.with_regions(Op::Loop, {r, b.c}, {std::move(turn)}, 3)[0], 0);
  const Schedule s = plan(b);
  EXPECT_EQ(s.program.steps.size(), 4U);  // the first branch, and one a turn
  EXPECT_EQ(count(s, Step::Kind::Copy), 0);
  EXPECT_EQ(s.program.arena_bytes, 0);
  EXPECT_EQ(s.bodies[0][0].program.steps.size(), 1U);
  EXPECT_NE(ir::key(*s.bodies[0][0].kernels[0]).find("for"), std::string::npos);
}

TEST(PassesRegions, faults_keep_what_nobody_reads) {
  Builder b;
  const ValueId n = b.input(DType::I64, {4}, "n"), c = b.input(DType::Bool, {}, "c");
  const ir::Type ints = b.m.type(n);
  ir::Region then = b.region({ints}, [&](const Values& p) {
    return Values{b.op(Op::FloorDiv, {p[0], p[0]})};
  });
  b.branch({c, n}, std::move(then), b.region({ints}, [](const Values& p) { return p; }));
  // A divisor that is known around the region does not fault.
  ir::Region fine = b.region({ints, ints}, [&](const Values& p) {
    return Values{b.op(Op::FloorDiv, {p[0], p[1]})};
  });
  b.branch({c, n, b.scalar(2, {4}, DType::I64)}, std::move(fine),
           b.region({ints, ints}, [](const Values& p) { return Values{p[0]}; }));
  b.out(n);
  apply(b.m, passes::dce);
  EXPECT_EQ(
      std::count_if(b.m.top.nodes.begin(), b.m.top.nodes.end(), [](const auto& i) { return i.op == Op::If; }),
      1);
  EXPECT_TRUE(the(Op::If, b.m).results.empty());
}

TEST(PassesRegions, nan_sites_are_where_a_region_computes) {
  Given b;
  ir::Region other = b.region({array()}, [&](const Values& p) { return Values{b.op(Op::Log, {p[0]})}; });
  other.nodes.back().span = {1, 20, 30};
  b.into(b.branch({b.c, b.x}, b.left(1), std::move(other))[0], 0);
  const auto sites = passes::nan_sites(b.m, {});
  ASSERT_EQ(sites.size(), 1U);
  EXPECT_EQ(sites[0].span.begin, 20U);
}

}  // namespace
}  // namespace gk::passes_test
