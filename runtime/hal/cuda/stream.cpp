#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/context.h"

namespace gk::hal::cuda {

Result<std::unique_ptr<Event>> CudaEvent::record(std::shared_ptr<Context> context, CUstream stream) {
  GK_CHECK(context->bind());
  CUevent e = nullptr;
  GK_CHECK(GK_CU(*context, cuEventCreate, &e, static_cast<unsigned>(CU_EVENT_DISABLE_TIMING)));
  auto event = std::make_unique<CudaEvent>(context, e);
  GK_CHECK(GK_CU(*context, cuEventRecord, e, stream));
  return event;
}

CudaEvent::~CudaEvent() {
  if (context_->bind()) (void)GK_CU(*context_, cuEventDestroy, event_);
}

Result<bool> CudaEvent::done() {
  GK_CHECK(context_->bind());
  context_->count();
  const CUresult r = context_->api.cuEventQuery(event_);
  if (r == CUDA_SUCCESS) return true;
  if (r == CUDA_ERROR_NOT_READY) return false;
  return context_->failed("cuEventQuery", r);
}

Result<void> CudaEvent::wait() {
  GK_CHECK(context_->bind());
  return GK_CU(*context_, cuEventSynchronize, event_);
}

Result<std::unique_ptr<Stream>> CudaStream::create(std::shared_ptr<Context> context) {
  GK_CHECK(context->bind());
  CUstream s = nullptr;
  GK_CHECK(GK_CU(*context, cuStreamCreate, &s, static_cast<unsigned>(CU_STREAM_NON_BLOCKING)));
  return std::make_unique<CudaStream>(std::move(context), s);
}

CudaStream::~CudaStream() {
  if (!context_->bind()) return;
  (void)GK_CU(*context_, cuStreamSynchronize, stream_);
  (void)GK_CU(*context_, cuStreamDestroy, stream_);
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

Result<NodeId> CudaStream::matmul(const MatMulOp& op, std::span<const NodeId>) {
  GK_CHECK(context_->bind());
  library::CublasLt* blas = context_->blas();
  if (blas == nullptr) return fail(ErrorKind::Device, "E0507", "cuBLASLt was not found");
  std::lock_guard lock(context_->capture_mutex());
  GK_CHECK(blas->prepare(op));
  context_->count();
  GK_CHECK(blas->run(op, stream_));
  return 0;
}

Result<void> CudaStream::synchronize() {
  GK_CHECK(context_->bind());
  return GK_CU(*context_, cuStreamSynchronize, stream_);
}

Result<std::unique_ptr<Event>> CudaStream::record() { return CudaEvent::record(context_, stream_); }

Result<void> CudaStream::wait(Event& e) {
  auto* event = dynamic_cast<CudaEvent*>(&e);
  if (event == nullptr) return fail(ErrorKind::Device, "E0506", "this event is not one of the CUDA device");
  GK_CHECK(context_->bind());
  return GK_CU(*context_, cuStreamWaitEvent, stream_, event->handle(), 0U);
}

}  // namespace gk::hal::cuda
#endif
