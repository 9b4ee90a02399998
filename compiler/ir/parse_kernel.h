// Kernel text back to a kernel, for the `@0 = kernel …` sections of module text. Owns the grammar that
// print_kernel writes. Promises a Kernel or an Error for any text; the kernel is not yet verified.
#pragma once

#include "compiler/ir/kernel.h"
#include "compiler/ir/text_reader.h"

namespace gk::ir::text {

/// Reads from `kernel` to its closing brace.
Result<Kernel> read_kernel(Reader& in);

}  // namespace gk::ir::text
