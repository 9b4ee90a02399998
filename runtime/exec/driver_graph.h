// The driver's side of a graph: a straight line of driver nodes made from declared nodes, and the ways to
// point an executable's nodes elsewhere. Owns the driver graph and keeps the code that its nodes name.
// Promises that operation k of node i is driver node ids(i)[k] for as long as an executable made from it
// lives.
#pragma once

#include "runtime/exec/walk.h"

namespace gk::exec {

/// The memory that a graph's temporaries lie in. One executable uses it at a time.
struct Arena {
  memory::BlockPtr block;  // null: no temporaries
  void* address() const { return block != nullptr ? block->address() : nullptr; }
  int64_t size_bytes() const { return block != nullptr ? block->size_bytes() : 0; }
};
Result<std::shared_ptr<Arena>> make_arena(Core& core, int64_t size_bytes);

class DriverGraph {
 public:
  static Result<std::shared_ptr<DriverGraph>> build(Core& core, std::span<const GraphNode> nodes,
                                                    void* arena);
  Result<std::unique_ptr<hal::GraphExec>> instantiate() { return graph_->instantiate(); }
  const std::vector<hal::NodeId>& ids(size_t node) const { return ids_[node]; }
  int64_t num_nodes() const { return graph_->num_nodes(); }
  int64_t num_edges() const { return graph_->num_edges(); }

 private:
  std::unique_ptr<hal::Graph> graph_;
  std::vector<std::vector<hal::NodeId>> ids_;
  std::vector<std::shared_ptr<Loaded>> programs_;
};

/// Which steps of a node an update touches; null members: all.
struct Changed {
  bool arena = false;
  const std::vector<char>* slots = nullptr;
  const std::vector<char>* scalars = nullptr;
  bool everything = false;
  bool touches(const program::Step& s) const;
};

/// Points the operations of one node at what `frame` gives. Steps that `changed` does not touch are left
/// alone; `ids` are those of the node's operations in order. Counts what it patched.
Result<void> patch(hal::GraphExec& exec, const Frame& frame, const std::vector<hal::NodeId>& ids,
                   const Changed& changed, int64_t& patched);

/// Why the operations of `from` cannot be patched into those of `to`; empty: they can.
std::string why_not_patchable(const program::Program& from, const program::Program& to,
                              const Changed& changed);

}  // namespace gk::exec
