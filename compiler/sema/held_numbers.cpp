// Which dtypes a body gives to the numbers that it rebinds is found by checking it, in a scope of copies:
// only types are followed there, nothing is computed, written or reported.
#include "compiler/sema/held_numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/guards.h"
#include "compiler/sema/numbers.h"

namespace gk::sema {

namespace {

// The same form, in arrays that are nobody's.
Value form_only(const Value& v, Trace& trace) {
  if (v.is_scalar()) return without_origin(v);
  Value r = v;
  if (v.is_aggregate()) {
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& i : r.items->items) i = form_only(i, trace);
  } else if (v.is_array() && !v.array->literal) {
    r.array = trace.pending(v.array->type, -1);
    r.array->wanted = v.array->wanted;
    r.array->loose = v.array->loose;
    r.array->number = v.array->number;
    r.array->bound = true;
  }
  return r;
}

bool sees(const std::shared_ptr<Scope>& scope, const std::shared_ptr<Scope>& other) {
  for (auto s = scope; s; s = s->function_boundary ? nullptr : s->parent)
    if (s == other) return true;
  return false;
}

Value in_scope(const Value& lambda, const std::shared_ptr<Scope>& scope) {
  Value r = lambda;
  r.callable = std::make_shared<Callable>(*lambda.callable);
  r.callable->scope = scope;
  return r;
}

std::shared_ptr<Scope> copy_of(const std::shared_ptr<Scope>& scope, size_t depth, Trace& trace) {
  auto copies = std::make_shared<Scope>();
  copies->parent = scope;
  for (auto s = scope; s; s = s->parent) {
    for (const auto& [name, var] : s->names) {
      const Value& v = var->get();
      const bool lambda = v.kind == VKind::Function && v.callable->lambda;
      const bool graph = v.kind == VKind::Graph || v.kind == VKind::Exec;
      const bool state =
          v.is_array() || v.is_aggregate() || v.is_scalar() || v.is_unknown() || lambda || graph;
      if (!state || var->kind == syntax::BindKind::Const || copies->names.contains(name)) continue;
      auto copy = std::make_shared<Variable>(*var);
      // What a lambda writes to are copies, too, or it is not followed.
      if (lambda)
        copy->value = sees(scope, v.callable->scope) ? in_scope(v, copies) : Value::unknown();
      else
        copy->value = form_only(v, trace);
      if (graph) copy->value.graph = std::make_shared<GraphObject>(*v.graph);
      copy->target = var->target ? &copy->value : nullptr;
      copy->depth = depth;
      copies->names[name] = copy;
    }
    if (s->function_boundary) break;
  }
  return copies;
}

/// Copies of lambdas see the copies, and would keep them for ever.
struct Forgotten {
  const std::shared_ptr<Scope>& copies;
  ~Forgotten() { copies->names.clear(); }
};

// `v` as `var` holds it that is held in `t`.
Result<Value> in_dtype(Evaluator& ev, const Variable& var, Value v, DType t, Span span) {
  if (!v.is_scalar() && !v.is_array()) return v;
  const DType d = v.is_scalar() ? v.scalar.dtype : v.array->type.dtype;
  if (is_bool(d)) return v;
  if (v.is_scalar() && v.weak) {
    GK_TRY(v, ev.cast_weak(v, t, span));
  } else if (is_number(v)) {
    GK_TRY(auto a, ev.typed_number(v.array, t, span));
    v = Value::of_array(a);
  } else if (d != t && promote(d, t) == t) {
    GK_TRY(v, ev.cast(v, t, span));
  }
  // A copy holds an array, whatever it is: what two arms give must have one form.
  if (!var.assigned || !v.is_scalar()) return v;
  GK_TRY(auto a, ev.as_array(v, span));
  return Value::of_array(a);
}

bool holds_number(const Value& v) {
  if (v.is_array()) return v.array->type.rank() == 0 && !is_bool(v.array->type.dtype);
  return v.is_scalar() && !is_bool(v.scalar.dtype);
}

}  // namespace

struct Evaluator::NumberForm {
  std::shared_ptr<Variable> var;
  std::string name;
  std::optional<DType> dtype;
  bool floats = false;
  bool has_one = false;  // a dtype already, which it keeps

  // True: something new was learnt.
  bool learn(const Value& v, DType default_float) {
    if (has_one) return false;
    const auto d = dtype_of(v);
    if (!d || is_bool(d->dtype) || d->literal) return false;
    const auto before = std::pair(dtype, floats);
    if (d->weak)
      floats = floats || gk::is_float(d->dtype);
    else
      dtype = dtype ? promote(*dtype, d->dtype).value_or(*dtype) : d->dtype;
    if (dtype && floats && is_integer(*dtype)) dtype = default_float;
    return before != std::pair(dtype, floats);
  }
};

// Runs the arms on copies and learns what is assigned to the names in them.
bool Evaluator::learn_numbers(std::vector<NumberForm>& forms, const ScopePtr& scope, const Arms& arms) {
  const Instead effects(effects_, nullptr);
  const Instead trace(trace_, std::make_unique<Trace>(false));
  const Instead errors(errors_, std::vector<Error>());
  const Instead keys(error_keys_);
  const Instead mistakes(mistakes_);
  const Instead needs_host(needs_host_);
  const Instead later(later_, decltype(later_)());
  const Instead eager(eager_depth_, eager_depth_ + 1);
  const Instead rolling(rolling_, 0);
  const Instead bodies(bodies_, decltype(bodies_)());
  const Instead result(return_value_);
  bool learnt = false;
  for (const auto& arm : arms) {
    const ScopePtr copies = copy_of(scope, 0, *trace_);
    const Forgotten forgotten{copies};
    for (const NumberForm& f : forms) {
      auto at = copies->names.find(f.name);
      if (at == copies->names.end()) continue;
      Value& v = at->second->value;
      // As an array, whatever it is: what two arms give must have one form.
      if (f.dtype && v.is_scalar())
        v = Value::of_array(trace_->pending(ir::Type{*f.dtype, {}}, -1));
      else if (v.is_scalar())
        v.known = false;
      at->second->held_as = f.dtype;
      at->second->assigned = std::make_shared<std::vector<Value>>();
    }
    // What was assigned before a mistake counts as well.
    static_cast<void>(arm(copies));
    for (NumberForm& f : forms) {
      auto at = copies->names.find(f.name);
      if (at == copies->names.end()) continue;
      for (const Value& v : *at->second->assigned) learnt = f.learn(v, default_float_) || learnt;
    }
  }
  return learnt;
}

Result<HeldNumbers> Evaluator::hold_numbers(const std::set<std::string>& names, const ScopePtr& scope,
                                            const Arms& arms, const void* body, Span span) {
  std::vector<NumberForm> forms;
  bool any_weak = false;
  for (const auto& n : names) {
    auto var = lookup(n, scope);
    if (!var || var->kind != syntax::BindKind::Var || var->is_param || !holds_number(var->value)) continue;
    // Rebinding a name from outside the capture is an error of its own.
    if (var->capture_depth < capture_depth_) continue;
    NumberForm f{var, n, std::nullopt, false, false};
    f.learn(var->value, default_float_);
    f.has_one = f.dtype.has_value();
    any_weak = any_weak || !f.has_one;
    forms.push_back(std::move(f));
  }
  if (any_weak) {
    // What the same body gave for the same forms around it.
    std::string key = fmt::format("{}|{}|", body, capturing());
    for (auto s = scope; s; s = s->parent) {
      for (const auto& [n, v] : s->names)
        if (const Value& x = v->get(); x.is_array() || x.is_aggregate() || x.is_scalar())
          key += fmt::format("{}:{};", n, form_text(x));
      if (s->function_boundary) break;
    }
    auto& known = held_[key];
    if (known.empty()) {
      // Each round but the last learns a dtype, and there are few above each.
      const size_t most = 4 * forms.size() + 2;
      for (size_t i = 0; i < most && learn_numbers(forms, scope, arms); ++i) {
      }
      for (const auto& f : forms) known.push_back(f.dtype.value_or(f.floats ? default_float_ : DType::I64));
    }
    for (size_t i = 0; i < forms.size(); ++i) forms[i].dtype = known[i];
  }
  HeldNumbers held;
  for (auto& f : forms) {
    if (f.var->value.is_scalar() && f.var->value.weak) {
      GK_TRY(auto typed, in_dtype(*this, *f.var, f.var->value, *f.dtype, span));
      note_rebinding(f.var, span);
      held.note_change();
      f.var->value = std::move(typed);
    } else if (f.var->value.is_array() && f.var->value.array->number) {
      GK_TRY(auto typed, typed_number(f.var->value.array, *f.dtype, span));
      typed->bound = true;
      note_rebinding(f.var, span);
      held.note_change();
      f.var->value = Value::of_array(typed);
    }
    held.add(f.var, *f.dtype);
  }
  return held;
}

Result<Value> Evaluator::held_value(const Variable& var, Value v, Span span) {
  return var.held_as ? in_dtype(*this, var, std::move(v), *var.held_as, span) : v;
}

}  // namespace gk::sema
