// All that generated host code may call, by name: libm, memory functions, and what LLVM's own lowering leaves
// to a run-time library. Promises that every symbol which the optimiser may invent (see machine.cpp, which
// allows it no others) and every one that x86-64 code generation may emit for what the emitter makes is here.
#pragma once

#include <string_view>

namespace gk::codegen {

/// The address of that function; null: generated code may not call it.
void* host_symbol(std::string_view name);

}  // namespace gk::codegen
