// The state of lower(): groups, buffers of values, and the steps made so far; its parts are split over
// lower*.cpp. Not for other passes.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/passes/lower.h"
#include "compiler/passes/point_emitter.h"

namespace gk::passes {

/// The dimensions that a kernel walks, each as the axes it is split into.
struct Walk {
  struct Dim {
    bool reduce = false;
    std::vector<int64_t> axes;
    int64_t start = 0;  // the index that the walk begins at
  };
  std::vector<Dim> dims;
  void push(int64_t extent, bool reduce = false) { dims.push_back({reduce, {extent}}); }
};

/// A dimension of a walk and the places along it where a concatenation changes from one part to the next.
struct Cut {
  size_t dim = 0;
  std::vector<int64_t> at;
};

/// Whether cutting dimension `dim` of the walk at these places pays: see Note [Concatenations in parts].
bool fit_for_cuts(const Walk& walk, size_t dim, const std::vector<int64_t>& cuts);

class Lowerer {
 public:
  Lowerer(const ir::Module& m, const Options& options);
  Result<Lowered> run();

 private:
  struct Group {
    std::vector<int> members;  // in order
  };
  using Writer = std::function<void(PointEmitter&, Draft&, const std::vector<Coord>&)>;
  struct Placed {  // a view of an array in memory
    int buffer;
    int64_t offset;
    std::vector<int64_t> strides;
  };

  const Node& node(int i) const { return m_.top.nodes[static_cast<size_t>(i)]; }
  DType dtype(ValueId v) const { return m_.type(v).dtype; }
  bool in_memory(ValueId v) const;

  // lower.cpp
  void find_groups();
  std::vector<int> order() const;
  bool is_stored(ValueId v) const;
  int buffer_of(ValueId v);
  int new_buffer(DType t, const Shape& shape);
  Result<void> group(int g);
  PointEmitter::Source source(int g);
  /// With `cut`: where that is filled, the walk has to be cut there, and the draft is none.
  Result<Draft> draft(int g, ir::Kernel::Kind kind, Walk walk, const Writer& write, Cut* cut = nullptr);
  void add(Draft d);
  int point_in(PointEmitter& e, const Shape& shape, const std::vector<Coord>& dims) const;
  std::string label(const std::vector<int>& members) const;
  std::vector<ValueId> stored_values(const Group& g) const;
  Result<int> materialise(ValueId v);
  Result<int> dense(ValueId v, int64_t& offset);
  Result<void> region(int g, const Node& n);
  Result<void> call(const Node& n);
  void copy(int from, int to);

  // lower_map.cpp
  Result<void> map(int g, const std::vector<ValueId>& values);

  // lower_branch.cpp
  Result<void> branch(const Node& n);
  /// A slot of the bodies: the input that it begins as and the result that it ends as, by number, or -1.
  struct Place {
    int input, result;
  };
  struct Body {
    ir::Module module;
    std::vector<int> numbers;  // for each param of `module` the one around that it is
  };
  Result<int> home(ValueId v);
  void find_ends();
  int end_of(ValueId v) const;
  bool dies_into(const Node& n, size_t i, size_t k) const;
  std::vector<int> continued(const Node& n) const;
  std::vector<Place> places(const Node& n) const;
  Body body(const Node& n, const ir::Region& r, const std::vector<Place>& places) const;

  // lower_reduce.cpp
  /// One result of a reduction: `value` gives what is reduced at a point of the space, whose extents of 1 are
  /// left out; below zero where evaluation has to start again.
  struct Reducing {
    ValueId result;
    ir::ReduceOp op;
    DType value_dtype, accumulator;
    std::function<int(PointEmitter&, const std::vector<Coord>&)> value;
  };
  Result<void> reduce(int g, const std::vector<ValueId>& reductions, const std::vector<ValueId>& stored);
  Result<void> reduce(int g, const Walk& space, const std::vector<Reducing>& what,
                      const std::vector<ValueId>& stored);
  Result<void> vector_product(int g, const Node& n, const std::vector<ValueId>& stored);
  // lower_product.cpp
  Result<void> product(int g, const Node& n, const std::vector<ValueId>& stored);
  Result<void> product_of_nothing(int g, const Node& n, const std::vector<ValueId>& stored);
  bool absorb(int g, const Node& n, ValueId v, LoweredStep& s);

  const ir::Module& m_;
  const Options& options_;
  Lookup look_;
  std::vector<NodeKind> kinds_;
  std::vector<Group> groups_;
  std::vector<int> user_;  // by value: the one group that reads it, -1 none, -2 several
  std::vector<bool> is_output_;
  std::unordered_map<ValueId, int> buffers_;  // of stored values
  std::unordered_map<int, int> slot_buffers_;
  std::unordered_map<ValueId, int> extra_;  // views and recomputed values that were put in memory
  std::unordered_map<ValueId, int> ends_;   // the slots where values end, changed on the way or not
  std::unordered_map<const Node*, std::vector<int>> continued_;  // by If
  Lowered out_;
  std::vector<int> members_now_;
};

}  // namespace gk::passes
