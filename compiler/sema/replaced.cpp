#include "compiler/sema/replaced.h"

#include <algorithm>

#include "compiler/sema/names_in.h"

namespace gk::sema {

namespace {

bool is_of(const Value& v, const Value& earlier) {
  const void* definition = definition_of(earlier);
  if (definition != nullptr && definition_of(v) == definition) return true;
  if (!v.is_aggregate()) return false;
  if (v.items->type && v.items->type == earlier.type_def) return true;
  return std::any_of(v.items->items.begin(), v.items->items.end(),
                     [&](const Value& i) { return is_of(i, earlier); });
}

// All names that the work of `s` mentions, those inside of the functions that it calls and the graphs that it
// is made of included. `made` may be null.
NameSet all_names(const Scope& scope, const MadeBy* made, const syntax::Stmt& s, bool of_functions) {
  NameSet names;
  names_in(s, names);
  std::vector<std::string> open(names.begin(), names.end());
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    NameSet inside;
    const auto v = scope.names.find(name);
    if (v != scope.names.end() && v->second->value.callable && of_functions) {
      const Callable& c = *v->second->value.callable;
      if (c.fn) names_in(*c.fn, inside);
      if (c.kernel) names_in(*c.kernel, inside);
      if (c.lambda) names_in(*c.lambda, inside);
    } else if (v != scope.names.end() && v->second->value.graph && made) {
      if (const auto m = made->find(name); m != made->end()) names_in(*m->second, inside);
    }
    for (const std::string& n : inside)
      if (names.insert(n).second) open.push_back(n);
  }
  return names;
}

}  // namespace

const void* definition_of(const Value& v) {
  if (v.callable && v.callable->fn) return v.callable->fn.get();
  if (v.callable && v.callable->kernel) return v.callable->kernel.get();
  if (v.callable) return v.callable->lambda;
  return v.type_def ? v.type_def->body : nullptr;
}

NameSet names_of_work(const Scope& names, const syntax::Stmt& s) {
  NameSet all = all_names(names, nullptr, s, true);
  for (std::string& name : declared_by(s)) all.insert(std::move(name));
  return all;
}

std::vector<std::string> declared_by(const syntax::Stmt& s) {
  using syntax::StmtKind;
  if (s.fn) return {s.fn->name};
  if (s.kernel) return {s.kernel->name};
  if (s.kind == StmtKind::TypeDef || s.kind == StmtKind::Graph || s.kind == StmtKind::Import) return {s.name};
  std::vector<std::string> names;
  if (s.kind == StmtKind::Let)
    for (const auto& b : s.bindings) names.push_back(b.name);
  return names;
}

void note_made(const syntax::Stmt& s, MadeBy& made) {
  for (std::string& name : declared_by(s)) made[std::move(name)] = &s;
  if (s.kind == syntax::StmtKind::Assign && s.lhs->kind == syntax::ExprKind::Name) made[s.lhs->text] = &s;
}

std::vector<std::string> users_of(const Scope& names, const MadeBy& made, std::string_view name,
                                  const Value& earlier, int32_t file) {
  std::vector<std::string> users;
  const bool definition = earlier.callable || earlier.type_def || earlier.constant;
  for (const auto& [user, v] : names.names) {
    if (user == name) continue;
    bool uses = is_of(v->value, earlier);
    if (v->value.graph)
      if (const auto m = made.find(user); m != made.end() && m->second->span.file != file)
        uses = all_names(names, &made, *m->second, definition).contains(name);
    if (uses) users.push_back(user);
  }
  return users;
}

}  // namespace gk::sema
