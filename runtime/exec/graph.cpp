// Declared graphs: validation, leases, the driver graph.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/exec/executable.h"

namespace gk::exec {

Result<void> LeaseSet::add(const Bindings& b, Span span) {
  for (size_t i = 0; i < b.slots.size(); ++i) {
    Held& held = held_[b.slots[i].block.get()];
    if (held.uses == 0) held.lease = memory::Lease(b.slots[i].block);
    if (held.lease.block() == nullptr) {
      held_.erase(b.slots[i].block.get());
      for (size_t k = 0; k < i; ++k) drop(b.slots[k].block.get(), nullptr);
      return fail(ErrorKind::Lease, "E0602", "memory that the graph uses was given back already", span);
    }
    ++held.uses;
  }
  return {};
}

void LeaseSet::drop(const memory::Block* b, Kept* kept) {
  const auto it = held_.find(b);
  if (it == held_.end() || --it->second.uses > 0) return;
  if (kept != nullptr) kept->push_back(std::make_shared<memory::Lease>(std::move(it->second.lease)));
  held_.erase(it);
}

void LeaseSet::remove(const Bindings& b, Kept* kept) {
  for (const SlotBinding& slot : b.slots) drop(slot.block.get(), kept);
}

static Result<void> check_nodes(Core& core, const std::vector<GraphNode>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    if (node.program == nullptr) {
      return fail(ErrorKind::Capture, "E0701", fmt::format("graph node '{}' has no program", node.name),
                  node.span);
    }
    if (node.program->impl().core.get() != &core) {
      return fail(ErrorKind::Capture, "E0701",
                  fmt::format("graph node '{}' was loaded by another runtime", node.name), node.span);
    }
    for (int32_t a : node.after) {
      if (a < 0 || static_cast<size_t>(a) >= i) {
        return fail(ErrorKind::Capture, "E0701",
                    fmt::format("graph node '{}' can only come after nodes declared before it", node.name),
                    node.span);
      }
    }
    GK_CHECK(check_bindings(node.program->program(), node.bindings, node.span));
  }
  return {};
}

int64_t arena_need(std::span<const GraphNode> nodes) {
  // The driver graph is a straight line: temporaries of two nodes never live at the same time.
  int64_t most = 0;
  for (const GraphNode& n : nodes) most = std::max(most, n.program->program().arena_bytes);
  return most;
}

Graph::Graph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Graph::~Graph() = default;
const std::vector<GraphNode>& Graph::nodes() const { return impl_->nodes; }
const std::string& Graph::name() const { return impl_->name; }

Result<std::shared_ptr<Graph>> Graph::create(Runtime& rt, std::vector<GraphNode> nodes, std::string name) {
  const std::shared_ptr<Core>& core = rt.impl().core;
  core->drain();
  GK_CHECK(check_nodes(*core, nodes));
  auto impl = std::make_unique<Impl>();
  impl->core = core;
  impl->name = std::move(name);
  for (const GraphNode& n : nodes) GK_CHECK(impl->leases.add(n.bindings, n.span));
  GK_TRY(impl->arena, make_arena(*core, arena_need(nodes)));
  GK_TRY(impl->driver, DriverGraph::build(*core, nodes, impl->arena->address()));
  impl->nodes = std::move(nodes);
  return std::make_shared<Graph>(std::move(impl));
}

Result<std::shared_ptr<Executable>> Graph::instantiate() {
  Core& core = *impl_->core;
  core.drain();
  auto e = std::make_unique<Executable::Impl>();
  e->core = impl_->core;
  e->nodes = impl_->nodes;
  for (const GraphNode& n : e->nodes) GK_CHECK(e->leases.add(n.bindings, n.span));
  // The driver graph's nodes name the graph's own arena. It serves one executable at a time; another one's
  // nodes are pointed at an arena of its own.
  const bool own = impl_->arena.use_count() == 1 || impl_->arena->block == nullptr;
  if (own) {
    e->arena = impl_->arena;
    e->driver = impl_->driver;
    GK_TRY(e->exec, e->driver->instantiate());
    return std::make_shared<Executable>(std::move(e));
  }
  GK_TRY(e->arena, make_arena(core, impl_->arena->size_bytes()));
  Changed changed;
  changed.arena = true;
  const bool patchable = std::all_of(e->nodes.begin(), e->nodes.end(), [&](const GraphNode& n) {
    return why_not_patchable(n.program->program(), n.program->program(), changed).empty();
  });
  if (!patchable) {
    GK_TRY(e->driver, DriverGraph::build(core, e->nodes, e->arena->address()));
    GK_TRY(e->exec, e->driver->instantiate());
    return std::make_shared<Executable>(std::move(e));
  }
  e->driver = impl_->driver;
  GK_TRY(e->exec, e->driver->instantiate());
  int64_t patched = 0;
  for (size_t i = 0; i < e->nodes.size(); ++i) {
    const GraphNode& n = e->nodes[i];
    const Frame frame{&n.program->impl(), &n.bindings, e->arena->address(), core.faults()};
    GK_CHECK(patch(*e->exec, frame, e->driver->ids(i), changed, patched));
  }
  return std::make_shared<Executable>(std::move(e));
}

}  // namespace gk::exec
