#include "runtime/base/shape.h"

#include <algorithm>

namespace gk {

bool Shape::operator==(const Shape& o) const { return std::equal(begin(), end(), o.begin(), o.end()); }

std::optional<int64_t> num_elements(const Shape& s) {
  // An empty axis makes the whole empty, however large the others are.
  if (std::find(s.begin(), s.end(), 0) != s.end()) return 0;
  int64_t n = 1;
  for (int64_t d : s)
    if (__builtin_mul_overflow(n, d, &n)) return std::nullopt;
  return n;
}

Shape row_major_strides(const Shape& s) {
  Shape strides = s;
  int64_t step = 1;
  for (int i = s.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    // Only shapes whose product overflows can wrap here, and only an empty array may have such a shape.
    step = static_cast<int64_t>(static_cast<uint64_t>(step) * static_cast<uint64_t>(s[i]));
  }
  return strides;
}

std::string to_string(const Shape& s) {
  std::string out = "[";
  for (int i = 0; i < s.rank(); ++i) out += (i ? ", " : "") + std::to_string(s[i]);
  return out + "]";
}

}  // namespace gk
