// Numbers inside kernels: weak literals, promotion, conversions, the elementwise ops. The rules are those of
// Evaluator::elementwise for arrays.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/sema/habits.h"
#include "compiler/sema/hints.h"
#include "compiler/sema/host_number.h"
#include "compiler/sema/kernel_builder.h"
#include "compiler/sema/operators.h"

namespace gk::sema {
namespace {

std::string describe(const Operand& v) {
  if (!v.weak) return std::string(name(v.dtype));
  if (is_bool(v.dtype)) return "bool";
  return fmt::format("{} {}", gk::is_float(v.dtype) ? "a float" : "an integer",
                     v.constant() ? "literal" : "without a dtype");
}

/// "add f32 and bool"
std::string phrase(ir::Op op, const std::string& a, const std::string& b) {
  switch (op) {
    case ir::Op::Add: return fmt::format("add {} and {}", a, b);
    case ir::Op::Sub: return fmt::format("subtract {} from {}", b, a);
    case ir::Op::Mul: return fmt::format("multiply {} and {}", a, b);
    case ir::Op::Div:
    case ir::Op::FloorDiv: return fmt::format("divide {} by {}", a, b);
    default: break;
  }
  if (ir::is_comparison(op)) return fmt::format("compare {} and {}", a, b);
  return fmt::format("apply {} to {} and {}", ir::info(op).name, a, b);
}

/// Ops that bools are not given to.
bool needs_number(ir::Op op) {
  const ir::OpGroup g = ir::info(op).group;
  return g == ir::OpGroup::Arithmetic || g == ir::OpGroup::Rounding || g == ir::OpGroup::Shift ||
         ir::needs_float(op);
}

/// Whether a weak SSA integer is known to fit, or will be of the dtype that it meets.
bool adopts(const Operand& v, DType t) {
  if (v.choice) return !is_bool(t) && (gk::is_float(t) || is_integer(v.dtype));
  if (!v.weak || v.ssa < 0 || is_bool(v.dtype) || is_bool(t)) return false;
  if (gk::is_float(t)) return true;
  if (!is_integer(v.dtype)) return false;
  if (v.undecided) return true;
  const int width = bits(t) - (is_signed(t) ? 1 : 0);
  const double most = std::ldexp(1.0, width) - 1, least = is_signed(t) ? -std::ldexp(1.0, width) : 0;
  return t == DType::I64 || (v.range && v.range->low >= least && v.range->high <= most && bits(t) < 64);
}

std::optional<Operand::Range> range_of(const Operand& v) {
  if (v.ssa >= 0) return v.range;
  if (!v.constant()) return std::nullopt;
  if (!is_integer(v.value.dtype)) return std::nullopt;
  const double d = v.value.as_double();
  return Operand::Range{d, d};
}

}  // namespace

std::optional<Operand::Range> either(const Operand& a, const Operand& b) {
  const auto x = range_of(a), y = range_of(b);
  if (!x || !y) return std::nullopt;
  return Operand::Range{std::min(x->low, y->low), std::max(x->high, y->high)};
}

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
  auto r = host_fit(v.value, t);
  if (r) return r;
  Error e = std::move(r.error()).at(v.span);
  if (v.value.is_float() && !gk::is_float(t)) {
    if (v.value.f == std::trunc(v.value.f) && std::fabs(v.value.f) < 0x1p63)
      e.helps.push_back(fmt::format("write an integer: `{:.0f}`", v.value.f));
  } else if (e.code == "E0203") {
    const char* wider = gk::is_float(t) ? "f64" : v.value.dtype == DType::U64 ? "u64" : "i64";
    e.helps.push_back(fmt::format("convert the other side: `{}(…)`", wider));
  }
  return fail(std::move(e));
}

Operand KernelBuilder::of_launch(int node, Span span) const {
  Operand v;
  v.weak = true;
  v.node = node;
  v.dtype = out_.numbers.kind(node);
  v.span = span;
  return v;
}

int KernelBuilder::node_of(const Operand& host) {
  return host.node >= 0 ? host.node : out_.numbers.number(host.value);
}

Operand KernelBuilder::choice_of(const Operand& condition, const Operand& yes, const Operand& no, Span span) {
  Operand v;
  v.weak = true;
  v.dtype = gk::is_float(yes.dtype) || gk::is_float(no.dtype) ? DType::F64 : DType::I64;
  v.span = span;
  v.choice = std::make_shared<const Operand::Choice>(Operand::Choice{condition, yes, no});
  return v;
}

/// A number of the launch in `t`. What a parameter or an extent holds already is read there.
Result<int> KernelBuilder::number(const Operand& v, DType t, bool convert) {
  KernelNumbers& numbers = out_.numbers;
  if (!convert)
    if (auto kinds = host_fit(Scalar{v.dtype, 0, 0.5}, t); !kinds)
      return fail(std::move(kinds.error()).at(v.span));
  const bool exact = t == DType::I64 || t == DType::F32 || t == DType::F64;
  if (numbers.is_extent(v.node) && exact) {
    ir::KInst i = inst(ir::KKind::Extent, DType::I64, v.span);
    i.param = numbers.param_of(v.node);
    i.axis = numbers.axis_of(v.node);
    const int ssa = emit(std::move(i));
    if (t == DType::I64) return ssa;
    ir::KInst c = inst(ir::KKind::Cast, t, v.span);
    c.args = {ssa};
    return emit(std::move(c));
  }
  const int next = static_cast<int>(kernel_->params.size());
  const bool own = numbers.is_argument(v.node) && t == v.dtype && !convert;
  const int param = numbers.use(v.node, t, convert, guards_, own ? numbers.param_of(v.node) : next, v.span);
  if (param == next) {
    if (numbers.uses().size() > kMaxKernelNumbers)
      return fail(
          make_error(ErrorKind::Unsupported, "E0405",
                     fmt::format("a kernel computes with more than {} different numbers of its launch",
                                 kMaxKernelNumbers),
                     v.span)
              .help("give the parameters that are numbers a dtype, for example `f32`"));
    ir::KParam p;
    p.kind = ir::KParam::Kind::Scalar;
    p.dtype = t;
    p.name = fmt::format("number.{}", next);
    kernel_->params.push_back(std::move(p));
  }
  ir::KInst i = inst(ir::KKind::ScalarParam, t, v.span);
  i.param = param;
  return emit(std::move(i));
}

/// To `t`, which the value's dtype promotes to; host numbers must fit.
Result<int> KernelBuilder::convert(const Operand& v, DType t) {
  if (v.of_launch()) return number(v, t, false);
  if (v.choice) {
    ir::KInst i = inst(ir::KKind::Compute, t, v.span);
    i.op = ir::Op::Where;
    const auto arm = [&](const Operand& number, bool holds) {
      const Guarded guarded(guards_, known(v.choice->condition, holds));
      return convert(number, t);
    };
    GK_TRY(int yes, arm(v.choice->yes, true));
    GK_TRY(int no, arm(v.choice->no, false));
    i.args = {v.choice->condition.ssa, yes, no};
    return emit(std::move(i));
  }
  if (v.host()) {
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
  if (!v.host() && v.dtype != t) {
    const bool ok = (!is_bool(v.dtype) && !is_bool(t) && promote(v.dtype, t) == t) || adopts(v, t);
    if (!ok)
      return fail(make_error(ErrorKind::Type, "E0211",
                             fmt::format("{} is {} and cannot take {}", what, name(t), name(v.dtype)), v.span)
                      .help(fmt::format("convert the value: `{}({})`", name(t), text_of(v.span))));
  }
  if (v.constant()) {
    auto fitted = host_fit(v.value, t);
    if (!fitted) return fail(fitting_help(std::move(fitted.error()).at(v.span), v.value, t, nullptr));
  }
  return convert(v, t);
}

Result<DType> KernelBuilder::common(const Operand& a, const Operand& b, std::string_view what,
                                    Span span) const {
  if (is_bool(a.dtype) == is_bool(b.dtype)) {
    const DType kind = gk::is_float(a.dtype) || gk::is_float(b.dtype) ? DType::F64 : DType::I64;
    if (a.weak && b.weak) return is_bool(a.dtype) ? DType::Bool : kind;
    if (a.weak != b.weak) {
      const Operand &w = a.weak ? a : b, &typed = a.weak ? b : a;
      if (gk::is_float(w.dtype) && is_integer(typed.dtype)) return options_.default_float;
      if (w.host() || gk::is_float(typed.dtype) || is_bool(typed.dtype) || adopts(w, typed.dtype))
        return typed.dtype;
    }
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

/// What a local that begins with a number is held in: what is assigned to it says which dtype that is.
DType KernelBuilder::adopting_local(const syntax::Binding& b, const Operand& initial) {
  note_assigned(b, initial);
  const LocalDTypes::Local& l = local_dtypes_.locals[&b];
  return l.dtype.value_or(l.floats ? DType::F64 : DType::I64);
}

void KernelBuilder::note_assigned(const syntax::Binding& b, const Operand& v) {
  LocalDTypes::Local& l = local_dtypes_.locals[&b];
  const LocalDTypes::Local before = l;
  if (v.weak) {
    l.floats = l.floats || gk::is_float(v.dtype);
  } else if (!is_bool(v.dtype)) {
    // Where there is no join, the assignment itself is refused.
    l.dtype = l.dtype ? promote(*l.dtype, v.dtype).value_or(*l.dtype) : v.dtype;
  }
  if (l.dtype && l.floats && is_integer(*l.dtype)) l.dtype = options_.default_float;
  if (l.dtype != before.dtype || l.floats != before.floats) local_dtypes_.changed = true;
}

/// Floats to the power of an integer are products in one order; see ir::Op::PowInt.
Result<Operand> KernelBuilder::power(const Operand& base, const Operand& exponent, Span span) {
  const DType t = base.weak && !exponent.weak ? options_.default_float : base.dtype;
  const DType n = !exponent.weak && exponent.dtype == DType::U64 ? DType::U64 : DType::I64;
  ir::KInst i = inst(ir::KKind::Compute, t, span);
  i.op = ir::Op::PowInt;
  GK_TRY(int x, convert(base, t));
  GK_TRY(int y, convert(exponent, n));
  i.args = {x, y};
  Operand r = ssa_operand(emit(std::move(i)), t, span);
  r.weak = base.weak && exponent.weak;
  return r;
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
  if (ir::is_classification(op) && !gk::is_float(t)) {
    Operand v;
    v.dtype = DType::Bool;
    v.value = Scalar::of_bool(op == ir::Op::IsFinite);
    v.span = span;
    return v;
  }
  if (is_bool(t) && needs_number(op))
    return fail(make_error(ErrorKind::Type, "E0204",
                           two ? fmt::format("cannot {}", what)
                               : fmt::format("`{}` is not defined for bool", op_name),
                           span)
                    .help("use `&`, `|`, `^`, `~`, or convert: `i32(…)`, `f32(…)`"));
  if (gk::is_float(t) &&
      (ir::info(op).group == ir::OpGroup::Bitwise || ir::info(op).group == ir::OpGroup::Shift)) {
    Error e =
        make_error(ErrorKind::Type, "E0201",
                   fmt::format("`{}` is not defined for {}", written(op), weak ? "floats" : name(t)), span);
    if (op == ir::Op::Xor)
      e = std::move(e).help(fmt::format("a power is `{} ** {}`", as_operand(text_of(args[0].span)),
                                        as_operand(text_of(args[1].span))));
    return fail(std::move(e));
  }
  if (op == ir::Op::Not && !is_bool(t))
    return fail(make_error(ErrorKind::Type, "E0208",
                           fmt::format("`not` takes a bool, not {}", describe(args[0])), span)
                    .help("compare first: `x == 0`"));
  if (ir::needs_float(op) && !gk::is_float(t)) t = weak ? DType::F64 : options_.default_float;
  if (ir::is_rounding(op) && is_integer(t)) return args[0];
  if (op == ir::Op::BitNot && is_bool(t)) op = ir::Op::Not;
  DType result = ir::gives_bool(op) ? DType::Bool : t;

  const bool all_host = std::all_of(args.begin(), args.end(), [](const Operand& a) { return a.host(); });
  // What faults is left to run time, where it is reported as such.
  if (op == ir::Op::Where && args[1].host() && args[2].host() && !args[0].host() && !is_bool(t)) {
    Operand condition = args[0];
    GK_TRY(condition.ssa, convert(args[0], DType::Bool));
    return choice_of(condition, args[1], args[2], span);
  }
  const bool all_constant =
      std::all_of(args.begin(), args.end(), [](const Operand& a) { return a.constant(); });
  // What faults is the launch's to say, where it is needed.
  const bool may_fault = all_constant && !ir::info(op).pure && is_integer(t) && args[1].value.i == 0;
  if (all_host && (!all_constant || may_fault)) {
    std::vector<int> nodes;
    std::vector<DType> kinds;
    for (const Operand& a : args) {
      nodes.push_back(node_of(a));
      kinds.push_back(out_.numbers.kind(nodes.back()));
    }
    return of_launch(out_.numbers.apply(op, nodes, host_dtype(op, kinds), span), span);
  }
  if (all_host) {
    std::vector<Scalar> s;
    for (const Operand& a : args) s.push_back(a.value);
    auto r = host_apply(op, s);
    if (!r) return fail(std::move(r.error()).at(span));
    Operand v;
    v.dtype = r->dtype;
    v.weak = true;
    v.value = *r;
    v.span = span;
    return v;
  }
  if (op == ir::Op::Pow && gk::is_float(args[0].dtype) && is_integer(args[1].dtype))
    return power(args[0], args[1], span);
  if (is_bool(t) && ir::is_comparison(op) && op != ir::Op::Eq && op != ir::Op::Ne) {
    // False is less than true.
    for (Operand& a : args) {
      GK_TRY(a, cast(a, DType::U8, a.span));
    }
    return apply(op, std::move(args), span);
  }
  ir::KInst i = inst(ir::KKind::Compute, result, span);
  i.op = op;
  for (size_t k = 0; k < args.size(); ++k) {
    GK_TRY(int ssa, convert(args[k], k < first ? DType::Bool : t));
    i.args.push_back(ssa);
  }
  Operand r = ssa_operand(emit(std::move(i)), result, span);
  r.weak = weak && !is_bool(result);
  if (op == ir::Op::Not) {
    r.when_true = known(args[0], false);
    r.when_false = known(args[0], true);
  }
  r.undecided = r.weak && std::any_of(args.begin(), args.end(), [](const Operand& a) { return a.undecided; });
  if (r.weak && op == ir::Op::Where) r.range = either(args[1], args[2]);
  return r;
}

/// The conversion that the user writes.
Result<Operand> KernelBuilder::cast(const Operand& v, DType t, Span span) {
  if (v.of_launch()) {
    GK_TRY(int ssa, number(v, t, true));
    Operand r = ssa_operand(ssa, t, span);
    if (t == DType::I64) r.is_dim = v.is_dim;
    return r;
  }
  if (v.choice) {
    const auto arm = [&](const Operand& number, bool holds) {
      const Guarded guarded(guards_, known(v.choice->condition, holds));
      return cast(number, t, span);
    };
    GK_TRY(Operand yes, arm(v.choice->yes, true));
    GK_TRY(Operand no, arm(v.choice->no, false));
    return apply(ir::Op::Where, {v.choice->condition, yes, no}, span);
  }
  if (v.host()) {
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
