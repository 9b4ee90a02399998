// The random draws, as one template over a builder of scalar operations. Owns the definition of a draw: the
// interpreter evaluates it, code generation builds instructions from it, and both give the same bits. It uses
// only integer operations and correctly rounded f64 + - * / sqrt (f32 * by a power of two), so a builder must
// not contract or reassociate them, fast_math included. Not a generator: seeds and counts live in the
// program.
//
// A builder B has a value type B::V and
//   V constant(const Scalar&);            V cast(V, DType);   // language conversion, rounded once
//   V op(Op, V); V op(Op, V, V);          V bits(V, DType);   // same bits, another dtype of the same width
//   V where(V condition, V yes, V no);
// It is told dtypes only by constant, cast and bits; operands of an op always agree in dtype.
//
// Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11 (Philox 4x32-10, as in
// Random123); Box and Muller 1958.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "compiler/ir/ops.h"

namespace gk::ir {

namespace rng_detail {

template <class B>
typename B::V u32(B& b, uint32_t v) {
  return b.constant(Scalar::of_int(v, DType::U32));
}
template <class B>
typename B::V u64(B& b, uint64_t v) {
  return b.constant(Scalar::of_int(static_cast<int64_t>(v), DType::U64));
}
template <class B>
typename B::V f64(B& b, double v) {
  return b.constant(Scalar::of_float(v, DType::F64));
}

/// sum of coefficients[i] * x^i, by Horner's rule from the last.
template <class B>
typename B::V polynomial(B& b, typename B::V x, std::span<const double> coefficients) {
  typename B::V acc = f64(b, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    acc = b.op(Op::Add, b.op(Op::Mul, acc, x), f64(b, coefficients[i]));
  return acc;
}

/// ln((w + 1) / 2^32) of a u32, at most 0. The exponent comes from the bits; the rest, brought to
/// [1/sqrt 2, sqrt 2], by 2 atanh((f - 1) / (f + 1)). Near 1 the exponent's part is 0, so nothing cancels.
template <class B>
typename B::V log_of_word(B& b, typename B::V w) {
  using V = typename B::V;
  const V m = b.op(Op::Add, b.cast(b.cast(w, DType::U64), DType::F64), f64(b, 1.0));  // exact
  const V bits = b.bits(m, DType::U64);
  const V fraction = b.op(Op::And, bits, u64(b, 0x000fffffffffffff));
  const V high = b.op(Op::Gt, fraction, u64(b, 0x6a09e667f3bcc));  // above sqrt 2
  const V one = b.bits(b.op(Op::Or, fraction, u64(b, 0x3ff0000000000000)), DType::F64);
  const V f = b.where(high, b.op(Op::Mul, one, f64(b, 0.5)), one);
  const V biased = b.cast(b.op(Op::Shr, bits, u64(b, 52)), DType::F64);
  const V exponent = b.op(Op::Sub, biased, b.where(high, f64(b, 1023 + 31), f64(b, 1023 + 32)));
  const V s = b.op(Op::Div, b.op(Op::Sub, f, f64(b, 1.0)), b.op(Op::Add, f, f64(b, 1.0)));
  static constexpr std::array<double, 12> kAtanh{2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                                 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const V log_f = b.op(Op::Mul, s, polynomial(b, b.op(Op::Mul, s, s), kAtanh));
  return b.op(Op::Add, b.op(Op::Mul, exponent, f64(b, 0x1.62e42fefa39efp-1)), log_f);
}

/// cos(2 pi w / 2^32) of a u32. The nearest quarter turn is taken off exactly, in integers; what is left is
/// within an eighth of a turn, where Taylor's series is good to the last bits.
template <class B>
typename B::V cos_of_word(B& b, typename B::V w) {
  using V = typename B::V;
  const V quarter = b.op(Op::Shr, b.op(Op::Add, w, u32(b, 1u << 29)), u32(b, 30));
  const V rest = b.cast(b.op(Op::Sub, w, b.op(Op::Shl, quarter, u32(b, 30))), DType::I32);
  const V a = b.op(Op::Mul, b.cast(rest, DType::F64), f64(b, 0x1.921fb54442d18p+2 * 0x1p-32));
  const V a2 = b.op(Op::Mul, a, a);
  static constexpr std::array<double, 9> kCos{1.0,
                                              -1.0 / 2,
                                              1.0 / 24,
                                              -1.0 / 720,
                                              1.0 / 40320,
                                              -1.0 / 3628800,
                                              1.0 / 479001600,
                                              -1.0 / 87178291200,
                                              1.0 / 20922789888000};
  static constexpr std::array<double, 9> kSin{1.0,
                                              -1.0 / 6,
                                              1.0 / 120,
                                              -1.0 / 5040,
                                              1.0 / 362880,
                                              -1.0 / 39916800,
                                              1.0 / 6227020800,
                                              -1.0 / 1307674368000,
                                              1.0 / 355687428096000};
  const V c = polynomial(b, a2, kCos);
  const V s = b.op(Op::Mul, a, polynomial(b, a2, kSin));
  // Quarters 0..3: cos a, -sin a, -cos a, sin a.
  const V odd = b.op(Op::Eq, b.op(Op::And, quarter, u32(b, 1)), u32(b, 1));
  const V picked = b.where(odd, s, c);
  const V minus = b.op(Op::Lt, b.op(Op::Sub, quarter, u32(b, 1)), u32(b, 2));  // 1 or 2; 0 - 1 wraps
  return b.where(minus, b.op(Op::Mul, picked, f64(b, -1.0)), picked);
}

}  // namespace rng_detail

/// Philox 4x32-10: the four u32 words of a counter (four u32) under a key (two u32).
template <class B>
std::array<typename B::V, 4> philox4x32(B& b, std::array<typename B::V, 4> c,
                                        std::array<typename B::V, 2> key) {
  using V = typename B::V;
  using rng_detail::u32;
  using rng_detail::u64;
  const auto product = [&](uint32_t by, V x) { return b.op(Op::Mul, b.cast(x, DType::U64), u64(b, by)); };
  const auto low = [&](V x) { return b.cast(x, DType::U32); };
  const auto high = [&](V x) { return b.cast(b.op(Op::Shr, x, u64(b, 32)), DType::U32); };
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] = b.op(Op::Add, key[0], u32(b, 0x9E3779B9));
      key[1] = b.op(Op::Add, key[1], u32(b, 0xBB67AE85));
    }
    const V p0 = product(0xD2511F53, c[0]);
    const V p1 = product(0xCD9E8D57, c[2]);
    const V n0 = b.op(Op::Xor, b.op(Op::Xor, high(p1), c[1]), key[0]);
    const V n2 = b.op(Op::Xor, b.op(Op::Xor, high(p0), c[3]), key[1]);
    const V n1 = low(p1);
    const V n3 = low(p0);
    c = {n0, n1, n2, n3};
  }
  return c;
}

/// Words 0 and 1 of draw `position` (u64) of `seed` (u64): key = the seed's low and high half, counter = the
/// position's low and high half, 0, 0.
template <class B>
std::array<typename B::V, 2> rng_words(B& b, typename B::V seed, typename B::V position) {
  using V = typename B::V;
  const auto low = [&](V x) { return b.cast(x, DType::U32); };
  const auto high = [&](V x) { return b.cast(b.op(Op::Shr, x, rng_detail::u64(b, 32)), DType::U32); };
  const V zero = rng_detail::u32(b, 0);
  const V c0 = low(position), c1 = high(position), k0 = low(seed), k1 = high(seed);
  const auto w = philox4x32<B>(b, {c0, c1, zero, zero}, {k0, k1});
  return {w[0], w[1]};
}

/// A draw from [0, 1). f32: (w0 >> 8) 2^-24; f64: (w0:w1 >> 11) 2^-53; f16 and bf16: the f32 draw rounded
/// toward zero, so that 1 never comes out, by clearing the fraction bits they lack (what f16 subnormals lack
/// is 0 already, the draw being a multiple of 2^-24).
template <class B>
typename B::V rng_uniform(B& b, typename B::V seed, typename B::V position, DType t) {
  using V = typename B::V;
  using rng_detail::u32;
  using rng_detail::u64;
  const auto w = rng_words(b, seed, position);
  if (t == DType::F64) {
    const V high = b.op(Op::Shl, b.cast(w[0], DType::U64), u64(b, 32));
    const V both = b.op(Op::Or, high, b.cast(w[1], DType::U64));
    return b.op(Op::Mul, b.cast(b.op(Op::Shr, both, u64(b, 11)), DType::F64), rng_detail::f64(b, 0x1p-53));
  }
  const V kept = b.cast(b.op(Op::Shr, w[0], u32(b, 8)), DType::F32);
  const V draw = b.op(Op::Mul, kept, b.constant(Scalar::of_float(0x1p-24, DType::F32)));
  if (t == DType::F32) return draw;
  const uint32_t mask = t == DType::F16 ? 0xffffe000u : 0xffff0000u;
  return b.cast(b.bits(b.op(Op::And, b.bits(draw, DType::U32), u32(b, mask)), DType::F32), t);
}

/// A standard normal draw: sqrt(-2 ln u1) cos(2 pi u2) with u1 = (w0 + 1) / 2^32, u2 = w1 / 2^32, in f64 to a
/// relative error under 1e-14, rounded once to `t`.
template <class B>
typename B::V rng_normal(B& b, typename B::V seed, typename B::V position, DType t) {
  using V = typename B::V;
  const auto w = rng_words(b, seed, position);
  const V log = rng_detail::log_of_word(b, w[0]);
  const V radius = b.op(Op::Sqrt, b.op(Op::Mul, log, rng_detail::f64(b, -2.0)));
  const V draw = b.op(Op::Mul, radius, rng_detail::cos_of_word(b, w[1]));
  return t == DType::F64 ? draw : b.cast(draw, t);
}

}  // namespace gk::ir
