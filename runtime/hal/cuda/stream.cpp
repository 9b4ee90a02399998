#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/context.h"

namespace gk::hal::cuda {

Result<std::unique_ptr<Event>> CudaEvent::record(std::shared_ptr<Context> context, CUstream stream) {
  GK_CHECK(context->bind());
  Relaxed relaxed(*context);
  CUevent e = nullptr;
  GK_CHECK(GK_CU(*context, cuEventCreate, &e, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING)));
  auto event = std::make_unique<CudaEvent>(context, e);
  GK_CHECK(GK_CU(*context, cuEventRecord, e, stream));
  return event;
}

CudaEvent::~CudaEvent() {
  if (!owned_ || !context_->bind()) return;
  Relaxed relaxed(*context_);
  (void)GK_CU(*context_, cuEventDestroy, event_);
}

Result<bool> CudaEvent::done() {
  GK_CHECK(context_->bind());
  Relaxed relaxed(*context_);
  context_->count();
  const CUresult r = context_->api.cuEventQuery(event_);
  if (r == CUDA_SUCCESS) return true;
  if (r == CUDA_ERROR_NOT_READY) return false;
  return context_->failed("cuEventQuery", r);
}

Result<void> CudaEvent::wait() {
  GK_CHECK(context_->bind());
  Relaxed relaxed(*context_);
  return GK_CU(*context_, cuEventSynchronize, event_);
}

namespace {

/// Runs a function given to a stream, once, and lets go of it. It may not throw through the driver.
void CUDA_CB call_once(void* data) noexcept {
  const std::unique_ptr<std::function<void()>> f(static_cast<std::function<void()>*>(data));
  (*f)();
}
void CUDA_CB give_back(void* data) noexcept { delete static_cast<LentWorkspace*>(data); }

}  // namespace

Result<std::unique_ptr<Stream>> CudaStream::create(std::shared_ptr<Context> context) {
  GK_CHECK(context->bind());
  Relaxed relaxed(*context);
  CUstream s = nullptr;
  GK_CHECK(GK_CU(*context, cuStreamCreate, &s, static_cast<unsigned>(CU_STREAM_NON_BLOCKING)));
  return std::make_unique<CudaStream>(std::move(context), s, true);
}

Result<std::unique_ptr<Stream>> CudaStream::wrap(std::shared_ptr<Context> context, CUstream stream) {
  GK_CHECK(context->bind());
  CUcontext its = nullptr;
  if (Result<void> asked = GK_CU(*context, cuStreamGetCtx, stream, &its); !asked) {
    return fail(make_error(ErrorKind::Device, "E0510", "this is no stream of the driver")
                    .note(asked.error().message));
  }
  if (its != context->handle) {
    return fail(ErrorKind::Device, "E0510", "the stream is one of another context");
  }
  return std::make_unique<CudaStream>(std::move(context), stream, false);
}

CudaStream::~CudaStream() {
  if (!context_->bind()) {
    (void)workspace_.release();  // work may still use it
    return;
  }
  Relaxed relaxed(*context_);
  if (!owned_) {
    // The stream goes on: its workspace is given back in its turn, or never.
    if (workspace_ == nullptr) return;
    LentWorkspace* workspace = workspace_.release();
    if (!check_not_captured()) return;
    (void)GK_CU(*context_, cuLaunchHostFunc, stream_, give_back, static_cast<void*>(workspace));
    return;
  }
  if (!GK_CU(*context_, cuStreamSynchronize, stream_)) (void)workspace_.release();
  (void)GK_CU(*context_, cuStreamDestroy, stream_);
}

Result<bool> CudaStream::is_capturing() {
  GK_CHECK(context_->bind());
  CUstreamCaptureStatus status{};
  GK_CHECK(GK_CU(*context_, cuStreamIsCapturing, stream_, &status));
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Result<void> CudaStream::check_not_captured() {
  if (owned_) return {};
  CUstreamCaptureStatus status{};
  context_->count();
  // For the default stream the driver answers with an error where another stream's capture forbids its use.
  const CUresult r = context_->api.cuStreamIsCapturing(stream_, &status);
  if (r == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE) return {};
  if (r != CUDA_SUCCESS && r != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    return context_->failed("cuStreamIsCapturing", r);
  }
  return fail(ErrorKind::Capture, "E0711", "the stream is being captured by somebody else");
}

Result<NodeId> CudaStream::kernel(const KernelLaunch& launch, std::span<const NodeId>) {
  GK_CHECK(context_->bind());
  GK_TRY(const CUfunction f, function_of(*context_, launch.function));
  const auto& d = launch.dims;
  GK_CHECK(GK_CU(*context_, cuLaunchKernel, f, d.grid[0], d.grid[1], d.grid[2], d.block[0], d.block[1],
                 d.block[2], d.shared_bytes, stream_, const_cast<void**>(launch.params.data()),
                 static_cast<void**>(nullptr)));
  return 0;
}

Result<NodeId> CudaStream::copy(const CopyOp& op, std::span<const NodeId>) {
  GK_CHECK(context_->bind());
  GK_CHECK(GK_CU(*context_, cuMemcpyAsync, device_pointer(op.dst), device_pointer(op.src),
                 static_cast<size_t>(op.size_bytes), stream_));
  return 0;
}

Result<NodeId> CudaStream::library(const LibraryOp& call, std::span<const NodeId>) {
  const library::MatMulOp op = library::matmul_of(call);
  GK_CHECK(context_->bind());
  library::CublasLt* blas = context_->blas();
  if (blas == nullptr) return fail(ErrorKind::Device, "E0507", "cuBLASLt was not found");
  GK_CHECK(check_not_captured());
  Relaxed relaxed(*context_);
  std::lock_guard lock(context_->library_mutex());
  GK_TRY(const int64_t needed, blas->prepare(op));
  // Its own: products on two streams run at the same time.
  if (needed > 0 && workspace_ == nullptr) {
    GK_TRY(void* const address, context_->workspaces()->take(*context_));
    workspace_ = std::make_unique<LentWorkspace>(context_->workspaces(), address);
  }
  context_->count();
  GK_CHECK(blas->run(op, stream_, workspace_ != nullptr ? workspace_->address : nullptr));
  return 0;
}

Result<NodeId> CudaStream::host_call(std::function<void()> f, std::span<const NodeId>) {
  if (!f) return fail(ErrorKind::Device, "E0506", "there is no function to call");
  GK_CHECK(context_->bind());
  GK_CHECK(check_not_captured());
  auto owned = std::make_unique<std::function<void()>>(std::move(f));
  GK_CHECK(GK_CU(*context_, cuLaunchHostFunc, stream_, call_once, static_cast<void*>(owned.get())));
  // The stream's now. Where its context dies before the call is due it is never freed.
  (void)owned.release();
  return 0;
}

Result<bool> CudaStream::read_condition(const void* at) {
  Relaxed relaxed(*context_);
  uint8_t byte = 0;
  GK_CHECK(
      GK_CU(*context_, cuMemcpyDtoHAsync, static_cast<void*>(&byte), device_pointer(at), size_t{1}, stream_));
  GK_CHECK(GK_CU(*context_, cuStreamSynchronize, stream_));
  return byte != 0;
}

Result<NodeId> CudaStream::conditional(const ConditionalOp& op, std::span<const NodeId>) {
  GK_CHECK(check(op));
  GK_CHECK(context_->bind());
  GK_CHECK(check_not_captured());
  while (true) {
    GK_CHECK(context_->bind());
    GK_TRY(const bool taken, read_condition(op.condition));
    if (op.kind == ConditionalOp::Kind::If) {
      if (taken || op.has_else) GK_CHECK(op.record(*this, taken ? 0 : 1));
      return 0;
    }
    if (!taken) return 0;
    GK_CHECK(op.record(*this, 0));
  }
}

Result<void> CudaStream::synchronize() {
  GK_CHECK(context_->bind());
  GK_CHECK(check_not_captured());
  Relaxed relaxed(*context_);
  return GK_CU(*context_, cuStreamSynchronize, stream_);
}

Result<std::unique_ptr<Event>> CudaStream::record() { return CudaEvent::record(context_, stream_); }

Result<void> CudaStream::wait(Event& e) {
  auto* event = exactly<CudaEvent>(&e);
  if (event == nullptr) return fail(ErrorKind::Device, "E0506", "this event is not one of the CUDA device");
  GK_CHECK(context_->bind());
  return GK_CU(*context_, cuStreamWaitEvent, stream_, event->handle(), 0U);
}

}  // namespace gk::hal::cuda
#endif
