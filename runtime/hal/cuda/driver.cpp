#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace gk::hal::cuda {
namespace {

Failure unusable(std::string message) {
  return fail(make_error(ErrorKind::Device, "E0502", std::move(message))
                  .help("install an NVIDIA driver for CUDA 12.4 or newer, or use the device `host`"));
}

Result<Driver> open() {
  void* lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (lib == nullptr) {
    const char* why = dlerror();
    return unusable(
        fmt::format("no NVIDIA driver: libcuda.so.1 was not found ({})", why ? why : "no reason given"));
  }
  // The library stays open: other users of the driver in this process share it.
  Driver d;
#define GK_CUDA_TEXT_(name) #name
#define GK_CUDA_TEXT(name) GK_CUDA_TEXT_(name)
  d.cuDriverGetVersion =
      reinterpret_cast<decltype(d.cuDriverGetVersion)>(dlsym(lib, GK_CUDA_TEXT(cuDriverGetVersion)));
  if (d.cuDriverGetVersion == nullptr || d.cuDriverGetVersion(&d.version) != CUDA_SUCCESS) {
    return unusable("the NVIDIA driver does not tell its version");
  }
  if (d.version < kMinimumDriver) {
    return unusable(fmt::format("the NVIDIA driver is too old: it serves CUDA {}, and {} is needed",
                                version_text(d.version), version_text(kMinimumDriver)));
  }
  const char* missing = nullptr;
#define GK_CUDA_LOAD(name)                                                     \
  d.name = reinterpret_cast<decltype(d.name)>(dlsym(lib, GK_CUDA_TEXT(name))); \
  if (d.name == nullptr && missing == nullptr) missing = GK_CUDA_TEXT(name);
  GK_CUDA_CALLS(GK_CUDA_LOAD)
#undef GK_CUDA_LOAD
  if (missing != nullptr) {
    return unusable(fmt::format("the NVIDIA driver (CUDA {}) has no {}", version_text(d.version), missing));
  }
  const CUresult started = d.cuInit(0);
  if (started == CUDA_ERROR_NO_DEVICE) {
    return fail(make_error(ErrorKind::Device, "E0501", "the NVIDIA driver finds no GPU")
                    .help("use the device `host`"));
  }
  if (started != CUDA_SUCCESS) {
    return unusable(fmt::format("the NVIDIA driver does not start: {}", d.text(started)));
  }
  return d;
}

}  // namespace

std::string Driver::text(CUresult r) const {
  const char* name = nullptr;
  const char* what = nullptr;
  if (cuGetErrorName(r, &name) != CUDA_SUCCESS || name == nullptr) return fmt::format("error {}", int{r});
  if (cuGetErrorString(r, &what) != CUDA_SUCCESS || what == nullptr) return name;
  return fmt::format("{} ({})", name, what);
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Result<const Driver*> driver() {
  static const Result<Driver> opened = open();
  if (!opened) return fail(opened.error());
  return &*opened;
}

}  // namespace gk::hal::cuda
#endif
