// A host stream: a queue, and a thread that empties it in order. Owns both. Promises that submission does not
// wait for the work (but for a few microseconds of it, and where thousands of items wait already), that an
// item sees everything earlier items wrote, and that destruction waits for the queue to drain. One graph
// launch is one item. Note [Who runs an item] Handing work to a sleeping thread costs more than most small
// graphs take. So an item that is known to be short runs at once on the thread that submits it, where nothing
// is ahead of it; and a thread that waits for the stream takes what nobody has begun, rather than sleeping
// beside it. Functions of the host program are left to the stream's own thread. One item runs at a time,
// whoever runs it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/hal/host/host_device.h"
#include "runtime/hal/host/ops.h"

namespace gk::hal::host {

/// What an event and the stream that completes it share.
struct Flag {
  std::atomic<uint32_t> done{0};
  bool is_set() const { return done.load(std::memory_order_acquire) != 0; }
  void set() {
    done.store(1, std::memory_order_release);
    done.notify_all();
  }
  void wait() const { done.wait(0, std::memory_order_acquire); }
};

class HostEvent : public Event {
 public:
  explicit HostEvent(std::shared_ptr<Flag> flag) : flag_(std::move(flag)) {}
  Result<bool> done() override { return flag_->is_set(); }
  Result<void> wait() override {
    flag_->wait();
    return {};
  }
  const std::shared_ptr<Flag>& flag() const { return flag_; }

 private:
  std::shared_ptr<Flag> flag_;
};

class HostStream : public Stream {
 public:
  explicit HostStream(std::shared_ptr<Shared> shared);
  ~HostStream() override;
  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override;
  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override;
  Result<NodeId> library(const LibraryOp& op, std::span<const NodeId> deps) override;
  Result<NodeId> host_call(std::function<void()> f, std::span<const NodeId> deps) override;
  Result<NodeId> conditional(const ConditionalOp& op, std::span<const NodeId> deps) override;
  void* native() const override { return nullptr; }
  Result<bool> is_capturing() override;
  Result<void> synchronize() override;
  Result<std::unique_ptr<Event>> record() override;
  Result<void> wait(Event& e) override;
  void launch(std::shared_ptr<OpList> list);
  /// Waits for what was submitted before the call.
  void drain();
  bool idle() const;
  /// Set while a graph counts the stream as captured; whoever sets it clears it.
  const std::shared_ptr<std::atomic<bool>>& captured() const { return captured_; }

 private:
  struct Signal {
    std::shared_ptr<Flag> flag;
  };
  struct Await {
    std::shared_ptr<Flag> flag;
  };
  using Item = std::variant<Op, std::shared_ptr<OpList>, Signal, Await>;
  using Lock = std::unique_lock<std::mutex>;

  void submit(Item item);
  void submit(Op op);
  /// Whether nothing is ahead of what the caller is about to do; then it does it and calls finish().
  bool begin();
  void finish(Lock& lock);
  void run_front(Lock& lock);
  void run_until(uint64_t target, Lock& lock);
  void work();
  void perform(Item& item);
  static bool is_for_anybody(const Item& item);

  // A queue that keeps its memory.
  bool empty() const { return queued_ == 0; }
  Item& front() { return ring_[head_]; }
  void push(Item item);
  Item pop();

  std::shared_ptr<Shared> shared_;
  std::mutex mutex_;
  std::condition_variable work_;  // for the stream's thread
  std::condition_variable done_;  // for those that wait
  // The next six under mutex_.
  std::vector<Item> ring_;
  size_t head_ = 0, queued_ = 0;
  bool busy_ = false;  // somebody runs an item
  bool stop_ = false;
  bool asleep_ = false;                 // the stream's thread
  int waiting_ = 0;                     // on done_
  std::atomic<uint64_t> submitted_{0};  // written under mutex_, as the next one
  std::atomic<uint64_t> completed_{0};
  std::shared_ptr<std::atomic<bool>> captured_ = std::make_shared<std::atomic<bool>>(false);
  std::thread thread_;
};

}  // namespace gk::hal::host
