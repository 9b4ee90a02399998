// A GPU's primary context and what all its objects share: the driver table, the count of calls, the cuBLASLt
// handle and the stream that library calls are captured on. Owns one reference to the primary context. Lives
// as long as any object made on the device. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/hal/cuda/driver.h"
#include "runtime/hal/device.h"
#include "runtime/library/cublaslt.h"

namespace gk::hal::cuda {

class Context {
 public:
  static Result<std::shared_ptr<Context>> create(const Driver& api, CUdevice device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Makes the context the calling thread's. Cheap when it is: the thread remembers.
  Result<void> bind();
  /// Makes one driver call, counts it, and turns a failure into an Error that names it.
  template <class F, class... A>
  Result<void> call(const char* name, F f, A... args) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    const CUresult r = f(args...);
    if (r == CUDA_SUCCESS) [[likely]]
      return {};
    return failed(name, r);
  }
  tl::unexpected<Error> failed(const char* name, CUresult r);
  int64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  void count() { calls_.fetch_add(1, std::memory_order_relaxed); }

  /// Null without the library.
  library::CublasLt* blas() { return blas_.get(); }
  /// One capture at a time: the stream and the library's plans are shared.
  std::mutex& capture_mutex() { return capture_mutex_; }
  Result<CUstream> capture_stream();

  const Driver& api;
  CUcontext handle = nullptr;

 private:
  Context(const Driver& a, CUdevice d) : api(a), device_(d) {}
  const CUdevice device_;
  uint64_t id_ = 0;  // tells this context from an earlier one at the same address
  std::atomic<int64_t> calls_{0};
  std::unique_ptr<library::CublasLt> blas_;
  std::mutex capture_mutex_;
  CUstream capture_stream_ = nullptr;
};

// GK_CU(context, cuMemFree, p): one checked driver call.
#define GK_CU_TEXT_(name) #name
#define GK_CU_TEXT(name) GK_CU_TEXT_(name)
#define GK_CU(context, name, ...) \
  (context).call(GK_CU_TEXT(name), (context).api.name __VA_OPT__(, ) __VA_ARGS__)

/// A kernel with the context that it belongs to.
class CudaFunction : public Function {
 public:
  CudaFunction(CUfunction f, const Context* c) : handle(f), context(c) {}
  CUfunction handle;
  const Context* context;
};
/// Errors: Device E0506 where the function is not one of this context.
Result<CUfunction> function_of(const Context& c, Function* f);

class CudaEvent : public Event {
 public:
  static Result<std::unique_ptr<Event>> record(std::shared_ptr<Context> context, CUstream stream);
  CudaEvent(std::shared_ptr<Context> context, CUevent e) : context_(std::move(context)), event_(e) {}
  ~CudaEvent() override;
  Result<bool> done() override;
  Result<void> wait() override;
  CUevent handle() const { return event_; }

 private:
  std::shared_ptr<Context> context_;
  CUevent event_;
};

class CudaStream : public Stream {
 public:
  static Result<std::unique_ptr<Stream>> create(std::shared_ptr<Context> context);
  CudaStream(std::shared_ptr<Context> context, CUstream s) : context_(std::move(context)), stream_(s) {}
  ~CudaStream() override;
  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override;
  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override;
  Result<NodeId> matmul(const MatMulOp& op, std::span<const NodeId> deps) override;
  Result<void> synchronize() override;
  Result<std::unique_ptr<Event>> record() override;
  Result<void> wait(Event& e) override;
  CUstream handle() const { return stream_; }
  const Context& context() const { return *context_; }

 private:
  std::shared_ptr<Context> context_;
  CUstream stream_;
};

Result<std::unique_ptr<Graph>> create_graph(std::shared_ptr<Context> context);
/// Errors: Device E0504 with the assembler's log.
Result<std::shared_ptr<Module>> load_module(std::shared_ptr<Context> context, const program::Code& code,
                                            int64_t shared_bytes_max);
Result<std::string> assemble(Context& context, std::string_view ptx);

inline CUdeviceptr device_pointer(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace gk::hal::cuda
