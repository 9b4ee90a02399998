#include "runtime/hal/host/host_stream.h"

namespace gk::hal::host {
namespace {

// How often a thread looks again before it sleeps. Sleeping and waking costs some 10 µs, more than many
// kernels.
constexpr int kSpins = 2000;
// Items that may wait before a submission waits for one to be done.
constexpr uint64_t kQueueLimit = 4096;

/// Returns a value of `a` that differs from `old`, or `old` after a short spin.
uint64_t spin_while_equal(const std::atomic<uint64_t>& a, uint64_t old) {
  uint64_t now = old;
  for (int i = 0; i < kSpins && (now = a.load(std::memory_order_acquire)) == old; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return now;
}

}  // namespace

HostStream::HostStream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
  thread_ = std::thread([this] { work(); });
  std::lock_guard lock(shared_->mutex);
  shared_->streams.insert(this);
}

HostStream::~HostStream() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->streams.erase(this);
  }
  submit(Stop{});
  thread_.join();
}

void HostStream::submit(Item item) {
  // A queue without end would take the machine's memory from a program that only submits.
  for (uint64_t done = completed_.load(std::memory_order_acquire); submitted_.load() - done > kQueueLimit;
       done = completed_.load(std::memory_order_acquire)) {
    completed_.wait(done, std::memory_order_acquire);
  }
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(item));
    submitted_.fetch_add(1, std::memory_order_release);
  }
  submitted_.notify_one();
}

void HostStream::work() {
  uint64_t seen = 0;
  std::deque<Item> batch;
  while (true) {
    if (submitted_.load(std::memory_order_acquire) == seen && spin_while_equal(submitted_, seen) == seen) {
      submitted_.wait(seen, std::memory_order_acquire);
    }
    {
      std::lock_guard lock(mutex_);
      batch.swap(queue_);
    }
    while (!batch.empty()) {
      const bool go_on = perform(batch.front());
      batch.pop_front();
      completed_.store(++seen, std::memory_order_release);
      completed_.notify_all();
      if (!go_on) return;
    }
  }
}

bool HostStream::perform(Item& item) {
  if (auto* op = std::get_if<Op>(&item)) {
    execute(*op, shared_->workers);
  } else if (auto* list = std::get_if<std::shared_ptr<OpList>>(&item)) {
    execute(**list, shared_->workers);
    (*list)->running.fetch_sub(1, std::memory_order_release);
  } else if (auto* signal = std::get_if<Signal>(&item)) {
    signal->flag->set();
  } else if (auto* await = std::get_if<Await>(&item)) {
    await->flag->wait();
  } else {
    return false;
  }
  return true;
}

Result<NodeId> HostStream::kernel(const KernelLaunch& launch, std::span<const NodeId>) {
  shared_->count();
  GK_TRY(KernelOp op, make_kernel(launch));
  submit(Op{std::move(op)});
  return 0;
}

Result<NodeId> HostStream::copy(const CopyOp& op, std::span<const NodeId>) {
  shared_->count();
  submit(Op{op});
  return 0;
}

Result<NodeId> HostStream::matmul(const MatMulOp& op, std::span<const NodeId>) {
  shared_->count();
  GK_TRY(MatMulWork work, make_matmul(op));
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

void HostStream::launch(std::shared_ptr<OpList> list) {
  shared_->count();
  list->running.fetch_add(1, std::memory_order_relaxed);
  submit(std::move(list));
}

void HostStream::drain() {
  const uint64_t target = submitted_.load(std::memory_order_acquire);
  uint64_t now = completed_.load(std::memory_order_acquire);
  while (now < target) {
    const uint64_t next = spin_while_equal(completed_, now);
    if (next == now) completed_.wait(now, std::memory_order_acquire);
    now = completed_.load(std::memory_order_acquire);
  }
}

Result<void> HostStream::synchronize() {
  shared_->count();
  drain();
  return {};
}

Result<std::unique_ptr<Event>> HostStream::record() {
  shared_->count();
  auto flag = std::make_shared<Flag>();
  submit(Signal{flag});
  return std::make_unique<HostEvent>(std::move(flag));
}

Result<void> HostStream::wait(Event& e) {
  shared_->count();
  auto* event = dynamic_cast<HostEvent*>(&e);
  if (event == nullptr) return fail(ErrorKind::Device, "E0506", "this event is not one of the host device");
  submit(Await{event->flag()});
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
