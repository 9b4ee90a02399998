#include "compiler/sema/known_names.h"

#include <utility>

namespace gk::sema {

namespace {

bool is_data(const Value& v) {
  return v.is_scalar() || v.is_array() || v.kind == VKind::String || v.is_aggregate();
}

// Which definition a name stands for; null where it stands for none.
const void* definition_of(const Value& v) {
  if (v.callable && v.callable->fn) return v.callable->fn.get();
  if (v.callable && v.callable->kernel) return v.callable->kernel.get();
  if (v.callable) return v.callable->lambda;
  return v.type_def ? v.type_def->body : nullptr;
}

// What running holds, as checking holds it. `checked`: what checking thought; types of records are its own.
Value as_checked(Evaluator& checker, const Value& ran, const Value& checked) {
  switch (ran.kind) {
    case VKind::Scalar: {
      Value v = ran;
      v.scalar = ran.scalar.peek();
      return v;
    }
    case VKind::String: return ran;
    case VKind::Array: {
      auto a = checker.trace().pending(ran.array->type, -1);
      const bool known = checked.is_array() && !checked.is_literal();
      a->wanted = known                ? checked.array->wanted
                  : ran.array->storage ? ran.array->storage->placement
                                       : ran.array->wanted;
      a->loose = ran.array->loose;
      a->bound = a->named = true;
      a->name = ran.array->name;
      return Value::of_array(std::move(a));
    }
    case VKind::Record:
    case VKind::List:
    case VKind::Tuple: {
      const bool alike = checked.kind == ran.kind && checked.items->items.size() == ran.items->items.size();
      if (!alike && ran.items->type) return Value::unknown();
      Value v = ran;
      v.items = std::make_shared<Aggregate>(*ran.items);
      v.items->type = alike ? checked.items->type : nullptr;
      for (size_t i = 0; i < v.items->items.size(); ++i)
        v.items->items[i] =
            as_checked(checker, ran.items->items[i], alike ? checked.items->items[i] : Value::unknown());
      return v;
    }
    default:
      return checked.kind == ran.kind && definition_of(checked) == definition_of(ran) ? checked
                                                                                      : Value::unknown();
  }
}

}  // namespace

KnownNames::KnownNames(Evaluator& checker) : checker_(checker) {
  for (const auto& [name, v] : checker.root()->names) before_.push_back({name, v, v->value});
}

void KnownNames::restore() {
  auto& names = checker_.root()->names;
  names.clear();
  for (Known& k : before_) {
    k.variable->value = k.value;
    names.emplace_hint(names.end(), k.name, k.variable);
  }
}

void KnownNames::learn(const Evaluator& runner) {
  auto& names = checker_.root()->names;
  std::erase_if(names, [&](const auto& n) { return !runner.root()->names.contains(n.first); });
  auto earlier = before_.begin();
  for (const auto& [name, ran] : runner.root()->names) {
    while (earlier != before_.end() && earlier->name < name) ++earlier;
    const Known* before = earlier != before_.end() && earlier->name == name ? &*earlier : nullptr;
    auto& variable = names[name];
    // What was checked of the name and has not run, is as if it had not been checked.
    const auto declared_at = [&](const Variable& v) {
      return v.span.file == ran->span.file && v.span.begin == ran->span.begin;
    };
    const bool same = variable && declared_at(*variable);
    if (!same && before && declared_at(*before->variable)) {
      variable = before->variable;
      variable->value = before->value;
    }
    if (!variable) variable = std::make_shared<Variable>(*ran);
    variable->kind = ran->kind;
    variable->span = ran->span;
    if (is_data(ran->value) || variable->value.kind != ran->value.kind)
      variable->value = as_checked(checker_, ran->value, variable->value);
  }
}

}  // namespace gk::sema
