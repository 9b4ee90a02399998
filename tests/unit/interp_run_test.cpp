#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/ir_build.h"

namespace gk::interp {
namespace {

using ir::Attrs;
using ir::Op;
using test::array;
using test::Build;
using test::numbers;
using test::type;
using enum DType;
using V = std::vector<double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Attrs axes(std::vector<int64_t> v, bool keepdims = false) {
  Attrs a;
  a.axes = std::move(v);
  a.keepdims = keepdims;
  return a;
}
Attrs region(const Shape& starts, const Shape& counts, const Shape& steps) {
  Attrs a;
  a.starts = starts, a.shape = counts, a.steps = steps;
  return a;
}

struct Ran {
  Array out;
  std::string fault;
};

// One op on arrays.
Ran one(Op op, std::vector<Array> inputs, const Attrs& attrs = {}) {
  Build b;
  std::vector<ir::ValueId> operands;
  for (const Array& a : inputs) operands.push_back(b.input(ir::Type::of(a.dtype, a.shape)));
  b.output(b.add(op, operands, attrs));
  EXPECT_TRUE(ir::verify(b.m));
  auto slots = std::move(inputs);
  const auto r = run(b.m, {}, slots);
  return {slots.back(), r ? "" : r.error().code + ": " + r.error().message};
}
V values(Op op, std::vector<Array> inputs, const Attrs& attrs = {}) {
  const Ran r = one(op, std::move(inputs), attrs);
  EXPECT_EQ(r.fault, "");
  return numbers(r.out);
}

TEST(InterpRun, views) {
  const Array x = array(F32, {2, 3}, {0, 1, 2, 3, 4, 5});
  Attrs shape;
  shape.shape = {2, 2, 3};
  EXPECT_EQ(values(Op::Broadcast, {x}, shape), (V{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  shape.shape = {2, 3};
  EXPECT_EQ(values(Op::Broadcast, {array(F32, {2, 1}, {7, 8})}, shape), (V{7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(values(Op::Broadcast, {array(F32, {}, {7})}, shape), (V{7, 7, 7, 7, 7, 7}));
  shape.shape = {0, 3};
  EXPECT_EQ(values(Op::Broadcast, {array(F32, {1, 3}, {7, 8, 9})}, shape), V{});
  shape.shape = {3, 2};
  EXPECT_EQ(values(Op::Reshape, {x}, shape), (V{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(Op::Transpose, {x}, axes({1, 0})), (V{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(Op::Transpose, {array(I8, {2, 1, 3}, {0, 1, 2, 3, 4, 5})}, axes({2, 0, 1})),
            (V{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(Op::Slice, {x}, region({1, 2}, {2, 2}, {-1, -2})), (V{5, 3, 2, 0}));
  EXPECT_EQ(values(Op::Slice, {x}, region({0, 0}, {0, 3}, {1, 1})), V{});
}

TEST(InterpRun, update_slice_take_concat) {
  const Array x = array(F32, {2, 3}, {0, 1, 2, 3, 4, 5});
  Attrs at = region({0, 2}, {}, {1, -2});
  EXPECT_EQ(values(Op::UpdateSlice, {x, array(F32, {2, 2}, {10, 11, 12, 13})}, at),
            (V{11, 1, 10, 13, 4, 12}));
  EXPECT_EQ(values(Op::UpdateSlice, {x, array(F32, {0, 2}, {})}, at), (V{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(Op::Take, {x, array(I8, {2}, {2, -3})}, axes({1})), (V{2, 0, 5, 3}));
  EXPECT_EQ(values(Op::Take, {x, array(U64, {}, {1})}, axes({0})), (V{3, 4, 5}));
  EXPECT_EQ(values(Op::Take, {x, array(I64, {1, 2}, {1, 0})}, axes({0})), (V{3, 4, 5, 0, 1, 2}));
  EXPECT_EQ(values(Op::Concat, {x, array(F32, {2, 0}, {}), array(F32, {2, 1}, {8, 9})}, axes({1})),
            (V{0, 1, 2, 8, 3, 4, 5, 9}));
}

TEST(InterpRun, take_out_of_range_gives_zero_and_a_fault) {
  const Array x = array(F32, {3}, {5, 6, 7});
  Ran r = one(Op::Take, {x, array(I32, {4}, {0, 3, -4, -1})}, axes({0}));
  EXPECT_EQ(r.fault, "E0801: index 3 is out of range for axis 0 with extent 3");
  EXPECT_EQ(numbers(r.out), (V{5, 0, 0, 7}));
  Array huge = Array::zeros(U64, {1});
  huge.set(0, Scalar::of_int(-1, U64));
  EXPECT_EQ(one(Op::Take, {x, huge}, axes({0})).fault.substr(0, 5), "E0801");
  EXPECT_EQ(one(Op::Take, {array(F32, {0}, {}), array(I32, {1}, {0})}, axes({0})).fault,
            "E0801: index 0 is out of range for axis 0 with extent 0");
}

TEST(InterpRun, division_by_zero_is_a_fault_after_the_run) {
  const Ran r = one(Op::FloorDiv, {array(I32, {3}, {7, 7, -7}), array(I32, {3}, {2, 0, 2})});
  EXPECT_EQ(r.fault, "E0802: division by zero");
  EXPECT_EQ(numbers(r.out), (V{3, 0, -4}));
  EXPECT_EQ(one(Op::Pow, {array(I32, {1}, {0}), array(I32, {1}, {-1})}).fault, "");
}

TEST(InterpRun, sums_and_products) {
  const Array x = array(F32, {2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(values(Op::Sum, {x}, axes({1})), (V{3, 12}));
  EXPECT_EQ(values(Op::Sum, {x}, axes({0}, true)), (V{3, 5, 7}));
  EXPECT_EQ(values(Op::Sum, {x}, axes({0, 1})), V{15});
  EXPECT_EQ(values(Op::Sum, {x}, axes({})), (V{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(Op::Sum, {array(F32, {2, 0}, {})}, axes({1})), (V{0, 0}));
  EXPECT_EQ(values(Op::Prod, {array(F32, {2, 0}, {})}, axes({1})), (V{1, 1}));
  EXPECT_EQ(values(Op::Prod, {x}, axes({1})), (V{0, 60}));
  EXPECT_EQ(values(Op::Sum, {array(I8, {2}, {100, 100})}, axes({0})), V{-56});
  EXPECT_EQ(values(Op::Sum, {array(Bool, {3}, {1, 0, 1})}, axes({0})), V{2});
  EXPECT_EQ(values(Op::Prod, {array(U8, {2}, {16, 17})}, axes({0})), V{16});
  // 2048 + 1 would stick in f16, and 2^24 + 1 in f32.
  EXPECT_EQ(values(Op::Sum, {array(F16, {3}, {2048, 1, 1})}, axes({0})), V{2050});
  EXPECT_EQ(values(Op::Sum, {array(F32, {3}, {0x1p24, 1, 1})}, axes({0})), V{0x1p24 + 2});
}

TEST(InterpRun, extremes) {
  const Array x = array(F32, {2, 3}, {2, 0, 2, -1, kNan, -5});
  const V low = values(Op::ReduceMin, {x}, axes({1}));
  EXPECT_EQ(low[0], 0);
  EXPECT_TRUE(std::isnan(low[1]));
  EXPECT_TRUE(std::isnan(values(Op::ReduceMax, {x}, axes({0, 1}))[0]));
  EXPECT_TRUE(std::signbit(values(Op::ReduceMin, {array(F32, {2}, {0.0, -0.0})}, axes({0}))[0]));
  EXPECT_EQ(values(Op::ArgMax, {x}, axes({1})), (V{0, 1}));
  EXPECT_EQ(values(Op::ArgMin, {x}, axes({1})), (V{1, 1}));
  EXPECT_EQ(values(Op::ArgMin, {x}, axes({0, 1})), V{4});
  EXPECT_EQ(values(Op::ArgMax, {array(F32, {3}, {-0.0, 0.0, -1})}, axes({0})), V{0});
  EXPECT_EQ(values(Op::ArgMax, {array(F32, {3}, {1, kNan, kNan})}, axes({0})), V{1});
  EXPECT_EQ(values(Op::ArgMax, {array(F32, {}, {1})}, axes({})), V{0});
  EXPECT_EQ(values(Op::ReduceMax, {array(U8, {2}, {200, 100})}, axes({0})), V{200});
  EXPECT_EQ(values(Op::ReduceMax, {array(F32, {0, 0}, {})}, axes({0})), V{});
}

TEST(InterpRun, any_and_all) {
  const Array x = array(Bool, {2, 2}, {1, 0, 0, 0});
  EXPECT_EQ(values(Op::Any, {x}, axes({1})), (V{1, 0}));
  EXPECT_EQ(values(Op::All, {x}, axes({1})), (V{0, 0}));
  EXPECT_EQ(values(Op::Any, {array(Bool, {0}, {})}, axes({0})), V{0});
  EXPECT_EQ(values(Op::All, {array(Bool, {0}, {})}, axes({0})), V{1});
}

TEST(InterpRun, matmul_shapes) {
  const Array a = array(F32, {2, 3}, {1, 2, 3, 4, 5, 6}), b = array(F32, {3, 2}, {1, 0, 0, 1, 1, 1});
  const Array v = array(F32, {3}, {1, 0, 2});
  EXPECT_EQ(values(Op::MatMul, {a, b}), (V{4, 5, 10, 11}));
  EXPECT_EQ(values(Op::MatMul, {a, v}), (V{7, 16}));
  EXPECT_EQ(values(Op::MatMul, {v, b}), (V{3, 2}));
  EXPECT_EQ(values(Op::MatMul, {v, v}), V{5});
  EXPECT_EQ(values(Op::MatMul, {array(F32, {2, 0}, {}), array(F32, {0, 1}, {})}), (V{0, 0}));
  EXPECT_EQ(values(Op::MatMul, {array(U8, {1, 2}, {16, 1}), array(U8, {2, 1}, {16, 3})}), V{3});
  // Batches: (2, 1) with (3) gives (2, 3).
  const Ran r = one(Op::MatMul, {array(I64, {2, 1, 1, 1}, {10, 20}), array(I64, {3, 1, 1}, {1, 2, 3})});
  EXPECT_EQ(numbers(r.out), (V{10, 20, 30, 20, 40, 60}));
  EXPECT_EQ(r.out.shape, (Shape{2, 3, 1, 1}));
  // A batch axis against a vector.
  EXPECT_EQ(values(Op::MatMul, {array(I64, {2, 1, 2}, {1, 2, 3, 4}), array(I64, {2}, {1, 10})}), (V{21, 43}));
}

TEST(InterpRun, iota_params_and_slots) {
  Build b;
  Attrs iota = axes({1});
  iota.shape = {2, 3};
  const int out = b.output(b.add(Op::Iota, {}, iota));
  b.m.params = {Scalar::of_float(1.5, F32)};
  Attrs p;
  p.value = b.m.params[0];
  const int scalar = b.output(b.add(Op::Param, {}, p));
  std::vector<Array> slots;
  const Scalar now[] = {Scalar::of_float(2.5, F32)};
  ASSERT_TRUE(run(b.m, now, slots));
  EXPECT_EQ(numbers(slots[static_cast<size_t>(out)]), (V{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(numbers(slots[static_cast<size_t>(scalar)]), V{2.5}) << "not the value of tracing";
}

TEST(InterpRun, outputs_overwrite_after_every_read) {
  // Swap two slots.
  Build b;
  const auto x = b.input(type(F32, {1})), y = b.input(type(F32, {1}));
  b.m.slots[0].is_output = b.m.slots[1].is_output = true;
  b.m.outputs = {{y, 0}, {x, 1}};
  ASSERT_TRUE(ir::verify(b.m));
  std::vector<Array> slots{array(F32, {1}, {1}), array(F32, {1}, {2})};
  ASSERT_TRUE(run(b.m, {}, slots));
  EXPECT_EQ(numbers(slots[0]), V{2});
  EXPECT_EQ(numbers(slots[1]), V{1});
}

TEST(InterpRun, a_wrong_slot_is_an_error) {
  Build b;
  b.input(type(F32, {2}));
  std::vector<Array> slots{array(F32, {3}, {1, 2, 3})};
  EXPECT_EQ(run(b.m, {}, slots).error().message, "slot 0 holds f32[3], not f32[2]");
  slots.clear();
  EXPECT_FALSE(run(b.m, {}, slots));
}

TEST(InterpRun, loops_carry_values) {
  // Fibonacci, with the index added up on the side.
  const auto m = ir::parse(R"(module "fib" {
  slot 0: i64[] output fresh
  slot 1: i64[] output fresh
  %0: i64[] = const {value=i64 0}
  %1: i64[] = const {value=i64 1}
  %2: i64[], %3: i64[], %4: i64[] = loop %0, %1, %0 {trips=10}
    do (%5: i64[], %6: i64[], %7: i64[], %8: i64[]) {
    %9: i64[] = add %6, %7
    %10: i64[] = add %8, %5
    yield %7, %9, %10
  }
  output %2 -> 0
  output %4 -> 1
})");
  ASSERT_TRUE(m) << m.error().message;
  std::vector<Array> slots;
  ASSERT_TRUE(run(*m, {}, slots));
  EXPECT_EQ(numbers(slots[0]), V{55});
  EXPECT_EQ(numbers(slots[1]), V{45});
}

// n += 3 while n < limit, and 1 // n in the branch that is chosen.
ir::Module counting() {
  auto m = ir::parse(R"(module "count" {
  slot 0: i64[] input output "n"
  slot 1: i64[] output fresh
  param 0: i64 10
  %0: i64[] = input {slot=0, name="n"}
  %1: i64[] = param {index=0, value=i64 10}
  %2: bool[] = less %0, %1
  %3: i64[] = while %2, %0 do (%5: i64[]) {
    %6: i64[] = const {value=i64 3}
    %7: i64[] = add %5, %6
    %8: i64[] = param {index=0, value=i64 10}
    %9: bool[] = less %7, %8
    yield %9, %7
  }
  %4: i64[] = if %2, %0 then (%10: i64[]) {
    %11: i64[] = const {value=i64 1}
    %12: i64[] = floor_divide %11, %10
    yield %12
  } else (%13: i64[]) {
    %14: i64[] = const {value=i64 -1}
    yield %14
  }
  output %3 -> 0
  output %4 -> 1
}
)");
  EXPECT_TRUE(m) << (m ? "" : m.error().message);
  return std::move(*m);
}

TEST(InterpRun, conditions_are_decided_as_they_are_met) {
  const ir::Module m = counting();
  const auto at = [&](double n, std::vector<Scalar> params = {}) {
    std::vector<Array> slots{array(I64, {}, {n}), Array{}};
    const auto r = run(m, params, slots);
    return std::pair{r ? "" : r.error().code, V{numbers(slots[0])[0], numbers(slots[1])[0]}};
  };
  EXPECT_EQ(at(1), (std::pair<std::string, V>{"", {10, 1}}));
  EXPECT_EQ(at(2), (std::pair<std::string, V>{"", {11, 0}}));
  EXPECT_EQ(at(12), (std::pair<std::string, V>{"", {12, -1}}));  // no turn, the other branch
  EXPECT_EQ(at(1, {Scalar::of_int(2)}), (std::pair<std::string, V>{"", {4, 1}}));
  EXPECT_EQ(at(0), (std::pair<std::string, V>{"E0802", {12, 0}}));  // the run goes on to its end
}

// Each turn makes (b, a, a + b) of (a, b, c); the next condition is what the turn before carried.
TEST(InterpRun, what_is_yielded_is_of_one_turn) {
  const auto m = ir::parse(R"(module "swap" {
  slot 0: i64[] input output
  slot 1: i64[] input output
  slot 2: i64[] output fresh
  slot 3: bool[] input
  %0: i64[] = input {slot=0}
  %1: i64[] = input {slot=1}
  %2: bool[] = input {slot=3}
  %3: bool[] = const {value=bool false}
  %4: i64[], %5: i64[], %6: i64[], %7: bool[] = while %2, %0, %1, %0, %2, %3 do (%8: i64[], %9: i64[],
      %10: i64[], %11: bool[], %12: bool[]) {
    %13: i64[] = add %8, %9
    yield %11, %9, %8, %13, %12
  }
  output %4 -> 0
  output %5 -> 1
  output %6 -> 2
}
)");
  ASSERT_TRUE(m) << m.error().message;
  std::vector<Array> slots{array(I64, {}, {3}), array(I64, {}, {5}), Array{}, array(Bool, {}, {1})};
  ASSERT_TRUE(run(*m, {}, slots));
  EXPECT_EQ(numbers(slots[0])[0], 3);  // two turns
  EXPECT_EQ(numbers(slots[1])[0], 5);
  EXPECT_EQ(numbers(slots[2])[0], 8);
  slots[3].set(0, Scalar::of_bool(false));
  ASSERT_TRUE(run(*m, {}, slots));
  EXPECT_EQ(numbers(slots[2])[0], 3);  // no turn
}

TEST(InterpRun, loops_without_end_can_be_interrupted) {
  const ir::Module m = counting();
  std::vector<Array> slots{array(I64, {}, {1}), Array{}};
  int asked = 0;
  const Scalar forever[] = {Scalar::of_int(INT64_MAX)};
  const auto r = run(m, forever, slots, [&] { return ++asked == 1000; });
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "E0806");
  EXPECT_EQ(numbers(slots[0])[0], 1);  // nothing was written
}

TEST(InterpRun, random_state_advances) {
  const auto m = ir::parse(R"(module "rng" {
  slot 0: u64[2] input output
  slot 1: f32[4] output fresh
  slot 2: f64[2] output fresh
  %0: u64[2] = input {slot=0}
  %1: f32[4] = rng_uniform %0 {dtype=f32, shape=[4]}
  %2: u64[2] = rng_advance %0 {count=4}
  %3: f64[2] = rng_normal %2 {dtype=f64, shape=[2]}
  output %2 -> 0
  output %1 -> 1
  output %3 -> 2
})");
  ASSERT_TRUE(m) << m.error().message;
  std::vector<Array> slots{array(U64, {2}, {11, 100})};
  ASSERT_TRUE(run(*m, {}, slots));
  EXPECT_EQ(numbers(slots[0]), (V{11, 104}));
  for (uint64_t p = 0; p < 4; ++p)
    EXPECT_EQ(slots[1].get(static_cast<int64_t>(p)).f, rng_uniform(11, 100 + p, F32));
  EXPECT_EQ(slots[2].get(1).f, rng_normal(11, 105, F64));
}

TEST(InterpRun, more_memory_than_there_is_is_an_error) {
  Build b;
  Attrs shape;
  shape.shape = {int64_t{1} << 50};
  b.add(Op::Broadcast, {b.constant(Scalar::of_float(1))}, shape);
  std::vector<Array> slots;
  EXPECT_EQ(run(b.m, {}, slots).error().code, "E0601");
}

}  // namespace
}  // namespace gk::interp
