// Capturing somebody's stream into a graph.
#ifdef GK_HAS_CUDA
#include <fmt/format.h>

#include <algorithm>

#include "runtime/hal/cuda/graph.h"

namespace gk::hal::cuda {

namespace {
constexpr const char* kBroken = "a capture into this graph was broken: it cannot be used";
}  // namespace

Result<Frontier> read_frontier(Context& c, CUstream stream) {
  Frontier f;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  GK_CHECK(GK_CU(c, cuStreamGetCaptureInfo_v3, stream, &f.status, &f.id, &graph, &nodes, &edges, &count));
  // Only of an active capture is the rest given.
  if (f.status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count > 0) f.nodes.assign(nodes, nodes + count);
  std::sort(f.nodes.begin(), f.nodes.end());
  return f;
}

Result<void> set_frontier(Context& c, CUstream stream, std::span<const CUgraphNode> nodes) {
  // The driver takes the array as its own to change.
  std::vector<CUgraphNode> copy(nodes.begin(), nodes.end());
  return GK_CU(c, cuStreamUpdateCaptureDependencies_v2, stream, copy.data(),
               static_cast<const CUgraphEdgeData*>(nullptr), copy.size(),
               static_cast<unsigned>(CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

Result<void> finish_capture(State& s, CUgraph into, CUstream stream) {
  Context& c = *s.context;
  CUgraph graph = nullptr;
  Result<void> ended = GK_CU(c, cuStreamEndCapture, stream, &graph);
  if (ended) return {};
  // A capture that was broken, not joined or ended by another thread is over all the same, and the driver has
  // destroyed the graph, although that was given to it. Where it cannot be asked nothing is destroyed twice.
  const Result<Frontier> left = read_frontier(c, stream);
  if (!left || left->status == CU_STREAM_CAPTURE_STATUS_NONE) {
    s.lost = kBroken;
    if (into == s.graph) s.owned_graph = false;
  }
  return ended;
}

namespace {

Result<void> check_open(const State& s) {
  if (s.capture) return {};
  return fail(ErrorKind::Capture, "E0713", "this graph captures no stream");
}

Error broken(State& s, const Frontier& f) {
  s.lost = kBroken;
  if (f.status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    Error e = make_error(ErrorKind::Capture, "E0715", "the capture was broken from outside");
    const std::string call = s.context->capture_failure_after(s.capture->failures);
    if (!call.empty()) return std::move(e).note(fmt::format("{} was the first call to fail by it", call));
    return std::move(e).note(
        "something that a capture forbids was done while it was active, perhaps by a library; no call of "
        "gk's "
        "failed by it before cuStreamGetCaptureInfo told of it");
  }
  return make_error(ErrorKind::Capture, "E0715", "the capture was ended from outside")
      .note("cuStreamGetCaptureInfo tells that the stream captures no more, or into another graph");
}

/// The frontier of the capture that is open. Errors: Capture E0715.
Result<std::vector<CUgraphNode>> frontier_of(State& s) {
  GK_TRY(Frontier f, read_frontier(*s.context, s.capture->stream));
  if (f.status == CU_STREAM_CAPTURE_STATUS_ACTIVE && f.id == s.capture->id) return std::move(f.nodes);
  return fail(broken(s, f));
}

/// Begins, with `start` before what comes; s.capture tells of it on success.
Result<void> begin(State& s, CUstream stream, CUstreamCaptureMode mode, std::vector<CUgraphNode> start) {
  Context& c = *s.context;
  s.know_all();
  StreamCapture capture;
  capture.stream = stream;
  capture.mode = mode;
  capture.failures = c.capture_failures();
  GK_CHECK(GK_CU(c, cuStreamBeginCaptureToGraph, stream, s.graph, start.data(),
                 static_cast<const CUgraphEdgeData*>(nullptr), start.size(), mode));
  Result<Frontier> begun = read_frontier(c, stream);
  if (!begun) {
    (void)finish_capture(s, s.graph, stream);
    return fail(std::move(begun).error());
  }
  capture.id = begun->id;
  capture.start = std::move(begun->nodes);
  s.capture = std::move(capture);
  s.has_captured_work = true;
  return {};
}

/// A capture takes a stream that is idle and orders itself with no other.
Result<void> check_stream(Context& c, CUstream stream) {
  const auto refused = [](const char* why) { return fail(ErrorKind::Capture, "E0712", why); };
  if (stream == nullptr || stream == CU_STREAM_LEGACY)
    return refused("the default stream cannot be captured");
  // First of all: any other question breaks a capture that is there.
  CUstreamCaptureStatus status{};
  GK_CHECK(GK_CU(c, cuStreamIsCapturing, stream, &status));
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) return refused("the stream is being captured already");
  unsigned flags = 0;
  GK_CHECK(GK_CU(c, cuStreamGetFlags, stream, &flags));
  if ((flags & CU_STREAM_NON_BLOCKING) == 0) {
    return refused("the stream to capture must be one that does not wait for the default stream");
  }
  Relaxed relaxed(c);
  c.count();
  const CUresult busy = c.api.cuStreamQuery(stream);
  if (busy == CUDA_ERROR_NOT_READY) return refused("the stream to capture is not idle");
  if (busy != CUDA_SUCCESS) return c.failed("cuStreamQuery", busy);
  return {};
}

CUstreamCaptureMode driver_mode(CaptureMode mode) {
  switch (mode) {
    case CaptureMode::Global: return CU_STREAM_CAPTURE_MODE_GLOBAL;
    case CaptureMode::ThreadLocal: return CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    case CaptureMode::Relaxed: break;
  }
  return CU_STREAM_CAPTURE_MODE_RELAXED;
}

}  // namespace

Result<void> begin_capture(State& s, Stream& to, CaptureMode mode, std::span<const NodeId> after) {
  std::lock_guard lock(s.mutex);
  Context& c = *s.context;
  auto* stream = exactly<CudaStream>(&to);
  if (stream == nullptr || &stream->context() != &c) {
    return fail(ErrorKind::Device, "E0506", "this stream is not one of the CUDA device");
  }
  GK_CHECK(s.check_usable());
  if (s.capture) return fail(ErrorKind::Capture, "E0712", "this graph captures a stream already");
  GK_CHECK(c.bind());
  GK_CHECK(s.gather(s.graph, after));
  GK_CHECK(check_stream(c, stream->handle()));
  return begin(s, stream->handle(), driver_mode(mode), s.deps);
}

Result<NodeId> captured(State& s) {
  std::lock_guard lock(s.mutex);
  GK_CHECK(check_open(s));
  GK_CHECK(s.context->bind());
  GK_TRY(std::vector<CUgraphNode> now, frontier_of(s));
  StreamCapture& capture = *s.capture;
  if (now == capture.start) return -1;
  if (capture.last >= 0 && now == capture.frontier) return capture.last;
  GK_TRY(const std::vector<CUgraphNode> own, s.discover(now));
  capture.last = s.add(s.graph, State::Kind::Captured, now, own);
  capture.seen.push_back(capture.last);
  capture.frontier = std::move(now);
  return capture.last;
}

Result<void> resume_capture(State& s, NodeId node) {
  std::lock_guard lock(s.mutex);
  GK_CHECK(check_open(s));
  GK_CHECK(s.context->bind());
  GK_CHECK(s.gather(s.graph, {&node, 1}));
  GK_CHECK(frontier_of(s));  // names what broke it
  GK_CHECK(set_frontier(*s.context, s.capture->stream, s.deps));
  s.capture->start = s.deps;
  s.capture->last = -1;
  s.capture->seen.clear();
  return {};
}

Result<void> end_capture(State& s) {
  std::lock_guard lock(s.mutex);
  GK_CHECK(check_open(s));
  Context& c = *s.context;
  GK_CHECK(c.bind());
  // Work that nobody asked for is an entry too, so that it can be removed.
  const Result<NodeId> rest = captured(s);
  const StreamCapture capture = std::move(*s.capture);
  s.capture.reset();
  Result<Frontier> f = read_frontier(c, capture.stream);
  // Of a broken capture the driver does not tell the id; somebody else's active one is left alone.
  const bool ours = f && (f->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED ||
                          (f->status == CU_STREAM_CAPTURE_STATUS_ACTIVE && f->id == capture.id));
  Result<void> ended;
  // Where the state cannot be read the end is tried: a capture left open would lose the stream.
  if (ours || !f) ended = finish_capture(s, s.graph, capture.stream);
  if (!rest) {
    s.lost = kBroken;
    return fail(rest.error());
  }
  if (!ended) s.lost = kBroken;
  return ended;
}

Result<void> rollback(State& s, int64_t mark) {
  std::lock_guard lock(s.mutex);
  if (mark < 0 || mark > s.next_id()) {
    return fail(ErrorKind::Device, "E0508", fmt::format("the graph was never at mark {}", mark));
  }
  const auto to = static_cast<NodeId>(mark);
  Context& c = *s.context;
  GK_CHECK(c.bind());
  if (!s.capture) {
    GK_CHECK(s.check_usable());
    return s.remove_from(to);
  }
  // The driver removes no nodes from a graph while something is captured into it: the capture is interrupted.
  GK_CHECK(captured(s));
  StreamCapture before = *s.capture;
  GK_CHECK(end_capture(s));
  Result<void> removed = s.remove_from(to);
  // It goes on behind what is left of the work that was given to the stream, else where it was before that.
  std::erase_if(before.seen, [&](NodeId id) { return id >= to; });
  std::erase_if(before.start, [&](CUgraphNode node) { return !s.known.contains(node); });
  std::vector<CUgraphNode> at = before.start;
  if (!before.seen.empty()) {
    const auto nodes = s.last_of(s.entries[static_cast<size_t>(before.seen.back())]);
    at.assign(nodes.begin(), nodes.end());
    std::sort(at.begin(), at.end());
  }
  Result<void> begun = begin(s, before.stream, before.mode, at);
  GK_CHECK(std::move(removed));
  GK_CHECK(std::move(begun));
  s.capture->start = std::move(before.start);
  if (!before.seen.empty()) {
    s.capture->last = before.seen.back();
    s.capture->frontier = std::move(at);
    s.capture->seen = std::move(before.seen);
  }
  return {};
}

}  // namespace gk::hal::cuda
#endif
