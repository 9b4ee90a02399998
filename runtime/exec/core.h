// What a runtime and everything made from it share. Owns the device's stream, pool, fault record, loaded
// modules by key, and the retire list: things kept until the launches that use them are done. Outlives every
// loaded program, graph and executable. Used by one thread at a time, but for drain(), which allocation on
// any thread may call.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/exec/exec.h"

namespace gk::exec {

using Kept = std::vector<std::shared_ptr<void>>;

class Core {
 public:
  static Result<std::shared_ptr<Core>> create(std::shared_ptr<hal::Device> device,
                                              int64_t memory_limit_bytes);
  ~Core();

  hal::Device& device() { return *device_; }
  hal::Stream& stream() { return timeline_->stream(); }
  memory::Timeline& timeline() { return *timeline_; }
  memory::Pool& pool() { return *pool_; }
  void* faults() const { return faults_->address(); }
  /// To be called before work is submitted.
  void mark_busy() {
    timeline_->mark_busy();
    busy_.store(true, std::memory_order_relaxed);
  }

  Result<void> synchronize();
  /// The runtime is gone: from now on what is retired waits for the stream at once.
  void close();
  /// Keeps `kept` until all work submitted so far is done.
  void retire(Kept kept);
  /// Drops what no launch uses any more. Never waits.
  void drain();
  /// An arena for one eager run: the small one that runs share, or one from the pool.
  Result<memory::BlockPtr> arena(int64_t size_bytes);

  /// The module of a code blob: the one already loaded, if any.
  Result<std::shared_ptr<hal::Module>> module(const program::Code& code);
  /// Gives a program its range of step numbers; returns the first.
  int64_t enlist(std::shared_ptr<const program::Program> p);
  /// The program is unloaded; its number is kept until no pending fault can name it.
  void dismiss(int64_t base);

 private:
  struct Retired {
    std::unique_ptr<hal::Event> event;  // null: only a wait for the stream tells
    Kept kept;
  };
  struct Enlisted {
    std::shared_ptr<const program::Program> program;
    bool dismissed = false;
  };
  Core() = default;
  Result<void> raise_fault();  // under mutex_

  std::shared_ptr<hal::Device> device_;
  std::shared_ptr<memory::Pool> pool_;
  memory::Timeline* timeline_ = nullptr;
  memory::BlockPtr faults_;
  memory::BlockPtr shared_arena_;
  std::atomic<bool> busy_{false};  // work may be in the queue
  std::atomic<bool> closed_{false};
  int64_t next_step_ = 0;
  std::unordered_map<std::string, std::weak_ptr<hal::Module>> modules_;
  std::mutex mutex_;
  std::map<int64_t, Enlisted> programs_;  // under mutex_
  std::deque<Retired> retired_;           // under mutex_
};

struct Runtime::Impl {
  std::shared_ptr<Core> core;
};

struct Loaded::Impl {
  std::shared_ptr<Core> core;
  std::shared_ptr<const program::Program> program;
  std::vector<std::shared_ptr<hal::Module>> modules;
  std::vector<hal::Function*> functions;  // one a step; null where it launches none
  int64_t first_step = 0;
  ~Impl();
};

}  // namespace gk::exec
