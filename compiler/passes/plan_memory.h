// Places: which buffer lies in which slot or where in the arena, which steps copy, and the order of steps.
// Promises the storage semantics of ir::Module: every read of a slot's old content comes before it is
// overwritten, in place only where a kernel reads a point through the access that writes it. Temporaries
// share one arena by lifetime. Not for what the steps compute.
#pragma once

#include "compiler/passes/draft.h"
#include "compiler/passes/pipeline.h"

namespace gk::passes {

/// Errors: OutOfMemory E0602 when the arena's size overflows.
Result<Schedule> plan_memory(const ir::Module& m, Lowered lowered, const Options& options);

}  // namespace gk::passes
