// What the host's transcendental functions are made of: formulas in the IR, for scalars and for vectors. Not
// for calling them: Emitter::math() does that, by functions of their own where a formula has rare cases.
#pragma once

#include <span>

#include "compiler/codegen/emitter.h"

namespace gk::codegen {

/// What a formula gives, and where libm has to be asked instead (a bool, or a vector of them).
struct RareResult {
  llvm::Value* value;
  llvm::Value* rare;
};
bool has_f64_formula(ir::Op op);
/// Any other function of f32 is that of f64, rounded.
bool has_f32_formula(ir::Op op);
/// For processors with fused multiplication and addition. The arguments are doubles or vectors of them.
RareResult host_math_f64(Builder& b, ir::Op op, std::span<llvm::Value* const> args);

/// Sine, cosine and tangent have rare cases in f32 too: large angles.
bool is_trigonometric(ir::Op op);
/// One of the above with a branch for large angles; the argument is a float or a vector of floats.
llvm::Value* host_trigonometry_f32(Builder& b, ir::Op op, llvm::Value* x, bool fused);
/// Any other, of floats.
llvm::Value* host_math_f32(Builder& b, ir::Op op, std::span<llvm::Value* const> args, bool fused);

}  // namespace gk::codegen
