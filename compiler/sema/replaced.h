// Definitions that another one of the same name replaces, in a session that somebody types at. Owns nothing.
// Finds what goes on using the earlier one: graphs that were captured with it, records of it, names that hold
// it. Functions look names up when they are called, so these use the new one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/names_in.h"

namespace gk::sema {

/// The statements that gave names at the top level their values, by name.
using MadeBy = std::map<std::string, const syntax::Stmt*, std::less<>>;

/// The definition of the function, kernel or type that `v` is, the same while checking and running; null: it
/// is none.
const void* definition_of(const Value& v);
/// The names that work of `s` may read or give values to: those that it mentions, and those inside of the
/// functions and lambdas that it calls.
NameSet names_of_work(const Scope& names, const syntax::Stmt& s);
/// The names that `s` declares.
std::vector<std::string> declared_by(const syntax::Stmt& s);
/// Enters what `s` gives values to.
void note_made(const syntax::Stmt& s, MadeBy& made);
/// The names that go on with what `name` stood for when it was `earlier`, as `made` tells; `file`: where it
/// was defined again, what was made there has the new one.
std::vector<std::string> users_of(const Scope& names, const MadeBy& made, std::string_view name,
                                  const Value& earlier, int32_t file);

}  // namespace gk::sema
