// Common subexpressions: of several equal nodes the first one stays. Constants, inputs and scalars too. Loops
// and kernel calls are left alone (their bodies are not compared). Promises idempotence.
#pragma once

#include "compiler/ir/module.h"

namespace gk::passes {

Result<void> cse(ir::Module& m);

}  // namespace gk::passes
