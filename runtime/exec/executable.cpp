#include "runtime/exec/executable.h"

#include <fmt/format.h>

#include <algorithm>

namespace gk::exec {

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::~Executable() = default;
UpdateRung Executable::last_update() const { return impl_->rung; }
std::string Executable::last_update_reason() const { return impl_->reason; }
int64_t Executable::arena_bytes() const { return impl_->arena->size_bytes(); }
int64_t Executable::num_leases() const { return impl_->leases.size(); }
int64_t Executable::num_driver_nodes() const { return impl_->driver->num_nodes(); }
const std::vector<GraphNode>& Executable::nodes() const { return impl_->nodes; }

Executable::Impl::~Impl() {
  if (exec == nullptr) return;
  // Launches may be in flight: all that they use is kept until they are done. The executable itself goes
  // first.
  struct Remains {
    std::vector<GraphNode> nodes;
    LeaseSet leases;
    std::shared_ptr<Arena> arena;
    std::shared_ptr<DriverGraph> driver;
    std::unique_ptr<hal::GraphExec> exec;
  };
  auto remains = std::make_shared<Remains>();
  remains->nodes = std::move(nodes);
  remains->leases = std::move(leases);
  remains->arena = std::move(arena);
  remains->driver = std::move(driver);
  remains->exec = std::move(exec);
  core->retire({std::move(remains)});
}

Result<void> Executable::launch(int64_t times) {
  if (!impl_->unusable.empty()) return fail(ErrorKind::Capture, "E0703", impl_->unusable);
  for (const GraphNode& node : impl_->nodes) {
    for (const SlotBinding& slot : node.bindings.slots) {
      GK_CHECK(slot.block->acquire(impl_->core->timeline()));
    }
  }
  impl_->core->mark_busy();
  hal::Stream& stream = impl_->core->stream();
  for (int64_t i = 0; i < times; ++i) GK_CHECK(impl_->exec->launch(stream));
  return {};
}

Result<void> Executable::update(int32_t index, std::shared_ptr<Loaded> program, Bindings bindings) {
  if (index < 0 || static_cast<size_t>(index) >= impl_->nodes.size()) {
    return fail(ErrorKind::Capture, "E0702", fmt::format("the graph has no node {}", index));
  }
  const GraphNode& old = impl_->nodes[static_cast<size_t>(index)];
  if (program == nullptr || program->impl().core != impl_->core) {
    return fail(ErrorKind::Capture, "E0702", "the new program was loaded by another runtime", old.span);
  }
  Impl::Change change;
  change.index = static_cast<size_t>(index);
  change.node = old;
  change.everything = program != old.program;
  change.node.program = std::move(program);
  change.node.bindings = std::move(bindings);
  GK_CHECK(check_bindings(change.node.program->program(), change.node.bindings, old.span));
  if (!change.everything) {
    const Bindings& was = old.bindings;
    const Bindings& now = change.node.bindings;
    for (size_t i = 0; i < now.slots.size(); ++i) {
      change.slots.push_back(was.slots[i].block != now.slots[i].block ||
                             was.slots[i].offset_bytes != now.slots[i].offset_bytes);
    }
    const std::vector<Scalar>& defaults = change.node.program->program().scalars;
    for (size_t i = 0; i < defaults.size(); ++i) {
      const Scalar& a = was.scalars.empty() ? defaults[i] : was.scalars[i];
      const Scalar& b = now.scalars.empty() ? defaults[i] : now.scalars[i];
      change.scalars.push_back(!(a == b));
    }
  }
  std::vector<Impl::Change> changes;
  changes.push_back(std::move(change));
  return impl_->apply(std::move(changes));
}

// Kernels may rely on the alignment that the old memory had, up to a vector's.
static int64_t alignment(const SlotBinding& s) {
  constexpr uintptr_t kMost = 16;
  const uintptr_t at =
      reinterpret_cast<uintptr_t>(s.block->address()) + static_cast<uintptr_t>(s.offset_bytes);
  const uintptr_t lowest = at & (~at + 1);
  return static_cast<int64_t>(lowest == 0 ? kMost : std::min(lowest, kMost));
}

Result<void> Executable::rebind(std::span<const std::pair<SlotBinding, SlotBinding>> pairs) {
  std::vector<const std::pair<SlotBinding, SlotBinding>*> used;
  for (const auto& pair : pairs) {
    if (pair.first.block == nullptr || pair.second.block == nullptr) {
      return fail(ErrorKind::Internal, "E0902", "an array to rebind was not given");
    }
    if (impl_->leases.holds(pair.first.block.get())) used.push_back(&pair);
  }
  std::vector<Impl::Change> changes;
  for (size_t n = 0; n < impl_->nodes.size() && !used.empty(); ++n) {
    const GraphNode& old = impl_->nodes[n];
    Impl::Change* change = nullptr;
    for (size_t s = 0; s < old.bindings.slots.size(); ++s) {
      const SlotBinding& was = old.bindings.slots[s];
      const auto hit = std::find_if(used.begin(), used.end(), [&](const auto* pair) {
        return pair->first.block == was.block && pair->first.offset_bytes == was.offset_bytes;
      });
      if (hit == used.end()) continue;
      const SlotBinding& to = (*hit)->second;
      if (to.block == was.block && to.offset_bytes == was.offset_bytes) continue;
      if (alignment(to) < alignment(was)) {
        return fail(ErrorKind::Capture, "E0702",
                    fmt::format("array '{}' would lie at a less aligned address than before",
                                old.program->program().slots[s].name),
                    old.span);
      }
      if (change == nullptr) {
        change = &changes.emplace_back();
        change->index = n;
        change->node = old;
        change->slots.assign(old.bindings.slots.size(), 0);
        change->scalars.assign(old.program->program().scalars.size(), 0);
      }
      change->slots[s] = 1;
      change->node.bindings.slots[s] = to;
    }
    if (change != nullptr) {
      GK_CHECK(check_bindings(old.program->program(), change->node.bindings, old.span));
    }
  }
  return impl_->apply(std::move(changes));
}

// Everything was validated. All nodes change or none does: see each way out.
Result<void> Executable::Impl::apply(std::vector<Change> changes) {
  core->drain();
  if (!unusable.empty()) return fail(ErrorKind::Capture, "E0703", unusable);
  for (size_t i = 0; i < changes.size(); ++i) {
    if (Result<void> leased = leases.add(changes[i].node.bindings, changes[i].node.span); !leased) {
      for (size_t k = 0; k < i; ++k) leases.remove(changes[k].node.bindings, nullptr);
      return leased;
    }
  }
  const auto refuse = [&](Error e) {
    for (const Change& c : changes) leases.remove(c.node.bindings, nullptr);
    return tl::unexpected<Error>(std::move(e));
  };
  std::string why;
  for (const Change& c : changes) {
    if (why.empty()) {
      why = why_not_patchable(nodes[c.index].program->program(), c.node.program->program(), c.changed());
    }
    const int64_t need = c.node.program->program().arena_bytes;
    if (why.empty() && need > arena->size_bytes()) {
      why = fmt::format("the arena grows from {} to {} bytes", arena->size_bytes(), need);
    }
  }
  if (why.empty()) {
    int64_t patched = 0;
    Result<void> done = patch_all(changes, patched);
    if (done) {
      rung = patched > 0 ? UpdateRung::Patched : UpdateRung::None;
      reason.clear();
      commit(std::move(changes), {});
      return {};
    }
    // What the driver refuses to patch may be built anew; else all goes back.
    if (Result<void> rebuilt = rebuild(changes, "the driver refused: " + done.error().message); !rebuilt) {
      if (Result<void> back = restore(changes); !back) {
        unusable = "an update failed, and so did taking it back: " + back.error().message;
      }
      return refuse(std::move(rebuilt).error());
    }
    return {};
  }
  if (Result<void> rebuilt = rebuild(changes, std::move(why)); !rebuilt) {
    return refuse(std::move(rebuilt).error());
  }
  return {};
}

Result<void> Executable::Impl::patch_all(const std::vector<Change>& changes, int64_t& patched) {
  for (const Change& c : changes) {
    GK_CHECK(patch(*exec, frame(c.node), driver->ids(c.index), c.changed(), patched));
  }
  return {};
}

Result<void> Executable::Impl::restore(const std::vector<Change>& changes) {
  int64_t patched = 0;
  for (const Change& c : changes) {
    GK_CHECK(patch(*exec, frame(nodes[c.index]), driver->ids(c.index), c.changed(), patched));
  }
  return {};
}

// Builds another driver graph with the changes in it. The old one serves until the new one is there.
Result<void> Executable::Impl::rebuild(const std::vector<Change>& changes, std::string why) {
  std::vector<GraphNode> after = nodes;
  for (const Change& c : changes) after[c.index] = c.node;
  std::shared_ptr<Arena> new_arena = arena;
  if (const int64_t need = arena_need(after); need > arena->size_bytes()) {
    GK_TRY(new_arena, make_arena(*core, need));
  }
  GK_TRY(std::shared_ptr<DriverGraph> new_driver, DriverGraph::build(*core, after, new_arena->address()));
  GK_TRY(std::unique_ptr<hal::GraphExec> new_exec, new_driver->instantiate());
  Kept kept;
  kept.push_back(std::shared_ptr<hal::GraphExec>(std::move(exec)));
  kept.push_back(driver);
  kept.push_back(arena);
  driver = std::move(new_driver);
  arena = std::move(new_arena);
  exec = std::move(new_exec);
  rung = UpdateRung::Reinstantiated;
  reason = std::move(why);
  commit(changes, std::move(kept));
  return {};
}

// The new bindings have their leases; those that only the old ones needed end when launches in flight are
// done.
void Executable::Impl::commit(std::vector<Change> changes, Kept kept) {
  for (Change& c : changes) {
    GraphNode& node = nodes[c.index];
    leases.remove(node.bindings, &kept);
    if (node.program != c.node.program) kept.push_back(node.program);
    node = std::move(c.node);
  }
  if (!kept.empty()) core->retire(std::move(kept));
}

}  // namespace gk::exec
