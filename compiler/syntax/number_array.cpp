#include "compiler/syntax/number_array.h"

#include <bit>
#include <charconv>

namespace gk::syntax {
namespace {

constexpr size_t kFewNumbers = 256;
constexpr size_t kMostAxes = 8;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Scanner {
 public:
  Scanner(std::string_view text, NumberArray* out) : text_(text), out_(out) {}

  std::optional<size_t> run() {
    if (!array(0) || count_ < kFewNumbers) return std::nullopt;
    if (out_) {
      out_->shape = std::move(shape_);
      out_->added();
    }
    return at_;
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void blanks() {
    while (here() == ' ' || here() == '\t' || here() == '\n' || here() == '\r') ++at_;
  }

  // Rows of one depth have one length, and either all or none of them hold numbers.
  bool array(size_t depth) {
    if (depth == kMostAxes) return false;
    const bool first = shape_.size() == depth;
    if (first) shape_.push_back(-1);
    ++at_;
    blanks();
    int64_t length = 0;
    while (here() != ']') {
      if (here() == '[') {
        if (leaf_ >= 0 && depth >= static_cast<size_t>(leaf_)) return false;
        if (!array(depth + 1)) return false;
      } else {
        if (leaf_ < 0) leaf_ = shape_.size() == depth + 1 ? static_cast<int>(depth) : -2;
        if (leaf_ != static_cast<int>(depth) || !number()) return false;
      }
      ++length;
      blanks();
      if (here() == ']') break;
      if (here() != ',') return false;
      ++at_;
      blanks();
    }
    ++at_;
    if (length == 0) return false;
    if (shape_[depth] < 0) shape_[depth] = length;
    return shape_[depth] == length;
  }

  bool number() {
    NumberArray::Number n;
    if (here() == '-' || here() == '+') {
      n.negative = here() == '-';
      ++at_;
      blanks();
    }
    const size_t begin = at_;
    while (is_digit(here())) ++at_;
    if (here() == '.') {
      n.is_float = true;
      ++at_;
      while (is_digit(here())) ++at_;
    }
    if (at_ == begin + n.is_float) return false;  // no digit
    if (here() == 'e' || here() == 'E') {
      n.is_float = true;
      ++at_;
      if (here() == '-' || here() == '+') ++at_;
      if (!is_digit(here())) return false;
      while (is_digit(here())) ++at_;
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.ends_with('.') || (n.is_float && digits.find(".e") != std::string_view::npos)) return false;
    const char *from = digits.data(), *to = from + digits.size();
    if (n.is_float) {
      const auto [end, status] = std::from_chars(from, to, n.real);
      if (status != std::errc() || end != to) return false;
    } else {
      const auto [end, status] = std::from_chars(from, to, n.integer);
      if (status != std::errc() || end != to) return false;
      if (n.negative && n.integer > uint64_t{1} << 63) return false;
    }
    ++count_;
    if (out_) out_->add(n);
    return true;
  }

  std::string_view text_;
  NumberArray* out_;
  size_t at_ = 0, count_ = 0;
  std::vector<int64_t> shape_;
  int leaf_ = -1;  // the depth of the numbers
};

}  // namespace

std::optional<size_t> scan_number_array(std::string_view text, NumberArray* out) {
  return Scanner(text, out).run();
}

NumberArray::Number NumberArray::operator[](size_t i) const {
  Number n;
  n.integer = long_.empty() ? short_[i] : long_[i];
  n.negative = !negatives_.empty() && negatives_[i];
  n.is_float = !floats_.empty() && floats_[i];
  if (n.is_float) n.real = std::bit_cast<double>(n.integer);
  return n;
}

void NumberArray::add(const Number& n) {
  const size_t at = size();
  const uint64_t bits = n.is_float ? std::bit_cast<uint64_t>(n.real) : n.integer;
  if (long_.empty() && bits > UINT32_MAX) {
    long_.assign(short_.begin(), short_.end());
    short_ = {};
  }
  if (long_.empty() && bits <= UINT32_MAX)
    short_.push_back(static_cast<uint32_t>(bits));
  else
    long_.push_back(bits);
  const auto mark = [&](std::vector<bool>& flags, bool flag) {
    if (flag && flags.empty()) flags.resize(at);
    if (flag || !flags.empty()) flags.push_back(flag);
  };
  mark(floats_, n.is_float);
  mark(negatives_, n.negative);
}

}  // namespace gk::syntax
