// Rewrites of structure ahead of fusion. unroll_loops repeats the body of each Loop that is not elementwise,
// or whose turns expand to Options::max_unrolled_ops in all; expand_products turns matrix-vector and dot
// products into a product and a sum, which fuse with what is around them and read the matrix once;
// expand_concats makes wide concatenations trees, so that no kernel selects among more than a few operands.
// Promise idempotence.
#pragma once

#include "compiler/passes/pipeline.h"

namespace gk::passes {

Result<void> unroll_loops(ir::Module& m, const Options& options);
/// Only with fusion on: unfused, the product would be stored.
Result<void> expand_products(ir::Module& m);
Result<void> expand_concats(ir::Module& m);

}  // namespace gk::passes
