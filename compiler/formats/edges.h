// Which elements of a long array are printed: those at its edges. Owns nothing. Not for the text, which
// format_array makes of an array of these.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/shape.h"

namespace gk::formats {

/// `count` elements that lie together, in an array and in that of its edges.
struct EdgeRun {
  int64_t from = 0, to = 0, count = 0;
};

/// The shape of the edges of an array of shape `all`: an axis longer than 2 `edges` keeps 2 `edges` + 1
/// elements, of which the middle one is in no run. The two print alike where only edges are shown.
Shape edge_runs(const Shape& all, int64_t edges, std::vector<EdgeRun>& runs);
/// How many runs that would be.
int64_t num_edge_runs(const Shape& all, int64_t edges);

}  // namespace gk::formats
