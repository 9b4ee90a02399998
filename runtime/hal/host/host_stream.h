// A host stream: a queue and the thread that empties it in order. Owns both. Promises that submission does
// not wait for the work (but where thousands of items wait already), that an item sees everything earlier
// items wrote, and that destruction waits for the queue to drain. One graph launch is one item.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "runtime/hal/host/host_device.h"
#include "runtime/hal/host/ops.h"

namespace gk::hal::host {

/// What an event and the stream that completes it share.
struct Flag {
  std::atomic<uint32_t> done{0};
  void set() {
    done.store(1, std::memory_order_release);
    done.notify_all();
  }
  void wait() const { done.wait(0, std::memory_order_acquire); }
};

class HostEvent : public Event {
 public:
  explicit HostEvent(std::shared_ptr<Flag> flag) : flag_(std::move(flag)) {}
  Result<bool> done() override { return flag_->done.load(std::memory_order_acquire) != 0; }
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
  Result<NodeId> matmul(const MatMulOp& op, std::span<const NodeId> deps) override;
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
  struct Stop {};
  using Item = std::variant<Op, std::shared_ptr<OpList>, Signal, Await, Stop>;
  void submit(Item item);
  void work();
  bool perform(Item& item);  // false: stop

  std::shared_ptr<Shared> shared_;
  std::mutex mutex_;
  std::deque<Item> queue_;  // under mutex_
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> completed_{0};
  std::shared_ptr<std::atomic<bool>> captured_ = std::make_shared<std::atomic<bool>>(false);
  std::thread thread_;
};

}  // namespace gk::hal::host
