// The insides of graphs and executables: leases counted by use, and the state an update changes. Owns nothing
// beyond what Graph and Executable own. Not for other folders.
#pragma once

#include <unordered_map>

#include "runtime/exec/driver_graph.h"

namespace gk::exec {

/// One lease a distinct block, however many slots name it.
class LeaseSet {
 public:
  /// Leases every block of `b`; on failure the set is as before. Errors: Lease E0602.
  Result<void> add(const Bindings& b, Span span);
  /// Takes the uses of `b` back; leases that end go into `kept` when given, else end now.
  void remove(const Bindings& b, Kept* kept);
  int64_t size() const { return static_cast<int64_t>(held_.size()); }
  bool holds(const memory::Block* b) const { return held_.contains(b); }

 private:
  struct Held {
    memory::Lease lease;
    int64_t uses = 0;
  };
  void drop(const memory::Block* b, Kept* kept);
  std::unordered_map<const memory::Block*, Held> held_;
};

/// Bytes of temporaries that the nodes need together.
int64_t arena_need(std::span<const GraphNode> nodes);

struct Graph::Impl {
  std::shared_ptr<Core> core;
  std::string name;
  std::vector<GraphNode> nodes;
  LeaseSet leases;
  std::shared_ptr<Arena> arena;  // the one that the driver graph's nodes name
  std::shared_ptr<DriverGraph> driver;
};

struct Executable::Impl {
  /// A node as it is to be, and which of its steps that changes.
  struct Change {
    size_t index = 0;
    GraphNode node;
    std::vector<char> slots, scalars;  // changed ones; unused when the program is another
    bool everything = false;
    Changed changed() const { return {false, &slots, &scalars, everything}; }
  };
  ~Impl();
  Result<void> apply(std::vector<Change> changes);
  Result<void> patch_all(const std::vector<Change>& changes, int64_t& patched);
  Result<void> restore(const std::vector<Change>& changes);
  Result<void> rebuild(const std::vector<Change>& changes, std::string reason);
  void commit(std::vector<Change> changes, Kept kept);
  Frame frame(const GraphNode& n) const {
    return {&n.program->impl(), &n.bindings, arena->address(), core->faults()};
  }

  std::shared_ptr<Core> core;
  std::vector<GraphNode> nodes;
  LeaseSet leases;
  std::shared_ptr<Arena> arena;
  std::shared_ptr<DriverGraph> driver;
  std::unique_ptr<hal::GraphExec> exec;  // goes before the driver graph that it came from
  UpdateRung rung = UpdateRung::None;
  std::string reason;
  std::string unusable;  // why launches are refused; empty: they are not
};

}  // namespace gk::exec
