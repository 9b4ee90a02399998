// Changing an executable. Everything is validated first; then the ladder: patch its nodes in place, else give
// it all parameters of a graph built anew, else make another one of that graph. All nodes change or none
// does: each way out of apply() and climb() says how.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "runtime/exec/executable.h"
#include "runtime/exec/order.h"

namespace gk::exec {
namespace {

constexpr int64_t kVector = 16;  // bytes that kernels load at once at most

// Kernels may rely on the alignment that the old memory had, up to a vector's.
int64_t alignment(const SlotBinding& s) {
  const uintptr_t at =
      reinterpret_cast<uintptr_t>(s.block->address()) + static_cast<uintptr_t>(s.offset_bytes);
  const uintptr_t lowest = at & (~at + 1);
  return lowest == 0 ? kVector : std::min(static_cast<int64_t>(lowest), kVector);
}

bool same(const SlotBinding& a, const SlotBinding& b) {
  return a.block == b.block && a.offset_bytes == b.offset_bytes;
}

/// A node's kernels count on what they write being nothing else that they are given.
Result<void> check_apart(const GraphNode& node, const Loaded::Impl& program, const Bindings& b,
                         const Marks& changed) {
  for (size_t i = 0; i < b.slots.size(); ++i) {
    if (!changed.has(i)) continue;
    for (size_t j = 0; j < b.slots.size(); ++j) {
      const SlotUse &a = program.uses[i], &c = program.uses[j];
      if (i == j || !(a.written || c.written) || !(a.read || a.written) || !(c.read || c.written)) continue;
      if (!share_bytes(b.slots[i], a, b.slots[j], c)) continue;
      const std::vector<program::Slot>& slots = program.program->slots;
      return fail(make_error(ErrorKind::Capture, "E0706",
                             fmt::format("arrays `{}` and `{}` of a node would share memory, and one of them "
                                         "is written",
                                         slots[i].name, slots[j].name),
                             node.span));
    }
  }
  return {};
}

/// Of all operations in order, who made them; `ids` gets their nodes.
std::string kinds(const std::vector<PlacedPtr>& placed, std::vector<hal::NodeId>& ids) {
  std::string out;
  for (const PlacedPtr& p : placed) {
    ids.insert(ids.end(), p->ids.begin(), p->ids.end());
    out.append(p->ids.size(), p->captured ? 'c' : p->host_call ? 'h' : 'o');
  }
  return out;
}

Failure opaque(const GraphNode& n, std::string_view code) {
  return fail(ErrorKind::Capture, code,
              fmt::format("node '{}' is work that gk did not make, which only runs", n.name), n.span);
}

}  // namespace

Result<void> Executable::update(int32_t index, std::shared_ptr<Loaded> program, Bindings bindings) {
  Impl& e = *impl_;
  GK_CHECK(e.usable());
  if (index < 0 || static_cast<size_t>(index) >= e.nodes.size()) {
    return fail(ErrorKind::Capture, "E0704", fmt::format("the graph has no node {}", index));
  }
  const GraphNode& old = e.nodes[static_cast<size_t>(index)];
  if (program == nullptr) return fail(ErrorKind::Internal, "E0902", "no program for the node", old.span);
  if (program->impl().core != e.core) {
    return fail(ErrorKind::Capture, "E0717", "the new program was loaded by another engine", old.span);
  }
  if (old.program == nullptr) return opaque(old, "E0705");
  Impl::Change change;
  change.index = static_cast<size_t>(index);
  change.placed = e.placed[change.index];
  change.everything = program != old.program;
  change.program = std::move(program);
  change.bindings = std::move(bindings);
  const program::Program& p = change.program->program();
  GK_CHECK(check_bindings(p, change.bindings, old.span));
  if (!change.everything) {
    const Bindings& was = old.bindings;
    const Bindings& now = change.bindings;
    for (size_t i = 0; i < now.slots.size(); ++i) {
      if (!same(was.slots[i], now.slots[i])) change.slots.set(i);
    }
    for (size_t i = 0; i < p.scalars.size(); ++i) {
      const Scalar& a = was.scalars.empty() ? p.scalars[i] : was.scalars[i];
      const Scalar& b = now.scalars.empty() ? p.scalars[i] : now.scalars[i];
      if (!(a == b)) change.scalars.set(i);
    }
  }
  // The planned arena may grow where the graph can be built anew; else temporaries that do not fit where the
  // old ones lay get a block of the node's own.
  const bool planned = change.placed->arena == nullptr && e.planned;
  const int64_t room = planned                           ? e.arena->size_bytes()
                       : change.placed->arena != nullptr ? change.placed->arena->size_bytes()
                                                         : 0;
  if (p.arena_bytes > room && !(planned && why_not_repeatable(e.nodes, e.placed).empty())) {
    Placed moved = *change.placed;
    GK_TRY(moved.arena,
           e.core->pool().allocate(p.arena_bytes, hal::Placement::Device, e.core->orderly(e.home)));
    change.old_arena = change.placed->arena;
    change.placed = std::make_shared<const Placed>(std::move(moved));
    change.arena = true;
  }
  return e.apply({&change, 1}, "E0705");
}

Result<void> Executable::rebind(std::span<const std::pair<SlotBinding, SlotBinding>> pairs) {
  Impl& e = *impl_;
  GK_CHECK(e.usable());
  std::vector<Impl::Change> changes;
  std::unordered_map<int32_t, size_t> change_of;  // by node
  for (const auto& [from, to] : pairs) {
    if (from.block == nullptr || to.block == nullptr) {
      return fail(ErrorKind::Internal, "E0902", "an array to rebind was not given");
    }
    const LeaseSet::Held* held = e.leases.find(from.block.get());
    bool used = false;
    for (const Use& use : held == nullptr ? std::span<const Use>() : std::span<const Use>(held->uses)) {
      if (use.slot < 0 || use.epoch != held->epoch) continue;
      const auto slot = static_cast<size_t>(use.slot);
      const GraphNode& old = e.nodes[static_cast<size_t>(use.node)];
      const SlotBinding& was = old.bindings.slots[slot];
      if (was.offset_bytes != from.offset_bytes) continue;
      used = true;
      if (same(from, to)) break;
      if (alignment(to) < alignment(was)) {
        return fail(ErrorKind::Capture, "E0706",
                    fmt::format("array '{}' would lie at a less aligned address than before",
                                old.program->program().slots[slot].name),
                    old.span);
      }
      const auto [it, added] = change_of.try_emplace(use.node, changes.size());
      if (added) {
        Impl::Change& change = changes.emplace_back();
        change.index = static_cast<size_t>(use.node);
        change.program = old.program;
        change.bindings = old.bindings;
        change.placed = e.placed[change.index];
      }
      Impl::Change& change = changes[it->second];
      // The first of several pairs for one array counts.
      if (change.slots.has(slot)) continue;
      change.slots.set(slot);
      change.bindings.slots[slot] = to;
    }
    if (!used) {
      return fail(ErrorKind::Capture, "E0706",
                  "the executable does not use the array that is to be replaced");
    }
  }
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  for (const Impl::Change& c : changes) {
    GK_CHECK(check_bindings(c.program->program(), c.bindings, e.nodes[c.index].span));
    GK_CHECK(check_apart(e.nodes[c.index], c.program->impl(), c.bindings, c.slots));
  }
  return e.apply(changes, "E0706");
}

Result<void> Executable::Impl::check_order(std::span<const Change> changes, std::string_view code) const {
  const auto view = [&](const Change& c) { return NodeView(nodes[c.index], c.program.get(), c.bindings); };
  const auto at = [&](int32_t i) -> NodeView {
    const auto change = std::lower_bound(changes.begin(), changes.end(), static_cast<size_t>(i),
                                         [](const Change& c, size_t index) { return c.index < index; });
    const bool changed = change != changes.end() && change->index == static_cast<size_t>(i);
    return changed ? view(*change) : NodeView(nodes[static_cast<size_t>(i)]);
  };
  for (const Change& c : changes) {
    const auto conflict = find_conflict(nodes, leases, static_cast<int32_t>(c.index), view(c), std::cref(at));
    if (!conflict) continue;
    return fail(missing_order(ErrorKind::Capture, code, view(c), at(conflict->other), *conflict));
  }
  return {};
}

Result<void> Executable::Impl::apply(std::span<Change> changes, std::string_view code) {
  const auto drop = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const Change& c = changes[i];
      leases.remove(static_cast<int32_t>(c.index), c.bindings, &nodes[c.index].bindings);
      if (c.arena) leases.remove(c.placed->arena.get(), static_cast<int32_t>(c.index), Use::kArena);
    }
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const Change& c = changes[i];
    const auto index = static_cast<int32_t>(c.index);
    const GraphNode& old = nodes[c.index];
    Result<void> leased = leases.add(index, c.bindings, old.span, &old.bindings);
    if (leased && c.arena) {
      leased = leases.add(c.placed->arena, index, Use::kArena, old.span);
      if (!leased) leases.remove(index, c.bindings, &old.bindings);
    }
    if (!leased) {
      drop(i);
      return leased;
    }
  }
  const auto refuse = [&](Error e) {
    drop(changes.size());
    return fail(std::move(e));
  };
  if (Result<void> ordered = check_order(changes, code); !ordered) return refuse(std::move(ordered).error());
  std::string why;
  for (const Change& c : changes) {
    if (why.empty()) {
      why = why_not_patchable(nodes[c.index].program->program(), c.program->program(), c.changed(),
                              exec->can_set_library());
    }
    const int64_t need = c.program->program().arena_bytes;
    if (why.empty() && c.placed->arena == nullptr && need > arena->size_bytes()) {
      why = fmt::format("the arena grows from {} to {} bytes", arena->size_bytes(), need);
    }
  }
  bool patched_some = false;
  if (why.empty()) {
    int64_t patched = 0;
    const Result<void> done = patch_all(changes, patched);
    if (done) {
      rung = patched > 0 ? UpdateRung::Patched : UpdateRung::None;
      reason.clear();
      commit(changes);
      return {};
    }
    why = "the driver refused: " + done.error().message;
    patched_some = true;
  }
  if (Result<void> built = climb(changes, std::move(why), patched_some); !built) {
    return refuse(std::move(built).error());
  }
  commit(changes);
  return {};
}

Result<void> Executable::Impl::patch_all(std::span<const Change> changes, int64_t& patched) {
  std::lock_guard lock(driver->mutex);
  for (const Change& c : changes) {
    GK_CHECK(patch(*exec, walker, frame(c, *c.placed), placed[c.index]->ids, c.changed(), patched));
  }
  return {};
}

// What some patches have changed is changed back: by patches, or by all parameters at once.
Result<void> Executable::Impl::restore(std::span<const Change> changes) {
  const auto patch_back = [&]() -> Result<void> {
    int64_t patched = 0;
    std::lock_guard lock(driver->mutex);
    for (const Change& c : changes) {
      GK_CHECK(patch(*exec, walker, frame(nodes[c.index], *placed[c.index]), placed[c.index]->ids,
                     c.changed(), patched));
    }
    return {};
  };
  Result<void> back = patch_back();
  if (back || !why_not_repeatable(nodes, placed).empty()) return back;
  std::vector<PlacedPtr> again = placed;
  GK_TRY(const std::shared_ptr<DriverGraph> old,
         DriverGraph::build(*core, nodes, again, arena->address(), faults->address()));
  std::lock_guard lock(driver->mutex);
  return exec->update(old->graph());
}

// The rungs above patching. The old executable serves until another one is there.
Result<void> Executable::Impl::climb(std::span<const Change> changes, std::string why, bool patched_some) {
  const auto refuse = [&](Error e) {
    if (patched_some) {
      if (Result<void> back = restore(changes); !back) {
        unusable = "an update failed, and so did taking it back: " + back.error().message;
      }
    }
    return fail(std::move(e));
  };
  std::vector<GraphNode> after = nodes;
  std::vector<PlacedPtr> after_placed = placed;
  bool same_kinds = true;
  for (const Change& c : changes) {
    same_kinds = same_kinds && same_operations(nodes[c.index].program->program(), c.program->program());
    after[c.index].program = c.program;
    after[c.index].bindings = c.bindings;
    after_placed[c.index] = c.placed;
  }
  if (const std::string never = why_not_repeatable(after, after_placed); !never.empty()) {
    return refuse(make_error(ErrorKind::Capture, "E0705",
                             fmt::format("the update needs the graph built anew ({}), and {}", why, never),
                             nodes[changes.front().index].span));
  }
  std::shared_ptr<Arena> new_arena = arena;
  if (const int64_t need = arena_need(after, after_placed); need > arena->size_bytes()) {
    Result<std::shared_ptr<Arena>> made = make_arena(*core, core->orderly(home), need);
    if (!made) return refuse(std::move(made).error());
    new_arena = std::move(*made);
  }
  Result<std::shared_ptr<DriverGraph>> made =
      DriverGraph::build(*core, after, after_placed, new_arena->address(), faults->address());
  if (!made) return refuse(std::move(made).error());
  const auto take_parameters = [&]() -> Result<void> {
    std::lock_guard lock(driver->mutex);
    return exec->update((*made)->graph());
  };
  Result<void> taken = fail(ErrorKind::Capture, "E0709", "");
  if (same_kinds) {
    taken = take_parameters();
    if (!taken) why += "; " + taken.error().message;
  }
  if (taken) {
    // Nodes go on being those of the graph that the executable came from.
    rung = UpdateRung::GraphUpdated;
  } else {
    Result<std::unique_ptr<hal::GraphExec>> other = (*made)->instantiate();
    if (!other) return refuse(std::move(other).error());
    // Of a failure the core knows; the update has succeeded.
    (void)destroy(std::exchange(exec, std::move(*other)));
    driver = std::move(*made);
    placed = std::move(after_placed);
    num_driver_nodes = driver->graph().num_nodes();
    rung = UpdateRung::Reinstantiated;
  }
  if (new_arena != arena) {
    arena = std::move(new_arena);
    departures = kStale;
  }
  reason = std::move(why);
  return {};
}

// The new bindings have their leases; those that only the old ones needed end now: what launches in flight
// use goes back in their order.
void Executable::Impl::commit(std::span<Change> changes) {
  for (Change& c : changes) {
    const auto index = static_cast<int32_t>(c.index);
    GraphNode& node = nodes[c.index];
    for (size_t i = 0; i < c.bindings.slots.size(); ++i) {
      if (c.everything || c.slots.has(i)) add_fresh(c.bindings.slots[i].block);
    }
    leases.remove(index, node.bindings, &c.bindings);
    if (c.arena) {
      add_fresh(c.placed->arena);
      if (c.old_arena != nullptr) leases.remove(c.old_arena.get(), index, Use::kArena);
      Placed now = *placed[c.index];
      now.arena = c.placed->arena;
      placed[c.index] = std::make_shared<const Placed>(std::move(now));
    }
    may_report = may_report || c.program->program().uses_faults;
    node.program = std::move(c.program);
    node.bindings = std::move(c.bindings);
  }
}

Result<void> Executable::update(const Graph& other) {
  Impl& e = *impl_;
  GK_CHECK(e.usable());
  Graph::Impl& g = *other.impl_;
  if (g.core != e.core) return fail(ErrorKind::Capture, "E0717", "the graph is one of another engine");
  if (g.of_the_host) {
    return fail(ErrorKind::Capture, "E0707", "this was recorded into a graph of the host program's");
  }
  std::lock_guard lock(g.mutex);
  if (g.extending) return fail(ErrorKind::Capture, "E0718", "the graph is being added to");
  if (!g.broken.empty()) return fail(ErrorKind::Capture, "E0715", g.broken);
  GK_CHECK(g.build());
  std::vector<hal::NodeId> mine, theirs;
  const std::string mine_kinds = kinds(e.placed, mine), their_kinds = kinds(g.placed, theirs);
  if (mine.size() != theirs.size()) {
    return fail(
        ErrorKind::Capture, "E0709",
        fmt::format("the executable has {} operations and the other graph {}", mine.size(), theirs.size()));
  }
  if (mine_kinds != their_kinds) {
    return fail(ErrorKind::Capture, "E0709",
                "the executable and the other graph differ in which operations are gk's own");
  }
  GK_TRY(LeaseSet leases, g.leases.clone());
  if (g.driver == e.driver) {
    std::lock_guard lock(g.driver->mutex);
    GK_CHECK(e.exec->update(g.driver->graph()));
  } else {
    std::scoped_lock both(e.driver->mutex, g.driver->mutex);
    GK_CHECK(e.exec->update(g.driver->graph()));
  }
  // Operation by operation, they are the executable's own nodes.
  std::vector<PlacedPtr> placed;
  size_t next = 0;
  for (const PlacedPtr& p : g.placed) {
    Placed now = *p;
    for (hal::NodeId& id : now.ids) id = mine[next++];
    placed.push_back(std::make_shared<const Placed>(std::move(now)));
  }
  e.set_nodes(g.nodes, std::move(placed));
  e.leases = std::move(leases);
  e.arena = g.arena;
  e.planned = g.planned;
  e.temporary_bytes = g.temporary_bytes();
  e.faults = g.faults;
  e.departures = Impl::kStale;
  e.fresh.clear();
  e.rung = UpdateRung::GraphUpdated;
  e.reason = "all nodes are another graph's";
  return {};
}

}  // namespace gk::exec
