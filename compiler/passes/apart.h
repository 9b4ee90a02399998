// Why kernels are apart, for those who read a plan: for each array that a kernel leaves in memory for another
// one, the first reason that holds. Reads a module after fuse(), from its groups and shapes alone. Promises
// nothing to code: what fuse does is not decided here.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"

namespace gk::passes {

/// A sentence a pair of kernels, "sum | divide: …", in the order of the module; each sentence once.
std::vector<std::string> apart(const ir::Module& fused);

}  // namespace gk::passes
