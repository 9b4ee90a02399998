// Captures of streams, as the driver's documentation has them: who may call what meanwhile, and what breaks
// one.
#include <algorithm>
#include <utility>

#include "tests/fake_libcuda/state.h"

namespace gk::fake_libcuda {

void break_capture(Capture& c) { c.broken = true; }

CUresult unsafe_in_captures() {
  const int mine = thread_mode();
  if (mine == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const Ptr<Capture>& c : world().captures) {
    if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool of_this_thread = c->thread == std::this_thread::get_id();
    const bool of_all = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mine == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!of_this_thread && !of_all) continue;
    break_capture(*c);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

// As a driver 580.159 does where the end fails: the capture is over, and the graph destroyed although it was
// given.
CUresult end_capture(Stream& s, CUresult failure) {
  World& w = world();
  const Ptr<Capture> c = s.capture;
  for (const Ptr<Stream>& other : s.context->streams) {
    if (other->capture != c) continue;
    other->capture.reset();
    other->frontier.clear();
  }
  std::erase(w.captures, c);
  if (const Ptr<Graph> g = w.graphs.find(c->graph)) --g->captures;
  if (failure != CUDA_SUCCESS) destroy_graph(c->graph);
  return failure;
}

}  // namespace gk::fake_libcuda

using namespace gk::fake_libcuda;

namespace {

CUresult begin(const Ptr<Stream>& s, CUgraph graph, bool given, const CUgraphNode* after, size_t count,
               CUstreamCaptureMode mode) {
  World& w = world();
  auto c = std::make_shared<Capture>();
  c->number = ++w.captures_begun;
  c->graph = graph;
  c->graph_given = given;
  c->mode = mode;
  c->thread = std::this_thread::get_id();
  c->origin = s.get();
  ++w.graphs.find(graph)->captures;
  s->frontier.assign(after, after + count);
  s->capture = c;
  w.captures.push_back(std::move(c));
  return CUDA_SUCCESS;
}

/// Whether work of the streams that joined the capture comes before its end.
bool is_joined(const Stream& s) {
  World& w = world();
  std::set<CUgraphNode> before;
  std::vector<CUgraphNode> todo = s.frontier;
  while (!todo.empty()) {
    const Ptr<Node> n = w.nodes.find(todo.back());
    todo.pop_back();
    if (n == nullptr || !before.insert(n->handle()).second) continue;
    todo.insert(todo.end(), n->after.begin(), n->after.end());
  }
  for (const Ptr<Stream>& other : s.context->streams) {
    if (other->capture != s.capture) continue;
    for (const CUgraphNode n : other->frontier) {
      if (!before.contains(n)) return false;
    }
  }
  return true;
}

CUresult failure_of(const Stream& s) {
  const Capture& c = *s.capture;
  if (c.broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (c.mode != CU_STREAM_CAPTURE_MODE_RELAXED && c.thread != std::this_thread::get_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  return is_joined(s) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

CUresult check_begin(const Ptr<Stream>& s, const Context& c) {
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (s == c.standard) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return s->capture != nullptr ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (const CUresult r = check_begin(s, *call.context); r != CUDA_SUCCESS) return r;
  auto g = std::make_shared<Graph>();
  g->context = call.context;
  return begin(s, world().graphs.add(std::move(g)), false, nullptr, 0, mode);
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* after,
                                             const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (const CUresult r = check_begin(s, *call.context); r != CUDA_SUCCESS) return r;
  if (world().graphs.find(graph) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const Ptr<Node> n = world().nodes.find(after[i]);
    if (n == nullptr || n->graph != graph) return CUDA_ERROR_INVALID_VALUE;
  }
  return begin(s, graph, true, after, count, mode);
}

CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* out) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const Ptr<Capture> c = s->capture;
  if (c == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->origin != s.get()) {
    break_capture(*c);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  const CUresult failure = failure_of(*s);
  *out = failure == CUDA_SUCCESS ? c->graph : nullptr;
  return end_capture(*s, failure);
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* out) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (s == call.context->standard) {
    for (const Ptr<Stream>& other : s->context->streams) {
      if (other->capture != nullptr && (other->flags & CU_STREAM_NON_BLOCKING) == 0) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
    }
  }
  *out = s->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
         : s->capture->broken  ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* number,
                                           CUgraph* graph, const CUgraphNode** nodes,
                                           const CUgraphEdgeData** edges, size_t* count) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (s->capture == nullptr) return CUDA_SUCCESS;
  *status = s->capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (s->capture->broken) return CUDA_SUCCESS;
  if (number != nullptr) *number = s->capture->number;
  if (graph != nullptr) *graph = s->capture->graph;
  if (nodes != nullptr) *nodes = s->frontier.data();
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = s->frontier.size();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                                      const CUgraphEdgeData*, size_t count, unsigned flags) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (const CUresult r = check_stream(s); r != CUDA_SUCCESS) return r;
  if (s->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  for (size_t i = 0; i < count; ++i) {
    const Ptr<Node> n = world().nodes.find(nodes[i]);
    if (n == nullptr || n->graph != s->capture->graph) return CUDA_ERROR_INVALID_VALUE;
  }
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) s->frontier.clear();
  s->frontier.insert(s->frontier.end(), nodes, nodes + count);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  GK_FAKE_CALL(Init);
  *mode = static_cast<CUstreamCaptureMode>(std::exchange(thread_mode(), static_cast<int>(*mode)));
  return CUDA_SUCCESS;
}
}
