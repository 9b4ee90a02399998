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
#include "compiler/sema/typing.h"

namespace gk::sema {
namespace {

std::string describe(const Operand& v) {
  if (!v.weak) return std::string(name(v.dtype));
  if (is_bool(v.dtype)) return "bool";
  return fmt::format("{} {}", gk::is_float(v.dtype) ? "a float" : "an integer",
                     v.constant() ? "literal" : "without a dtype");
}

}  // namespace

Typed typed(const Operand& v) {
  return {v.dtype, v.weak, v.weak && v.ssa >= 0 && is_integer(v.dtype) && !v.undecided, v.range};
}

namespace {

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
    const bool ok =
        (!is_bool(v.dtype) && !is_bool(t) && promote(v.dtype, t) == t) || (v.weak && takes(typed(v), t));
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

/// E0205 with what the two are.
Error KernelBuilder::no_common_dtype(Error e, const Operand& a, const Operand& b) const {
  e.labels = {{a.span, describe(a)}, {b.span, describe(b)}};
  const bool left = is_bool(a.dtype) || (!is_bool(b.dtype) && a.dtype == DType::U64);
  const std::string text = text_of(left ? a.span : b.span);
  e.helps = {is_bool(a.dtype) || is_bool(b.dtype)
                 ? fmt::format("convert the bool: `i32({0})` or `f32({0})`", text)
                 : fmt::format("convert one side, for example `i64({})`", text)};
  return e;
}

Error KernelBuilder::branches_differ(const Operand& a, const Operand& b, Span span) const {
  const std::string what = fmt::format("cannot give {} in one branch and {} in the other",
                                       name(strengthen(a).dtype), name(strengthen(b).dtype));
  return no_common_dtype(sema::no_common_dtype(what, false).at(span), a, b);
}

Error KernelBuilder::untypable(const Untypable& why, ir::Op op, const std::vector<Operand>& args,
                               Span span) const {
  std::vector<std::string> words;
  for (const Operand& a : args) words.push_back(describe(a));
  Error e = sema::untypable(why, op, words).at(span);
  const size_t first = op == ir::Op::Where ? 1 : 0;
  if (why.why == Untypable::Why::NoCommonDType)
    return no_common_dtype(std::move(e), args[first], args[first + 1]);
  if (why.why == Untypable::Why::NoCondition) {
    e.span = args[0].span;
  } else if (op == ir::Op::Xor) {
    e.helps = {fmt::format("a power is `{} ** {}`", as_operand(text_of(args[0].span)),
                           as_operand(text_of(args[1].span)))};
  }
  return e;
}

Result<Operand> KernelBuilder::apply(ir::Op op, std::vector<Operand> args, Span span) {
  const size_t first = op == ir::Op::Where ? 1 : 0;
  std::vector<Typed> operands;
  for (const Operand& a : args) operands.push_back(typed(a));
  // A choice of the device between numbers is still one of numbers.
  if (first == 1) operands[0].weak = true;
  const auto found = type_elementwise(op, operands, options_.default_float);
  if (!found) return fail(untypable(found.error(), op, args, span));
  const Typing& t = *found;
  if (t.form == Typing::Form::Itself) return args[0];
  if (t.form == Typing::Form::Constant) {
    Operand v;
    v.dtype = DType::Bool;
    v.value = Scalar::of_bool(op == ir::Op::IsFinite);
    v.span = span;
    return v;
  }
  // A number must fit what it meets, also where both become floats.
  if (args.size() == first + 2 && t.op != ir::Op::PowInt)
    for (const size_t k : {first, first + 1}) {
      const Operand &w = args[k], &met = args[first + first + 1 - k];
      if (w.constant() && !met.weak && is_integer(w.dtype) && is_integer(met.dtype))
        GK_CHECK(fit(w, met.dtype));
    }
  op = t.op;

  const bool all_host = std::all_of(args.begin(), args.end(), [](const Operand& a) { return a.host(); });
  // What faults is left to run time, where it is reported as such.
  if (op == ir::Op::Where && args[1].host() && args[2].host() && !args[0].host() && !is_bool(t.dtype)) {
    Operand condition = args[0];
    GK_TRY(condition.ssa, convert(args[0], DType::Bool));
    return choice_of(condition, args[1], args[2], span);
  }
  const bool all_constant =
      std::all_of(args.begin(), args.end(), [](const Operand& a) { return a.constant(); });
  // What faults is the launch's to say, where it is needed.
  const bool may_fault = all_constant && !ir::info(op).pure && is_integer(t.dtype) && args[1].value.i == 0;
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
  ir::KInst i = inst(ir::KKind::Compute, t.result, span);
  i.op = op;
  for (size_t k = 0; k < args.size(); ++k) {
    const bool widens = t.operands[k] == DType::U8 && is_bool(args[k].dtype);
    if (widens) {
      GK_TRY(args[k], cast(args[k], DType::U8, args[k].span));
    }
    GK_TRY(int ssa, convert(args[k], t.operands[k]));
    i.args.push_back(ssa);
  }
  Operand r = ssa_operand(emit(std::move(i)), t.result, span);
  r.weak = t.weak && !is_bool(t.result);
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
