// Executables: images of graphs that are launched and changed.
#include <algorithm>

#include "tests/fake_libcuda/state.h"

using namespace gk::fake_libcuda;

namespace {

CUresult make_image(const Graph& g, Image& out);

CUresult make_bodies(const Op& op, std::vector<Image>& bodies) {
  std::vector<CUgraph> graphs;
  if (const auto* branch = std::get_if<ConditionalOp>(&op)) graphs = branch->bodies;
  if (const auto* child = std::get_if<ChildOp>(&op)) graphs = {child->graph};
  for (const CUgraph graph : graphs) {
    const Ptr<Graph> g = world().graphs.find(graph);
    if (g == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Drivers before 12.8 do not come back from a body without nodes.
    if (g->nodes.empty() && world().driver < 12080) violation("an old driver is given a body without nodes");
    if (const CUresult r = make_image(*g, bodies.emplace_back()); r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

CUresult make_image(const Graph& g, Image& out) {
  // A condition without a node makes a graph useless.
  for (const Ptr<Handle>& h : world().handles.all()) {
    const bool has_node = std::any_of(g.nodes.begin(), g.nodes.end(), [&](const Ptr<Node>& n) {
      const auto* branch = std::get_if<ConditionalOp>(&n->op);
      return branch != nullptr && branch->handle == h->id;
    });
    if (h->graph == to_handle<CUgraph>(g.id) && !has_node) return CUDA_ERROR_INVALID_VALUE;
  }
  std::map<CUgraphNode, size_t> index;
  for (const Ptr<Node>& n : g.nodes) index.emplace(n->handle(), index.size());
  for (const Ptr<Node>& n : g.nodes) {
    Image::Part part;
    part.origin = n->handle();
    part.op = n->op;
    for (const CUgraphNode before : n->after) part.after.push_back(index.at(before));
    if (const CUresult r = make_bodies(n->op, part.bodies); r != CUDA_SUCCESS) return r;
    out.parts.push_back(std::move(part));
  }
  std::vector<size_t> missing(out.parts.size());
  std::vector<std::vector<size_t>> next(out.parts.size());
  std::set<size_t> ready;
  for (size_t i = 0; i < out.parts.size(); ++i) {
    missing[i] = out.parts[i].after.size();
    for (const size_t before : out.parts[i].after) next[before].push_back(i);
    if (missing[i] == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const size_t i = *ready.rbegin();
    ready.erase(i);
    out.order.push_back(i);
    for (const size_t n : next[i]) {
      if (--missing[n] == 0) ready.insert(n);
    }
  }
  return out.order.size() == out.parts.size() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::vector<Ptr<Held>> hold(const Graph& g) {
  std::vector<Ptr<Held>> all;
  for (const auto& [object, count] : g.objects) all.push_back(std::make_shared<Held>(object));
  return all;
}

Image::Part* find(Image& image, CUgraphNode origin) {
  for (Image::Part& p : image.parts) {
    if (p.origin == origin) return &p;
    for (Image& body : p.bodies) {
      if (Image::Part* found = find(body, origin)) return found;
    }
  }
  return nullptr;
}

void add_defaults(const Image& image, std::map<CUgraphConditionalHandle, unsigned>& values) {
  for (const Image::Part& p : image.parts) {
    if (const auto* branch = std::get_if<ConditionalOp>(&p.op))
      values[branch->handle] = branch->default_value;
    for (const Image& body : p.bodies) add_defaults(body, values);
  }
}

/// Gives an executable's node other parameters.
template <class O>
CUresult set(CUgraphExec exec, CUgraphNode node, O op) {
  const Ptr<Exec> e = world().execs.find(exec);
  if (e == nullptr || world().nodes.find(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto changed = std::make_shared<Image>(*e->image);  // launches in flight keep the old one
  Image::Part* part = find(*changed, node);
  if (part == nullptr || !std::holds_alternative<O>(part->op)) return CUDA_ERROR_INVALID_VALUE;
  part->op = std::move(op);
  e->image = std::move(changed);
  return CUDA_SUCCESS;
}

/// Whether one image can take the other's place; else what is in the way, and where.
bool same_shape(const Image& from, const Image& to, CUgraphExecUpdateResultInfo& info) {
  if (from.parts.size() != to.parts.size()) {
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return false;
  }
  for (size_t i = 0; i < from.parts.size(); ++i) {
    const Image::Part &a = from.parts[i], &b = to.parts[i];
    info.errorNode = b.origin;
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (a.after != b.after) return false;
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (a.op.index() != b.op.index()) return false;
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    if (a.bodies.size() != b.bodies.size()) return false;
    if (const auto* branch = std::get_if<ConditionalOp>(&a.op)) {
      if (branch->type != std::get<ConditionalOp>(b.op).type) return false;
    }
    for (size_t k = 0; k < a.bodies.size(); ++k) {
      if (!same_shape(a.bodies[k], b.bodies[k], info)) return false;
    }
  }
  info = {};
  return true;
}

/// Node handles go on being those of the graph that the executable came from.
void keep_origins(const Image& from, Image& to) {
  for (size_t i = 0; i < from.parts.size(); ++i) {
    to.parts[i].origin = from.parts[i].origin;
    for (size_t k = 0; k < from.parts[i].bodies.size(); ++k)
      keep_origins(from.parts[i].bodies[k], to.parts[i].bodies[k]);
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  GK_FAKE_CALL(Current);
  const Ptr<Graph> g = world().graphs.find(graph);
  if (g == nullptr || g->is_body) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto image = std::make_shared<Image>();
  if (const CUresult r = make_image(*g, *image); r != CUDA_SUCCESS) return r;
  auto e = std::make_shared<Exec>();
  e->context = call.context;
  e->auto_free = flags != 0;
  e->image = std::move(image);
  e->held = hold(*g);
  *out = world().execs.add(std::move(e));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
  GK_FAKE_CALL(Current);
  if (world().execs.find(exec) == nullptr) return gone("executable", CUDA_ERROR_INVALID_VALUE);
  world().execs.remove(exec);  // launches in flight keep what they use
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS* p) {
  GK_FAKE_CALL(Current);
  KernelOp k;
  const CUresult r = make_kernel(*p, *call.context, k);
  return r != CUDA_SUCCESS ? r : set(exec, node, std::move(k));
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* p,
                                                CUcontext) {
  GK_FAKE_CALL(Current);
  CopyOp op;
  const CUresult r = make_copy(*p, op);
  return r != CUDA_SUCCESS ? r : set(exec, node, std::move(op));
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  GK_FAKE_CALL(Current);
  *info = {};
  const Ptr<Exec> e = world().execs.find(exec);
  const Ptr<Graph> g = world().graphs.find(graph);
  if (e == nullptr || g == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto image = std::make_shared<Image>();
  if (const CUresult r = make_image(*g, *image); r != CUDA_SUCCESS) return r;
  if (!same_shape(*e->image, *image, *info)) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  keep_origins(*e->image, *image);
  e->image = std::move(image);
  e->held = hold(*g);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec exec, CUstream stream) {
  GK_FAKE_CALL(Current);
  if (world().execs.find(exec) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return check_stream(stream_of(stream, *call.context));
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  GK_FAKE_CALL(Current);
  const Ptr<Exec> e = world().execs.find(exec);
  if (e == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (const CUresult r = check_stream(s); r != CUDA_SUCCESS) return r;
  if (s->context != call.context) return CUDA_ERROR_INVALID_HANDLE;
  if (s->capture != nullptr) {
    violation(
        "an executable was launched into a capture, of which the stand-in does not know what comes of it");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Item item;
  touches_of(*e->image, item.touches);
  if (!is_done(e->last)) item.after.push_back(e->last);  // launches of one executable do not overlap
  item.run = [image = e->image, held = e->held, c = e->context, id = s->id, graph_id = e->id](Lock& lock) {
    world().conditions.clear();
    add_defaults(*image, world().conditions);
    execute(*image, *c, id, graph_id, lock);
  };
  e->last = give(s, std::move(item));
  return CUDA_SUCCESS;
}
}
