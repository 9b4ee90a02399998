// Rewrites of structure ahead of fusion. unroll_loops repeats the body of each Loop that is not elementwise,
// or whose turns are no more than max_ops operations in all; expand_products turns matrix-vector and dot
// products into a product and a sum, which fuse with what is around them and read the matrix once;
// expand_concats makes wide concatenations trees, so that no kernel selects among more than a few operands.
// Promise idempotence.
#pragma once

#include "compiler/ir/module.h"

namespace gk::passes {

Result<void> unroll_loops(ir::Module& m, int64_t max_ops);
/// Only with fusion on: unfused, the product would be stored.
Result<void> expand_products(ir::Module& m);
Result<void> expand_concats(ir::Module& m);

}  // namespace gk::passes
