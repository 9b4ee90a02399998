// What evaluating has changed of the names and arrays that were there before, so that it can be taken back.
// Owns the list of it. Promises: undo() leaves each noted array and name with what it held when it was noted
// first. What the trace itself holds (nodes, written values) is the trace's to restore.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "compiler/sema/value.h"

namespace gk::sema {

class Changes {
 public:
  /// `all`: values that are still pending are noted too. Otherwise only what had its home, or its name,
  /// before the unit that is being piled up: the rest goes with the unit.
  explicit Changes(bool all = false) : all_(all) {}

  /// To be called before `a` gets another storage or value.
  void note(const ArrayPtr& a);
  /// To be called before `v` is given another value in the unit `unit`.
  void note(const std::shared_ptr<Variable>& v, uint64_t unit);
  /// Whether an array or name other than these is no longer what it was.
  bool beside(const std::set<const ArrayData*>& arrays, const std::set<const Variable*>& names) const;
  /// Takes over what `inner` noted: all, or of arrays that had a home.
  void add(Changes inner);
  /// Gives up what was noted of names that are gone, and with it the values that they had.
  void forget_gone();
  void undo();
  void clear();

 private:
  struct OfArray {
    std::weak_ptr<ArrayData> array;
    StoragePtr storage;
    ir::ValueId pending;
    uint64_t trace;
    bool owner;
  };
  bool all_;
  std::vector<OfArray> arrays_;
  std::vector<std::pair<std::weak_ptr<Variable>, Value>> names_;
  std::set<const Variable*> noted_;
};

}  // namespace gk::sema
