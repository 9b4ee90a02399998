// Numbers that bodies on device conditions rebind. Owns what such a name holds from the entry of the body on:
// the dtype that the body gives it, the same in a capture and outside. Not for arrays, which keep theirs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/sema/value.h"
#include "runtime/base/error.h"

namespace gk::sema {

/// While it lives, what is assigned to these names is held in the dtypes found.
class HeldNumbers {
 public:
  HeldNumbers() = default;
  HeldNumbers(HeldNumbers&&) = default;
  HeldNumbers& operator=(HeldNumbers&& o) noexcept {
    release();
    names_ = std::move(o.names_);
    changed_ = o.changed_;
    o.names_.clear();
    return *this;
  }
  ~HeldNumbers() { release(); }
  /// Whether a number without a dtype got one.
  bool changed() const { return changed_; }
  void note_change() { changed_ = true; }
  void add(const std::shared_ptr<Variable>& var, DType t) {
    names_.emplace_back(var, var->held_as);
    var->held_as = t;
  }

 private:
  void release() {
    for (auto& [var, before] : names_) var->held_as = before;
    names_.clear();
  }
  std::vector<std::pair<std::shared_ptr<Variable>, std::optional<DType>>> names_;
  bool changed_ = false;
};

/// The arms of a body, each run in the scope that it is given.
using Arms = std::vector<std::function<Result<void>(const std::shared_ptr<Scope>&)>>;

}  // namespace gk::sema
