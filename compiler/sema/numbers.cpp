// What has no dtype of its own: host numbers, such numbers kept on the device, and array literals of them;
// and what becomes of them where they meet a dtype, or stand alone.
#include "compiler/sema/numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/interp/interp.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/hints.h"
#include "compiler/sema/host_number.h"
#include "compiler/sema/typing.h"

namespace gk::sema {

namespace {

constexpr size_t kMostInline = 8;     // elements of a literal that are made in the kernel
constexpr size_t kPollEvery = 65536;  // elements of a literal between two looks at whether to go on

}  // namespace

bool is_number(const Value& v) {
  if (v.is_array()) return v.array->number.has_value();
  return v.is_scalar() && (v.weak || is_bool(v.scalar.dtype));
}

Result<int64_t> small_integer(const Value& v, std::string_view what, Span span) {
  if (v.scalar.dtype == DType::U64 && v.scalar.i < 0)
    return fail(ErrorKind::Type, "E0203",
                fmt::format("{} is {}, over 2**63 - 1", what, number_text(v.scalar)), span);
  return v.scalar.i;
}

std::string form_text(const Value& v) {
  if (!v.is_aggregate()) return describe(v);
  std::string text = "(";
  for (const auto& i : v.items->items) text += form_text(i) + ",";
  return text + ")";
}

std::optional<Adopting> dtype_of(const Value& v) {
  if (v.is_scalar()) {
    if (!v.weak) return Adopting{v.scalar.dtype, false, false};
    return Adopting{gk::is_float(v.scalar.dtype) ? DType::F64 : DType::I64, true, false};
  }
  if (!v.is_array()) return std::nullopt;
  const DType t = v.array->type.dtype;
  if (is_bool(t)) return Adopting{t, false, false};
  if (v.array->literal) return Adopting{gk::is_float(t) ? DType::F64 : DType::I64, true, true};
  return Adopting{t, v.array->number.has_value(), false};
}

DType Evaluator::alone(const Value& v) const {
  if (v.is_array() && !v.array->number) return v.array->type.dtype;
  const DType t = v.is_array() ? v.array->type.dtype : v.scalar.dtype;
  const bool weak = v.is_array() || v.weak;
  return weak && gk::is_float(t) ? default_float_ : t;
}

bool Evaluator::comes_from_call(const std::vector<Value>& args) const {
  bool some = false;
  for (const Value& a : args) {
    if (!a.is_scalar()) return false;
    some = some || comes_from_call(a);
  }
  return some;
}

Result<Value> Evaluator::on_host(const std::vector<Value>& args, HostStep step) {
  std::vector<Value> plain;
  std::shared_ptr<Prologue> prologue;
  for (const Value& a : args) {
    plain.push_back(without_origin(a));
    if (comes_from_call(a)) prologue = a.scalar.origin()->prologue;
  }
  GK_TRY(auto r, step(*this, plain));
  return prologue->note(std::move(step), args, default_float_, std::move(r));
}

Value Evaluator::strengthen(const Value& v) const {
  if (!v.is_scalar() || !v.weak) return v;
  if (comes_from_call(v))
    return v.scalar.origin()->prologue->note(
        [](Evaluator& ev, const std::vector<Value>& a) -> Result<Value> { return ev.strengthen(a[0]); }, {v},
        default_float_, strengthen(without_origin(v)));
  Value r = v;
  r.weak = r.constant = false;
  r.scalar = v.scalar.cast(alone(v));
  return r;
}

Result<Value> Evaluator::negated_literal(const Value& v, Span span) {
  for (const auto& o : v.array->literal->origins)
    if (o) o->read();
  auto l = std::make_shared<HostLiteral>(*v.array->literal);
  l->uploaded.clear();
  l->origins.clear();
  auto a = std::make_shared<ArrayData>();
  a->type = v.array->type;
  auto values = v.array->literal->values.negated();
  if (!values) return fail(std::move(values.error()).at(span));
  l->values = std::move(*values);
  if (is_integer(a->type.dtype)) a->type.dtype = l->values.any_large() ? DType::U64 : DType::I64;
  a->literal = std::move(l);
  return Value::of_array(a);
}

Result<Value> Evaluator::settled(const Value& v, Span span) {
  if (!v.is_literal()) return v;
  GK_TRY(auto a, literal_array(v.array, v.array->type.dtype, false, span));
  return Value::of_array(a);
}

Result<Value> Evaluator::cast_weak(const Value& v, DType t, Span span, const Value* other) {
  if (comes_from_call(v)) {
    GK_CHECK(cast_weak(without_origin(v), t, span, other));  // the error knows what it meets
    return on_host(
        {v}, [t, span](Evaluator& ev, const std::vector<Value>& a) { return ev.cast_weak(a[0], t, span); });
  }
  Value r = v;
  r.weak = r.constant = false;
  Scalar s = v.scalar;
  // What is not known has a kind already, and fits as far as can be told.
  if (!v.known) s = Scalar{s.dtype, 0, 0};
  auto fitted = host_fit(s, t);
  if (!fitted) return fail(fitting_help(std::move(fitted.error()).at(span), v.scalar, t, other));
  r.scalar = *fitted;
  return r;
}

Result<Value> Evaluator::cast(const Value& v, DType t, Span span) {
  if (v.is_unknown()) return v;
  if (comes_from_call(v))
    return on_host({v},
                   [t, span](Evaluator& ev, const std::vector<Value>& a) { return ev.cast(a[0], t, span); });
  if (v.is_scalar()) {
    Value r = v;
    r.weak = r.constant = false;
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
  if (v.is_literal()) {
    GK_TRY(auto a, literal_array(v.array, t, true, span));
    return Value::of_array(a);
  }
  if (v.array->type.dtype == t) {
    if (!v.array->number) return v;
    GK_TRY(auto a, typed_number(v.array, t, span));
    return Value::of_array(a);
  }
  ir::Attrs attrs;
  attrs.dtype = t;
  GK_TRY(auto a, emit(ir::Op::Cast, {v.array}, attrs, span));
  return Value::of_array(a);
}

std::vector<Typed> Evaluator::operands_of(ir::Op op, const std::vector<Value>& args) const {
  std::vector<Typed> out;
  bool all_weak = true, all_numbers = true;
  for (size_t i = op == ir::Op::Where ? 1 : 0; i < args.size(); ++i)
    all_weak = all_weak && dtype_of(args[i])->weak;
  for (const Value& a : args) all_numbers = all_numbers && is_number(a);
  for (const Value& a : args) {
    const Adopting d = *dtype_of(a);
    // A literal meets no dtype in what has none either.
    const bool settles = d.literal && all_weak;
    out.push_back(settles ? Typed{.dtype = alone(a)} : Typed{.dtype = d.dtype, .weak = d.weak});
    if (all_numbers) out.back().weak = true;  // bools too
  }
  return out;
}

Result<void> Evaluator::check_meeting(const Value& a, const Value& b, Span span) {
  const Adopting da = *dtype_of(a), db = *dtype_of(b);
  if (da.weak == db.weak || is_number(a) == is_number(b)) return {};
  const Value& w = da.weak ? a : b;
  const DType t = da.weak ? db.dtype : da.dtype, kind = da.weak ? da.dtype : db.dtype;
  if (!w.is_scalar() || (gk::is_float(kind) && is_integer(t))) return {};
  GK_CHECK(cast_weak(w, t, span, da.weak ? &b : &a));
  return {};
}

Result<Evaluator::Meeting> Evaluator::common_dtype(const Value& a, const Value& b, std::string_view what,
                                                   Span span) {
  const std::string both = fmt::format("cannot {} {} and {}", what, describe(a), describe(b));
  if (!dtype_of(a) || !dtype_of(b)) return fail(ErrorKind::Type, "E0202", both, span);
  GK_CHECK(check_meeting(a, b, span));
  const auto operands = operands_of(ir::Op::Eq, {a, b});
  const auto t = meet(operands[0], operands[1], default_float_);
  if (!t)
    return fail(no_common_dtype(both, is_bool(operands[0].dtype) || is_bool(operands[1].dtype)).at(span));
  return Meeting{*t, operands[0].weak && operands[1].weak};
}

// ---- arrays of them

// An array literal of host numbers, or of literals of one shape.
Result<Value> Evaluator::literal_of(const std::vector<Value>& items, const syntax::Expr& e) {
  auto l = std::make_shared<HostLiteral>();
  auto a = std::make_shared<ArrayData>();
  a->type.dims = {ir::Dim::known(static_cast<int64_t>(items.size()))};
  const bool nested = items[0].is_array();
  if (nested)
    a->type.dims.insert(a->type.dims.end(), items[0].array->type.dims.begin(),
                        items[0].array->type.dims.end());
  if (a->type.dims.size() > kMaxRank)
    return fail(ErrorKind::Shape, "E0306", "the rank would exceed 8", e.span);
  l->shape = a->type.shape();
  l->constant = true;
  for (size_t i = 0; i < items.size(); ++i) {
    const Value& v = items[i];
    const bool same =
        v.is_array() == nested && (!nested || v.array->type.dims.size() + 1 == a->type.dims.size());
    if (!same || (nested && !(v.array->literal->shape == items[0].array->literal->shape)))
      return fail(ErrorKind::Shape, "E0301",
                  fmt::format("cannot stack {} and {}", describe(items[0]), describe(v)),
                  e.elements[i]->span);
    if (nested) {
      const HostLiteral& part = *v.array->literal;
      if (!part.origins.empty()) {
        l->origins.resize(l->values.size());
        l->origins.insert(l->origins.end(), part.origins.begin(), part.origins.end());
      }
      l->values.add(part.values);
      l->known = l->known && part.known;
      l->constant = l->constant && part.constant;
    } else {
      if (v.scalar.origin()) {
        l->origins.resize(l->values.size());
        l->origins.push_back(v.scalar.shared_origin());
      }
      l->values.add(v.scalar.peek());
      l->known = l->known && v.known;
      l->constant = l->constant && v.constant;
    }
  }
  if (!l->origins.empty()) l->origins.resize(l->values.size());
  if (l->values.any_float()) {
    // An integer among floats is rounded twice, here and where it meets a dtype: it is one of its kind.
    for (size_t i = 0; i < l->origins.size(); ++i)
      if (l->origins[i] && !l->values[i].is_float()) std::exchange(l->origins[i], nullptr)->read();
    l->values.to_floats();
    a->type.dtype = default_float_;
  } else {
    const DType whole = l->values.any_large() ? DType::U64 : DType::I64;
    a->type.dtype = is_bool(l->values[0].dtype) ? DType::Bool : whole;
  }
  a->literal = std::move(l);
  return Value::of_array(a);
}

Result<ArrayPtr> Evaluator::as_array(const Value& v, Span span) {
  if (v.is_array() && !v.array->literal && !v.array->number) return v.array;
  if (v.is_array() || v.is_scalar()) return as_array(v, alone(v), span);
  return fail(ErrorKind::Type, "E0202", fmt::format("an array is needed here, not {}", describe(v)), span);
}

Result<ArrayPtr> Evaluator::as_array(const Value& v, DType t, Span span) {
  if (v.is_literal()) return literal_array(v.array, t, false, span);
  if (v.is_array() && v.array->number) return typed_number(v.array, t, span);
  if (v.is_array()) {
    GK_TRY(auto c, cast(v, t, span));
    return c.array;
  }
  if (!v.is_scalar())
    return fail(ErrorKind::Type, "E0202",
                fmt::format("a number or an array is needed here, not {}", describe(v)), span);
  GK_TRY(auto c, v.weak ? cast_weak(v, t, span) : cast(v, t, span));
  ir::Type type;
  type.dtype = t;
  if (!running()) return trace_->pending(type, -1);
  return scalar_array(c.scalar, v.constant, span);
}

/// Code may be made for the value of a constant; any other is a parameter.
Result<ArrayPtr> Evaluator::scalar_array(const HostScalar& s, bool constant, Span span) {
  const bool followed = s.origin() && s.origin()->prologue.get() == following_;
  if (followed && !(constant && following_->reads_constants()))
    return trace_->pending(ir::Type{s.dtype, {}}, trace_->param(s.peek(), span, s.origin()->at));
  if (!constant) return trace_->pending(ir::Type{s.dtype, {}}, trace_->param(s, span));
  ir::Attrs attrs;
  attrs.value = s;
  attrs.dtype = s.dtype;
  return emit(ir::Op::Const, {}, attrs, span);
}

Result<ArrayPtr> Evaluator::literal_array(const ArrayPtr& a, DType t, bool convert, Span span) {
  const HostLiteral& l = *a->literal;
  const ir::Type type{t, a->type.dims};
  // Each value that comes from a call is fitted again at the next; a long literal of them is made for its
  // values.
  const bool of_call = !l.origins.empty() && l.values.size() <= kMostInline;
  if (!of_call)
    for (const auto& o : l.origins)
      if (o) o->read();
  const bool is_long = l.values.size() > kMostInline;
  const bool kept = a->bound && !capturing();  // a parameter's is asked for again
  const auto before = l.uploaded.find(t);
  const bool makes =
      is_long && l.known && running() && !(kept && before != l.uploaded.end() && before->second);
  interp::Array made = interp::Array::zeros(t, makes ? l.shape : Shape{0});
  std::vector<HostScalar> values;
  if (l.known) {
    for (size_t i = 0; i < l.values.size(); ++i) {
      if (i % kPollEvery == 0) GK_CHECK(poll(span));
      const Scalar s = l.values[i];
      if (of_call && l.origins[i]) {
        Value number = Value::host(s);
        number.scalar = HostScalar(s, l.origins[i]);
        GK_TRY(number, convert ? cast(number, t, span) : cast_weak(number, t, span));
        values.push_back(number.scalar);
        continue;
      }
      auto v = convert ? Result<Scalar>(s.cast(t)) : host_fit(s, t);
      if (!v) return fail(fitting_help(std::move(v.error()).at(span), s, t, nullptr));
      if (makes) made.set(static_cast<int64_t>(i), *v);
      if (!is_long) values.push_back(*v);
    }
  }
  if (!running()) return trace_->pending(type, -1);
  if (is_long) {
    if (!kept) return constant_array(made, span);
    auto& known = l.uploaded[t];
    if (!known) {
      GK_TRY(known, constant_array(made, span));
    }
    GK_TRY(auto id, value_of(known, span));
    return trace_->pending(type, id);
  }
  std::vector<ArrayPtr> parts;
  const ir::Type one{t, {ir::Dim::known(1)}};
  for (const HostScalar& s : values) {
    GK_TRY(auto x, scalar_array(s, l.constant, span));
    ir::Attrs attrs;
    attrs.shape = one.shape();
    GK_TRY(x, emit(ir::Op::Reshape, {x}, attrs, span, &one));
    parts.push_back(std::move(x));
  }
  ArrayPtr r = parts[0];
  if (parts.size() > 1) {
    ir::Attrs attrs;
    attrs.axes = {0};
    GK_TRY(r, emit(ir::Op::Concat, parts, attrs, span));
  }
  if (l.shape.rank() == 1) return r;
  ir::Attrs attrs;
  attrs.shape = l.shape;
  return emit(ir::Op::Reshape, {r}, attrs, span, &type);
}

/// The one place where host numbers are computed with.
Result<Value> Evaluator::host_arithmetic(ir::Op op, const std::vector<Value>& args, Span span) {
  std::vector<Scalar> numbers;
  std::vector<DType> kinds;
  bool known = true, constant = true;
  for (const auto& a : args) {
    known = known && a.known;
    constant = constant && (a.constant || is_bool(a.scalar.dtype));
    numbers.push_back(a.scalar);
    kinds.push_back(a.scalar.dtype);
  }
  const DType kind = host_dtype(op, kinds);
  const bool divides = (op == ir::Op::FloorDiv || op == ir::Op::Mod) && kind == DType::I64;
  if (!known && divides && args[1].known && args[1].scalar.i == 0)
    return fail(ErrorKind::Runtime, "E0802", "division by zero", span);
  if (!known) return Value::unknown_host(kind);
  auto r = host_apply(op, numbers);
  if (!r) return fail(std::move(r.error()).at(span));
  return Value::host(*r, constant);
}

}  // namespace gk::sema
