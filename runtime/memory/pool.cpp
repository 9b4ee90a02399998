#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "runtime/memory/memory.h"
#include "runtime/memory/segments.h"

namespace gk::memory {

struct Pool::Impl {
  Impl(std::shared_ptr<hal::Device> d, int64_t limit) : device(std::move(d)), limit_bytes(limit) {}
  ~Impl();
  Segments& of(hal::Placement p) { return p == hal::Placement::Pinned ? pinned : local; }
  int64_t reserved() const { return local.reserved_bytes() + pinned.reserved_bytes(); }
  int64_t in_use() const { return local.in_use_bytes() + pinned.in_use_bytes(); }
  /// Bytes that may still be asked of the driver under the limit.
  int64_t room() const {
    return limit_bytes > 0 ? std::max<int64_t>(limit_bytes - reserved(), 0) : INT64_MAX;
  }
  Chunk* take(int64_t size_bytes, hal::Placement p);
  Result<Chunk*> grow(int64_t size_bytes, hal::Placement p);
  Result<void> trim();
  void give_back(Chunk* chunk, hal::Placement p);

  std::shared_ptr<hal::Device> device;
  const int64_t limit_bytes;
  std::mutex mutex;  // all below; never held across a call that waits for the device
  Segments local{hal::Placement::Device}, pinned{hal::Placement::Pinned};
  int64_t peak_bytes = 0;
  int64_t driver_allocations = 0;
  std::function<void()> reclaim;
  uint64_t wait_begun = 1, wait_ended = 0;
  std::atomic<int64_t> leases{0};
};

// A block's life in one number: twice its leases, plus one once its owner has given it up. The step to
// exactly "given up, no leases" is taken by one thread, which returns the memory.
struct Block::State {
  std::shared_ptr<Pool::Impl> pool;
  Chunk* chunk = nullptr;  // null: an empty block
  hal::Placement placement{};
  void* address = nullptr;
  void* host_address = nullptr;
  int64_t size_bytes = 0;
  std::atomic<int64_t> life{0};

  void give_back() {
    if (chunk != nullptr) pool->give_back(chunk, placement);
  }
  void release() {
    if (life.fetch_or(1, std::memory_order_acq_rel) == 0) give_back();
  }
  bool lease() {
    int64_t now = life.load(std::memory_order_acquire);
    do {
      if (now == 1) return false;
    } while (!life.compare_exchange_weak(now, now + 2, std::memory_order_acq_rel));
    pool->leases.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  void end_lease() {
    pool->leases.fetch_sub(1, std::memory_order_relaxed);
    if (life.fetch_sub(2, std::memory_order_acq_rel) == 3) give_back();
  }
};

Block::Block(std::unique_ptr<State> s) : state_(std::move(s)) {}
Block::~Block() { state_->release(); }
void* Block::address() const { return state_->address; }
void* Block::host_address() const { return state_->host_address; }
int64_t Block::size_bytes() const { return state_->size_bytes; }
hal::Placement Block::placement() const { return state_->placement; }
int64_t Block::leases() const { return state_->life.load(std::memory_order_acquire) / 2; }
bool Block::released() const { return (state_->life.load(std::memory_order_acquire) & 1) != 0; }

Lease::Lease(BlockPtr b) {
  if (b != nullptr && b->state().lease()) block_ = std::move(b);
}
Lease::Lease(Lease&& o) noexcept : block_(std::move(o.block_)) { o.block_ = nullptr; }
Lease& Lease::operator=(Lease&& o) noexcept {
  Lease(std::move(o)).block_.swap(block_);
  return *this;
}
Lease::~Lease() {
  if (block_ != nullptr) block_->state().end_lease();
}

Pool::Impl::~Impl() {
  // No block is left, for each holds this. Work that used them may still run. Failures cannot be told to
  // anyone here, and the driver keeps the memory then.
  if (local.reserved_bytes() + pinned.reserved_bytes() == 0) return;
  (void)device->synchronize();
  for (Segments* s : {&local, &pinned}) {
    for (const hal::Allocation& a : s->remove_all()) (void)device->release(a);
  }
}

Chunk* Pool::Impl::take(int64_t size_bytes, hal::Placement p) {
  const uint64_t before = p == hal::Placement::Pinned ? wait_ended + 1 : 0;
  Chunk* chunk = of(p).take(size_bytes, before);
  if (chunk != nullptr) peak_bytes = std::max(peak_bytes, in_use());
  return chunk;
}

// Asks the driver. Locks are not held across the call, but the room is reserved by asking again afterwards: a
// limit is hard, so a piece that came too late goes back.
Result<Chunk*> Pool::Impl::grow(int64_t size_bytes, hal::Placement p) {
  const bool small = size_bytes <= kSmallLimit;
  std::unique_lock lock(mutex);
  const int64_t wanted = small && room() >= kSmallSegment ? kSmallSegment : size_bytes;
  if (wanted > room()) return static_cast<Chunk*>(nullptr);
  lock.unlock();
  Result<hal::Allocation> memory = device->allocate(wanted, p);
  if (!memory) {
    if (memory.error().kind == ErrorKind::OutOfMemory) return static_cast<Chunk*>(nullptr);
    return tl::unexpected<Error>(std::move(memory).error());
  }
  lock.lock();
  ++driver_allocations;
  if (wanted > room()) {
    lock.unlock();
    GK_CHECK(device->release(*memory));
    return static_cast<Chunk*>(nullptr);
  }
  of(p).add(*memory, small);
  return take(size_bytes, p);
}

Result<void> Pool::Impl::trim() {
  std::vector<hal::Allocation> free;
  {
    std::lock_guard lock(mutex);
    free = local.remove_free();
    const std::vector<hal::Allocation> more = pinned.remove_free();
    free.insert(free.end(), more.begin(), more.end());
  }
  if (free.empty()) return {};
  // Work in the queue may still use what was released in its order.
  Result<void> outcome = device->synchronize();
  for (const hal::Allocation& a : free) {
    Result<void> released = device->release(a);
    if (!released && outcome) outcome = std::move(released);
  }
  return outcome;
}

void Pool::Impl::give_back(Chunk* chunk, hal::Placement p) {
  std::lock_guard lock(mutex);
  of(p).give_back(chunk, wait_begun);
}

Pool::Pool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pool::~Pool() = default;

std::shared_ptr<Pool> Pool::create(std::shared_ptr<hal::Device> device, int64_t limit_bytes) {
  return std::shared_ptr<Pool>(new Pool(std::make_unique<Impl>(std::move(device), limit_bytes)));
}

Result<BlockPtr> Pool::allocate(int64_t size_bytes, hal::Placement placement) {
  auto state = std::make_unique<Block::State>();
  state->pool = impl_;
  state->placement = placement;
  state->size_bytes = size_bytes;
  const auto out_of_memory = [&] {
    const PoolStats now = stats();
    const int64_t total = impl_->device->info().total_bytes;
    const std::string limit = now.limit_bytes > 0 ? fmt::format("limit {} bytes", now.limit_bytes)
                                                  : fmt::format("the device has {} bytes", total);
    return fail(ErrorKind::OutOfMemory, "E0601",
                fmt::format("out of memory: asked for {} bytes, in use {} bytes, {}", size_bytes,
                            now.in_use_bytes, limit));
  };
  if (size_bytes < 0 || size_bytes > INT64_MAX - kAlignment) return out_of_memory();
  if (size_bytes > 0) {
    const int64_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    const bool hopeless = impl_->limit_bytes > 0 && rounded > impl_->limit_bytes;
    for (int attempt = 0; attempt < 2 && !hopeless && state->chunk == nullptr; ++attempt) {
      if (attempt == 1) {
        // Short of memory: let launches finish, drop what was kept for them and what is cached.
        const uint64_t begun = begin_wait();
        GK_CHECK(impl_->device->synchronize());
        end_wait(begun);
        std::function<void()> reclaim;
        {
          std::lock_guard lock(impl_->mutex);
          reclaim = impl_->reclaim;
        }
        if (reclaim) reclaim();
      }
      {
        std::lock_guard lock(impl_->mutex);
        state->chunk = impl_->take(rounded, placement);
      }
      if (state->chunk != nullptr) break;
      if (attempt == 1) GK_CHECK(impl_->trim());
      GK_TRY(state->chunk, impl_->grow(rounded, placement));
    }
    if (state->chunk == nullptr) return out_of_memory();
    const hal::Allocation& memory = state->chunk->segment->memory;
    const auto at = [&](void* base) -> void* {
      return base == nullptr ? nullptr : static_cast<std::byte*>(base) + state->chunk->offset_bytes;
    };
    state->address = at(memory.address);
    state->host_address = at(memory.host_address);
  }
  return std::make_shared<Block>(std::move(state));
}

void Pool::release(const BlockPtr& b) {
  if (b != nullptr) b->state().release();
}

Result<void> Pool::trim() { return impl_->trim(); }

PoolStats Pool::stats() const {
  std::lock_guard lock(impl_->mutex);
  PoolStats s;
  s.in_use_bytes = impl_->in_use();
  s.cached_bytes = impl_->reserved() - impl_->in_use();
  s.peak_bytes = impl_->peak_bytes;
  s.limit_bytes = impl_->limit_bytes;
  s.leases = impl_->leases.load(std::memory_order_relaxed);
  s.driver_allocations = impl_->driver_allocations;
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

uint64_t Pool::begin_wait() {
  std::lock_guard lock(impl_->mutex);
  return impl_->wait_begun++;
}

void Pool::end_wait(uint64_t begun) {
  std::lock_guard lock(impl_->mutex);
  impl_->wait_ended = std::max(impl_->wait_ended, begun);
}

}  // namespace gk::memory
