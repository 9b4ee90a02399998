// Instantiated driver graphs. Owns the CUgraphExec and a share of the state of the graph it came from, whose
// node handles name what is updated. Launches in flight keep what they need whatever happens to it.
#pragma once

#include <memory>

#include "runtime/hal/cuda/graph.h"

namespace gk::hal::cuda {

std::unique_ptr<GraphExec> make_exec(std::shared_ptr<State> state, CUgraphExec exec, int64_t nodes);

}  // namespace gk::hal::cuda
