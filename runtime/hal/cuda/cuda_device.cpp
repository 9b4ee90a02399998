#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "runtime/hal/cuda/context.h"

namespace gk::hal::cuda {
namespace {

/// The driver package's own version ("580.159.03"), from the kernel module; empty where it cannot be told.
std::string package_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    const bool digits = word.find_first_not_of("0123456789.") == std::string::npos;
    if (digits && std::count(word.begin(), word.end(), '.') >= 1) return word;
  }
  return {};
}

Result<void> check(const Driver& api, const char* name, CUresult r) {
  if (r == CUDA_SUCCESS) return {};
  return fail(ErrorKind::Device, "E0502", fmt::format("{} failed: {}", name, api.text(r)));
}

/// What a GPU is, without a context on it.
Result<DeviceInfo> describe(const Driver& api, CUdevice device, int ordinal) {
  DeviceInfo info;
  info.id = fmt::format("cuda:{}", ordinal);
  info.target = program::TargetKind::Cuda;
  char name[256] = {};
  GK_CHECK(check(api, "cuDeviceGetName", api.cuDeviceGetName(name, sizeof name - 1, device)));
  info.name = name;
  size_t total = 0;
  GK_CHECK(check(api, "cuDeviceTotalMem", api.cuDeviceTotalMem(&total, device)));
  info.total_bytes = static_cast<int64_t>(total);
  const auto attribute = [&](CUdevice_attribute a) -> Result<int> {
    int value = 0;
    GK_CHECK(check(api, "cuDeviceGetAttribute", api.cuDeviceGetAttribute(&value, a, device)));
    return value;
  };
  GK_TRY(const int major, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  GK_TRY(const int minor, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  GK_TRY(info.multiprocessors, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  GK_TRY(info.shared_bytes_max, attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  info.sm = major * 10 + minor;
  const std::string package = package_version();
  info.driver = version_text(api.version) + (package.empty() ? "" : fmt::format(" ({})", package));
  return info;
}

class CudaDevice : public Device {
 public:
  CudaDevice(std::shared_ptr<Context> context, DeviceInfo info)
      : context_(std::move(context)), info_(std::move(info)) {
    info_.has_blas_lt = context_->blas() != nullptr;
  }

  const DeviceInfo& info() const override { return info_; }

  Result<Allocation> allocate(int64_t size_bytes, Placement placement) override {
    // Some drivers take very long to refuse what can never be.
    if (size_bytes < 0 || (placement == Placement::Device && size_bytes > info_.total_bytes)) {
      return fail(ErrorKind::OutOfMemory, "E0601",
                  fmt::format("the device has no {} bytes to give", size_bytes));
    }
    GK_CHECK(context_->bind());
    Relaxed relaxed(*context_);
    const auto size = static_cast<size_t>(std::max<int64_t>(size_bytes, 1));
    if (placement == Placement::Pinned) {
      void* p = nullptr;
      GK_CHECK(GK_CU(*context_, cuMemHostAlloc, &p, size,
                     static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)));
      return Allocation{p, p, size_bytes, placement};  // addresses are unified
    }
    CUdeviceptr p = 0;
    Result<void> allocated = GK_CU(*context_, cuMemAlloc, &p, size);
    if (!allocated && allocated.error().kind == ErrorKind::OutOfMemory &&
        context_->workspaces()->trim(*context_) > 0) {
      allocated = GK_CU(*context_, cuMemAlloc, &p, size);
    }
    GK_CHECK(std::move(allocated));
    return Allocation{reinterpret_cast<void*>(p), nullptr, size_bytes, placement};
  }

  Result<void> release(const Allocation& a) override {
    GK_CHECK(context_->bind());
    Relaxed relaxed(*context_);
    if (a.placement == Placement::Pinned) return GK_CU(*context_, cuMemFreeHost, a.address);
    return GK_CU(*context_, cuMemFree, device_pointer(a.address));
  }

  Result<std::shared_ptr<Module>> load(const program::Code& code) override {
    return load_module(context_, code, info_.shared_bytes_max);
  }
  Result<std::unique_ptr<Stream>> create_stream() override { return CudaStream::create(context_); }
  Result<std::unique_ptr<Graph>> create_graph() override { return cuda::create_graph(context_); }

  Result<std::unique_ptr<Stream>> wrap_stream(void* native) override {
    return CudaStream::wrap(context_, static_cast<CUstream>(native));
  }
  Result<std::unique_ptr<Event>> wrap_event(void* native) override {
    if (native == nullptr) return fail(ErrorKind::Device, "E0510", "the event is null");
    return std::make_unique<CudaEvent>(context_, static_cast<CUevent>(native), false);
  }
  Result<std::unique_ptr<Graph>> wrap_graph(void* native, std::span<void* const> after,
                                            NodeId& frontier) override {
    return cuda::wrap_graph(context_, static_cast<CUgraph>(native), after, frontier);
  }
  Result<void> trim_graph_memory() override {
    GK_CHECK(context_->bind());
    Relaxed relaxed(*context_);
    context_->workspaces()->trim(*context_);
    return GK_CU(*context_, cuDeviceGraphMemTrim, context_->device());
  }

  Result<void> read(void* dst, const void* src, int64_t size_bytes, Stream& s) override {
    GK_TRY(const CUstream stream, handle(s));
    Relaxed relaxed(*context_);
    GK_CHECK(GK_CU(*context_, cuMemcpyDtoHAsync, dst, device_pointer(src), static_cast<size_t>(size_bytes),
                   stream));
    return GK_CU(*context_, cuStreamSynchronize, stream);
  }
  Result<void> write(void* dst, const void* src, int64_t size_bytes, Stream& s) override {
    GK_TRY(const CUstream stream, handle(s));
    Relaxed relaxed(*context_);
    GK_CHECK(GK_CU(*context_, cuMemcpyHtoDAsync, device_pointer(dst), src, static_cast<size_t>(size_bytes),
                   stream));
    return GK_CU(*context_, cuStreamSynchronize, stream);
  }

  Result<void> synchronize() override {
    GK_CHECK(context_->bind());
    Relaxed relaxed(*context_);
    return GK_CU(*context_, cuCtxSynchronize);
  }

  bool supports(const program::LibraryCall& call) const override {
    library::CublasLt* blas = context_->blas();
    const auto* product = std::get_if<program::MatMulCall>(&call);
    if (product == nullptr || blas == nullptr || !context_->bind()) return false;
    Relaxed relaxed(*context_);
    std::lock_guard lock(context_->library_mutex());
    return blas->supports(*product);
  }

  Result<std::string> assemble(std::string_view ptx) override { return cuda::assemble(*context_, ptx); }
  int64_t driver_calls() const override { return context_->calls(); }

 private:
  Result<CUstream> handle(Stream& s) {
    auto* stream = exactly<CudaStream>(&s);
    if (stream == nullptr || &stream->context() != context_.get()) {
      return fail(ErrorKind::Device, "E0506", "this stream is not one of the CUDA device");
    }
    GK_CHECK(context_->bind());
    GK_CHECK(stream->check_not_captured());
    return stream->handle();
  }

  std::shared_ptr<Context> context_;
  DeviceInfo info_;
};

}  // namespace

Result<std::shared_ptr<Device>> open(int ordinal, const OpenOptions& options) {
  GK_TRY(const Driver* const api, driver());
  int count = 0;
  GK_CHECK(check(*api, "cuDeviceGetCount", api->cuDeviceGetCount(&count)));
  if (ordinal >= count) {
    return fail(
        make_error(ErrorKind::Device, "E0501",
                   fmt::format("there is no device cuda:{}: the driver finds {} GPU{}", ordinal, count,
                               count == 1 ? "" : "s"))
            .help(count > 0 ? fmt::format("the last one is cuda:{}", count - 1) : "use the device `host`"));
  }
  CUdevice device = 0;
  GK_CHECK(check(*api, "cuDeviceGet", api->cuDeviceGet(&device, ordinal)));
  GK_TRY(DeviceInfo info, describe(*api, device, ordinal));
  GK_TRY(std::shared_ptr<Context> context,
         Context::create(*api, device, static_cast<CUcontext>(options.native_context)));
  return std::make_shared<CudaDevice>(std::move(context), std::move(info));
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> all;
  const Result<const Driver*> api = driver();
  int count = 0;
  if (!api || (*api)->cuDeviceGetCount(&count) != CUDA_SUCCESS) return all;
  const bool has_blas_lt = library::CublasLt::available();
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if ((*api)->cuDeviceGet(&device, i) != CUDA_SUCCESS) continue;
    if (Result<DeviceInfo> info = describe(**api, device, i)) {
      info->has_blas_lt = has_blas_lt;
      all.push_back(std::move(*info));
    }
  }
  return all;
}

}  // namespace gk::hal::cuda
#endif
