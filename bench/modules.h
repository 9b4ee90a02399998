// The benchmarked works as array IR, built by hand so that their kernels are known and no front end is
// measured. Owns nothing. Promises modules that pass the verifier. Not for text: bench/*.gk are the same
// works in the language.
#pragma once

#include "compiler/ir/module.h"

namespace gk::bench {

/// `x_i = x_i + 1` for `arrays` arrays of 16 floats, one kernel each.
ir::Module increments(int arrays);
/// `x = x + 1` over one array of 16 floats.
ir::Module increment();
/// u' = u (1 - u) by RK4, 10 steps over 4096 elements, from one array to another.
ir::Module rk4_logistic(bool fuse);
/// The Lorenz system by RK4, 10 steps over 4096 trajectories, from three arrays to three others.
ir::Module rk4_lorenz(bool fuse);
/// 50 times `y = y * 0.99 + 0.01` over 16 MiB, from one array to another.
ir::Module chain(bool fuse);

}  // namespace gk::bench
