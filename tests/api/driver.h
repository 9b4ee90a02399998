// The few calls of the CUDA driver that a host program of gk makes for itself, opened at run time so that the
// tests build without CUDA's headers. Owns the library for the life of the process. Not gk's own table.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gk/config.h"

namespace gk_test {

struct Driver {
  using Pointer = unsigned long long;
  int (*init)(unsigned);
  int (*device_get)(int*, int);
  int (*retain)(CUctx_st**, int);
  int (*release)(int);
  int (*set_current)(CUctx_st*);
  int (*stream_create)(CUstream_st**, unsigned);
  int (*stream_destroy)(CUstream_st*);
  int (*stream_synchronize)(CUstream_st*);
  int (*stream_is_capturing)(CUstream_st*, int*);
  int (*begin_capture)(CUstream_st*, int mode);
  int (*end_capture)(CUstream_st*, CUgraph_st**);
  int (*event_create)(CUevent_st**, unsigned);
  int (*event_record)(CUevent_st*, CUstream_st*);
  int (*event_destroy)(CUevent_st*);
  int (*mem_alloc)(Pointer*, size_t);
  int (*mem_free)(Pointer);
  int (*memset_d32_async)(Pointer, unsigned, size_t, CUstream_st*);
  int (*copy_to_host)(void*, Pointer, size_t);
  int (*copy_to_host_async)(void*, Pointer, size_t, CUstream_st*);
  int (*graph_create)(CUgraph_st**, unsigned);
  int (*graph_destroy)(CUgraph_st*);
  int (*graph_instantiate)(void** exec, CUgraph_st*, unsigned long long);
  int (*graph_launch)(void* exec, CUstream_st*);
  int (*graph_exec_destroy)(void* exec);
  int (*module_load)(void** module, const void* image);
  int (*module_unload)(void* module);
  int (*module_function)(void** function, void* module, const char* name);
  int (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                CUstream_st*, void** params, void** extra);

  /// Null without a driver.
  static const Driver* get() {
    static const Driver* d = open();
    return d;
  }

 private:
  static const Driver* open() {
    void* lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) return nullptr;
    static Driver d;
    bool all = true;
    auto find = [&](auto& f, const char* name) {
      f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(lib, name));
      all = all && f;
    };
    find(d.init, "cuInit");
    find(d.device_get, "cuDeviceGet");
    find(d.retain, "cuDevicePrimaryCtxRetain");
    find(d.release, "cuDevicePrimaryCtxRelease_v2");
    find(d.set_current, "cuCtxSetCurrent");
    find(d.stream_create, "cuStreamCreate");
    find(d.stream_destroy, "cuStreamDestroy_v2");
    find(d.stream_synchronize, "cuStreamSynchronize");
    find(d.stream_is_capturing, "cuStreamIsCapturing");
    find(d.begin_capture, "cuStreamBeginCapture_v2");
    find(d.end_capture, "cuStreamEndCapture");
    find(d.event_create, "cuEventCreate");
    find(d.event_record, "cuEventRecord");
    find(d.event_destroy, "cuEventDestroy_v2");
    find(d.mem_alloc, "cuMemAlloc_v2");
    find(d.mem_free, "cuMemFree_v2");
    find(d.memset_d32_async, "cuMemsetD32Async");
    find(d.copy_to_host, "cuMemcpyDtoH_v2");
    find(d.copy_to_host_async, "cuMemcpyDtoHAsync_v2");
    find(d.graph_create, "cuGraphCreate");
    find(d.graph_destroy, "cuGraphDestroy");
    find(d.graph_instantiate, "cuGraphInstantiateWithFlags");
    find(d.graph_launch, "cuGraphLaunch");
    find(d.graph_exec_destroy, "cuGraphExecDestroy");
    find(d.module_load, "cuModuleLoadData");
    find(d.module_unload, "cuModuleUnload");
    find(d.module_function, "cuModuleGetFunction");
    find(d.launch, "cuLaunchKernel");
    return all && d.init(0) == 0 ? &d : nullptr;
  }
};

}  // namespace gk_test
