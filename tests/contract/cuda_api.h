// The functions of libcuda and cuBLAS that cuda_host.cpp calls, declared as the libraries declare them and
// found by name at run time. Owns the handles of the two libraries, for the life of the process.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "tests/contract/cuda_host.h"

namespace gk::contract_test::cuda {

struct MemsetParams {  // CUDA_MEMSET_NODE_PARAMS
  Pointer dst;
  size_t pitch;
  unsigned value, element_size;
  size_t width, height;
};
struct KernelParams {  // CUDA_KERNEL_NODE_PARAMS_v2
  CUfunc_st* function;
  unsigned grid[3], block[3], shared_bytes;
  void** params;
  void** extra;
  void* kernel;
  CUctx_st* context;
};

/// A library by the first of these names that is there.
class Library {
 public:
  Library(std::initializer_list<const char*> names);
  /// Errors: std::runtime_error where there is no such function.
  void* find(const char* name) const;

 private:
  std::string name_;
  void* handle_ = nullptr;
};
const Library& driver();
const Library& blas();

/// Calls a function of a library; gives what it gives.
template <class... A>
int ask(const Library& l, const char* name, A... args) {
  return reinterpret_cast<int (*)(A...)>(l.find(name))(args...);
}
/// The same; a failure is thrown.
template <class... A>
void need(const Library& l, const char* name, A... args) {
  if (const int r = ask(l, name, args...); r != 0)
    throw std::runtime_error(std::string(name) + " failed with status " + std::to_string(r));
}

}  // namespace gk::contract_test::cuda
