// Graphs: nodes, edges, conditions and what a graph keeps.
#include <algorithm>
#include <cstring>

#include "tests/fake_libcuda/state.h"

namespace gk::fake_libcuda {

// From this version of the driver on a conditional node may have two bodies.
constexpr int kElseBodies = 12080;

CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS& p, const Context& c, KernelOp& out) {
  const Ptr<Function> f = world().functions.find(p.func);
  if (f == nullptr || f->module->context != &c) return CUDA_ERROR_INVALID_HANDLE;
  const unsigned grid[] = {p.gridDimX, p.gridDimY, p.gridDimZ},
                 block[] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  uint64_t threads = 1;
  constexpr unsigned kGrid[] = {0x7fffffff, 65535, 65535}, kBlock[] = {1024, 1024, 64};
  for (size_t i = 0; i < 3; ++i) {
    if (grid[i] == 0 || grid[i] > kGrid[i] || block[i] == 0 || block[i] > kBlock[i])
      return CUDA_ERROR_INVALID_VALUE;
    threads *= block[i];
    out.grid[i] = grid[i];
    out.block[i] = block[i];
  }
  if (threads > 1024 || p.sharedMemBytes > static_cast<unsigned>(f->dynamic_shared))
    return CUDA_ERROR_INVALID_VALUE;
  if (p.kernelParams == nullptr && !f->sizes.empty()) return CUDA_ERROR_INVALID_VALUE;
  out.shared_bytes = p.sharedMemBytes;
  for (size_t i = 0; i < f->sizes.size(); ++i) {
    if (p.kernelParams[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto* value = static_cast<const unsigned char*>(p.kernelParams[i]);
    out.params.emplace_back(value, value + f->sizes[i]);
  }
  out.function = f;
  return CUDA_SUCCESS;
}

CUresult make_copy(const CUDA_MEMCPY3D& p, CopyOp& out) {
  if (p.srcMemoryType != CU_MEMORYTYPE_UNIFIED || p.dstMemoryType != CU_MEMORYTYPE_UNIFIED) {
    violation("a copy node of a kind that the stand-in does not know");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (p.Height != 1 || p.Depth != 1 || p.srcXInBytes != 0 || p.dstXInBytes != 0)
    return CUDA_ERROR_INVALID_VALUE;
  out = {p.dstDevice, p.srcDevice, p.WidthInBytes, {}};
  return can_copy(out.dst, out.bytes) && can_copy(out.src, out.bytes) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
}

CUresult add_node(CUgraph graph, Op op, const CUgraphNode* after, size_t count, CUgraphNode* out) {
  World& w = world();
  const Ptr<Graph> g = w.graphs.find(graph);
  if (g == nullptr || (after == nullptr && count > 0)) return CUDA_ERROR_INVALID_VALUE;
  if (g->is_body && (std::holds_alternative<HostOp>(op) || std::holds_alternative<AllocOp>(op) ||
                     std::holds_alternative<FreeOp>(op))) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  auto n = std::make_shared<Node>();
  for (size_t i = 0; i < count; ++i) {
    const Ptr<Node> before = w.nodes.find(after[i]);
    if (before == nullptr || before->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    if (std::find(n->after.begin(), n->after.end(), after[i]) != n->after.end())
      return CUDA_ERROR_INVALID_VALUE;
    n->after.push_back(after[i]);
  }
  n->graph = graph;
  n->op = std::move(op);
  g->nodes.push_back(n);
  *out = w.nodes.add(std::move(n));
  return CUDA_SUCCESS;
}

void destroy_graph(CUgraph graph) {
  World& w = world();
  const Ptr<Graph> g = w.graphs.find(graph);
  if (g == nullptr) return;
  w.graphs.remove(graph);
  for (const Ptr<Node>& n : g->nodes) {
    if (const auto* branch = std::get_if<ConditionalOp>(&n->op)) {
      for (const CUgraph body : branch->bodies) destroy_graph(body);
    }
    if (const auto* child = std::get_if<ChildOp>(&n->op)) destroy_graph(child->graph);
    w.nodes.remove(n->handle());
  }
  for (const Ptr<Handle>& h : w.handles.all()) {
    if (h->graph == graph) w.handles.remove(h->id);
  }
  for (const auto& [object, count] : g->objects) release_object(object, count);
}

}  // namespace gk::fake_libcuda

using namespace gk::fake_libcuda;

namespace {

CUresult add_conditional(CUgraph graph, CUDA_CONDITIONAL_NODE_PARAMS& p, const CUgraphNode* after,
                         size_t count, CUgraphNode* out, const Context& c) {
  World& w = world();
  const Ptr<Handle> h = w.handles.find(p.handle);
  if (h == nullptr || h->graph != graph || h->used || p.ctx != c.handle()) return CUDA_ERROR_INVALID_VALUE;
  const bool two = p.type == CU_GRAPH_COND_TYPE_IF && p.size == 2 && w.driver >= kElseBodies;
  if (p.size != 1 && !two) return CUDA_ERROR_INVALID_VALUE;
  const CUresult r =
      add_node(graph, ConditionalOp{p.handle, p.type, h->default_value, {}}, after, count, out);
  if (r != CUDA_SUCCESS) return r;
  h->used = true;
  const Ptr<Node> n = w.nodes.find(*out);
  n->bodies = std::make_unique<CUgraph[]>(p.size);
  for (unsigned i = 0; i < p.size; ++i) {
    auto body = std::make_shared<Graph>();
    body->context = w.graphs.find(graph)->context;
    body->is_body = true;
    n->bodies[i] = w.graphs.add(std::move(body));
    std::get<ConditionalOp>(n->op).bodies.push_back(n->bodies[i]);
  }
  p.phGraph_out = n->bodies.get();
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGraphCreate(CUgraph* out, unsigned flags) {
  GK_FAKE_CALL(Current);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  auto g = std::make_shared<Graph>();
  g->context = call.context;
  *out = world().graphs.add(std::move(g));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  GK_FAKE_CALL(Current);
  const Ptr<Graph> g = world().graphs.find(graph);
  if (g == nullptr) return gone("graph", CUDA_ERROR_INVALID_VALUE);
  if (g->is_body) return CUDA_ERROR_INVALID_VALUE;
  if (g->captures > 0) return CUDA_ERROR_ILLEGAL_STATE;
  destroy_graph(graph);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS* p) {
  GK_FAKE_CALL(Current);
  KernelOp k;
  const CUresult r = make_kernel(*p, *call.context, k);
  return r != CUDA_SUCCESS ? r : add_node(graph, std::move(k), after, count, out);
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                      const CUDA_MEMCPY3D* p, CUcontext context) {
  GK_FAKE_CALL(Current);
  if (context != call.context->handle()) return CUDA_ERROR_INVALID_VALUE;
  CopyOp op;
  const CUresult r = make_copy(*p, op);
  return r != CUDA_SUCCESS ? r : add_node(graph, std::move(op), after, count, out);
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS* p, CUcontext) {
  GK_FAKE_CALL(Current);
  if (p->height != 1 || !can_copy(p->dst, p->width * p->elementSize)) return CUDA_ERROR_INVALID_VALUE;
  return add_node(graph, SetOp{p->dst, p->value, p->elementSize, p->width}, after, count, out);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                    const CUDA_HOST_NODE_PARAMS* p) {
  GK_FAKE_CALL(Current);
  if (p->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add_node(graph, HostOp{p->fn, p->userData}, after, count, out);
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                     size_t count) {
  GK_FAKE_CALL(Current);
  return add_node(graph, {}, after, count, out);
}

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                   const CUgraphEdgeData*, size_t count, CUgraphNodeParams* p) {
  GK_FAKE_CALL(Current);
  if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    return add_conditional(graph, p->conditional, after, count, out, *call.context);
  }
  violation("cuGraphAddNode of a kind that the stand-in does not know");
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* out, CUgraph graph,
                                                CUcontext context, unsigned default_value, unsigned flags) {
  GK_FAKE_CALL(Current);
  if (world().graphs.find(graph) == nullptr || context != call.context->handle())
    return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GRAPH_COND_ASSIGN_DEFAULT) {
    violation("a condition that keeps its value from launch to launch");
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto h = std::make_shared<Handle>();
  h->graph = graph;
  h->default_value = default_value;
  *out = world().handles.add(std::move(h));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode node) {
  GK_FAKE_CALL(Current);
  World& w = world();
  const Ptr<Node> n = w.nodes.find(node);
  if (n == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Ptr<Graph> g = w.graphs.find(n->graph);
  if (g->captures > 0) return CUDA_ERROR_ILLEGAL_STATE;
  if (const auto* branch = std::get_if<ConditionalOp>(&n->op)) {
    for (const CUgraph body : branch->bodies) destroy_graph(body);
  }
  for (const Ptr<Node>& other : g->nodes) std::erase(other->after, node);
  std::erase(g->nodes, n);
  w.nodes.remove(node);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* out) {
  GK_FAKE_CALL(Current);
  const Ptr<Node> n = world().nodes.find(node);
  if (n == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = type_of(n->op);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* edges,
                                               size_t* count) {
  GK_FAKE_CALL(Current);
  const Ptr<Node> n = world().nodes.find(node);
  if (n == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = n->after.size();
    return CUDA_SUCCESS;
  }
  *count = std::min(*count, n->after.size());
  std::copy_n(n->after.begin(), *count, out);
  if (edges != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode* out, size_t* count) {
  GK_FAKE_CALL(Current);
  const Ptr<Graph> g = world().graphs.find(graph);
  if (g == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = g->nodes.size();
    return CUDA_SUCCESS;
  }
  *count = std::min(*count, g->nodes.size());
  for (size_t i = 0; i < *count; ++i) out[i] = g->nodes[i]->handle();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                    size_t* count) {
  GK_FAKE_CALL(Current);
  const Ptr<Graph> g = world().graphs.find(graph);
  if (g == nullptr) return CUDA_ERROR_INVALID_VALUE;
  size_t n = 0;
  for (const Ptr<Node>& node : g->nodes) {
    for (const CUgraphNode before : node->after) {
      if (from != nullptr && n < *count) {
        from[n] = before;
        to[n] = node->handle();
        if (data != nullptr) data[n] = {};
      }
      ++n;
    }
  }
  *count = from == nullptr ? n : std::min(n, *count);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  GK_FAKE_CALL(Current);
  const Ptr<Node> n = world().nodes.find(node);
  const auto* a = n == nullptr ? nullptr : std::get_if<AllocOp>(&n->op);
  if (a == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->bytesize = a->bytes;
  out->dptr = a->at;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  GK_FAKE_CALL(Current);
  const Ptr<Node> n = world().nodes.find(node);
  const auto* f = n == nullptr ? nullptr : std::get_if<FreeOp>(&n->op);
  if (f == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = f->at;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject* out, void* data, CUhostFn destroy, unsigned count,
                                    unsigned flags) {
  GK_FAKE_CALL(Init);
  if (destroy == nullptr || count == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  auto o = std::make_shared<UserObject>();
  o->destroy = destroy;
  o->data = data;
  o->count = count;
  *out = world().objects.add(std::move(o));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned count) {
  GK_FAKE_CALL(Init);
  if (world().objects.find(object) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  release_object(object, count);
  await_destructors(call.lock);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  GK_FAKE_CALL(Current);
  const Ptr<Graph> g = world().graphs.find(graph);
  const Ptr<UserObject> o = world().objects.find(object);
  if (g == nullptr || o == nullptr) return CUDA_ERROR_INVALID_VALUE;
  g->objects[object] += count;
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) o->count += count;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  GK_FAKE_CALL(Current);
  const Ptr<Graph> g = world().graphs.find(graph);
  if (g == nullptr || g->objects[object] < count) return CUDA_ERROR_INVALID_VALUE;
  if ((g->objects[object] -= count) == 0) g->objects.erase(object);
  release_object(object, count);
  await_destructors(call.lock);
  return CUDA_SUCCESS;
}
}
