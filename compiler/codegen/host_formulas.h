// Formulas over f64 and i64 values, scalars or vectors, written like C: what the host's transcendental
// functions are made of. Promises that a lane of a vector has the bits of the scalar formula. Products and
// sums are fused where `fused` says that the processor does that.
#pragma once

#include <array>

#include "compiler/codegen/emitter.h"

namespace gk::codegen {

class Formulas {
 public:
  /// `shape`: double, or a vector of them.
  Formulas(Builder& builder, llvm::Type* shape, bool fused)
      : b(builder), f64_(shape), i64_(shape->getWithNewType(builder.getInt64Ty())), fused_(fused) {}

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

  D k(double v) { return {llvm::ConstantFP::get(f64_, v), &b}; }
  llvm::Constant* i(uint64_t v) { return llvm::ConstantInt::get(i64_, v); }
  D abs(D x) { return {b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.v), &b}; }
  D sqrt(D x) { return {b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.v), &b}; }
  D floor(D x) { return {b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x.v), &b}; }
  D sign(D magnitude, D s) {
    return {b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, s.v), &b};
  }
  D pick(llvm::Value* c, D yes, D no) { return {b.CreateSelect(c, yes.v, no.v), &b}; }
  llvm::Value* lt(D x, D y) { return b.CreateFCmpOLT(x.v, y.v); }
  llvm::Value* eq(D x, D y) { return b.CreateFCmpOEQ(x.v, y.v); }
  D nan() { return {llvm::ConstantFP::getQNaN(f64_), &b}; }
  D inf() { return {llvm::ConstantFP::getInfinity(f64_), &b}; }
  D clamp(D x, double low, double high) {  // NaN stays
    x = pick(lt(x, k(low)), k(low), x);
    return pick(lt(k(high), x), k(high), x);
  }
  llvm::Value* bits(D x) { return b.CreateBitCast(x.v, i64_); }
  D from_bits(llvm::Value* v) { return {b.CreateBitCast(v, f64_), &b}; }
  D keep_zero(D x, D r) { return pick(eq(x, k(0)), x, r); }
  /// x y + z, in one rounding where that is cheap.
  D fma(D x, D y, D z) {
    if (!fused_) return x * y + z;
    return {b.CreateIntrinsic(llvm::Intrinsic::fma, {f64_}, {x.v, y.v, z.v}), &b};
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

  /// Nearest integer as a double, and with its low bits at the bottom of `low` (|x| < 2^51).
  D nearest(D x, llvm::Value** low) {
    D shifted = x + 0x1.8p52;
    *low = bits(shifted);
    return shifted - 0x1.8p52;
  }
  /// The same of x y, in one rounding where that is cheap.
  D nearest(D x, double y, llvm::Value** low) {
    D shifted = fma(x, k(y), k(0x1.8p52));
    *low = bits(shifted);
    return shifted - 0x1.8p52;
  }
  D power_of_two(llvm::Value* low) {
    return from_bits(b.CreateAdd(b.CreateShl(low, 52), i(uint64_t{1023} << 52)));
  }
  llvm::Value* bit(llvm::Value* q, uint64_t mask) { return b.CreateICmpNE(b.CreateAnd(q, i(mask)), i(0)); }

  static constexpr double kLn2 = 0x1.62e42fefa39efp-1, kLog2e = 0x1.71547652b82fep0;
  static constexpr double kHalfPi = 0x1.921fb54442d18p0, kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr double kTanEighthPi = 0.41421356237309503;

  struct Split {
    D exponent, mantissa;  // x = 2^exponent * mantissa, sqrt(1/2) <= mantissa < sqrt(2)
  };
  /// For positive finite normal x.
  Split split(D x) {
    llvm::Value* n = bits(x);
    // Adding what takes sqrt(1/2) to 1.0 moves the carry into the exponent exactly when the fraction is high.
    constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd, kOne = uint64_t{1023} << 52;
    llvm::Value* e = b.CreateLShr(b.CreateAdd(n, i(kOne - kSqrtHalf)), 52);
    D exponent = from_bits(b.CreateOr(e, i(0x4330000000000000))) - (0x1p52 + 1023);
    return {exponent, from_bits(b.CreateSub(n, b.CreateShl(b.CreateSub(e, i(1023)), 52)))};
  }

 protected:
  Builder& b;
  llvm::Type* f64_;
  llvm::Type* i64_;
  bool fused_;
};

}  // namespace gk::codegen
