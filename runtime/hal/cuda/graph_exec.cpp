#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/graph_exec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gk::hal::cuda {
namespace {

const char* reason(CUgraphExecUpdateResult r) {
  switch (r) {
    case CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED: return "its order is another";
    case CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: return "it is of another kind";
    case CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE:
    case CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED: return "its function cannot take the other's place";
    case CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED: return "its parameters cannot be changed so";
    case CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED: return "its attributes cannot be changed so";
    case CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED: return "nodes like it cannot be updated";
    default: return "the driver gives no reason";
  }
}

class CudaGraphExec : public GraphExec {
 public:
  CudaGraphExec(std::shared_ptr<State> state, CUgraphExec exec, int64_t nodes, std::vector<CUdeviceptr> left)
      : state_(std::move(state)), exec_(exec), nodes_(nodes), left_(std::move(left)) {}
  ~CudaGraphExec() override { (void)CudaGraphExec::destroy(); }

  Result<void> launch(Stream& s) override {
    auto* to = exactly<CudaStream>(&s);
    Context& c = *state_->context;
    if (exec_ == nullptr || to == nullptr || &to->context() != &c) [[unlikely]] {
      GK_CHECK(stream_of(s));
      return {};
    }
    GK_CHECK(c.bind_once());
    const CUstream stream = to->handle();
    if (!left_.empty()) {
      launched_ = true;
      last_ = to->owned() ? stream : nullptr;
    }
    c.count();
    const CUresult r = c.api.cuGraphLaunch(exec_, stream);
    if (r == CUDA_SUCCESS) [[likely]]
      return {};
    if (r != CUDA_ERROR_INVALID_CONTEXT && r != CUDA_ERROR_INVALID_HANDLE)
      return c.failed("cuGraphLaunch", r);
    GK_CHECK(c.bind());  // the host program made another one current
    return GK_CU(c, cuGraphLaunch, exec_, stream);
  }

  Result<void> set_kernel(NodeId node, const KernelLaunch& launch) override {
    GK_CHECK(alive());
    Context& c = *state_->context;
    std::lock_guard lock(state_->mutex);
    GK_TRY(const CUgraphNode n, state_->single(node, State::Kind::Kernel));
    GK_TRY(const CUfunction f, function_of(c, launch.function));
    const CUDA_KERNEL_NODE_PARAMS p = kernel_params(f, launch);
    return GK_CU(c, cuGraphExecKernelNodeSetParams, exec_, n, &p);
  }

  Result<void> set_copy(NodeId node, const CopyOp& op) override {
    GK_CHECK(alive());
    Context& c = *state_->context;
    std::lock_guard lock(state_->mutex);
    GK_TRY(const CUgraphNode n, state_->single(node, State::Kind::Copy));
    const CUDA_MEMCPY3D p = copy_params(op);
    return GK_CU(c, cuGraphExecMemcpyNodeSetParams, exec_, n, &p, c.handle);
  }

  Result<void> set_library(NodeId, const LibraryOp&) override {
    return fail(ErrorKind::Unsupported, "E0405", "a library's nodes cannot be set on this device");
  }
  bool can_set_library() const override { return false; }

  Result<void> update(Graph& g) override {
    GK_CHECK(alive());
    auto* graph = dynamic_cast<CudaGraph*>(&g);
    if (graph == nullptr || graph->state().context != state_->context) {
      return fail(ErrorKind::Device, "E0506", "this graph is not one of the CUDA device");
    }
    State& other = graph->state();
    std::lock_guard lock(other.mutex);
    GK_CHECK(other.check_usable());
    if (other.capture) {
      return fail(ErrorKind::Capture, "E0712", "no update from a graph that captures a stream");
    }
    GK_CHECK(use_up_handles(other));
    Context& c = *state_->context;
    Relaxed relaxed(c);
    CUgraphExecUpdateResultInfo info{};
    c.count();
    const CUresult r = c.api.cuGraphExecUpdate_v2(exec_, other.graph, &info);
    if (r == CUDA_SUCCESS) {
      // From now on its launches allocate what the other graph's do.
      GK_TRY(std::vector<CUdeviceptr> left, left_allocated(other));
      Result<void> freed = free_left();
      left_ = std::move(left);
      return freed;
    }
    if (r != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) return c.failed("cuGraphExecUpdate", r);
    return fail(ErrorKind::Capture, "E0709", difference(*graph, info));
  }

  Result<void> upload(Stream& s) override {
    GK_TRY(const CUstream stream, stream_of(s));
    Relaxed relaxed(*state_->context);
    return GK_CU(*state_->context, cuGraphUpload, exec_, stream);
  }

  Result<void> destroy() override {
    // Legal while launches are in flight: the driver keeps what they need. It is tried once.
    const CUgraphExec exec = std::exchange(exec_, nullptr);
    if (exec == nullptr) return {};
    Context& c = *state_->context;
    GK_CHECK(c.bind());
    Relaxed relaxed(c);
    GK_CHECK(GK_CU(c, cuGraphExecDestroy, exec));
    return free_left();
  }

 private:
  // What the last launch allocated and did not free outlives the executable. It is freed behind that launch;
  // a stream of the host program's may be gone by now, and then only waiting is left.
  Result<void> free_left() {
    if (!std::exchange(launched_, false)) return {};
    Result<void> outcome;
    for (const CUdeviceptr p : left_) {
      Result<void> r = last_ != nullptr ? GK_CU(*state_->context, cuMemFreeAsync, p, last_)
                                        : GK_CU(*state_->context, cuMemFree, p);
      if (outcome && !r) outcome = std::move(r);
    }
    return outcome;
  }
  Result<void> alive() {
    if (exec_ == nullptr) return fail(ErrorKind::Capture, "E0716", "this executable was destroyed");
    return state_->context->bind();
  }
  Result<CUstream> stream_of(Stream& s) {
    auto* stream = exactly<CudaStream>(&s);
    if (stream == nullptr || &stream->context() != state_->context.get()) {
      return fail(ErrorKind::Device, "E0506", "this stream is not one of the CUDA device");
    }
    GK_CHECK(alive());
    return stream->handle();
  }
  std::string difference(CudaGraph& g, const CUgraphExecUpdateResultInfo& info) const {
    const int64_t nodes = g.num_nodes();
    if (nodes != nodes_) {
      return fmt::format("the graphs differ: the executable has {} nodes, the graph {}", nodes_, nodes);
    }
    const State& s = g.state();
    for (size_t i = 0; i < s.entries.size() && info.errorNode != nullptr; ++i) {
      const State::Entry& e = s.entries[i];
      const auto own = s.owned.begin() + e.owned_begin;
      if (std::find(own, own + e.owned_count, info.errorNode) != own + e.owned_count) {
        return fmt::format("the graphs differ at node {}: {}", i, reason(info.result));
      }
    }
    return fmt::format("the graphs differ at a node: {}", reason(info.result));
  }

  std::shared_ptr<State> state_;
  CUgraphExec exec_;  // null: destroyed, or that was tried
  int64_t nodes_;
  std::vector<CUdeviceptr> left_;
  bool launched_ = false;
  CUstream last_ = nullptr;  // of the last launch; null: the host program's
};

}  // namespace

std::unique_ptr<GraphExec> make_exec(std::shared_ptr<State> state, CUgraphExec exec, int64_t nodes,
                                     std::vector<CUdeviceptr> left) {
  return std::make_unique<CudaGraphExec>(std::move(state), exec, nodes, std::move(left));
}

Result<std::vector<CUdeviceptr>> left_allocated(const State& s) {
  std::vector<CUdeviceptr> left;
  if (!s.has_captured_work) return left;
  Context& c = *s.context;
  size_t n = 0;
  GK_CHECK(GK_CU(c, cuGraphGetNodes, s.graph, static_cast<CUgraphNode*>(nullptr), &n));
  std::vector<CUgraphNode> nodes(n);
  if (n > 0) GK_CHECK(GK_CU(c, cuGraphGetNodes, s.graph, nodes.data(), &n));
  std::vector<CUdeviceptr> freed;
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    GK_CHECK(GK_CU(c, cuGraphNodeGetType, node, &type));
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      CUDA_MEM_ALLOC_NODE_PARAMS p{};
      GK_CHECK(GK_CU(c, cuGraphMemAllocNodeGetParams, node, &p));
      left.push_back(p.dptr);
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      CUdeviceptr p = 0;
      GK_CHECK(GK_CU(c, cuGraphMemFreeNodeGetParams, node, &p));
      freed.push_back(p);
    }
  }
  std::erase_if(left, [&](CUdeviceptr p) { return std::find(freed.begin(), freed.end(), p) != freed.end(); });
  return left;
}

}  // namespace gk::hal::cuda
#endif
