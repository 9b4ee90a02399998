// Tidies what nodes with regions exchange with them, so that fewer arrays are kept in memory: what a region
// only hands through is the operand itself, and numbers and what is made of numbers alone are made again
// inside an If or While. Promises idempotence. What nobody needs then goes with dce.
#pragma once

#include "compiler/ir/module.h"

namespace gk::passes {

Result<void> tidy_regions(ir::Module& m);

}  // namespace gk::passes
