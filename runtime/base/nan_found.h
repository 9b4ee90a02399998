// How a NaN that a search of written arrays (--nan-check) has found is told. Owns the text, so that the
// interpreter and the devices say the same of the same element. Not for searching.
#pragma once

#include <string>

#include "runtime/base/error.h"
#include "runtime/base/shape.h"

namespace gk {

/// Runtime E0805: "`w` has a NaN at [5, 2]". `index` counts elements in row-major order; `name` may be empty.
Error nan_found(const std::string& name, const Shape& shape, int64_t index);

}  // namespace gk
