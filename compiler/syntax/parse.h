// Text to syntax tree. The only user of ANTLR (in parse.cpp and its helpers). Any byte sequence gives
// a tree or at least one error; nesting over kMaxNesting is an error before the parser runs.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace gk::syntax {

inline constexpr int kMaxNesting = 200;

struct ParseResult {
  Module module;              // complete when errors is empty
  std::vector<Error> errors;  // several per run, in source order, one per mistake
};

/// Parses the text of `file` in `sources`. SLL first, LL when that fails. `interrupted` is asked every few
/// milliseconds; once it is true, E0806 is the one error.
ParseResult parse(const SourceMap& sources, int32_t file, const std::function<bool()>& interrupted = {});

/// True when `text` is the beginning of a longer input (open bracket, trailing operator): for a REPL.
bool is_incomplete(std::string_view text);

}  // namespace gk::syntax
