// The table behind info(): which operands each op takes and how its result dtype follows. Owns the dtype
// classes that OpInfo::dtypes names. Not for other folders: they use info() and infer().
#pragma once

#include "compiler/ir/ops.h"

namespace gk::ir {

/// Every op in the order of the enumeration.
std::span<const OpInfo> op_table();

/// Whether `t` belongs to a dtype class of the table: "any", "number", "float", "integer", "bool" or
/// "bool|integer".
bool in_dtype_class(std::string_view cls, DType t);

}  // namespace gk::ir
