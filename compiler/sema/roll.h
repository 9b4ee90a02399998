// What a traced loop body must be to become a loop inside a kernel: one scalar recurrence an element. Owns no
// state. Promises that what it moves or accepts means the same turn by turn. Not for tracing: that is
// loops.cpp.
#pragma once

#include <vector>

#include "compiler/ir/module.h"

namespace gk::sema {

/// Takes out of `body` what is the same in every turn: views, gathers, reductions of arrays from around the
/// loop.
std::vector<ir::Node> take_invariants(ir::Region& body);

/// Gives `body` a parameter for each value from around the loop that it still uses, and these values.
std::vector<ir::ValueId> isolate(ir::Module& m, ir::Region& body);

/// Whether each turn only computes, element by element, on scalars and arrays of one shape, and not more than
/// a kernel holds. Loops inside count with what is inside them.
bool is_recurrence(const ir::Module& m, const ir::Region& body);

}  // namespace gk::sema
