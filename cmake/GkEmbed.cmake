# Data inside the binary. gk_libdevice: NVIDIA's libdevice bitcode, by .incbin, behind gk_libdevice.h.
# gk_stdlib: the text of stdlib/*.gk by name, behind gk_stdlib.h.

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

file(GLOB stdlib_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/stdlib/*.gk)
file(CONFIGURE OUTPUT ${embed_dir}/gk_stdlib.h CONTENT [=[
// The standard library's gk sources, embedded at build.
// Promises one entry a file of stdlib/, sorted by name ("nn" for stdlib/nn.gk), alive as long as the program.
// Not for parsing: that is compiler/syntax.
#pragma once

#include <span>
#include <string_view>

namespace gk {
struct StdlibFile {
  std::string_view name;
  std::string_view text;
};
std::span<const StdlibFile> stdlib_files();
}  // namespace gk
]=])
set(stdlib_symbols)
set(stdlib_rows)
set(stdlib_asm "    .section .rodata.gk_stdlib, \"a\", @progbits\n")
list(SORT stdlib_files)
foreach(file IN LISTS stdlib_files)
  get_filename_component(name ${file} NAME_WE)
  string(MAKE_C_IDENTIFIER "gk_stdlib_${name}" symbol)
  string(APPEND stdlib_asm "    .global ${symbol}\n    .hidden ${symbol}\n${symbol}:\n    .incbin \"${file}\"\n"
                           "    .global ${symbol}_end\n    .hidden ${symbol}_end\n${symbol}_end:\n    .byte 0\n")
  string(APPEND stdlib_symbols "extern const char ${symbol}[];\nextern const char ${symbol}_end[];\n")
  string(APPEND stdlib_rows "      {\"${name}\", {${symbol}, static_cast<std::size_t>(${symbol}_end - ${symbol})}},\n")
endforeach()
string(APPEND stdlib_asm "    .section .note.GNU-stack, \"\", %progbits\n")
file(CONFIGURE OUTPUT ${embed_dir}/gk_stdlib_data.S CONTENT "${stdlib_asm}" @ONLY)
file(CONFIGURE OUTPUT ${embed_dir}/gk_stdlib.cpp CONTENT [=[
#include "gk_stdlib.h"

#include <cstddef>
#include <vector>

extern "C" {
@stdlib_symbols@}

namespace gk {
std::span<const StdlibFile> stdlib_files() {
  static const std::vector<StdlibFile> files = {
@stdlib_rows@  };
  return files;
}
}  // namespace gk
]=] @ONLY)
add_library(gk_stdlib STATIC ${embed_dir}/gk_stdlib.cpp ${embed_dir}/gk_stdlib_data.S)
set_property(SOURCE ${embed_dir}/gk_stdlib_data.S PROPERTY OBJECT_DEPENDS "${stdlib_files}")
