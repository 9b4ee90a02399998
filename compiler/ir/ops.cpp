#include "compiler/ir/ops.h"

#include "compiler/ir/op_table.h"

namespace gk::ir {

const OpInfo& info(Op op) { return op_table()[static_cast<size_t>(op)]; }

std::optional<Op> parse_op(std::string_view name) {
  for (const OpInfo& i : op_table())
    if (i.name == name) return i.op;
  return std::nullopt;
}

bool in_class(OperandClass cls, DType t) {
  switch (cls) {
    case OperandClass::Any: return true;
    case OperandClass::Number: return is_integer(t) || is_float(t);
    case OperandClass::Float: return is_float(t);
    case OperandClass::Integer: return is_integer(t);
    case OperandClass::Bool: return is_bool(t);
    case OperandClass::BoolOrInteger: return is_integer(t) || is_bool(t);
    case OperandClass::U64: return t == DType::U64;
  }
  return false;
}

std::string_view plural(OperandClass cls) {
  switch (cls) {
    case OperandClass::Any: return "any";
    case OperandClass::Number: return "numbers";
    case OperandClass::Float: return "floats";
    case OperandClass::Integer: return "integers";
    case OperandClass::Bool: return "bool";
    case OperandClass::BoolOrInteger: return "bool or integers";
    case OperandClass::U64: return "u64";
  }
  return "";
}

}  // namespace gk::ir
