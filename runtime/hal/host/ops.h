// Operations of the host device as plain values: what a stream's queue and a graph's lists hold. Owns copies
// of everything it was given, so that the caller's arguments may go, and what graphs retain. Promises that a
// launch of an OpList does the same whatever its graph and executable do meanwhile. Not for ordering:
// host_stream.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/hal/device.h"
#include "runtime/hal/host/workers.h"

namespace gk::hal::host {

/// A kernel with its arguments. One block of memory: the pointers that the entry takes, then the values.
struct KernelOp {
  HostEntry entry = nullptr;
  int64_t items = 0;
  int64_t grain = 1;
  int64_t work = -1;  // as LaunchDims::work
  std::unique_ptr<void*[]> params;
};
struct LibraryWork {
  program::LibraryCall call;
  LibraryOp op;  // but for its call
};
struct HostCall {
  std::shared_ptr<const std::function<void()>> f;
};
/// A branch or a loop over sequences of the list that it is in.
struct Conditional {
  ConditionalOp::Kind kind = ConditionalOp::Kind::If;
  const void* condition = nullptr;
  int32_t bodies[2] = {-1, -1};  // -1: none
};
using Op = std::variant<KernelOp, CopyOp, LibraryWork, HostCall, Conditional>;
using Ops = std::vector<std::shared_ptr<const Op>>;

/// Errors: Device E0506 where the function is not one of the host's.
Result<HostEntry> entry_of(const KernelLaunch& launch);
/// Errors: as entry_of().
Result<KernelOp> make_kernel(const KernelLaunch& launch);
/// Errors: Device E0507 where no library on this machine does it, OutOfMemory E0601 where the library would
/// find no memory to work in.
Result<LibraryWork> make_library(const LibraryOp& op);
/// Errors: Device E0506 where there is no function.
Result<HostCall> make_host_call(std::function<void()> f);
/// "kernel", "copy", …
std::string_view name_of(const Op& op);
/// About how many scalar operations it takes; below zero where that is not known.
int64_t work_of(const Op& op);
/// Runs the operation, which is no conditional; returns when it is done.
void execute(const Op& op, Workers& workers);
/// The byte that a conditional looks at.
bool holds(const void* condition);

/// How the operations of a graph belong together. Sequence 0 is the graph itself, the others are bodies.
struct Topology {
  struct Sequence {
    NodeId owner = -1;  // the conditional that it is a body of
    std::vector<NodeId> nodes;
  };
  struct Node {
    int32_t sequence = 0;
    std::vector<NodeId> deps;
  };
  std::vector<Sequence> sequences{{}};
  std::vector<Node> nodes;
};

/// Calls its function when the last holder is gone.
class Keeper {
 public:
  explicit Keeper(std::function<void()> f) : f_(std::move(f)) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() {
    if (f_) f_();
  }

 private:
  std::function<void()> f_;
};
using Keepers = std::vector<std::shared_ptr<const Keeper>>;

/// What one launch runs: a graph's operations by their ids. `running` counts launches that were submitted and
/// are not done, so that an update knows whether it may change the list in place.
struct OpList {
  Ops ops;
  std::shared_ptr<const Topology> topology;
  Keepers kept;
  std::atomic<int64_t> running{0};
  // Of all operations, bodies' included.
  int64_t work = 0;       // of those whose work is known
  int64_t unbounded = 0;  // the others
  int64_t host_calls = 0;
  /// Counts an operation that comes (1) or goes (-1).
  void count(const Op& op, int64_t by);
};
void execute(const OpList& list, Workers& workers);

}  // namespace gk::hal::host
