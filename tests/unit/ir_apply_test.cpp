#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/ir/apply.h"

namespace gk::interp {
namespace {

using ir::Op;
using enum DType;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

double f(Op op, double a, DType t = F32) {
  const Scalar args[] = {Scalar::of_float(a, t)};
  return apply(op, args, t).f;
}
double f(Op op, double a, double b, DType t = F32) {
  const Scalar args[] = {Scalar::of_float(a, t), Scalar::of_float(b, t)};
  return apply(op, args, t).f;
}
int64_t i(Op op, int64_t a, DType t = I32) {
  const Scalar args[] = {Scalar::of_int(a, t)};
  return apply(op, args, t).i;
}
int64_t i(Op op, int64_t a, int64_t b, DType t = I32) {
  const Scalar args[] = {Scalar::of_int(a, t), Scalar::of_int(b, t)};
  return apply(op, args, op >= Op::Eq && op <= Op::Ge ? Bool : t).i;
}
bool compare(Op op, double a, double b) {
  const Scalar args[] = {Scalar::of_float(a, F32), Scalar::of_float(b, F32)};
  return apply(op, args, Bool).i != 0;
}

// Equal, zeros told apart, NaN equal to NaN.
void same(double got, double want) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else {
    EXPECT_EQ(got, want);
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << got;
  }
}

TEST(IrApply, integers_wrap) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(i(Op::Add, 127, 1, I8), -128);
  EXPECT_EQ(i(Op::Sub, 0, 1, U16), 65535);
  EXPECT_EQ(i(Op::Mul, 200, 2, U8), 144);
  EXPECT_EQ(i(Op::Add, kMax, 1, I64), kMin);
  EXPECT_EQ(i(Op::Neg, -128, I8), -128);
  EXPECT_EQ(i(Op::Neg, 1, U8), 255);
  EXPECT_EQ(i(Op::Abs, kMin, I64), kMin);
  EXPECT_EQ(i(Op::Abs, -1, U64), -1) << "the largest u64";
  EXPECT_EQ(i(Op::Abs, -5), 5);
  EXPECT_EQ(i(Op::BitNot, 0, U8), 255);
  EXPECT_EQ(i(Op::BitNot, 5), -6);
  EXPECT_EQ(i(Op::BitNot, 1, Bool), 0);
  EXPECT_EQ(i(Op::Sign, -7), -1);
  EXPECT_EQ(i(Op::Sign, -7, U64), 1);
  EXPECT_EQ(i(Op::Sign, 0), 0);
  for (Op op : {Op::Floor, Op::Ceil, Op::Round, Op::Trunc}) EXPECT_EQ(i(op, -7), -7);
}

TEST(IrApply, integer_division_floors) {
  EXPECT_EQ(i(Op::FloorDiv, 7, 2), 3);
  EXPECT_EQ(i(Op::FloorDiv, -7, 2), -4);
  EXPECT_EQ(i(Op::FloorDiv, 7, -2), -4);
  EXPECT_EQ(i(Op::FloorDiv, -8, 2), -4);
  EXPECT_EQ(i(Op::FloorDiv, -128, -1, I8), -128);
  EXPECT_EQ(i(Op::FloorDiv, std::numeric_limits<int64_t>::min(), -1, I64),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(i(Op::FloorDiv, -1, 2, U64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(i(Op::FloorDiv, 7, 0), 0);
  EXPECT_EQ(i(Op::Mod, 7, 3), 1);
  EXPECT_EQ(i(Op::Mod, -7, 3), 2);
  EXPECT_EQ(i(Op::Mod, 7, -3), -2);
  EXPECT_EQ(i(Op::Mod, -6, 3), 0);
  EXPECT_EQ(i(Op::Mod, std::numeric_limits<int64_t>::min(), -1, I64), 0);
  EXPECT_EQ(i(Op::Mod, 7, 0), 0);
  for (int a = -128; a < 128; ++a)
    for (int b = -128; b < 128; ++b)
      if (b != 0) {
        ASSERT_EQ(i(Op::FloorDiv, a, b, I8),
                  Scalar::of_int(static_cast<int64_t>(std::floor(double(a) / b)), I8).i);
        ASSERT_EQ(i(Op::Add, i(Op::Mul, i(Op::FloorDiv, a, b, I8), b, I8), i(Op::Mod, a, b, I8), I8), a);
      }
}

TEST(IrApply, divisions_by_zero_are_told) {
  const auto zero = [](Op op, int64_t a, int64_t b, DType t) {
    const Scalar args[] = {Scalar::of_int(a, t), Scalar::of_int(b, t)};
    return divides_by_zero(op, args);
  };
  EXPECT_TRUE(zero(Op::FloorDiv, 1, 0, I32));
  EXPECT_TRUE(zero(Op::Mod, 1, 0, U8));
  EXPECT_FALSE(zero(Op::Mod, 1, 1, U8));
  EXPECT_FALSE(zero(Op::Pow, 0, -1, I32)) << "a power of integers never faults";
  EXPECT_FALSE(zero(Op::FloorDiv, 1, 0, F32));
  EXPECT_FALSE(zero(Op::Add, 1, 0, I32));
}

TEST(IrApply, integer_powers) {
  EXPECT_EQ(i(Op::Pow, 3, 4), 81);
  EXPECT_EQ(i(Op::Pow, -2, 3), -8);
  EXPECT_EQ(i(Op::Pow, 3, 5, U8), 243);
  EXPECT_EQ(i(Op::Pow, 3, 6, U8), 729 % 256);
  EXPECT_EQ(i(Op::Pow, 0, 0), 1);
  EXPECT_EQ(i(Op::Pow, 2, -1), 0);
  EXPECT_EQ(i(Op::Pow, 1, -5), 1);
  EXPECT_EQ(i(Op::Pow, -1, -5), -1);
  EXPECT_EQ(i(Op::Pow, -1, -4), 1);
  EXPECT_EQ(i(Op::Pow, 0, -1), 0);
}

TEST(IrApply, shifts) {
  EXPECT_EQ(i(Op::Shl, 1, 7, I8), -128);
  EXPECT_EQ(i(Op::Shl, 1, 8, I8), 0);
  EXPECT_EQ(i(Op::Shl, 1, 63, I64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(i(Op::Shl, 1, 64, I64), 0);
  EXPECT_EQ(i(Op::Shl, 1, -1), 0);
  EXPECT_EQ(i(Op::Shr, -8, 1), -4);
  EXPECT_EQ(i(Op::Shr, -8, 32), -1);
  EXPECT_EQ(i(Op::Shr, 8, 32), 0);
  EXPECT_EQ(i(Op::Shr, -8, -1), -1);
  EXPECT_EQ(i(Op::Shr, 8, -1), 0);
  EXPECT_EQ(i(Op::Shr, 255, 1, U8), 127);
  EXPECT_EQ(i(Op::Shr, -1, 63, U64), 1);
  EXPECT_EQ(i(Op::Shr, -1, 64, U64), 0);
  EXPECT_EQ(i(Op::Shr, -1, -1, U64), 0);
}

TEST(IrApply, integer_order_and_bits) {
  EXPECT_EQ(i(Op::Min, -1, 1), -1);
  EXPECT_EQ(i(Op::Min, -1, 1, U64), 1);
  EXPECT_EQ(i(Op::Max, -1, 1, U64), -1);
  EXPECT_EQ(i(Op::Lt, -1, 1), 1);
  EXPECT_EQ(i(Op::Lt, -1, 1, U64), 0);
  EXPECT_EQ(i(Op::Ge, -1, 1, U64), 1);
  EXPECT_EQ(i(Op::And, 6, 3), 2);
  EXPECT_EQ(i(Op::Or, 6, 3), 7);
  EXPECT_EQ(i(Op::Xor, 6, 3), 5);
  EXPECT_EQ(i(Op::Xor, 1, 1, Bool), 0);
  EXPECT_EQ(i(Op::Eq, 1, 1, Bool), 1);
}

TEST(IrApply, float_signs_and_rounding) {
  same(f(Op::Neg, 0.0), -0.0);
  same(f(Op::Abs, -0.0), 0.0);
  same(f(Op::Sign, -0.0), 0.0);
  same(f(Op::Sign, -3), -1);
  same(f(Op::Sign, kNan), kNan);
  same(f(Op::Round, 2.5), 2);
  same(f(Op::Round, 3.5), 4);
  same(f(Op::Round, -0.5), -0.0);
  same(f(Op::Ceil, -0.5), -0.0);
  same(f(Op::Floor, -0.5), -1);
  same(f(Op::Trunc, -1.7), -1);
  same(f(Op::Floor, kInf), kInf);
}

TEST(IrApply, float_minimum_and_maximum) {
  same(f(Op::Min, -0.0, 0.0), -0.0);
  same(f(Op::Min, 0.0, -0.0), -0.0);
  same(f(Op::Max, -0.0, 0.0), 0.0);
  same(f(Op::Max, 0.0, -0.0), 0.0);
  for (Op op : {Op::Min, Op::Max}) {
    same(f(op, kNan, 1), kNan);
    same(f(op, 1, kNan), kNan);
  }
  same(f(Op::Max, -kInf, 1), 1);
}

TEST(IrApply, float_division_as_numpy) {
  same(f(Op::Div, 1, 0), kInf);
  same(f(Op::Div, -1, 0.0), -kInf);
  same(f(Op::Div, 0, 0), kNan);
  same(f(Op::FloorDiv, 7, 2), 3);
  same(f(Op::FloorDiv, -7, 2), -4);
  same(f(Op::FloorDiv, 1, 0), kInf);
  same(f(Op::FloorDiv, 0, 0), kNan);
  same(f(Op::FloorDiv, -0.0, 2), -0.0);
  same(f(Op::FloorDiv, kInf, 2), kNan);
  same(f(Op::FloorDiv, 1, kInf), 0);
  same(f(Op::FloorDiv, -1, kInf), -1);
  same(f(Op::FloorDiv, 1, 0.1, F64), 9);  // 0.1 is a little more than a tenth
  same(f(Op::Mod, 7, 3), 1);
  same(f(Op::Mod, -7, 3), 2);
  same(f(Op::Mod, 7, -3), -2);
  same(f(Op::Mod, -6, 3), 0.0);
  same(f(Op::Mod, 6, -3), -0.0);
  same(f(Op::Mod, 1, 0), kNan);
  same(f(Op::Mod, kInf, 3), kNan);
  same(f(Op::Mod, 1, kInf), 1);
  same(f(Op::Mod, -1, kInf), kInf);
}

TEST(IrApply, float_powers_and_functions_at_their_edges) {
  same(f(Op::Pow, kNan, 0), 1);
  same(f(Op::Pow, 1, kNan), 1);
  same(f(Op::Pow, -8, 1.0 / 3), kNan);
  same(f(Op::Pow, 0, -1), kInf);
  same(f(Op::Sqrt, -0.0), -0.0);
  same(f(Op::Sqrt, -1), kNan);
  same(f(Op::Exp, -kInf), 0);
  same(f(Op::Exp, 100), kInf);
  same(f(Op::Expm1, -0.0), -0.0);
  same(f(Op::Log, 0), -kInf);
  same(f(Op::Log, -1), kNan);
  same(f(Op::Log1p, -1), -kInf);
  same(f(Op::Log2, 8), 3);
  same(f(Op::Log10, 1000), 3);
  same(f(Op::Exp2, 3), 8);
  same(f(Op::Sin, kInf), kNan);
  same(f(Op::Tan, -0.0), -0.0);
  same(f(Op::Asin, 2), kNan);
  same(f(Op::Acos, 2), kNan);
  same(f(Op::Acosh, 0.5), kNan);
  same(f(Op::Atanh, -1), -kInf);
  same(f(Op::Atanh, 2), kNan);
  same(f(Op::Asinh, -0.0), -0.0);
  same(f(Op::Tanh, -kInf), -1);
  same(f(Op::Cosh, -kInf), kInf);
  same(f(Op::Sinh, -kInf), -kInf);
  same(f(Op::Atan, kInf, F64), std::acos(0.0));
  same(f(Op::Cos, 0), 1);
  same(f(Op::Erf, -kInf), -1);
  same(f(Op::Atan2, -0.0, -1, F64), -std::acos(-1.0));
}

TEST(IrApply, comparisons_with_nan) {
  for (Op op : {Op::Eq, Op::Lt, Op::Le, Op::Gt, Op::Ge}) EXPECT_FALSE(compare(op, kNan, kNan));
  EXPECT_TRUE(compare(Op::Ne, kNan, kNan));
  EXPECT_TRUE(compare(Op::Eq, 0.0, -0.0));
}

TEST(IrApply, predicates_where_and_not) {
  const auto is = [](Op op, const Scalar& s) {
    const Scalar args[] = {s};
    return apply(op, args, Bool).i != 0;
  };
  EXPECT_TRUE(is(Op::IsNan, Scalar::of_float(kNan, F16)));
  EXPECT_TRUE(is(Op::IsInf, Scalar::of_float(70000, F16)));
  EXPECT_FALSE(is(Op::IsFinite, Scalar::of_float(kInf)));
  EXPECT_TRUE(is(Op::IsFinite, Scalar::of_int(3)));
  EXPECT_FALSE(is(Op::IsNan, Scalar::of_int(3)));
  EXPECT_FALSE(is(Op::Not, Scalar::of_bool(true)));
  const Scalar args[] = {Scalar::of_bool(false), Scalar::of_float(kNan), Scalar::of_float(2)};
  same(apply(Op::Where, args, F32).f, 2);
}

// The hardware's own f32 arithmetic is the correctly rounded one.
TEST(IrApply, f32_arithmetic_is_correctly_rounded) {
  std::mt19937 random(3);
  for (int n = 0; n < 20000; ++n) {
    const uint32_t raw[] = {static_cast<uint32_t>(random()), static_cast<uint32_t>(random())};
    const float a = std::bit_cast<float>(raw[0]), b = std::bit_cast<float>(raw[1]);
    if (std::isnan(a) || std::isnan(b)) continue;
    const volatile float sum = a + b, difference = a - b, product = a * b, quotient = a / b;
    const volatile float root = std::sqrt(std::fabs(a));
    same(f(Op::Add, a, b), sum);
    same(f(Op::Sub, a, b), difference);
    same(f(Op::Mul, a, b), product);
    same(f(Op::Div, a, b), quotient);
    same(f(Op::Sqrt, std::fabs(a)), root);
  }
}

TEST(IrApply, small_floats_round_from_f32) {
  same(f(Op::Add, 1, 0x1p-11, F16), 1);
  same(f(Op::Add, 1, 0x1.8p-11, F16), 1 + 0x1p-10);
  same(f(Op::Mul, 60000, 2, F16), kInf);
  same(f(Op::Div, 1, 3, BF16), Scalar::of_float(1.0f / 3.0f, BF16).f);
}

}  // namespace
}  // namespace gk::interp
