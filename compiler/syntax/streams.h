// What ANTLR's lexer and parser read. Owns a stream of characters over a text that stays where it is, and a
// stream of tokens of a few bytes each; the runtime's own take four bytes a character and two hundred a
// token. Promises that positions in the text are bytes. Not for texts that are not UTF-8.
#pragma once

#include <antlr4-runtime.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "compiler/syntax/tokens.h"
#include "compiler/syntax/utf8.h"

namespace gk::syntax {

// Note [Characters of the lexer]
// ANTLR's lexer remembers what follows an ASCII character; what follows any other it works out anew each
// time, which takes microseconds. So where a token begins, the stream looks at its first bytes: in a string,
// an f-string or a comment every other character counts as `a`, in a name every other letter, mark or digit
// as `Z`, which no keyword has. The tokens are the same.
class TextStream final : public antlr4::CharStream {
 public:
  explicit TextStream(std::string_view text) : text_(text), names_(all_names()) {}

  void consume() override { at_ += width(at_); }
  size_t LA(ssize_t i) override;
  /// The lexer calls it where it begins a token.
  ssize_t mark() override;
  void release(ssize_t) override {}
  size_t index() override { return at_; }
  void seek(size_t index) override { at_ = std::min(index, text_.size()); }
  size_t size() override { return text_.size(); }
  std::string getSourceName() const override { return ""; }
  std::string getText(const antlr4::misc::Interval& i) override {
    const auto from = std::min(static_cast<size_t>(i.a), text_.size());
    return std::string(text_.substr(from, static_cast<size_t>(i.b) + 1 - from));
  }
  std::string toString() const override { return std::string(text_); }

  /// Code points, as ranges in order.
  using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;
  /// The letters that begin a name, and what goes on with one.
  struct Names {
    Ranges first, further;
  };

 private:
  static const Names& all_names();
  enum class Kind : uint8_t { Name, Text, Other };
  size_t width(size_t at) const {
    if (at >= text_.size()) return 0;
    return static_cast<unsigned char>(text_[at]) < 0x80 ? 1 : decode_utf8(text_, at).size;
  }
  std::string_view text_;
  const Names& names_;
  size_t at_ = 0;
  Kind kind_ = Kind::Other;  // of the token that is being read
};

/// A token's type and number; where it stands is in the list that the stream was made of.
class SmallToken final : public antlr4::Token {
 public:
  SmallToken(int type, size_t index) : type_(type), index_(static_cast<uint32_t>(index)) {}

  std::string getText() const override { return ""; }
  size_t getType() const override { return type_ == -1 ? antlr4::Token::EOF : static_cast<size_t>(type_); }
  size_t getLine() const override { return 0; }
  size_t getCharPositionInLine() const override { return 0; }
  size_t getChannel() const override { return DEFAULT_CHANNEL; }
  size_t getTokenIndex() const override { return index_; }
  size_t getStartIndex() const override { return 0; }
  size_t getStopIndex() const override { return 0; }
  antlr4::TokenSource* getTokenSource() const override { return nullptr; }
  antlr4::CharStream* getInputStream() const override { return nullptr; }
  std::string toString() const override { return ""; }

 private:
  int32_t type_;
  uint32_t index_;
};

class SmallTokens final : public antlr4::TokenStream {
 public:
  explicit SmallTokens(const std::vector<Token>& tokens) {
    tokens_.reserve(tokens.size());
    for (const Token& t : tokens) tokens_.emplace_back(t.type, tokens_.size());
  }

  void consume() override { at_ = std::min(at_ + 1, tokens_.size() - 1); }
  size_t LA(ssize_t i) override {
    const antlr4::Token* t = LT(i);
    return t ? t->getType() : antlr4::Token::INVALID_TYPE;
  }
  antlr4::Token* LT(ssize_t k) override {
    if (k == 0 || (k < 0 && static_cast<size_t>(-k) > at_)) return nullptr;
    const size_t i = k < 0 ? at_ - static_cast<size_t>(-k) : at_ + static_cast<size_t>(k) - 1;
    return &tokens_[std::min(i, tokens_.size() - 1)];
  }
  antlr4::Token* get(size_t index) const override {
    return const_cast<SmallToken*>(&tokens_[std::min(index, tokens_.size() - 1)]);
  }
  ssize_t mark() override { return 0; }
  void release(ssize_t) override {}
  size_t index() override { return at_; }
  void seek(size_t index) override { at_ = std::min(index, tokens_.size() - 1); }
  size_t size() override { return tokens_.size(); }
  std::string getSourceName() const override { return ""; }
  antlr4::TokenSource* getTokenSource() const override { return nullptr; }
  std::string getText(const antlr4::misc::Interval&) override { return ""; }
  std::string getText() override { return ""; }
  std::string getText(antlr4::RuleContext*) override { return ""; }
  std::string getText(antlr4::Token*, antlr4::Token*) override { return ""; }

 private:
  std::vector<SmallToken> tokens_;
  size_t at_ = 0;
};

}  // namespace gk::syntax
