// How programs are cut into kernels, steps and temporaries.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/passes_support.h"

namespace gk::passes_test {
namespace {

using passes::Options;
using passes::Schedule;

Schedule plan(const Builder& b, Options options = {}) {
  auto s = passes::run_pipeline(b.m, options);
  EXPECT_TRUE(s) << (s ? "" : s.error().message);
  return s ? std::move(*s) : Schedule{};
}
size_t steps(const Builder& b, Options options = {}) { return plan(b, options).program.steps.size(); }

Builder allocating(bool fuse, int64_t n = 1000) {
  Builder b;
  ValueId x = b.input(DType::F32, {n});
  for (int i = 0; i < 50; ++i)
    x = b.op(Op::Add, {b.op(Op::Mul, {x, b.scalar(0.99, {n})}), b.scalar(0.01, {n})});
  b.out(x);
  b.m.fuse = fuse;
  return b;
}

TEST(PassesStructure, a_chain_is_one_kernel_and_unfused_needs_at_most_two_buffers) {
  const Schedule fused = plan(allocating(true));
  EXPECT_EQ(fused.program.steps.size(), 1U);
  EXPECT_EQ(fused.program.arena_bytes, 0);
  const Schedule unfused = plan(allocating(false, 4 << 20));
  EXPECT_EQ(unfused.program.steps.size(), 100U);
  EXPECT_LE(unfused.program.arena_bytes, 2 * (16 << 20));
  EXPECT_EQ(unfused.program.temporaries, 99);
  EXPECT_LE(unfused.kernels.size(), 4U);
  EXPECT_EQ(check(allocating(true), {}), "");
  EXPECT_EQ(check(allocating(false), {}), "");
}

Builder mlp() {
  Builder b;
  std::vector<ValueId> h;
  for (int i = 0; i < 5; ++i) h.push_back(b.input(DType::F32, {16, 8}));
  ValueId x = h[0];
  for (int i = 0; i < 4; ++i) {
    const ValueId w = b.input(DType::F32, {8, 8}), bias = b.input(DType::F32, {8});
    x = b.op(Op::Max,
             {b.op(Op::Add, {b.op(Op::MatMul, {x, w}), b.broadcast(bias, {16, 8})}), b.scalar(0, {16, 8})});
    b.into(x, b.slot_of(h[static_cast<size_t>(i) + 1]));
  }
  return b;
}

TEST(PassesStructure, each_layer_is_one_step) {
  Options o;
  o.target = program::TargetKind::Cuda;
  const Schedule library = plan(mlp(), o);
  ASSERT_EQ(library.program.steps.size(), 4U);
  for (const auto& s : library.program.steps) {
    EXPECT_EQ(s.kind, program::Step::Kind::Library);
    const auto& product = std::get<program::MatMulCall>(s.library);
    EXPECT_TRUE(product.has_bias);
    EXPECT_EQ(product.activation, program::MatMulCall::Activation::Relu);
  }
  EXPECT_EQ(check(mlp(), o), "");
  o.generated_matmul_max = 1 << 20;
  const Schedule generated = plan(mlp(), o);
  EXPECT_EQ(generated.program.steps.size(), 4U);
  EXPECT_EQ(generated.kernels.size(), 1U);
  EXPECT_EQ(generated.program.arena_bytes, 0);
  EXPECT_EQ(generated.program.steps[0].label, "matmul+add+maximum");
  EXPECT_EQ(check(mlp(), o), "");
  // On the host the epilogue is a map over the product, in place.
  const Schedule host = plan(mlp());
  EXPECT_EQ(host.program.steps.size(), 8U);
  EXPECT_EQ(host.program.arena_bytes, 0);
  EXPECT_EQ(check(mlp(), {}), "");
}

struct Xyz {
  ValueId v[3];
};
Builder lorenz(int count) {
  constexpr int64_t n = 64;
  Builder b;
  const auto c = [&](double v) { return b.scalar(v, {n}); };
  const auto bin = [&](Op op, ValueId x, ValueId y) { return b.op(op, {x, y}); };
  const auto f = [&](const Xyz& s) {
    return Xyz{{bin(Op::Mul, c(10), bin(Op::Sub, s.v[1], s.v[0])),
                bin(Op::Sub, bin(Op::Mul, s.v[0], bin(Op::Sub, c(28), s.v[2])), s.v[1]),
                bin(Op::Sub, bin(Op::Mul, s.v[0], s.v[1]), bin(Op::Mul, c(8.0 / 3), s.v[2]))}};
  };
  const auto axpy = [&](const Xyz& s, double h, const Xyz& k) {
    Xyz r;
    for (int i = 0; i < 3; ++i) r.v[i] = bin(Op::Add, s.v[i], bin(Op::Mul, c(h), k.v[i]));
    return r;
  };
  Xyz s;
  for (ValueId& v : s.v) v = b.input(DType::F32, {n});
  const Xyz start = s;
  for (int i = 0; i < count; ++i) {
    const double h = 0.001;
    const Xyz k1 = f(s), k2 = f(axpy(s, h / 2, k1)), k3 = f(axpy(s, h / 2, k2)), k4 = f(axpy(s, h, k3));
    for (int j = 0; j < 3; ++j) {
      const ValueId sum =
          bin(Op::Add,
              bin(Op::Add, bin(Op::Add, k1.v[j], bin(Op::Mul, c(2), k2.v[j])), bin(Op::Mul, c(2), k3.v[j])),
              k4.v[j]);
      s.v[j] = bin(Op::Add, s.v[j], bin(Op::Mul, c(h / 6), sum));
    }
  }
  for (int j = 0; j < 3; ++j) b.into(s.v[j], b.slot_of(start.v[j]));
  return b;
}

TEST(PassesStructure, ten_steps_of_a_record_are_one_kernel_in_place) {
  const Schedule s = plan(lorenz(10));
  ASSERT_EQ(s.program.steps.size(), 1U);
  EXPECT_EQ(s.program.arena_bytes, 0);
  EXPECT_EQ(s.program.steps[0].writes.size(), 3U);
  EXPECT_EQ(check(lorenz(10), {}), "");
}

Builder softmax(bool fuse = true) {
  Builder b;
  const ValueId x = b.input(DType::F32, {8, 32});
  const ValueId top = b.reduce(Op::ReduceMax, x, {1}, true);
  const ValueId e = b.op(Op::Exp, {b.op(Op::Sub, {x, b.broadcast(top, {8, 32})})});
  const ValueId sum = b.reduce(Op::Sum, e, {1}, true);
  b.out(b.op(Op::Div, {e, b.broadcast(sum, {8, 32})}));
  b.m.fuse = fuse;
  return b;
}

TEST(PassesStructure, softmax_recomputes_the_exponential) {
  EXPECT_EQ(steps(softmax()), 3U);
  EXPECT_EQ(steps(softmax(false)), 5U);
  EXPECT_EQ(check(softmax(), {}), "");
  EXPECT_EQ(check(softmax(false), {}), "");
}

TEST(PassesStructure, large_reductions_take_two_phases) {
  for (const int64_t n : {int64_t{1} << 20, int64_t{1000003}}) {
    Builder b;
    const ValueId x = b.input(DType::F64, {n});
    b.out(b.op(Op::Sqrt, {b.reduce(Op::Sum, b.op(Op::Mul, {x, x}), {0})}));
    Options o;
    const Schedule s = plan(b, o);
    EXPECT_EQ(s.program.steps.size(), n % 64 == 0 ? 2U : 3U);
    EXPECT_EQ(check(b, o), "");
  }
}

TEST(PassesStructure, overlapping_updates_and_swaps_go_through_temporaries) {
  Builder shift;
  const ValueId x = shift.input(DType::F32, {10});
  shift.into(shift.update(x, shift.slice(x, {0}, {9}, {1}), {1}, {1}), 0);
  EXPECT_EQ(check(shift, {}), "");
  Builder swap;
  const ValueId a = swap.input(DType::F32, {10}), c = swap.input(DType::F32, {10});
  swap.into(c, 0);
  swap.into(a, 1);
  EXPECT_EQ(check(swap, {}), "");
  Options cuda;
  cuda.target = program::TargetKind::Cuda;
  EXPECT_EQ(check(swap, cuda), "");
  // In place: the region is read where it is written.
  Builder scale;
  const ValueId y = scale.input(DType::F32, {10});
  const ValueId part = scale.slice(y, {2}, {4}, {2});
  scale.into(scale.update(y, scale.op(Op::Mul, {part, part}), {2}, {2}), 0);
  const Schedule s = plan(scale);
  EXPECT_EQ(s.program.steps.size(), 1U);
  EXPECT_EQ(s.program.arena_bytes, 0);
  EXPECT_EQ(check(scale, {}), "");
}

TEST(PassesStructure, long_chains_and_many_operands) {
  Builder b;
  ValueId x = b.input(DType::F32, {16});
  for (int i = 0; i < 2500; ++i)
    x = b.op(i % 2 ? Op::Add : Op::Mul, {x, b.scalar(i % 2 ? 0.001 : 0.999, {16})});
  b.out(x);
  EXPECT_EQ(steps(b), 2U);
  EXPECT_EQ(check(b, {}), "");
  Builder wide;
  ValueId sum = wide.input(DType::F32, {16});
  for (int i = 0; i < 100; ++i) sum = wide.op(Op::Add, {sum, wide.input(DType::F32, {16})});
  wide.out(sum);
  const Schedule s = plan(wide);
  EXPECT_LE(s.program.steps.size(), 5U);
  for (const auto& k : s.kernels)
    EXPECT_LE(std::count_if(k->params.begin(), k->params.end(),
                            [](const auto& p) { return p.kind == ir::KParam::Kind::Buffer; }),
              32);
  EXPECT_EQ(check(wide, {}), "");
}

TEST(PassesStructure, keys_hold_no_extents) {
  const auto key = [](int64_t n, int64_t m) {
    Builder b;
    const ValueId x = b.input(DType::F32, {n, m}), row = b.input(DType::F32, {m});
    b.out(b.reduce(Op::Sum, b.op(Op::Mul, {x, b.broadcast(row, {n, m})}), {1}));
    return ir::key(*plan(b).kernels[0]);
  };
  EXPECT_EQ(key(3, 5), key(7, 100));
}

// What the turns expand to decides, against Options::max_unrolled_ops, whether a loop is written out.
void check_elementwise_loop(int64_t trips, bool stays) {
  Builder b;
  const ValueId x = b.input(DType::F32, {12}), y = b.input(DType::F32, {12});
  ir::Region body =
      b.region({b.m.type(b.constant(0, DType::I64)), b.m.type(x), b.m.type(y)}, [&](const auto& p) {
        return std::vector{b.op(Op::Add, {b.op(Op::Mul, {p[1], b.scalar(0.5, {12})}), p[2]})};
      });
  const ValueId r = b.with_regions(Op::Loop, {x, y}, {std::move(body)}, trips)[0];
  b.out(b.op(Op::Neg, {r}));
  const Schedule s = plan(b);
  EXPECT_EQ(s.program.steps.size(), 1U);
  EXPECT_EQ(ir::key(*s.kernels[0]).find("for") != std::string::npos, stays);
  EXPECT_EQ(check(b, {}), "");
}

TEST(PassesStructure, long_elementwise_loops_stay_loops_in_a_kernel) { check_elementwise_loop(1000, true); }
TEST(PassesStructure, short_elementwise_loops_are_unrolled) { check_elementwise_loop(100, false); }

TEST(PassesStructure, user_kernels_write_in_place_or_over_a_copy) {
  auto k = std::make_shared<ir::Kernel>();
  k->kind = ir::Kernel::Kind::User;
  k->params.resize(2);
  k->params[0].read = k->params[0].written = true;
  k->params[0].extents = {ir::KSize::dynamic(1)};
  k->params[1].kind = ir::KParam::Kind::Scalar;
  k->params[1].dtype = DType::I64;
  k->axes = {ir::KSize::dynamic(1)};
  const auto build = [&](bool keep) {
    Builder b;
    const ValueId x = b.input(DType::F32, {8});
    ir::Attrs a;
    a.kernel = k;
    a.name = "k";
    a.shape = {8};
    const ValueId n = b.constant(8, DType::I64);
    const ValueId once = b.op(Op::KernelCall, {x, n}, a);
    b.into(b.op(Op::KernelCall, {once, n}, a), 0);
    if (keep) b.out(once);
    return plan(b);
  };
  const Schedule s = build(false);
  ASSERT_EQ(s.program.steps.size(), 2U);
  EXPECT_EQ(s.program.arena_bytes, 0);
  for (const auto& step : s.program.steps) EXPECT_EQ(step.writes[0].kind, program::Ref::Kind::Slot);
  EXPECT_GT(build(true).program.steps.size(), 2U);
}

// While there is any above 1, at most `most` times, x is halved.
TEST(PassesStructure, a_loop_is_one_step_in_place_with_numbers_made_inside) {
  Builder b;
  constexpr int64_t n = 100;
  const ValueId x = b.input(DType::F32, {n});
  const ValueId most = b.param(20, DType::I64);
  const auto any_above = [&](ValueId v) {
    return b.reduce(Op::Any, b.op(Op::Gt, {v, b.scalar(1, {n})}), {0});
  };
  const ValueId start = any_above(x), zero = b.constant(0, DType::I64);
  const ir::Type array = b.m.type(x), count = b.m.type(zero);
  ir::Region body = b.region({array, count, count, array}, [&](const auto& p) {
    const ValueId half = b.op(Op::Mul, {p[0], b.scalar(0.5, {n})});
    const ValueId next = b.op(Op::Add, {p[1], b.constant(1, DType::I64)});
    return std::vector{b.op(Op::And, {any_above(half), b.op(Op::Lt, {next, p[2]})}), half, next};
  });
  const auto r = b.with_regions(Op::While, {start, x, zero, most, x}, {std::move(body)});
  b.into(r[0], 0);
  b.out(r[1]);
  const Schedule s = plan(b);
  const auto& steps = s.program.steps;
  const auto& loop = steps.back();
  ASSERT_EQ(loop.kind, program::Step::Kind::While);
  EXPECT_EQ(steps.size(), 3U);  // the first condition, the first count, the loop
  ASSERT_EQ(loop.bodies.size(), 1U);
  // The bound and the operand that nobody reads are no arrays any more; x is changed where it is.
  EXPECT_EQ(loop.bodies[0].slots.size(), 3U);
  EXPECT_EQ(loop.bodies[0].scalars, std::vector<int32_t>{0});
  EXPECT_EQ(loop.bodies[0].slots[0].kind, program::Ref::Kind::Slot);
  EXPECT_EQ(loop.bodies[0].slots[2], loop.reads[0]);
  EXPECT_EQ(loop.reads[0].size_bytes, 1);
  ASSERT_EQ(s.bodies.back().size(), 1U);
  EXPECT_EQ(s.bodies.back()[0].program.steps.size(), 3U);  // half of it, the count, the condition
  EXPECT_EQ(check(b, {}), "");
}

Builder two_branches(bool kept) {
  constexpr int64_t n = 1000;
  Builder b;
  const ValueId x = b.input(DType::F32, {n}), c = b.input(DType::Bool, {});
  b.m.fuse = false;
  const auto arm = [&](double by) {
    return b.region({b.m.type(x)}, [&](const auto& p) {
      ir::Attrs back;
      back.starts = {n - 1}, back.shape = {n}, back.steps = {-1};
      ValueId v = b.op(Op::Mul, {b.op(Op::Slice, {p[0]}, back), b.scalar(by, {n})});
      // Unfused steps have temporaries.
      for (int i = 0; i < 3; ++i) v = b.op(Op::Slice, {b.op(Op::Tanh, {v})}, back);
      return std::vector{v};
    });
  };
  const ValueId r = b.branch({c, x}, arm(2), arm(3))[0];
  b.into(r, 0);
  if (kept) b.out(x);
  return b;
}

TEST(PassesStructure, branches_share_one_part_of_the_arena) {
  const Schedule s = plan(two_branches(false));
  const auto at = std::find_if(s.program.steps.begin(), s.program.steps.end(),
                               [](const auto& step) { return step.kind == program::Step::Kind::If; });
  ASSERT_NE(at, s.program.steps.end());
  const auto& bodies = s.bodies[static_cast<size_t>(at - s.program.steps.begin())];
  ASSERT_EQ(bodies.size(), 2U);
  ASSERT_GT(bodies[0].program.arena_bytes, 0);
  EXPECT_EQ(at->bodies[0].arena_offset_bytes, at->bodies[1].arena_offset_bytes);
  // The result, as it is read while it is made, and one such part.
  EXPECT_EQ(s.program.arena_bytes, bodies[0].program.arena_bytes + 4096);
  EXPECT_EQ(check(two_branches(false), {}), "");
  EXPECT_EQ(check(two_branches(true), {}), "");
}

TEST(PassesStructure, what_a_branch_alone_would_make_is_left_out) {
  Builder b;
  const ValueId x = b.input(DType::F32, {8}), c = b.input(DType::Bool, {});
  const auto arm = [](Builder& to) {
    return to.region({ir::Type::of(DType::F32, {8})}, [&](const auto& p) {
      return std::vector{to.op(Op::Tanh, {p[0]}), to.op(Op::Neg, {p[0]})};
    });
  };
  const auto r = b.branch({c, x}, arm(b), arm(b));
  b.out(r[1]);
  const Schedule s = plan(b);
  ASSERT_EQ(s.program.steps.size(), 1U);
  EXPECT_EQ(s.program.steps[0].bodies[0].slots.size(), 2U);
  EXPECT_EQ(s.bodies[0][0].program.steps.size(), 1U);
  EXPECT_EQ(s.program.arena_bytes, 0);
  EXPECT_EQ(check(b, {}), "");
  // Nobody reads anything of it: no step.
  Builder none;
  const ValueId d = none.input(DType::Bool, {}), y = none.input(DType::F32, {8});
  none.branch({d, y}, arm(none), arm(none));
  none.out(none.op(Op::Neg, {y}));
  EXPECT_EQ(steps(none), 1U);
}

}  // namespace
}  // namespace gk::passes_test
