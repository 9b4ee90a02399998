// Texts that a loop appends to.
#include <algorithm>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

using syntax::AssignOp;
using syntax::BinaryOp;
using syntax::BindKind;
using syntax::Expr;
using syntax::ExprKind;
using syntax::Stmt;

namespace {

// Whether evaluating it changes no variable, so that nobody can tell in which order it is done.
bool changes_nothing(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Int:
    case ExprKind::Float:
    case ExprKind::Bool:
    case ExprKind::String:
    case ExprKind::Name: return true;
    case ExprKind::FString:
      return std::all_of(e.elements.begin(), e.elements.end(),
                         [](const auto& part) { return changes_nothing(*part); });
    case ExprKind::Binary: return changes_nothing(*e.lhs) && changes_nothing(*e.rhs);
    default: return false;
  }
}

// The texts that `s += e` or `s = s + e + …` appends to the text `s`; empty where it is no such statement.
std::vector<const Expr*> appended(const Stmt& s) {
  if (s.elementwise || s.lhs->kind != ExprKind::Name) return {};
  std::vector<const Expr*> pieces;
  if (s.assign_op == AssignOp::Add) {
    pieces = {s.rhs.get()};
  } else if (s.assign_op == AssignOp::Set) {
    const Expr* e = s.rhs.get();
    for (; e->kind == ExprKind::Binary && e->binary == BinaryOp::Add; e = e->lhs.get())
      pieces.insert(pieces.begin(), e->rhs.get());
    if (e->kind != ExprKind::Name || e->text != s.lhs->text) return {};
  }
  const bool apart =
      std::all_of(pieces.begin(), pieces.end(), [](const Expr* p) { return changes_nothing(*p); });
  return apart ? pieces : std::vector<const Expr*>();
}

}  // namespace

// A text that grows piece by piece is not copied for each piece.
Result<bool> Evaluator::append_text(const Stmt& s, const ScopePtr& scope) {
  const std::vector<const Expr*> pieces = appended(s);
  if (!running() || capturing() || !bodies_.empty() || pieces.empty()) return false;
  auto var = lookup(s.lhs->text, scope);
  if (!var || var->kind != BindKind::Var || var->is_param || var->get().kind != VKind::String) return false;
  std::string more;
  for (const Expr* p : pieces) {
    GK_TRY(auto v, eval(*p, scope));
    if (v.kind != VKind::String) return false;
    more += v.text;
  }
  var->get().text += more;
  return true;
}

}  // namespace gk::sema
