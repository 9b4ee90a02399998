// What the host's transcendental functions are made of: formulas in the IR, for scalars and for vectors. Not
// for calling them: Emitter::math() does that, by functions of their own where a formula has rare cases.
#pragma once

#include <span>

#include "compiler/codegen/emitter.h"

namespace gk::codegen {

/// What a formula gives, and where libm has to be asked instead (a bool, or a vector of them; null: nowhere).
struct RareResult {
  llvm::Value* value;
  llvm::Value* rare;
};
/// f64, for processors with fused multiplication and addition. The arguments are doubles or vectors of them.
bool has_f64_formula(ir::Op op);
RareResult host_math_f64(Builder& b, ir::Op op, std::span<llvm::Value* const> args);

/// Any other function of f32 is that of f64, rounded.
bool has_f32_formula(ir::Op op);
/// Of floats or vectors of them. Where it has rare cases, it has branches.
llvm::Value* host_math_f32(Builder& b, ir::Op op, std::span<llvm::Value* const> args, bool fused);

/// Whether a formula of f32 (`single`) or f64 has rare cases at all.
bool has_rare_cases(ir::Op op, bool single, bool fused);

}  // namespace gk::codegen
