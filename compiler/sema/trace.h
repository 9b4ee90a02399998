// The module being built: array operations pile up here and run as one unit. Owns the current ir::Module, the
// storage of each slot and the pending values. Promises: reads see earlier writes of the same trace; taking a
// unit gives every live pending value a home. While checking it only records which storages are read and
// written.
//
// Note [Cells]. The body of an if or while on a device condition is traced into a region, by a trace inside
// that of its surroundings. An array of the surroundings that the body uses is a cell: what the array holds
// when the body begins is a parameter of the region, made at the first use; what it holds at the end, where
// the body wrote it, is yielded. A cell goes with the array that a name holds, not with its value: two names
// of one value may part in a later turn of a loop. The array itself is untouched until the conditional is
// part of the surroundings' trace.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/sema/effects.h"
#include "compiler/sema/value.h"

namespace gk::sema {

class Trace {
 public:
  /// `capture_depth`: of what is made in it.
  explicit Trace(bool building, int capture_depth = 0);
  /// Of a body inside what `around` traces; `around` outlives it. See Note [Cells].
  explicit Trace(Trace* around);
  bool in_body() const { return around_ != nullptr; }
  /// The trace of the whole capture.
  Trace& root() { return around_ ? around_->root() : *this; }
  uint64_t id() const { return id_; }
  bool building() const { return building_; }
  /// Of the whole capture: bodies are regions in it.
  ir::Module& module() { return root().module_; }

  /// The value an array has here and now (an Input node or a parameter at its first use). Checking: -1.
  ir::ValueId value_of(ArrayData& a);
  /// The value that it has here and is not read for the first time by asking; -1: the one its storage had
  /// before, or none.
  ir::ValueId known_value(const ArrayData& a) const;
  /// A new pending array.
  ArrayPtr pending(ir::Type type, ir::ValueId v);
  /// Makes `a`, which shares or shared a storage, a pending array with value `v`.
  void adopt(const ArrayPtr& a, ir::ValueId v);
  /// Overwrites what `a` owns. `a` must own its storage, or be pending.
  void write(ArrayData& a, ir::ValueId v);
  /// Adds a scalar slot; `from` is the number of the call that later calls fill it with, see Note
  /// [Prologues].
  ir::ValueId param(const Scalar& s, Span span, int32_t from = -1);
  /// The same without a node that reads it.
  int scalar_slot(const Scalar& s, int32_t from);
  int num_scalars() { return static_cast<int>(root().module_.params.size()); }
  /// Takes back those from `n` on, where what used them is given up.
  void forget_scalars(int n);
  /// By scalar slot; -1 where it is a constant.
  const std::vector<int32_t>& scalar_sources() const { return scalar_sources_; }

  size_t num_nodes() const { return nodes_; }
  /// A node of one result, whose type is known.
  Result<ir::ValueId> append(ir::Op op, std::vector<ir::ValueId> operands, ir::Attrs attrs,
                             const ir::Type& type, Span span);
  /// A node whose result types are given (loops, kernel calls).
  std::vector<ir::ValueId> append_node(ir::Node node, const std::vector<ir::Type>& results);
  void append_nodes(std::vector<ir::Node> nodes);
  bool empty() const;           // nothing to write, and no array waiting for a home
  bool somebody_waits() const;  // an array whose value is of this trace
  /// Empty, and nothing that was given up is left in it.
  bool pristine() const {
    return empty() && slots_.empty() && module_.params.empty() && module_.top.nodes.empty();
  }

  const std::vector<StoragePtr>& reads() const { return reads_.list; }
  const std::vector<StoragePtr>& writes() const { return writes_.list; }

  struct Cell {
    ArrayPtr array;
    ir::ValueId outside = -1;  // what it holds before, in the trace around
    ir::ValueId param = -1;    // the same, in here; -1: not read so far
    ir::ValueId now = -1;      // -1: not written
  };
  const std::vector<Cell>& cells() const { return cells_; }
  void add_cell(Cell c) { cells_.push_back(std::move(c)); }
  /// What is in the region so far.
  const ir::Region& region() const { return around_ ? body_ : module_.top; }
  /// Closes the trace of a body: the region without parameters and yields.
  ir::Region take_region();

  /// Closes the trace: outputs for written storages, fresh storages for live pending values, one for those of
  /// one value that need not be apart. Arrays then point to their storages. Nothing is left when no output
  /// exists (module.outputs is empty).
  Unit take();
  /// The same where `results` are all that anybody sees afterwards: other pending values get no home.
  Unit take(const std::vector<ArrayPtr>& results);

  const std::unordered_map<Storage*, ir::ValueId>& written_values() const { return values_; }
  void set_written(const StoragePtr& s, ir::ValueId v);

 private:
  int slot_of(const StoragePtr& s);
  /// The storages that are read, or written, in the order of the first time.
  struct Touched {
    std::vector<StoragePtr> list;
    std::unordered_set<const Storage*> known;
    void add(const StoragePtr& s) {
      if (known.insert(s.get()).second) list.push_back(s);
    }
  };
  void wait(const ArrayPtr& a);  // for a home
  bool made_here(const ArrayData& a) const { return !a.storage && a.trace == id_; }
  Cell& cell_of(ArrayData& a);
  ir::Region& outermost() { return around_ ? body_ : module_.top; }

  static std::atomic<uint64_t> next_id_;
  uint64_t id_;
  bool building_;
  int capture_depth_;
  ir::Module module_;  // of the root
  ir::Region body_;    // of the others
  size_t nodes_ = 0;
  std::vector<StoragePtr> slots_;
  std::unordered_map<Storage*, int> slot_index_;
  std::unordered_map<Storage*, ir::ValueId> inputs_;  // the value before any write here
  std::unordered_map<Storage*, ir::ValueId> values_;  // the value now, of storages written here
  Touched reads_, writes_;
  std::vector<int32_t> scalar_sources_;
  std::vector<std::weak_ptr<ArrayData>> pending_;
  Trace* around_ = nullptr;
  std::vector<Cell> cells_;
  std::unordered_map<const ArrayData*, size_t> cell_index_;
};

/// What something came to that was evaluated apart, see Evaluator::trace_function().
struct Traced {
  Unit unit;  // the module, and the storage of each of its slots
  Value result;
  std::vector<ArrayPtr> results;  // the arrays of `result`, in their order
  std::vector<int32_t> sources;   // by scalar slot, see Trace::scalar_sources()
  std::vector<StoragePtr> reads, writes;
};

}  // namespace gk::sema
