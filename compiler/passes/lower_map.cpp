// Maps: one kernel that stores values at every point of their shape, or a few, each over a part of it.
#include "compiler/passes/lower_group.h"

namespace gk::passes {
namespace {
// Note [Concatenations in parts]
// A kernel over a whole concatenation chooses the part at every point and reads at computed indices, several
// times slower on the host than copying. Where that pays, the walk is cut where one part ends, and each piece
// is a kernel in which the part is known and its elements follow one another. Values are the same.
constexpr int64_t kLeastCutElements = 16384;
constexpr int64_t kLeastRunElements = 32;
constexpr size_t kMostPieces = 8;
}  // namespace

bool fit_for_cuts(const Walk& walk, size_t dim, const std::vector<int64_t>& cuts) {
  if (walk.dims[dim].axes.size() != 1 || cuts.size() >= kMostPieces) return false;
  int64_t rows = 1, inner = 1;
  for (size_t k = 0; k < walk.dims.size(); ++k)
    for (int64_t x : walk.dims[k].axes) (k < dim ? rows : inner) *= k == dim ? 1 : x;
  const int64_t extent = walk.dims[dim].axes[0];
  if (rows * inner * extent < kLeastCutElements) return false;
  int64_t from = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const int64_t to = i < cuts.size() ? cuts[i] : extent;
    if (rows > 1 && (to - from) * inner < kLeastRunElements) return false;
    from = to;
  }
  return true;
}

Result<void> Lowerer::map(int g, const std::vector<ValueId>& values) {
  if (values.empty() || look_.elements(values[0]) == 0) {
    for (ValueId v : values) buffer_of(v);
    return {};
  }
  Walk whole;
  for (int64_t d : squeezed(look_.shape(values[0]))) whole.push(d);
  const Writer write = [&](PointEmitter& e, Draft& d, const std::vector<Coord>& dims) {
    e.start(d.kernel.body);
    std::vector<int> got;
    for (ValueId v : values) {
      got.push_back(e.value(v, point_in(e, look_.shape(v), dims)));
      if (got.back() < 0) return;
    }
    for (size_t k = 0; k < values.size(); ++k) {
      const Shape shape = look_.shape(values[k]);
      e.store(buffer_of(values[k]), shape, point_in(e, shape, dims), got[k], look_.node(values[k])->span);
    }
  };
  std::vector<Walk> todo{std::move(whole)};
  size_t pieces = 1;
  while (!todo.empty()) {
    const Walk walk = std::move(todo.back());
    todo.pop_back();
    Cut cut;
    const bool may_cut = options_.target == program::TargetKind::Host && pieces < kMostPieces;
    GK_TRY(Draft d, draft(g, ir::Kernel::Kind::Map, walk, write, may_cut ? &cut : nullptr));
    if (cut.at.empty()) {
      add(std::move(d));
      continue;
    }
    pieces += cut.at.size();
    int64_t to = walk.dims[cut.dim].axes[0];
    for (size_t i = cut.at.size() + 1; i-- > 0;) {
      const int64_t from = i == 0 ? 0 : cut.at[i - 1];
      Walk piece = walk;
      piece.dims[cut.dim].axes[0] = to - from;
      piece.dims[cut.dim].start += from;
      todo.push_back(std::move(piece));
      to = from;
    }
  }
  return {};
}

}  // namespace gk::passes
