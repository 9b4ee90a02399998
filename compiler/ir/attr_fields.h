// Which fields of Attrs an op uses, for the printer and for whoever compares nodes. Owns no values. Promises
// that a field not listed has no influence on the op.
#pragma once

#include <string_view>

#include "compiler/ir/ops.h"

namespace gk::ir {

struct AttrFields {
  std::string_view index{};  // what IR text calls attrs.index; empty: unused
  bool axes = false, shape = false;
  bool region = false;  // starts and steps
  bool keepdims = false, dtype = false, value = false, name = false, kernel = false;
};
AttrFields attr_fields(Op op);

}  // namespace gk::ir
