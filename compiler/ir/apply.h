// What an elementwise op gives for numbers: OpDefinitions with Scalars, for the interpreter and whoever
// folds. Not for arrays, and not for numbers without a dtype (sema/host_number.h).
#pragma once

#include <span>

#include "compiler/ir/ops.h"
#include "runtime/base/dtype.h"

namespace gk::ir {

/// `op` of operands that have the dtypes its row asks for, rounded once to `result`. A division of integers
/// by zero gives 0.
Scalar apply(Op op, std::span<const Scalar> args, DType result);
/// Whether it is one.
bool divides_by_zero(Op op, std::span<const Scalar> args);

}  // namespace gk::ir
