// Builds without CUDA's headers have no GPU support: the same interface, answering that.
#ifndef GK_HAS_CUDA
#include "runtime/hal/cuda/cuda_device.h"

namespace gk::hal::cuda {

Result<std::shared_ptr<Device>> open(int, const OpenOptions&) {
  return fail(make_error(ErrorKind::Device, "E0502", "this build has no support for NVIDIA GPUs")
                  .help("build it again where CUDA's headers are found, or use the device `host`"));
}

std::vector<DeviceInfo> list_devices() { return {}; }

}  // namespace gk::hal::cuda
#endif
