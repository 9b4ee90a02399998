// What a piece of syntax may do to the names around it, found without evaluating it. Owns nothing. A name
// that a lambda from elsewhere rebinds is not found: evaluation notices it (Evaluator::note_rebinding).
#pragma once

#include <set>
#include <string>

#include "compiler/syntax/ast.h"

namespace gk::sema {

/// Adds the names that `s` or `e` rebinds with `=` and does not declare itself.
void rebound_outside(const syntax::Stmt& s, std::set<std::string>& names);
void rebound_outside(const syntax::Expr& e, std::set<std::string>& names);

/// The first `break`, `continue` or `return` that leaves the bodies of `s`; null: there is none.
const syntax::Stmt* find_jump(const syntax::Stmt& s);

}  // namespace gk::sema
