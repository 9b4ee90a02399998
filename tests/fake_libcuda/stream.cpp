// Streams and events, and the work that streams are given.
#include <algorithm>

#include "tests/fake_libcuda/state.h"

namespace gk::fake_libcuda {

Ptr<Stream> stream_of(CUstream s, const Context& c) {
  if (s == nullptr || s == CU_STREAM_LEGACY) return c.standard;
  return world().streams.find(s);
}

CUresult check_stream(const Ptr<Stream>& s) {
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (s->capture != nullptr && s->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (s != s->context->standard) return CUDA_SUCCESS;
  // The default stream would wait for a stream that is captured.
  for (const Ptr<Stream>& other : s->context->streams) {
    if (other->capture == nullptr || (other->flags & CU_STREAM_NON_BLOCKING) != 0) continue;
    break_capture(*other->capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

CUresult submit(const Ptr<Stream>& s, Op op) {
  if (const CUresult r = check_stream(s); r != CUDA_SUCCESS) return r;
  if (s->capture != nullptr) {
    CUgraphNode node = nullptr;
    const std::vector<CUgraphNode> after = s->frontier;
    const CUresult r = add_node(s->capture->graph, std::move(op), after.data(), after.size(), &node);
    if (r != CUDA_SUCCESS) {
      break_capture(*s->capture);
      return r;
    }
    s->frontier = {node};
    return CUDA_SUCCESS;
  }
  Item item;
  item.touches = touches_of(op);
  item.run = [op = std::move(op), c = s->context, id = s->id](Lock& lock) { execute(op, *c, id, 0, lock); };
  give(s, std::move(item));
  return CUDA_SUCCESS;
}

}  // namespace gk::fake_libcuda

using namespace gk::fake_libcuda;

namespace {

/// A call that waits for a stream or asks how far it is, which breaks a capture of it.
CUresult check_wait(const Ptr<Stream>& s) {
  if (const CUresult r = check_stream(s); r != CUDA_SUCCESS) return r;
  if (s->capture != nullptr) {
    break_capture(*s->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return unsafe_in_captures();
}

Item nothing() {
  Item item;
  item.run = [](Lock&) {};
  return item;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamCreate(CUstream* out, unsigned flags) {
  GK_FAKE_CALL(Current);
  if ((flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto s = std::make_shared<Stream>();
  s->context = call.context;
  s->flags = flags;
  call.context->streams.push_back(s);
  *out = world().streams.add(std::move(s));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = world().streams.find(stream);
  if (s == nullptr) return gone("stream", CUDA_ERROR_INVALID_HANDLE);
  if (s->capture != nullptr) {
    break_capture(*s->capture);
    if (s->capture->origin == s.get()) (void)end_capture(*s, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  world().streams.remove(stream);  // what was given to it is still done
  if (s->queue.empty()) std::erase(s->context->streams, s);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (const CUresult r = check_wait(s); r != CUDA_SUCCESS) return r;
  demand(call.lock, s == s->context->standard ? give(s, nothing()) : Mark{s, s->given});
  return call.context->sticky;
}

CUresult CUDAAPI cuStreamQuery(CUstream stream) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (const CUresult r = check_wait(s); r != CUDA_SUCCESS) return r;
  const Mark m{s, s->given};
  if (is_done(m)) return CUDA_SUCCESS;
  tick(call.lock, m);
  return call.context->sticky != CUDA_SUCCESS ? call.context->sticky : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* out) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = s->context->handle();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream stream, unsigned* out) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = s->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  const Ptr<Event> e = world().events.find(event);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult r = check_stream(s); r != CUDA_SUCCESS) return r;
  if (e->capture != nullptr) {
    if (e->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (s->capture != nullptr && s->capture != e->capture) {
      break_capture(*s->capture);
      break_capture(*e->capture);
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    s->capture = e->capture;
    for (const CUgraphNode n : e->frontier) {
      if (std::find(s->frontier.begin(), s->frontier.end(), n) == s->frontier.end()) s->frontier.push_back(n);
    }
    return CUDA_SUCCESS;
  }
  if (s->capture != nullptr) {
    break_capture(*s->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (is_done(e->mark)) return CUDA_SUCCESS;
  Item item = nothing();
  item.after.push_back(e->mark);
  give(s, std::move(item));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent* out, unsigned) {
  GK_FAKE_CALL(Current);
  auto e = std::make_shared<Event>();
  e->context = call.context;
  *out = world().events.add(std::move(e));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent event) {
  GK_FAKE_CALL(Current);
  if (world().events.find(event) == nullptr) return gone("event", CUDA_ERROR_INVALID_HANDLE);
  world().events.remove(event);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  const Ptr<Event> e = world().events.find(event);
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult r = check_stream(s); r != CUDA_SUCCESS) return r;
  if (s->context != e->context) return CUDA_ERROR_INVALID_HANDLE;
  e->capture = s->capture;
  e->frontier = s->frontier;
  if (s->capture == nullptr) e->mark = give(s, nothing());
  return CUDA_SUCCESS;
}

/// Whether the host may ask for it: an event of a capture has not happened, and the question breaks the
/// capture.
static CUresult may_be_asked(const Ptr<Event>& e) {
  if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (e->capture == nullptr) return unsafe_in_captures();
  break_capture(*e->capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult CUDAAPI cuEventQuery(CUevent event) {
  GK_FAKE_CALL(Current);
  const Ptr<Event> e = world().events.find(event);
  if (const CUresult r = may_be_asked(e); r != CUDA_SUCCESS) return r;
  if (is_done(e->mark)) return CUDA_SUCCESS;
  tick(call.lock, e->mark);
  return call.context->sticky != CUDA_SUCCESS ? call.context->sticky : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  GK_FAKE_CALL(Current);
  const Ptr<Event> e = world().events.find(event);
  if (const CUresult r = may_be_asked(e); r != CUDA_SUCCESS) return r;
  demand(call.lock, e->mark);
  return call.context->sticky;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                unsigned bz, unsigned shared_bytes, CUstream stream, void** params, void**) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (s->context != call.context) return CUDA_ERROR_INVALID_HANDLE;
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = f;
  p.gridDimX = gx, p.gridDimY = gy, p.gridDimZ = gz;
  p.blockDimX = bx, p.blockDimY = by, p.blockDimZ = bz;
  p.sharedMemBytes = shared_bytes;
  p.kernelParams = params;
  KernelOp k;
  if (const CUresult r = make_kernel(p, *call.context, k); r != CUDA_SUCCESS) return r;
  return submit(s, std::move(k));
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn f, void* data) {
  GK_FAKE_CALL(Current);
  if (f == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return submit(stream_of(stream, *call.context), HostOp{f, data});
}
}
