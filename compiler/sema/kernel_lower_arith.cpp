// Numbers inside kernels: weak literals, promotion, conversions, the elementwise ops. The rules are those of
// Evaluator::elementwise for arrays.
#include <fmt/format.h>

#include <cmath>

#include "compiler/interp/interp.h"
#include "compiler/sema/kernel_builder.h"
#include "compiler/sema/operators.h"

namespace gk::sema {
namespace {

std::string describe(const Operand& v) {
  if (!v.weak) return std::string(name(v.dtype));
  return is_bool(v.dtype) ? "bool" : gk::is_float(v.dtype) ? "a float literal" : "an integer literal";
}

std::string number_text(const Scalar& s) {
  if (s.is_float()) return fmt::format("{}", s.f);
  return s.dtype == DType::U64 ? fmt::format("{}", static_cast<uint64_t>(s.i)) : fmt::format("{}", s.i);
}

/// "add f32 and bool"
std::string phrase(ir::Op op, const std::string& a, const std::string& b) {
  switch (op) {
    case ir::Op::Add: return fmt::format("add {} and {}", a, b);
    case ir::Op::Sub: return fmt::format("subtract {} from {}", b, a);
    case ir::Op::Mul: return fmt::format("multiply {} and {}", a, b);
    case ir::Op::Div:
    case ir::Op::FloorDiv: return fmt::format("divide {} by {}", a, b);
    case ir::Op::Eq:
    case ir::Op::Ne:
    case ir::Op::Lt:
    case ir::Op::Le:
    case ir::Op::Gt:
    case ir::Op::Ge: return fmt::format("compare {} and {}", a, b);
    default: return fmt::format("apply {} to {} and {}", ir::info(op).name, a, b);
  }
}

bool is_comparison(ir::Op op) { return op >= ir::Op::Eq && op <= ir::Op::Ge; }
bool is_classification(ir::Op op) {
  return op == ir::Op::IsNan || op == ir::Op::IsInf || op == ir::Op::IsFinite;
}
bool is_rounding(ir::Op op) {
  return op == ir::Op::Floor || op == ir::Op::Ceil || op == ir::Op::Round || op == ir::Op::Trunc;
}
bool is_bitwise(ir::Op op) {
  return op == ir::Op::And || op == ir::Op::Or || op == ir::Op::Xor || op == ir::Op::BitNot;
}
bool is_shift(ir::Op op) { return op == ir::Op::Shl || op == ir::Op::Shr; }
bool needs_float(ir::Op op) {
  return (op >= ir::Op::Sqrt && op <= ir::Op::Erf) || op == ir::Op::Div || op == ir::Op::Atan2;
}
/// Ops that bools are not given to.
bool needs_number(ir::Op op) {
  return (op >= ir::Op::Add && op <= ir::Op::Max) || op == ir::Op::Neg || op == ir::Op::Abs ||
         op == ir::Op::Sign || (op >= ir::Op::Lt && op <= ir::Op::Ge) || is_rounding(op) || is_shift(op) ||
         needs_float(op) || is_classification(op);
}

}  // namespace

Operand KernelBuilder::ssa_operand(int ssa, DType t, Span span) const {
  Operand v;
  v.dtype = t;
  v.ssa = ssa;
  v.span = span;
  return v;
}

/// A literal that met nothing: 1 is i64, 1.0 is default_float.
Operand KernelBuilder::strengthen(const Operand& v) const {
  if (!v.weak) return v;
  Operand r = v;
  if (gk::is_float(v.dtype)) r.dtype = options_.default_float;
  return r;
}

Result<Scalar> KernelBuilder::fit(const Operand& v, DType t) const {
  const Scalar& s = v.value;
  if (is_bool(s.dtype) != is_bool(t))
    return fail(ErrorKind::Type, "E0201",
                fmt::format("{} cannot stand where {} is needed", describe(v), name(t)), v.span);
  if (s.is_float() && !gk::is_float(t)) {
    Error e = make_error(ErrorKind::Type, "E0203", fmt::format("a float literal meets {}", name(t)), v.span);
    if (s.f == std::trunc(s.f) && std::fabs(s.f) < 1e18)
      e.helps.push_back(fmt::format("write an integer: `{:.0f}`", s.f));
    return fail(std::move(e).help("or convert the integer first: `f32(…)`"));
  }
  Scalar c = s.cast(t);
  bool fits = true;
  if (gk::is_float(t)) {
    fits = !std::isinf(c.f) || (s.is_float() && std::isinf(s.f));
  } else if (is_integer(t)) {
    bool source_negative = s.dtype != DType::U64 && s.i < 0;
    bool result_negative = is_signed(t) && c.i < 0;
    fits = c.i == s.i && source_negative == result_negative;
  }
  if (!fits) {
    Error e = make_error(ErrorKind::Type, "E0203",
                         fmt::format("{} does not fit in {}", number_text(s), name(t)), v.span);
    const char* wider = gk::is_float(t) ? "f64" : s.dtype == DType::U64 ? "u64" : "i64";
    return fail(std::move(e).help(fmt::format("convert the other side: `{}(…)`", wider)));
  }
  return c;
}

/// To `t`, which the value's dtype promotes to; weak values must fit.
Result<int> KernelBuilder::convert(const Operand& v, DType t) {
  if (v.weak) {
    GK_TRY(Scalar s, fit(v, t));
    return constant(s, v.span);
  }
  int ssa =
      v.ssa >= 0 ? v.ssa : constant(v.value, v.span);  // a typed const has no instruction of its own yet
  if (v.dtype == t) return ssa;
  ir::KInst i = inst(ir::KKind::Cast, t, v.span);
  i.args = {ssa};
  return emit(std::move(i));
}

/// To the dtype of a variable or an element: no loss of kind or range.
Result<int> KernelBuilder::convert_for_store(const Operand& v, DType t, const std::string& what) {
  if (!v.weak && v.dtype != t) {
    bool ok = !is_bool(v.dtype) && !is_bool(t) && promote(v.dtype, t) == t;
    if (!ok)
      return fail(make_error(ErrorKind::Type, "E0211",
                             fmt::format("{} is {} and cannot take {}", what, name(t), name(v.dtype)), v.span)
                      .help(fmt::format("convert the value: `{}({})`", name(t), text_of(v.span))));
  }
  return convert(v, t);
}

Result<DType> KernelBuilder::common(const Operand& a, const Operand& b, std::string_view what,
                                    Span span) const {
  if (a.weak && b.weak && is_bool(a.dtype) == is_bool(b.dtype)) {
    if (is_bool(a.dtype)) return DType::Bool;
    if (gk::is_float(a.dtype) || gk::is_float(b.dtype)) return DType::F64;
    return a.dtype == DType::U64 || b.dtype == DType::U64 ? DType::U64 : DType::I64;
  }
  if (is_bool(a.dtype) == is_bool(b.dtype)) {
    if (a.weak != b.weak) return a.weak ? b.dtype : a.dtype;
    if (auto t = promote(a.dtype, b.dtype)) return *t;
  }
  Error e =
      make_error(ErrorKind::Type, "E0205", fmt::format("cannot {}: they have no common dtype", what), span);
  e.labels = {{a.span, describe(a)}, {b.span, describe(b)}};
  const bool left = is_bool(a.dtype) || (!is_bool(b.dtype) && a.dtype == DType::U64);
  const std::string text = text_of(left ? a.span : b.span);
  return fail(std::move(e).help(is_bool(a.dtype) || is_bool(b.dtype)
                                    ? fmt::format("convert the bool: `i32({0})` or `f32({0})`", text)
                                    : fmt::format("convert one side, for example `i64({})`", text)));
}

Result<Operand> KernelBuilder::apply(ir::Op op, std::vector<Operand> args, Span span) {
  const std::string op_name(ir::info(op).name);
  size_t first = op == ir::Op::Where ? 1 : 0;
  if (first == 1 && !is_bool(args[0].dtype))
    return fail(ErrorKind::Type, "E0201",
                fmt::format("the condition of `where` must be bool, not {}", describe(args[0])),
                args[0].span);
  DType t = args[first].dtype;
  bool weak = args[first].weak;
  bool two = args.size() > first + 1;
  std::string what = two ? phrase(op, describe(args[first]), describe(args[first + 1]))
                         : op_name + " " + describe(args[first]);
  if (two) {
    GK_TRY(t, common(args[first], args[first + 1], what, span));
    weak = weak && args[first + 1].weak;
  }
  if (is_bool(t) && needs_number(op))
    return fail(make_error(ErrorKind::Type, "E0204",
                           two ? fmt::format("cannot {}", what)
                               : fmt::format("`{}` is not defined for bool", op_name),
                           span)
                    .help("use `&`, `|`, `^`, `~`, or convert: `i32(…)`, `f32(…)`"));
  if (gk::is_float(t) && (is_bitwise(op) || is_shift(op))) {
    Error e =
        make_error(ErrorKind::Type, "E0201",
                   fmt::format("`{}` is not defined for {}", written(op), weak ? "floats" : name(t)), span);
    if (op == ir::Op::Xor)
      e = std::move(e).help(
          fmt::format("a power is `{} ** {}`", text_of(args[0].span), text_of(args[1].span)));
    return fail(std::move(e));
  }
  if (op == ir::Op::Not && !is_bool(t))
    return fail(make_error(ErrorKind::Type, "E0208",
                           fmt::format("`not` takes a bool, not {}", describe(args[0])), span)
                    .help("compare first: `x == 0`"));
  if (needs_float(op) && !gk::is_float(t)) t = weak ? DType::F64 : options_.default_float;
  if (is_rounding(op) && is_integer(t)) return args[0];
  if (op == ir::Op::BitNot && is_bool(t)) op = ir::Op::Not;
  if (is_classification(op) && !gk::is_float(t)) {
    Operand v;
    v.dtype = DType::Bool;
    v.value = Scalar::of_bool(op == ir::Op::IsFinite);
    v.span = span;
    return v;
  }
  DType result = is_comparison(op) || is_classification(op) ? DType::Bool : t;

  bool all_weak = weak && (first == 0 || args[0].weak);
  // What faults is left to run time, where it is reported as such.
  bool may_fault = all_weak && !ir::info(op).pure && is_integer(t) &&
                   (op == ir::Op::Pow ? args[0].value.i == 0 && args[1].value.i < 0 : args[1].value.i == 0);
  if (all_weak && !may_fault) {
    std::vector<Scalar> s;
    for (size_t i = 0; i < args.size(); ++i) s.push_back(args[i].value.cast(i < first ? DType::Bool : t));
    Operand v;
    v.dtype = result;
    v.weak = true;
    v.value = interp::apply(op, s, result);
    v.span = span;
    return v;
  }
  ir::KInst i = inst(ir::KKind::Compute, result, span);
  i.op = op;
  for (size_t k = 0; k < args.size(); ++k) {
    GK_TRY(int ssa, convert(args[k], k < first ? DType::Bool : t));
    i.args.push_back(ssa);
  }
  return ssa_operand(emit(std::move(i)), result, span);
}

/// The conversion that the user writes.
Result<Operand> KernelBuilder::cast(const Operand& v, DType t, Span span) {
  if (v.weak) {
    Operand r;
    r.dtype = t;
    r.value = v.value.cast(t);
    r.span = span;
    return r;
  }
  GK_TRY(int ssa, convert(v, t));
  Operand r = ssa_operand(ssa, t, span);
  if (v.dtype == t || (is_integer(v.dtype) && t == DType::I64)) {
    r.is_dim = v.is_dim;
    r.below_dim = v.below_dim;
    r.below = v.below;
  }
  return r;
}

}  // namespace gk::sema
