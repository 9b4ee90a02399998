// Conditional nodes. See Note [The value of a condition] in context.cpp.
#ifdef GK_HAS_CUDA
#include <array>
#include <cstdint>
#include <unordered_set>

#include "runtime/hal/cuda/graph.h"

namespace gk::hal::cuda {
namespace {

// From this version of the driver on a node may have two bodies, and a body may be empty.
constexpr int kElseBodies = 12080;

class CudaBody : public CudaRecorder<Recorder> {
 public:
  // The graph's own state, which outlives the recording of a body.
  CudaBody(State& s, CUgraph in) : CudaRecorder(std::shared_ptr<State>(std::shared_ptr<State>(), &s), in) {}
};

CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction f, void** params) {
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = f;
  p.gridDimX = p.gridDimY = p.gridDimZ = 1;
  p.blockDimX = p.blockDimY = p.blockDimZ = 1;
  p.kernelParams = params;
  return p;
}

/// A handle whose value is 0 at the start of every launch, so that no launch sees what another left.
Result<CUgraphConditionalHandle> take_handle(State& s, CUgraph in, NodeId owner) {
  for (State::Handle& h : s.handles) {
    if (h.graph != in || h.owner != -1) continue;
    h.owner = owner;
    return h.handle;
  }
  CUgraphConditionalHandle handle = 0;
  GK_CHECK(GK_CU(*s.context, cuGraphConditionalHandleCreate, &handle, in, s.context->handle, 0U,
                 static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT)));
  s.handles.push_back({in, owner, handle, false});
  return handle;
}

Result<CUgraphNode> add_setter(State& s, CUgraph in, CUfunction set, const void* condition,
                               CUgraphConditionalHandle handle, bool negate,
                               std::span<const CUgraphNode> after) {
  auto at = reinterpret_cast<uint64_t>(condition);
  uint64_t value = handle;
  uint32_t flip = negate ? 1 : 0;
  void* params[] = {&at, &value, &flip};
  const CUDA_KERNEL_NODE_PARAMS p = one_thread(set, params);
  CUgraphNode node = nullptr;
  GK_CHECK(GK_CU(*s.context, cuGraphAddKernelNode, &node, in, after.data(), after.size(), &p));
  return node;
}

struct Branch {
  CUgraphNode node = nullptr;
  std::array<CUgraph, 2> bodies{};
};

Result<Branch> add_branch(State& s, CUgraph in, CUgraphConditionalHandle handle,
                          CUgraphConditionalNodeType type, unsigned bodies,
                          std::span<const CUgraphNode> after) {
  CUgraphNodeParams p{};
  p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  p.conditional.handle = handle;
  p.conditional.type = type;
  p.conditional.size = bodies;
  p.conditional.ctx = s.context->handle;
  Branch b;
  GK_CHECK(GK_CU(*s.context, cuGraphAddNode_v2, &b.node, in, after.data(),
                 static_cast<const CUgraphEdgeData*>(nullptr), after.size(), &p));
  for (State::Handle& h : s.handles) h.used |= h.handle == handle;
  for (unsigned i = 0; i < bodies; ++i) b.bodies[i] = p.conditional.phGraph_out[i];
  return b;
}

/// The nodes of a body that no other comes after.
Result<std::vector<CUgraphNode>> exits(Context& c, CUgraph body) {
  size_t n = 0;
  GK_CHECK(GK_CU(c, cuGraphGetNodes, body, static_cast<CUgraphNode*>(nullptr), &n));
  std::vector<CUgraphNode> nodes(n);
  if (n > 0) GK_CHECK(GK_CU(c, cuGraphGetNodes, body, nodes.data(), &n));
  size_t edges = 0;
  CUgraphNode* const none = nullptr;
  GK_CHECK(GK_CU(c, cuGraphGetEdges_v2, body, none, none, static_cast<CUgraphEdgeData*>(nullptr), &edges));
  std::vector<CUgraphNode> from(edges), to(edges);
  std::vector<CUgraphEdgeData> data(edges);
  if (edges > 0) {
    GK_CHECK(GK_CU(c, cuGraphGetEdges_v2, body, from.data(), to.data(), data.data(), &edges));
  }
  const std::unordered_set<CUgraphNode> left(from.begin(), from.end());
  std::erase_if(nodes, [&](CUgraphNode node) { return left.contains(node); });
  return nodes;
}

/// An older driver hangs on a body without nodes.
Result<void> fill_body(Context& c, CUgraph body) {
  if (c.api.version >= kElseBodies) return {};
  GK_TRY(const Context::Kernels kernels, c.kernels());
  const CUDA_KERNEL_NODE_PARAMS p = one_thread(kernels.nothing, nullptr);
  CUgraphNode node = nullptr;
  return GK_CU(c, cuGraphAddKernelNode, &node, body, static_cast<const CUgraphNode*>(nullptr), size_t{0}, &p);
}

/// What the driver needs at the end of a body.
Result<void> finish_body(State& s, const ConditionalOp& op, CUgraph body, const Context::Kernels& kernels,
                         CUgraphConditionalHandle handle) {
  Context& c = *s.context;
  GK_CHECK(c.bind());  // the body's operations were another's to give
  GK_TRY(const std::vector<CUgraphNode> ends, exits(c, body));
  if (op.kind == ConditionalOp::Kind::While) {
    GK_CHECK(add_setter(s, body, kernels.set, op.condition, handle, false, ends));
  } else if (ends.empty()) {
    GK_CHECK(fill_body(c, body));
  }
  return {};
}

/// All of it; on failure what was added so far is entry `id`.
Result<void> build(State& s, CUgraph in, const ConditionalOp& op, NodeId id) {
  Context& c = *s.context;
  const bool loop = op.kind == ConditionalOp::Kind::While;
  // An older driver has one node a branch.
  const bool split = op.has_else && c.api.version < kElseBodies;
  const int count = split ? 2 : 1;
  GK_TRY(const Context::Kernels kernels, c.kernels());
  std::array<CUgraphConditionalHandle, 2> handles{};
  std::vector<CUgraphNode> own, after = s.deps;
  std::vector<CUgraph> bodies;
  const auto grow = [&]() -> Result<void> {
    for (int i = 0; i < count; ++i) {
      GK_TRY(handles[static_cast<size_t>(i)], take_handle(s, in, id));
    }
    // Both values are set before either branch, which may write the condition, runs.
    for (int i = 0; i < count; ++i) {
      GK_TRY(const CUgraphNode node,
             add_setter(s, in, kernels.set, op.condition, handles[static_cast<size_t>(i)], i == 1, after));
      own.push_back(node);
      after = {node};
    }
    for (int i = 0; i < count; ++i) {
      GK_TRY(const Branch b, add_branch(s, in, handles[static_cast<size_t>(i)],
                                        loop ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF,
                                        op.has_else && !split ? 2 : 1, after));
      own.push_back(b.node);
      after = {b.node};
      bodies.push_back(b.bodies[0]);
      if (op.has_else && !split) bodies.push_back(b.bodies[1]);
    }
    return {};
  };
  Result<void> grown = grow();
  s.add(in, State::Kind::Conditional, after, own);
  for (CUgraph body : bodies) s.bodies.push_back({body, id});
  GK_CHECK(std::move(grown));
  for (size_t i = 0; i < bodies.size(); ++i) {
    CudaBody body(s, bodies[i]);
    GK_CHECK(op.record(body, static_cast<int>(i)));
    GK_CHECK(finish_body(s, op, bodies[i], kernels, handles[split ? i : 0]));
  }
  return {};
}

}  // namespace

Result<NodeId> add_conditional(State& s, CUgraph in, const ConditionalOp& op, std::span<const NodeId> deps) {
  std::lock_guard lock(s.mutex);
  GK_CHECK(check(op));
  GK_CHECK(s.check_usable());
  GK_CHECK(s.context->bind());
  // What a stream gave so far is older, and stays where this fails.
  if (s.capture) GK_CHECK(captured(s));
  GK_CHECK(s.gather(in, deps));
  const NodeId id = s.next_id();
  if (Result<void> built = build(s, in, op, id); !built) {
    if (s.next_id() > id) (void)rollback(s, id);
    return fail(std::move(built).error());
  }
  return id;
}

Result<void> use_up_handles(State& s) {
  for (State::Handle& h : s.handles) {
    if (h.owner != -1) continue;
    const NodeId id = s.next_id();
    GK_TRY(const Branch b, add_branch(s, h.graph, h.handle, CU_GRAPH_COND_TYPE_IF, 1, {}));
    GK_CHECK(fill_body(*s.context, b.bodies[0]));
    h.owner = s.add(h.graph, State::Kind::Conditional, {&b.node, 1}, {&b.node, 1});
    s.bodies.push_back({b.bodies[0], id});
  }
  return {};
}

}  // namespace gk::hal::cuda
#endif
