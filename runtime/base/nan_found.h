// How a NaN that --nan-check found is told. One text for the interpreter and the devices.
#pragma once

#include <string>

#include "runtime/base/error.h"
#include "runtime/base/shape.h"

namespace gk {

/// Runtime E0805: "`w` has a NaN at [5, 2]". `index` counts elements in row-major order; `name` may be empty.
Error nan_found(const std::string& name, const Shape& shape, int64_t index);

}  // namespace gk
