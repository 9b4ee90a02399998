// What a node expands to: about how many instructions its code has at one point. Owns the estimates that
// bound the size of a kernel, and with it the time that compiling one takes. Promises rough figures, the same
// everywhere for the same module and target. cost_of()
// alone is about the time that the code takes.
#pragma once

#include "compiler/passes/lookup.h"
#include "runtime/program/program.h"

namespace gk::passes {

/// What computing a node once more costs a point, in additions; a large number for what is no elementwise
/// operation.
int cost_of(const Node& n);
/// At least 1. A loop weighs what its body does, once.
int64_t weight(const Lookup& l, const Node& n, program::TargetKind target);
/// As if a loop, and those inside it, were written out turn by turn; INT64_MAX at most.
int64_t unrolled_weight(const Lookup& l, const Node& n, program::TargetKind target);

}  // namespace gk::passes
