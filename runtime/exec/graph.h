// The insides of a graph. Owns nothing beyond what Graph owns. Under its mutex, but for what never changes
// once the graph is made. Not for other folders.
#pragma once

#include "runtime/exec/driver_graph.h"
#include "runtime/exec/leases.h"
#include "runtime/exec/spares.h"

namespace gk::exec {

struct Graph::Impl {
  std::shared_ptr<Core> core;
  std::shared_ptr<Faults> faults;  // of the runtime that it was made by
  std::string name;
  memory::Timeline* home = nullptr;  // of that runtime, where it is our own; for memory of executables
  bool planned = false;              // its nodes were known in advance
  bool of_the_host = false;          // recorded into a graph of the host program's, which instantiates it

  std::mutex mutex;  // all below
  bool extending = false;
  std::string broken;  // why it cannot be used; empty: it can
  std::vector<GraphNode> nodes;
  std::vector<PlacedPtr> placed;  // one a node
  LeaseSet leases;
  std::shared_ptr<Arena> arena;         // the planned one, which the driver graph's nodes name
  std::shared_ptr<DriverGraph> driver;  // null: nobody has needed it
  std::optional<Spare> ready;           // for the first executable
  std::vector<memory::BlockPtr> spare;  // temporaries that are dead at the end; leased
  int64_t temporary_bytes() const {
    int64_t bytes = 0;
    for (const memory::BlockPtr& b : spare) bytes += b->size_bytes();
    return bytes;
  }
  /// Makes the driver graph, where it is not there.
  Result<void> build();
  ~Impl();
  int64_t num_leases = 0, num_driver_nodes = 0;
  int64_t num_driver_edges = 0;  // of a recorded one; a planned one's are counted when somebody asks
};

/// Bytes of temporaries that planned nodes need together.
int64_t arena_need(std::span<const GraphNode> nodes, std::span<const PlacedPtr> placed);

}  // namespace gk::exec
