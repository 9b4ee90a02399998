// What reductions have in common on both targets: partial results, how two of them combine, and where a
// result comes out. Owns the meaning of each ReduceOp. Promises that combining with the identity changes
// nothing, so padding is free. Not for the order of combination: reduce_host.cpp and reduce_cuda.cpp state
// theirs.
#pragma once

#include "compiler/codegen/emitter.h"

namespace gk::codegen {

/// A scalar or a vector of partial results. Bools are bytes here. `at`: linear index of an argmin or argmax.
struct Partial {
  llvm::Value* v = nullptr;
  llvm::Value* at = nullptr;
};

bool is_arg(const ir::KReduction& r);
llvm::Type* partial_type(Emitter& e, const ir::KReduction& r);
Partial identity(Emitter& e, const ir::KReduction& r);
/// The partial result of one element, `at` its linear index (i64).
Partial lift(Emitter& e, const ir::KReduction& r, Typed value, llvm::Value* at);
Partial combine(Emitter& e, const ir::KReduction& r, Partial a, Partial b);
Typed reduced(Emitter& e, const ir::KReduction& r, Partial p);

/// Variables for a partial result per reduction of the kernel, on the stack (and, optimised, in registers).
class Partials {
 public:
  Partials(Emitter& emitter, unsigned lanes = 1);
  void reset();
  Partial get(size_t k);
  void set(size_t k, Partial p);
  void add(size_t k, Partial p) { set(k, combine(e, e.kernel.reductions[k], get(k), p)); }
  /// Adds the body's values at `p`, whose linear reduce index is `at`.
  void add_body(Point& p, llvm::Value* at);

 private:
  llvm::Type* type(size_t k);
  llvm::Type* at_type();
  Emitter& e;
  unsigned lanes_;
  std::vector<llvm::Value*> values_, places_;
};

/// Runs the epilogue at `index` with these results.
void run_epilogue(Emitter& e, const std::vector<llvm::Value*>& index, std::vector<Typed> results);

}  // namespace gk::codegen
