// The CUDA driver's functions, looked up in libcuda.so.1 at run time. Owns the table. Promises that every
// entry is there once driver() succeeds, under the versioned name that the headers give it. Not to be
// included outside this folder: the only users of cuda.h are here and in runtime/library.
#pragma once

#include <cuda.h>

#include <string>

#include "runtime/base/error.h"

#if CUDA_VERSION < 12040
#error "CUDA's headers must be of version 12.4 or newer"
#endif

// Names that differ between header versions are written with their suffix; the headers' macros add the
// others.
#define GK_CUDA_CALLS(X)                  \
  X(cuInit)                               \
  X(cuDriverGetVersion)                   \
  X(cuGetErrorName)                       \
  X(cuGetErrorString)                     \
  X(cuDeviceGetCount)                     \
  X(cuDeviceGet)                          \
  X(cuDeviceGetName)                      \
  X(cuDeviceGetAttribute)                 \
  X(cuDeviceTotalMem)                     \
  X(cuDevicePrimaryCtxRetain)             \
  X(cuDevicePrimaryCtxRelease)            \
  X(cuCtxSetCurrent)                      \
  X(cuCtxGetCurrent)                      \
  X(cuCtxGetDevice)                       \
  X(cuCtxSynchronize)                     \
  X(cuMemAlloc)                           \
  X(cuMemFree)                            \
  X(cuMemFreeAsync)                       \
  X(cuGraphMemAllocNodeGetParams)         \
  X(cuGraphMemFreeNodeGetParams)          \
  X(cuMemHostAlloc)                       \
  X(cuMemFreeHost)                        \
  X(cuMemcpyAsync)                        \
  X(cuMemcpyHtoDAsync)                    \
  X(cuMemcpyDtoHAsync)                    \
  X(cuModuleLoadDataEx)                   \
  X(cuModuleUnload)                       \
  X(cuModuleGetFunction)                  \
  X(cuFuncGetAttribute)                   \
  X(cuFuncSetAttribute)                   \
  X(cuLinkCreate)                         \
  X(cuLinkAddData)                        \
  X(cuLinkComplete)                       \
  X(cuLinkDestroy)                        \
  X(cuStreamCreate)                       \
  X(cuStreamDestroy)                      \
  X(cuStreamSynchronize)                  \
  X(cuStreamWaitEvent)                    \
  X(cuStreamQuery)                        \
  X(cuStreamGetCtx)                       \
  X(cuStreamGetFlags)                     \
  X(cuStreamIsCapturing)                  \
  X(cuStreamBeginCaptureToGraph)          \
  X(cuStreamEndCapture)                   \
  X(cuStreamGetCaptureInfo_v3)            \
  X(cuStreamUpdateCaptureDependencies_v2) \
  X(cuThreadExchangeStreamCaptureMode)    \
  X(cuLaunchKernel)                       \
  X(cuLaunchHostFunc)                     \
  X(cuEventCreate)                        \
  X(cuEventDestroy)                       \
  X(cuEventRecord)                        \
  X(cuEventQuery)                         \
  X(cuEventSynchronize)                   \
  X(cuGraphCreate)                        \
  X(cuGraphDestroy)                       \
  X(cuGraphAddKernelNode)                 \
  X(cuGraphAddMemcpyNode)                 \
  X(cuGraphAddHostNode)                   \
  X(cuGraphAddNode_v2)                    \
  X(cuGraphConditionalHandleCreate)       \
  X(cuGraphDestroyNode)                   \
  X(cuGraphNodeGetType)                   \
  X(cuGraphNodeGetDependencies_v2)        \
  X(cuGraphGetNodes)                      \
  X(cuGraphGetEdges_v2)                   \
  X(cuGraphRetainUserObject)              \
  X(cuGraphReleaseUserObject)             \
  X(cuUserObjectCreate)                   \
  X(cuUserObjectRelease)                  \
  X(cuGraphInstantiateWithFlags)          \
  X(cuGraphExecKernelNodeSetParams)       \
  X(cuGraphExecMemcpyNodeSetParams)       \
  X(cuGraphExecUpdate_v2)                 \
  X(cuGraphUpload)                        \
  X(cuDeviceGraphMemTrim)                 \
  X(cuGraphExecDestroy)                   \
  X(cuGraphLaunch)

namespace gk::hal::cuda {

struct Driver {
#define GK_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  GK_CUDA_CALLS(GK_CUDA_MEMBER)
#undef GK_CUDA_MEMBER
  int version = 0;  // 13000 is 13.0

  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
  std::string text(CUresult r) const;
};

inline constexpr int kMinimumDriver = 12040;

/// "13.0"
std::string version_text(int version);

/// The process's driver, opened and started at the first call. Errors: Device E0501 (no GPU), E0502.
Result<const Driver*> driver();

}  // namespace gk::hal::cuda
