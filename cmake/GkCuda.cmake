# Finds what the CUDA backend needs at build time: the driver's and cuBLASLt's headers and libdevice; and ptxas,
# which the tests assemble generated code with. A toolkit is looked for first (nvcc, CUDA_HOME, /usr/local/cuda),
# then the folder .deps/cuda that ./dev setup fills. Defines gk_cuda, GK_LIBDEVICE, GK_PTXAS, GK_CUDA_SUMMARY.
# GK_IGNORE_TOOLKIT=1 in the environment hides the toolkit, to try the second way.
add_library(gk_cuda INTERFACE)
set(GK_CUDA_SUMMARY "off")
set(GK_CUDA_VERSION "none")
set(GK_LIBDEVICE "")
set(GK_PTXAS "")
if(GK_CUDA)
  set(cuda_roots)
  if(NOT "$ENV{GK_IGNORE_TOOLKIT}" STREQUAL "1")
    find_program(GK_NVCC nvcc)
    if(GK_NVCC)
      get_filename_component(nvcc_real ${GK_NVCC} REALPATH)
      get_filename_component(nvcc_bin ${nvcc_real} DIRECTORY)
      get_filename_component(nvcc_root ${nvcc_bin} DIRECTORY)
      list(APPEND cuda_roots ${nvcc_root})
    endif()
    if(DEFINED ENV{CUDA_HOME})
      list(APPEND cuda_roots $ENV{CUDA_HOME})
    endif()
    list(APPEND cuda_roots /usr/local/cuda /opt/cuda)
  endif()
  list(APPEND cuda_roots ${CMAKE_SOURCE_DIR}/.deps/cuda)
  # All four from one root: headers of one release beside the libdevice of another would be a puzzle.
  foreach(root IN LISTS cuda_roots)
    if(EXISTS ${root}/include/cuda.h AND EXISTS ${root}/include/cublasLt.h
       AND EXISTS ${root}/nvvm/libdevice/libdevice.10.bc AND EXISTS ${root}/bin/ptxas)
      set(GK_CUDA_ROOT ${root})
      break()
    endif()
  endforeach()
  if(NOT GK_CUDA_ROOT)
    message(FATAL_ERROR "no CUDA toolkit with cuda.h, cublasLt.h, libdevice.10.bc and ptxas was found "
                        "(looked in: ${cuda_roots}); run ./dev setup, or give -DGK_CUDA=OFF for a host-only build")
  endif()
  set(GK_LIBDEVICE ${GK_CUDA_ROOT}/nvvm/libdevice/libdevice.10.bc)
  set(GK_PTXAS ${GK_CUDA_ROOT}/bin/ptxas)
  file(STRINGS ${GK_CUDA_ROOT}/include/cuda.h cuda_version REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX REPLACE "[^0-9]" "" cuda_version "${cuda_version}")
  if(cuda_version LESS 12040)
    message(FATAL_ERROR "CUDA's headers in ${GK_CUDA_ROOT} are too old (${cuda_version}); 12.4 is the oldest that serves")
  endif()
  target_include_directories(gk_cuda SYSTEM INTERFACE ${GK_CUDA_ROOT}/include)
  target_compile_definitions(gk_cuda INTERFACE GK_HAS_CUDA=1)
  math(EXPR cuda_major "${cuda_version} / 1000")
  math(EXPR cuda_minor "(${cuda_version} % 1000) / 10")
  set(GK_CUDA_VERSION "${cuda_major}.${cuda_minor}")
  set(GK_CUDA_SUMMARY "${cuda_version} in ${GK_CUDA_ROOT}")
  message(STATUS "CUDA headers ${cuda_version}: ${GK_CUDA_ROOT}/include")
  message(STATUS "CUDA libdevice: ${GK_LIBDEVICE}")
  message(STATUS "CUDA ptxas: ${GK_PTXAS}")
else()
  message(STATUS "CUDA: switched off by GK_CUDA=OFF; this build runs on the host alone")
endif()

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/gk_config.h CONTENT [=[
// Written by CMake: what this build was configured with. Owns no code and promises nothing beyond these names.
// Tests read the paths; the library itself reads the version and whether CUDA was built in.
// Not for choices at run time: those are in runtime/base/options.h.
#pragma once

#define GK_VERSION "@PROJECT_VERSION@"
#define GK_LLVM_VERSION "@LLVM_PACKAGE_VERSION@"
#define GK_CUDA_VERSION "@GK_CUDA_VERSION@"  // of the headers; "none" in a host-only build
#define GK_PTXAS_PATH "@GK_PTXAS@"
#define GK_LLVM_TOOLS_DIR "@LLVM_TOOLS_BINARY_DIR@"
]=] @ONLY)
