// Long array literals of plain numbers, read in one piece: tables of data in a program's text, for which
// tokens, trees and expressions of their own would take a hundred times the memory and the time. Owns the
// form of such a literal. Promises that it means what its elements would mean one by one; whatever is not
// plain (names, operators, suffixes, comments, ragged rows) is left to the parser. Not for short literals.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "compiler/syntax/ast.h"

namespace gk::syntax {

/// Reads the literal that begins `text`, which begins with `[`. Gives its length in bytes, and fills `out`
/// unless it is null; nullopt where it is not plain or has less than a few hundred numbers.
std::optional<size_t> scan_number_array(std::string_view text, NumberArray* out);

}  // namespace gk::syntax
