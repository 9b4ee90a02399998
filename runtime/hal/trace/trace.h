// A device that wraps another one. Promises the same results, a log and a count of every driver-level call,
// how many objects are alive, and, when asked, a typed failure at the k-th call or at the next one of a name.
// Owns what a failed destruction left. For tests and for `--device=trace`. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/hal/device.h"

namespace gk::hal::trace {

struct Call {
  std::string name;        // "allocate", "launch graph", …
  int64_t size_bytes = 0;  // of memory calls; else 0
  std::string detail;      // a kernel's dims, a matrix product's extents
};

/// Objects that were made and not yet destroyed.
struct Alive {
  int64_t allocations = 0, bytes = 0, modules = 0, streams = 0, events = 0, graphs = 0, execs = 0;
  bool operator==(const Alive&) const = default;
};

class TraceDevice : public Device {
 public:
  /// The last calls, oldest first (at most kLogLimit of them).
  virtual std::vector<Call> log() const = 0;
  virtual void clear_log() = 0;
  virtual Alive alive() const = 0;
  /// Makes the k-th call from now (0: the next) fail once, with an error of that kind, and not happen; the
  /// release of memory, the end of a capture and a wait happen all the same, so that nothing leaks by it. An
  /// executable whose destruction fails counts as alive from then on. -1: never, nor one asked for by name.
  virtual void fail_at(int64_t k, ErrorKind kind = ErrorKind::Device) = 0;
  /// The same for the next call of that name ("launch graph").
  virtual void fail_next(std::string_view name, ErrorKind kind = ErrorKind::Device) = 0;
  /// True once the failure that was asked for has been given.
  virtual bool failed() const = 0;
  /// The name of the call that was made to fail last.
  virtual std::string failed_call() const = 0;
  virtual Device& inner() = 0;
  static constexpr size_t kLogLimit = 65536;
};

std::shared_ptr<TraceDevice> wrap(std::shared_ptr<Device> inner);

}  // namespace gk::hal::trace
