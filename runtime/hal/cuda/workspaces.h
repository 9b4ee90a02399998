// The scratch memory that library calls need, on the device. Owns what nobody uses now. Promises each taker a
// workspace of its own until it is given back, and that giving back makes no driver call, so that it can be
// done where the driver tells that a graph is gone. Only work that is done may give back. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/error.h"

namespace gk::hal::cuda {

class Context;

class Workspaces {
 public:
  /// Errors: OutOfMemory E0601.
  Result<void*> take(Context& c);
  void give(void* workspace);
  /// Frees what nobody uses; the number of workspaces that were freed.
  int trim(Context& c) { return trim(c, 0); }

 private:
  static constexpr size_t kKept = 4;  // more idle ones are freed at the next take()
  int trim(Context& c, size_t kept);
  std::mutex mutex_;
  std::vector<void*> idle_;  // under mutex_
};

/// A workspace that goes back when the holder does.
struct LentWorkspace {
  std::shared_ptr<Workspaces> owner;
  void* address = nullptr;
  LentWorkspace(std::shared_ptr<Workspaces> o, void* a) : owner(std::move(o)), address(a) {}
  LentWorkspace(const LentWorkspace&) = delete;
  LentWorkspace& operator=(const LentWorkspace&) = delete;
  ~LentWorkspace() { owner->give(address); }
};

}  // namespace gk::hal::cuda
