// The module being built: array operations pile up here and run as one unit. Owns the current ir::Module, the
// storage of each slot and the pending values. Promises: reads see earlier writes of the same trace; taking a
// unit gives every live pending value a home. While checking it only records which storages are read and
// written.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/sema/effects.h"
#include "compiler/sema/value.h"

namespace gk::sema {

class Trace {
 public:
  explicit Trace(bool building);
  uint64_t id() const { return id_; }
  bool building() const { return building_; }
  ir::Module& module() { return module_; }
  ir::Block& block() { return *block_; }

  /// The value an array has here and now (an Input node at its first use). Checking: -1.
  ir::ValueId value_of(ArrayData& a);
  /// A new pending array.
  ArrayPtr pending(ir::Type type, ir::ValueId v);
  /// Makes `a`, which shares or shared a storage, a pending array with value `v`.
  void adopt(const ArrayPtr& a, ir::ValueId v);
  /// Overwrites what `a` owns. `a` must own its storage, or be pending.
  void write(ArrayData& a, ir::ValueId v);
  /// Adds a scalar slot.
  ir::ValueId param(const Scalar& s, Span span);

  size_t num_nodes() const { return nodes_; }
  Result<ir::ValueId> append(ir::Op op, std::vector<ir::ValueId> operands, ir::Attrs attrs, Span span);
  /// A node whose result types are given (loops, kernel calls).
  std::vector<ir::ValueId> append_node(ir::Node node, const std::vector<ir::Type>& results);
  bool empty() const;  // nothing to write, and no array waiting for a home

  const std::vector<StoragePtr>& reads() const { return reads_; }
  const std::vector<StoragePtr>& writes() const { return writes_; }

  /// Closes the trace: outputs for written storages, fresh storages for live pending values. Arrays then
  /// point to their storages. Nothing is left when no output exists (module.outputs is empty).
  Unit take();

  // Rolling a loop: nodes go to an inner block until the outer one is entered again; what was written can be
  // undone.
  ir::Block* enter(ir::Block* inner);
  /// Live pending arrays whose value was made at or after `first`.
  std::vector<ArrayPtr> live_since(ir::ValueId first) const;
  const std::unordered_map<Storage*, ir::ValueId>& written_values() const { return values_; }
  void set_written(const StoragePtr& s, ir::ValueId v);
  struct Written {
    std::unordered_map<Storage*, ir::ValueId> values;
    std::vector<StoragePtr> list;
  };
  Written written() const { return {values_, writes_}; }
  void restore(Written w) {
    values_ = std::move(w.values);
    writes_ = std::move(w.list);
  }

 private:
  int slot_of(const StoragePtr& s);
  void note(std::vector<StoragePtr>& list, const StoragePtr& s);

  static std::atomic<uint64_t> next_id_;
  uint64_t id_;
  bool building_;
  ir::Module module_;
  ir::Block* block_;
  size_t nodes_ = 0;
  std::vector<StoragePtr> slots_;
  std::unordered_map<Storage*, int> slot_index_;
  std::unordered_map<Storage*, ir::ValueId> inputs_;  // the value before any write here
  std::unordered_map<Storage*, ir::ValueId> values_;  // the value now, of storages written here
  std::vector<StoragePtr> reads_, writes_;
  std::vector<std::weak_ptr<ArrayData>> pending_;
};

}  // namespace gk::sema
