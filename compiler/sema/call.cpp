// Calls: functions, lambdas, records, casts, kernels; matching arguments to parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/sema/builtins.h"
#include "compiler/sema/checked_calls.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/guards.h"
#include "compiler/sema/habits.h"
#include "compiler/sema/host_number.h"
#include "compiler/sema/shared_calls.h"

namespace gk::sema {

using syntax::BindKind;
using syntax::Expr;
using syntax::ExprKind;

namespace {

// Whether argument number `at` of a builtin is a list of arrays or of extents rather than an array.
bool takes_list(std::string_view builtin, size_t at) {
  if (builtin == "concat" || builtin == "stack") return at == 0;
  return at > 0 && (builtin == "reshape" || builtin == "broadcast_to" || builtin == "transpose");
}

}  // namespace

Result<Value> Evaluator::eval_call(const Expr& e, const ScopePtr& scope) {
  auto callee = e.lhs->kind == ExprKind::Name ? eval_name(*e.lhs, scope, Meant::Call) : eval(*e.lhs, scope);
  if (!callee) return fail(unknown_callee(std::move(callee.error()), e, scope));
  const Value f = std::move(*callee);
  GK_TRY(auto call, eval_arguments(e, f, scope));
  return call_value(f, call, scope);
}

Result<Call> Evaluator::eval_arguments(const Expr& e, const Value& f, const ScopePtr& scope) {
  Call call;
  call.span = e.span;
  call.callee = e.lhs->kind == ExprKind::Name ? e.lhs->text : "this";
  call.callee_span = e.lhs->span;
  for (const auto& a : e.args) {
    CallArg arg;
    arg.name = a.name;
    arg.span = a.value->span;
    arg.is_mut = a.is_mut;
    if (!call.args.empty() && may_write(*a.value, scope))
      for (auto& earlier : call.args) {
        if (earlier.is_mut) continue;
        if (!earlier.given) earlier.given = std::make_shared<const Value>(earlier.value);
        GK_TRY(earlier.value, hold(earlier.value, earlier.span));
      }
    if (a.is_mut) {
      GK_TRY(auto target, find_place(*a.value, scope));
      GK_TRY(arg.place, mut_argument(*a.value, target));
      arg.within = std::move(target.within);
      arg.value = *arg.place;
    } else if (a.value->kind == ExprKind::ArrayLit && f.kind == VKind::Builtin &&
               takes_list(f.text, call.args.size())) {
      // `concat([a, b])`: a list of arrays of any shapes, and extents that stay on the host.
      arg.value.kind = VKind::List;
      arg.value.items = std::make_shared<Aggregate>();
      for (const auto& x : a.value->elements) {
        GK_TRY(auto item, eval_after(arg.value.items->items, *x, scope));
        arg.value.items->items.push_back(std::move(item));
      }
    } else {
      GK_TRY(arg.value, eval(*a.value, scope));
    }
    if (arg.value.kind == VKind::None)
      return fail(ErrorKind::Type, "E0202", "this argument gives no value", arg.span);
    call.args.push_back(std::move(arg));
  }
  return call;
}

Result<Value> Evaluator::call_value(const Value& f, Call& call, const ScopePtr& scope) {
  switch (f.kind) {
    case VKind::Unknown: return Value::unknown();
    case VKind::Builtin: call.builtin = find_builtin(f.text); return call.builtin->call(*this, call);
    case VKind::Function:
      if (f.callable->lambda) {
        std::vector<Value> args;
        for (auto& a : call.args) args.push_back(a.value);
        return call_lambda(f, std::move(args), call.span);
      }
      return call_fn(*f.callable, call);
    case VKind::Kernel: return launch_kernel(*f.callable, call, 0);
    case VKind::Type: return call_type(f, call, scope);
    default: {
      Error e =
          make_error(ErrorKind::Type, "E0207", fmt::format("{} cannot be called", describe(f)), call.span);
      std::string args;
      for (const auto& a : call.args) args += (args.empty() ? "" : ", ") + written(a.span);
      const std::string text = as_operand(written(call.callee_span));
      if (f.is_scalar())
        return fail(std::move(e).help(fmt::format("for a product write `{} * ({})`", text, args)));
      if ((f.is_array() || f.is_aggregate() || f.kind == VKind::Strings) && !args.empty())
        return fail(std::move(e).help(fmt::format("an index is in square brackets: `{}[{}]`", text, args)));
      return fail(std::move(e));
    }
  }
}

Result<Value> Evaluator::call_lambda(const Value& f, std::vector<Value> args, Span span) {
  GK_CHECK(poll(span));
  if (f.kind == VKind::Unknown) return f;
  if (f.kind != VKind::Function) {
    Call call;
    call.span = span;
    for (auto& a : args) {
      CallArg arg;
      arg.value = std::move(a);
      arg.span = span;
      call.args.push_back(std::move(arg));
    }
    return call_value(f, call, root_);
  }
  if (!f.callable->lambda) {
    Call call;
    call.span = span;
    call.callee = f.callable->fn->name;
    for (auto& a : args) {
      CallArg arg;
      arg.value = std::move(a);
      arg.span = span;
      call.args.push_back(std::move(arg));
    }
    return call_fn(*f.callable, call);
  }
  const Expr& l = *f.callable->lambda;
  if (l.params.size() != args.size())
    return fail(
        make_error(ErrorKind::Type, "E0206",
                   fmt::format("this function takes {} arguments, not {}", l.params.size(), args.size()),
                   span)
            .label(l.span, "defined here"));
  auto inner = std::make_shared<Scope>();
  inner->parent = f.callable->scope;
  for (size_t i = 0; i < args.size(); ++i) {
    if (l.params[i].name == "_") continue;
    auto v = std::make_shared<Variable>();
    v->is_param = true;
    v->span = l.params[i].span;
    GK_TRY(v->value, hold(args[i], span));
    inner->names[l.params[i].name] = v;
  }
  if (++call_depth_ > 200) {
    --call_depth_;
    return fail(ErrorKind::Type, "E0406", "calls are nested over 200 deep", span);
  }
  ++eager_depth_;
  const Instead file(default_float_, file_of(*inner).default_float);
  Result<Value> r = Value::none();
  if (l.rhs) {
    r = eval(*l.rhs, inner);
  } else if (l.body) {
    Value v = Value::none();
    auto flow = exec_in(*l.body, inner, &v);
    if (!flow)
      r = fail(std::move(flow.error()));
    else
      r = *flow == Flow::Return ? std::exchange(return_value_, Value::none()) : v;
  }
  if (r) r = settled(*r, span);
  --eager_depth_;
  --call_depth_;
  return r;
}

Result<void> Evaluator::check_overlap(const Call& call) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.args[i].is_mut) continue;
    for (size_t j = 0; j < call.args.size(); ++j) {
      if (i == j) continue;
      bool overlap = false;
      for_each_array(*call.args[i].place, [&](const ArrayPtr& a) {
        const auto& other = call.args[j];
        for_each_array(other.given ? *other.given : other.value, [&](const ArrayPtr& b) {
          overlap = overlap || a == b ||
                    (a->storage && a->storage == b->storage && a->storage->owner == a.get() &&
                     a->storage->owner == b.get());
        });
      });
      if (overlap)
        return fail(make_error(ErrorKind::Type, "E0404", "a `mut` argument overlaps another argument",
                               call.args[i].span)
                        .label(call.args[j].span, "the same storage")
                        .help(fmt::format("pass a copy: `copy({})`", written(call.args[j].span))));
    }
  }
  return {};
}

Result<Value> Evaluator::call_fn(const Callable& c, Call& call) {
  const syntax::FnDef& fn = *c.fn;
  if (std::find(call_stack_.begin(), call_stack_.end(), &fn) != call_stack_.end())
    return fail(
        make_error(ErrorKind::Unsupported, "E0406", fmt::format("`{}` calls itself", fn.name), call.span)
            .label(fn.name_span, "defined here")
            .help("write it as a loop"));
  auto inner = std::make_shared<Scope>();
  inner->parent = c.scope;
  inner->function_boundary = true;
  // Arguments to parameters.
  std::vector<CallArg*> given(fn.params.size(), nullptr);
  size_t next = 0;
  for (auto& a : call.args) {
    size_t at = fn.params.size();
    if (a.name.empty()) {
      while (next < given.size() && given[next]) ++next;
      at = next;
    } else {
      for (size_t i = 0; i < fn.params.size(); ++i)
        if (fn.params[i].name == a.name) at = i;
      if (at == fn.params.size())
        return fail(make_error(ErrorKind::Type, "E0206",
                               fmt::format("`{}` has no parameter `{}`", fn.name, a.name), a.span)
                        .label(fn.name_span, "defined here"));
    }
    if (at >= given.size())
      return fail(make_error(ErrorKind::Type, "E0206",
                             fmt::format("`{}` takes {} arguments, not {}", fn.name, fn.params.size(),
                                         call.args.size()),
                             a.span)
                      .label(fn.name_span, "defined here"));
    if (given[at])
      return fail(ErrorKind::Type, "E0206", fmt::format("`{}` is given twice", fn.params[at].name), a.span);
    given[at] = &a;
  }
  std::vector<CallArg> defaults(fn.params.size());
  for (size_t i = 0; i < fn.params.size(); ++i) {
    const auto& p = fn.params[i];
    if (!given[i]) {
      if (!p.fallback)
        return fail(make_error(ErrorKind::Type, "E0206",
                               fmt::format("`{}` needs an argument for `{}`", fn.name, p.name), call.span)
                        .label(p.span, "declared here"));
      defaults[i].span = p.fallback->span;
      {
        const Instead file(default_float_, file_of(*c.scope).default_float);
        GK_TRY(defaults[i].value, eval(*p.fallback, c.scope));
      }
      given[i] = &defaults[i];
    }
    if (p.is_mut && !given[i]->is_mut)
      return fail(make_error(ErrorKind::Type, "E0206", fmt::format("`{}` of `{}` is `mut`", p.name, fn.name),
                             given[i]->span)
                      .help(fmt::format("say so at the call: `mut {}`", written(given[i]->span))));
    if (!p.is_mut && given[i]->is_mut)
      return fail(make_error(ErrorKind::Type, "E0206",
                             fmt::format("`{}` of `{}` is not `mut`", p.name, fn.name), given[i]->span)
                      .label(p.span, "declared here"));
  }
  GK_CHECK(check_overlap(call));
  // Plain dimension names are bound before anything is checked against them.
  for (size_t i = 0; i < fn.params.size(); ++i)
    if (fn.params[i].type) bind_plain_dims(given[i]->value, *fn.params[i].type, inner);
  CheckedCall known_call(*this, c);
  SharedCalls::Now shared_call(*this, c);
  for (size_t i = 0; i < fn.params.size(); ++i) {
    const auto& p = fn.params[i];
    auto v = std::make_shared<Variable>();
    v->is_param = true;
    v->span = p.span;
    Value value = given[i]->value;
    if (p.type) {
      auto r = conform(value, *p.type, inner, true, given[i]->span, fmt::format("`{}`", p.name));
      if (!r) {
        // A converted argument would be no place.
        if (p.is_mut) r.error().helps.clear();
        return fail(std::move(r.error()).label(p.span, "declared here"));
      }
      if (!p.is_mut) value = std::move(*r);
    }
    known_call.argument(value, p.is_mut ? given[i]->place : nullptr);
    if (value.is_literal()) value.array->bound = true;
    shared_call.argument(value, p.is_mut);
    if (p.is_mut) {
      v->target = given[i]->place;
    } else {
      GK_TRY(v->value, hold(value, given[i]->span));
    }
    if (p.name != "_") inner->names[p.name] = v;
  }
  const auto in_this_call = [&](Error e) {
    const bool tell = e.labels.size() < 4 && e.span.begin != call.span.begin;
    return tell ? std::move(e).label(call.span, "in this call") : std::move(e);
  };
  if (auto before = known_call.find(call.span)) {
    return std::move(*before);
  }
  if (fn.captured && running() && !capturing()) {
    GK_CHECK(refuse_in_roll(call.span));
    return call_captured(c, call, inner);
  }
  if (auto before = shared_call.find()) return std::move(*before);
  // A captured function is checked as what it is.
  const bool as_capture = fn.captured && !running() && !capturing();
  if (as_capture) ++capture_depth_;
  const size_t known = errors_.size();
  auto r = run_fn_body(fn, inner);
  if (as_capture) --capture_depth_;
  // Checking of a body goes on after an error in it: those were recorded.
  for (size_t i = known; i < errors_.size(); ++i) errors_[i] = in_this_call(std::move(errors_[i]));
  if (r && fn.captured)
    if (auto ok = check_captured_result(fn, *r); !ok) r = fail(std::move(ok.error()));
  if (!r) return fail(in_this_call(std::move(r.error())));
  known_call.keep(*r);
  shared_call.keep(*r);
  return r;
}

Result<Value> Evaluator::run_fn_body(const syntax::FnDef& fn, const ScopePtr& inner) {
  GK_CHECK(poll(fn.name_span));
  GK_CHECK(bound_trace(fn.name_span));
  call_stack_.push_back(&fn);
  ++call_depth_;
  ++eager_depth_;
  const Instead file(default_float_, file_of(*inner).default_float);
  Result<Value> r = Value::none();
  if (fn.expr) {
    r = eval(*fn.expr, inner);
  } else {
    Value v = Value::none();
    auto flow = exec_in(*fn.body, inner, &v);
    if (!flow)
      r = fail(std::move(flow.error()));
    else if (*flow == Flow::Return)
      r = std::exchange(return_value_, Value::none());
    else if (*flow != Flow::Next)
      r = fail(ErrorKind::Type, "E0409", "`break` or `continue` outside a loop", fn.name_span);
    else
      r = v;
  }
  if (r && fn.result && !(r->is_unknown())) {
    if (r->kind == VKind::None)
      r = fail(ErrorKind::Type, "E0211", fmt::format("`{}` declares a result but gives none", fn.name),
               fn.name_span);
    else
      r = conform(*r, *fn.result, inner, true, fn.expr ? fn.expr->span : fn.name_span,
                  fmt::format("the result of `{}`", fn.name));
  }
  if (r) r = settled(*r, fn.name_span);
  --eager_depth_;
  --call_depth_;
  call_stack_.pop_back();
  return r;
}

Result<void> Evaluator::check_function(const syntax::FnDef& fn, const ScopePtr& scope) {
  auto inner = std::make_shared<Scope>();
  inner->parent = scope;
  inner->function_boundary = true;
  std::vector<std::shared_ptr<Value>> places;
  auto saved = std::exchange(trace_, std::make_unique<Trace>(false, capture_depth_));
  call_stack_.push_back(&fn);
  ++call_depth_;
  auto body = [&]() -> Result<void> {
    std::set<std::string> seen;
    for (const auto& p : fn.params)
      if (p.type) bind_plain_dims(Value::unknown(), *p.type, inner);
    for (const auto& p : fn.params) {
      if (p.name != "_" && !seen.insert(p.name).second)
        return fail(ErrorKind::Type, "E0408", fmt::format("two parameters are called `{}`", p.name), p.span);
      auto v = std::make_shared<Variable>();
      v->is_param = true;
      v->span = p.span;
      if (p.type) {
        GK_TRY(v->value,
               conform(Value::unknown(), *p.type, inner, true, p.span, fmt::format("`{}`", p.name)));
        GK_TRY(v->value, bind_value(v->value, p.span));
      }
      if (p.is_mut) {
        places.push_back(std::make_shared<Value>(v->value));
        v->target = places.back().get();
      }
      inner->names[p.name] = v;
    }
    Value r = Value::none();
    if (fn.expr) {
      GK_TRY(r, eval(*fn.expr, inner));
    } else {
      GK_TRY(auto flow, exec_in(*fn.body, inner, &r));
      if (flow == Flow::Return) r = std::exchange(return_value_, Value::none());
      if (flow == Flow::Break || flow == Flow::Continue)
        return fail(ErrorKind::Type, "E0409", "`break` or `continue` outside a loop", fn.name_span);
    }
    if (fn.result && r.kind == VKind::None)
      return fail(ErrorKind::Type, "E0211", fmt::format("`{}` declares a result but gives none", fn.name),
                  fn.name_span);
    if (fn.result && !r.is_unknown()) {
      GK_CHECK(conform(r, *fn.result, inner, true, fn.expr ? fn.expr->span : fn.name_span,
                       fmt::format("the result of `{}`", fn.name)));
    }
    return {};
  };
  auto r = body();
  --call_depth_;
  call_stack_.pop_back();
  trace_ = std::move(saved);
  return r;
}

Result<Value> Evaluator::call_type(const Value& t, Call& call, const ScopePtr& scope) {
  if (t.type_def && t.type_def->body->kind == syntax::TypeExpr::Kind::Record) {
    const auto& body = *t.type_def->body;
    Value v;
    v.kind = VKind::Record;
    v.items = std::make_shared<Aggregate>();
    v.items->names = body.field_names;
    v.items->type = t.type_def;
    v.items->items.resize(body.fields.size());
    std::vector<bool> set(body.fields.size());
    size_t next = 0;
    for (auto& a : call.args) {
      size_t at = next;
      if (a.name.empty()) {
        ++next;
      } else {
        at = static_cast<size_t>(std::find(body.field_names.begin(), body.field_names.end(), a.name) -
                                 body.field_names.begin());
      }
      if (at >= body.fields.size())
        return fail(make_error(ErrorKind::Type, "E0206",
                               a.name.empty()
                                   ? fmt::format("`{}` has {} fields", t.type_def->name, body.fields.size())
                                   : fmt::format("`{}` has no field `{}`", t.type_def->name, a.name),
                               a.span)
                        .note(fmt::format("its fields are {}", fmt::join(body.field_names, ", "))));
      if (set[at])
        return fail(ErrorKind::Type, "E0206", fmt::format("field `{}` is given twice", body.field_names[at]),
                    a.span);
      set[at] = true;
      GK_TRY(v.items->items[at], conform(a.value, *body.fields[at], t.type_def->scope, false, a.span,
                                         fmt::format("field `{}`", body.field_names[at])));
    }
    for (size_t i = 0; i < set.size(); ++i)
      if (!set[i])
        return fail(ErrorKind::Type, "E0206",
                    fmt::format("`{}` needs field `{}`", t.type_def->name, body.field_names[i]), call.span);
    return v;
  }
  if (t.type_def || t.type_syntax || t.dims)
    return fail(ErrorKind::Type, "E0207", "only a dtype or a record type can be called", call.span);
  if (call.args.size() != 1 || !call.args[0].name.empty())
    return fail(ErrorKind::Type, "E0206", fmt::format("`{}(x)` converts one value", name(t.dtype)),
                call.span);
  const Value& v = call.args[0].value;
  if (v.kind == VKind::String) {
    if (!running()) return Value::unknown_scalar(t.dtype);
    auto number = number_from(v.text);
    if (number && is_integer(t.dtype) && number->is_float() && is_integer_text(v.text))
      return fail(ErrorKind::Type, "E0203", fmt::format("{} does not fit in {}", v.text, name(t.dtype)),
                  call.args[0].span);
    const bool digits = v.text.find_first_of("0123456789") != std::string::npos;
    if (number && number->is_float() && std::isinf(number->f) && digits)
      return fail(ErrorKind::Type, "E0203", fmt::format("{} does not fit in {}", v.text, name(t.dtype)),
                  call.args[0].span);
    if (!number || (is_integer(t.dtype) && number->is_float()))
      return fail(ErrorKind::Runtime, "E0202",
                  fmt::format("\"{}\" is not {}", v.text, is_integer(t.dtype) ? "an integer" : "a number"),
                  call.args[0].span);
    if (is_bool(t.dtype)) return Value::of_scalar(number->cast(t.dtype));
    return cast_weak(Value::host(*number), t.dtype, call.args[0].span);
  }
  // A weak literal is rounded once, here: f64(0.1) is the double nearest to 0.1.
  return cast(v, t.dtype, call.span);
}

}  // namespace gk::sema
