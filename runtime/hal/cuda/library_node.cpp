// Library calls in graphs: captured into the graph, since a library gives its work to streams alone.
#ifdef GK_HAS_CUDA
#include <algorithm>

#include "runtime/hal/cuda/graph.h"

namespace gk::hal::cuda {
namespace {

void keep_as_it_is(void*) {}
void CUDA_CB give_back(void* data) noexcept { delete static_cast<LentWorkspace*>(data); }

/// The graph's own workspace, which goes back when the graph, its executables and their launches are gone:
/// nobody else's library calls meet it, whichever of them goes first.
Result<void> take_workspace(State& s) {
  if (s.workspace != nullptr) return {};
  GK_TRY(void* const address, s.context->workspaces()->take(*s.context));
  GK_CHECK(retain_object(s, new LentWorkspace(s.context->workspaces(), address), keep_as_it_is, give_back));
  s.workspace = address;
  return {};
}

/// All that the library allocates or loads happens before a capture begins.
Result<void> prepare(State& s, library::CublasLt& blas, const library::MatMulOp& op, CUstream stream) {
  Context& c = *s.context;
  GK_TRY(const int64_t needed, blas.prepare(op));
  if (needed > 0) GK_CHECK(take_workspace(s));
  GK_TRY(const bool warm, blas.is_warm(op));
  if (warm) return {};
  // Launches of this graph may be using its workspace now.
  std::unique_ptr<LentWorkspace> scratch;
  if (needed > 0) {
    GK_TRY(void* const address, c.workspaces()->take(c));
    scratch = std::make_unique<LentWorkspace>(c.workspaces(), address);
  }
  Result<void> ran = blas.warm(op, stream, scratch != nullptr ? scratch->address : nullptr,
                               [&] { return GK_CU(c, cuStreamSynchronize, stream); });
  if (!ran) (void)scratch.release();  // who knows whether it is still in use
  return ran;
}

/// What a library may leave in a conditional node's body.
Result<void> check_body(Context& c, std::span<const CUgraphNode> nodes) {
  for (const CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    GK_CHECK(GK_CU(c, cuGraphNodeGetType, node, &type));
    if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY &&
        type != CU_GRAPH_NODE_TYPE_MEMSET && type != CU_GRAPH_NODE_TYPE_EMPTY) {
      return fail(ErrorKind::Unsupported, "E0405",
                  "the library's way of doing this product cannot be in a conditional node's body");
    }
  }
  return {};
}

struct Captured {
  std::vector<CUgraphNode> last, own;
};

Result<Captured> read(State& s, CUstream stream) {
  GK_TRY(Frontier f, read_frontier(*s.context, stream));
  if (f.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return fail(ErrorKind::Capture, "E0715", "a library call ended the capture that it was part of");
  }
  GK_TRY(std::vector<CUgraphNode> own, s.discover(f.nodes));
  return Captured{std::move(f.nodes), std::move(own)};
}

Result<NodeId> capture_alone(State& s, CUgraph in, CUstream stream,
                             const std::function<Result<void>()>& run) {
  Context& c = *s.context;
  GK_CHECK(GK_CU(c, cuStreamBeginCaptureToGraph, stream, in, s.deps.data(),
                 static_cast<const CUgraphEdgeData*>(nullptr), s.deps.size(),
                 CU_STREAM_CAPTURE_MODE_RELAXED));
  Result<void> outcome = run();
  Result<Captured> captured = read(s, stream);  // while the capture is active, or not at all
  // The capture is ended on every way out, or the stream is lost.
  Result<void> end = finish_capture(s, in, stream);
  if (outcome && !captured) outcome = fail(captured.error());
  if (outcome) outcome = std::move(end);
  if (outcome && in != s.graph) outcome = check_body(c, captured->own);
  if (!outcome) {
    if (captured && s.check_usable()) {
      for (const CUgraphNode node : captured->own) (void)GK_CU(c, cuGraphDestroyNode, node);
    }
    return fail(std::move(outcome).error());
  }
  return s.add(in, State::Kind::Library, captured->last, captured->own);
}

/// While a stream of somebody's is being captured into this graph, that capture serves: the driver is not
/// asked for two into one graph.
Result<NodeId> capture_along(State& s, CUstream stream, const std::function<Result<void>()>& run) {
  Context& c = *s.context;
  GK_TRY(const Frontier before, read_frontier(c, stream));
  if (before.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return fail(ErrorKind::Capture, "E0715", "the capture into this graph was broken from outside");
  }
  // What was captured so far is no part of the product.
  GK_TRY(const NodeId earlier, captured(s));
  (void)earlier;
  GK_CHECK(set_frontier(c, stream, s.deps));
  Result<void> outcome = run();
  Result<Captured> found = read(s, stream);
  Result<void> restored = set_frontier(c, stream, before.nodes);
  if (found && (outcome || !found->own.empty())) {
    // Nodes of a call that failed are an entry too, so that a rollback removes them.
    const NodeId id = s.add(s.graph, State::Kind::Library, found->last, found->own);
    GK_CHECK(std::move(outcome));
    GK_CHECK(std::move(restored));
    return id;
  }
  GK_CHECK(std::move(outcome));
  return fail(std::move(found).error());
}

}  // namespace

Result<NodeId> add_library(State& s, CUgraph in, const LibraryOp& call, std::span<const NodeId> deps) {
  const library::MatMulOp op = library::matmul_of(call);
  std::lock_guard state_lock(s.mutex);
  Context& c = *s.context;
  GK_CHECK(s.check_usable());
  GK_CHECK(c.bind());
  library::CublasLt* blas = c.blas();
  if (blas == nullptr) return fail(ErrorKind::Device, "E0507", "cuBLASLt was not found");
  GK_CHECK(s.gather(in, deps));
  Relaxed relaxed(c);
  std::lock_guard lock(c.library_mutex());
  GK_TRY(const CUstream stream, c.capture_stream());
  GK_CHECK(prepare(s, *blas, op, stream));
  s.has_captured_work = true;
  if (s.capture && in == s.graph) {
    const CUstream theirs = s.capture->stream;
    return capture_along(s, theirs, [&] { return blas->run(op, theirs, s.workspace); });
  }
  return capture_alone(s, in, stream, [&] { return blas->run(op, stream, s.workspace); });
}

}  // namespace gk::hal::cuda
#endif
