#include "compiler/formats/edges.h"

#include <algorithm>

namespace gk::formats {

int64_t num_edge_runs(const Shape& all, int64_t edges) {
  int64_t n = 1;
  for (int i = 0; i < all.rank(); ++i) {
    const bool cut = all[i] > 2 * edges;
    const bool last = i + 1 == all.rank();
    n *= last ? (cut ? 2 : 1) : (cut ? 2 * edges : all[i]);
  }
  return n;
}

Shape edge_runs(const Shape& all, int64_t edges, std::vector<EdgeRun>& runs) {
  Shape kept = all;
  for (int i = 0; i < all.rank(); ++i) kept[i] = std::min(all[i], 2 * edges + 1);
  runs.clear();
  if (num_elements(kept).value_or(0) == 0) return kept;
  if (all.rank() == 0) {
    runs.push_back({0, 0, 1});
    return kept;
  }
  const Shape from = row_major_strides(all), to = row_major_strides(kept);
  const int last = all.rank() - 1;
  Shape at = kept;  // the index in what is kept
  for (int i = 0; i <= last; ++i) at[i] = 0;
  for (;;) {
    EdgeRun row;
    bool middle = false;
    for (int i = 0; i < last; ++i) {
      const bool cut = all[i] > 2 * edges;
      middle = middle || (cut && at[i] == edges);
      row.from += from[i] * (cut && at[i] > edges ? all[i] - kept[i] + at[i] : at[i]);
      row.to += to[i] * at[i];
    }
    if (!middle && all[last] > 2 * edges) {
      runs.push_back({row.from, row.to, edges});
      runs.push_back({row.from + all[last] - edges, row.to + edges + 1, edges});
    } else if (!middle) {
      runs.push_back({row.from, row.to, all[last]});
    }
    int axis = last - 1;
    while (axis >= 0 && ++at[axis] == kept[axis]) at[axis--] = 0;
    if (axis < 0) return kept;
  }
}

}  // namespace gk::formats
