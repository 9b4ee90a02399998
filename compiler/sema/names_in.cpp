#include "compiler/sema/names_in.h"

namespace gk::sema {

using syntax::Expr;
using syntax::Stmt;
using syntax::TypeExpr;

namespace {

template <class P>
void inside(const P& pointer, NameSet& names) {
  if (pointer) names_in(*pointer, names);
}

// "m.Name" begins with the module's.
void head(const std::string& name, NameSet& names) {
  if (!name.empty()) names.insert(name.substr(0, name.find('.')));
}

void parameters(const std::vector<syntax::Param>& params, NameSet& names) {
  for (const auto& p : params) {
    inside(p.type, names);
    inside(p.fallback, names);
  }
}

void arguments(const std::vector<syntax::Arg>& args, NameSet& names) {
  for (const auto& a : args) inside(a.value, names);
}

}  // namespace

void names_in(const Stmt& s, NameSet& names) {
  for (const auto& b : s.bindings) {
    inside(b.type, names);
    inside(b.init, names);
  }
  for (const auto* e : {&s.lhs, &s.rhs, &s.target}) inside(*e, names);
  for (const auto* b : {&s.body, &s.else_body}) inside(*b, names);
  if (s.else_if) names_in(*s.else_if, names);
  inside(s.fn, names);
  inside(s.kernel, names);
  inside(s.type, names);
  for (const auto& n : s.nodes) inside(n.body, names);
  for (const auto& r : s.rebinds) {
    inside(r.from, names);
    inside(r.to, names);
  }
  arguments(s.args, names);
}

void names_in(const syntax::Block& b, NameSet& names) {
  for (const auto& s : b.stmts) names_in(*s, names);
}

void names_in(const TypeExpr& t, NameSet& names) {
  head(t.name, names);
  for (const auto& d : t.dims) inside(d, names);
  inside(t.element, names);
  inside(t.count, names);
  for (const auto& f : t.fields) inside(f, names);
}

void names_in(const Expr& e, NameSet& names) {
  // Long chains lean to the left: walk them without recursion.
  for (const Expr* at = &e; at; at = at->lhs.get()) {
    if (at->kind == syntax::ExprKind::Name) names.insert(at->text);
    inside(at->rhs, names);
    arguments(at->args, names);
    for (const auto& ix : at->indices)
      for (const auto* part : {&ix.expr, &ix.start, &ix.stop, &ix.step}) inside(*part, names);
    parameters(at->params, names);
    for (const auto* b : {&at->body, &at->else_body}) inside(*b, names);
    inside(at->else_if, names);
    for (const auto& x : at->elements) inside(x, names);
    inside(at->type, names);
  }
}

void names_in(const syntax::FnDef& f, NameSet& names) {
  parameters(f.params, names);
  inside(f.result, names);
  inside(f.expr, names);
  inside(f.body, names);
}

void names_in(const syntax::KernelDef& k, NameSet& names) {
  parameters(k.params, names);
  for (const auto& e : k.extents) inside(e, names);
  inside(k.body, names);
}

}  // namespace gk::sema
