// Running programs: load once, then run eagerly or as a graph, by one step walker over hal::Recorder.
// Owns loaded programs, recordings, graphs, executables with their arena and leases, and update. Promises:
// eager and graph modes walk the same steps; an executable leases everything it uses; a launch is ordered
// after whatever used its arrays last, and costs one driver call where nothing did since; an update changes
// all nodes or none. Not for tensors, names or text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/memory/memory.h"
#include "runtime/program/program.h"

namespace gk::exec {

class Recording;

/// One thread's way to a device: a stream, a fault record, and while a graph is being made the recording. The
/// device, its memory, code and retired things are shared with the runtimes forked from it. One thread at a
/// time.
class Runtime {
 public:
  static Result<std::shared_ptr<Runtime>> create(std::shared_ptr<hal::Device> device,
                                                 int64_t memory_limit_bytes);
  /// Another one over the same device, for another thread: with a stream of its own, or one of the host
  /// program's (a CUstream). Thread-safe. Errors: Device E0510.
  Result<std::shared_ptr<Runtime>> fork(std::optional<void*> native_stream = {});
  hal::Device& device();
  hal::Stream& stream();
  memory::Timeline& timeline();
  memory::Pool& pool();
  /// Memory for work on this runtime's stream. While recording: one of the recording's dead temporaries, or
  /// from the pool, ordered for the launches of the graph.
  Result<memory::BlockPtr> allocate(int64_t size_bytes, hal::Placement placement = hal::Placement::Device);
  /// Waits for the stream; then a pending fault is raised: Runtime E0801 (index out of range, with line,
  /// axis, index, extent) or E0802 (division by zero). Errors: Capture E0703 while recording.
  Result<void> synchronize();
  /// While recording: the bytes are kept in pinned memory that the graph leases, and sent at every launch.
  Result<void> upload(const memory::BlockPtr& dst, const void* src, int64_t size_bytes,
                      int64_t offset_bytes = 0);
  /// Errors: Capture E0703 while recording; the recording goes on unharmed.
  Result<void> download(void* dst, const memory::BlockPtr& src, int64_t size_bytes, int64_t offset_bytes = 0);
  /// Calls a function of the host program in stream order; while recording, at every launch.
  Result<void> host_call(std::function<void()> f);
  /// Null unless a graph is being made.
  Recording* recording();
  /// Waits for the device, then gives cached memory, retired things and graphs' own memory back to the
  /// driver. Errors: Capture E0708 while recording.
  Result<void> reclaim();
  ~Runtime();
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A program with its code on the device. Thread-safe.
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

/// Runs now, on the runtime's stream, with an arena from the pool; returns when submitted. While recording:
/// becomes an operation of the graph. Errors: Capture E0711 where the stream is being captured by somebody
/// else.
Result<void> run(Runtime& rt, const std::shared_ptr<Loaded>& program, const Bindings& bindings,
                 Span span = {});

/// A call in a graph. A declared node is one call or several in a row with the same name.
struct GraphNode {
  std::string name;                 // "" outside declared nodes
  std::shared_ptr<Loaded> program;  // null: opaque work (a library's, the host program's), which only runs
  Bindings bindings;
  std::vector<int32_t> after;  // earlier nodes
  Span span{};
};

/// What a node does, a line a step, those of bodies indented: "kernel multiply+add".
std::vector<std::string> step_labels(const GraphNode& n);

enum class UpdateRung : uint8_t { None, Patched, GraphUpdated, Reinstantiated };

class Graph;
/// An executable: arena, leases, driver graph. Used by one thread at a time; launches of one never overlap.
class Executable {
 public:
  /// On the runtime's stream, ordered after whatever used its arrays last. Errors: Capture E0703 while `rt`
  /// records.
  Result<void> launch(Runtime& rt, int64_t times = 1);
  /// Sends ahead what the first launch would send.
  Result<void> upload(Runtime& rt);
  /// Retargets node `index` to another program and bindings. Errors leave it as it was.
  Result<void> update(int32_t index, std::shared_ptr<Loaded> program, Bindings bindings);
  /// Takes over all nodes of another graph of the same topology. Errors: Capture E0709; it stays as it was.
  Result<void> update(const Graph& other);
  /// Replaces a block wherever it is bound; pairs of (from, to), same size needed. Errors leave it as it was.
  Result<void> rebind(std::span<const std::pair<SlotBinding, SlotBinding>> pairs);
  UpdateRung last_update() const;
  std::string last_update_reason() const;
  int64_t arena_bytes() const;
  int64_t num_leases() const;
  int64_t num_driver_nodes() const;
  const std::vector<GraphNode>& nodes() const;
  /// Destroys it now; launches in flight go on. Where the driver fails, what it used is kept for good.
  Result<void> close();
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
  int64_t num_leases() const;
  /// `--emit=graph`: declared nodes and edges, the driver graph's, leases, arena. Stable text.
  std::string print() const;
  std::string dot() const;
  ~Graph();
  struct Impl;
  explicit Graph(std::shared_ptr<Impl> impl);
  Impl& impl() { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
  friend class Executable;
  friend class Recording;
};

struct RecordingOptions {
  std::string name;
  hal::CaptureMode mode = hal::CaptureMode::Relaxed;
  /// Record what is given to this stream of the host program's (a CUstream): non-blocking, of the device's
  /// context, idle, not capturing. Without it a stream of the recording's own.
  std::optional<void*> stream{};
  /// A graph of the host program's own (a CUgraph) to add to, after these of its nodes (CUgraphNodes); what
  /// is used stays leased until that graph and all executables of it are gone.
  std::optional<void*> into{};
  std::vector<void*> after{};
};

/// A graph being made: what the runtime is given between begin and finish. One at a time a runtime; other
/// threads take part with forks of the runtime that join(). Memory allocated and dropped inside is used again
/// by later work inside.
class Recording {
 public:
  /// Errors: Capture E0718 (one is open already), E0708 (a release that waits is in progress), E0712 (the
  /// explicit stream breaks a rule, with which).
  static Result<std::shared_ptr<Recording>> begin(Runtime& rt, RecordingOptions options);
  /// Goes on with a graph: what is recorded comes after it. discard() leaves the graph as it was.
  static Result<std::shared_ptr<Recording>> extend(Runtime& rt, Graph& graph);
  /// Calls from here to end_node() make up one declared node, after the declared nodes `after` (all recorded
  /// so far where not given). Errors: Capture E0701 (order that reads and writes need is missing), E0704 (no
  /// such node), E0408 (the name is taken).
  Result<void> begin_node(std::string name, std::optional<std::vector<std::string>> after, Span span = {});
  Result<void> end_node();
  /// The driver's stream (CUstream) on which the host program's own work is recorded; null on the host
  /// device.
  Result<void*> stream();
  /// The host program's own work uses this memory: the graph leases it, and a launch is ordered after
  /// whatever used it last. What gk is given to run needs no such word.
  Result<void> use(const memory::BlockPtr& b);
  /// Another thread's runtime, a fork over the same device, takes part until leave(); one submits at a time,
  /// in the order they come. Thread-safe. Errors: Capture E0713 (it has ended).
  Result<void> join(Runtime& rt);
  Result<void> leave(Runtime& rt);
  /// Ends it. Errors: Capture E0714 (another thread still takes part: ended and discarded), E0715 (something
  /// outside broke the capture; the first call that failed is named); the runtime is as before on every way
  /// out.
  Result<std::shared_ptr<Graph>> finish();
  void discard();
  /// Of a recording into a graph of the host program's: the nodes (CUgraphNodes) that later work comes after.
  std::vector<void*> frontier() const;
  ~Recording();  // discards unless finished
  struct Impl;
  explicit Recording(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gk::exec
