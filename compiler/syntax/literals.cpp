#include <charconv>
#include <cstdlib>

#include "compiler/syntax/build.h"
#include "compiler/syntax/utf8.h"
#include "fmt/format.h"
#include "runtime/base/dtype.h"

namespace gk::syntax {
namespace {

std::string without_underscores(std::string_view s) {
  std::string out;
  for (char c : s)
    if (c != '_') out.push_back(c);
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Length of the digits (and point and exponent) before a suffix.
size_t body_length(std::string_view s, int base) {
  size_t i = base == 10 ? 0 : 2;
  auto in_base = [&](char c) {
    return base == 16 ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : is_digit(c);
  };
  auto digits = [&] {
    while (i < s.size() && (in_base(s[i]) || s[i] == '_')) ++i;
  };
  digits();
  if (base != 10) return i;
  if (i < s.size() && s[i] == '.') {
    ++i;
    digits();
  }
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    size_t j = i + 1;
    if (j < s.size() && (s[j] == '+' || s[j] == '-')) ++j;
    if (j < s.size() && is_digit(s[j])) {
      i = j;
      digits();
    }
  }
  return i;
}

bool misplaced_underscore(std::string_view s, int base) {
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '_') continue;
    const bool behind = i + 1 < s.size() && std::isxdigit(static_cast<unsigned char>(s[i + 1])) != 0;
    const bool before = base == 10 ? i > 0 && is_digit(s[i - 1]) : i > 1 && s[i - 1] != '_';
    if (!before || !behind) return true;
  }
  return false;
}

/// What to write for `digits` with a suffix of C or Python.
std::string suffix_help(std::string_view digits, std::string_view suffix) {
  if (suffix == "j" || suffix == "J" || suffix == "im")
    return "gk has no complex numbers yet: keep the two parts in arrays of their own";
  if (suffix == "f" || suffix == "F") return fmt::format("write `{}f32`", digits);
  if (suffix.find_first_not_of("uUlL") == std::string_view::npos) return fmt::format("write `{}`", digits);
  return fmt::format("for a product write `{} * {}`", digits, suffix);
}

int base_of(std::string_view s) {
  if (s.size() < 2 || s[0] != '0') return 10;
  switch (s[1]) {
    case 'x':
    case 'X': return 16;
    case 'b':
    case 'B': return s.size() > 2 && (is_digit(s[2]) || s[2] == '_') ? 2 : 10;
    case 'o':
    case 'O': return s.size() > 2 && (is_digit(s[2]) || s[2] == '_') ? 8 : 10;
    default: return 10;
  }
}

}  // namespace

void Builder::number(Expr& e, int type) {
  int base = base_of(e.text);
  size_t length = body_length(e.text, base);
  const std::string_view body = std::string_view(e.text).substr(0, length);
  const std::string digits = without_underscores(body);
  const bool has_digits = digits.size() > (base == 10 ? 0 : 2);
  if (has_digits && misplaced_underscore(body, base)) {
    report(syntax_error("E0106", fmt::format("an underscore of `{}` is not between two digits", body), e.span)
               .help(fmt::format("write `{}`", digits)));
    return;
  }
  e.suffix = e.text.substr(length);
  auto suffix_span = [&] { return Span{file_, e.span.begin + static_cast<uint32_t>(length), e.span.end}; };
  std::optional<DType> dtype = parse_dtype(e.suffix);
  if (!e.suffix.empty() && (!dtype || is_bool(*dtype))) {
    report(syntax_error("E0106", fmt::format("`{}` is not the suffix of a number", e.suffix), suffix_span())
               .note("a suffix is a dtype: 1u8, 2.5f64")
               .help(suffix_help(digits, e.suffix)));
    return;
  }
  bool is_real = type == antlr::GkParser::FLOAT;
  if (is_real || (dtype && gk::is_float(*dtype))) {
    e.kind = ExprKind::Float;
    // Clean decimal text by the lexer's rule (or an integer in any base), so strtod reads all of it.
    if (base == 10) {
      e.float_value = std::strtod(digits.c_str(), nullptr);
    } else {
      e.float_value = static_cast<double>(std::strtoull(digits.c_str() + 2, nullptr, base));
    }
    if (is_real && dtype && !gk::is_float(*dtype))
      report(syntax_error("E0106",
                          fmt::format("a number with a fraction or an exponent cannot be {}", e.suffix),
                          e.span)
                 .help(fmt::format("convert it: `{}({})`", e.suffix, digits)));
    return;
  }
  const char* first = digits.data() + (base == 10 ? 0 : 2);
  const char* last = digits.data() + digits.size();
  auto [end, status] = std::from_chars(first, last, e.uint_value, base);
  if (status == std::errc::result_out_of_range)
    report(syntax_error("E0106", "this integer is over 18446744073709551615 (2^64 - 1)", e.span)
               .help("write it as a float: with a point or an exponent"));
  else if (end != last || first == last)
    report(syntax_error("E0106", fmt::format("`{}` is not a number in base {}", e.text, base), e.span));
}

std::string Builder::unescape(uint32_t begin, uint32_t end) {
  std::string out;
  for (uint32_t i = begin; i < end; ++i) {
    char c = text_[i - base_];
    if (c != '\\' || i + 1 >= end) {
      out.push_back(c);
      continue;
    }
    char kind = text_[++i - base_];
    switch (kind) {
      case 'n': out.push_back('\n'); continue;
      case 't': out.push_back('\t'); continue;
      case 'r': out.push_back('\r'); continue;
      case '0': out.push_back('\0'); continue;
      case '\\':
      case '"': out.push_back(kind); continue;
      case '{':
      case '}': out.push_back(kind); continue;
      default: break;
    }
    if (kind == 'u' && i + 1 < end && text_[i + 1 - base_] == '{') {
      size_t close = text_.find('}', i - base_);
      uint32_t code = 0;
      if (close != std::string_view::npos && base_ + close < end) {
        const char* first = text_.data() + (i + 2 - base_);
        const char* last = text_.data() + close;
        auto [stop, status] = std::from_chars(first, last, code, 16);
        bool scalar = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
        uint32_t after = base_ + static_cast<uint32_t>(close);
        if (status == std::errc() && stop == last && first != last && scalar)
          append_utf8(out, code);
        else
          report(syntax_error("E0103", "this is not the number of a character", {file_, i - 1, after + 1})
                     .note("\\u{…} takes one to six hexadecimal digits, up to 10FFFF, and no surrogates"));
        i = after;
        continue;
      }
    }
    uint32_t size = decode_utf8(text_, i - base_).size;
    report(syntax_error("E0103", fmt::format("unknown escape `\\{}`", text_.substr(i - base_, size)),
                        {file_, i - 1, i + size})
               .note("the escapes are \\n \\t \\r \\0 \\\\ \\\" and \\u{…}")
               .help("for a backslash write `\\\\`"));
    i += size - 1;
  }
  return out;
}

std::string Builder::string_value(antlr4::Token* t) {
  Span s = span(t);
  // An unterminated string has been reported; it has no closing quote to drop.
  uint32_t begin = s.begin + (text_[s.begin - base_] == 'f' ? 2 : 1);
  uint32_t end = s.end > begin && text_[s.end - 1 - base_] == '"' ? s.end - 1 : s.end;
  return unescape(begin, end);
}

// The lexer has checked the shape: text, {{, }}, and {…} with balanced braces and closed strings.
void Builder::fstring(Expr& e, Span s) {
  std::string part;
  uint32_t end = s.end - 1;
  uint32_t run = s.begin + 2;  // start of text not yet in `part`
  const uint32_t before = std::min(std::max(fstring_end_, base_), s.begin);
  if (text_.substr(before - base_, s.begin - before).find('\n') != std::string_view::npos) in_fstrings_ = 0;
  fstring_end_ = s.end;
  auto at = [&](uint32_t i) { return i < end ? text_[i - base_] : '\0'; };
  for (uint32_t i = run; i < end;) {
    char c = at(i);
    if (c == '\\') {
      i += 2;
      continue;
    }
    if (c != '{' && c != '}') {
      ++i;
      continue;
    }
    part += unescape(run, i);
    if (at(i + 1) == c) {
      part.push_back(c);
      run = i += 2;
      continue;
    }
    uint32_t open = i, colon = 0;
    int depth = 0;
    bool quoted = false;
    for (++i; i < end; ++i) {
      char d = at(i);
      if (quoted && d == '\\')
        ++i;
      else if (d == '"')
        quoted = !quoted;
      else if (quoted)
        continue;
      else if (d == '(' || d == '[' || d == '{')
        ++depth;
      else if (d == '}' && depth == 0)
        break;
      else if (d == ')' || d == ']' || d == '}')
        --depth;
      else if (d == ':' && depth == 0 && colon == 0)
        colon = i;
    }
    uint32_t stop = colon != 0 ? colon : i;
    std::string_view inner = text_.substr(open + 1 - base_, stop - open - 1);
    ExprPtr value;
    if (in_fstrings_ > static_cast<size_t>(kMaxInLine)) {
      report(too_many_in_line({file_, open, i + 1}));
      return;
    }
    if (inner.find_first_not_of(" \t") == std::string_view::npos) {
      report(syntax_error("E0103", "an empty `{}` in an f-string", {file_, open, i + 1})
                 .help("put an expression inside, or write `{{}}` for the braces themselves"));
    } else {
      value = parse_fragment(inner, file_, open + 1, errors_, in_fstrings_);
    }
    if (value == nullptr) {
      value = std::make_unique<Expr>();
      value->kind = ExprKind::Wildcard;
      value->span = {file_, open, i + 1};
    }
    e.parts.push_back(std::move(part));
    part.clear();
    e.elements.push_back(std::move(value));
    e.formats.emplace_back(colon != 0 ? text_.substr(colon + 1 - base_, i - colon - 1) : "");
    run = ++i;
  }
  part += unescape(run, end);
  e.parts.push_back(std::move(part));
}

}  // namespace gk::syntax
