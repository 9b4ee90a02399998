// The table behind info(). Not for other folders but those that go over all ops: they use info() and infer().
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
