#include "compiler/sema/typing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/messages.h"
#include "compiler/ir/op_table.h"
#include "compiler/sema/operators.h"

namespace gk::sema {

using ir::Op;
using ir::OperandClass;

bool takes(const Typed& w, DType t) {
  if (is_bool(w.dtype) != is_bool(t) || (gk::is_float(w.dtype) && is_integer(t))) return false;
  if (!w.computed || gk::is_float(t) || is_bool(t) || t == DType::I64) return true;
  const int width = bits(t) - (is_signed(t) ? 1 : 0);
  const double most = std::ldexp(1.0, width) - 1, least = is_signed(t) ? -std::ldexp(1.0, width) : 0;
  return w.range && w.range->low >= least && w.range->high <= most && bits(t) < 64;
}

std::optional<DType> meet(const Typed& a, const Typed& b, DType default_float) {
  if (is_bool(a.dtype) != is_bool(b.dtype)) return std::nullopt;
  if (a.weak && b.weak) {
    if (is_bool(a.dtype)) return DType::Bool;
    return gk::is_float(a.dtype) || gk::is_float(b.dtype) ? DType::F64 : DType::I64;
  }
  if (a.weak != b.weak) {
    const Typed &w = a.weak ? a : b, &typed = a.weak ? b : a;
    if (gk::is_float(w.dtype) && is_integer(typed.dtype)) return default_float;
    if (takes(w, typed.dtype)) return typed.dtype;
  }
  return promote(a.dtype, b.dtype);
}

namespace {

using Why = Untypable::Why;

std::optional<Why> refused(OperandClass operands, DType t) {
  if (ir::in_class(operands, t)) return std::nullopt;
  if (operands == OperandClass::Bool) return Why::OfNumbers;
  return is_bool(t) ? Why::OfBools : Why::OfFloats;
}

}  // namespace

tl::expected<Typing, Untypable> type_elementwise(Op op, std::span<const Typed> operands,
                                                 DType default_float) {
  const size_t first = op == Op::Where ? 1 : 0;
  const auto values = operands.subspan(first);
  Typing r;
  r.op = op;
  r.weak = std::all_of(operands.begin(), operands.end(), [](const Typed& x) { return x.weak; });
  DType t = values[0].dtype;
  const auto refuse = [&](Why why) { return tl::unexpected(Untypable{why, t, r.weak}); };
  if (first == 1 && !is_bool(operands[0].dtype)) return refuse(Why::NoCondition);
  // A float to the power of an integer is products in one order: the exponent stays one.
  const bool counts = op == Op::Pow && gk::is_float(t) && is_integer(values[1].dtype);
  bool alone = values[0].weak;  // no operand says which dtype
  if (counts) {
    alone = alone && !r.weak;
  } else if (values.size() > 1) {
    const auto met = meet(values[0], values[1], default_float);
    if (!met) {
      if (is_bool(values[1].dtype)) t = DType::Bool;
      return refuse(Why::NoCommonDType);
    }
    t = *met;
    alone = alone && values[1].weak;
  }
  if (alone && !r.weak && gk::is_float(t)) t = default_float;
  const bool constant = ir::is_classification(op) && !gk::is_float(t);
  const OperandClass takes = ir::info(op).operands;
  if (takes == OperandClass::Float && is_integer(t)) t = r.weak ? DType::F64 : default_float;
  r.dtype = t;
  r.result = ir::gives_bool(op) ? DType::Bool : t;
  if (constant) {
    r.form = Typing::Form::Constant;
    return r;
  }
  // False is less than true.
  const bool ordered_bools = ir::is_comparison(op) && is_bool(t) && takes == OperandClass::Number;
  if (!ordered_bools)
    if (const auto why = refused(takes, t)) return refuse(*why);
  if (ir::is_rounding(op) && is_integer(t)) r.form = Typing::Form::Itself;
  if (op == Op::BitNot && is_bool(t)) r.op = Op::Not;
  r.operands = {t, t, t};
  if (first == 1) r.operands[0] = DType::Bool;
  if (ordered_bools) r.operands = {DType::U8, DType::U8, DType::U8};
  if (counts) {
    r.op = Op::PowInt;
    r.operands[1] = !values[1].weak && values[1].dtype == DType::U64 ? DType::U64 : DType::I64;
  }
  return r;
}

Error no_common_dtype(std::string_view message, bool of_bools) {
  return make_error(ErrorKind::Type, "E0205", fmt::format("{}: they have no common dtype", message))
      .help(of_bools ? "convert the bools: `i32(…)` or `f32(…)`" : "convert one side, for example `i64(…)`");
}

Error untypable(const Untypable& why, Op op, std::span<const std::string> operands) {
  const auto values = operands.subspan(op == Op::Where ? 1 : 0);
  const auto type_error = [](std::string_view code, std::string message) {
    return make_error(ErrorKind::Type, code, std::move(message));
  };
  switch (why.why) {
    case Why::NoCondition:
      return type_error("E0201", fmt::format("the condition of `where` must be bool, not {}", operands[0]));
    case Why::NoCommonDType: return no_common_dtype("cannot " + ir::phrase(op, values), is_bool(why.dtype));
    case Why::OfNumbers:
      return type_error("E0208", fmt::format("`not` takes a bool, not {}", values[0]))
          .help("compare first: `x == 0`");
    case Why::OfFloats:
      return type_error("E0201", fmt::format("`{}` is not defined for {}", written(op),
                                             why.weak ? "floats" : name(why.dtype)));
    case Why::OfBools: break;
  }
  const bool arithmetic = ir::info(op).group == ir::OpGroup::Arithmetic;
  Error e = type_error("E0204", arithmetic ? fmt::format("cannot {}", ir::phrase(op, values))
                                           : fmt::format("`{}` is not defined for bool", written(op)));
  if (arithmetic) return std::move(e).help("use `&`, `|`, `^`, `~`, or convert them: `i32(…)`, `f32(…)`");
  return ir::needs_float(op) ? std::move(e).help("convert it first: `f32(…)`") : e;
}

}  // namespace gk::sema
