// The table behind info(): op_rows.inc in the order of the enumeration. Owns the rows and what the classes of
// operands stand for. Not for who asks about one op: info() and infer() do.
#pragma once

#include "compiler/ir/ops.h"

namespace gk::ir {

/// Every op in the order of the enumeration.
std::span<const OpInfo> op_table();

/// Whether `t` belongs to a class.
bool in_class(OperandClass cls, DType t);
/// "numbers", "bool or integers"
std::string_view plural(OperandClass cls);

}  // namespace gk::ir
