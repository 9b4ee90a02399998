#include "runtime/base/nan_found.h"

#include <fmt/format.h>

namespace gk {

Error nan_found(const std::string& name, const Shape& shape, int64_t index) {
  const std::string what = name.empty() ? "a result" : "`" + name + "`";
  if (shape.rank() == 0) return make_error(ErrorKind::Runtime, "E0805", what + " is NaN");
  std::string at;
  for (int axis = shape.rank(); axis-- > 0;) {
    const int64_t extent = shape[axis] > 0 ? shape[axis] : 1;
    at = fmt::format("{}{}{}", index % extent, at.empty() ? "" : ", ", at);
    index /= extent;
  }
  return make_error(ErrorKind::Runtime, "E0805", fmt::format("{} has a NaN at [{}]", what, at));
}

}  // namespace gk
