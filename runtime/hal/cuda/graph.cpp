// Driver graphs: kernels and copies are added node by node; a library call is captured into the graph.
#ifdef GK_HAS_CUDA
#include <fmt/format.h>

#include "runtime/hal/cuda/context.h"

namespace gk::hal::cuda {
namespace {

CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction f, const KernelLaunch& launch) {
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = f;
  p.gridDimX = launch.dims.grid[0];
  p.gridDimY = launch.dims.grid[1];
  p.gridDimZ = launch.dims.grid[2];
  p.blockDimX = launch.dims.block[0];
  p.blockDimY = launch.dims.block[1];
  p.blockDimZ = launch.dims.block[2];
  p.sharedMemBytes = launch.dims.shared_bytes;
  p.kernelParams = const_cast<void**>(launch.params.data());
  return p;
}

// Addresses are unified: the driver tells pinned host memory from the device's by the pointer.
CUDA_MEMCPY3D copy_params(const CopyOp& op) {
  CUDA_MEMCPY3D p{};
  p.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  p.srcDevice = device_pointer(op.src);
  p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  p.dstDevice = device_pointer(op.dst);
  p.WidthInBytes = static_cast<size_t>(op.size_bytes);
  p.Height = 1;
  p.Depth = 1;
  return p;
}

/// The driver's graph and the nodes by their ids. Executables keep it: node handles belong to it.
struct State {
  enum class Kind : uint8_t { Kernel, Copy, Library };
  /// An operation's last nodes: one, or the frontier that a library call left.
  struct Entry {
    uint32_t begin = 0, count = 0;
    Kind kind{};
  };
  std::shared_ptr<Context> context;
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> nodes;
  std::vector<Entry> entries;

  explicit State(std::shared_ptr<Context> c) : context(std::move(c)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (graph != nullptr && context->bind()) (void)GK_CU(*context, cuGraphDestroy, graph);
  }
  NodeId add(std::span<const CUgraphNode> last, Kind kind) {
    entries.push_back({static_cast<uint32_t>(nodes.size()), static_cast<uint32_t>(last.size()), kind});
    nodes.insert(nodes.end(), last.begin(), last.end());
    return static_cast<NodeId>(entries.size() - 1);
  }
  Result<CUgraphNode> single(NodeId node, Kind kind) const {
    if (node < 0 || static_cast<size_t>(node) >= entries.size() ||
        entries[static_cast<size_t>(node)].kind != kind) {
      return fail(ErrorKind::Device, "E0508", fmt::format("node {} is not there or of another kind", node));
    }
    return nodes[entries[static_cast<size_t>(node)].begin];
  }
};

class CudaGraphExec : public GraphExec {
 public:
  CudaGraphExec(std::shared_ptr<State> state, CUgraphExec exec) : state_(std::move(state)), exec_(exec) {}
  ~CudaGraphExec() override {
    // Legal while launches are in flight: the driver keeps what they need.
    if (state_->context->bind()) (void)GK_CU(*state_->context, cuGraphExecDestroy, exec_);
  }

  Result<void> launch(Stream& s) override {
    Context& c = *state_->context;
    auto* stream = dynamic_cast<CudaStream*>(&s);
    if (stream == nullptr || &stream->context() != &c) {
      return fail(ErrorKind::Device, "E0506", "this stream is not one of the CUDA device");
    }
    GK_CHECK(c.bind());
    return GK_CU(c, cuGraphLaunch, exec_, stream->handle());
  }

  Result<void> set_kernel(NodeId node, const KernelLaunch& launch) override {
    Context& c = *state_->context;
    GK_CHECK(c.bind());
    GK_TRY(const CUgraphNode n, state_->single(node, State::Kind::Kernel));
    GK_TRY(const CUfunction f, function_of(c, launch.function));
    const CUDA_KERNEL_NODE_PARAMS p = kernel_params(f, launch);
    return GK_CU(c, cuGraphExecKernelNodeSetParams, exec_, n, &p);
  }

  Result<void> set_copy(NodeId node, const CopyOp& op) override {
    Context& c = *state_->context;
    GK_CHECK(c.bind());
    GK_TRY(const CUgraphNode n, state_->single(node, State::Kind::Copy));
    const CUDA_MEMCPY3D p = copy_params(op);
    return GK_CU(c, cuGraphExecMemcpyNodeSetParams, exec_, n, &p, c.handle);
  }

  bool can_set_matmul() const override { return false; }

 private:
  std::shared_ptr<State> state_;
  CUgraphExec exec_;
};

class CudaGraph : public Graph {
 public:
  explicit CudaGraph(std::shared_ptr<State> state) : state_(std::move(state)) {}

  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override {
    Context& c = *state_->context;
    GK_CHECK(c.bind());
    GK_TRY(const CUfunction f, function_of(c, launch.function));
    GK_CHECK(gather(deps));
    const CUDA_KERNEL_NODE_PARAMS p = kernel_params(f, launch);
    CUgraphNode node = nullptr;
    GK_CHECK(GK_CU(c, cuGraphAddKernelNode, &node, state_->graph, deps_.data(), deps_.size(), &p));
    return state_->add({&node, 1}, State::Kind::Kernel);
  }

  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override {
    Context& c = *state_->context;
    GK_CHECK(c.bind());
    GK_CHECK(gather(deps));
    const CUDA_MEMCPY3D p = copy_params(op);
    CUgraphNode node = nullptr;
    GK_CHECK(GK_CU(c, cuGraphAddMemcpyNode, &node, state_->graph, deps_.data(), deps_.size(), &p, c.handle));
    return state_->add({&node, 1}, State::Kind::Copy);
  }

  Result<NodeId> matmul(const MatMulOp& op, std::span<const NodeId> deps) override {
    Context& c = *state_->context;
    GK_CHECK(c.bind());
    library::CublasLt* blas = c.blas();
    if (blas == nullptr) return fail(ErrorKind::Device, "E0507", "cuBLASLt was not found");
    GK_CHECK(gather(deps));
    std::lock_guard lock(c.capture_mutex());
    GK_TRY(const CUstream stream, c.capture_stream());
    // All that the library allocates or loads happens before the capture begins.
    GK_CHECK(blas->prepare(op));
    GK_CHECK(blas->warm(op, stream, [&] { return GK_CU(c, cuStreamSynchronize, stream); }));
    GK_CHECK(GK_CU(c, cuStreamBeginCaptureToGraph, stream, state_->graph, deps_.data(),
                   static_cast<const CUgraphEdgeData*>(nullptr), deps_.size(),
                   CU_STREAM_CAPTURE_MODE_RELAXED));
    Result<void> outcome = blas->run(op, stream);
    std::vector<CUgraphNode> last;
    if (outcome) outcome = frontier(stream, last);
    // The capture is ended on every way out, or the stream is lost.
    CUgraph ended = nullptr;
    Result<void> end = GK_CU(c, cuStreamEndCapture, stream, &ended);
    GK_CHECK(std::move(outcome));
    GK_CHECK(std::move(end));
    has_library_calls_ = true;
    return state_->add(last, State::Kind::Library);
  }

  Result<std::unique_ptr<GraphExec>> instantiate() override {
    Context& c = *state_->context;
    GK_CHECK(c.bind());
    CUgraphExec exec = nullptr;
    // A library may have captured allocations of its own: they end with each launch.
    const unsigned long long flags = has_library_calls_ ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0;
    GK_CHECK(GK_CU(c, cuGraphInstantiateWithFlags, &exec, state_->graph, flags));
    return std::make_unique<CudaGraphExec>(state_, exec);
  }

  int64_t num_nodes() const override {
    size_t n = 0;
    Context& c = *state_->context;
    if (!c.bind() || !GK_CU(c, cuGraphGetNodes, state_->graph, static_cast<CUgraphNode*>(nullptr), &n))
      return -1;
    return static_cast<int64_t>(n);
  }
  int64_t num_edges() const override {
    size_t n = 0;
    Context& c = *state_->context;
    CUgraphNode* const none = nullptr;
    if (!c.bind() || !GK_CU(c, cuGraphGetEdges_v2, state_->graph, none, none,
                            static_cast<CUgraphEdgeData*>(nullptr), &n)) {
      return -1;
    }
    return static_cast<int64_t>(n);
  }

 private:
  Result<void> gather(std::span<const NodeId> deps) {
    deps_.clear();
    for (NodeId d : deps) {
      if (d < 0 || static_cast<size_t>(d) >= state_->entries.size()) {
        return fail(ErrorKind::Device, "E0508", fmt::format("the graph has no node {} to come after", d));
      }
      const State::Entry& e = state_->entries[static_cast<size_t>(d)];
      for (uint32_t i = 0; i < e.count; ++i) deps_.push_back(state_->nodes[e.begin + i]);
    }
    return {};
  }

  // What later work must come after. Only readable while the capture is active.
  Result<void> frontier(CUstream stream, std::vector<CUgraphNode>& last) {
    Context& c = *state_->context;
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    size_t count = 0;
    GK_CHECK(GK_CU(c, cuStreamGetCaptureInfo_v3, stream, &status, &id, &graph, &nodes, &edges, &count));
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
      return fail(ErrorKind::Capture, "E0706", "a library call ended the capture that it was part of");
    }
    last.assign(nodes, nodes + count);
    return {};
  }

  std::shared_ptr<State> state_;
  std::vector<CUgraphNode> deps_;
  bool has_library_calls_ = false;
};

}  // namespace

Result<std::unique_ptr<Graph>> create_graph(std::shared_ptr<Context> context) {
  GK_CHECK(context->bind());
  auto state = std::make_shared<State>(std::move(context));
  GK_CHECK(GK_CU(*state->context, cuGraphCreate, &state->graph, 0U));
  return std::make_unique<CudaGraph>(std::move(state));
}

}  // namespace gk::hal::cuda
#endif
