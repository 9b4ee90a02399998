// Copies of nodes, in their module or in another one. Owns which new value stands for which old one; promises
// that what a copy defines are values of their own. Not for deciding what is copied.
#pragma once

#include <functional>
#include <unordered_map>

#include "compiler/ir/module.h"

namespace gk::passes {

class Copier {
 public:
  Copier(const ir::Module& from, ir::Module& to) : from_(from), to_(to) {}
  /// What stands for `v` now: itself, before anything else does.
  ir::ValueId now(ir::ValueId v) const {
    const auto it = values_.find(v);
    return it == values_.end() ? v : it->second;
  }
  void set(ir::ValueId v, ir::ValueId now) { values_[v] = now; }
  /// A new value for `v`.
  ir::ValueId fresh(ir::ValueId v) { return values_[v] = to_.new_value(ir::Type(from_.type(v))); }

  /// `copy_into` copies each node of the regions of `n`; null: as they are.
  using CopyInto = std::function<void(const ir::Node&, ir::Region&)>;
  ir::Node node(const ir::Node& n, const CopyInto& copy_into = nullptr);

 private:
  const ir::Module& from_;
  ir::Module& to_;
  std::unordered_map<ir::ValueId, ir::ValueId> values_;
};

}  // namespace gk::passes
