// What each elementwise op gives, written once over a builder: with numbers it is the interpreter and every
// folder, with LLVM's values the code of both back ends. Owns the meaning of what is not a primitive of every
// machine. Promises that nothing is undefined: a division by zero gives 0 (the fault is the caller's to
// report), the least integer by -1 wraps. Not for rounding to 16-bit floats, nor for casts.
#pragma once

#include <cmath>
#include <span>

#include "compiler/ir/ops.h"

namespace gk::ir {

// Note [Builders]
// A builder B has the type V of a value and, each on values of one dtype unless it says otherwise,
//   DType dtype(v)                             of a value; 16-bit floats count as f32
//   V number(int64_t, like), V real(double, like), V boolean(bool)
//   add subtract multiply negate               integers wrap; floats are rounded once
//   divide                                     of floats
//   quotient remainder                         of integers, toward zero; neither by 0 nor of the least by -1
//   magnitude                                  the least integer stays itself
//   bit_and bit_or bit_xor bit_not             of bools too
//   shift_up shift_down                        by less than the width; down fills with the sign
//   below(v, n)                                whether 0 <= v < n
//   compare(Op, a, b)                          gives a bool
//   select(bool, a, b)
//   least greatest                             IEEE's minimum and maximum for floats
//   round(Op, v)                               floor, ceil, round, trunc of floats
//   square_root copy_sign(size, sign) float_remainder   of floats; C's fmod
//   widen(bool or comparison, like)            1 or 0; spread: -1 or 0
//   by_squaring(base, exponent, start)         start times the power; the exponent is an unsigned count
//   library(Op, values)                        the function of the op's row
// and may have `exact()`, a guard under which no flag of fast_math holds.

template <class B>
class OpDefinitions {
 public:
  using V = typename B::V;
  explicit OpDefinitions(B& builder) : b(builder) {}

  /// `op` of these, which have the dtypes that its row asks for. Not of Cast.
  V operator()(Op op, std::span<const V> a) {
    if (info(op).arity == 3) return b.select(a[0], a[1], a[2]);
    return info(op).arity == 2 ? binary(op, a[0], a[1]) : unary(op, a[0]);
  }

 private:
  bool real(V v) const { return is_float(b.dtype(v)); }
  bool has_sign(V v) const { return is_signed(b.dtype(v)); }

  V unary(Op op, V x) {
    switch (op) {
      case Op::Neg: return b.negate(x);
      case Op::Abs: return b.magnitude(x);
      case Op::Sign: return sign(x);
      case Op::Not:
      case Op::BitNot: return b.bit_not(x);
      case Op::Floor:
      case Op::Ceil:
      case Op::Round:
      case Op::Trunc: return real(x) ? b.round(op, x) : x;
      case Op::Sqrt: return b.square_root(x);
      case Op::IsNan: return real(x) ? b.compare(Op::Ne, x, x) : b.boolean(false);
      case Op::IsInf: return real(x) ? b.compare(Op::Eq, b.magnitude(x), infinity(x)) : b.boolean(false);
      case Op::IsFinite: return real(x) ? b.compare(Op::Lt, b.magnitude(x), infinity(x)) : b.boolean(true);
      default: {
        const V args[] = {x};
        return b.library(op, args);
      }
    }
  }

  V binary(Op op, V x, V y) {
    switch (op) {
      case Op::Add: return b.add(x, y);
      case Op::Sub: return b.subtract(x, y);
      case Op::Mul: return b.multiply(x, y);
      case Op::Div: return b.divide(x, y);
      case Op::FloorDiv: return real(x) ? float_quotient(x, y) : integer_quotient(x, y);
      case Op::Mod: return real(x) ? float_modulus(x, y) : integer_modulus(x, y);
      case Op::Pow: {
        if (!real(x)) return integer_power(x, y);
        const V args[] = {x, y};
        return b.library(op, args);
      }
      case Op::PowInt: return float_power(x, y);
      case Op::Min: return b.least(x, y);
      case Op::Max: return b.greatest(x, y);
      case Op::And: return b.bit_and(x, y);
      case Op::Or: return b.bit_or(x, y);
      case Op::Xor: return b.bit_xor(x, y);
      case Op::Shl:
      case Op::Shr: return shift(op, x, y);
      default: break;
    }
    if (is_comparison(op)) return b.compare(op, x, y);
    const V args[] = {x, y};
    return b.library(op, args);
  }

  V infinity(V like) { return b.real(HUGE_VAL, like); }

  V sign(V x) {
    if (real(x)) {
      const V zero = b.real(0, x);
      const V below = b.select(b.compare(Op::Lt, x, zero), b.real(-1, x), zero);
      const V r = b.select(b.compare(Op::Gt, x, zero), b.real(1, x), below);
      return b.select(b.compare(Op::Ne, x, x), x, r);
    }
    const V zero = b.number(0, x);
    const V positive = b.widen(b.compare(Op::Ne, x, zero), x);
    if (!has_sign(x)) return positive;
    return b.select(b.compare(Op::Lt, x, zero), b.number(-1, x), positive);
  }

  // ---- Floor division of integers: the remainder's sign is the dividend's; where it is not the divisor's,
  // the quotient was rounded up.
  struct Division {
    V by_zero, negates, safe, rest, off;
  };
  Division divided(V x, V y) {
    const V zero = b.number(0, x), one = b.number(1, x);
    Division d;
    d.by_zero = b.compare(Op::Eq, y, zero);
    d.negates = b.compare(Op::Eq, y, b.number(-1, x));
    d.safe = b.select(b.bit_or(d.by_zero, d.negates), one, y);
    d.rest = b.remainder(x, d.safe);
    d.off = b.bit_and(b.compare(Op::Ne, d.rest, zero), b.compare(Op::Lt, b.bit_xor(d.rest, d.safe), zero));
    return d;
  }
  V unsigned_division(Op op, V x, V y) {
    const V zero = b.number(0, x);
    const V by_zero = b.compare(Op::Eq, y, zero);
    const V safe = b.select(by_zero, b.number(1, x), y);
    return b.select(by_zero, zero, op == Op::FloorDiv ? b.quotient(x, safe) : b.remainder(x, safe));
  }
  V integer_quotient(V x, V y) {
    if (!has_sign(x)) return unsigned_division(Op::FloorDiv, x, y);
    const V zero = b.number(0, x);
    const Division d = divided(x, y);
    const V q = b.add(b.quotient(x, d.safe), b.spread(d.off, x));
    return b.select(d.by_zero, zero, b.select(d.negates, b.negate(x), q));
  }
  V integer_modulus(V x, V y) {
    if (!has_sign(x)) return unsigned_division(Op::Mod, x, y);
    const V zero = b.number(0, x);
    const Division d = divided(x, y);
    const V r = b.select(d.off, b.add(d.rest, d.safe), d.rest);
    return b.select(b.bit_or(d.by_zero, d.negates), zero, r);
  }

  // ---- NumPy's floor division and remainder of floats: fmod is exact, so the remainder is too, and the
  // quotient is corrected to the integer that belongs to it.
  V off(V rest, V y) {
    const V zero = b.real(0, y);
    return b.bit_and(b.compare(Op::Ne, rest, zero),
                     b.bit_xor(b.compare(Op::Lt, y, zero), b.compare(Op::Lt, rest, zero)));
  }
  V float_modulus(V x, V y) {
    [[maybe_unused]] const auto guard = b.exact();
    const V zero = b.real(0, x);
    const V rest = b.float_remainder(x, y);
    const V by_zero = b.compare(Op::Eq, y, zero);
    const V r = b.select(off(rest, y), b.add(rest, y), rest);
    const V r0 = b.select(b.compare(Op::Eq, rest, zero), b.copy_sign(zero, y), r);
    return b.select(by_zero, rest, r0);
  }
  V float_quotient(V x, V y) {
    [[maybe_unused]] const auto guard = b.exact();
    const V zero = b.real(0, x), one = b.real(1, x);
    const V rest = b.float_remainder(x, y);
    const V by_zero = b.compare(Op::Eq, y, zero);
    const V moved = off(rest, y);
    V q = b.divide(b.subtract(x, rest), y);
    q = b.select(moved, b.subtract(q, one), q);
    const V plain = b.divide(x, y);
    const V down = b.round(Op::Floor, q);
    const V up = b.compare(Op::Gt, b.subtract(q, down), b.real(0.5, x));
    const V r = b.select(up, b.add(down, one), down);
    const V r0 = b.select(b.compare(Op::Eq, q, zero), b.copy_sign(zero, plain), r);
    return b.select(by_zero, plain, r0);
  }

  // ---- Powers, by repeated squaring from the exponent's lowest bit on.
  /// Wraps. A negative exponent: the inverse where it is an integer (of 1 and -1), else 0.
  V integer_power(V x, V y) {
    const V zero = b.number(0, x), one = b.number(1, x);
    if (!has_sign(x)) return b.by_squaring(x, y, one);
    // Of a negative exponent only its lowest bit matters, and only for bases 1 and -1.
    const V negative = b.compare(Op::Lt, y, zero);
    const V unit = b.bit_or(b.compare(Op::Eq, x, one), b.compare(Op::Eq, x, b.number(-1, x)));
    const V exponent = b.select(negative, b.bit_and(y, one), y);
    const V start = b.select(b.bit_and(negative, b.bit_not(unit)), zero, one);
    return b.by_squaring(x, exponent, start);
  }
  /// A negative exponent: 1 over the power of its size. The order of the products is part of the result.
  V float_power(V x, V y) {
    [[maybe_unused]] const auto guard = b.exact();
    const V one = b.real(1, x);
    if (!has_sign(y)) return b.by_squaring(x, y, one);
    const V negative = b.compare(Op::Lt, y, b.number(0, y));
    const V power = b.by_squaring(x, b.select(negative, b.negate(y), y), one);
    return b.select(negative, b.divide(one, power), power);
  }

  V shift(Op op, V x, V count) {
    const int width = bits(b.dtype(x));
    const V inside = b.below(count, width);  // a negative count is a large one
    const V amount = b.select(inside, count, b.number(width - 1, x));
    if (op == Op::Shr && has_sign(x)) return b.shift_down(x, amount);
    const V r = op == Op::Shl ? b.shift_up(x, amount) : b.shift_down(x, amount);
    return b.select(inside, r, b.number(0, x));
  }

  B& b;
};

}  // namespace gk::ir
