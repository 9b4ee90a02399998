// An Engine: one device with its memory, compiler and caches, shared by everything made from it. Thread-safe.
// Several engines live side by side in one process, also on one device; what belongs to one is refused by the
// others (E0717). Handles keep what they need alive, so the order in which they are dropped does not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gk/error.h"

GK_API_BEGIN

namespace detail {
struct EngineImpl;
struct Access;
}  // namespace detail

struct EngineOptions {
  /// "host", "cuda", "cuda:1", "trace" (host, with every call to the device logged and counted),
  /// "trace:cuda"; empty: cuda where a GPU answers, else host.
  std::string device{};
  int64_t memory_limit_bytes = 0;  // 0: the device's own
  std::string cache_dir{};         // where compiled code is kept between processes; empty: the default one
  bool use_cache = true;
  int host_threads = 0;  // of the host device; 0: as many as the process may use, which is the most
  /// Every array of floats that a call or launch has written is searched; a NaN is a fault (E0805, with line
  /// and index), raised by the next wait. Arrays of these names may hold some. For finding mistakes: it costs
  /// a pass over the array.
  bool nan_check = false;
  std::vector<std::string> nan_exempt{};
  CUctx_st* native_context = nullptr;  // a CUcontext to live in; null: the device's primary one
  /// What programs print; null: standard output. Called on the thread that runs the program.
  std::function<void(std::string_view)> out{};
  /// What is no error and should be known, such as a cache folder that is not safe to use (E1005); null: a
  /// line on standard error. Called on the thread that compiles.
  std::function<void(const Error&)> warn{};
};

struct EngineStats {
  int64_t in_use_bytes = 0, cached_bytes = 0, peak_bytes = 0, limit_bytes = 0;
  int64_t leases = 0;            // arrays kept by graphs and executables
  int64_t pending_releases = 0;  // endings that wait for their moment
  int64_t compiles = 0, cache_hits = 0, kernels_compiled = 0, disk_cache_hits = 0;
  int64_t driver_calls = 0;
};

class Engine {
 public:
  /// Errors: E0501 (no such device), E0502 (driver missing or too old), E0510 (the context is of another
  /// device), E0512 ("interp" runs no graphs and is for gkrun alone).
  explicit Engine(EngineOptions options = {}) : Engine(open(std::move(options)).value()) {}
  static Result<Engine> open(EngineOptions options);

  /// "cuda:0", "host"
  const std::string& device() const;
  /// "NVIDIA H200"
  const std::string& device_name() const;
  bool is_cuda() const;
  EngineStats stats() const;
  void reset_peak();
  /// Waits for the device, then gives all memory that is cached, releases that wait and the memory of graphs
  /// back to the driver. Errors: E0708 (a graph of this engine is being made, by whatever thread).
  void reclaim() { try_reclaim().value(); }
  Result<void> try_reclaim();
  /// What releases failed to give back, each noted once.
  std::vector<std::string> release_failures() const;

 private:
  friend struct detail::Access;
  explicit Engine(std::shared_ptr<detail::EngineImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<detail::EngineImpl> impl_;
};

GK_API_END
