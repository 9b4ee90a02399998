// Rewrites that never change a bit of a result: scalar constants folded where IEEE makes the result exact to
// compute here, identities (x * 1, x + -0, x ** 2 as x * x), views of views, views that change nothing.
// Promises idempotence; leaves what became unused for dce.
#pragma once

#include "compiler/ir/module.h"

namespace gk::passes {

Result<void> simplify(ir::Module& m);

}  // namespace gk::passes
