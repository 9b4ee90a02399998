# Finds LLVM (22, down to 19) and defines gk_llvm: headers as system headers, and either the shared library
# (quick links, for development) or the components that code generation needs (self-contained binaries).
# LLVM's own version file accepts an exact major.minor alone, so the folders are tried newest first.
foreach(version 22 21 20 19)
  find_package(LLVM QUIET CONFIG PATHS /usr/lib/llvm-${version} NO_DEFAULT_PATH)
  if(LLVM_FOUND)
    break()
  endif()
endforeach()
if(NOT LLVM_FOUND)
  find_package(LLVM QUIET CONFIG)
endif()
if(NOT LLVM_FOUND OR LLVM_VERSION_MAJOR LESS 19)
  message(FATAL_ERROR "LLVM 19 or newer was not found; ./dev setup installs it (llvm-22-dev), "
                      "or give -DLLVM_DIR=<folder of LLVMConfig.cmake>")
endif()

add_library(gk_llvm INTERFACE)
target_include_directories(gk_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
list(REMOVE_ITEM llvm_definitions -D_GNU_SOURCE)  # g++ defines it anyway
target_compile_options(gk_llvm INTERFACE ${llvm_definitions})
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(gk_llvm INTERFACE -fno-rtti)
endif()
if(GK_STATIC_LLVM)
  llvm_map_components_to_libnames(llvm_libs core support irreader asmparser bitreader bitwriter linker passes
                                  target targetparser mc object orcjit jitlink executionengine X86 NVPTX)
  target_link_libraries(gk_llvm INTERFACE ${llvm_libs})
else()
  target_link_libraries(gk_llvm INTERFACE LLVM)
endif()
