// Instantiated driver graphs. Owns the CUgraphExec and a share of the state of the graph it came from, whose
// node handles name what is updated. Launches in flight keep what they need whatever happens to it.
#pragma once

#include <memory>

#include "runtime/hal/cuda/graph.h"

namespace gk::hal::cuda {

/// `left` is what captured work allocates and does not free: the executable frees it when it goes.
std::unique_ptr<GraphExec> make_exec(std::shared_ptr<State> state, CUgraphExec exec, int64_t nodes,
                                     std::vector<CUdeviceptr> left);

/// The memory that allocation nodes of the graph itself get and no node of it frees.
Result<std::vector<CUdeviceptr>> left_allocated(const State& s);

}  // namespace gk::hal::cuda
