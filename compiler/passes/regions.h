// Tidies what If and While nodes exchange with their regions, so that fewer arrays are kept in memory for
// them: operands that no region uses go, equal ones become one, numbers and what is made of numbers alone are
// made again inside, results of an If that nobody reads are not made. Promises idempotence. Not for what is
// inside regions: each goes through the pipeline by itself when its node is lowered.
#pragma once

#include "compiler/ir/module.h"

namespace gk::passes {

Result<void> tidy_regions(ir::Module& m);

}  // namespace gk::passes
