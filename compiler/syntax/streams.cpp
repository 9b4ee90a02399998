#include "compiler/syntax/streams.h"

#include "GkLexer.h"

namespace gk::syntax {
namespace {

bool has(const TextStream::Ranges& ranges, uint32_t c) {
  const auto next = std::upper_bound(ranges.begin(), ranges.end(), c,
                                     [](uint32_t at, const auto& range) { return at < range.first; });
  return next != ranges.begin() && c <= std::prev(next)->second;
}

/// From the grammar's own sets.
TextStream::Names names_of(const antlr4::atn::ATN& lexer) {
  TextStream::Names names;
  for (const antlr4::atn::ATNState* state : lexer.states) {
    for (const antlr4::atn::Transition* t : state->transitions) {
      const antlr4::misc::IntervalSet set = t->label();
      if (set.size() < 1000 || !set.contains(ssize_t{'_'}) || set.contains(ssize_t{'+'})) continue;
      TextStream::Ranges& ranges = set.contains(ssize_t{'1'}) ? names.further : names.first;
      ranges.clear();
      for (const antlr4::misc::Interval& i : set.getIntervals())
        ranges.emplace_back(static_cast<uint32_t>(i.a), static_cast<uint32_t>(i.b));
    }
  }
  return names;
}

}  // namespace

const TextStream::Names& TextStream::all_names() {
  static const Names names = names_of(antlr::GkLexer(nullptr).getATN());
  return names;
}

size_t TextStream::LA(ssize_t i) {
  size_t at = at_;
  for (; i > 1 && at < text_.size(); --i) at += width(at);
  if (at >= text_.size() || i < 1) return EOF;
  const auto byte = static_cast<unsigned char>(text_[at]);
  if (byte < 0x80) return byte;
  if (kind_ == Kind::Text) return 'a';
  const uint32_t c = decode_utf8(text_, at).code_point;
  return kind_ == Kind::Name && has(names_.further, c) ? 'Z' : c;
}

ssize_t TextStream::mark() {
  const std::string_view rest = text_.substr(at_);
  kind_ = Kind::Other;
  if (rest.starts_with('"') || rest.starts_with('#') || rest.starts_with("f\"")) {
    kind_ = Kind::Text;
  } else if (!rest.empty()) {
    const auto byte = static_cast<unsigned char>(rest[0]);
    if (has(names_.first, byte < 0x80 ? byte : decode_utf8(rest, 0).code_point)) kind_ = Kind::Name;
  }
  return -1;
}

}  // namespace gk::syntax
