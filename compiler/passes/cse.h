// Common subexpressions: of several equal nodes the first one stays, inside regions too. Constants, inputs
// and scalars too, and parameters of regions that stand for one value. Nodes with regions and kernel calls
// are not compared. Promises idempotence.
#pragma once

#include "compiler/ir/module.h"

namespace gk::passes {

Result<void> cse(ir::Module& m);

}  // namespace gk::passes
