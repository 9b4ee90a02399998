#include <array>
#include <cstddef>

#include "compiler/interp/interp.h"
#include "compiler/ir/apply.h"
#include "compiler/ir/rng.h"

namespace gk::interp {
namespace {

// The builder of ir/rng.h that computes at once.
struct Evaluator {
  using V = Scalar;
  V constant(const Scalar& s) { return s; }
  V op(ir::Op o, const V& a) { return ir::apply(o, std::array{a}, a.dtype); }
  V op(ir::Op o, const V& a, const V& b) { return ir::apply(o, std::array{a, b}, a.dtype); }
  V cast(const V& v, DType t) { return v.cast(t); }
  V where(const V& c, const V& yes, const V& no) { return c.i ? yes : no; }
  V bits(const V& v, DType t) {
    std::array<std::byte, 8> raw{};
    v.store(raw.data());
    return Scalar::load(t, raw.data());
  }
};

Scalar u64(uint64_t v) { return Scalar::of_int(static_cast<int64_t>(v), DType::U64); }

}  // namespace

double rng_uniform(uint64_t seed, uint64_t position, DType t) {
  Evaluator e;
  return ir::rng_uniform(e, u64(seed), u64(position), t).f;
}

double rng_normal(uint64_t seed, uint64_t position, DType t) {
  Evaluator e;
  return ir::rng_normal(e, u64(seed), u64(position), t).f;
}

}  // namespace gk::interp
