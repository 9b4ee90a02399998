// The files that the host's functions are kept in, for host_math.cpp alone: everybody else asks it. All are
// for processors with fused multiplication and addition; the arguments are doubles or floats, or vectors of
// them.
#pragma once

#include "compiler/codegen/host_math.h"

namespace gk::codegen {

/// log, log2, log10, log1p, acosh, asinh, atanh.
RareResult host_logarithm(Builder& b, ir::Op op, llvm::Value* x);
/// sin, cos, tan, asin, acos, atan, atan2.
RareResult host_angle(Builder& b, ir::Op op, std::span<llvm::Value* const> args);
/// exp, exp2, expm1, sinh, cosh, tanh, pow, cbrt.
RareResult host_power(Builder& b, ir::Op op, std::span<llvm::Value* const> args);

}  // namespace gk::codegen
