// Graphs of nodes known in advance: validation, leases, the planned arena, the driver graph; and executables
// from any graph.
#include "runtime/exec/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/exec/executable.h"

namespace gk::exec {
namespace {

Result<void> check_nodes(Core& core, const std::vector<GraphNode>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    if (node.program == nullptr) {
      return fail(ErrorKind::Internal, "E0902", fmt::format("graph node '{}' has no program", node.name),
                  node.span);
    }
    if (node.program->impl().core.get() != &core) {
      return fail(ErrorKind::Capture, "E0717",
                  fmt::format("the program of graph node '{}' was loaded by another engine", node.name),
                  node.span);
    }
    for (int32_t a : node.after) {
      if (a < 0 || static_cast<size_t>(a) >= i) {
        return fail(ErrorKind::Capture, "E0704",
                    fmt::format("graph node '{}' can only come after nodes declared before it", node.name),
                    node.span);
      }
    }
    GK_CHECK(check_bindings(node.program->program(), node.bindings, node.span));
  }
  return {};
}

/// Whether a driver graph of these can have several executables at once: the driver makes one at a time of a
/// graph with conditional nodes.
bool is_sharable(std::span<const GraphNode> nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [](const GraphNode& n) {
    return n.program == nullptr ||
           std::all_of(n.program->program().steps.begin(), n.program->program().steps.end(),
                       [](const program::Step& s) { return s.bodies.empty(); });
  });
}

/// Gives a new executable a driver graph of its own.
Result<void> build_own(Executable::Impl& e) {
  if (const std::string why = why_not_repeatable(e.nodes, e.placed); !why.empty()) {
    return fail(
        ErrorKind::Capture, "E0705",
        "a graph with conditional nodes has one executable at a time unless it can be recorded again: " +
            why);
  }
  GK_TRY(e.driver, DriverGraph::build(*e.core, e.nodes, e.placed, e.arena->address(), e.faults->address()));
  GK_TRY(e.exec, e.driver->instantiate());
  return {};
}

/// Gives a new executable temporaries of its own in the place of the graph's.
Result<void> own_temporaries(Executable::Impl& e, const std::vector<memory::BlockPtr>& of_graph) {
  LeaseSet::Instead instead;
  for (const memory::BlockPtr& b : of_graph) {
    GK_TRY(instead[b.get()],
           e.core->pool().allocate(b->size_bytes(), hal::Placement::Device, e.core->orderly(e.home)));
  }
  const auto replace = [&](memory::BlockPtr& b) {
    const auto it = instead.find(b.get());
    if (it == instead.end()) return false;
    b = it->second;
    return true;
  };
  for (GraphNode& n : e.nodes) {
    for (SlotBinding& s : n.bindings.slots) (void)replace(s.block);
  }
  for (PlacedPtr& p : e.placed) {
    Placed now = *p;
    if (replace(now.arena)) p = std::make_shared<const Placed>(std::move(now));
  }
  GK_TRY(e.leases, e.leases.clone(instead));
  return {};
}

/// Points the nodes of a new executable at an arena of its own.
Result<void> move_arena(Executable::Impl& e) {
  Changed changed;
  changed.arena = true;
  const bool patchable = std::all_of(e.nodes.begin(), e.nodes.end(), [&](const GraphNode& n) {
    return n.program == nullptr ||
           why_not_patchable(n.program->program(), n.program->program(), changed, e.exec->can_set_library())
               .empty();
  });
  if (!patchable) return build_own(e);
  int64_t patched = 0;
  std::lock_guard lock(e.driver->mutex);
  for (size_t i = 0; i < e.nodes.size(); ++i) {
    if (e.nodes[i].program == nullptr || e.placed[i]->arena != nullptr) continue;
    GK_CHECK(patch(*e.exec, e.walker, e.frame(e.nodes[i], *e.placed[i]), e.placed[i]->ids, changed, patched));
  }
  return {};
}

}  // namespace

int64_t arena_need(std::span<const GraphNode> nodes, std::span<const PlacedPtr> placed) {
  // The driver graph is a straight line: temporaries of two nodes never live at the same time.
  int64_t most = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].program != nullptr && placed[i]->arena == nullptr) {
      most = std::max(most, nodes[i].program->program().arena_bytes);
    }
  }
  return most;
}

Result<void> Graph::Impl::build() {
  if (driver != nullptr) return {};
  GK_TRY(driver, DriverGraph::build(*core, nodes, placed, arena->address(), faults->address()));
  num_driver_nodes = driver->graph().num_nodes();
  return {};
}

Graph::Impl::~Impl() {
  if (ready) core->spares().put(core, nodes[0].program->impl(), std::move(*ready));
}

namespace {

/// Makes the executable of a spare one. False, and it is ended: the driver refuses.
bool revive(Executable::Impl& e, Spare s) {
  e.driver = std::move(s.driver);
  e.exec = std::move(s.exec);
  e.placed = {std::move(s.placed)};
  e.timeline = s.timeline;
  Changed all;
  all.everything = true;
  int64_t patched = 0;
  Result<void> done;
  {
    std::lock_guard lock(e.driver->mutex);
    done = patch(*e.exec, e.walker, e.frame(e.nodes[0], *e.placed[0]), e.placed[0]->ids, all, patched);
    if (done) e.driver->keep(e.nodes[0].program);
  }
  if (done) return true;
  (void)e.destroy(std::move(e.exec));
  e.driver.reset();
  return false;
}

}  // namespace

Graph::Graph(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Graph::~Graph() = default;
const std::vector<GraphNode>& Graph::nodes() const { return impl_->nodes; }
const std::string& Graph::name() const { return impl_->name; }
int64_t Graph::num_leases() const { return impl_->num_leases; }

Result<std::shared_ptr<Graph>> Graph::create(Runtime& rt, std::vector<GraphNode> nodes, std::string name) {
  Runtime::Impl& r = rt.impl();
  GK_CHECK(check_nodes(*r.core, nodes));
  auto impl = std::make_shared<Impl>();
  impl->core = r.core;
  impl->faults = r.faults;
  impl->planned = true;
  impl->home = r.foreign ? nullptr : r.timeline;
  impl->name = std::move(name);
  for (size_t i = 0; i < nodes.size(); ++i) {
    GK_CHECK(impl->leases.add(static_cast<int32_t>(i), nodes[i].bindings, nodes[i].span));
  }
  impl->placed.assign(nodes.size(), std::make_shared<const Placed>());
  GK_TRY(impl->arena, make_arena(*r.core, r.timeline, arena_need(nodes, impl->placed)));
  impl->nodes = std::move(nodes);
  impl->num_leases = impl->leases.size();
  if (impl->nodes.size() == 1) impl->ready = r.core->spares().take(impl->nodes[0].program->impl());
  if (impl->ready) {
    impl->num_driver_nodes = impl->ready->num_driver_nodes;
  } else {
    GK_CHECK(impl->build());
  }
  return std::make_shared<Graph>(std::move(impl));
}

Result<std::shared_ptr<Executable>> Graph::instantiate() {
  Impl& g = *impl_;
  if (g.of_the_host) {
    return fail(ErrorKind::Capture, "E0707",
                "this was recorded into a graph of the host program's, which instantiates that itself");
  }
  std::lock_guard lock(g.mutex);
  if (g.extending) {
    return fail(ErrorKind::Capture, "E0718", fmt::format("the graph '{}' is being added to", g.name));
  }
  if (!g.broken.empty()) return fail(ErrorKind::Capture, "E0715", g.broken);
  auto e = std::make_unique<Executable::Impl>();
  e->core = g.core;
  e->faults = g.faults;
  e->home = g.home;
  e->planned = g.planned;
  GK_TRY(e->leases, g.leases.clone());
  if (g.ready) {
    e->set_nodes(g.nodes, g.placed);
    Spare s = std::move(*g.ready);
    g.ready.reset();
    e->arena = g.arena;
    e->num_driver_nodes = s.num_driver_nodes;
    if (revive(*e, std::move(s))) return std::make_shared<Executable>(std::move(e));
  }
  GK_CHECK(g.build());
  e->set_nodes(g.nodes, g.placed);
  const bool taken = g.driver.use_count() > 1;  // an executable of it may be there
  // The driver graph's nodes name the graph's own arena, which the first executable gets; other ones are
  // pointed at an arena of their own.
  const bool own_arena = g.arena.use_count() > 1 && g.arena->block != nullptr;
  e->arena = g.arena;
  if (own_arena) {
    GK_TRY(e->arena, make_arena(*g.core, g.core->orderly(g.home), g.arena->size_bytes()));
  }
  // Temporaries that others see as well are not dead: all executables have those in common. So do they where
  // work that is not ours knows the addresses.
  e->temporary_bytes = g.temporary_bytes();
  const bool replaced = taken && !g.spare.empty() && why_not_repeatable(g.nodes, g.placed).empty();
  if (replaced) GK_CHECK(own_temporaries(*e, g.spare));
  if (replaced || (taken && !is_sharable(g.nodes))) {
    GK_CHECK(build_own(*e));
  } else {
    e->driver = g.driver;
    GK_TRY(e->exec, g.driver->instantiate());
    if (own_arena) GK_CHECK(move_arena(*e));
  }
  e->num_driver_nodes = g.num_driver_nodes;
  return std::make_shared<Executable>(std::move(e));
}

}  // namespace gk::exec
