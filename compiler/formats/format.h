// How values print: arrays as NumPy prints them, scalars, and the format specs of f-strings. Promises text
// that reads back as the same value. Not for diagnostics, which the syntax folder renders.
#pragma once

#include <string>
#include <string_view>

#include "compiler/interp/interp.h"

namespace gk::formats {

struct PrintOptions {
  int precision = 8;     // NumPy's
  int threshold = 1000;  // more elements: only the edges
  int edge_items = 3;
  int line_width = 75;
};

/// numpy's str() of an array: "[1. 2. 3.]", "[[1 2]\n [3 4]]". Rank 0 prints like a scalar.
std::string format_array(const interp::Array& a, const PrintOptions& options = {});
/// numpy's str() of a scalar: shortest text that reads back, "True", "nan", "1e-05".
std::string format_scalar(const Scalar& s);
/// Python's format mini-language for numbers: [[fill]align][sign][#][0][width][,][.precision][type] with
/// types d b o x X e E f F g G % and none. Errors: Type E0210 with what is wrong.
Result<std::string> format_spec(const Scalar& s, std::string_view spec);
/// The same for texts: fill, align, width, .precision.
Result<std::string> format_spec(std::string_view value, std::string_view spec);

}  // namespace gk::formats
