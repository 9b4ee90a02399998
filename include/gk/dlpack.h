// The structs of DLPack 1.0 (and of the 0.x form without a version), by which array libraries of one process
// hand arrays to each other without copying. Declared here so that no other header is needed; equal in layout
// to DLManagedTensorVersioned and DLManagedTensor, so that a pointer to one of those may be cast.
// Source: the DLPack specification, version 1.0.
#pragma once

#include <cstdint>

#include "gk/config.h"

GK_API_BEGIN
namespace dlpack {

inline constexpr uint32_t kMajor = 1, kMinor = 0;

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };
inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;

struct Version {
  uint32_t major, minor;
};
struct Device {
  int32_t type;
  int32_t id;
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major and without gaps
  uint64_t byte_offset;
};
struct ManagedTensorVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned* self);
  uint64_t flags;
  Tensor dl_tensor;
};
/// The form without a version.
struct ManagedTensor {
  Tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor* self);
};

}  // namespace dlpack
GK_API_END
