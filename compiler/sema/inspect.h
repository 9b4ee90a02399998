// What a person who sits at a session asks of names: what they hold, what they are, what could be written
// next. Owns the wording alone. Nothing is run but what reads a value back. Not for diagnostics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

/// What it is, without an article: "f32[3, 4]", "integer", "function".
std::string kind_of(const Value& v);
/// The header of an array, "f32[3, 4] cuda:0"; "" for what prints in one line. `device`: where arrays are.
std::string header(const Value& v, std::string_view device);
/// As a session shows it: texts in quotes, functions with their parameters. Reads arrays back, long ones at
/// their edges. Errors: those of the work that the value comes from.
Result<std::string> shown(Evaluator& ev, const Value& v, Span span);
/// "step(x, dt = 0.1)", of a function, kernel or lambda as it is written.
std::string signature(const syntax::SourceMap& sources, const Callable& c);
/// What is known of `name`, a text of several lines: a name of the session, a builtin or a keyword. With
/// `whole` the definition too, where it is written in gk. Empty: nothing.
std::string about(Evaluator& ev, std::string_view name, bool whole);
/// What the word that ends `text` may become: names, fields after a dot, arguments inside a call as `name=`.
/// Sorted, each once.
std::vector<std::string> completions(Evaluator& ev, std::string_view text);
/// Where the word begins that ends `text`.
size_t word_begin(std::string_view text);

}  // namespace gk::sema
