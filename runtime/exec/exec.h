// Running programs: load once, then run eagerly or as a graph, by one step walker over hal::Recorder.
// Owns loaded programs, declared graphs, executables with their arena and leases, and update. Promises: eager
// and graph modes walk the same steps; an executable leases everything it uses; an update changes all nodes
// or none. Not for tensors, names or text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/memory/memory.h"
#include "runtime/program/program.h"

namespace gk::exec {

/// One device with its pool, stream and fault record; what a session runs on. One thread at a time.
class Runtime {
 public:
  static Result<std::shared_ptr<Runtime>> create(std::shared_ptr<hal::Device> device,
                                                 int64_t memory_limit_bytes);
  hal::Device& device();
  hal::Stream& stream();
  memory::Pool& pool();
  /// Waits for the stream; then a pending fault is raised: Runtime E0801 (index out of range, with line,
  /// axis, index, extent) or E0802 (division by zero).
  Result<void> synchronize();
  Result<void> upload(const memory::BlockPtr& dst, const void* src, int64_t size_bytes,
                      int64_t offset_bytes = 0);
  Result<void> download(void* dst, const memory::BlockPtr& src, int64_t size_bytes, int64_t offset_bytes = 0);
  ~Runtime();
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A program with its code on the device.
class Loaded {
 public:
  static Result<std::shared_ptr<Loaded>> create(Runtime& rt, std::shared_ptr<const program::Program> p);
  const program::Program& program() const;
  ~Loaded();
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Loaded(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// What a launch is given: one block and byte offset a slot, and the scalars.
struct SlotBinding {
  memory::BlockPtr block;
  int64_t offset_bytes = 0;
};
struct Bindings {
  std::vector<SlotBinding> slots;
  std::vector<Scalar> scalars;
};

/// Runs now, on the runtime's stream, with an arena from the pool. Returns when submitted.
Result<void> run(Runtime& rt, Loaded& program, const Bindings& bindings);

/// A graph as declared: named nodes, each a program with its bindings, in a valid order.
struct GraphNode {
  std::string name;  // "" for the single node of a capture
  std::shared_ptr<Loaded> program;
  Bindings bindings;
  std::vector<int32_t> after;  // earlier nodes
  Span span{};
};

enum class UpdateRung : uint8_t { None, Patched, Reinstantiated };

class Graph;
/// An executable: arena, leases, driver graph. Not thread-safe; launches of one never overlap.
class Executable {
 public:
  Result<void> launch(int64_t times = 1);
  /// Retargets node `index` to another program and bindings. Errors leave it as it was.
  Result<void> update(int32_t index, std::shared_ptr<Loaded> program, Bindings bindings);
  /// Replaces a block wherever it is bound; pairs of (from, to), same size needed. Errors leave it as it was.
  Result<void> rebind(std::span<const std::pair<SlotBinding, SlotBinding>> pairs);
  UpdateRung last_update() const;
  std::string last_update_reason() const;
  int64_t arena_bytes() const;
  int64_t num_leases() const;
  int64_t num_driver_nodes() const;
  const std::vector<GraphNode>& nodes() const;
  ~Executable();
  struct Impl;
  explicit Executable(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

class Graph {
 public:
  /// Leases every bound block. Nodes may refer to earlier ones only. The arena is planned over all nodes.
  static Result<std::shared_ptr<Graph>> create(Runtime& rt, std::vector<GraphNode> nodes, std::string name);
  Result<std::shared_ptr<Executable>> instantiate();
  const std::vector<GraphNode>& nodes() const;
  const std::string& name() const;
  /// `--emit=graph`: declared nodes and edges, the driver graph's, leases, arena. Stable text.
  std::string print() const;
  std::string dot() const;
  ~Graph();
  struct Impl;
  explicit Graph(std::unique_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
  friend class Executable;
};

}  // namespace gk::exec
