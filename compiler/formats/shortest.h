// Decimal digits of floats, as NumPy's printing rests on them: the fewest digits that read back as the same
// value of the same dtype, cut off by correct rounding. Not for layout: that is format.cpp.
#pragma once

#include <string>

#include "runtime/base/dtype.h"

namespace gk::formats {

/// value = 0.d1 d2 d3 … x 10^point, without trailing zeros; zero is "0" with point 1.
struct Digits {
  std::string digits;
  int point = 0;
  /// The exponent of scientific notation.
  int exponent() const { return point - 1; }
};

/// Of the finite |v|, a value of dtype t (bf16 prints as the f32 it equals).
Digits shortest_digits(double v, DType t);

/// Dragon4 of NumPy in unique mode: at most `precision` digits after the point (negative: no limit).
/// "12.5", "3." (the point is always there); the sign included. `exact_integers`: digits before the point are
/// those of the value, not zeros after its shortest text (f16 65504 is "65504.", else "65500.").
std::string positional(double v, DType t, int precision, bool exact_integers = false);
/// "1.25e-05", "1.e+10" with at least two digits of exponent.
std::string scientific(double v, DType t, int precision);
/// The same with exactly `precision` digits after the point, correctly rounded.
std::string exact_scientific(double v, int precision);

}  // namespace gk::formats
