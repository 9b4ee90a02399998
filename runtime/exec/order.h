// The declared order of a graph's nodes, held against what they read and write. Promises to find a pair that
// shares bytes, one of them writing, without an order between them. Nodes outside declared ones come after
// all before them and before all after them. Not for the driver's order, which is a straight line.
#pragma once

#include <functional>
#include <optional>

#include "runtime/exec/leases.h"

namespace gk::exec {

/// A node in some state of it, which an update may be about to change.
struct NodeView {
  const GraphNode& declared;  // its name, place and order
  Loaded* program = nullptr;
  const Bindings& bindings;
  NodeView(const GraphNode& n) : NodeView(n, n.program.get(), n.bindings) {}
  NodeView(const GraphNode& n, Loaded* program, const Bindings& bindings)
      : declared(n), program(program), bindings(bindings) {}
};

/// Which nodes come before or after one of them, by what was declared.
class Order {
 public:
  /// `node` is at `index`, which may be past the end.
  Order(std::span<const GraphNode> nodes, int32_t index, const GraphNode& node);
  bool with(int32_t other) const;

 private:
  int32_t index_;
  int32_t barrier_before_ = -1, barrier_after_;
  std::vector<char> ordered_;
};

/// Whether what two slots use of their blocks has bytes in common.
bool share_bytes(const SlotBinding& a, const SlotUse& use_a, const SlotBinding& b, const SlotUse& use_b);

struct Conflict {
  int32_t other = -1;
  int32_t slot = -1, other_slot = -1;
  bool written_there = false, written_here = false;
};
/// The first conflict of `node`, at `index`, with any other node, whose present state `at` gives. `leases`
/// holds the uses of all, those of `node` included.
std::optional<Conflict> find_conflict(std::span<const GraphNode> nodes, const LeaseSet& leases, int32_t index,
                                      const NodeView& node, const std::function<NodeView(int32_t)>& at);
/// The error for a conflict: both nodes and the array by name.
Error missing_order(ErrorKind kind, std::string_view code, const NodeView& node, const NodeView& other,
                    const Conflict& c);

}  // namespace gk::exec
