// NVIDIA GPUs through the driver API, opened at run time. Promises: no link to libcuda; every driver result
// is looked at and becomes a typed Error that names the call. Needs a driver of CUDA 12.4 or newer.
#pragma once

#include <memory>
#include <vector>

#include "runtime/hal/device.h"

namespace gk::hal::cuda {

/// Errors: Device E0501 (no such device), E0502 (no driver, too old, or it does not start).
Result<std::shared_ptr<Device>> open(int ordinal, const OpenOptions& options);
/// The GPUs that answer; empty where there is no usable driver. Creates no context.
std::vector<DeviceInfo> list_devices();

}  // namespace gk::hal::cuda
