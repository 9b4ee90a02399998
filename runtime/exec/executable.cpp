#include "runtime/exec/executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/exec/spares.h"

namespace gk::exec {
namespace {

/// What a driver's executable may still use.
struct Used {
  LeaseSet leases;
  std::shared_ptr<Arena> arena;
  std::vector<std::shared_ptr<hal::Module>> code;
  std::shared_ptr<Faults> faults;
};

}  // namespace

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::~Executable() = default;
UpdateRung Executable::last_update() const { return impl_->rung; }
std::string Executable::last_update_reason() const { return impl_->reason; }
int64_t Executable::arena_bytes() const {
  return impl_->temporary_bytes + (impl_->arena == nullptr ? 0 : impl_->arena->size_bytes());
}
int64_t Executable::num_leases() const { return impl_->leases.size(); }
int64_t Executable::num_driver_nodes() const { return impl_->num_driver_nodes; }
const std::vector<GraphNode>& Executable::nodes() const { return impl_->nodes; }
Result<void> Executable::close() { return impl_->close(); }

Executable::Impl::~Impl() {
  if (!park()) (void)close();
}

bool Executable::Impl::park() {
  if (exec == nullptr || !unusable.empty() || !planned || nodes.size() != 1 || driver.use_count() > 1)
    return false;
  const std::shared_ptr<Loaded>& program = nodes[0].program;
  const PlacedPtr& place = placed[0];
  if (program == nullptr || place->arena != nullptr || place->host_call || place->captured) return false;
  Changed all;
  all.everything = true;
  if (!why_not_patchable(program->program(), program->program(), all, exec->can_set_library()).empty())
    return false;
  {
    std::lock_guard lock(driver->mutex);
    driver->forget(0);  // the program holds the spare's place
  }
  Spare s{driver, place, timeline, num_driver_nodes, program->impl().modules, std::move(exec)};
  core->spares().put(core, program->impl(), std::move(s));
  return true;
}

void Executable::Impl::set_nodes(std::vector<GraphNode> all, std::vector<PlacedPtr> their_places) {
  nodes = std::move(all);
  placed = std::move(their_places);
  may_report = std::any_of(nodes.begin(), nodes.end(), [](const GraphNode& n) {
    return n.program != nullptr && n.program->program().uses_faults;
  });
  may_report = may_report || std::any_of(placed.begin(), placed.end(),
                                         [](const PlacedPtr& p) { return p->host_call != nullptr; });
}

Result<void> Executable::Impl::usable() const {
  if (exec == nullptr) return fail(ErrorKind::Capture, "E0716", "the executable was closed");
  if (!unusable.empty()) return fail(ErrorKind::Capture, "E0705", unusable);
  return {};
}

Result<void> Executable::Impl::close() {
  if (exec == nullptr) return {};
  // Legal while launches are in flight. What they use goes back in their order.
  Result<void> outcome = destroy(std::move(exec));
  nodes.clear();
  placed.clear();
  fresh.clear();
  leases = {};
  arena.reset();
  driver.reset();
  return outcome;
}

Result<void> Executable::Impl::destroy(std::unique_ptr<hal::GraphExec> old) {
  return end(core, std::move(old), [&] {
    auto used = std::make_shared<Used>();
    if (Result<LeaseSet> held = leases.clone()) used->leases = std::move(*held);
    used->arena = arena;
    // Not the programs, which hold the core that holds this.
    const auto keep_code = [&](const std::shared_ptr<Loaded>& p) {
      if (p == nullptr) return;
      const auto& code = p->impl().modules;
      used->code.insert(used->code.end(), code.begin(), code.end());
    };
    for (const GraphNode& n : nodes) keep_code(n.program);
    if (driver != nullptr) {
      std::lock_guard lock(driver->mutex);
      for (const auto& p : driver->programs()) keep_code(p);
    }
    used->faults = faults;
    return used;
  });
}

void Executable::Impl::add_fresh(const memory::BlockPtr& b) {
  // Of more updates than there are blocks, some changed the same ones.
  if (fresh.size() > 64 && fresh.size() > static_cast<size_t>(leases.size())) {
    fresh.clear();
    departures = kStale;
  }
  if (departures != kStale) fresh.push_back(b.get());
}

Result<void> Executable::Impl::acquire(Runtime::Impl& rt) {
  memory::Timeline& now = *rt.timeline;
  if (timeline == &now && now.departures() == departures) [[likely]] {
    for (const memory::Block* b : fresh) {
      if (const LeaseSet::Held* held = leases.find(b)) GK_CHECK(held->lease.block()->acquire(now));
    }
    fresh.clear();
    return {};
  }
  // Launches of one executable never overlap, though nothing be leased.
  if (timeline != nullptr && timeline != &now) GK_CHECK(timeline->order_before(now));
  timeline = &now;
  departures = kStale;
  const uint64_t seen = now.departures();
  GK_CHECK(leases.acquire(now));
  if (arena->block != nullptr) GK_CHECK(arena->block->acquire(now));
  fresh.clear();
  departures = seen;
  return {};
}

/// Whether the runtime may do this with the executable now.
static Result<void> check_use(const Executable::Impl& e, Runtime::Impl& r, std::string_view what) {
  GK_CHECK(e.usable());
  if (r.core != e.core) {
    return fail(ErrorKind::Capture, "E0717", "the executable is one of another engine");
  }
  if (r.recording != nullptr) {
    return fail(ErrorKind::Capture, "E0703",
                fmt::format("an executable cannot be {} while a graph is recorded", what));
  }
  return r.ready();
}

Result<void> Executable::launch(Runtime& rt, int64_t times) {
  Impl& e = *impl_;
  Runtime::Impl& r = rt.impl();
  GK_CHECK(check_use(e, r, "launched"));
  GK_CHECK(e.acquire(r));
  r.submitting(e.faults, e.may_report);
  hal::Stream& stream = r.stream();
  for (int64_t i = 0; i < times; ++i) GK_CHECK(e.exec->launch(stream));
  // Note [Launches and departures]: what another timeline took over meanwhile may have been ordered before
  // this.
  if (r.timeline->departures() != e.departures) return e.acquire(r);
  return {};
}

Result<void> Executable::upload(Runtime& rt) {
  Impl& e = *impl_;
  Runtime::Impl& r = rt.impl();
  GK_CHECK(check_use(e, r, "sent ahead"));
  r.timeline->mark_busy();
  return e.exec->upload(r.stream());
}

}  // namespace gk::exec
