// Groups to steps: each group becomes the kernels that compute what others need of it, in an order that
// respects data. Owns the choice of kernel shape (map, reduction in one or two phases, product by a library
// or generated, writing of a region) and of loop axes. Promises steps whose memory is named by buffers,
// without places. Not for places, copies, or the order that overwriting demands: that is plan_memory.
#pragma once

#include "compiler/passes/draft.h"
#include "compiler/passes/lookup.h"

namespace gk::passes {

/// Needs fuse() to have run. Errors: Internal.
Result<Lowered> lower(const ir::Module& m, const Options& options);

}  // namespace gk::passes
