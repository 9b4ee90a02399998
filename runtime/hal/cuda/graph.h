// A driver graph being recorded: the state that the graph, the recorders of its bodies and its executables
// share, and the operations on it. Owns the CUgraph unless that is the host program's own. Promises that an
// operation that fails leaves the graph as it was. Graph and executables may be used by different threads: a
// lock in the state orders what they do to the CUgraph, which the driver does not.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "runtime/hal/cuda/context.h"

namespace gk::hal::cuda {

CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction f, const KernelLaunch& launch);
CUDA_MEMCPY3D copy_params(const CopyOp& op);

/// A capture of somebody's stream into the graph. Sets of nodes are sorted.
struct StreamCapture {
  CUstream stream = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cuuint64_t id = 0;
  std::vector<CUgraphNode> start;     // the frontier when it began or was resumed
  std::vector<CUgraphNode> frontier;  // what captured() gave last, as node `last`
  NodeId last = -1;
  std::vector<NodeId> seen;  // all that captured() gave since it began or was resumed
  uint64_t failures = 0;     // of the context, at the beginning
};

struct State {
  enum class Kind : uint8_t { Kernel, Copy, Library, HostCall, Conditional, Captured, Foreign };
  /// An operation: the driver nodes that later work must come after (one, or the frontier that captured work
  /// left), and all those that exist because of it.
  struct Entry {
    CUgraph graph = nullptr;  // the graph itself or a body
    uint32_t last_begin = 0, last_count = 0;
    uint32_t owned_begin = 0, owned_count = 0;
    Kind kind{};
  };
  struct Body {
    CUgraph graph = nullptr;
    NodeId owner = -1;
  };
  struct Handle {
    CUgraph graph = nullptr;
    NodeId owner = -1;  // -1: no conditional node was made for it
    CUgraphConditionalHandle handle = 0;
    bool used = false;  // a conditional node has it
  };

  State(std::shared_ptr<Context> c, CUgraph g, bool o) : context(std::move(c)), graph(g), owned_graph(o) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  std::recursive_mutex mutex;
  const std::shared_ptr<Context> context;
  const CUgraph graph;
  bool owned_graph;  // false: the host program's, or the driver has destroyed it
  std::vector<Entry> entries;
  std::vector<CUgraphNode> last, owned;   // of the entries
  std::unordered_set<CUgraphNode> known;  // all in `last` and `owned`, once a stream was captured
  bool tells_known = false;
  std::vector<Body> bodies;
  std::vector<Handle> handles;
  std::vector<std::pair<NodeId, CUuserObject>> functions;  // of host calls
  std::vector<CUgraphNode> deps;                           // of the operation that is being added
  void* workspace = nullptr;                               // the library calls'; a user object owns it
  bool has_captured_work = false;
  std::optional<StreamCapture> capture;
  std::string lost;  // why it cannot be used; empty: it can

  NodeId next_id() const { return static_cast<NodeId>(entries.size()); }
  /// Whether every node of the driver's is one that was added here.
  bool is_all_ours() const { return owned_graph && !has_captured_work && bodies.empty() && handles.empty(); }
  /// Keeps `known` from now on.
  void know_all();
  NodeId add(CUgraph in, Kind kind, std::span<const CUgraphNode> frontier, std::span<const CUgraphNode> own);
  /// Makes `deps` the driver nodes of these. Errors: Device E0508.
  Result<void> gather(CUgraph in, std::span<const NodeId> after);
  Result<CUgraphNode> single(NodeId node, Kind kind) const;
  std::span<const CUgraphNode> last_of(const Entry& e) const {
    return {last.data() + e.last_begin, e.last_count};
  }
  /// The nodes that lead to these and are not known.
  Result<std::vector<CUgraphNode>> discover(std::span<const CUgraphNode> frontier);
  /// Removes every entry from the mark on. Not while a stream is captured. Errors: Capture E0715 where a
  /// conditional node was among them, whose handle the driver cannot take back: the graph is of no use then.
  Result<void> remove_from(NodeId mark);
  /// Errors: Capture E0715 where it cannot be used.
  Result<void> check_usable() const;
};

/// Gives an object to the graph: `destroy(object)` runs when the graph, the executables made of it and their
/// launches are gone. On failure it does not run.
Result<CUuserObject> retain_object(State& s, void* object, void (*disarm)(void*), CUhostFn destroy);

// The operations, into the graph itself or a body of it.
Result<NodeId> add_kernel(State& s, CUgraph in, const KernelLaunch& launch, std::span<const NodeId> deps);
Result<NodeId> add_copy(State& s, CUgraph in, const CopyOp& op, std::span<const NodeId> deps);
Result<NodeId> add_library(State& s, CUgraph in, const LibraryOp& op, std::span<const NodeId> deps);
Result<NodeId> add_host_call(State& s, CUgraph in, std::function<void()> f, std::span<const NodeId> deps);
Result<NodeId> add_conditional(State& s, CUgraph in, const ConditionalOp& op, std::span<const NodeId> deps);
/// A handle that no conditional node uses may make a graph useless: gives each such one a node that never
/// runs.
Result<void> use_up_handles(State& s);

/// The frontier of an active capture.
struct Frontier {
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  std::vector<CUgraphNode> nodes;
};
Result<Frontier> read_frontier(Context& c, CUstream stream);
Result<void> set_frontier(Context& c, CUstream stream, std::span<const CUgraphNode> nodes);

/// Ends the capture of a stream into the graph or a body of it. Where that fails the graph may be gone with
/// it.
Result<void> finish_capture(State& s, CUgraph into, CUstream stream);

Result<void> begin_capture(State& s, Stream& stream, CaptureMode mode, std::span<const NodeId> after);
Result<NodeId> captured(State& s);
Result<void> resume_capture(State& s, NodeId node);
Result<void> end_capture(State& s);
/// remove_from() that interrupts a capture of a stream.
Result<void> rollback(State& s, int64_t mark);

/// What a graph and a body have in common: Base is Graph or Recorder.
template <class Base>
class CudaRecorder : public Base {
 public:
  CudaRecorder(std::shared_ptr<State> state, CUgraph in) : state_(std::move(state)), in_(in) {}
  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override {
    return add_kernel(*state_, in_, launch, deps);
  }
  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override {
    return add_copy(*state_, in_, op, deps);
  }
  Result<NodeId> library(const LibraryOp& op, std::span<const NodeId> deps) override {
    return add_library(*state_, in_, op, deps);
  }
  Result<NodeId> host_call(std::function<void()> f, std::span<const NodeId> deps) override {
    return add_host_call(*state_, in_, std::move(f), deps);
  }
  Result<NodeId> conditional(const ConditionalOp& op, std::span<const NodeId> deps) override {
    return add_conditional(*state_, in_, op, deps);
  }

 protected:
  std::shared_ptr<State> state_;
  CUgraph in_;
};

class CudaGraph : public CudaRecorder<Graph> {
 public:
  explicit CudaGraph(std::shared_ptr<State> state) : CudaRecorder(state, state->graph) {}
  ~CudaGraph() override;
  Result<std::unique_ptr<GraphExec>> instantiate() override;
  int64_t num_nodes() const override;
  int64_t num_edges() const override;
  Result<void> begin_capture(Stream& s, CaptureMode mode, std::span<const NodeId> after) override {
    return cuda::begin_capture(*state_, s, mode, after);
  }
  Result<NodeId> captured() override { return cuda::captured(*state_); }
  Result<void> resume_capture(NodeId node) override { return cuda::resume_capture(*state_, node); }
  Result<void> end_capture() override { return cuda::end_capture(*state_); }
  int64_t mark() const override;
  Result<void> rollback(int64_t mark) override { return cuda::rollback(*state_, mark); }
  Result<void> retain(std::function<void()> f) override;
  std::vector<void*> native_nodes(NodeId node) const override;
  State& state() { return *state_; }

 private:
  template <class Count>
  int64_t sum(Count count) const;
};

}  // namespace gk::hal::cuda
