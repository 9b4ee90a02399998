// What a recorded driver graph knows of its nodes: by id, which belong to what, and how they are removed.
#ifdef GK_HAS_CUDA
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/hal/cuda/graph.h"

namespace gk::hal::cuda {

State::~State() {
  if (!owned_graph || !context->bind()) return;
  Relaxed relaxed(*context);
  (void)GK_CU(*context, cuGraphDestroy, graph);
}

NodeId State::add(CUgraph in, Kind kind, std::span<const CUgraphNode> frontier,
                  std::span<const CUgraphNode> own) {
  Entry e;
  e.graph = in;
  e.kind = kind;
  e.last_begin = static_cast<uint32_t>(last.size());
  e.last_count = static_cast<uint32_t>(frontier.size());
  e.owned_begin = static_cast<uint32_t>(owned.size());
  e.owned_count = static_cast<uint32_t>(own.size());
  last.insert(last.end(), frontier.begin(), frontier.end());
  owned.insert(owned.end(), own.begin(), own.end());
  if (tells_known) {
    known.insert(frontier.begin(), frontier.end());
    known.insert(own.begin(), own.end());
  }
  entries.push_back(e);
  return static_cast<NodeId>(entries.size() - 1);
}

void State::know_all() {
  if (std::exchange(tells_known, true)) return;
  known.insert(last.begin(), last.end());
  known.insert(owned.begin(), owned.end());
}

Result<void> State::gather(CUgraph in, std::span<const NodeId> after) {
  deps.clear();
  for (const NodeId d : after) {
    if (d < 0 || static_cast<size_t>(d) >= entries.size()) {
      return fail(ErrorKind::Device, "E0508", fmt::format("the graph has no node {} to come after", d));
    }
    const Entry& e = entries[static_cast<size_t>(d)];
    if (e.graph != in) return fail(ErrorKind::Device, "E0508", fmt::format("node {} is in another body", d));
    const auto nodes = last_of(e);
    deps.insert(deps.end(), nodes.begin(), nodes.end());
  }
  // The driver refuses an edge that is there twice.
  std::sort(deps.begin(), deps.end());
  deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
  return {};
}

Result<CUgraphNode> State::single(NodeId node, Kind kind) const {
  if (node < 0 || static_cast<size_t>(node) >= entries.size() ||
      entries[static_cast<size_t>(node)].kind != kind) {
    return fail(ErrorKind::Device, "E0508", fmt::format("node {} is not there or of another kind", node));
  }
  return last[entries[static_cast<size_t>(node)].last_begin];
}

Result<std::vector<CUgraphNode>> State::discover(std::span<const CUgraphNode> frontier) {
  std::vector<CUgraphNode> found, todo(frontier.begin(), frontier.end()), before;
  std::unordered_set<CUgraphNode> seen;
  std::vector<CUgraphEdgeData> edges;
  while (!todo.empty()) {
    const CUgraphNode node = todo.back();
    todo.pop_back();
    if (known.contains(node) || !seen.insert(node).second) continue;
    found.push_back(node);
    size_t n = 0;
    GK_CHECK(GK_CU(*context, cuGraphNodeGetDependencies_v2, node, static_cast<CUgraphNode*>(nullptr),
                   static_cast<CUgraphEdgeData*>(nullptr), &n));
    if (n == 0) continue;
    before.resize(n);
    edges.resize(n);
    GK_CHECK(GK_CU(*context, cuGraphNodeGetDependencies_v2, node, before.data(), edges.data(), &n));
    todo.insert(todo.end(), before.begin(), before.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return found;
}

Result<void> State::remove_from(NodeId mark) {
  GK_CHECK(context->bind());
  const auto is_gone = [&](CUgraph g) {
    return std::any_of(bodies.begin(), bodies.end(),
                       [&](const Body& b) { return b.graph == g && b.owner >= mark; });
  };
  Result<void> outcome;
  while (next_id() > mark) {
    const Entry e = entries.back();
    const bool with_owner = is_gone(e.graph);  // a body goes with its node
    for (uint32_t i = e.owned_count; i-- > 0;) {
      const CUgraphNode node = owned[e.owned_begin + i];
      known.erase(node);
      if (with_owner) continue;
      Result<void> r = GK_CU(*context, cuGraphDestroyNode, node);
      if (outcome && !r) outcome = std::move(r);
    }
    owned.resize(e.owned_begin);
    last.resize(e.last_begin);
    entries.pop_back();
  }
  while (!functions.empty() && functions.back().first >= mark) {
    (void)GK_CU(*context, cuGraphReleaseUserObject, graph, functions.back().second, 1U);
    functions.pop_back();
  }
  const auto spoiled = [&](const Handle& h) { return h.owner >= mark && h.used; };
  if (std::any_of(handles.begin(), handles.end(), spoiled)) {
    lost = "a conditional node was taken back, which the driver cannot forget: record the graph again";
    if (outcome) outcome = check_usable();
  }
  std::erase_if(handles, [&](const Handle& h) { return spoiled(h) || is_gone(h.graph); });
  for (Handle& h : handles) {
    if (h.owner >= mark) h.owner = -1;
  }
  std::erase_if(bodies, [&](const Body& b) { return b.owner >= mark; });
  return outcome;
}

Result<void> State::check_usable() const {
  return lost.empty() ? Result<void>{} : fail(ErrorKind::Capture, "E0715", lost);
}

Result<CUuserObject> retain_object(State& s, void* object, void (*disarm)(void*), CUhostFn destroy) {
  Context& c = *s.context;
  CUuserObject made = nullptr;
  Result<void> r = GK_CU(c, cuUserObjectCreate, &made, object, destroy, 1U,
                         static_cast<unsigned>(CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  if (!r) {
    disarm(object);
    destroy(object);
    return fail(std::move(r).error());
  }
  // The graph takes the reference over.
  r = GK_CU(c, cuGraphRetainUserObject, s.graph, made, 1U, static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE));
  if (!r) {
    disarm(object);
    (void)GK_CU(c, cuUserObjectRelease, made, 1U);
    return fail(std::move(r).error());
  }
  return made;
}

}  // namespace gk::hal::cuda
#endif
