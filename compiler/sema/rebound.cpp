#include "compiler/sema/rebound.h"

namespace gk::sema {

using syntax::Expr;
using syntax::ExprKind;
using syntax::Stmt;
using syntax::StmtKind;

namespace {

using Names = std::set<std::string>;

// Walks with the names that are declared inside so far; blocks get copies, so that what they declare ends
// with them.
class Walk {
 public:
  explicit Walk(Names& out) : out_(out) {}

  void statement(const Stmt& s, Names& declared) {
    for (const auto& b : s.bindings) {
      expression(b.init.get(), declared);
      declared.insert(b.name);
    }
    expression(s.rhs.get(), declared);
    expression(s.lhs.get(), declared);
    for (const auto& a : s.args) expression(a.value.get(), declared);
    if (s.kind == StmtKind::Assign && !s.elementwise && s.lhs->kind == ExprKind::Name &&
        !declared.contains(s.lhs->text))
      out_.insert(s.lhs->text);
    if (s.body) {
      Names inner = declared;
      if (s.kind == StmtKind::For) inner.insert(s.name);
      block(*s.body, std::move(inner));
    }
    if (s.else_body) block(*s.else_body, declared);
    if (s.else_if) {
      Names inner = declared;
      statement(*s.else_if, inner);
    }
  }

  void expression(const Expr* e, const Names& declared) {
    if (!e) return;
    expression(e->lhs.get(), declared);
    expression(e->rhs.get(), declared);
    expression(e->else_if.get(), declared);
    for (const auto& a : e->args) expression(a.value.get(), declared);
    for (const auto& x : e->elements) expression(x.get(), declared);
    for (const auto& ix : e->indices)
      for (const Expr* part : {ix.expr.get(), ix.start.get(), ix.stop.get(), ix.step.get()})
        expression(part, declared);
    if (e->body) {
      Names inner = declared;
      for (const auto& p : e->params) inner.insert(p.name);
      block(*e->body, std::move(inner));
    }
    if (e->else_body) block(*e->else_body, declared);
  }

 private:
  void block(const syntax::Block& b, Names declared) {
    for (const auto& s : b.stmts) statement(*s, declared);
  }
  Names& out_;
};

const Stmt* jump_in(const syntax::Block& b, bool in_loop) {
  for (const auto& s : b.stmts) {
    if (s->kind == StmtKind::Return) return s.get();
    if (!in_loop && (s->kind == StmtKind::Break || s->kind == StmtKind::Continue)) return s.get();
    const bool loop = in_loop || s->kind == StmtKind::For || s->kind == StmtKind::While;
    for (const Stmt* part = s.get(); part; part = part->else_if.get())
      for (const syntax::Block* inner : {part->body.get(), part->else_body.get()})
        if (inner)
          if (const Stmt* found = jump_in(*inner, loop)) return found;
  }
  return nullptr;
}

}  // namespace

void rebound_outside(const Stmt& s, Names& names) {
  Names declared;
  Walk(names).statement(s, declared);
}

void rebound_outside(const Expr& e, Names& names) { Walk(names).expression(&e, {}); }

const Stmt* find_jump(const Stmt& s) {
  for (const Stmt* part = &s; part; part = part->else_if.get())
    for (const syntax::Block* body : {part->body.get(), part->else_body.get()})
      if (body)
        if (const Stmt* found = jump_in(*body, false)) return found;
  return nullptr;
}

}  // namespace gk::sema
