// Python's format mini-language. Source: the Python library reference, "Format Specification Mini-Language",
// and CPython's formatter_unicode.c for the order of checks and for zero padding with separators.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

#include "compiler/formats/format.h"

namespace gk::formats {
namespace {

constexpr int kMaxNumber = 100000;  // a width or precision over this is a slip, not a wish

struct Spec {
  std::string fill = " ";
  char align = 0;  // 0: by type
  char sign = 0;
  bool align_by_zero = false;  // '=' came with the 0 flag, not as itself
  bool alternate = false;
  int width = -1, precision = -1;
  char separator = 0;
  char type = 0;
};

Failure bad(std::string_view spec, const std::string& what) {
  return fail(ErrorKind::Type, "E0210", fmt::format("bad format `{}`: {}", spec, what));
}

/// Bytes of the UTF-8 code point that starts at s[0].
size_t code_point_size(std::string_view s) {
  size_t n = 1;
  while (n < s.size() && (static_cast<unsigned char>(s[n]) & 0xc0) == 0x80) ++n;
  return n;
}
int code_points(std::string_view s) {
  int n = 0;
  for (char c : s) n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return n;
}
bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Result<Spec> parse(std::string_view text) {
  Spec s;
  std::string_view t = text;
  auto take = [&](std::string_view any) -> char {
    if (t.empty() || any.find(t[0]) == std::string_view::npos) return 0;
    char c = t[0];
    t.remove_prefix(1);
    return c;
  };
  bool fill_given = false;
  if (size_t n = t.empty() ? 0 : code_point_size(t); n > 0 && n < t.size() && is_align(t[n])) {
    s.fill = std::string(t.substr(0, n));
    s.align = t[n];
    t.remove_prefix(n + 1);
    fill_given = true;
  } else {
    s.align = take("<>=^");
  }
  s.sign = take("+- ");
  s.alternate = take("#") != 0;
  if (!fill_given && take("0")) {
    s.fill = "0";
    if (s.align == 0) {
      s.align = '=';
      s.align_by_zero = true;
    }
  }
  auto number = [&](int& out, const char* what) -> Result<void> {
    if (t.empty() || t[0] < '0' || t[0] > '9') return {};
    int v = 0;
    while (!t.empty() && t[0] >= '0' && t[0] <= '9') {
      v = v * 10 + (t[0] - '0');
      if (v > kMaxNumber) return bad(text, fmt::format("the {} is over {}", what, kMaxNumber));
      t.remove_prefix(1);
    }
    out = v;
    return {};
  };
  GK_CHECK(number(s.width, "width"));
  s.separator = take(",_");
  if (s.separator && take(",_")) return bad(text, "only one of `,` and `_` may be given");
  if (take(".")) {
    GK_CHECK(number(s.precision, "precision"));
    if (s.precision < 0) return bad(text, "digits must follow the `.`");
  }
  if (!t.empty()) {
    if (code_point_size(t) != t.size()) return bad(text, fmt::format("`{}` is not understood", t));
    s.type = t.size() == 1 ? t[0] : '?';
  }
  return s;
}

std::string aligned(const Spec& s, const std::string& body, char default_align) {
  int pad = s.width - code_points(body);
  if (pad <= 0) return body;
  char align = s.align ? s.align : default_align;
  int left = align == '<' ? 0 : align == '^' ? pad / 2 : pad;
  std::string out;
  for (int i = 0; i < left; ++i) out += s.fill;
  out += body;
  for (int i = left; i < pad; ++i) out += s.fill;
  return out;
}

/// The parts of a number in printing order.
struct NumberText {
  std::string sign, prefix, digits, rest;  // rest: point, fraction, exponent, "%", or "inf"
};

/// Digits with separators, led by zeros up to `min_width` characters.
std::string grouped(const std::string& digits, char separator, int group, int min_width) {
  std::string reversed;
  int remaining = static_cast<int>(digits.size());
  bool first = true;
  do {
    int n = std::min(group, std::max(std::max(remaining, min_width), 1));
    if (!first) reversed += separator;
    first = false;
    for (int i = 0; i < n; ++i) {
      reversed += remaining > 0 ? digits[static_cast<size_t>(remaining - 1)] : '0';
      if (remaining > 0) --remaining;
    }
    min_width -= n;
    if (remaining <= 0 && min_width <= 0) break;
    min_width -= 1;
  } while (true);
  return std::string(reversed.rbegin(), reversed.rend());
}

std::string number_text(const Spec& s, NumberText n, bool negative, int group) {
  n.sign = negative ? "-" : s.sign == '+' ? "+" : s.sign == ' ' ? " " : "";
  bool pad_inside = (s.align == '=') && s.width > 0;
  int others = static_cast<int>(n.sign.size() + n.prefix.size() + n.rest.size());
  bool zeros = pad_inside && s.fill == "0";
  if (s.separator && !n.digits.empty()) {
    n.digits = grouped(n.digits, s.separator, group, zeros ? s.width - others : 0);
  }
  if (pad_inside) {
    int pad = s.width - others - static_cast<int>(n.digits.size());
    std::string fill;
    for (int i = 0; i < pad; ++i) fill += s.fill;
    return n.sign + n.prefix + fill + n.digits + n.rest;
  }
  return aligned(s, n.sign + n.prefix + n.digits + n.rest, '>');
}

std::string to_base(uint64_t v, unsigned base, bool upper) {
  char b[64];
  const auto r = std::to_chars(b, b + sizeof b, v, static_cast<int>(base));
  if (upper) std::transform(b, r.ptr, b, [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return std::string(b, r.ptr);
}

Result<std::string> format_integer(const Scalar& v, const Spec& s, std::string_view text) {
  if (s.precision >= 0) return bad(text, "an integer takes no precision");
  char type = s.type ? s.type : 'd';
  if (s.separator == ',' && type != 'd') return bad(text, fmt::format("`,` does not go with `{}`", type));
  bool negative = v.dtype != DType::U64 && v.i < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(v.i) : static_cast<uint64_t>(v.i);
  NumberText n;
  unsigned base = type == 'd' ? 10 : type == 'b' ? 2 : type == 'o' ? 8 : 16;
  n.digits = to_base(magnitude, base, type == 'X');
  if (s.alternate && type != 'd') n.prefix = std::string("0") + type;
  return number_text(s, std::move(n), negative, type == 'd' ? 3 : 4);
}

std::string printed(const std::string& format, int precision, double v) {
  int n = std::snprintf(nullptr, 0, format.c_str(), precision, v);
  std::vector<char> b(static_cast<size_t>(n) + 1);
  std::snprintf(b.data(), b.size(), format.c_str(), precision, v);
  return std::string(b.data(), static_cast<size_t>(n));
}

/// No type, a precision: as `g`, but a fixed text keeps one digit after the point, and the switch to
/// scientific comes one digit earlier.
std::string general(double v, int precision, bool alternate) {
  if (precision == 0) precision = 1;
  std::string e = printed("%.*e", precision - 1, v);
  int exponent = std::atoi(e.c_str() + e.find('e') + 1);
  if (exponent < -4 || exponent >= precision - 1) {
    if (alternate) return printed("%#.*e", precision - 1, v);
    size_t at = e.find('e');
    std::string mantissa = e.substr(0, at);
    if (mantissa.find('.') != std::string::npos) {
      while (mantissa.back() == '0') mantissa.pop_back();
      if (mantissa.back() == '.') mantissa.pop_back();
    }
    return mantissa + e.substr(at);
  }
  std::string f = printed(alternate ? "%#.*g" : "%.*g", precision, v);
  return f.find('.') == std::string::npos ? f + ".0" : f.back() == '.' ? f + "0" : f;
}

std::string format_float(const Scalar& v, const Spec& s) {
  double x = v.as_double();
  bool negative = std::signbit(x) && !std::isnan(x);
  double magnitude = std::fabs(x);
  int precision = s.precision >= 0 ? s.precision : 6;
  std::string t;
  bool upper = s.type == 'E' || s.type == 'F' || s.type == 'G';
  if (s.type == '%') magnitude *= 100;
  if (!std::isfinite(magnitude)) {
    t = std::isnan(magnitude) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
  } else if (s.type == 0) {
    if (s.precision >= 0) {
      t = general(magnitude, s.precision, s.alternate);
    } else {
      Scalar m = v;
      m.f = magnitude;
      t = format_scalar(m);
      if (s.alternate && t.find('.') == std::string::npos) t.insert(t.find('e'), ".");
    }
  } else {
    std::string c(1, s.type == '%' ? 'f' : s.type);
    t = printed((s.alternate ? "%#.*" : "%.*") + c, precision, magnitude);
  }
  if (s.type == '%') t += '%';
  size_t digits = t.find_first_not_of("0123456789");
  NumberText n;
  n.digits = t.substr(0, digits);
  if (digits != std::string::npos) n.rest = t.substr(digits);
  return number_text(s, std::move(n), negative, 3);
}

}  // namespace

Result<std::string> format_spec(const Scalar& v, std::string_view text) {
  if (text.empty()) return format_scalar(v);
  GK_TRY(Spec s, parse(text));
  static constexpr std::string_view kIntegerTypes = "dboxX", kFloatTypes = "eEfFgG%";
  bool known = s.type == 0 || kIntegerTypes.find(s.type) != std::string_view::npos ||
               kFloatTypes.find(s.type) != std::string_view::npos;
  if (!known) {
    if (s.type == 's') return bad(text, "`s` is for texts, not for numbers");
    return bad(text, "the type is none of d b o x X e E f F g G %");
  }
  if (kFloatTypes.find(s.type) != std::string_view::npos && s.type != 0) return format_float(v, s);
  if (!v.is_float()) return format_integer(v, s, text);
  if (s.type != 0)
    return fail(
        std::move(*bad(text, fmt::format("`{}` is for integers, and the value is {}", s.type, name(v.dtype)))
                       .value())
            .help(fmt::format("write `i64(…)` around the value, or use `.0f` instead of `{}`", s.type)));
  return format_float(v, s);
}

Result<std::string> format_spec(std::string_view value, std::string_view text) {
  GK_TRY(Spec s, parse(text));
  if (s.type != 0 && s.type != 's')
    return bad(text, fmt::format("`{}` is for numbers, not for texts", s.type));
  if (s.sign) return bad(text, "a text takes no sign");
  if (s.alternate) return bad(text, "a text takes no `#`");
  if (s.separator) return bad(text, fmt::format("a text takes no `{}`", s.separator));
  if (s.align == '=') {
    // CPython 3.10 and later: the 0 flag on a text pads at the right; an explicit `=` is an error.
    if (!s.align_by_zero) return bad(text, "a text takes no `=`");
    s.align = '<';
  }
  std::string body(value);
  if (s.precision >= 0) {
    size_t at = 0;
    for (int i = 0; i < s.precision && at < body.size(); ++i) at += code_point_size(value.substr(at));
    body.resize(at);
  }
  return aligned(s, body, '<');
}

}  // namespace gk::formats
