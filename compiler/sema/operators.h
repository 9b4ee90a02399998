// What the written operators of the language mean, for arrays and kernels alike. Owns the table from syntax
// to operations. Not for typing.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/ir/ops.h"
#include "compiler/syntax/ast.h"

namespace gk::sema {

/// The operation of an operator; nothing for `and`, `or` and `~=`, which are not operations on elements.
std::optional<ir::Op> op_of(syntax::BinaryOp op);

/// How an operation is written: its operator, else its name.
std::string_view written(ir::Op op);

/// What `+=` and its like combine with; `op` is not Set.
syntax::BinaryOp combining(syntax::AssignOp op);

}  // namespace gk::sema
