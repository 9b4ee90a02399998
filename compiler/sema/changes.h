// What the unit that is being piled up has changed of the names and arrays that were there before, so that it
// can be taken back where the unit fails. Owns the list of it. Promises: undo() leaves each noted array and
// name with what it held when it was noted first. What goes with the unit is not noted.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/sema/value.h"

namespace gk::sema {

class Changes {
 public:
  /// To be called before `a` gets another storage or value.
  void note(const ArrayPtr& a);
  /// To be called before `v` is given another value in the unit `unit`.
  void note(const std::shared_ptr<Variable>& v, uint64_t unit);
  void undo();

 private:
  struct OfArray {
    std::weak_ptr<ArrayData> array;
    StoragePtr storage;
    ir::ValueId pending;
    uint64_t trace;
    bool owner;
  };
  std::vector<OfArray> arrays_;
  std::vector<std::pair<std::weak_ptr<Variable>, Value>> names_;
};

}  // namespace gk::sema
