#include "compiler/sema/call_key.h"

#include "compiler/sema/evaluator.h"

namespace gk::sema {

using syntax::BindKind;

namespace {

// What a name means where it stands; of what is around a function, constants alone.
std::shared_ptr<Variable> find(const std::string& name, const std::shared_ptr<Scope>& scope,
                               bool inside_function) {
  for (auto s = scope; s; s = s->parent) {
    if (auto it = s->names.find(name); it != s->names.end())
      return inside_function && it->second->kind != BindKind::Const ? nullptr : it->second;
    inside_function = inside_function || s->function_boundary;
  }
  return nullptr;
}

NameSet names_of(const Callable& c) {
  NameSet names;
  if (c.lambda)
    names_in(*c.lambda, names);
  else if (c.fn)
    names_in(*c.fn, names);
  else if (c.kernel)
    names_in(*c.kernel, names);
  return names;
}

}  // namespace

void CallKey::array(const ArrayPtr& a) {
  if (!a->storage) return;
  int64_t same = 0;
  while (same < static_cast<int64_t>(arrays.size()) &&
         arrays[static_cast<size_t>(same)]->storage != a->storage)
    ++same;
  arrays.push_back(a);
  key.named_type(a->type);
  key.number(same);
  key.flag(static_cast<int>(a->storage->placement));
  key.flag(static_cast<int>(a->wanted));
  key.flag(static_cast<int>(a->loose));
}

// It has no dtype until it meets one: what it becomes is made for its values.
void CallKey::literal(const ArrayData& a) {
  key.flag('L');
  key.named_type(a.type);
  const LiteralValues& values = a.literal->values;
  if (values.identity()) {  // of a tree, which its file keeps
    key.number(static_cast<int64_t>(reinterpret_cast<uintptr_t>(values.identity())));
    key.number(values.is_negated());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) key.scalar(values[i]);
}

void CallKey::type(const Value& v) {
  key.flag(static_cast<int>(v.dtype));
  address(v.type_def);
  address(v.type_syntax);  // which its file keeps
  key.number(v.dims ? static_cast<int64_t>(v.dims->size()) : -1);
  if (v.dims)
    for (const auto& d : *v.dims) key.number(d.value);
  if (!v.type_def) return;
  NameSet names;
  names_in(*v.type_def->body, names);
  seen(names, v.type_def->scope, true);
}

void CallKey::callable(const Value& v) {
  const Callable& c = *v.callable;
  address(c.fn);
  address(c.kernel);
  key.number(static_cast<int64_t>(reinterpret_cast<uintptr_t>(c.lambda)));
  ++closed_over_;
  const void* who = c.lambda   ? static_cast<const void*>(c.lambda)
                    : c.kernel ? static_cast<const void*>(c.kernel.get())
                               : static_cast<const void*>(c.fn.get());
  const auto [it, fresh] = visited_.try_emplace({who, c.scope.get()}, static_cast<int64_t>(visited_.size()));
  key.number(fresh ? -1 : it->second);
  if (fresh) seen(names_of(c), c.scope, !c.lambda);
  --closed_over_;
}

void CallKey::seen(const NameSet& names, const std::shared_ptr<Scope>& scope, bool inside_function) {
  for (const auto& n : names) {
    const auto v = find(n, scope, inside_function);
    if (!v) continue;
    key.word(n);
    value(v->get());
  }
  key.flag(')');
}

void CallKey::value(const Value& v) {
  key.flag(static_cast<int>(v.kind));
  switch (v.kind) {
    case VKind::Unknown:
    case VKind::None: break;
    case VKind::Scalar:
      key.flag(static_cast<int>(v.weak));
      if (closed_over_ > 0) {
        key.scalar(v.scalar);
      } else {
        key.flag(static_cast<int>(v.scalar.dtype));
        numbers.push_back(v);
      }
      break;
    case VKind::String: key.word(v.text); break;
    case VKind::Builtin: key.word(v.text); break;
    case VKind::Array: v.is_literal() ? literal(*v.array) : array(v.array); break;
    case VKind::Range:
      for (const auto& end : v.items->items) key.scalar(end.scalar);
      break;
    case VKind::Record:
    case VKind::List:
    case VKind::Tuple:
      key.number(static_cast<int64_t>(v.items->items.size()));
      for (const auto& n : v.items->names) key.word(n);
      address(v.items->type);
      for (const auto& i : v.items->items) value(i);
      break;
    case VKind::Strings:
      key.number(static_cast<int64_t>(v.strings->size()));
      for (const auto& s : *v.strings) key.word(s);
      break;
    case VKind::Function:
    case VKind::Kernel: callable(v); break;
    case VKind::Type: type(v); break;
    case VKind::Graph:
    case VKind::Exec:
    case VKind::NodeRef:
      address(v.graph);
      key.number(v.node);
      break;
    case VKind::Module: address(v.module); break;
  }
}

void CallKey::function(const Callable& c) {
  // What functions of a file see changes only with its definitions.
  if (c.scope && !c.scope->parent) {
    auto& known = ev_.seen_by(c);
    if (known.definitions != ev_.num_definitions()) {
      CallKey fresh(ev_);
      Value v;
      v.kind = VKind::Function;
      v.callable = std::make_shared<Callable>(c);
      fresh.callable(v);
      known = {ev_.num_definitions(), std::move(fresh.key.bytes), std::move(fresh.keepers)};
    }
    key.word(known.text);
    keepers.insert(keepers.end(), known.keepers.begin(), known.keepers.end());
    return;
  }
  Value v;
  v.kind = VKind::Function;
  v.callable = std::make_shared<Callable>(c);
  callable(v);
}

void CallKey::argument(std::string_view parameter, const Value& v) {
  key.word(parameter);
  value(v);
}

void for_each_written_around(const Value& v, const std::function<void(ArrayPtr&)>& f) {
  if (v.is_aggregate())
    for (const auto& i : v.items->items) for_each_written_around(i, f);
  if (v.kind != VKind::Function || !v.callable->lambda) return;
  const syntax::Expr& l = *v.callable->lambda;
  if (!l.body && !(l.rhs && Evaluator::may_write(*l.rhs, v.callable->scope))) return;
  for (const auto& n : names_of(*v.callable)) {
    const auto var = find(n, v.callable->scope, false);
    if (!var || (var->kind != BindKind::Var && !var->target)) continue;
    std::function<void(Value&)> leaves = [&](Value& x) {
      if (x.is_array()) f(x.array);
      if (x.is_aggregate())
        for (auto& i : x.items->items) leaves(i);
    };
    leaves(var->get());
  }
}

}  // namespace gk::sema
