#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/context.h"

#include <fmt/format.h>

namespace gk::hal::cuda {
namespace {

std::atomic<uint64_t> contexts{0};
thread_local uint64_t bound = 0;  // the id of the context that this thread was given last

constexpr size_t kFailuresKept = 64;

// Note [The value of a condition]
// A conditional node looks at a value inside the driver that only device code can set, by a function that the
// driver's assembler knows. Conditions are bytes in memory, so each node has a kernel before it that reads
// the byte and sets the value, and a loop has one more at the end of its body. `negate` is for the other
// branch where the driver has no nodes with two bodies.
constexpr const char* kConditionPtx = R"(.version 7.0
.target sm_75
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry gk_set_condition(.param .u64 at, .param .u64 handle, .param .u32 negate) {
  .reg .u64 %a, %h;
  .reg .u32 %v, %n;
  .reg .u16 %b;
  .reg .pred %p;
  ld.param.u64 %a, [at];
  ld.param.u64 %h, [handle];
  ld.param.u32 %n, [negate];
  cvta.to.global.u64 %a, %a;
  ld.volatile.global.u8 %b, [%a];
  setp.ne.u16 %p, %b, 0;
  selp.u32 %v, 1, 0, %p;
  xor.b32 %v, %v, %n;
  {
    .param .b64 p0;
    .param .b32 p1;
    st.param.b64 [p0], %h;
    st.param.b32 [p1], %v;
    call.uni cudaGraphSetConditional, (p0, p1);
  }
  ret;
}
.visible .entry gk_nothing() {
  ret;
}
)";

}  // namespace

Result<std::shared_ptr<Context>> Context::create(const Driver& api, CUdevice device, CUcontext native) {
  std::shared_ptr<Context> c(new Context(api, device));
  c->id_ = ++contexts;
  if (native != nullptr) {
    GK_CHECK(c->adopt(native));
  } else {
    GK_CHECK(GK_CU(*c, cuDevicePrimaryCtxRetain, &c->handle, device));
    c->owned_ = true;
  }
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

Result<void> Context::adopt(CUcontext native) {
  // A context tells its device only to the thread that it is current in.
  CUcontext before = nullptr;
  GK_CHECK(GK_CU(*this, cuCtxGetCurrent, &before));
  CUdevice its = 0;
  Result<void> asked = GK_CU(*this, cuCtxSetCurrent, native);
  if (asked) {
    asked = GK_CU(*this, cuCtxGetDevice, &its);
    GK_CHECK(GK_CU(*this, cuCtxSetCurrent, before));
  }
  if (!asked) {
    return fail(make_error(ErrorKind::Device, "E0510", "this is no context of the driver")
                    .note(asked.error().message));
  }
  if (its != device_) {
    return fail(ErrorKind::Device, "E0510",
                fmt::format("the context is one of cuda:{}, not of cuda:{}", int{its}, int{device_}));
  }
  handle = native;
  return {};
}

Context::~Context() {
  if (handle == nullptr) return;
  // Nobody is left to be told of failures.
  if (bind()) {
    blas_.reset();
    workspaces_->trim(*this);
    Relaxed relaxed(*this);
    if (module_ != nullptr) (void)GK_CU(*this, cuModuleUnload, module_);
    if (capture_stream_ != nullptr) (void)GK_CU(*this, cuStreamDestroy, capture_stream_);
  }
  bound = 0;
  if (owned_) (void)GK_CU(*this, cuDevicePrimaryCtxRelease, device_);
}

Result<void> Context::bind() {
  // The host program may have made another context current since: the driver is asked each time.
  CUcontext now = nullptr;
  if (bound == id_ && api.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == handle) [[likely]]
    return {};
  GK_CHECK(GK_CU(*this, cuCtxSetCurrent, handle));
  bound = id_;
  return {};
}

Result<void> Context::bind_once() {
  if (bound == id_) [[likely]]
    return {};
  return bind();
}

Failure Context::failed(const char* name, CUresult r) {
  // Another user of the driver may have changed this thread's context: set it again next time.
  bound = 0;
  std::string message = fmt::format("{} failed: {}", name, api.text(r));
  if (r == CUDA_ERROR_OUT_OF_MEMORY) return fail(ErrorKind::OutOfMemory, "E0601", std::move(message));
  if (r < CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || r > CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
    return fail(ErrorKind::Device, "E0503", std::move(message));
  }
  {
    std::lock_guard lock(mutex_);
    ++capture_failures_;
    if (failed_in_capture_.size() == kFailuresKept) failed_in_capture_.erase(failed_in_capture_.begin());
    failed_in_capture_.emplace_back(name);
  }
  return fail(ErrorKind::Capture, r == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD ? "E0710" : "E0715",
              std::move(message));
}

uint64_t Context::capture_failures() {
  std::lock_guard lock(mutex_);
  return capture_failures_;
}

std::string Context::capture_failure_after(uint64_t n) {
  std::lock_guard lock(mutex_);
  const uint64_t first = capture_failures_ - failed_in_capture_.size();
  if (n < first || n >= capture_failures_) return {};
  return failed_in_capture_[n - first];
}

Result<CUstream> Context::capture_stream() {
  if (capture_stream_ == nullptr) {
    Relaxed relaxed(*this);
    GK_CHECK(GK_CU(*this, cuStreamCreate, &capture_stream_, static_cast<unsigned>(CU_STREAM_NON_BLOCKING)));
  }
  return capture_stream_;
}

Result<Context::Kernels> Context::kernels() {
  // The module is loaded outside the lock, which failed() takes; a second one, of a race, is unloaded again.
  {
    std::lock_guard lock(mutex_);
    if (module_ != nullptr) return kernels_;
  }
  GK_CHECK(bind());
  Relaxed relaxed(*this);
  CUmodule loaded = nullptr;
  if (Result<void> r = GK_CU(*this, cuModuleLoadDataEx, &loaded, static_cast<const void*>(kConditionPtx), 0U,
                             static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr));
      !r) {
    return fail(std::move(r).error().note("conditional nodes need a GPU of compute capability 7.5 or newer"));
  }
  Kernels found;
  Result<void> looked = GK_CU(*this, cuModuleGetFunction, &found.set, loaded, "gk_set_condition");
  if (looked) looked = GK_CU(*this, cuModuleGetFunction, &found.nothing, loaded, "gk_nothing");
  bool mine = false;
  if (looked) {
    std::lock_guard lock(mutex_);
    mine = module_ == nullptr;
    if (mine) module_ = loaded, kernels_ = found;
    found = kernels_;
  }
  if (!mine) (void)GK_CU(*this, cuModuleUnload, loaded);
  GK_CHECK(std::move(looked));
  return found;
}

Result<CUfunction> function_of(const Context& c, Function* f) {
  const auto* function = exactly<CudaFunction>(f);
  if (function == nullptr || function->context != &c) {
    return fail(ErrorKind::Device, "E0506", "this function is not one of the CUDA device");
  }
  return function->handle;
}

}  // namespace gk::hal::cuda
#endif
