// The driver's side of a graph: a straight line of driver nodes made from the nodes of a graph. Owns the
// driver graph and keeps the code that its nodes name. Promises that operation k of a node is driver node
// ids[k] for as long as an executable made from it lives. The driver's objects are not thread-safe: whoever
// adds, patches or instantiates holds the mutex.
#pragma once

#include <mutex>

#include "runtime/exec/core.h"
#include "runtime/exec/walk.h"

namespace gk::exec {

/// The memory that a planned graph's temporaries lie in. Executables that share one are ordered by launch().
struct Arena {
  memory::BlockPtr block;  // null: nothing was planned
  void* address() const { return block != nullptr ? block->address() : nullptr; }
  int64_t size_bytes() const { return block != nullptr ? block->size_bytes() : 0; }
};
Result<std::shared_ptr<Arena>> make_arena(Core& core, memory::Timeline* t, int64_t size_bytes);

/// What the driver was given for a node.
struct Placed {
  std::vector<hal::NodeId> ids;  // of its operations, in the walker's order
  memory::BlockPtr arena;        // of this node's temporaries; null: the planned one
  std::function<void()> host_call;
  bool captured = false;  // the host program's own work, which nobody but it can record again
};
using PlacedPtr = std::shared_ptr<const Placed>;

class DriverGraph {
 public:
  explicit DriverGraph(std::unique_ptr<hal::Graph> graph) : graph_(std::move(graph)) {}
  /// A new one of the same nodes; `placed` gets the ids in it. None of them was captured.
  static Result<std::shared_ptr<DriverGraph>> build(Core& core, std::span<const GraphNode> nodes,
                                                    std::vector<PlacedPtr>& placed, void* arena,
                                                    void* faults);
  hal::Graph& graph() { return *graph_; }
  Result<std::unique_ptr<hal::GraphExec>> instantiate() {
    std::lock_guard lock(mutex);
    return graph_->instantiate();
  }
  void keep(std::shared_ptr<Loaded> p) { programs_.push_back(std::move(p)); }
  size_t kept() const { return programs_.size(); }
  void forget(size_t count) { programs_.resize(count); }  // all but the first `count`
  const std::vector<std::shared_ptr<Loaded>>& programs() const { return programs_; }

  std::mutex mutex;
  hal::NodeId last = -1;  // what later nodes come after

 private:
  std::unique_ptr<hal::Graph> graph_;
  std::vector<std::shared_ptr<Loaded>> programs_;
};

/// Adds the operations of a node after `last`, which then is its last one.
Result<std::vector<hal::NodeId>> record(hal::Graph& g, const GraphNode& node, const Placed& placed,
                                        void* arena, void* faults, hal::NodeId& last);

/// Why the nodes cannot be recorded once more; empty: they can.
std::string why_not_repeatable(std::span<const GraphNode> nodes, std::span<const PlacedPtr> placed);

}  // namespace gk::exec
