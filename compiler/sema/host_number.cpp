#include "compiler/sema/host_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "compiler/ir/apply.h"

namespace gk::sema {

using ir::Op;

namespace {

constexpr __int128 kLeast = -(static_cast<__int128>(1) << 63);
constexpr __int128 kMost = (static_cast<__int128>(1) << 64) - 1;

// Python compares an integer with a float exactly, however large.
int compare_exactly(__int128 a, double b) {
  if (b >= 0x1p100) return -1;
  if (b <= -0x1p100) return 1;
  const double whole = std::trunc(b);
  const auto t = static_cast<__int128>(whole);
  if (a != t) return a < t ? -1 : 1;
  return b == whole ? 0 : b > whole ? -1 : 1;
}

/// Of two integers below 2**64 in size, rounded once.
double quotient(__int128 a, __int128 b) {
  const bool negative = (a < 0) != (b < 0);
  unsigned __int128 x = static_cast<unsigned __int128>(a < 0 ? -a : a);
  const auto y = static_cast<unsigned __int128>(b < 0 ? -b : b);
  if (x == 0) return negative ? -0.0 : 0.0;
  int shift = 0;
  for (; x >> 127 == 0; ++shift) x <<= 1;
  // 63 digits and more, the last of which says whether any follow: rounding to 53 sees all it needs.
  const unsigned __int128 q = x / y | static_cast<unsigned>(x % y != 0);
  const double r = std::ldexp(static_cast<double>(q), -shift);
  return negative ? -r : r;
}

bool holds(Op op, int order) {
  switch (op) {
    case Op::Eq: return order == 0;
    case Op::Ne: return order != 0;
    case Op::Lt: return order < 0;
    case Op::Le: return order <= 0;
    case Op::Gt: return order > 0;
    default: return order >= 0;
  }
}

bool compare(Op op, const Scalar& a, const Scalar& b) {
  if (a.is_float() && b.is_float()) return ir::apply(op, std::array{a, b}, DType::Bool).i != 0;
  if (a.is_float() || b.is_float()) {
    const double f = a.is_float() ? a.f : b.f;
    if (std::isnan(f)) return op == Op::Ne;
    return holds(op, a.is_float() ? -compare_exactly(exact(b), f) : compare_exactly(exact(a), f));
  }
  const __int128 x = exact(a), y = exact(b);
  return holds(op, x < y ? -1 : x > y ? 1 : 0);
}

std::optional<__int128> power(__int128 base, __int128 exponent) {
  __int128 out = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(out, base, &out)) return std::nullopt;
    exponent >>= 1;
    if (exponent == 0) return out;
    // A base of one digit is never too large; with any other, what is left to multiply decides.
    if (base != 0 && base != 1 && __builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
}

// Nothing where it leaves 128 bits.
std::optional<__int128> integer_unary(Op op, __int128 x) {
  switch (op) {
    case Op::Neg: return -x;
    case Op::Abs: return x < 0 ? -x : x;
    case Op::Sign: return x < 0 ? -1 : x > 0 ? 1 : 0;
    case Op::BitNot: return ~x;
    default: return x;  // floor, ceil, round, trunc
  }
}

std::optional<__int128> integer_binary(Op op, __int128 a, __int128 b) {
  __int128 r = 0;
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Op::FloorDiv: return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
    case Op::Mod: return (r = a % b) != 0 && (r < 0) != (b < 0) ? r + b : r;
    case Op::Pow: return power(a, b);
    case Op::Min: return std::min(a, b);
    case Op::Max: return std::max(a, b);
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Shl:
      if (b < 0 || a == 0) return 0;
      if (b > 64) return std::nullopt;
      return __builtin_mul_overflow(a, static_cast<__int128>(1) << b, &r) ? std::nullopt : std::optional(r);
    case Op::Shr: return b < 0 || b > 64 ? (a < 0 ? -1 : 0) : a >> b;
    default: return std::nullopt;
  }
}

// As it would be written; `tail` goes behind the first operand.
std::string phrase(Op op, std::span<const Scalar> s, const std::string& tail) {
  const auto in_brackets = [&](const Scalar& x) {
    const std::string t = number_text(x) + (&x == s.data() ? tail : "");
    return t.starts_with('-') ? "(" + t + ")" : t;
  };
  if (s.size() == 1)
    return op == Op::Neg ? "-" + in_brackets(s[0])
                         : fmt::format("{}({})", ir::info(op).name, number_text(s[0]));
  const char* sign = op == Op::Add   ? "+"
                     : op == Op::Sub ? "-"
                     : op == Op::Mul ? "*"
                     : op == Op::Pow ? "**"
                     : op == Op::Shl ? "<<"
                                     : nullptr;
  if (!sign) return fmt::format("{}({}, {})", ir::info(op).name, number_text(s[0]), number_text(s[1]));
  return fmt::format("{} {} {}", in_brackets(s[0]), sign, in_brackets(s[1]));
}

}  // namespace

__int128 exact(const Scalar& integer) {
  if (integer.dtype == DType::U64) return static_cast<uint64_t>(integer.i);
  return integer.i;
}

std::optional<Scalar> host_integer(__int128 v) {
  if (v < kLeast || v > kMost) return std::nullopt;
  return Scalar{v > INT64_MAX ? DType::U64 : DType::I64, static_cast<int64_t>(static_cast<uint64_t>(v)), 0};
}

Scalar host_number(const Scalar& s) {
  if (is_bool(s.dtype)) return s;
  if (s.is_float()) return Scalar{DType::F64, 0, s.f};
  return *host_integer(exact(s));
}

DType host_dtype(Op op, std::span<const DType> operands) {
  if (ir::gives_bool(op)) return DType::Bool;
  if (op == Op::Where) operands = operands.subspan(1);
  const auto any = [&](bool (*is)(DType)) { return std::any_of(operands.begin(), operands.end(), is); };
  if (ir::needs_float(op) || any(gk::is_float)) return DType::F64;
  return any(gk::is_bool) ? DType::Bool : DType::I64;
}

Result<Scalar> host_apply(Op op, std::span<const Scalar> args) {
  std::vector<DType> dtypes;
  for (const Scalar& s : args) dtypes.push_back(s.dtype);
  const DType t = host_dtype(op, dtypes);
  if (ir::is_comparison(op) && !is_bool(args[0].dtype)) return Scalar::of_bool(compare(op, args[0], args[1]));
  if (op == Op::Where) return t == DType::F64 ? args[args[0].i ? 1 : 2].cast(t) : args[args[0].i ? 1 : 2];
  if (op == Op::PowInt || (op == Op::Pow && args[0].is_float() && !args[1].is_float()))
    return ir::apply(Op::PowInt, args, DType::F64);
  if (op == Op::Div && !args[0].is_float() && !args[1].is_float() && args[1].i != 0)
    return Scalar{DType::F64, 0, quotient(exact(args[0]), exact(args[1]))};
  if (t != DType::I64) {
    // Comparisons of bools and functions of what is a float or a bool by itself keep their operands.
    std::vector<Scalar> s(args.begin(), args.end());
    if (t == DType::F64)
      for (Scalar& x : s) x = x.cast(DType::F64);
    return ir::apply(op, s, t);
  }
  if ((op == Op::FloorDiv || op == Op::Mod) && args[1].i == 0)
    return fail(ErrorKind::Runtime, "E0802", "division by zero");
  if (op == Op::Pow && exact(args[1]) < 0)
    return fail(make_error(ErrorKind::Type, "E0203", "an integer has no negative integer power")
                    .help("make the base a float: `2.0 ** -1`"));
  const auto wide = args.size() == 1 ? integer_unary(op, exact(args[0]))
                                     : integer_binary(op, exact(args[0]), exact(args[1]));
  if (wide)
    if (auto r = host_integer(*wide)) return *r;
  Error e = make_error(
      ErrorKind::Type, "E0203",
      fmt::format("`{}` is out of range: integers go from -2**63 to 2**64 - 1", phrase(op, args, "")));
  const bool has_float_form =
      args.size() == 2 && op != Op::Shl && op != Op::And && op != Op::Or && op != Op::Xor;
  if (has_float_form) e = std::move(e).help(fmt::format("compute with floats: `{}`", phrase(op, args, ".0")));
  return fail(std::move(e));
}

Result<Scalar> host_fit(const Scalar& number, DType t) {
  if (is_bool(number.dtype) != is_bool(t))
    return fail(ErrorKind::Type, "E0201",
                fmt::format("{} cannot stand where {} is needed", kind_text(number.dtype), name(t)));
  if (number.is_float() && !gk::is_float(t))
    return fail(ErrorKind::Type, "E0203",
                fmt::format("a float meets {}, which holds integers alone", name(t)));
  const Scalar c = number.cast(t);
  const bool fits = gk::is_float(t) ? !std::isinf(c.f) || (number.is_float() && std::isinf(number.f))
                                    : exact(c) == exact(number);
  if (!fits)
    return fail(ErrorKind::Type, "E0203", fmt::format("{} does not fit in {}", number_text(number), name(t)));
  return c;
}

std::optional<Scalar> named_constant(std::string_view name) {
  const auto number = [](double v) { return Scalar{DType::F64, 0, v}; };
  if (name == "pi") return number(std::numbers::pi);
  if (name == "inf") return number(std::numeric_limits<double>::infinity());
  if (name == "nan") return number(std::numeric_limits<double>::quiet_NaN());
  if (name == "euler") return number(std::numbers::e);
  return std::nullopt;
}

bool is_integer_text(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<Scalar> number_from(const std::string& text) {
  if (is_integer_text(text)) {
    const bool negative = text.starts_with('-');
    __int128 v = 0;
    for (char c : text)
      if (c >= '0' && c <= '9' && v <= kMost) v = v * 10 + (c - '0');
    if (const auto exact = host_integer(negative ? -v : v)) return exact;
  }
  char* end = nullptr;
  const double d = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) return std::nullopt;
  return Scalar{DType::F64, 0, d};
}

std::string number_text(const Scalar& s) {
  if (s.is_float()) return fmt::format("{}", s.f);
  if (is_bool(s.dtype)) return s.i ? "true" : "false";
  return s.dtype == DType::U64 ? fmt::format("{}", static_cast<uint64_t>(s.i)) : fmt::format("{}", s.i);
}

std::string_view kind_text(DType t) {
  return is_bool(t) ? "a bool" : is_integer(t) ? "an integer" : "a float";
}

}  // namespace gk::sema
