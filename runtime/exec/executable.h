// The insides of executables: what a launch and an update need. Owns nothing beyond what Executable owns. Not
// for other folders.
#pragma once

#include "runtime/exec/graph.h"
#include "runtime/exec/patch.h"

namespace gk::exec {

struct Executable::Impl {
  /// What a node is to be, and which of its steps that changes.
  struct Change {
    size_t index = 0;
    std::shared_ptr<Loaded> program;
    Bindings bindings;
    PlacedPtr placed;
    Marks slots, scalars;        // changed ones; unused when the program is another
    bool arena = false;          // another block, in `placed`
    memory::BlockPtr old_arena;  // then: the one before, where it was the node's own
    bool everything = false;
    Changed changed() const { return {arena, &slots, &scalars, everything}; }
  };
  ~Impl();
  /// Leaves the driver's object to the next graph of the same program. False: that cannot be.
  bool park();
  void set_nodes(std::vector<GraphNode> all, std::vector<PlacedPtr> their_places);
  Result<void> close();
  Result<void> usable() const;
  /// Orders `rt`'s stream after what used the memory last.
  Result<void> acquire(Runtime::Impl& rt);

  // update.cpp
  Result<void> apply(std::span<Change> changes, std::string_view code);
  Result<void> climb(std::span<const Change> changes, std::string why, bool patched_some);
  Result<void> patch_all(std::span<const Change> changes, int64_t& patched);
  Result<void> restore(std::span<const Change> changes);
  void commit(std::span<Change> changes);
  Result<void> check_order(std::span<const Change> changes, std::string_view code) const;
  /// Of a node or a change.
  template <class Node>
  Frame frame(const Node& n, const Placed& p) const {
    return frame_of(n.program->impl(), n.bindings, p.arena != nullptr ? p.arena->address() : arena->address(),
                    faults->address());
  }
  /// The executable was replaced or is to go: the driver's object is destroyed now. Where that fails, all
  /// that it may use is kept for good.
  Result<void> destroy(std::unique_ptr<hal::GraphExec> old);

  std::shared_ptr<Core> core;
  std::shared_ptr<Faults> faults;
  bool may_report = false;           // some node has a check that may find a fault
  memory::Timeline* home = nullptr;  // as the graph's
  bool planned = false;
  std::vector<GraphNode> nodes;
  std::vector<PlacedPtr> placed;
  LeaseSet leases;
  std::shared_ptr<Arena> arena;
  std::shared_ptr<DriverGraph> driver;
  std::unique_ptr<hal::GraphExec> exec;  // goes before the driver graph that it came from
  int64_t num_driver_nodes = 0;
  int64_t temporary_bytes = 0;  // of a recorded graph's, which have blocks instead of an arena
  UpdateRung rung = UpdateRung::None;
  std::string reason;
  Walker walker;         // of patches: its buffers
  std::string unusable;  // why launches are refused; empty: they are not

  // Of the last launch: while both stand, everything leased is the timeline's, but for what is new since.
  memory::Timeline* timeline = nullptr;
  uint64_t departures = kStale;
  static constexpr uint64_t kStale = ~uint64_t{0};
  std::vector<const memory::Block*> fresh;  // those that are leased still are to be acquired
  void add_fresh(const memory::BlockPtr& b);
};

}  // namespace gk::exec
