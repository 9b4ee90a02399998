// What a body does to the names around it: those that it rebinds, as its syntax tells, found without
// evaluating it. Owns nothing. A name that a lambda from elsewhere rebinds is not found: evaluation notices
// it (Evaluator::note_rebinding).
#pragma once

#include <memory>
#include <set>
#include <string>

#include "compiler/sema/value.h"
#include "compiler/syntax/ast.h"

namespace gk::sema {

/// A name from outside the body that the body rebinds.
struct Rebound {
  std::shared_ptr<Variable> var;
  Value before;
  Span span{};
};

/// Adds the names that `s` or `e` rebinds with `=` and does not declare itself.
void rebound_outside(const syntax::Stmt& s, std::set<std::string>& names);
void rebound_outside(const syntax::Expr& e, std::set<std::string>& names);

/// The first `break`, `continue` or `return` that leaves the bodies of `s`; null: there is none.
const syntax::Stmt* find_jump(const syntax::Stmt& s);

}  // namespace gk::sema
