# Data inside the binary. gk_libdevice: NVIDIA's libdevice bitcode, by .incbin, behind gk_libdevice.h.

set(embed_dir ${CMAKE_BINARY_DIR}/generated)
if(GK_LIBDEVICE)
  set(libdevice_line ".incbin \"${GK_LIBDEVICE}\"")
else()
  set(libdevice_line "")
endif()
file(CONFIGURE OUTPUT ${embed_dir}/gk_libdevice.S CONTENT [=[
    .section .rodata.gk_libdevice, "a", @progbits
    .global gk_libdevice_begin
    .hidden gk_libdevice_begin
    .global gk_libdevice_end
    .hidden gk_libdevice_end
    .balign 16
gk_libdevice_begin:
    ${libdevice_line}
gk_libdevice_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
]=])
file(CONFIGURE OUTPUT ${embed_dir}/gk_libdevice.h CONTENT [=[
// NVIDIA's libdevice (LLVM bitcode of the CUDA math library), embedded at build.
// Promises bytes that live as long as the program; empty in a build without CUDA.
// Not for the host, whose math comes from its own library.
#pragma once

#include <cstddef>
#include <string_view>

extern "C" {
extern const char gk_libdevice_begin[];
extern const char gk_libdevice_end[];
}

namespace gk {
inline std::string_view libdevice_bitcode() {
  return {gk_libdevice_begin, static_cast<std::size_t>(gk_libdevice_end - gk_libdevice_begin)};
}
}  // namespace gk
]=])
add_library(gk_libdevice STATIC ${embed_dir}/gk_libdevice.S)
set_property(SOURCE ${embed_dir}/gk_libdevice.S PROPERTY OBJECT_DEPENDS "${GK_LIBDEVICE}")
