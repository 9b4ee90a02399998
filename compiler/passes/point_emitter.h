// From values and indices to kernel instructions. A PointEmitter writes the body or epilogue of one draft:
// asked for a value at a point, it emits what computes it there, through views as changes of the point.
// Promises that a value at a point is computed once, loads stay inside their arrays, and no recursion over
// chains of operands. Not for choosing what is stored: that is lower.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/passes/draft.h"
#include "compiler/passes/fuse.h"

namespace gk::passes {

/// One index: offset + sum of coefs * axes (and the taken axis of a gather, the last entry), or, where that
/// is not enough, a computed i64.
struct Coord {
  int64_t offset = 0;
  std::vector<int64_t> coefs;
  int ssa = -1;
};

/// Why evaluation has to start again with other axes or another array in memory.
struct Retry {
  int axis = -1;      // split this axis …
  int64_t inner = 0;  // … so that its inner part has this extent
  ValueId materialise = -1;
  std::vector<int64_t> cuts;  // … or cut it at these places
};

class PointEmitter {
 public:
  struct Source {
    const Lookup* look = nullptr;
    const std::vector<NodeKind>* kinds = nullptr;
    const std::unordered_map<ValueId, int>* in_memory = nullptr;  // values that must be loaded
    const std::vector<Buffer>* buffers = nullptr;
    std::function<int(ValueId)> buffer_of;  // of a value that is in memory
    int group = -1;
    bool may_split = true;
    bool may_cut = false;
  };
  PointEmitter(Source source, Draft& draft);

  /// Evaluation goes to `block` from now on.
  void start(ir::KBlock& block);
  /// The point with these indices.
  int point(std::vector<Coord> coords);
  Coord axis(int k, int64_t scale = 1) const;
  Coord constant(int64_t v) const;
  /// The SSA number of `v` at point `p`; -1: see retry().
  int value(ValueId v, int p);
  /// Says that `v` at any point is `ssa` in the current block.
  void define(ValueId v, int ssa) { defined_[v] = ssa; }
  void store(int buffer, const Shape& shape, int p, int ssa, Span span);
  int load(int buffer, const Shape& shape, int p) { return load(buffer, linear(shape, p)); }
  int multiply(int a, int b, DType t) { return compute(Op::Mul, {a, b}, t); }
  int emit(ir::KInst i);
  int reduce_result(int k, DType t);
  int cast(int ssa, DType to);
  /// Where a view's elements are in memory: buffer, offset and strides; nullopt when it is not such a view.
  std::optional<std::pair<int, Coord>> locate(ValueId v, int p);
  const Retry& retry() const { return retry_; }

 private:
  struct Need {
    ValueId v;
    int p;
  };
  struct Select {  // of UpdateSlice and Concat: chosen once a point, kept while operands are evaluated
    std::vector<int> conditions;
    std::vector<int> points;
    std::vector<size_t> operands;
  };
  const Lookup& look() const { return *source_.look; }
  DType type_of(ValueId v) const { return look().module().type(v).dtype; }
  bool local(ValueId v) const;
  int need(ValueId v, int p);
  int step(ValueId v, int p);
  int view(const Node& n, int p);
  int random(const Node& n, int p);
  int take(const Node& n, int p);
  int update(const Node& n, int p, ValueId v);
  int concat(const Node& n, int p, ValueId v);
  bool loop(const Node& n, ValueId v, int p);
  int load(int buffer, const Coord& at);
  int where(int condition, int a, int b, DType t);
  int compute(Op op, std::vector<int> args, DType t, Span span = {});
  int number(int64_t v);
  int literal(const Scalar& s);
  int host_number(const Scalar& s);
  bool shapes_code(const Node& n, size_t operand, const Scalar& s) const;
  int index(const Coord& c);
  std::optional<int> view_point(const Node& n, int p);
  std::optional<int> make_view_point(const Node& n, int p);
  Coord linear(const Shape& shape, int p);
  std::optional<std::vector<Coord>> digits(const Coord& at, const Shape& shape);
  Coord scaled(const Coord& c, int64_t by, int64_t plus);
  int clamped_range(const Coord& c, int64_t start, int64_t step, int64_t count, std::vector<int>& conditions,
                    bool& never);
  static bool is_constant(const Coord& c);
  /// The least and the greatest value of a sum of axes.
  std::pair<int64_t, int64_t> range(const Coord& c) const;
  bool cut_at(const Coord& c, const std::vector<int64_t>& begins);
  static uint64_t key(ValueId v, int p) { return static_cast<uint64_t>(v) << 32 | static_cast<uint32_t>(p); }
  int64_t extent(size_t k) const;
  int depth_of(int ssa) const { return depth_[static_cast<size_t>(ssa)]; }

  Source source_;
  Draft& d_;
  size_t width_;      // entries of coefs
  int64_t hole_ = 0;  // extent of the gathered axis
  std::vector<std::vector<Coord>> points_;
  std::unordered_map<std::string, int> point_ids_;
  std::unordered_map<std::string, int> emitted_;  // loads, indices, numbers of this block
  std::unordered_map<uint64_t, int> memo_;
  std::unordered_map<uint64_t, int> view_points_;
  std::unordered_map<uint64_t, Select> selects_;
  std::unordered_map<ValueId, int> defined_;
  std::vector<std::pair<uint64_t, int>> undo_;  // memo entries by depth, for leaving a loop
  std::vector<ir::KBlock*> blocks_;
  std::vector<int> depth_;  // by SSA number: nesting of the block that defines it
  std::vector<Need> needs_;
  int host_numbers_ = 0;
  Retry retry_;
};

}  // namespace gk::passes
