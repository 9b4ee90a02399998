// Pointing an executable's driver nodes elsewhere, in place. Promises to touch what changes alone, and to say
// beforehand what cannot be changed this way. Not for undoing: the ladder in update.cpp does that.
#pragma once

#include "runtime/exec/driver_graph.h"

namespace gk::exec {

/// A set of small numbers: a node's slots or scalars.
class Marks {
 public:
  bool has(size_t i) const {
    if (i < kFew) return (few_ >> i & 1U) != 0;
    return i - kFew < more_.size() && more_[i - kFew];
  }
  void set(size_t i) {
    if (i < kFew) {
      few_ |= uint64_t{1} << i;
    } else {
      if (more_.size() <= i - kFew) more_.resize(i - kFew + 1);
      more_[i - kFew] = true;
    }
  }

 private:
  static constexpr size_t kFew = 64;  // most nodes have fewer, which costs no allocation
  uint64_t few_ = 0;
  std::vector<bool> more_;
};

/// Which steps of a node an update touches; null members: none of them moved.
struct Changed {
  bool arena = false;
  const Marks* slots = nullptr;
  const Marks* scalars = nullptr;
  bool everything = false;
  bool moved(const program::Ref& r) const;
  bool touches(const program::Step& s) const;
};

/// Points the operations of one node at what `frame` gives. Steps that `changed` does not touch are left
/// alone; `ids` are those of the node's operations in order. Counts what it patched.
Result<void> patch(hal::GraphExec& exec, Walker& walker, const Frame& frame,
                   const std::vector<hal::NodeId>& ids, const Changed& changed, int64_t& patched);

/// Why the operations of `from` cannot be patched into those of `to`; empty: they can.
std::string why_not_patchable(const program::Program& from, const program::Program& to,
                              const Changed& changed, bool can_set_library);

/// Whether both have the same kinds of operations, one by one.
bool same_operations(const program::Program& from, const program::Program& to);

}  // namespace gk::exec
