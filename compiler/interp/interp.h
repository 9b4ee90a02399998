// The reference interpreter of the array IR: slow, obvious, the definition of every op. Runs a module over
// plain host arrays, node by node; user kernels point by point in row-major order. Not for speed.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/ir/module.h"

namespace gk::interp {

/// A dense row-major array in host memory. Elements as their storage bytes (f16/bf16 as 16 bits, bool one
/// byte).
struct Array {
  DType dtype = DType::F32;
  Shape shape;
  std::vector<std::byte> bytes;

  static Array zeros(DType t, const Shape& s);
  int64_t size() const;
  Scalar get(int64_t i) const;
  void set(int64_t i, const Scalar& v);  // v.dtype must equal dtype
};

/// Result arrays by slot: on entry slots[i] holds the input of slot i (ignored for fresh ones); on return the
/// outputs. `params` are the values of the scalar slots. `interrupted` is asked before each turn of a While.
/// Errors: Runtime E0801, E0802 as the devices raise them (the run is completed first, with 0 for bad loads);
/// Interrupted E0806.
Result<void> run(const ir::Module& m, std::span<const Scalar> params, std::vector<Array>& slots,
                 const std::function<bool()>& interrupted = nullptr);

/// Philox 4x32-10: draw number `position` of `seed`, uniform in [0, 1) or standard normal.
double rng_uniform(uint64_t seed, uint64_t position, DType t);
double rng_normal(uint64_t seed, uint64_t position, DType t);

}  // namespace gk::interp
