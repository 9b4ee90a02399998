#include "compiler/ir/attr_fields.h"

namespace gk::ir {

AttrFields attr_fields(Op op) {
  switch (op) {
    case Op::Input: return {.index = "slot", .name = true};
    case Op::Const: return {.value = true};
    case Op::Param: return {.index = "index", .value = true};
    case Op::Iota: return {.axes = true, .shape = true};
    case Op::Cast: return {.dtype = true};
    case Op::RngUniform:
    case Op::RngNormal: return {.shape = true, .dtype = true};
    case Op::RngAdvance: return {.index = "count"};
    case Op::Broadcast:
    case Op::Reshape: return {.shape = true};
    case Op::Transpose:
    case Op::Take:
    case Op::Concat: return {.axes = true};
    case Op::Slice: return {.shape = true, .region = true};
    case Op::UpdateSlice: return {.region = true};
    case Op::Loop:
    case Op::Repeat: return {.index = "trips"};
    case Op::KernelCall: return {.index = "threads", .shape = true, .name = true, .kernel = true};
    default: break;
  }
  if (info(op).cls == OpClass::Reduction) return {.axes = true, .keepdims = true};
  return {};
}

}  // namespace gk::ir
