// Driver graphs: kernels, copies and host calls are added node by node.
#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/graph.h"

#include <fmt/format.h>

#include "runtime/hal/cuda/graph_exec.h"

namespace gk::hal::cuda {

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

Result<NodeId> add_kernel(State& s, CUgraph in, const KernelLaunch& launch, std::span<const NodeId> deps) {
  std::lock_guard lock(s.mutex);
  Context& c = *s.context;
  GK_CHECK(s.check_usable());
  GK_CHECK(c.bind());
  GK_TRY(const CUfunction f, function_of(c, launch.function));
  GK_CHECK(s.gather(in, deps));
  const CUDA_KERNEL_NODE_PARAMS p = kernel_params(f, launch);
  CUgraphNode node = nullptr;
  GK_CHECK(GK_CU(c, cuGraphAddKernelNode, &node, in, s.deps.data(), s.deps.size(), &p));
  return s.add(in, State::Kind::Kernel, {&node, 1}, {&node, 1});
}

Result<NodeId> add_copy(State& s, CUgraph in, const CopyOp& op, std::span<const NodeId> deps) {
  std::lock_guard lock(s.mutex);
  Context& c = *s.context;
  GK_CHECK(s.check_usable());
  GK_CHECK(c.bind());
  GK_CHECK(s.gather(in, deps));
  const CUDA_MEMCPY3D p = copy_params(op);
  CUgraphNode node = nullptr;
  GK_CHECK(GK_CU(c, cuGraphAddMemcpyNode, &node, in, s.deps.data(), s.deps.size(), &p, c.handle));
  return s.add(in, State::Kind::Copy, {&node, 1}, {&node, 1});
}

namespace {

using Function = std::function<void()>;

// The driver may not see an exception, and these may not call the driver.
void CUDA_CB call(void* data) noexcept { (*static_cast<Function*>(data))(); }
void CUDA_CB destroy(void* data) noexcept { delete static_cast<Function*>(data); }
void CUDA_CB call_and_destroy(void* data) noexcept {
  const std::unique_ptr<Function> f(static_cast<Function*>(data));
  if (*f) (*f)();
}
void keep_as_it_is(void*) {}
void forget(void* data) { *static_cast<Function*>(data) = nullptr; }

}  // namespace

Result<NodeId> add_host_call(State& s, CUgraph in, std::function<void()> f, std::span<const NodeId> deps) {
  std::lock_guard lock(s.mutex);
  if (in != s.graph) {
    return fail(ErrorKind::Unsupported, "E0405", "a conditional node's body cannot call the host program");
  }
  if (!f) return fail(ErrorKind::Device, "E0506", "there is no function to call");
  Context& c = *s.context;
  GK_CHECK(s.check_usable());
  GK_CHECK(c.bind());
  GK_CHECK(s.gather(in, deps));
  auto* function = new Function(std::move(f));
  GK_TRY(const CUuserObject object, retain_object(s, function, keep_as_it_is, destroy));
  CUDA_HOST_NODE_PARAMS p{};
  p.fn = call;
  p.userData = function;
  CUgraphNode node = nullptr;
  if (Result<void> r = GK_CU(c, cuGraphAddHostNode, &node, in, s.deps.data(), s.deps.size(), &p); !r) {
    (void)GK_CU(c, cuGraphReleaseUserObject, s.graph, object, 1U);
    return fail(std::move(r).error());
  }
  s.functions.emplace_back(s.next_id(), object);
  return s.add(in, State::Kind::HostCall, {&node, 1}, {&node, 1});
}

CudaGraph::~CudaGraph() {
  if (state_->capture) (void)cuda::end_capture(*state_);
}

Result<std::unique_ptr<GraphExec>> CudaGraph::instantiate() {
  std::lock_guard lock(state_->mutex);
  Context& c = *state_->context;
  GK_CHECK(state_->check_usable());
  if (state_->capture) {
    return fail(ErrorKind::Capture, "E0712", "a graph cannot be instantiated while it captures a stream");
  }
  GK_CHECK(c.bind());
  Relaxed relaxed(c);
  GK_CHECK(use_up_handles(*state_));
  GK_TRY(std::vector<CUdeviceptr> left, left_allocated(*state_));
  CUgraphExec exec = nullptr;
  // A library may have captured allocations of its own: they end with each launch.
  const unsigned long long flags =
      state_->has_captured_work ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0;
  GK_CHECK(GK_CU(c, cuGraphInstantiateWithFlags, &exec, state_->graph, flags));
  return make_exec(state_, exec, num_nodes(), std::move(left));
}

template <class Count>
int64_t CudaGraph::sum(Count count) const {
  std::lock_guard lock(state_->mutex);
  if (!state_->context->bind()) return -1;
  int64_t total = 0;
  const auto add = [&](CUgraph g) {
    size_t n = 0;
    if (!count(g, &n)) return false;
    total += static_cast<int64_t>(n);
    return true;
  };
  if (!add(state_->graph)) return -1;
  for (const State::Body& b : state_->bodies) {
    if (!add(b.graph)) return -1;
  }
  return total;
}

int64_t CudaGraph::num_nodes() const {
  if (std::lock_guard lock(state_->mutex); state_->is_all_ours()) {
    return static_cast<int64_t>(state_->owned.size());  // the driver need not count
  }
  Context& c = *state_->context;
  return sum([&](CUgraph g, size_t* n) {
    return GK_CU(c, cuGraphGetNodes, g, static_cast<CUgraphNode*>(nullptr), n).has_value();
  });
}

int64_t CudaGraph::num_edges() const {
  Context& c = *state_->context;
  CUgraphNode* const none = nullptr;
  return sum([&](CUgraph g, size_t* n) {
    return GK_CU(c, cuGraphGetEdges_v2, g, none, none, static_cast<CUgraphEdgeData*>(nullptr), n).has_value();
  });
}

int64_t CudaGraph::mark() const {
  std::lock_guard lock(state_->mutex);
  return state_->next_id();
}

Result<void> CudaGraph::retain(std::function<void()> f) {
  std::lock_guard lock(state_->mutex);
  GK_CHECK(state_->check_usable());
  GK_CHECK(state_->context->bind());
  GK_CHECK(retain_object(*state_, new Function(std::move(f)), forget, call_and_destroy));
  return {};
}

std::vector<void*> CudaGraph::native_nodes(NodeId node) const {
  std::lock_guard lock(state_->mutex);
  if (node < 0 || node >= state_->next_id()) return {};
  const auto nodes = state_->last_of(state_->entries[static_cast<size_t>(node)]);
  return {nodes.begin(), nodes.end()};
}

Result<std::unique_ptr<Graph>> create_graph(std::shared_ptr<Context> context) {
  GK_CHECK(context->bind());
  CUgraph graph = nullptr;
  GK_CHECK(GK_CU(*context, cuGraphCreate, &graph, 0U));
  return std::make_unique<CudaGraph>(std::make_shared<State>(std::move(context), graph, true));
}

Result<std::unique_ptr<Graph>> wrap_graph(std::shared_ptr<Context> context, CUgraph graph,
                                          std::span<void* const> after, NodeId& frontier) {
  frontier = -1;
  if (graph == nullptr) return fail(ErrorKind::Device, "E0510", "there is no graph to add to");
  GK_CHECK(context->bind());
  auto state = std::make_shared<State>(std::move(context), graph, false);
  Context& c = *state->context;
  if (!after.empty()) {
    size_t n = 0;
    GK_CHECK(GK_CU(c, cuGraphGetNodes, graph, static_cast<CUgraphNode*>(nullptr), &n));
    std::vector<CUgraphNode> all(n);
    if (n > 0) GK_CHECK(GK_CU(c, cuGraphGetNodes, graph, all.data(), &n));
    const std::unordered_set<CUgraphNode> its(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<CUgraphNode> nodes;
    for (void* p : after) nodes.push_back(static_cast<CUgraphNode>(p));
    for (const CUgraphNode node : nodes) {
      if (!its.contains(node)) {
        return fail(ErrorKind::Device, "E0510", "a node to come after is not one of the graph");
      }
    }
    frontier = state->add(graph, State::Kind::Foreign, nodes, {});
  }
  return std::make_unique<CudaGraph>(std::move(state));
}

}  // namespace gk::hal::cuda
#endif
