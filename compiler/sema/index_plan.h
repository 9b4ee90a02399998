// What an index selects of an array. Owns nothing but the arrays among the indices. Not for how it is
// evaluated: Evaluator::plan_index does that.
#pragma once

#include <vector>

#include "compiler/sema/value.h"
#include "runtime/base/shape.h"

namespace gk::sema {

struct IndexPlan {
  Shape starts, steps;
  ir::Dims extents;           // of the slice, one per axis of the array
  std::vector<int> dropped;   // axes indexed by a number
  std::vector<int> new_axes;  // positions in the result where `new` stands
  bool whole = true;          // selects everything
  bool known = true;
  bool unknown = false;  // an index is not known before running: neither is the form of what it gives
  // advanced: one integer array or 0-d device index on one axis, or a mask over the leading axes
  int take_axis = -1;
  ArrayPtr take_index;
  ArrayPtr mask;
  ir::Dims result;  // after dropping and inserting
};

}  // namespace gk::sema
