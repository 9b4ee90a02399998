// Operators and elementwise functions: promotion, weak literals, host scalars, broadcasting, lifting over
// records.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/interp/interp.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/habits.h"
#include "compiler/sema/hints.h"
#include "compiler/sema/operators.h"

namespace gk::sema {

using syntax::BinaryOp;
using syntax::UnaryOp;

namespace {

bool is_comparison(ir::Op op) { return op >= ir::Op::Eq && op <= ir::Op::Ge; }

std::string_view verb(ir::Op op) {
  switch (op) {
    case ir::Op::Add: return "add";
    case ir::Op::Sub: return "subtract";
    case ir::Op::Mul: return "multiply";
    case ir::Op::Div: return "divide";
    case ir::Op::Eq:
    case ir::Op::Ne:
    case ir::Op::Lt:
    case ir::Op::Le:
    case ir::Op::Gt:
    case ir::Op::Ge: return "compare";
    default: return "combine";
  }
}

bool needs_float(ir::Op op) {
  return (op >= ir::Op::Sqrt && op <= ir::Op::Erf) || op == ir::Op::Div || op == ir::Op::Atan2;
}

bool is_inexact(ir::Op op) {
  return (op >= ir::Op::Exp && op <= ir::Op::Erf) || op == ir::Op::Pow || op == ir::Op::Atan2;
}

struct DTypeOf {
  DType dtype;
  bool weak;
};

std::optional<DTypeOf> dtype_of(const Value& v) {
  if (v.is_array()) return DTypeOf{v.array->type.dtype, false};
  if (v.is_scalar()) return DTypeOf{v.scalar.dtype, v.weak};
  return std::nullopt;
}

// Weak host arithmetic happens in i64 and f64; typed arithmetic in its dtype.
// Whether integers computed exactly leave i64.
bool overflows(ir::Op op, const std::vector<Scalar>& s) {
  int64_t r = 0;
  switch (op) {
    case ir::Op::Add: return __builtin_add_overflow(s[0].i, s[1].i, &r);
    case ir::Op::Sub: return __builtin_sub_overflow(s[0].i, s[1].i, &r);
    case ir::Op::Mul: return __builtin_mul_overflow(s[0].i, s[1].i, &r);
    case ir::Op::Neg: return __builtin_sub_overflow(int64_t{0}, s[0].i, &r);
    case ir::Op::Pow: {
      int64_t p = 1, b = s[0].i;
      if (b >= -1 && b <= 1) return false;
      for (int64_t k = 0; k < s[1].i; ++k)
        if (__builtin_mul_overflow(p, b, &p)) return true;
      return false;
    }
    case ir::Op::Shl:
      return s[0].i != 0 && (s[1].i > 62 || (s[1].i > 0 && (s[0].i << s[1].i) >> s[1].i != s[0].i));
    default: return false;
  }
}

Value fold(ir::Op op, const std::vector<Value>& args, DType operand, DType result, bool weak) {
  for (const auto& a : args)
    if (!a.known) return Value::unknown_scalar(result, weak);
  std::vector<Scalar> s;
  for (const auto& a : args)
    s.push_back(a.scalar.cast(op == ir::Op::Where && s.empty() ? DType::Bool : operand));
  return Value::of_scalar(interp::apply(op, s, result), weak);
}

}  // namespace

Value Evaluator::strengthen(const Value& v) const {
  if (!v.is_scalar() || !v.weak) return v;
  Value r = v;
  r.weak = false;
  if (gk::is_float(v.scalar.dtype)) {
    r.scalar = v.scalar.cast(default_float_);
  }
  return r;
}

Result<Value> Evaluator::cast_weak(const Value& v, DType t, Span span, const Value* other) {
  DType from = v.scalar.dtype;
  Value r = v;
  r.weak = false;
  if (is_bool(from) != is_bool(t))
    return fail(ErrorKind::Type, "E0201",
                fmt::format("{} cannot stand where {} is needed", describe(v), name(t)), span);
  if (gk::is_float(from) && !gk::is_float(t)) {
    auto e = make_error(ErrorKind::Type, "E0203", fmt::format("a float literal meets {}", name(t)), span);
    return fail(std::move(e).help(for_float_literal(v, t, other, default_float_)));
  }
  if (is_integer(from) && is_integer(t) && v.known) {
    Scalar c = v.scalar.cast(t);
    bool fits = t == DType::U64 ? v.scalar.i >= 0 : c.i == v.scalar.i;
    if (v.scalar.dtype == DType::U64) fits = t == DType::U64 || (v.scalar.i >= 0 && c.i == v.scalar.i);
    if (!fits)
      return fail(ErrorKind::Type, "E0203", fmt::format("{} does not fit in {}", v.scalar.i, name(t)), span);
  }
  r.scalar = v.scalar.cast(t);
  return r;
}

Result<Value> Evaluator::cast(const Value& v, DType t, Span span) {
  if (v.is_unknown()) return v;
  if (v.is_scalar()) {
    Value r = v;
    r.weak = false;
    r.scalar = v.scalar.cast(t);
    return r;
  }
  if (v.is_aggregate()) {
    Value r = v;
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& item : r.items->items) {
      GK_TRY(item, cast(item, t, span));
    }
    return r;
  }
  if (!v.is_array())
    return fail(ErrorKind::Type, "E0202", fmt::format("cannot convert {} to {}", describe(v), name(t)), span);
  if (v.array->type.dtype == t) return v;
  ir::Attrs attrs;
  attrs.dtype = t;
  GK_TRY(auto a, emit(ir::Op::Cast, {v.array}, attrs, span));
  return Value::of_array(a);
}

Result<DType> Evaluator::common_dtype(const Value& a, const Value& b, std::string_view what, Span span) {
  auto da = dtype_of(a), db = dtype_of(b);
  if (!da || !db)
    return fail(ErrorKind::Type, "E0202", fmt::format("cannot {} {} and {}", what, describe(a), describe(b)),
                span);
  if (da->weak && db->weak) {
    if (is_bool(da->dtype) && is_bool(db->dtype)) return DType::Bool;
    if (is_bool(da->dtype) != is_bool(db->dtype))
      return fail(ErrorKind::Type, "E0204",
                  fmt::format("cannot {} {} and {}", what, describe(a), describe(b)), span);
    return gk::is_float(da->dtype) || gk::is_float(db->dtype) ? DType::F64 : DType::I64;
  }
  if (da->weak != db->weak) {
    const Value& w = da->weak ? a : b;
    DType t = da->weak ? db->dtype : da->dtype;
    GK_CHECK(cast_weak(w, t, span, da->weak ? &b : &a));
    return t;
  }
  auto t = promote(da->dtype, db->dtype);
  if (is_bool(da->dtype) != is_bool(db->dtype)) t = std::nullopt;
  if (!t)
    return fail(make_error(ErrorKind::Type, "E0205",
                           fmt::format("cannot {} {} and {}: {} and {} have no common dtype", what,
                                       describe(a), describe(b), name(da->dtype), name(db->dtype)),
                           span)
                    .help(is_bool(da->dtype) || is_bool(db->dtype)
                              ? "convert the bools: `i32(…)` or `f32(…)`"
                              : "convert one side, for example `i64(…)`"));
  return *t;
}

ir::Dim Evaluator::fresh_dim(std::string name) {
  ir::Dim d;
  d.symbol = ++next_symbol_;
  d.name = std::move(name);
  return d;
}

Result<ArrayPtr> Evaluator::emit(ir::Op op, const std::vector<ArrayPtr>& operands, ir::Attrs attrs, Span span,
                                 const ir::Type* known) {
  std::vector<ir::Type> types;
  for (const auto& a : operands) types.push_back(a->type);
  ir::Type type;
  if (known) {
    type = *known;
  } else {
    auto inferred = ir::infer(op, types, attrs);
    if (!inferred) return fail(std::move(inferred.error()).at(span));
    type = std::move(*inferred);
  }
  std::vector<ir::ValueId> ids;
  for (const auto& a : operands) {
    GK_TRY(auto id, value_of(a, span));
    ids.push_back(id);
  }
  if (!running()) return trace_->pending(std::move(type), -1);
  auto v = trace_->append(op, std::move(ids), std::move(attrs), span);
  if (!v) return fail(std::move(v.error()).at(span));
  return trace_->pending(std::move(type), *v);
}

Result<ArrayPtr> Evaluator::as_array(const Value& v, Span span) {
  if (v.is_array()) return v.array;
  if (v.is_scalar()) return as_array(v, strengthen(v).scalar.dtype, span);
  return fail(ErrorKind::Type, "E0202", fmt::format("an array is needed here, not {}", describe(v)), span);
}

Result<ArrayPtr> Evaluator::as_array(const Value& v, DType t, Span span) {
  if (v.is_array()) {
    GK_TRY(auto c, cast(v, t, span));
    return c.array;
  }
  if (!v.is_scalar())
    return fail(ErrorKind::Type, "E0202",
                fmt::format("a number or an array is needed here, not {}", describe(v)), span);
  Value c = v;
  if (v.weak) {
    GK_TRY(c, cast_weak(v, t, span));
  }
  ir::Type type;
  type.dtype = t;
  if (!running()) return trace_->pending(type, -1);
  if (v.weak) {
    ir::Attrs attrs;
    attrs.value = c.scalar.cast(t);
    attrs.dtype = t;
    return emit(ir::Op::Const, {}, attrs, span);
  }
  return trace_->pending(type, trace_->param(v.scalar.cast(t), span));
}

Result<ArrayPtr> Evaluator::broadcast_to(const ArrayPtr& a, const ir::Dims& dims, Span span) {
  bool same = a->type.dims.size() == dims.size();
  for (size_t i = 0; same && i < dims.size(); ++i) same = ir::equal(a->type.dims[i], dims[i]) == ir::Tri::Yes;
  if (same) return a;
  ir::Type type{a->type.dtype, dims};
  ir::Attrs attrs;
  if (running()) attrs.shape = type.shape();
  return emit(ir::Op::Broadcast, {a}, attrs, span, &type);
}

Result<Value> Evaluator::elementwise(ir::Op op, std::vector<Value> args, Span span) {
  for (const auto& a : args)
    if (a.is_unknown()) return Value::unknown();
  // Lift over records, lists and tuples of the same structure.
  const Value* aggregate = nullptr;
  for (const auto& a : args)
    if (a.is_aggregate()) {
      if (aggregate && (aggregate->items->items.size() != a.items->items.size() ||
                        aggregate->items->names != a.items->names))
        return fail(
            ErrorKind::Type, "E0202",
            fmt::format("cannot combine {} and {}: their fields differ", describe(*aggregate), describe(a)),
            span);
      aggregate = &a;
    }
  if (aggregate) {
    Value r = *aggregate;
    r.items = std::make_shared<Aggregate>(*aggregate->items);
    for (size_t i = 0; i < r.items->items.size(); ++i) {
      std::vector<Value> parts;
      for (const auto& a : args) parts.push_back(a.is_aggregate() ? a.items->items[i] : a);
      GK_TRY(r.items->items[i], elementwise(op, std::move(parts), span));
    }
    return r;
  }
  for (const auto& a : args)
    if (!a.is_array() && !a.is_scalar())
      return fail(ErrorKind::Type, "E0202",
                  fmt::format("`{}` takes numbers and arrays, not {}", ir::info(op).name, describe(a)), span);

  // The dtype the operands meet in.
  size_t first = op == ir::Op::Where ? 1 : 0;
  if (op == ir::Op::Where) {
    auto d = dtype_of(args[0]);
    if (!is_bool(d->dtype))
      return fail(ErrorKind::Type, "E0201",
                  fmt::format("the condition of `where` must be bool, not {}", describe(args[0])), span);
  }
  std::string what{verb(op)};
  DType t = dtype_of(args[first])->dtype;
  bool weak = args[first].is_scalar() && args[first].weak;
  if (args.size() > first + 1) {
    auto common = common_dtype(args[first], args[first + 1], what, span);
    if (!common) return fail(std::move(common.error()));
    t = *common;
    weak = weak && args[first + 1].is_scalar() && args[first + 1].weak;
  }
  if (needs_float(op) && !gk::is_float(t)) {
    if (is_bool(t))
      return fail(make_error(ErrorKind::Type, "E0204",
                             fmt::format("`{}` is not defined for bool", ir::info(op).name), span)
                      .help("convert it first: `f32(…)`"));
    t = weak ? DType::F64 : default_float_;
  }
  bool arithmetic = (op >= ir::Op::Add && op <= ir::Op::Pow) || op == ir::Op::Neg || op == ir::Op::Abs ||
                    op == ir::Op::Sign || op == ir::Op::Min || op == ir::Op::Max;
  if (arithmetic && is_bool(t))
    return fail(make_error(ErrorKind::Type, "E0204",
                           fmt::format("cannot {} bools", op == ir::Op::Neg ? "negate" : what), span)
                    .help("use `&`, `|`, `^`, `~`, or convert them: `i32(…)`"));
  bool bitwise = op == ir::Op::And || op == ir::Op::Or || op == ir::Op::Xor || op == ir::Op::BitNot;
  if ((bitwise || op == ir::Op::Shl || op == ir::Op::Shr) && gk::is_float(t))
    return fail(ErrorKind::Type, "E0201",
                fmt::format("`{}` is not defined for {}", gk::sema::written(op), name(t)), span);
  if ((op == ir::Op::Shl || op == ir::Op::Shr) && is_bool(t))
    return fail(ErrorKind::Type, "E0204", fmt::format("`{}` is not defined for bool", gk::sema::written(op)),
                span);
  bool rounding = op == ir::Op::Floor || op == ir::Op::Ceil || op == ir::Op::Round || op == ir::Op::Trunc;
  if (rounding && is_integer(t)) return args[0];
  if (rounding && is_bool(t))
    return fail(ErrorKind::Type, "E0204", fmt::format("`{}` is not defined for bool", ir::info(op).name),
                span);
  if (op == ir::Op::IsNan || op == ir::Op::IsInf || op == ir::Op::IsFinite) {
    if (!gk::is_float(t)) {
      GK_TRY(auto same,
             elementwise(op == ir::Op::IsFinite ? ir::Op::Eq : ir::Op::Ne, {args[0], args[0]}, span));
      return same;
    }
  }
  ir::Op the_op = op;
  if (op == ir::Op::BitNot && is_bool(t)) the_op = ir::Op::Not;

  bool result_bool =
      is_comparison(op) || op == ir::Op::IsNan || op == ir::Op::IsInf || op == ir::Op::IsFinite;
  bool all_host = true;
  for (const auto& a : args) all_host = all_host && a.is_scalar();
  if (all_host) {
    bool zero_divisor = (op == ir::Op::FloorDiv || op == ir::Op::Mod) && is_integer(t) && args[1].known &&
                        args[1].scalar.i == 0;
    if (zero_divisor) return fail(ErrorKind::Runtime, "E0802", "division by zero", span);
    const bool both_known = args[0].known && args.back().known;
    if (op == ir::Op::Pow && is_integer(t) && both_known && is_signed(t) && args[1].scalar.i < 0)
      return fail(make_error(ErrorKind::Type, "E0203", "an integer has no negative integer power", span)
                      .help("make the base a float: `2.0 ** -1`"));
    if (weak && t == DType::I64 && both_known) {
      std::vector<Scalar> exact;
      for (const auto& a : args) exact.push_back(a.scalar.cast(DType::I64));
      if (overflows(the_op, exact))
        return fail(make_error(ErrorKind::Type, "E0203", "this integer constant does not fit in i64", span)
                        .help("write it as a float: `2.0**64`"));
    }
    return fold(the_op, args, t, result_bool ? DType::Bool : t, weak && !result_bool);
  }

  std::vector<ArrayPtr> arrays;
  ir::Dims dims;
  for (size_t i = 0; i < args.size(); ++i) {
    GK_TRY(auto a, as_array(args[i], i < first ? DType::Bool : t, span));
    auto d = ir::broadcast(dims, a->type.dims);
    if (!d) {
      Error e = std::move(d.error());
      e.message =
          fmt::format("cannot {} {} and {}", what, ir::to_string(ir::Type{arrays.back()->type.dtype, dims}),
                      ir::to_string(args[i].is_array() ? args[i].array->type : a->type));
      if (args.size() == 2 && args[0].is_array() && args[1].is_array())
        e.message = fmt::format("cannot {} {} and {}", what, describe(args[0]), describe(args[1]));
      return fail(std::move(e).at(span));
    }
    dims = std::move(*d);
    arrays.push_back(std::move(a));
  }
  for (auto& a : arrays) {
    GK_TRY(a, broadcast_to(a, dims, span));
  }
  // What a step by step `for` would compute on the host: functions that are not correctly rounded differ
  // there.
  const bool counter =
      std::any_of(args.begin(), args.end(),
                  [](const Value& a) { return a.is_array() && a.array->counter; }) &&
      std::all_of(args.begin(), args.end(), [](const Value& a) { return a.is_scalar() || a.array->counter; });
  if (counter && is_inexact(the_op) && gk::is_float(t)) roll_failed_ = true;
  GK_TRY(auto r, emit(the_op, arrays, {}, span));
  r->counter = counter;
  return Value::of_array(r);
}

Result<Value> Evaluator::unary(UnaryOp op, const Value& v, Span span) {
  if (v.is_unknown()) return v;
  switch (op) {
    case UnaryOp::Plus: {
      auto d = dtype_of(v);
      if (!d && !v.is_aggregate())
        return fail(ErrorKind::Type, "E0202", fmt::format("`+` needs a number, not {}", describe(v)), span);
      if (d && is_bool(d->dtype)) return fail(ErrorKind::Type, "E0204", "`+` is not defined for bool", span);
      return v;
    }
    case UnaryOp::Neg: return elementwise(ir::Op::Neg, {v}, span);
    case UnaryOp::BitNot: return elementwise(ir::Op::BitNot, {v}, span);
    case UnaryOp::Not: {
      if (v.is_scalar() && is_bool(v.scalar.dtype)) {
        Value r = v;
        r.scalar = Scalar::of_bool(v.scalar.i == 0);
        return r;
      }
      if (v.is_array() && v.array->type.rank() == 0 && is_bool(v.array->type.dtype))
        return elementwise(ir::Op::Not, {v}, span);
      return fail(ErrorKind::Type, "E0208", fmt::format("`not` takes a scalar bool, not {}", describe(v)),
                  span);
    }
  }
  return Value::unknown();
}

Result<Value> Evaluator::binary(BinaryOp op, const Value& a, const Value& b, const syntax::Expr* where,
                                Span span) {
  if (a.is_unknown() || b.is_unknown()) return Value::unknown();
  Result<Value> r = Value::unknown();
  if (a.kind == VKind::String && b.kind == VKind::String) {
    if (op == BinaryOp::Add) return Value::of_string(a.text + b.text);
    if (op == BinaryOp::Eq) return Value::of_scalar(Scalar::of_bool(a.text == b.text));
    if (op == BinaryOp::Ne) return Value::of_scalar(Scalar::of_bool(a.text != b.text));
  }
  if (op == BinaryOp::MatMul) {
    r = matmul(a, b, span);
  } else if (op == BinaryOp::Pow && b.is_scalar() && b.weak && b.known && is_integer(b.scalar.dtype) &&
             b.scalar.i == 2) {
    r = elementwise(ir::Op::Mul, {a, a}, span);
  } else {
    const std::optional<ir::Op> meant = op_of(op);
    if (!meant)
      return fail(ErrorKind::Internal, "E0901",
                  fmt::format("`{}` is no operation on values", syntax::spelling(op)), span);
    r = elementwise(*meant, {a, b}, span);
  }
  if (!r && where && where->lhs && where->rhs) {
    Error e = std::move(r.error());
    if (e.labels.empty() && e.span.valid() && (a.is_array() || b.is_array())) {
      e = std::move(e).label(where->lhs->span, describe(a));
      e = std::move(e).label(where->rhs->span, describe(b));
    }
    const std::string left = written(where->lhs->span), right = written(where->rhs->span);
    if (op == BinaryOp::BitXor && e.code == "E0201")
      return fail(
          std::move(e).help(fmt::format("a power is `{} ** {}`", as_operand(left), as_operand(right))));
    return fail(advised(std::move(e), a, b, left, right));
  }
  return r;
}

Result<Value> Evaluator::matmul(const Value& a, const Value& b, Span span) {
  if (a.is_unknown() || b.is_unknown()) return Value::unknown();
  if (!a.is_array() || !b.is_array())
    return fail(ErrorKind::Type, "E0202",
                fmt::format("`@` takes arrays, not {} and {}", describe(a), describe(b)), span);
  GK_TRY(auto t, common_dtype(a, b, "multiply", span));
  if (is_bool(t)) return fail(ErrorKind::Type, "E0204", "`@` is not defined for bool", span);
  GK_TRY(auto x, as_array(a, t, span));
  GK_TRY(auto y, as_array(b, t, span));
  GK_TRY(auto r, emit(ir::Op::MatMul, {x, y}, {}, span));
  return Value::of_array(r);
}

Result<Value> Evaluator::reduce(ir::Op op, const Value& v, std::vector<int64_t> axes, bool keepdims,
                                Span span) {
  if (v.is_unknown()) return v;
  GK_TRY(auto a, as_array(v, span));
  bool logical = op == ir::Op::Any || op == ir::Op::All;
  if (logical && !is_bool(a->type.dtype))
    return fail(make_error(ErrorKind::Type, "E0201",
                           fmt::format("`{}` takes bools, not {}", ir::info(op).name, ir::to_string(a->type)),
                           span)
                    .help("compare first: `any(x != 0)`"));
  if (is_bool(a->type.dtype) && (op == ir::Op::Sum || op == ir::Op::Prod)) {
    GK_TRY(a, as_array(Value::of_array(a), DType::I64, span));
  }
  if (is_bool(a->type.dtype) && !logical)
    return fail(ErrorKind::Type, "E0204", fmt::format("`{}` is not defined for bool", ir::info(op).name),
                span);
  ir::Attrs attrs;
  attrs.axes = std::move(axes);
  attrs.keepdims = keepdims;
  GK_TRY(auto r, emit(op, {a}, attrs, span));
  return Value::of_array(r);
}

Result<ArrayPtr> Evaluator::full(const ir::Type& t, const Value& v, Span span) {
  GK_TRY(auto c, as_array(v, t.dtype, span));
  if (running() && !num_elements(t.shape()))
    return fail(ErrorKind::Shape, "E0307",
                fmt::format("{} has more elements than can be counted", to_string(t)), span);
  return broadcast_to(c, t.dims, span);
}

}  // namespace gk::sema
