// Blocks and leases: the release gate, and who used a block last.
#include "runtime/memory/pool_impl.h"

namespace gk::memory {

Result<bool> AfterUser::done() {
  if (user_.idle()) return true;
  if (event_ == nullptr) {
    GK_TRY(event_, user_.timeline->event());
    if (event_ == nullptr) return true;
  }
  return event_->done();
}

Result<void> AfterUser::wait() {
  if (user_.idle()) return {};
  return event_ != nullptr ? event_->wait() : user_.timeline->wait();
}

bool Block::State::lease() {
  int64_t now = life.load(std::memory_order_acquire);
  do {
    if (now == 1) return false;
  } while (!life.compare_exchange_weak(now, now + 2, std::memory_order_acq_rel));
  pool->leases.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Block::State::give_back() {
  Timeline* const user = last.load(std::memory_order_acquire);
  if (chunk != nullptr) pool->give_back(chunk, placement, user);
  if (gone == nullptr) return;
  std::vector<std::shared_ptr<hal::Event>> after;
  if (user != nullptr && user->busy()) {
    after.push_back(std::make_shared<AfterUser>(User{user, user->next_wait()}));
  }
  pool->retired->publish(
      "telling the owner of wrapped memory",
      [f = std::move(gone)]() -> Result<void> {
        try {
          f();
        } catch (const std::exception& e) {
          return fail(ErrorKind::Usage, "E0512", std::string("it threw: ") + e.what());
        } catch (...) {
          return fail(ErrorKind::Usage, "E0512", "it threw what is no std::exception");
        }
        return {};
      },
      std::move(after));
  if (user == nullptr || !user->busy()) pool->retired->drain(kDrainedAtOnce);
}

Block::Block(std::unique_ptr<State> s) : state_(std::move(s)) {}
Block::~Block() { state_->release(); }
void* Block::address() const { return state_->address; }
void* Block::host_address() const { return state_->host_address; }
int64_t Block::size_bytes() const { return state_->size_bytes; }
hal::Placement Block::placement() const { return state_->placement; }
int64_t Block::leases() const { return state_->life.load(std::memory_order_acquire) / 2; }
bool Block::wrapped() const { return state_->chunk == nullptr && state_->size_bytes > 0; }
bool Block::released() const { return (state_->life.load(std::memory_order_acquire) & 1) != 0; }

// Only a change of the user takes the lock. Without it, a third timeline could find the new user in place
// before that one's own order is there, and be ordered after nothing.
Result<void> Block::acquire(Timeline& t) {
  State& s = *state_;
  if (s.last.load(std::memory_order_acquire) == &t) return {};
  std::lock_guard lock(s.handover);
  Timeline* const old = s.last.load(std::memory_order_relaxed);
  if (old == &t || s.size_bytes == 0) return {};
  s.last.store(&t, std::memory_order_release);
  if (old == nullptr) return {};
  old->depart();  // before the event: Note [Launches and departures]
  Result<void> ordered = old->order_before(t);
  if (!ordered) s.last.store(old, std::memory_order_release);
  return ordered;
}

Result<void> Block::acquire_host() {
  std::unique_lock lock(state_->handover);
  Timeline* const user = state_->last.load(std::memory_order_relaxed);
  lock.unlock();
  return user == nullptr ? Result<void>{} : user->wait();
}

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

}  // namespace gk::memory
