// The same kernels with the same grids and arguments, driven by the CUDA driver alone: what gk is held
// against. Owns its own stream, loaded code and driver graphs, in the device's primary context. Promises
// nothing that a program needs: no leases, no checks, no pool. Only for programs of kernel launches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/exec/exec.h"

namespace gk::bench {

/// The kernel launches of one program with its bindings, as plain numbers.
struct RawLaunches;

class RawGraph {
 public:
  ~RawGraph();
  struct Impl;
  explicit RawGraph(std::unique_ptr<Impl> impl);
  Result<void> launch();
  /// Points launch `index` at the arguments of launch `other_index` of `other`.
  Result<void> set_params(size_t index, const RawLaunches& other, size_t other_index);

 private:
  std::unique_ptr<Impl> impl_;
};

class RawDriver {
 public:
  /// Errors: Device E0501 where there is no driver, or a build without CUDA.
  static Result<std::unique_ptr<RawDriver>> open(int ordinal);
  ~RawDriver();
  /// Takes a program apart. `arena` is where its temporaries lie. Errors: a step that is not a kernel launch.
  Result<std::shared_ptr<RawLaunches>> take(exec::Runtime& rt, const exec::Loaded& program,
                                            const exec::Bindings& bindings, void* arena);
  /// Joins launches one after the other.
  static std::shared_ptr<RawLaunches> join(const std::vector<std::shared_ptr<RawLaunches>>& parts);
  Result<void> launch_each(const RawLaunches& l);
  /// A straight line of kernel nodes, instantiated.
  Result<std::unique_ptr<RawGraph>> graph(const RawLaunches& l);
  Result<void> synchronize();

 private:
  struct Impl;
  explicit RawDriver(std::unique_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
  friend class RawGraph;
};

}  // namespace gk::bench
