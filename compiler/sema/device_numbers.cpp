// Host numbers that are kept on the device: the index of a loop that stays a loop, and what is computed from
// it. What could come out otherwise than on the host is left to the host, which then goes through the loop.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/host_number.h"
#include "compiler/sema/numbers.h"

namespace gk::sema {

namespace {

constexpr double kMostInteger = 9.0e18;  // what is computed on the device stays well inside i64

double largest(DType t) {
  switch (t) {
    case DType::F16: return 65504;
    case DType::BF16: return 0x1.fep127;
    case DType::F32: return std::numeric_limits<float>::max();
    case DType::F64: return std::numeric_limits<double>::max();
    default: return std::ldexp(1.0, is_signed(t) ? bits(t) - 1 : bits(t)) - 1;
  }
}

double least(DType t) {
  if (gk::is_float(t)) return -largest(t);
  return is_signed(t) ? -std::ldexp(1.0, bits(t) - 1) : 0;
}

DeviceNumber range_of(const Value& v) {
  if (v.is_array()) return *v.array->number;
  if (v.scalar.origin()) return {};  // each call has its own
  return {true, v.scalar.as_double(), v.scalar.as_double()};
}

DeviceNumber between(std::initializer_list<double> ends) { return {true, std::min(ends), std::max(ends)}; }

// Where the result of an operation lies; nothing where the device may not stand in for the host: what is not
// correctly rounded, what could be out of range, what would be an error.
std::optional<DeviceNumber> result_range(ir::Op op, const std::vector<Value>& args, bool integer) {
  using ir::Op;
  const DeviceNumber a = range_of(args[0]), b = range_of(args.back());
  const bool bitwise = ir::info(op).group == ir::OpGroup::Bitwise && op != Op::BitNot;
  if (bitwise && integer) return std::nullopt;
  if (bitwise || ir::is_comparison(op) || op == Op::Not) return DeviceNumber{true, 0, 1};
  switch (op) {
    case Op::Where: {
      const DeviceNumber x = range_of(args[1]);
      if (!x.bounded || !b.bounded) return DeviceNumber{};
      return between({x.low, x.high, b.low, b.high});
    }
    default: break;
  }
  const bool bounded = a.bounded && b.bounded;
  if (integer && !bounded) return std::nullopt;
  std::optional<DeviceNumber> r;
  switch (op) {
    case Op::Neg: r = between({-a.low, -a.high}); break;
    case Op::Abs: r = between({0, std::fabs(a.low), std::fabs(a.high)}); break;
    case Op::Add: r = DeviceNumber{true, a.low + b.low, a.high + b.high}; break;
    case Op::Sub: r = DeviceNumber{true, a.low - b.high, a.high - b.low}; break;
    case Op::Mul: r = between({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high}); break;
    case Op::Min:
    case Op::Max: r = between({a.low, a.high, b.low, b.high}); break;
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Trunc: r = DeviceNumber{true, a.low - 1, a.high + 1}; break;
    case Op::Sqrt:
      if (!bounded || a.low < 0) return DeviceNumber{};
      r = between({0, std::sqrt(a.high)});
      break;
    case Op::Div:
    case Op::FloorDiv:
      if (op == Op::FloorDiv && !integer) return std::nullopt;
      if (!bounded || (b.low <= 0 && b.high >= 0)) {
        if (integer) return std::nullopt;
        return DeviceNumber{};
      }
      r = between({a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
      if (op == Op::FloorDiv) r->low -= 1;
      break;
    case Op::Mod:
      if (!integer || (b.low <= 0 && b.high >= 0)) return std::nullopt;
      r = between({0, b.low, b.high});
      break;
    default: return std::nullopt;
  }
  if (!bounded) return DeviceNumber{};
  if (!std::isfinite(r->low) || !std::isfinite(r->high)) return std::nullopt;
  if (integer && (r->low < -kMostInteger || r->high > kMostInteger)) return std::nullopt;
  return r;
}

}  // namespace

/// A number of the device in the dtype that it meets. Where the host would refuse one of its values, or
/// might, it is the host that goes through the loop.
Result<ArrayPtr> Evaluator::typed_number(const ArrayPtr& a, DType t, Span span) {
  const DType from = a->type.dtype;
  auto fits = host_fit(Scalar{from, 0, 0}, t);
  if (!fits) return fail(std::move(fits.error()).at(span));
  const DeviceNumber& n = *a->number;
  const bool inside = n.bounded && n.low >= least(t) && n.high <= largest(t);
  const bool any = t == from || (gk::is_float(t) && (gk::is_float(from) || t != DType::F16));
  if (!inside && (n.bounded || !any)) needs_host_ = true;
  if (from != t) {
    ir::Attrs attrs;
    attrs.dtype = t;
    return emit(ir::Op::Cast, {a}, attrs, span);
  }
  GK_TRY(auto id, value_of(a, span));
  return trace_->pending(a->type, id);
}

/// Host arithmetic among numbers of which one is on the device: in i64 and f64, as on the host.
Result<Value> Evaluator::device_arithmetic(ir::Op op, const std::vector<Value>& args, Span span) {
  std::vector<DType> kinds;
  for (const auto& a : args) kinds.push_back(dtype_of(a)->dtype);
  const bool division = op == ir::Op::Div;
  const bool floats = division || std::any_of(kinds.begin(), kinds.end(), gk::is_float) ||
                      host_dtype(op, kinds) == DType::F64;
  const auto range = result_range(op, args, !floats && !is_bool(kinds.back()));
  if (!range) needs_host_ = true;
  std::vector<ArrayPtr> operands;
  for (size_t i = 0; i < args.size(); ++i) {
    const DType t = is_bool(kinds[i]) ? DType::Bool : floats ? DType::F64 : DType::I64;
    if (args[i].is_scalar()) {
      if (args[i].scalar.dtype == DType::U64 && !floats) needs_host_ = true;
      GK_TRY(auto number, cast(args[i], t, span));
      GK_TRY(auto x, scalar_array(number.scalar, args[i].constant, span));
      operands.push_back(std::move(x));
    } else {
      GK_TRY(auto x, cast(args[i], t, span));
      operands.push_back(x.array);
    }
  }
  GK_TRY(auto r, emit(op, operands, {}, span));
  r->number = range.value_or(DeviceNumber{});
  return Value::of_array(r);
}

}  // namespace gk::sema
