// Formulas over f64 or f32 values and integers of their width, scalars or vectors, written like C: what the
// host's transcendental functions are made of. Promises that a lane of a vector has the bits of the scalar
// formula. Products and sums are fused where `fused` says that the processor does that.
#pragma once

#include <array>

#include "compiler/codegen/emitter.h"

namespace gk::codegen {

class Formulas {
 public:
  /// `shape`: double or float, or a vector of them.
  Formulas(Builder& builder, llvm::Type* shape, bool fused)
      : b(builder),
        single_(shape->getScalarType()->isFloatTy()),
        real_(shape),
        int_(shape->getWithNewType(builder.getIntNTy(single_ ? 32 : 64))),
        fused_(fused) {}

  struct D {
    llvm::Value* v;
    Builder* b;
    D operator+(D o) const { return {b->CreateFAdd(v, o.v), b}; }
    D operator-(D o) const { return {b->CreateFSub(v, o.v), b}; }
    D operator*(D o) const { return {b->CreateFMul(v, o.v), b}; }
    D operator/(D o) const { return {b->CreateFDiv(v, o.v), b}; }
    D operator-() const { return {b->CreateFNeg(v), b}; }
    D operator+(double o) const { return *this + of(o); }
    D operator-(double o) const { return *this - of(o); }
    D operator*(double o) const { return *this * of(o); }
    D of(double o) const { return {llvm::ConstantFP::get(v->getType(), o), b}; }
  };

  D k(double v) { return {llvm::ConstantFP::get(real_, v), &b}; }
  llvm::Constant* i(uint64_t v) { return llvm::ConstantInt::get(int_, v); }
  D abs(D x) { return {b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.v), &b}; }
  D sqrt(D x) { return {b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.v), &b}; }
  D floor(D x) { return {b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x.v), &b}; }
  D sign(D magnitude, D s) {
    return {b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, s.v), &b};
  }
  D pick(llvm::Value* c, D yes, D no) { return {b.CreateSelect(c, yes.v, no.v), &b}; }
  llvm::Value* lt(D x, D y) { return b.CreateFCmpOLT(x.v, y.v); }
  llvm::Value* eq(D x, D y) { return b.CreateFCmpOEQ(x.v, y.v); }
  D nan() { return {llvm::ConstantFP::getQNaN(real_), &b}; }
  D inf() { return {llvm::ConstantFP::getInfinity(real_), &b}; }
  D clamp(D x, double low, double high) {  // NaN stays
    x = pick(lt(x, k(low)), k(low), x);
    return pick(lt(k(high), x), k(high), x);
  }
  llvm::Value* bits(D x) { return b.CreateBitCast(x.v, int_); }
  D from_bits(llvm::Value* v) { return {b.CreateBitCast(v, real_), &b}; }
  D keep_zero(D x, D r) { return pick(eq(x, k(0)), x, r); }
  /// x y + z, in one rounding where that is cheap.
  D fma(D x, D y, D z) {
    if (!fused_) return x * y + z;
    return {b.CreateIntrinsic(llvm::Intrinsic::fma, {real_}, {x.v, y.v, z.v}), &b};
  }

  /// c[0] + c[1] x + …, even and odd powers apart: two chains of half the length, since what waits for
  /// results is what these functions take their time with.
  template <size_t N>
  D polynomial(D x, const std::array<double, N>& c) {
    if (N < 6) return chain(x, c, 0, 1);
    D square = x * x;
    return fma(chain(square, c, 1, 2), x, chain(square, c, 0, 2));
  }
  template <size_t N>
  D chain(D x, const std::array<double, N>& c, size_t first, size_t step) {
    size_t n = first + (N - 1 - first) / step * step;
    D r = k(c[n]);
    while (n > first) r = fma(r, x, k(c[n -= step]));
    return r;
  }

  /// Nearest integer as a float, and with its low bits at the bottom of `low` (|x| < 2^51, in f32 2^22).
  D nearest(D x, llvm::Value** low) {
    D shifted = x + round_at();
    *low = bits(shifted);
    return shifted - round_at();
  }
  /// The same of x y, in one rounding where that is cheap.
  D nearest(D x, double y, llvm::Value** low) {
    D shifted = fma(x, k(y), k(round_at()));
    *low = bits(shifted);
    return shifted - round_at();
  }
  D power_of_two(llvm::Value* low) {
    return from_bits(b.CreateAdd(b.CreateShl(low, mantissa_bits()), i(one())));
  }
  llvm::Value* bit(llvm::Value* q, uint64_t mask) { return b.CreateICmpNE(b.CreateAnd(q, i(mask)), i(0)); }

  static constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLog2e = 0x1.71547652b82fep0;
  static constexpr double kHalfPi = 0x1.921fb54442d18p0, kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr double kTanEighthPi = 0.41421356237309503;

  struct Split {
    D exponent, mantissa, power;  // x = 2^exponent * mantissa, sqrt(1/2) <= mantissa < sqrt(2); 2^exponent
  };
  /// For positive finite normal x. What is not used is not computed.
  Split split(D x) {
    // Adding what takes sqrt(1/2) to 1.0 moves the carry into the exponent exactly when the fraction is high.
    const uint64_t sqrt_half = single_ ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
    const uint64_t fraction = (uint64_t{1} << mantissa_bits()) - 1;
    llvm::Value* t = b.CreateAdd(bits(x), i(one() - sqrt_half));
    return {exponent(t), from_bits(b.CreateAdd(b.CreateAnd(t, i(fraction)), i(sqrt_half))),
            from_bits(b.CreateAnd(t, i(one() | (one() + fraction + 1))))};
  }
  /// The exponent of the positive number with these bits.
  D exponent(llvm::Value* n) {
    llvm::Value* e = b.CreateLShr(n, mantissa_bits());
    if (single_) return D{b.CreateSIToFP(e, real_), &b} - 127.0;
    return from_bits(b.CreateOr(e, i(0x4330000000000000))) - (0x1p52 + 1023);
  }
  llvm::Value* is_normal(D x) {  // and positive
    llvm::Value* above = b.CreateSub(bits(x), i(uint64_t{1} << mantissa_bits()));
    const uint64_t infinity = single_ ? 0x7f800000 : 0x7ff0000000000000;
    return b.CreateICmpULT(above, i(infinity - (uint64_t{1} << mantissa_bits())));
  }

 protected:
  unsigned mantissa_bits() const { return single_ ? 23 : 52; }
  uint64_t one() const { return uint64_t{single_ ? 127u : 1023u} << mantissa_bits(); }
  double round_at() const { return single_ ? 0x1.8p23 : 0x1.8p52; }

  Builder& b;
  bool single_;
  llvm::Type* real_;
  llvm::Type* int_;
  bool fused_;
};

}  // namespace gk::codegen
