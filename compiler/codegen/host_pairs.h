// Formulas that keep more than one float can hold: sums of two. Promises that the operations on pairs lose a
// few units of the second one's last place. For processors with fused multiplication and addition only.
// Source: Dekker 1971.
#pragma once

#include <array>

#include "compiler/codegen/host_formulas.h"

namespace gk::codegen {

class Pairs : public Formulas {
 public:
  Pairs(Builder& builder, llvm::Type* shape) : Formulas(builder, shape, true) {}

  struct Result {
    D value;
    llvm::Value* holds;  // where the formula does; null: everywhere
  };

 protected:
  struct Pair {
    D h, l;  // their sum, |l| a few rounding errors of h
  };
  /// A constant of either precision.
  struct Two {
    double h, l;
  };
  Two two(Two wide, Two narrow) const { return single_ ? narrow : wide; }
  template <size_t N, size_t M>
  D series(D x, const std::array<double, N>& wide, const std::array<double, M>& narrow) {
    return single_ ? polynomial(x, narrow) : polynomial(x, wide);
  }

  // Exact: a + c; the same for |a| >= |c|; a c.
  Pair sum(D a, D c) {
    D s = a + c, t = s - a;
    return {s, (a - (s - t)) + (c - t)};
  }
  Pair tidy(D a, D c) {
    D s = a + c;
    return {s, (a - s) + c};
  }
  Pair product(D a, D c) {
    D p = a * c;
    return {p, fma(a, c, -p)};
  }
  /// a c + base, |base| >= |a c| or 0.
  Pair sum_of(D a, D c, D base) {
    D s = fma(a, c, base);
    return {s, fma(a, c, base - s)};
  }
  Pair times(Pair a, Pair o) {
    Pair p = product(a.h, o.h);
    return {p.h, p.l + fma(a.h, o.l, a.l * o.h)};
  }
  Pair times(Pair a, double h, double l) { return times(a, {k(h), k(l)}); }
  Pair over(Pair a, Pair o) {
    D inverse = k(1) / o.h, q = a.h * inverse;
    D rest = fma(-q, o.h, a.h) + fma(-q, o.l, a.l);
    return tidy(q, rest * inverse);
  }
  using Formulas::pick;
  Pair pick(llvm::Value* c, Pair yes, Pair no) { return {pick(c, yes.h, no.h), pick(c, yes.l, no.l)}; }

  /// 1 / x within 6 %, of the sign of x; a finite number for zero. Enough for what rounding left over.
  D rough_inverse(D x) { return from_bits(b.CreateSub(i(rough_one()), bits(x))); }
  /// 1 / 2x, in the same way.
  D rough_half_inverse(D x) {
    return from_bits(b.CreateSub(i(rough_one() - (uint64_t{1} << mantissa_bits())), bits(x)));
  }

  llvm::Value* within(D x, double limit) { return lt(abs(x), k(limit)); }

  Two ln2() const { return two({kLn2, 0x1.abc9e3b39803fp-56}, {0x1.62e43p-1, -0x1.05c61p-29}); }
  Two half_pi() const { return two({kHalfPi, 0x1.1a62633145c07p-54}, {0x1.921fb6p0, -0x1.777a5cp-25}); }

 private:
  uint64_t rough_one() const { return single_ ? 0x7ef311c7 : 0x7fde623800000000; }
};

}  // namespace gk::codegen
