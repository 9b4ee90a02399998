// Removes nodes that no output needs, inside regions too, and what nodes with regions take, carry and give
// for nobody. What may fault stays: a division by zero is an error of the program whether or not its result
// is used. Promises idempotence.
#pragma once

#include "compiler/ir/module.h"

namespace gk::passes {

Result<void> dce(ir::Module& m);

}  // namespace gk::passes
