// Expressions: names, literals, operators, conditionals, f-strings, array literals, fields.
#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/operators.h"
#include "compiler/sema/rebound.h"

namespace gk::sema {

using syntax::BinaryOp;
using syntax::BindKind;
using syntax::Expr;
using syntax::ExprKind;

namespace {

std::optional<Value> named_constant(std::string_view n) {
  auto weak = [](double v) { return Value::of_scalar(Scalar{DType::F64, 0, v}, true); };
  if (n == "pi") return weak(std::numbers::pi);
  if (n == "inf") return weak(std::numeric_limits<double>::infinity());
  if (n == "nan") return weak(std::numeric_limits<double>::quiet_NaN());
  if (n == "euler") return weak(std::numbers::e);
  return std::nullopt;
}

}  // namespace

std::shared_ptr<Variable> Evaluator::lookup(std::string_view name, const ScopePtr& scope, Span span,
                                            Error* why) {
  bool beyond_function = false;
  std::vector<std::string_view> candidates;
  for (auto s = scope; s; s = s->parent) {
    if (auto it = s->names.find(name); it != s->names.end()) {
      const auto& v = it->second;
      if (beyond_function && v->kind != BindKind::Const) {
        *why = make_error(ErrorKind::Type, "E0407",
                          fmt::format("`{}` is not visible inside a function", name), span)
                   .label(v->span, "declared here")
                   .note("a function sees its parameters, consts, functions, kernels and types")
                   .help(fmt::format("pass it as a parameter, or declare `const {}`", name));
        return nullptr;
      }
      return v;
    }
    for (const auto& [n, v] : s->names)
      if (!beyond_function || v->kind == BindKind::Const) candidates.push_back(n);
    if (s->function_boundary) beyond_function = true;
  }
  Error e = make_error(ErrorKind::Type, "E0401", fmt::format("unknown name `{}`", name), span);
  for (const auto* b : all_builtins()) candidates.push_back(b->name);
  std::string_view best;
  size_t best_distance = name.size() / 3 + 1;
  for (auto c : candidates)
    if (size_t d = edit_distance(name, c); d < best_distance || (d == best_distance && best.empty())) {
      best = c;
      best_distance = d;
    }
  if (!best.empty()) e = std::move(e).help(fmt::format("did you mean `{}`?", best));
  *why = std::move(e);
  return nullptr;
}

Result<Value> Evaluator::eval_name(const Expr& e, const ScopePtr& scope) {
  Error why;
  if (auto v = lookup(e.text, scope, e.span, &why)) {
    return v->get();
  }
  if (why.code == "E0407") return fail(std::move(why));
  if (auto t = parse_dtype(e.text)) {
    Value v;
    v.kind = VKind::Type;
    v.dtype = *t;
    return v;
  }
  if (auto c = named_constant(e.text)) return *c;
  if (e.text == "args") {
    Value v;
    v.kind = VKind::Strings;
    v.strings = std::make_shared<std::vector<std::string>>(options_.args);
    return v;
  }
  if (find_builtin(e.text)) {
    Value v;
    v.kind = VKind::Builtin;
    v.text = e.text;
    return v;
  }
  return fail(std::move(why));
}

Result<int64_t> Evaluator::eval_host_int(const Expr& e, const ScopePtr& scope, const char* what) {
  GK_TRY(auto v, eval(e, scope));
  if (v.is_unknown()) return -1;
  if (v.is_array() && v.array->loop_index) roll_failed_ = true;
  if (!v.is_scalar() || !is_integer(v.scalar.dtype))
    return fail(ErrorKind::Type, "E0212", fmt::format("{} is a host integer, not {}", what, describe(v)),
                e.span);
  if (!v.known) return -1;
  if (v.scalar.i < 0)
    return fail(ErrorKind::Shape, "E0303", fmt::format("{} cannot be negative: {}", what, v.scalar.i),
                e.span);
  return v.scalar.i;
}

Result<Value> Evaluator::eval(const Expr& e, const ScopePtr& scope) {
  GK_CHECK(check_stack(e.span));
  switch (e.kind) {
    case ExprKind::Int: {
      Value v = Value::of_scalar(Scalar{DType::I64, static_cast<int64_t>(e.uint_value), 0}, true);
      if (!e.suffix.empty()) {
        auto t = parse_dtype(e.suffix);
        if (!t) return fail(ErrorKind::Syntax, "E0104", fmt::format("`{}` is not a dtype", e.suffix), e.span);
        if (e.uint_value > INT64_MAX) {
          if (*t != DType::U64)
            return fail(ErrorKind::Type, "E0203", fmt::format("{} does not fit in {}", e.text, e.suffix),
                        e.span);
          return Value::of_scalar(Scalar{DType::U64, static_cast<int64_t>(e.uint_value), 0});
        }
        return cast_weak(v, *t, e.span);
      }
      if (e.uint_value > INT64_MAX)
        return Value::of_scalar(Scalar{DType::U64, static_cast<int64_t>(e.uint_value), 0});
      return v;
    }
    case ExprKind::Float: {
      Value v = Value::of_scalar(Scalar{DType::F64, 0, e.float_value}, true);
      if (e.suffix.empty()) return v;
      auto t = parse_dtype(e.suffix);
      if (!t) return fail(ErrorKind::Syntax, "E0104", fmt::format("`{}` is not a dtype", e.suffix), e.span);
      return cast_weak(v, *t, e.span);
    }
    case ExprKind::Bool: return Value::of_scalar(Scalar::of_bool(e.bool_value));
    case ExprKind::String: return Value::of_string(e.text);
    case ExprKind::FString: return eval_fstring(e, scope);
    case ExprKind::Name: return eval_name(e, scope);
    case ExprKind::Wildcard:
      return fail(ErrorKind::Syntax, "E0103", "`_` stands for an extent or a name not used, not for a value",
                  e.span);
    case ExprKind::Unary: {
      // The least i64 is written as the negation of a number that is none.
      if (e.unary == syntax::UnaryOp::Neg && e.lhs->kind == ExprKind::Int && e.lhs->suffix.empty() &&
          e.lhs->uint_value == uint64_t{1} << 63)
        return Value::of_scalar(Scalar{DType::I64, INT64_MIN, 0}, true);
      GK_TRY(auto v, eval(*e.lhs, scope));
      return unary(e.unary, v, e.span);
    }
    case ExprKind::Binary: {
      if (e.binary == BinaryOp::And || e.binary == BinaryOp::Or) {
        auto check = [&](const Value& v, const Expr& at) -> Result<void> {
          bool ok = v.is_unknown() || (v.is_scalar() && is_bool(v.scalar.dtype)) ||
                    (v.is_array() && v.array->type.rank() == 0 && is_bool(v.array->type.dtype));
          if (ok) return {};
          return fail(
              make_error(ErrorKind::Type, "E0208",
                         fmt::format("`{}` takes scalar bools, not {}", spelling(e.binary), describe(v)),
                         at.span)
                  .help(fmt::format("for arrays use `{}`", e.binary == BinaryOp::And ? "&" : "|")));
        };
        GK_TRY(auto a, eval(*e.lhs, scope));
        GK_CHECK(check(a, *e.lhs));
        if (a.is_scalar() && a.known && (a.scalar.i != 0) == (e.binary == BinaryOp::Or)) return a;
        GK_TRY(auto b, eval(*e.rhs, scope));
        GK_CHECK(check(b, *e.rhs));
        if (a.is_unknown() || b.is_unknown()) return Value::unknown();
        return elementwise(e.binary == BinaryOp::And ? ir::Op::And : ir::Op::Or, {a, b}, e.op_span);
      }
      // Long chains lean to the left: walk them without recursion.
      std::vector<const Expr*> chain;
      const Expr* at = &e;
      while (at->kind == ExprKind::Binary && at->binary != BinaryOp::And && at->binary != BinaryOp::Or) {
        chain.push_back(at);
        at = at->lhs.get();
      }
      GK_TRY(auto v, eval(*at, scope));
      for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
        const Expr& x = **it;
        if (writes(*x.rhs)) v = hold(v);
        GK_TRY(auto r, eval(*x.rhs, scope));
        if (x.binary == BinaryOp::Approx) {
          GK_TRY(v, eval_approx(v, r, x, 1e-5, 1e-8));
        } else {
          GK_TRY(v, binary(x.binary, v, r, &x, x.op_span.valid() ? x.op_span : x.span));
        }
      }
      return v;
    }
    case ExprKind::Call: return eval_call(e, scope);
    case ExprKind::IndexOp: return eval_index(e, scope);
    case ExprKind::Field: return eval_field(e, scope);
    case ExprKind::Lambda: {
      Value v;
      v.kind = VKind::Function;
      v.callable = std::make_shared<Callable>();
      v.callable->lambda = &e;
      v.callable->scope = scope;
      remember(scope);
      return v;
    }
    case ExprKind::If: return eval_if(e, scope);
    case ExprKind::BlockExpr: {
      Value v = Value::none();
      GK_TRY(auto flow, exec_block(*e.body, scope, &v));
      if (flow != Flow::Next)
        return fail(ErrorKind::Type, "E0409", "`break`, `continue` and `return` cannot leave an expression",
                    e.span);
      return v;
    }
    case ExprKind::Capture: return eval_capture(e, scope);
    case ExprKind::Launch: return eval_launch(e, scope);
    case ExprKind::ArrayLit: return eval_array_literal(e, scope);
    case ExprKind::TupleLit: {
      Value v;
      v.kind = VKind::Tuple;
      v.items = std::make_shared<Aggregate>();
      for (const auto& x : e.elements) {
        GK_TRY(auto item, eval(*x, scope));
        v.items->items.push_back(strengthen(item));
      }
      return v;
    }
    case ExprKind::Range: {
      Value v;
      v.kind = VKind::Range;
      v.items = std::make_shared<Aggregate>();
      for (const auto* side : {&e.lhs, &e.rhs}) {
        GK_TRY(auto x, eval(**side, scope));
        if (x.is_array() && x.array->loop_index) roll_failed_ = true;
        if (!x.is_unknown() && (!x.is_scalar() || !is_integer(x.scalar.dtype)))
          return fail(make_error(ErrorKind::Type, "E0212",
                                 fmt::format("the {} of a range is a host integer, not {}",
                                             side == &e.lhs ? "start" : "end", describe(x)),
                                 (*side)->span)
                          .help("`item(…)` reads a device scalar back"));
        v.items->items.push_back(x);
      }
      return v;
    }
    case ExprKind::Type: {
      Value v;
      v.kind = VKind::Type;
      v.type_syntax = std::shared_ptr<const syntax::TypeExpr>(e.type.get(), [](const syntax::TypeExpr*) {});
      return v;
    }
  }
  return fail(ErrorKind::Internal, "E0901", "an expression of no kind", e.span);
}

Result<Value> Evaluator::eval_if(const Expr& e, const ScopePtr& scope) {
  GK_TRY(auto c, eval(*e.lhs, scope));
  bool ok = c.is_unknown() || (c.is_scalar() && is_bool(c.scalar.dtype)) ||
            (c.is_array() && c.array->type.rank() == 0 && is_bool(c.array->type.dtype));
  if (!ok)
    return fail(make_error(ErrorKind::Type, "E0208",
                           fmt::format("a condition is a scalar bool, not {}", describe(c)), e.lhs->span)
                    .help("for elementwise choice use `where(c, a, b)`"));
  auto run = [&](const std::unique_ptr<syntax::Block>& b, const syntax::ExprPtr& nested) -> Result<Value> {
    Value v = Value::none();
    if (b) {
      GK_TRY(auto flow, exec_block(*b, scope, &v));
      if (flow != Flow::Next)
        return fail(ErrorKind::Type, "E0409", "`break`, `continue` and `return` cannot leave an expression",
                    e.span);
    } else if (nested) {
      return eval(*nested, scope);
    }
    return v;
  };
  if (c.is_array() && capturing()) {
    Branches b;
    b.span = e.span;
    b.must_agree = true;
    rebound_outside(e, b.rebound);
    b.arms[0] = [&](Value* v) -> Result<void> {
      GK_TRY(*v, run(e.body, nullptr));
      return {};
    };
    b.arms[1] = [&](Value* v) -> Result<void> {
      GK_TRY(*v, run(e.else_body, e.else_if));
      return {};
    };
    return branch(c.array, b, scope, true);
  }
  // A literal that a device value chooses is no literal any more, in a graph and outside.
  const bool of_device = c.is_array();
  if (of_device && running()) {
    GK_CHECK(refuse_in_capture("reading a condition back", e.lhs->span));
    GK_TRY(auto b, item(c, e.lhs->span));
    c = Value::of_scalar(b);
  }
  if (c.is_scalar() && c.known) {
    GK_TRY(auto v, c.scalar.i ? run(e.body, nullptr) : run(e.else_body, e.else_if));
    return of_device ? strengthen(v) : v;
  }
  GK_TRY(auto a, run(e.body, nullptr));
  GK_TRY(auto b, run(e.else_body, e.else_if));
  if (a.is_unknown() || b.is_unknown()) return Value::unknown();
  return of_device ? join(strengthen(a), strengthen(b)) : join(a, b);
}

Result<Value> Evaluator::eval_field(const Expr& e, const ScopePtr& scope) {
  GK_TRY(auto base, eval(*e.lhs, scope));
  if (base.is_unknown()) return base;
  if (base.kind == VKind::Record) {
    auto& names = base.items->names;
    auto it = std::find(names.begin(), names.end(), e.field);
    if (it != names.end()) return base.items->items[static_cast<size_t>(it - names.begin())];
    return fail(make_error(ErrorKind::Type, "E0209",
                           fmt::format("{} has no field `{}`", describe(base), e.field), e.field_span)
                    .note(fmt::format("its fields are {}", fmt::join(names, ", "))));
  }
  if (base.kind == VKind::Module) {
    if (auto it = base.module->names.find(e.field); it != base.module->names.end()) return it->second->get();
    return fail(ErrorKind::Type, "E0401", fmt::format("the module has no name `{}`", e.field), e.field_span);
  }
  if (base.kind == VKind::Graph || base.kind == VKind::Exec) {
    for (size_t i = 0; i < base.graph->nodes.size(); ++i)
      if (base.graph->nodes[i].name == e.field) {
        Value v = base;
        v.kind = VKind::NodeRef;
        v.of_exec = base.kind == VKind::Exec;
        v.node = static_cast<int>(i);
        return v;
      }
    return fail(ErrorKind::Type, "E0704", fmt::format("{} has no node `{}`", describe(base), e.field),
                e.field_span);
  }
  if (base.is_array() && e.field == "T") {
    ir::Attrs attrs;
    for (int i = base.array->type.rank(); i-- > 0;) attrs.axes.push_back(i);
    if (attrs.axes.size() < 2) return base;
    GK_TRY(auto r, emit(ir::Op::Transpose, {base.array}, attrs, e.span));
    return Value::of_array(r);
  }
  return fail(ErrorKind::Type, "E0209", fmt::format("{} has no field `{}`", describe(base), e.field),
              e.field_span);
}

Result<Value> Evaluator::eval_fstring(const Expr& e, const ScopePtr& scope) {
  std::string out;
  for (size_t i = 0; i < e.parts.size(); ++i) {
    out += e.parts[i];
    if (i >= e.elements.size()) break;
    GK_TRY(auto v, eval(*e.elements[i], scope));
    const std::string& spec = e.formats[i];
    Span at = e.elements[i]->span;
    if (v.is_unknown() || !running()) continue;
    if (v.is_array() && v.array->type.rank() == 0) {
      GK_CHECK(refuse_in_capture("reading a value back", at));
      GK_TRY(auto s, item(v, at));
      v = Value::of_scalar(s);
    }
    Result<std::string> text = std::string{};
    if (v.is_scalar()) {
      Scalar s = strengthen(v).scalar;
      text = spec.empty() ? effects_->format(s) : effects_->format(s, spec);
    } else if (v.kind == VKind::String) {
      text = spec.empty() ? v.text : effects_->format(v.text, spec);
    } else if (v.is_array()) {
      if (!spec.empty())
        return fail(ErrorKind::Type, "E0210", "a format is for numbers and strings, not for arrays", at);
      GK_CHECK(refuse_in_capture("reading a value back", at));
      GK_TRY(auto a, download(v, at));
      text = effects_->format(a);
    } else {
      text = describe(v);
    }
    if (!text) return fail(std::move(text.error()).at(at));
    out += *text;
  }
  return Value::of_string(out);
}

// A long literal of plain numbers, as if its elements were evaluated one by one.
static Result<Value> number_array(Evaluator& ev, const syntax::NumberArray& n, std::optional<DType> wanted,
                                  Span span) {
  const auto is_float = [](const auto& x) { return x.is_float; };
  const bool floats = std::any_of(n.numbers.begin(), n.numbers.end(), is_float);
  const bool large = std::any_of(n.numbers.begin(), n.numbers.end(), [](const auto& x) {
    return !x.is_float && x.integer > static_cast<uint64_t>(INT64_MAX) && !x.negative;
  });
  const DType t = wanted.value_or(floats ? ev.default_float() : large ? DType::U64 : DType::I64);
  Shape shape;
  for (int64_t d : n.shape) shape.push_back(d);
  const ir::Type type = ir::Type::of(t, shape);
  if (wanted && floats && !gk::is_float(t)) {
    GK_CHECK(ev.cast_weak(Value::unknown_scalar(DType::F64, true), t, span));
  }
  if (!ev.running()) return Value::of_array(ev.trace().pending(type, -1));
  interp::Array a = interp::Array::zeros(t, shape);
  for (size_t i = 0; i < n.numbers.size(); ++i) {
    const auto& x = n.numbers[i];
    const auto whole = static_cast<int64_t>(x.negative ? 0 - x.integer : x.integer);
    const Scalar s = x.is_float ? Scalar{DType::F64, 0, x.negative ? -x.real : x.real}
                                : Scalar{whole < 0 && !x.negative ? DType::U64 : DType::I64, whole, 0};
    a.set(static_cast<int64_t>(i), s.cast(t));
  }
  GK_TRY(auto r, ev.constant_array(a, span));
  return Value::of_array(r);
}

Result<Value> Evaluator::eval_array_literal(const Expr& e, const ScopePtr& scope) {
  if (e.numbers) return number_array(*this, *e.numbers, std::exchange(literal_dtype_, std::nullopt), e.span);
  if (e.elements.empty())
    return fail(make_error(ErrorKind::Type, "E0211", "an empty array literal has no dtype", e.span)
                    .help("use `zeros(f32[0])`"));
  std::vector<Value> items;
  auto wanted = std::exchange(literal_dtype_, std::nullopt);
  for (const auto& x : e.elements) {
    if (x->kind == ExprKind::ArrayLit) literal_dtype_ = wanted;
    GK_TRY(auto v, eval(*x, scope));
    literal_dtype_ = std::nullopt;
    if (v.is_unknown()) return v;
    if (!v.is_scalar() && !v.is_array())
      return fail(ErrorKind::Type, "E0202", fmt::format("an array holds numbers, not {}", describe(v)),
                  x->span);
    items.push_back(std::move(v));
  }
  // The dtype all elements meet in; weak ones adapt.
  Value common = items[0];
  for (size_t i = 1; i < items.size(); ++i) {
    auto t = common_dtype(common, items[i], "stack", e.elements[i]->span);
    if (!t) return fail(std::move(t.error()));
    bool weak = common.is_scalar() && common.weak && items[i].is_scalar() && items[i].weak;
    common = Value::unknown_scalar(*t, weak);
  }
  DType t = common.is_array() ? common.array->type.dtype : strengthen(common).scalar.dtype;
  if (wanted && common.is_scalar() && common.weak) {
    GK_CHECK(cast_weak(common, *wanted, e.span));
    t = *wanted;
  }
  bool all_known = true;
  for (const auto& v : items) all_known = all_known && v.is_scalar();
  if (all_known) {
    ir::Type type{t, {ir::Dim::known(static_cast<int64_t>(items.size()))}};
    if (!running()) return Value::of_array(trace_->pending(type, -1));
    if (items.size() > 8) {
      interp::Array a = interp::Array::zeros(t, type.shape());
      for (size_t i = 0; i < items.size(); ++i) a.set(static_cast<int64_t>(i), items[i].scalar.cast(t));
      GK_TRY(auto r, constant_array(a, e.span));
      return Value::of_array(r);
    }
  }
  ArrayPtr first;
  std::vector<ArrayPtr> parts;
  for (size_t i = 0; i < items.size(); ++i) {
    GK_TRY(auto a, as_array(items[i], t, e.elements[i]->span));
    if (first) {
      bool same = a->type.rank() == first->type.rank();
      for (size_t k = 0; same && k < a->type.dims.size(); ++k)
        same = ir::equal(a->type.dims[k], first->type.dims[k]) != ir::Tri::No;
      if (!same)
        return fail(ErrorKind::Shape, "E0301",
                    fmt::format("cannot stack {} and {}", ir::to_string(first->type), ir::to_string(a->type)),
                    e.elements[i]->span);
    } else {
      first = a;
    }
    ir::Type row{t, a->type.dims};
    row.dims.insert(row.dims.begin(), ir::Dim::known(1));
    if (row.rank() > kMaxRank) return fail(ErrorKind::Shape, "E0306", "the rank would exceed 8", e.span);
    ir::Attrs attrs;
    if (running()) attrs.shape = row.shape();
    GK_TRY(auto r, emit(ir::Op::Reshape, {a}, attrs, e.span, &row));
    parts.push_back(std::move(r));
  }
  if (parts.size() == 1) return Value::of_array(parts[0]);
  ir::Attrs attrs;
  attrs.axes = {0};
  GK_TRY(auto r, emit(ir::Op::Concat, parts, attrs, e.span));
  return Value::of_array(r);
}

Result<ArrayPtr> Evaluator::constant_array(const interp::Array& a, Span span) {
  auto data = std::make_shared<ArrayData>();
  data->type = ir::Type::of(a.dtype, a.shape);
  if (!running()) return trace_->pending(data->type, -1);
  data->storage = std::make_shared<Storage>();
  data->storage->type = data->type;
  data->storage->owner = data.get();
  if (auto r = effects_->allocate(*data->storage); !r) return fail(std::move(r.error()).at(span));
  if (auto r = effects_->upload(*data->storage, a); !r) return fail(std::move(r.error()).at(span));
  if (!capturing()) return data;
  // What is written to a name of it must not reach the constant, which every launch reads.
  GK_TRY(auto value, value_of(data, span));
  return trace_->pending(data->type, value);
}

}  // namespace gk::sema
