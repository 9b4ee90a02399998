#include <gtest/gtest.h>

#include <cmath>

#include "compiler/interp/interp.h"
#include "compiler/ir/apply.h"
#include "compiler/ir/rng.h"

namespace gk::interp {
namespace {

struct Evaluator {
  using V = Scalar;
  V constant(const Scalar& s) { return s; }
  V op(ir::Op o, const V& a) { return ir::apply(o, std::array{a}, a.dtype); }
  V op(ir::Op o, const V& a, const V& b) { return ir::apply(o, std::array{a, b}, a.dtype); }
  V cast(const V& v, DType t) { return v.cast(t); }
  V where(const V& c, const V& yes, const V& no) { return c.i ? yes : no; }
  V bits(const V& v, DType t) {
    std::array<std::byte, 8> raw{};
    v.store(raw.data());
    return Scalar::load(t, raw.data());
  }
};

Scalar word(uint32_t v) { return Scalar::of_int(v, DType::U32); }

using Words = std::array<uint32_t, 4>;
Words philox(Words c, std::array<uint32_t, 2> k) {
  Evaluator e;
  const auto w = ir::philox4x32<Evaluator>(e, {word(c[0]), word(c[1]), word(c[2]), word(c[3])},
                                           {word(k[0]), word(k[1])});
  Words out;
  for (size_t i = 0; i < 4; ++i) out[i] = static_cast<uint32_t>(w[i].i);
  return out;
}

// Random123's kat_vectors, philox4x32 10.
TEST(InterpRng, philox_known_answers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(InterpRng, draws_take_the_documented_words) {
  EXPECT_EQ(rng_uniform(0, 0, DType::F32), (0x6627e8d5 >> 8) * 0x1p-24);
  EXPECT_EQ(rng_uniform(0, 0, DType::F64), static_cast<double>(0x6627e8d5e169c58dULL >> 11) * 0x1p-53);
  // Seed and position both have high halves.
  const Words w = philox({7, 9, 0, 0}, {3, 5});
  EXPECT_EQ(rng_uniform(uint64_t{5} << 32 | 3, uint64_t{9} << 32 | 7, DType::F32), (w[0] >> 8) * 0x1p-24);
}

TEST(InterpRng, uniform_stays_below_one_in_every_dtype) {
  for (const DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    double sum = 0;
    constexpr int kDraws = 20000;
    for (uint64_t p = 0; p < kDraws; ++p) {
      const double u = rng_uniform(1, p, t);
      ASSERT_GE(u, 0);
      ASSERT_LT(u, 1);
      ASSERT_EQ(Scalar::of_float(u, t).f, u);
      const double wide = rng_uniform(1, p, DType::F32);
      if (t == DType::F16 || t == DType::BF16) {
        ASSERT_LE(u, wide);
        ASSERT_GT(u, wide * (1 - (t == DType::F16 ? 0x1p-10 : 0x1p-7)) - 1e-30);
      }
      sum += u;
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
  }
}

TEST(InterpRng, normal_matches_box_muller_in_long_double) {
  double worst = 0;
  for (uint64_t p = 0; p < 5000; ++p) {
    const Words w = philox({static_cast<uint32_t>(p), 0, 0, 0}, {42, 0});
    const long double u1 = (static_cast<long double>(w[0]) + 1) / 4294967296.0L;
    const long double turn = static_cast<long double>(w[1]) / 4294967296.0L;
    const long double want = std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::acos(-1.0L) * turn);
    const double got = rng_normal(42, p, DType::F64);
    worst = std::max(worst, static_cast<double>(std::fabs(got - want) / std::fabs(want)));
    EXPECT_EQ(rng_normal(42, p, DType::F32), static_cast<float>(got));
    EXPECT_EQ(rng_normal(42, p, DType::F16), Scalar::of_float(got, DType::F16).f);
  }
  EXPECT_LT(worst, 1e-10);
}

TEST(InterpRng, normal_moments) {
  constexpr int kDraws = 100000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (uint64_t p = 0; p < kDraws; ++p) {
    const double z = rng_normal(9, p, DType::F64);
    ASSERT_LT(std::fabs(z), 6.7);
    m1 += z, m2 += z * z, m3 += z * z * z, m4 += z * z * z * z;
  }
  EXPECT_NEAR(m1 / kDraws, 0, 0.015);
  EXPECT_NEAR(m2 / kDraws, 1, 0.02);
  EXPECT_NEAR(m3 / kDraws, 0, 0.05);
  EXPECT_NEAR(m4 / kDraws, 3, 0.12);
}

TEST(InterpRng, neighbouring_draws_do_not_correlate) {
  constexpr int kDraws = 50000;
  double product = 0;
  for (uint64_t p = 0; p < kDraws; ++p)
    product += (rng_uniform(3, p, DType::F32) - 0.5) * (rng_uniform(3, p + 1, DType::F32) - 0.5);
  EXPECT_NEAR(product / kDraws * 12, 0, 0.02);
}

}  // namespace
}  // namespace gk::interp
