// Operations of the host device as plain values: what a stream's queue and a graph's list hold. Owns copies
// of everything it was given, so that the caller's arguments may go. Not for ordering: host_stream.h.
#pragma once

#include <cstddef>
#include <memory>
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
  std::unique_ptr<void*[]> params;
};
struct MatMulWork {
  program::MatMulCall call;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* c = nullptr;
};
using Op = std::variant<KernelOp, CopyOp, MatMulWork>;

/// Errors: Device E0506 where the function is not one of the host's.
Result<KernelOp> make_kernel(const KernelLaunch& launch);
/// Errors: Device E0507 where no library on this machine does it.
Result<MatMulWork> make_matmul(const MatMulOp& op);
/// Runs the operation; returns when it is done.
void execute(const Op& op, Workers& workers);

}  // namespace gk::hal::host
