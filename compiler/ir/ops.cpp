#include "compiler/ir/ops.h"

#include "compiler/ir/op_table.h"

namespace gk::ir {

const OpInfo& info(Op op) { return op_table()[static_cast<size_t>(op)]; }

std::optional<Op> parse_op(std::string_view name) {
  for (const OpInfo& i : op_table())
    if (i.name == name) return i.op;
  return std::nullopt;
}

bool in_dtype_class(std::string_view cls, DType t) {
  if (cls == "any") return true;
  if (cls == "number") return is_integer(t) || is_float(t);
  if (cls == "float") return is_float(t);
  if (cls == "integer") return is_integer(t);
  if (cls == "bool|integer") return is_integer(t) || is_bool(t);
  return name(t) == cls;
}

}  // namespace gk::ir
