#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/dtype.h"

namespace gk {
namespace {

DType nth(int i) { return static_cast<DType>(i); }

TEST(BaseDType, names_read_back) {
  for (int i = 0; i < kDTypeCount; ++i) EXPECT_EQ(parse_dtype(name(nth(i))), nth(i));
  EXPECT_FALSE(parse_dtype("f8"));
  EXPECT_FALSE(parse_dtype(""));
}

TEST(BaseDType, promotion_is_symmetric_and_idempotent) {
  for (int a = 0; a < kDTypeCount; ++a) {
    EXPECT_EQ(promote(nth(a), nth(a)), nth(a));
    for (int b = 0; b < kDTypeCount; ++b) EXPECT_EQ(promote(nth(a), nth(b)), promote(nth(b), nth(a)));
  }
}

TEST(BaseDType, promotion_is_associative_where_defined) {
  // bf16 with f16 gives f32 whatever the order; the only partial pair is u64 with a signed integer.
  for (int a = 0; a < kDTypeCount; ++a)
    for (int b = 0; b < kDTypeCount; ++b)
      for (int c = 0; c < kDTypeCount; ++c) {
        const auto ab = promote(nth(a), nth(b)), bc = promote(nth(b), nth(c));
        if (!ab || !bc) continue;
        const auto left = promote(*ab, nth(c)), right = promote(nth(a), *bc);
        if (left && right) {
          EXPECT_EQ(*left, *right) << a << " " << b << " " << c;
        }
      }
}

TEST(BaseDType, promotion_follows_the_array_api) {
  using enum DType;
  EXPECT_EQ(promote(I8, U8), I16);
  EXPECT_EQ(promote(I16, U8), I16);
  EXPECT_EQ(promote(I8, U16), I32);
  EXPECT_EQ(promote(I32, U32), I64);
  EXPECT_EQ(promote(I64, U32), I64);
  EXPECT_EQ(promote(U8, U32), U32);
  for (DType t : {I8, I16, I32, I64}) EXPECT_FALSE(promote(U64, t));
  EXPECT_EQ(promote(I64, F16), F16);
  EXPECT_EQ(promote(U64, BF16), BF16);
  EXPECT_EQ(promote(F16, BF16), F32);
  EXPECT_EQ(promote(F16, F32), F32);
  EXPECT_EQ(promote(F32, F64), F64);
  EXPECT_EQ(promote(Bool, I8), I8);
  EXPECT_EQ(promote(F32, Bool), F32);
}

TEST(BaseDType, accumulators) {
  EXPECT_EQ(accumulator(DType::F16), DType::F32);
  EXPECT_EQ(accumulator(DType::BF16), DType::F32);
  EXPECT_EQ(accumulator(DType::Bool), DType::I64);
  EXPECT_EQ(accumulator(DType::I8), DType::I8);
}

// The value of a 16-bit float from its definition, without the functions under test.
double value_of(uint32_t h, int mant) {
  const int bias = (1 << (14 - mant)) - 1;
  const int e = static_cast<int>(h >> mant) & (2 * bias + 1);
  const auto m = static_cast<double>(h & ((1u << mant) - 1));
  const double sign = h & 0x8000 ? -1 : 1;
  if (e == 2 * bias + 1) return m == 0 ? sign * INFINITY : NAN;
  if (e == 0) return sign * std::ldexp(m, 1 - bias - mant);
  return sign * std::ldexp(m + std::ldexp(1.0, mant), e - bias - mant);
}

void check_all(int mant, float (*widen)(uint16_t), uint16_t (*from32)(float), uint16_t (*from64)(double)) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto bits = static_cast<uint16_t>(h);
    const double want = value_of(h, mant);
    const float got = widen(bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << h;
      ASSERT_TRUE(std::isnan(widen(from32(got)))) << h;
      ASSERT_TRUE(std::isnan(widen(from64(want)))) << h;
      continue;
    }
    ASSERT_EQ(static_cast<double>(got), want) << h;
    ASSERT_EQ(std::signbit(got), std::signbit(want)) << h;
    ASSERT_EQ(from32(got), bits);
    ASSERT_EQ(from64(want), bits);
    const double next = value_of(h + 1, mant);
    if ((h & 0x7fff) == 0x7fff || !std::isfinite(next) || !std::isfinite(want)) continue;
    // Halfway goes to the even one; a hair to either side goes there.
    const double half = (want + next) / 2;
    ASSERT_EQ(from64(half), h & 1 ? h + 1 : h);
    ASSERT_EQ(from64(std::nextafter(half, want)), h);
    ASSERT_EQ(from64(std::nextafter(half, next)), h + 1);
    ASSERT_EQ(from32(static_cast<float>(half)), h & 1 ? h + 1 : h);
  }
}

TEST(BaseDType, every_f16_converts) { check_all(10, f16_to_f32, f32_to_f16, f64_to_f16); }
TEST(BaseDType, every_bf16_converts) { check_all(7, bf16_to_f32, f32_to_bf16, f64_to_bf16); }

TEST(BaseDType, overflow_to_16_bits_starts_halfway_past_the_largest) {
  EXPECT_EQ(f64_to_f16(65519.999), 0x7bff);
  EXPECT_EQ(f64_to_f16(65520.0), 0x7c00);
  EXPECT_EQ(f64_to_f16(-1e300), 0xfc00);
  EXPECT_EQ(f64_to_f16(5e-324), 0);
  EXPECT_EQ(f64_to_bf16(1e39), 0x7f80);
}

TEST(BaseDType, f64_to_f16_rounds_once) {
  // Through f32 this would first become a tie, then go to even: 1 instead of the next.
  const double d = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(f64_to_f16(d), 0x3c01);
  EXPECT_EQ(f32_to_f16(static_cast<float>(d)), 0x3c00);
}

TEST(BaseDType, floats_to_integers_truncate_and_saturate) {
  const auto to = [](double v, DType t) { return Scalar::of_float(v, DType::F64).cast(t).i; };
  EXPECT_EQ(to(-1.9, DType::I32), -1);
  EXPECT_EQ(to(300, DType::I8), 127);
  EXPECT_EQ(to(-300, DType::I8), -128);
  EXPECT_EQ(to(-128.9, DType::I8), -128);
  EXPECT_EQ(to(255.9, DType::U8), 255);
  EXPECT_EQ(to(-0.9, DType::U8), 0);
  EXPECT_EQ(to(-5, DType::U64), 0);
  EXPECT_EQ(to(1e30, DType::I64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(to(-1e30, DType::I64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(static_cast<uint64_t>(to(1e30, DType::U64)), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(static_cast<uint64_t>(to(0x1p63, DType::U64)), uint64_t{1} << 63);
  EXPECT_EQ(to(INFINITY, DType::I16), 32767);
  for (DType t : {DType::I8, DType::U8, DType::I64, DType::U64}) EXPECT_EQ(to(NAN, t), 0);
  EXPECT_EQ(to(NAN, DType::Bool), 1);
  EXPECT_EQ(to(-0.0, DType::Bool), 0);
}

TEST(BaseDType, integers_wrap_and_round_once) {
  EXPECT_EQ(Scalar::of_int(300).cast(DType::U8).i, 44);
  EXPECT_EQ(Scalar::of_int(200, DType::U8).cast(DType::I8).i, -56);
  EXPECT_EQ(Scalar::of_int(-1).cast(DType::U32).i, 0xffffffff);
  EXPECT_EQ(Scalar::of_int(-1, DType::U64).as_double(), 0x1p64);
  EXPECT_EQ(Scalar::of_int(-1, DType::U64).cast(DType::F32).f, 0x1p64);
  EXPECT_EQ(Scalar::of_int(256, DType::I64).cast(DType::Bool).i, 1);
  // 2^60 + 2^52 is halfway between two bf16; one more must go up, though f64 cannot hold it.
  EXPECT_EQ(Scalar::of_int((int64_t{1} << 60) + (int64_t{1} << 52)).cast(DType::BF16).f, 0x1p60);
  EXPECT_EQ(Scalar::of_int((int64_t{1} << 60) + (int64_t{1} << 52) + 1).cast(DType::BF16).f, 0x1p60 + 0x1p53);
}

TEST(BaseDType, scalars_store_and_load) {
  for (int i = 0; i < kDTypeCount; ++i) {
    for (int64_t v : {0, 1, -1, 77}) {
      const Scalar s = Scalar::of_int(v, nth(i));
      unsigned char raw[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0xaa};
      raw[size_bytes(nth(i))] = 0xaa;
      s.store(raw);
      EXPECT_EQ(Scalar::load(nth(i), raw), s) << name(nth(i)) << " " << v;
      EXPECT_EQ(raw[size_bytes(nth(i))], 0xaa) << "past the element";
    }
  }
}

}  // namespace
}  // namespace gk
