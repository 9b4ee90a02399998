// What the traced body of a `for` must be to become a loop inside a kernel: one scalar recurrence an element.
// Owns no state. Promises that what it moves or accepts means the same turn by turn. Not for tracing: that is
// loops.cpp.
#pragma once

#include <vector>

#include "compiler/ir/module.h"
#include "compiler/sema/trace.h"

namespace gk::sema {

/// Whether each turn only computes, element by element, on scalars and arrays of one shape, and not more than
/// a kernel holds, beside what is the same in every turn. Loops inside count with what is inside them. `turn`
/// is the value that counts.
bool is_recurrence(Trace& body, ir::ValueId turn);

/// Takes out of the region of `loop` what is the same in every turn: views, gathers, reductions of arrays
/// from around the loop. They are to stand before it. `carried`: how many values go from turn to turn.
std::vector<ir::Node> take_invariants(ir::Module& m, ir::Node& loop, size_t carried);

}  // namespace gk::sema
