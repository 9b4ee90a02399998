#include "compiler/sema/known_names.h"

#include <algorithm>
#include <utility>

#include "compiler/sema/replaced.h"

namespace gk::sema {

namespace {

bool is_data(const Value& v) {
  return v.is_scalar() || v.is_array() || v.kind == VKind::String || v.is_aggregate();
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

NamesBefore::NamesBefore(Evaluator& ev, const NameSet& names) : ev_(ev) {
  for (const std::string& name : names) {
    const auto v = ev.root()->names.find(name);
    const bool there = v != ev.root()->names.end();
    before_.push_back({name, there ? v->second : nullptr, there ? v->second->value : Value()});
  }
}

void NamesBefore::restore() const {
  auto& names = ev_.root()->names;
  for (const Before& b : before_) {
    if (!b.variable) {
      names.erase(b.name);
      continue;
    }
    b.variable->value = b.value;
    names[b.name] = b.variable;
  }
  ev_.note_definitions();
}

const std::shared_ptr<Variable>* NamesBefore::find(std::string_view name, const Value** value) const {
  const auto b = std::lower_bound(before_.begin(), before_.end(), name,
                                  [](const Before& x, std::string_view n) { return x.name < n; });
  if (b == before_.end() || b->name != name || !b->variable) return nullptr;
  *value = &b->value;
  return &b->variable;
}

void learn(Evaluator& checker, const NamesBefore& before, const Evaluator& runner, const NameSet& names) {
  for (const std::string& name : names) {
    auto& known = checker.root()->names;
    const auto ran = runner.root()->names.find(name);
    if (ran == runner.root()->names.end()) {
      known.erase(name);
      continue;
    }
    const Variable& now = *ran->second;
    auto& variable = known[name];
    // What was checked of the name and has not run, is as if it had not been checked.
    const auto declared_there = [&](const Variable& v) {
      return v.span.file == now.span.file && v.span.begin == now.span.begin;
    };
    const Value* value = nullptr;
    const auto* earlier = before.find(name, &value);
    if (!(variable && declared_there(*variable)) && earlier && declared_there(**earlier)) {
      variable = *earlier;
      variable->value = *value;
    }
    if (!variable) variable = std::make_shared<Variable>(now);
    variable->kind = now.kind;
    variable->span = now.span;
    if (is_data(now.value) || variable->value.kind != now.value.kind)
      variable->value = as_checked(checker, now.value, variable->value);
  }
  checker.note_definitions();
}

}  // namespace gk::sema
