#include "compiler/formats/shortest.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace gk::formats {
namespace {

/// "d.ddde±xx" to Digits.
Digits from_scientific(std::string_view s) {
  Digits d;
  auto e = s.find('e');
  int exponent = 0;
  const char* begin = s.data() + e + 1;
  if (*begin == '+') ++begin;
  std::from_chars(begin, s.data() + s.size(), exponent);
  for (char c : s.substr(0, e))
    if (c != '.') d.digits += c;
  while (d.digits.size() > 1 && d.digits.back() == '0') d.digits.pop_back();
  d.point = exponent + 1;
  return d;
}

std::string printed(std::chars_format format, int precision, double v) {
  std::string s(512 + static_cast<size_t>(precision), ' ');
  const auto r = std::to_chars(s.data(), s.data() + s.size(), v, format, precision);
  s.resize(static_cast<size_t>(r.ptr - s.data()));
  return s;
}

/// f16 has no standard conversion. The closest decimal of each length is tried, then its neighbours: at a
/// power of two the interval below is half as wide, so the closest may read back as another value where a
/// neighbour does not.
Digits shortest_f16(double v) {
  uint16_t bits = f64_to_f16(v);
  for (int precision = 0; precision < 5; ++precision) {
    std::string s = printed(std::chars_format::scientific, precision, v);
    if (f64_to_f16(std::strtod(s.c_str(), nullptr)) == bits) return from_scientific(s);
    Digits d = from_scientific(s);
    d.digits.resize(static_cast<size_t>(precision) + 1, '0');
    long number = std::strtol(d.digits.c_str(), nullptr, 10);
    int scale = d.point - precision - 1;
    s = fmt::format("{}e{}", number + 1, scale);
    if (f64_to_f16(std::strtod(s.c_str(), nullptr)) == bits) {
      Digits up = from_scientific(s);
      up.point = scale + static_cast<int>(std::to_string(number + 1).size());
      return up;
    }
  }
  return from_scientific(printed(std::chars_format::scientific, 5, v));
}

std::string sign_of(double v) { return std::signbit(v) ? "-" : ""; }

std::string trim_zeros(std::string s) {
  while (s.back() == '0') s.pop_back();
  return s;
}

}  // namespace

Digits shortest_digits(double v, DType t) {
  v = std::fabs(v);
  if (v == 0) return {"0", 1};
  if (t == DType::F16) return shortest_f16(v);
  char b[64];
  auto r = t == DType::F64
               ? std::to_chars(b, b + sizeof b, v, std::chars_format::scientific)
               : std::to_chars(b, b + sizeof b, static_cast<float>(v), std::chars_format::scientific);
  return from_scientific(std::string_view(b, static_cast<size_t>(r.ptr - b)));
}

std::string positional(double v, DType t, int precision, bool exact_integers) {
  Digits d = shortest_digits(v, t);
  int n = static_cast<int>(d.digits.size());
  if (precision >= 0 && n - d.point > precision) {
    std::string s = printed(std::chars_format::fixed, precision, std::fabs(v));
    if (s.find('.') == std::string::npos) s += '.';
    return sign_of(v) + trim_zeros(s);
  }
  if (exact_integers && d.point > n) return printed(std::chars_format::fixed, 0, v) + ".";
  std::string s = sign_of(v);
  if (v == 0) {
    s += "0.";
  } else if (d.point <= 0) {
    s += "0." + std::string(static_cast<size_t>(-d.point), '0') + d.digits;
  } else if (d.point >= n) {
    s += d.digits + std::string(static_cast<size_t>(d.point - n), '0') + ".";
  } else {
    s += d.digits.substr(0, static_cast<size_t>(d.point)) + "." +
         d.digits.substr(static_cast<size_t>(d.point));
  }
  return s;
}

std::string scientific(double v, DType t, int precision) {
  Digits d = shortest_digits(v, t);
  if (precision >= 0 && static_cast<int>(d.digits.size()) - 1 > precision)
    d = from_scientific(printed(std::chars_format::scientific, precision, std::fabs(v)));
  int e = d.exponent();
  return fmt::format("{}{}.{}e{}{:02}", sign_of(v), d.digits.substr(0, 1), d.digits.substr(1),
                     e < 0 ? '-' : '+', std::abs(e));
}

std::string exact_scientific(double v, int precision) {
  std::string s = printed(std::chars_format::scientific, precision, std::fabs(v));
  if (precision == 0) s.insert(s.find('e'), ".");
  return sign_of(v) + s;
}

}  // namespace gk::formats
