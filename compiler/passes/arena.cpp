#include "compiler/passes/arena.h"

#include <algorithm>
#include <numeric>

namespace gk::passes {

Result<int64_t> plan_arena(std::vector<ArenaRequest>& requests) {
  constexpr int64_t kAlignment = 256;
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].begin < requests[b].begin; });
  std::vector<const ArenaRequest*> live;  // by offset
  int64_t total = 0;
  for (size_t i : order) {
    ArenaRequest& r = requests[i];
    std::erase_if(live, [&](const ArenaRequest* l) { return l->end < r.begin; });
    int64_t at = 0, end = 0;
    auto where = live.begin();
    for (; where != live.end(); ++where) {
      if ((*where)->offset - at >= r.size_bytes) break;
      at = (*where)->offset + ((*where)->size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (r.size_bytes > INT64_MAX - kAlignment ||
        __builtin_add_overflow(at, r.size_bytes + kAlignment - 1, &end))
      return fail(ErrorKind::OutOfMemory, "E0602",
                  "the temporaries of a program take more than any device has");
    r.offset = at;
    total = std::max(total, end / kAlignment * kAlignment);
    live.insert(where, &r);
  }
  return total;
}

}  // namespace gk::passes
