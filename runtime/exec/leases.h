// The memory that a graph or an executable uses: one lease a distinct block, and by which nodes it is used.
// Promises that a look-up costs nothing for nodes that do not use the block. Used under its owner's lock. Not
// for what nodes do with the memory: order.h.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "runtime/exec/loaded.h"

namespace gk::exec {

/// A node's use of a block. A block born in a recording is used again once it is dead: uses of an earlier
/// `epoch` are of another temporary that lay there.
struct Use {
  static constexpr int32_t kArena = -1;  // for the temporaries of the node's program
  static constexpr int32_t kHeld = -2;   // by the graph itself; `node` is meaningless
  int32_t node = -1;
  int32_t slot = kHeld;
  uint32_t epoch = 0;
};

/// The uses of one block, oldest first. Most blocks have one, which costs no allocation.
class Uses {
 public:
  const Use* begin() const { return more_.empty() ? &one_ : more_.data(); }
  const Use* end() const { return begin() + size_; }
  bool empty() const { return size_ == 0; }
  void add(const Use& u) {
    if (size_ == 1) more_ = {one_};
    if (size_ == 0) {
      one_ = u;
    } else {
      more_.push_back(u);
    }
    ++size_;
  }
  /// Removes the newest one that a node has of a slot, if there is one.
  void remove(int32_t node, int32_t slot) {
    for (size_t i = size_; i-- > 0;) {
      if (begin()[i].node != node || begin()[i].slot != slot) continue;
      if (!more_.empty()) more_.erase(more_.begin() + static_cast<std::ptrdiff_t>(i));
      if (--size_ == 1) {
        one_ = more_.front();
        more_.clear();
      }
      return;
    }
  }

 private:
  size_t size_ = 0;
  Use one_;
  std::vector<Use> more_;  // all of them, where there are several
};

class LeaseSet {
 public:
  LeaseSet() = default;
  LeaseSet(LeaseSet&&) = default;
  LeaseSet& operator=(LeaseSet&&) = default;

  /// Leases every block of `b`; on failure the set is as before. Slots that have the same block in `kept` are
  /// left alone. Errors: Lease E0602.
  Result<void> add(int32_t node, const Bindings& b, Span span, const Bindings* kept = nullptr);
  Result<void> add(const memory::BlockPtr& b, int32_t node, int32_t slot, Span span);
  /// Takes uses back. Leases that nothing needs any more end. Slots that have the same block in `kept` are
  /// left alone.
  void remove(int32_t node, const Bindings& b, const Bindings* kept = nullptr);
  void remove(const memory::Block* b, int32_t node, int32_t slot);
  /// The block is used anew: see Use::epoch.
  void renew(const memory::Block* b);

  struct Held {
    memory::Lease lease;
    uint32_t epoch = 0;  // of uses from now on
    Uses uses;
  };
  /// Null where it is not held. The block itself may be gone.
  const Held* find(const memory::Block* b) const;
  bool holds(const memory::Block* b) const { return find(b) != nullptr; }
  int64_t size() const { return static_cast<int64_t>(held_.size()); }
  /// Calls `f(const Held&)` for blocks that share bytes with `b`, itself included where it is held.
  template <class F>
  void overlapping(const memory::Block* b, F&& f) const {
    const auto it = held_.find(b);
    if (!overlaps_ && it != held_.end()) {
      f(it->second);
      return;
    }
    for (const auto& [other, held] : held_) {
      if (other == b || share_bytes(other, b)) f(held);
    }
  }
  /// Orders later work on `t` after the last use of everything.
  Result<void> acquire(memory::Timeline& t) const;
  /// Another set of leases of the same uses, with other blocks for some.
  using Instead = std::map<const memory::Block*, memory::BlockPtr>;
  Result<LeaseSet> clone(const Instead& instead = {}) const;

 private:
  Held& insert(const memory::Block* b);
  void erase(const memory::Block* b);
  static bool share_bytes(const memory::Block* a, const memory::Block* b);
  std::unordered_map<const memory::Block*, Held> held_;
  std::vector<const memory::Block*> wrapped_;  // those that may share bytes with others
  bool overlaps_ = false;                      // some do, or did
};

}  // namespace gk::exec
