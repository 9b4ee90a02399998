#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/context.h"

#include <fmt/format.h>

namespace gk::hal::cuda {
namespace {

std::atomic<uint64_t> contexts{0};
thread_local uint64_t bound = 0;  // the id of the context that this thread was given last

}  // namespace

Result<std::shared_ptr<Context>> Context::create(const Driver& api, CUdevice device) {
  std::shared_ptr<Context> c(new Context(api, device));
  GK_CHECK(GK_CU(*c, cuDevicePrimaryCtxRetain, &c->handle, device));
  c->id_ = ++contexts;
  GK_CHECK(c->bind());
  Context* raw = c.get();  // the library's memory goes before the context
  c->blas_ = library::CublasLt::open(
      [raw](int64_t size_bytes) -> void* {
        CUdeviceptr p = 0;
        return GK_CU(*raw, cuMemAlloc, &p, static_cast<size_t>(size_bytes)) ? reinterpret_cast<void*>(p)
                                                                            : nullptr;
      },
      [raw](void* p) { (void)GK_CU(*raw, cuMemFree, device_pointer(p)); });
  return c;
}

Context::~Context() {
  if (handle == nullptr) return;
  // Nobody is left to be told of failures.
  if (bind()) {
    blas_.reset();
    if (capture_stream_ != nullptr) (void)GK_CU(*this, cuStreamDestroy, capture_stream_);
  }
  bound = 0;
  (void)GK_CU(*this, cuDevicePrimaryCtxRelease, device_);
}

Result<void> Context::bind() {
  if (bound == id_) [[likely]]
    return {};
  GK_CHECK(GK_CU(*this, cuCtxSetCurrent, handle));
  bound = id_;
  return {};
}

tl::unexpected<Error> Context::failed(const char* name, CUresult r) {
  // Another user of the driver may have changed this thread's context: set it again next time.
  bound = 0;
  if (r == CUDA_ERROR_OUT_OF_MEMORY) {
    return fail(ErrorKind::OutOfMemory, "E0601", fmt::format("{} failed: {}", name, api.text(r)));
  }
  return fail(ErrorKind::Device, "E0503", fmt::format("{} failed: {}", name, api.text(r)));
}

Result<CUstream> Context::capture_stream() {
  if (capture_stream_ == nullptr) {
    GK_CHECK(GK_CU(*this, cuStreamCreate, &capture_stream_, static_cast<unsigned>(CU_STREAM_NON_BLOCKING)));
  }
  return capture_stream_;
}

Result<CUfunction> function_of(const Context& c, Function* f) {
  const auto* function = dynamic_cast<const CudaFunction*>(f);
  if (function == nullptr || function->context != &c) {
    return fail(ErrorKind::Device, "E0506", "this function is not one of the CUDA device");
  }
  return function->handle;
}

}  // namespace gk::hal::cuda
#endif
