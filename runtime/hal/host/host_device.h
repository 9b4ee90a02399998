// The host as a device: ordinary memory, asynchronous streams with one worker each, kernels and matrix
// products over the device's threads. Owns those threads. Promises stream order and nothing more: work of two
// streams runs at the same time unless events order it. Not for compiling or linking code: see
// set_host_loader().
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "runtime/hal/device.h"
#include "runtime/hal/host/workers.h"

namespace gk::hal::host {

class HostStream;

/// What streams and graphs share with their device; lives as long as any of them.
struct Shared {
  explicit Shared(int threads) : workers(threads) {}
  /// Waits until everything submitted so far, on any stream, is done.
  void wait_all();
  void count() { driver_calls.fetch_add(1, std::memory_order_relaxed); }
  Workers workers;
  std::atomic<int64_t> driver_calls{0};
  std::mutex mutex;
  std::set<HostStream*> streams;  // under mutex
};

DeviceInfo describe(int threads);
std::shared_ptr<Device> open(const OpenOptions& options);
std::unique_ptr<Stream> create_stream(std::shared_ptr<Shared> shared);
std::unique_ptr<Graph> create_graph(std::shared_ptr<Shared> shared);
/// The loader that set_host_loader() was given, or null.
HostLoader host_loader();

}  // namespace gk::hal::host
