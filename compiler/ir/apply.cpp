#include "compiler/ir/apply.h"

#include <cmath>
#include <vector>

#include "compiler/ir/op_definitions.h"

namespace gk::ir {
namespace {

double ieee_minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double ieee_maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T>
bool holds(Op op, T a, T b) {
  switch (op) {
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::Gt: return a > b;
    default: return a >= b;
  }
}

/// The builder of numbers. + - * / and sqrt of f32 in f64, rounded to f32, are correctly rounded in f32:
/// 53 >= 2 * 24 + 2.
struct Numbers {
  using V = Scalar;
  struct Exact {};
  Exact exact() { return {}; }

  static uint64_t u(const V& v) { return static_cast<uint64_t>(v.i); }
  static V real_like(double f, const V& like) { return Scalar::of_float(f, like.dtype); }
  static V integer_like(uint64_t i, const V& like) {
    return Scalar::of_int(static_cast<int64_t>(i), like.dtype);
  }

  DType dtype(const V& v) { return v.dtype; }
  V number(int64_t i, const V& like) { return Scalar::of_int(i, like.dtype); }
  V real(double f, const V& like) { return real_like(f, like); }
  V boolean(bool v) { return Scalar::of_bool(v); }

  V add(const V& a, const V& b) {
    return a.is_float() ? real_like(a.f + b.f, a) : integer_like(u(a) + u(b), a);
  }
  V subtract(const V& a, const V& b) {
    return a.is_float() ? real_like(a.f - b.f, a) : integer_like(u(a) - u(b), a);
  }
  V multiply(const V& a, const V& b) {
    return a.is_float() ? real_like(a.f * b.f, a) : integer_like(u(a) * u(b), a);
  }
  V negate(const V& a) { return a.is_float() ? real_like(-a.f, a) : integer_like(0 - u(a), a); }
  V divide(const V& a, const V& b) { return real_like(a.f / b.f, a); }
  V quotient(const V& a, const V& b) {
    return is_signed(a.dtype) ? Scalar::of_int(a.i / b.i, a.dtype) : integer_like(u(a) / u(b), a);
  }
  V remainder(const V& a, const V& b) {
    return is_signed(a.dtype) ? Scalar::of_int(a.i % b.i, a.dtype) : integer_like(u(a) % u(b), a);
  }
  V magnitude(const V& a) {
    if (a.is_float()) return real_like(std::fabs(a.f), a);
    return is_signed(a.dtype) && a.i < 0 ? negate(a) : a;
  }
  V bit_and(const V& a, const V& b) { return integer_like(u(a) & u(b), a); }
  V bit_or(const V& a, const V& b) { return integer_like(u(a) | u(b), a); }
  V bit_xor(const V& a, const V& b) { return integer_like(u(a) ^ u(b), a); }
  V bit_not(const V& a) { return is_bool(a.dtype) ? Scalar::of_bool(a.i == 0) : integer_like(~u(a), a); }
  V shift_up(const V& a, const V& n) { return integer_like(u(a) << n.i, a); }
  V shift_down(const V& a, const V& n) {
    return is_signed(a.dtype) ? Scalar::of_int(a.i >> n.i, a.dtype) : integer_like(u(a) >> n.i, a);
  }
  V below(const V& v, int n) { return Scalar::of_bool(u(v) < static_cast<uint64_t>(n)); }
  V compare(Op op, const V& a, const V& b) {
    if (a.is_float()) return Scalar::of_bool(holds(op, a.f, b.f));
    return Scalar::of_bool(is_signed(a.dtype) ? holds(op, a.i, b.i) : holds(op, u(a), u(b)));
  }
  V select(const V& c, const V& a, const V& b) { return c.i != 0 ? a : b; }
  V least(const V& a, const V& b) {
    return a.is_float() ? real_like(ieee_minimum(a.f, b.f), a) : select(compare(Op::Lt, a, b), a, b);
  }
  V greatest(const V& a, const V& b) {
    return a.is_float() ? real_like(ieee_maximum(a.f, b.f), a) : select(compare(Op::Gt, a, b), a, b);
  }
  V round(Op op, const V& v) {
    const double r = op == Op::Floor   ? std::floor(v.f)
                     : op == Op::Ceil  ? std::ceil(v.f)
                     : op == Op::Trunc ? std::trunc(v.f)
                                       : std::nearbyint(v.f);
    return real_like(r, v);
  }
  V square_root(const V& v) { return real_like(std::sqrt(v.f), v); }
  V copy_sign(const V& size, const V& sign) { return real_like(std::copysign(size.f, sign.f), size); }
  V float_remainder(const V& a, const V& b) { return real_like(std::fmod(a.f, b.f), a); }
  V widen(const V& c, const V& like) { return Scalar::of_int(c.i, like.dtype); }
  V spread(const V& c, const V& like) { return Scalar::of_int(-c.i, like.dtype); }
  V by_squaring(V base, const V& exponent, const V& start) {
    V power = start;
    for (uint64_t e = u(exponent); e != 0; e >>= 1) {
      if (e & 1) power = multiply(power, base);
      if (e > 1) base = multiply(base, base);
    }
    return power;
  }
  V library(Op op, std::span<const V> a) {
    const LibraryFunction& f = info(op).library;
    return real_like(a.size() == 1 ? f.unary(a[0].f) : f.binary(a[0].f, a[1].f), a[0]);
  }
};

}  // namespace

bool divides_by_zero(Op op, std::span<const Scalar> args) {
  if (args.size() != 2 || !is_integer(args[0].dtype)) return false;
  return (op == Op::FloorDiv || op == Op::Mod) && args[1].i == 0;
}

Scalar apply(Op op, std::span<const Scalar> args, DType result) {
  if (op == Op::Cast) return args[0].cast(result);
  if (op == Op::Where) return args[args[0].i != 0 ? 1 : 2];
  // 16-bit floats are computed with in f32.
  std::vector<Scalar> wide(args.begin(), args.end());
  for (Scalar& s : wide)
    if (s.dtype == DType::F16 || s.dtype == DType::BF16) s.dtype = DType::F32;
  Numbers numbers;
  Scalar r = OpDefinitions<Numbers>(numbers)(op, wide);
  if (r.is_float()) return Scalar::of_float(r.f, result);
  return is_bool(r.dtype) ? r : Scalar::of_int(r.i, result);
}

}  // namespace gk::ir
