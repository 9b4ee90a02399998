#include "compiler/ir/text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "compiler/ir/text.h"

namespace gk::ir::text {
namespace {
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
}  // namespace

void Reader::skip() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
}

bool Reader::at_end() {
  skip();
  return at_ == text_.size();
}

bool Reader::eat(std::string_view what) {
  skip();
  if (!text_.substr(at_).starts_with(what)) return false;
  const size_t end = at_ + what.size();
  if (is_word(what.back()) && end < text_.size() && is_word(text_[end])) return false;
  at_ = end;
  return true;
}

Result<void> Reader::expect(std::string_view what) {
  if (!eat(what)) return error(fmt::format("`{}`", what));
  return {};
}

std::string_view Reader::word() {
  skip();
  size_t end = at_;
  while (end < text_.size() && is_word(text_[end])) ++end;
  if (end == at_ || std::isdigit(static_cast<unsigned char>(text_[at_]))) return {};
  const std::string_view w = text_.substr(at_, end - at_);
  at_ = end;
  return w;
}

bool Reader::next_is(char c) {
  skip();
  return at_ < text_.size() && text_[at_] == c;
}

Result<std::string> Reader::quoted() {
  GK_CHECK(expect("\""));
  std::string out;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    if (at_ >= text_.size()) break;
    const char escape = text_[at_++];
    if (escape != 'x') {
      out += escape;
      continue;
    }
    unsigned value = 0;
    const std::string_view hex = text_.substr(at_, 2);
    const auto [end, ec] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (ec != std::errc{} || end != hex.data() + 2) return error("two hexadecimal digits");
    out += static_cast<char>(value);
    at_ += 2;
  }
  return error("a closing quote");
}

Result<int64_t> Reader::integer(int64_t least, int64_t most) {
  skip();
  int64_t v = 0;
  const auto [end, ec] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
  if (ec != std::errc{} || v < least || v > most)
    return error(fmt::format("a number of {} to {}", least, most));
  at_ = static_cast<size_t>(end - text_.data());
  return v;
}
Result<int64_t> Reader::integer() {
  return integer(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
}

Result<DType> Reader::dtype() {
  const auto t = parse_dtype(word());
  if (!t) return error("a dtype");
  return *t;
}

Result<Scalar> Reader::scalar() {
  GK_TRY(const DType t, dtype());
  return digits(t);
}

Result<Scalar> Reader::digits(DType t) {
  skip();
  size_t end = at_;
  while (end < text_.size() &&
         (is_word(text_[end]) || std::string_view("+-.:").find(text_[end]) != std::string_view::npos))
    ++end;
  const auto v = parse_digits(t, text_.substr(at_, end - at_));
  if (!v) return error(fmt::format("a {}", gk::name(t)));
  at_ = end;
  return *v;
}

Result<void> Reader::list(const std::function<Result<void>()>& item) {
  GK_CHECK(expect("["));
  if (eat("]")) return {};
  do GK_CHECK(item());
  while (eat(","));
  return expect("]");
}

Result<Shape> Reader::shape() {
  Shape s;
  GK_CHECK(list([&]() -> Result<void> {
    if (s.rank() == kMaxRank) return error("at most 8 extents");
    GK_TRY(const int64_t v, integer());
    s.push_back(v);
    return {};
  }));
  return s;
}

Failure Reader::error(std::string_view expected) {
  const std::string_view before = text_.substr(0, at_);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  return fail(ErrorKind::Syntax, "E0199", fmt::format("IR text, line {}: {} expected", line, expected));
}

}  // namespace gk::ir::text
