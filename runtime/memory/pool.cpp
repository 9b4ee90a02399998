#include <fmt/format.h>

#include <algorithm>

#include "runtime/memory/pool_impl.h"

namespace gk::memory {
namespace {

void* at(void* base, int64_t offset_bytes) {
  return base == nullptr ? nullptr : static_cast<std::byte*>(base) + offset_bytes;
}

Stress::Piece piece_of(const Chunk& c) {
  const hal::Allocation& memory = c.segment->memory;
  return {at(memory.address, c.offset_bytes), at(memory.host_address, c.offset_bytes), c.size_bytes};
}

}  // namespace

Pool::Impl::~Impl() {
  // No block is left, for each holds this. Work that used them may still run. Failures cannot be told to
  // anyone here, and the driver keeps the memory then.
  if (reserved() > 0 || retired->pending() > 0) (void)wait_device();
  retired.reset();
  for (Segments* s : {&local, &pinned}) {
    for (const hal::Allocation& a : s->remove_all()) (void)device->release(a);
  }
}

Chunk* Pool::Impl::take(int64_t size_bytes, hal::Placement p, Timeline* t) {
  // Under stress, memory that others may still use is as good as any.
  Chunk* chunk = of(p).take(size_bytes, t, stress == nullptr);
  if (chunk == nullptr && of(p).merge(false)) chunk = of(p).take(size_bytes, t, stress == nullptr);
  if (chunk != nullptr) peak_bytes = std::max(peak_bytes, in_use());
  return chunk;
}

// Asks the driver. Locks are not held across the call; what is asked for counts as reserved meanwhile, so the
// limit is hard.
Result<Chunk*> Pool::Impl::grow(int64_t size_bytes, hal::Placement p) {
  const bool small = size_bytes <= kSmallLimit;
  int64_t wanted = size_bytes;
  {
    std::lock_guard lock(mutex);
    // Of a small limit, a segment for small blocks takes a small part only.
    const int64_t segment = limit_bytes > 0 ? std::min(kSmallSegment, limit_bytes / 32) : kSmallSegment;
    if (small && room() >= segment) wanted = std::max(wanted, segment / kAlignment * kAlignment);
    if (wanted > room()) return static_cast<Chunk*>(nullptr);
    growing_bytes += wanted;
  }
  Result<hal::Allocation> memory = device->allocate(wanted, p);
  std::lock_guard lock(mutex);
  growing_bytes -= wanted;
  if (!memory) {
    if (memory.error().kind == ErrorKind::OutOfMemory) return static_cast<Chunk*>(nullptr);
    return std::move(memory).failure();
  }
  ++driver_allocations;
  Chunk* chunk = of(p).add(*memory, small, size_bytes);
  peak_bytes = std::max(peak_bytes, in_use());
  return chunk;
}

Result<Chunk*> Pool::Impl::obtain(int64_t size_bytes, hal::Placement p, Timeline* t) {
  {
    std::lock_guard lock(mutex);
    if (Chunk* chunk = take(size_bytes, p, t)) return chunk;
  }
  return grow(size_bytes, p);
}

// Short of memory: lets launches finish, drops what was kept for them and gives the driver back what is
// cached, then tries once more.
Result<Chunk*> Pool::Impl::obtain_or_recover(int64_t size_bytes, hal::Placement p, Timeline* t) {
  GK_TRY(Chunk * chunk, obtain(size_bytes, p, t));
  if (chunk != nullptr) return chunk;
  // The device cannot be waited for while it is captured; what the driver has stays there then.
  const std::unique_ptr<RetireList::Blocking> blocking = retired->try_blocking();
  if (blocking != nullptr) GK_CHECK(wait_device());
  end_kept(blocking != nullptr);
  {
    std::lock_guard lock(mutex);
    if ((chunk = take(size_bytes, p, t)) != nullptr) return chunk;
  }
  trim();
  if (blocking != nullptr) GK_CHECK(end_pending());
  return obtain(size_bytes, p, t);
}

// Other threads go on releasing while the device is waited for: what they gave back meanwhile needs one more.
Result<void> Pool::Impl::end_pending() {
  if (retired->pending() > 0) {
    GK_CHECK(wait_device());
    retired->drain();
  }
  retired->settle();
  return {};
}

void Pool::Impl::end_kept(bool waited) {
  std::function<void()> drop;
  {
    std::lock_guard lock(mutex);
    drop = reclaim;
  }
  if (drop) drop();
  retired->drain();
  if (waited) retired->settle();
}

Result<Timeline*> Pool::Impl::timeline() {
  {
    std::lock_guard lock(timelines_mutex);
    if (!spare.empty()) {
      Timeline* t = spare.back();
      spare.pop_back();
      return t;
    }
  }
  GK_TRY(std::unique_ptr<hal::Stream> stream, device->create_stream());
  std::lock_guard lock(timelines_mutex);
  timelines.push_back(std::make_unique<Timeline>(std::move(stream)));
  return timelines.back().get();
}

Result<void> Pool::Impl::wait_device() {
  std::vector<std::pair<Timeline*, Timeline::Wait>> waits;
  {
    std::lock_guard lock(timelines_mutex);
    for (const auto& t : timelines) waits.emplace_back(t.get(), t->begin_wait());
  }
  GK_CHECK(device->synchronize());
  for (const auto& [t, wait] : waits) t->end_wait(wait);
  return {};
}

Result<void> Pool::Impl::order(Chunk& chunk, Timeline* t) {
  for (size_t i = 0; i < chunk.users.size(); ++i) {
    const User& u = chunk.users[i];
    if (u.timeline == t || u.idle()) continue;
    GK_CHECK(t != nullptr ? u.timeline->order_before(*t) : u.timeline->wait());
  }
  if (stress != nullptr) stress->handed_out(piece_of(chunk), t, chunk.users.idle());
  chunk.users.clear();
  return {};
}

void Pool::Impl::give_back(Chunk* chunk, hal::Placement p, Timeline* last) {
  if (stress != nullptr) last = stress->given_back(piece_of(*chunk), last);
  std::lock_guard lock(mutex);
  of(p).give_back(chunk, last);
  if (stress == nullptr) return;
  for (Segment* s : of(p).idle()) retire(of(p), *s);
}

void Pool::Impl::put_back(Chunk* chunk, hal::Placement p) {
  std::lock_guard lock(mutex);
  of(p).give_back(chunk, nullptr);
}

void Pool::Impl::retire(Segments& from, Segment& s) {
  const uint64_t number = ++retirements;
  std::vector<std::shared_ptr<hal::Event>> after;
  const Users& users = s.first->users;
  for (size_t i = 0; i < users.size(); ++i) {
    if (!users[i].idle()) after.push_back(std::make_shared<AfterUser>(users[i]));
  }
  from.retire(s, number);
  const auto free = [this, &from, segment = &s, number]() -> Result<void> {
    std::unique_lock lock(mutex);
    const std::optional<hal::Allocation> memory = from.remove(segment, number);
    if (!memory) return {};  // in use again
    lock.unlock();
    Result<void> released = device->release(*memory);
    lock.lock();
    from.freed(memory->size_bytes);
    return released;
  };
  retired->publish(fmt::format("giving {} bytes back to the driver", s.memory.size_bytes), free,
                   std::move(after));
}

void Pool::Impl::trim() {
  {
    std::lock_guard lock(mutex);
    for (Segments* from : {&local, &pinned}) {
      for (Segment* s : from->idle()) retire(*from, *s);
    }
  }
  retired->drain();
}

Pool::Pool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// Blocks may go on living. What was published may hold some of them: nobody else would end it.
Pool::~Pool() {
  if (impl_->retired->pending() == 0) return;
  if (impl_->retired->captures() == 0) (void)impl_->wait_device();
  impl_->retired->drain();
}

std::shared_ptr<Pool> Pool::create(std::shared_ptr<hal::Device> device, int64_t limit_bytes, bool stress) {
  return std::shared_ptr<Pool>(new Pool(std::make_unique<Impl>(std::move(device), limit_bytes, stress)));
}

Result<BlockPtr> Pool::allocate(int64_t size_bytes, hal::Placement placement, Timeline* t) {
  auto state = std::make_unique<Block::State>();
  state->pool = impl_;
  state->placement = placement;
  state->size_bytes = size_bytes;
  const auto out_of_memory = [&] {
    const PoolStats now = stats();
    const int64_t total = impl_->device->info().total_bytes;
    const std::string limit = now.limit_bytes > 0 ? fmt::format("limit {} bytes", now.limit_bytes)
                                                  : fmt::format("the device has {} bytes", total);
    Error e = make_error(ErrorKind::OutOfMemory, "E0601",
                         fmt::format("out of memory: asked for {} bytes, in use {} bytes, {}", size_bytes,
                                     now.in_use_bytes, limit));
    if (now.cached_bytes > 0) {
      e.notes.push_back(fmt::format("{} bytes more lie free between what is in use", now.cached_bytes));
    }
    if (impl_->retired->captures() > 0) {
      e.notes.emplace_back("nothing is given back to the driver while a capture is active");
    }
    return fail(std::move(e));
  };
  if (size_bytes < 0 || size_bytes > INT64_MAX - kAlignment) return out_of_memory();
  if (size_bytes > 0) {
    const int64_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    impl_->retired->drain(kDrainedAtOnce);
    if (impl_->limit_bytes > 0 && rounded > impl_->limit_bytes) return out_of_memory();
    GK_TRY(Chunk * chunk, impl_->obtain_or_recover(rounded, placement, t));
    if (chunk == nullptr) return out_of_memory();
    if (Result<void> ordered = impl_->order(*chunk, t); !ordered) {
      impl_->put_back(chunk, placement);
      if (ordered.error().kind != ErrorKind::Capture) return fail(std::move(ordered).error());
      // A last user's stream is being captured by the host program: nothing can come after it now.
      GK_TRY(chunk, impl_->grow(rounded, placement));
      if (chunk == nullptr) return fail(std::move(ordered).error());
      GK_CHECK(impl_->order(*chunk, t));  // it has no users
    }
    const Stress::Piece piece = piece_of(*chunk);
    state->chunk = chunk;
    state->address = piece.address;
    state->host_address = piece.host_address;
    state->last.store(t, std::memory_order_relaxed);
  }
  return std::make_shared<Block>(std::move(state));
}

BlockPtr Pool::wrap(void* address, int64_t size_bytes, hal::Placement placement, std::function<void()> gone) {
  // Whoever wraps in a loop need neither wait nor allocate: what was let go of earlier ends here.
  impl_->retired->drain(kDrainedAtOnce);
  auto state = std::make_unique<Block::State>();
  state->pool = impl_;
  state->placement = placement;
  state->size_bytes = size_bytes;
  state->address = address;
  const bool host =
      placement == hal::Placement::Pinned || impl_->device->info().target == program::TargetKind::Host;
  state->host_address = host ? address : nullptr;
  state->gone = std::move(gone);
  return std::make_shared<Block>(std::move(state));
}

void Pool::release(const BlockPtr& b) {
  if (b != nullptr) b->state().release();
}

Result<Timeline*> Pool::timeline() { return impl_->timeline(); }

void Pool::give_back(Timeline* t) {
  if (t == nullptr || t->closed()) return;
  std::lock_guard lock(impl_->timelines_mutex);
  for (const auto& [handle, foreign] : impl_->foreign) {
    if (foreign == t) return;
  }
  if (std::find(impl_->spare.begin(), impl_->spare.end(), t) != impl_->spare.end()) return;
  t->conceal();
  impl_->spare.push_back(t);
}

Result<Timeline*> Pool::timeline_of(void* native) {
  std::lock_guard lock(impl_->timelines_mutex);
  const auto known = impl_->foreign.find(native);
  if (known != impl_->foreign.end() && !known->second->closed()) return known->second;
  GK_TRY(std::unique_ptr<hal::Stream> stream, impl_->device->wrap_stream(native));
  Timeline* t = nullptr;
  // Of the closed ones, whichever is over may serve again: a host program may make many streams.
  for (auto it = impl_->foreign.begin(); it != impl_->foreign.end(); ++it) {
    if (!it->second->finished()) continue;
    t = it->second;
    t->reopen(std::move(stream));
    impl_->foreign.erase(it);
    break;
  }
  if (t == nullptr) {
    impl_->timelines.push_back(std::make_unique<Timeline>(std::move(stream)));
    t = impl_->timelines.back().get();
  }
  t->expose();
  impl_->foreign[native] = t;
  return t;
}

RetireList& Pool::retired() { return *impl_->retired; }

Result<void> Pool::trim() {
  impl_->trim();
  return {};
}

Result<void> Pool::synchronize() {
  GK_CHECK(impl_->wait_device());
  impl_->retired->drain();
  return {};
}

Result<void> Pool::reclaim() {
  GK_TRY(const auto blocking, impl_->retired->begin_blocking());
  GK_CHECK(impl_->wait_device());
  impl_->end_kept(true);
  impl_->trim();
  return impl_->end_pending();
}

PoolStats Pool::stats() const {
  std::lock_guard lock(impl_->mutex);
  PoolStats s;
  s.in_use_bytes = impl_->in_use();
  s.cached_bytes = impl_->local.reserved_bytes() + impl_->pinned.reserved_bytes() - s.in_use_bytes;
  s.peak_bytes = impl_->peak_bytes;
  s.limit_bytes = impl_->limit_bytes;
  s.leases = impl_->leases.load(std::memory_order_relaxed);
  s.driver_allocations = impl_->driver_allocations;
  s.retired = impl_->retired->pending();
  return s;
}

void Pool::reset_peak() {
  std::lock_guard lock(impl_->mutex);
  impl_->peak_bytes = impl_->in_use();
}

hal::Device& Pool::device() { return *impl_->device; }

void Pool::set_reclaim(std::function<void()> reclaim) {
  std::lock_guard lock(impl_->mutex);
  impl_->reclaim = std::move(reclaim);
}

}  // namespace gk::memory
