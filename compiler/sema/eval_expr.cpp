// Expressions: names, literals, operators, conditionals, f-strings, array literals, fields.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/sema/body.h"
#include "compiler/sema/habits.h"
#include "compiler/sema/host_number.h"
#include "compiler/sema/numbers.h"
#include "compiler/sema/operators.h"
#include "compiler/sema/rebound.h"

namespace gk::sema {

using syntax::BinaryOp;
using syntax::BindKind;
using syntax::Expr;
using syntax::ExprKind;

Result<int64_t> Evaluator::eval_host_int(const Expr& e, const ScopePtr& scope, const char* what) {
  GK_TRY(auto v, eval(e, scope));
  if (v.is_unknown()) return -1;
  if (v.is_array() && v.array->loop_index) needs_host_ = true;
  if (!v.is_scalar() || !is_integer(v.scalar.dtype)) return fail(not_on_host(v, e, what));
  if (!v.known) return -1;
  GK_TRY(auto i, small_integer(v, what, e.span));
  if (i < 0)
    return fail(ErrorKind::Shape, "E0303", fmt::format("{} cannot be negative: {}", what, i), e.span);
  return i;
}

Result<Value> Evaluator::eval(const Expr& e, const ScopePtr& scope) {
  GK_CHECK(check_stack(e.span));
  switch (e.kind) {
    case ExprKind::Int: {
      Value v = Value::host(Scalar{DType::U64, static_cast<int64_t>(e.uint_value), 0}, true);
      if (e.suffix.empty()) return v;
      auto t = parse_dtype(e.suffix);
      if (!t) return fail(ErrorKind::Syntax, "E0104", fmt::format("`{}` is not a dtype", e.suffix), e.span);
      return cast_weak(v, *t, e.span);
    }
    case ExprKind::Float: {
      Value v = Value::host(Scalar{DType::F64, 0, e.float_value}, true);
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
      GK_TRY(auto v, eval(*e.lhs, scope));
      auto r = unary(e.unary, v, e.span);
      if (!r && r.error().code == "E0208") {
        const std::string operand = as_operand(written(e.lhs->span));
        const bool mask = v.is_array() && is_bool(v.array->type.dtype);
        const auto test = compared(v, written(e.lhs->span), "==");
        r.error().helps.clear();
        if (mask)
          r.error().helps = {fmt::format("for arrays write `~{}`", operand)};
        else if (test)
          r.error().helps = {*test};
      }
      return r;
    }
    case ExprKind::Binary: {
      if (e.binary == BinaryOp::And || e.binary == BinaryOp::Or) {
        auto check = [&](const Value& v, const Expr& at) -> Result<void> {
          bool ok = v.is_unknown() || (v.is_scalar() && is_bool(v.scalar.dtype)) ||
                    (v.is_array() && v.array->type.rank() == 0 && is_bool(v.array->type.dtype));
          if (ok) return {};
          Error error = make_error(
              ErrorKind::Type, "E0208",
              fmt::format("`{}` takes scalar bools, not {}", spelling(e.binary), describe(v)), at.span);
          if (v.is_array() && is_bool(v.array->type.dtype))
            return fail(std::move(error).help(
                fmt::format("for arrays write `{} {} {}`", as_operand(written(e.lhs->span)),
                            e.binary == BinaryOp::And ? "&" : "|", as_operand(written(e.rhs->span)))));
          if (const auto test = compared(v, written(at.span), "!=")) error.helps = {*test};
          return fail(std::move(error));
        };
        GK_TRY(auto a, eval(*e.lhs, scope));
        GK_CHECK(check(a, *e.lhs));
        if (a.is_scalar() && a.known && (a.scalar.i != 0) == (e.binary == BinaryOp::Or)) return a;
        if (may_write(*e.rhs, scope)) {
          GK_TRY(a, hold(a, e.lhs->span));
        }
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
        if (may_write(*x.rhs, scope)) {
          GK_TRY(v, hold(v, x.span));
        }
        auto right = eval(*x.rhs, scope);
        if (!right) {
          // `x = 3 // note`
          Error& e = right.error();
          if (x.binary == BinaryOp::FloorDiv && x.rhs->kind == ExprKind::Name && e.code == "E0401" &&
              e.helps.empty())
            e.helps = {"a comment starts with `#`"};
          return fail(bound_tightly(std::move(e), x, *x.rhs));
        }
        const Value r = std::move(*right);
        if (x.binary == BinaryOp::BitXor) warn_of_power(x);
        if (x.binary == BinaryOp::Approx) {
          GK_TRY(v, eval_approx(v, r, x, 1e-5, 1e-8));
        } else {
          auto both = binary(x.binary, v, r, &x, x.op_span.valid() ? x.op_span : x.span);
          const Expr* around = it + 1 == chain.rend() ? nullptr : *(it + 1);
          if (!both)
            return fail(around ? bound_tightly(std::move(both.error()), *around, x)
                               : std::move(both.error()));
          v = std::move(*both);
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
        GK_TRY(auto item, eval_after(v.items->items, *x, scope));
        GK_TRY(item, settled(item, x->span));
        v.items->items.push_back(std::move(item));
      }
      return v;
    }
    case ExprKind::Range: {
      Value v;
      v.kind = VKind::Range;
      v.items = std::make_shared<Aggregate>();
      for (const auto* side : {&e.lhs, &e.rhs}) {
        GK_TRY(auto x, eval(**side, scope));
        if (x.is_array() && x.array->loop_index) needs_host_ = true;
        if (!x.is_unknown() && (!x.is_scalar() || !is_integer(x.scalar.dtype)))
          return fail(not_on_host(x, **side, side == &e.lhs ? "the start of a range" : "the end of a range"));
        if (!x.is_unknown()) GK_CHECK(small_integer(x, "the end of a range", (*side)->span));
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

Result<Value> Evaluator::eval_after(std::vector<Value>& before, const Expr& e, const ScopePtr& scope) {
  if (!before.empty() && may_write(e, scope))
    for (Value& v : before) {
      GK_TRY(v, hold(v, e.span));
    }
  return eval(e, scope);
}

Result<Value> Evaluator::eval_if(const Expr& e, const ScopePtr& scope) {
  GK_TRY(auto c, eval(*e.lhs, scope));
  bool ok = c.is_unknown() || (c.is_scalar() && is_bool(c.scalar.dtype)) ||
            (c.is_array() && c.array->type.rank() == 0 && is_bool(c.array->type.dtype));
  if (!ok) {
    Error error = not_a_condition(c, *e.lhs, "a condition is");
    if (c.is_array()) error = std::move(error).help("for a choice element by element, `where(c, a, b)`");
    return fail(std::move(error));
  }
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
  HeldNumbers held;
  if (c.is_array() && rolling_ == 0) {
    std::set<std::string> names;
    rebound_outside(e, names);
    const auto arm = [this](const syntax::Block* b, const Expr* nested) {
      return [this, b, nested](const ScopePtr& in) -> Result<void> {
        Value unused = Value::none();
        if (b) {
          GK_CHECK(exec_block(*b, in, &unused));
        } else if (nested) {
          GK_CHECK(eval(*nested, in));
        }
        return {};
      };
    };
    const Arms arms{arm(e.body.get(), nullptr), arm(e.else_body.get(), e.else_if.get())};
    GK_TRY(held, hold_numbers(names, scope, arms, &e, e.span));
  }
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
    return of_device ? settled(strengthen(v), e.span) : v;
  }
  GK_TRY(auto a, run(e.body, nullptr));
  GK_TRY(auto b, run(e.else_body, e.else_if));
  if (a.is_unknown() || b.is_unknown()) return Value::unknown();
  GK_TRY(a, settled(a, e.span));
  GK_TRY(b, settled(b, e.span));
  return of_device ? join(strengthen(a), strengthen(b)) : join(a, b);
}

Result<Value> Evaluator::eval_field(const Expr& e, const ScopePtr& scope) {
  auto evaluated = eval(*e.lhs, scope);
  if (!evaluated) return fail(unknown_member(std::move(evaluated.error()), e, nullptr));
  const Value base = std::move(*evaluated);
  if (base.is_unknown()) return base;
  if (base.kind == VKind::Record) {
    auto& names = base.items->names;
    auto it = std::find(names.begin(), names.end(), e.field);
    if (it != names.end()) return base.items->items[static_cast<size_t>(it - names.begin())];
    if (const Error* why = unreadable_field(base, e.field)) return fail(Error(*why).at(e.field_span));
    return fail(unknown_field(base, e, scope));
  }
  if (base.kind == VKind::Module) {
    if (auto it = base.module->names.find(e.field); it != base.module->names.end()) return it->second->get();
    return fail(unknown_member(std::nullopt, e, base.module.get()));
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
  return fail(unknown_field(base, e, scope));
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
      text = spec.empty() ? effects_->format(v.scalar) : effects_->format(v.scalar, spec);
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

// A long literal of plain numbers: what literal_of() makes of its elements.
static Value number_array(const std::shared_ptr<const syntax::NumberArray>& n, DType default_float) {
  auto l = std::make_shared<HostLiteral>();
  for (const int64_t d : n->shape) l->shape.push_back(d);
  l->constant = true;
  l->values = LiteralValues(n);
  auto a = std::make_shared<ArrayData>();
  const DType whole = l->values.any_large() ? DType::U64 : DType::I64;
  a->type = ir::Type::of(l->values.any_float() ? default_float : whole, l->shape);
  a->literal = std::move(l);
  return Value::of_array(a);
}

Result<Value> Evaluator::eval_array_literal(const Expr& e, const ScopePtr& scope) {
  if (e.numbers) {
    GK_CHECK(poll(e.span));
    return number_array(e.numbers, default_float_);
  }
  if (e.elements.empty())
    return fail(make_error(ErrorKind::Type, "E0211", "an empty array literal has no dtype", e.span)
                    .help("use `zeros(f32[0])`"));
  std::vector<Value> items;
  for (const auto& x : e.elements) {
    GK_TRY(auto v, eval_after(items, *x, scope));
    if (v.is_unknown()) return v;
    if (!v.is_scalar() && !v.is_array())
      return fail(ErrorKind::Type, "E0202", fmt::format("an array holds numbers, not {}", describe(v)),
                  x->span);
    items.push_back(std::move(v));
  }
  // The dtype all elements meet in; numbers without one adapt, and alone make an array without one.
  Value common = items[0];
  bool adopts = is_number(common) || common.is_literal();
  for (size_t i = 1; i < items.size(); ++i) {
    const bool adopts_too = is_number(items[i]) || items[i].is_literal();
    GK_TRY(auto met, common_dtype(common, items[i], "stack", e.elements[i]->span));
    adopts = adopts && adopts_too;
    common = adopts ? Value::unknown_host(is_bool(met.dtype)        ? DType::Bool
                                          : gk::is_float(met.dtype) ? DType::F64
                                                                    : DType::I64)
                    : Value::unknown_scalar(met.dtype);
  }
  const bool on_host =
      std::all_of(items.begin(), items.end(), [](const Value& v) { return v.is_scalar() || v.is_literal(); });
  if (adopts && on_host) return literal_of(items, e);
  const DType t = alone(common);
  if (running() && items.size() > 8 &&
      std::all_of(items.begin(), items.end(), [](const Value& v) { return v.is_scalar(); })) {
    interp::Array a = interp::Array::zeros(t, Shape{static_cast<int64_t>(items.size())});
    for (size_t i = 0; i < items.size(); ++i) {
      Value x = items[i];
      if (x.weak) {
        GK_TRY(x, cast_weak(x, t, e.elements[i]->span));
      }
      a.set(static_cast<int64_t>(i), x.scalar.cast(t));
    }
    GK_TRY(auto r, constant_array(a, e.span));
    return Value::of_array(r);
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
