// What the written operators and names of the language mean, for arrays and kernels alike. Owns the table
// from syntax to operations and the search for a name that was meant. Not for typing.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/ir/ops.h"
#include "compiler/syntax/ast.h"

namespace gk::sema {

/// The operation of an operator; nothing for `and`, `or` and `~=`, which are not operations on elements.
std::optional<ir::Op> op_of(syntax::BinaryOp op);

/// How many letters differ: insertions, deletions and replacements.
size_t edit_distance(std::string_view a, std::string_view b);

/// What `+=` and its like combine with; `op` is not Set.
syntax::BinaryOp combining(syntax::AssignOp op);

}  // namespace gk::sema
