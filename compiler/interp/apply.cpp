#include <cmath>
#include <limits>
#include <type_traits>

#include "compiler/interp/eval.h"

namespace gk::interp {
namespace {

using ir::Op;

// NumPy's floor_divide and remainder, in the precision T (npy_divmod in npy_math).
template <class T>
T float_remainder(T a, T b) {
  T mod = std::fmod(a, b);
  if (b == 0) return mod;
  if (mod == 0) return std::copysign(T{0}, b);
  if ((b < 0) != (mod < 0)) mod += b;
  return mod;
}
template <class T>
T float_floor_divide(T a, T b) {
  if (b == 0) return a / b;
  const T mod = std::fmod(a, b);
  T div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= T{1};
  if (div == 0) return std::copysign(T{0}, a / b);
  T whole = std::floor(div);
  if (div - whole > T{0.5}) whole += T{1};
  return whole;
}

double float_min(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double float_max(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

double float_unary(Op op, double x) {
  switch (op) {
    case Op::Neg: return -x;
    case Op::Abs: return std::fabs(x);
    case Op::Sign: return std::isnan(x) ? x : x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0;
    case Op::Floor: return std::floor(x);
    case Op::Ceil: return std::ceil(x);
    case Op::Round: return std::nearbyint(x);
    case Op::Trunc: return std::trunc(x);
    case Op::Sqrt: return std::sqrt(x);
    case Op::Exp: return std::exp(x);
    case Op::Exp2: return std::exp2(x);
    case Op::Expm1: return std::expm1(x);
    case Op::Log: return std::log(x);
    case Op::Log2: return std::log2(x);
    case Op::Log10: return std::log10(x);
    case Op::Log1p: return std::log1p(x);
    case Op::Sin: return std::sin(x);
    case Op::Cos: return std::cos(x);
    case Op::Tan: return std::tan(x);
    case Op::Asin: return std::asin(x);
    case Op::Acos: return std::acos(x);
    case Op::Atan: return std::atan(x);
    case Op::Sinh: return std::sinh(x);
    case Op::Cosh: return std::cosh(x);
    case Op::Tanh: return std::tanh(x);
    case Op::Asinh: return std::asinh(x);
    case Op::Acosh: return std::acosh(x);
    case Op::Atanh: return std::atanh(x);
    case Op::Erf: return std::erf(x);
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

// + - * / of f32 values in f64, rounded to f32, is the correctly rounded f32 result: 53 >= 2 * 24 + 2. The
// same holds from f32 to the 16-bit floats.
double float_binary(Op op, double a, double b, bool wide) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Div: return a / b;
    case Op::FloorDiv:
      return wide ? float_floor_divide(a, b)
                  : float_floor_divide(static_cast<float>(a), static_cast<float>(b));
    case Op::Mod:
      return wide ? float_remainder(a, b) : float_remainder(static_cast<float>(a), static_cast<float>(b));
    case Op::Pow: return std::pow(a, b);
    case Op::Min: return float_min(a, b);
    case Op::Max: return float_max(a, b);
    case Op::Atan2: return std::atan2(a, b);
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

template <class T>
bool compare(Op op, T a, T b) {
  switch (op) {
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::Gt: return a > b;
    default: return a >= b;
  }
}

uint64_t wrapping_power(uint64_t base, uint64_t exponent) {
  uint64_t out = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) out *= base;
  return out;
}

// T is int64_t or uint64_t, holding the value of any narrower integer; the caller wraps the result.
template <class T>
T int_binary(Op op, T a, T b, int width) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  constexpr bool kSigned = std::is_signed_v<T>;
  switch (op) {
    case Op::Add: return static_cast<T>(ua + ub);
    case Op::Sub: return static_cast<T>(ua - ub);
    case Op::Mul: return static_cast<T>(ua * ub);
    case Op::FloorDiv: {
      if (b == 0) return 0;
      if (kSigned && b == static_cast<T>(-1)) return static_cast<T>(0 - ua);  // the least value wraps
      const T q = a / b;
      return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
    }
    case Op::Mod: {
      if (b == 0 || (kSigned && b == static_cast<T>(-1))) return 0;
      const T r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case Op::Pow:
      if (b < 0) return a == 1 ? 1 : a == static_cast<T>(-1) ? (ub & 1 ? static_cast<T>(-1) : 1) : 0;
      return static_cast<T>(wrapping_power(ua, ub));
    case Op::Min: return a < b ? a : b;
    case Op::Max: return a > b ? a : b;
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Shl: return b < 0 || b >= static_cast<T>(width) ? 0 : static_cast<T>(ua << ub);
    case Op::Shr:
      if (b < 0 || b >= static_cast<T>(width)) return a < 0 ? static_cast<T>(-1) : 0;
      return a >> b;
    default: return 0;
  }
}

// Repeated squaring, each product rounded to f32 or f64.
double integer_power(double x, const Scalar& exponent, bool wide) {
  const auto rounded = [wide](double v) { return wide ? v : static_cast<double>(static_cast<float>(v)); };
  const bool negative = is_signed(exponent.dtype) && exponent.i < 0;
  uint64_t e = static_cast<uint64_t>(exponent.i);
  if (negative) e = 0 - e;
  double power = 1;
  while (e != 0) {
    if (e & 1) power = rounded(power * x);
    e >>= 1;
    x = rounded(x * x);
  }
  return negative ? rounded(1 / power) : power;
}

int64_t int_unary(Op op, int64_t x, bool is_unsigned) {
  switch (op) {
    case Op::Neg: return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
    case Op::Abs: return x < 0 && !is_unsigned ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x;
    case Op::Sign: return x == 0 ? 0 : x < 0 && !is_unsigned ? -1 : 1;
    case Op::BitNot: return ~x;
    default: return x;  // floor, ceil, round, trunc
  }
}

Scalar unary(Op op, const Scalar& x, DType result) {
  switch (op) {
    case Op::IsNan: return Scalar::of_bool(x.is_float() && std::isnan(x.f));
    case Op::IsInf: return Scalar::of_bool(x.is_float() && std::isinf(x.f));
    case Op::IsFinite: return Scalar::of_bool(!x.is_float() || std::isfinite(x.f));
    case Op::Cast: return x.cast(result);
    case Op::Not: return Scalar::of_bool(x.i == 0);
    default: break;
  }
  if (is_bool(x.dtype)) return Scalar::of_bool(x.i == 0);  // bitwise_not
  if (!x.is_float()) return Scalar::of_int(int_unary(op, x.i, !is_signed(x.dtype)), result);
  const double y = float_unary(op, x.f);
  return Scalar::of_float(x.dtype == DType::F64 ? y : static_cast<float>(y), result);
}

Scalar binary(Op op, const Scalar& a, const Scalar& b, DType result) {
  const bool is_unsigned = !a.is_float() && !is_signed(a.dtype);
  if (op >= Op::Eq && op <= Op::Ge) {
    if (a.is_float()) return Scalar::of_bool(compare(op, a.f, b.f));
    if (is_unsigned)
      return Scalar::of_bool(compare(op, static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i)));
    return Scalar::of_bool(compare(op, a.i, b.i));
  }
  if (op == Op::PowInt) return Scalar::of_float(integer_power(a.f, b, a.dtype == DType::F64), result);
  if (a.is_float()) {
    const bool wide = a.dtype == DType::F64;
    const double y = float_binary(op, a.f, b.f, wide);
    return Scalar::of_float(wide ? y : static_cast<float>(y), result);
  }
  const int width = bits(a.dtype);
  if (!is_unsigned) return Scalar::of_int(int_binary<int64_t>(op, a.i, b.i, width), result);
  const auto y = int_binary<uint64_t>(op, static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i), width);
  return Scalar::of_int(static_cast<int64_t>(y), result);
}

}  // namespace

bool divides_by_zero(Op op, std::span<const Scalar> args) {
  if (args.size() != 2 || !is_integer(args[0].dtype)) return false;
  return (op == Op::FloorDiv || op == Op::Mod) && args[1].i == 0;
}

Scalar apply(Op op, std::span<const Scalar> args, DType result) {
  if (args.size() == 3) return args[0].i ? args[1] : args[2];
  if (args.size() == 2) return binary(op, args[0], args[1], result);
  return unary(op, args[0], result);
}

}  // namespace gk::interp
