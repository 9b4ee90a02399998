#include "compiler/interp/interp.h"

namespace gk::interp {

Array Array::zeros(DType t, const Shape& s) {
  const auto n = static_cast<size_t>(num_elements(s).value_or(0));
  return {t, s, std::vector<std::byte>(n * static_cast<size_t>(size_bytes(t)))};
}

int64_t Array::size() const { return num_elements(shape).value_or(0); }

Scalar Array::get(int64_t i) const { return Scalar::load(dtype, bytes.data() + i * size_bytes(dtype)); }

void Array::set(int64_t i, const Scalar& v) { v.store(bytes.data() + i * size_bytes(dtype)); }

}  // namespace gk::interp
