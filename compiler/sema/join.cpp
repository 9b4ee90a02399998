// Control flow while checking: what is still known after a branch or loop that may or may not have run.
#include "compiler/sema/evaluator.h"

namespace gk::sema {

using syntax::Stmt;
using syntax::StmtKind;

namespace {

void root_name(const syntax::Expr* e, std::set<std::string>& names) {
  while (e && (e->kind == syntax::ExprKind::Field || e->kind == syntax::ExprKind::IndexOp)) e = e->lhs.get();
  if (e && e->kind == syntax::ExprKind::Name) names.insert(e->text);
}

// Names passed as `mut` anywhere in an expression.
void mut_names(const syntax::Expr* e, std::set<std::string>& names) {
  if (!e) return;
  for (const auto& a : e->args) {
    if (a.is_mut) root_name(a.value.get(), names);
    mut_names(a.value.get(), names);
  }
  mut_names(e->lhs.get(), names);
  mut_names(e->rhs.get(), names);
  mut_names(e->else_if.get(), names);
  for (const auto& x : e->elements) mut_names(x.get(), names);
  for (const auto& ix : e->indices) mut_names(ix.expr.get(), names);
  if (e->body) Evaluator::assigned_names(*e->body, names);
  if (e->else_body) Evaluator::assigned_names(*e->else_body, names);
}

}  // namespace

void Evaluator::assigned_names(const syntax::Block& b, std::set<std::string>& names) {
  for (const auto& s : b.stmts) assigned_names(*s, names);
}

void Evaluator::assigned_names(const Stmt& s, std::set<std::string>& names) {
  if (s.kind == StmtKind::Assign) root_name(s.lhs.get(), names);
  mut_names(s.rhs.get(), names);
  for (const auto& b : s.bindings) mut_names(b.init.get(), names);
  if (s.body) assigned_names(*s.body, names);
  if (s.else_body) assigned_names(*s.else_body, names);
  if (s.else_if) assigned_names(*s.else_if, names);
}

bool Evaluator::may_write(const syntax::Expr& e, const ScopePtr& scope) {
  using syntax::ExprKind;
  const auto within = [&](const syntax::ExprPtr& x) { return x && may_write(*x, scope); };
  const auto find = [&](const syntax::Expr& name) -> const Variable* {
    for (auto s = scope; s; s = s->parent)
      if (auto it = s->names.find(name.text); it != s->names.end()) return it->second.get();
    return nullptr;
  };
  switch (e.kind) {
    case ExprKind::Lambda: return false;  // until it is called
    case ExprKind::If:
    case ExprKind::BlockExpr:
    case ExprKind::Capture:
    case ExprKind::Launch: return true;
    case ExprKind::Call:
      // Functions and kernels write what they are given `mut`, and call what they are given.
      if (e.lhs->kind != ExprKind::Name || find(*e.lhs)) return true;
      for (const auto& a : e.args) {
        const Variable* v = a.value->kind == ExprKind::Name ? find(*a.value) : nullptr;
        if (a.is_mut || a.value->kind == ExprKind::Lambda || (v && v->value.kind == VKind::Function))
          return true;
      }
      break;
    default: break;
  }
  for (const auto& a : e.args)
    if (within(a.value)) return true;
  for (const auto& x : e.elements)
    if (within(x)) return true;
  for (const auto& ix : e.indices)
    if (within(ix.expr) || within(ix.start) || within(ix.stop) || within(ix.step)) return true;
  return within(e.lhs) || within(e.rhs) || within(e.else_if);
}

std::vector<std::pair<Variable*, Value>> Evaluator::snapshot(const std::set<std::string>& names,
                                                             const ScopePtr& scope) {
  std::vector<std::pair<Variable*, Value>> out;
  for (const auto& n : names) {
    if (auto v = lookup(n, scope)) out.emplace_back(v.get(), v->get());
  }
  return out;
}

Value Evaluator::join(const Value& a, const Value& b) {
  if (a.kind != b.kind) return Value::unknown();
  if (a.is_scalar()) {
    if (a.weak != b.weak) return Value::unknown();
    const auto integer = [](const Value& v) { return v.weak && is_integer(v.scalar.dtype); };
    if (a.scalar.dtype != b.scalar.dtype)
      return integer(a) && integer(b) ? Value::unknown_host(DType::I64) : Value::unknown();
    Value r = a;
    r.constant = a.constant && b.constant;
    if (!a.known || !b.known || !(a.scalar == b.scalar)) r.known = false;
    return r;
  }
  if (a.is_array()) {
    const ir::Type &s = a.array->type, &t = b.array->type;
    if (s.dtype != t.dtype || s.rank() != t.rank()) return Value::unknown();
    bool same = true;
    ir::Type joint = s;
    for (size_t i = 0; i < s.dims.size(); ++i)
      if (ir::equal(s.dims[i], t.dims[i]) != ir::Tri::Yes) {
        joint.dims[i] = fresh_dim();
        same = false;
      }
    if (same) return a;
    auto bound = bind_value(Value::of_array(trace_->pending(joint, -1)));
    return bound ? std::move(*bound) : Value::unknown();
  }
  if (a.is_aggregate()) {
    if (a.items->items.size() != b.items->items.size()) return Value::unknown();
    Value r = a;
    r.items = std::make_shared<Aggregate>(*a.items);
    for (size_t i = 0; i < r.items->items.size(); ++i)
      r.items->items[i] = join(a.items->items[i], b.items->items[i]);
    return r;
  }
  return a;
}

void Evaluator::forget_scalars(const std::set<std::string>& names, const ScopePtr& scope) {
  for (const auto& n : names) {
    auto v = lookup(n, scope);
    if (v && v->get().is_scalar()) v->get().known = false;
  }
}

}  // namespace gk::sema
