// The context of a GPU and what all its objects share: the driver table, the count of calls, the cuBLASLt
// handle, the stream that library calls are captured on, and two small kernels. Owns one reference to the
// primary context, or nothing of one that the host program gave. Lives as long as any object made on the
// device. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <typeinfo>

#include "runtime/hal/cuda/driver.h"
#include "runtime/hal/cuda/workspaces.h"
#include "runtime/hal/device.h"
#include "runtime/library/cublaslt.h"

namespace gk::hal::cuda {

class Context {
 public:
  /// `native`: a context to use as it is; null: the device's primary one. Errors: Device E0510 where it is
  /// no context of this device.
  static Result<std::shared_ptr<Context>> create(const Driver& api, CUdevice device, CUcontext native);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Makes the context the calling thread's. Cheap when it is.
  Result<void> bind();
  /// For calls whose stream carries the context: enough that this thread was given it once.
  Result<void> bind_once();
  /// Makes one driver call, counts it, and turns a failure into an Error that names it.
  template <class F, class... A>
  Result<void> call(const char* name, F f, A... args) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    const CUresult r = f(args...);
    if (r == CUDA_SUCCESS) [[likely]]
      return {};
    return failed(name, r);
  }
  Failure failed(const char* name, CUresult r);
  int64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  void count() { calls_.fetch_add(1, std::memory_order_relaxed); }

  /// Null without the library.
  library::CublasLt* blas() { return blas_.get(); }
  /// The library's plans and the stream that its calls are captured on serve one thread at a time.
  std::mutex& library_mutex() { return library_mutex_; }
  Result<CUstream> capture_stream();  // under library_mutex()
  const std::shared_ptr<Workspaces>& workspaces() { return workspaces_; }

  /// Kernels of our own, loaded at first use: set(u64 byte, u64 handle, u32 negate) gives a conditional node
  /// the value of a byte; nothing() does nothing.
  struct Kernels {
    CUfunction set = nullptr, nothing = nullptr;
  };
  Result<Kernels> kernels();

  /// How many calls failed because of a capture, and the name of the first after the n-th ("" if none).
  uint64_t capture_failures();
  std::string capture_failure_after(uint64_t n);

  const Driver& api;
  CUcontext handle = nullptr;
  CUdevice device() const { return device_; }

 private:
  Context(const Driver& a, CUdevice d) : api(a), device_(d) {}
  Result<void> adopt(CUcontext native);
  const CUdevice device_;
  bool owned_ = false;
  uint64_t id_ = 0;  // tells this context from an earlier one at the same address
  std::atomic<int64_t> calls_{0};
  std::shared_ptr<Workspaces> workspaces_ = std::make_shared<Workspaces>();
  std::unique_ptr<library::CublasLt> blas_;
  std::mutex library_mutex_;
  CUstream capture_stream_ = nullptr;  // under library_mutex_
  std::mutex mutex_;
  CUmodule module_ = nullptr;  // under mutex_, as all below
  Kernels kernels_;
  uint64_t capture_failures_ = 0;
  std::vector<std::string> failed_in_capture_;  // the last of them
};

// GK_CU(context, cuMemFree, p): one checked driver call.
#define GK_CU_TEXT_(name) #name
#define GK_CU_TEXT(name) GK_CU_TEXT_(name)
#define GK_CU(context, name, ...) \
  (context).call(GK_CU_TEXT(name), (context).api.name __VA_OPT__(, ) __VA_ARGS__)

/// While it lives, calls of this thread that a stricter capture forbids (allocations, loading, waiting) are
/// let through and leave the capture alone, whoever began it: they have nothing to do with its stream. Two
/// changes of a thread's variable in the driver; not counted as calls.
class Relaxed {
 public:
  explicit Relaxed(const Context& c) : api_(c.api), changed_(exchange()) {}
  ~Relaxed() {
    if (changed_) exchange();  // else the thread would be left in this mode
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  bool exchange() { return api_.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS; }
  const Driver& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  const bool changed_;
};

/// As dynamic_cast to a class that nothing derives from, but at the cost of a comparison.
template <class T, class Base>
T* exactly(Base* b) {
  static_assert(std::is_final_v<T>);
  return b != nullptr && typeid(*b) == typeid(T) ? static_cast<T*>(b) : nullptr;
}

/// A kernel with the context that it belongs to.
class CudaFunction final : public Function {
 public:
  CudaFunction(CUfunction f, const Context* c) : handle(f), context(c) {}
  CUfunction handle;
  const Context* context;
};
/// Errors: Device E0506 where the function is not one of this context.
Result<CUfunction> function_of(const Context& c, Function* f);

class CudaEvent final : public Event {
 public:
  static Result<std::unique_ptr<Event>> record(std::shared_ptr<Context> context, CUstream stream);
  CudaEvent(std::shared_ptr<Context> context, CUevent e, bool owned = true)
      : context_(std::move(context)), event_(e), owned_(owned) {}
  ~CudaEvent() override;
  Result<bool> done() override;
  Result<void> wait() override;
  CUevent handle() const { return event_; }

 private:
  std::shared_ptr<Context> context_;
  CUevent event_;
  bool owned_;  // else the host program's
};

class CudaStream final : public Stream {
 public:
  static Result<std::unique_ptr<Stream>> create(std::shared_ptr<Context> context);
  /// The host program's own stream. Errors: Device E0510.
  static Result<std::unique_ptr<Stream>> wrap(std::shared_ptr<Context> context, CUstream stream);
  CudaStream(std::shared_ptr<Context> context, CUstream s, bool owned)
      : context_(std::move(context)), stream_(s), owned_(owned) {}
  ~CudaStream() override;
  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override;
  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override;
  Result<NodeId> library(const LibraryOp& op, std::span<const NodeId> deps) override;
  Result<NodeId> host_call(std::function<void()> f, std::span<const NodeId> deps) override;
  Result<NodeId> conditional(const ConditionalOp& op, std::span<const NodeId> deps) override;
  void* native() const override { return stream_; }
  Result<bool> is_capturing() override;
  Result<void> synchronize() override;
  Result<std::unique_ptr<Event>> record() override;
  Result<void> wait(Event& e) override;
  CUstream handle() const { return stream_; }
  bool owned() const { return owned_; }
  const Context& context() const { return *context_; }
  /// Errors: Capture E0711 where the host program captures its stream: a wait would break that, and what is
  /// to happen once would happen at each of its launches.
  Result<void> check_not_captured();

 private:
  Result<bool> read_condition(const void* at);
  std::shared_ptr<Context> context_;
  CUstream stream_;
  const bool owned_;
  std::unique_ptr<LentWorkspace> workspace_;
};

Result<std::unique_ptr<Graph>> create_graph(std::shared_ptr<Context> context);
/// Errors: Device E0510.
Result<std::unique_ptr<Graph>> wrap_graph(std::shared_ptr<Context> context, CUgraph graph,
                                          std::span<void* const> after, NodeId& frontier);
/// Errors: Device E0504 with the assembler's log.
Result<std::shared_ptr<Module>> load_module(std::shared_ptr<Context> context, const program::Code& code,
                                            int64_t shared_bytes_max);
Result<std::string> assemble(Context& context, std::string_view ptx);

inline CUdeviceptr device_pointer(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace gk::hal::cuda
