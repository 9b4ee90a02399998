// Which names a piece of syntax mentions: all of them, those it declares itself included. Owns nothing. Not
// for what a name means: that depends on the scope.
#pragma once

#include <set>
#include <string>

#include "compiler/syntax/ast.h"

namespace gk::sema {

using NameSet = std::set<std::string, std::less<>>;

void names_in(const syntax::Expr& e, NameSet& names);
void names_in(const syntax::Stmt& s, NameSet& names);
void names_in(const syntax::Block& b, NameSet& names);
void names_in(const syntax::TypeExpr& t, NameSet& names);
void names_in(const syntax::FnDef& f, NameSet& names);
void names_in(const syntax::KernelDef& k, NameSet& names);

}  // namespace gk::sema
