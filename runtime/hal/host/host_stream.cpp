#include "runtime/hal/host/host_stream.h"

#include <chrono>

namespace gk::hal::host {
namespace {

// How long a thread looks again before it sleeps. Waking one costs some 50 µs where its core sleeps too.
constexpr std::chrono::microseconds kPatience{25};
// Items that may wait before a submission waits for one to be done.
constexpr uint64_t kQueueLimit = 4096;
// Scalar operations that are rather done at once than handed on: some microseconds.
constexpr int64_t kShortWork = 32768;

/// Waits a little until `a` differs from `old`.
void watch(const std::atomic<uint64_t>& a, uint64_t old) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < 16; ++i) {
      if (a.load(std::memory_order_acquire) != old) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
}

bool is_short(int64_t work) { return work >= 0 && work <= kShortWork; }

}  // namespace

HostStream::HostStream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)), ring_(8) {
  thread_ = std::thread([this] { work(); });
  std::lock_guard lock(shared_->mutex);
  shared_->streams.insert(this);
}

HostStream::~HostStream() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->streams.erase(this);
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void HostStream::push(Item item) {
  if (queued_ == ring_.size()) {
    std::vector<Item> larger(ring_.size() * 2);
    for (size_t i = 0; i < queued_; ++i) larger[i] = std::move(ring_[(head_ + i) % ring_.size()]);
    ring_.swap(larger);
    head_ = 0;
  }
  ring_[(head_ + queued_++) % ring_.size()] = std::move(item);
}

HostStream::Item HostStream::pop() {
  Item item = std::exchange(ring_[head_], Item{});
  head_ = (head_ + 1) % ring_.size();
  --queued_;
  return item;
}

bool HostStream::begin() {
  std::lock_guard lock(mutex_);
  if (busy_ || !empty()) return false;
  busy_ = true;
  submitted_.fetch_add(1, std::memory_order_release);
  return true;
}

// The lock is held.
void HostStream::finish(Lock& lock) {
  busy_ = false;
  completed_.fetch_add(1, std::memory_order_release);
  const bool more = asleep_ && (stop_ || !empty());
  const bool waited_for = waiting_ > 0;
  if (!more && !waited_for) return;
  lock.unlock();
  if (more) work_.notify_one();
  if (waited_for) done_.notify_all();
  lock.lock();
}

void HostStream::submit(Item item) {
  Lock lock(mutex_);
  // A queue without end would take the machine's memory from a program that only submits.
  if (const uint64_t given = submitted_.load(std::memory_order_relaxed); given > kQueueLimit)
    run_until(given - kQueueLimit, lock);
  push(std::move(item));
  submitted_.fetch_add(1, std::memory_order_release);
  if (!asleep_) return;
  lock.unlock();
  work_.notify_one();
}

void HostStream::submit(Op op) {
  if (!is_short(work_of(op)) || !begin()) return submit(Item{std::move(op)});
  execute(op, shared_->workers);
  Lock lock(mutex_);
  finish(lock);
}

void HostStream::launch(std::shared_ptr<OpList> list) {
  shared_->count();
  list->running.fetch_add(1, std::memory_order_relaxed);
  if (list->unbounded > 0 || !is_short(list->work) || !begin()) return submit(Item{std::move(list)});
  execute(*list, shared_->workers);
  list->running.fetch_sub(1, std::memory_order_release);
  list.reset();
  Lock lock(mutex_);
  finish(lock);
}

void HostStream::run_front(Lock& lock) {
  Item item = pop();
  busy_ = true;
  lock.unlock();
  perform(item);
  item = Item{};  // what it kept goes before it counts as done
  lock.lock();
  finish(lock);
}

bool HostStream::is_for_anybody(const Item& item) {
  if (const auto* op = std::get_if<Op>(&item)) return !std::holds_alternative<HostCall>(*op);
  if (const auto* list = std::get_if<std::shared_ptr<OpList>>(&item)) return (*list)->host_calls == 0;
  return true;
}

void HostStream::run_until(uint64_t target, Lock& lock) {
  while (true) {
    const uint64_t now = completed_.load(std::memory_order_acquire);
    if (now >= target) return;
    if (!busy_ && !empty() && is_for_anybody(front())) {
      run_front(lock);
      continue;
    }
    lock.unlock();
    watch(completed_, now);
    lock.lock();
    if (completed_.load(std::memory_order_acquire) != now) continue;
    ++waiting_;
    done_.wait(lock, [&] { return completed_.load(std::memory_order_acquire) != now; });
    --waiting_;
  }
}

void HostStream::work() {
  Lock lock(mutex_);
  while (true) {
    if (!busy_ && !empty()) {
      run_front(lock);
      continue;
    }
    if (stop_ && !busy_) return;
    const uint64_t given = submitted_.load(std::memory_order_acquire);
    lock.unlock();
    watch(submitted_, given);
    lock.lock();
    asleep_ = true;
    work_.wait(lock, [&] { return !busy_ && (stop_ || !empty()); });
    asleep_ = false;
  }
}

void HostStream::perform(Item& item) {
  if (auto* op = std::get_if<Op>(&item)) {
    execute(*op, shared_->workers);
  } else if (auto* list = std::get_if<std::shared_ptr<OpList>>(&item)) {
    execute(**list, shared_->workers);
    (*list)->running.fetch_sub(1, std::memory_order_release);
  } else if (auto* signal = std::get_if<Signal>(&item)) {
    signal->flag->set();
  } else {
    std::get<Await>(item).flag->wait();
  }
}

Result<NodeId> HostStream::kernel(const KernelLaunch& launch, std::span<const NodeId>) {
  shared_->count();
  if (is_short(launch.dims.work)) {
    GK_TRY(const HostEntry entry, entry_of(launch));
    if (begin()) {
      if (launch.dims.items > 0) entry(launch.params.data(), 0, launch.dims.items);
      Lock lock(mutex_);
      finish(lock);
      return 0;
    }
  }
  GK_TRY(KernelOp op, make_kernel(launch));
  submit(Item{Op{std::move(op)}});
  return 0;
}

Result<NodeId> HostStream::copy(const CopyOp& op, std::span<const NodeId>) {
  shared_->count();
  submit(Op{op});
  return 0;
}

Result<NodeId> HostStream::library(const LibraryOp& op, std::span<const NodeId>) {
  shared_->count();
  GK_TRY(LibraryWork work, make_library(op));
  submit(Op{work});
  return 0;
}

Result<NodeId> HostStream::host_call(std::function<void()> f, std::span<const NodeId>) {
  shared_->count();
  GK_TRY(HostCall call, make_host_call(std::move(f)));
  submit(Op{std::move(call)});
  return 0;
}

Result<NodeId> HostStream::conditional(const ConditionalOp& op, std::span<const NodeId>) {
  GK_CHECK(check(op));
  while (true) {
    GK_CHECK(synchronize());
    const bool taken = holds(op.condition);
    if (op.kind == ConditionalOp::Kind::If) {
      if (taken || op.has_else) GK_CHECK(op.record(*this, taken ? 0 : 1));
      return 0;
    }
    if (!taken) return 0;
    GK_CHECK(op.record(*this, 0));
  }
}

Result<bool> HostStream::is_capturing() {
  shared_->count();
  return false;
}

bool HostStream::idle() const {
  const uint64_t done = completed_.load(std::memory_order_acquire);
  return done >= submitted_.load(std::memory_order_acquire);
}

void HostStream::drain() {
  if (idle()) return;
  Lock lock(mutex_);
  run_until(submitted_.load(std::memory_order_acquire), lock);
}

Result<void> HostStream::synchronize() {
  shared_->count();
  drain();
  return {};
}

Result<std::unique_ptr<Event>> HostStream::record() {
  shared_->count();
  auto flag = std::make_shared<Flag>();
  if (idle()) {
    flag->set();
  } else {
    submit(Item{Signal{flag}});
  }
  return std::make_unique<HostEvent>(std::move(flag));
}

Result<void> HostStream::wait(Event& e) {
  shared_->count();
  auto* event = dynamic_cast<HostEvent*>(&e);
  if (event == nullptr) return fail(ErrorKind::Device, "E0506", "this event is not one of the host device");
  if (!event->flag()->is_set()) submit(Item{Await{event->flag()}});
  return {};
}

void Shared::wait_all() {
  // The lock keeps streams from being destroyed meanwhile; their threads never take it.
  std::lock_guard lock(mutex);
  for (HostStream* stream : streams) stream->drain();
}

std::unique_ptr<Stream> create_stream(std::shared_ptr<Shared> shared) {
  return std::make_unique<HostStream>(std::move(shared));
}

}  // namespace gk::hal::host
