// What the parser does about a mistake: one message in plain words, then on with the next statement.
// Owns the error strategy for the LL pass; promises one error a mistake, none inside a statement that
// has one already. Not for the SLL pass, which gives up at once.
#pragma once

#include <antlr4-runtime.h>

#include "compiler/syntax/tokens.h"

namespace gk::syntax {

/// Thrown by the error strategy: there are as many errors as are told, and reading on would find no other.
struct Enough {};
/// Whether a statement can begin with a token of this type.
bool starts_statement(int type);
/// The statement (or node) a context belongs to: where skipping starts.
antlr4::ParserRuleContext* enclosing_line(antlr4::ParserRuleContext* c);

class Recovery final : public antlr4::DefaultErrorStrategy {
 public:
  Recovery(const TokenList& tokens, std::string_view text, int32_t file, uint32_t base, bool fragment,
           std::vector<Error>& errors)
      : tokens_(tokens), text_(text), file_(file), base_(base), fragment_(fragment), errors_(errors) {}

  void reportError(antlr4::Parser* parser, const antlr4::RecognitionException& e) override;
  void recover(antlr4::Parser* parser, std::exception_ptr e) override;
  antlr4::Token* recoverInline(antlr4::Parser* parser) override;
  void sync(antlr4::Parser* parser) override;

 private:
  const Token& at(size_t i) const { return tokens_.tokens[std::min(i, tokens_.tokens.size() - 1)]; }
  Span found_span(size_t i) const;
  std::string found_text(size_t i) const;
  /// `found` is the token the error is about.
  void report(Error e, size_t first_token, size_t found);
  void skip_statement(antlr4::Parser* parser, size_t first_token);
  void advise(Error& e, antlr4::ParserRuleContext* context, size_t i, bool wants_expression,
              const std::vector<int>& expected) const;
  /// A help for what is right in another language; empty where it is none that is known. (advice.cpp)
  std::string other_language(size_t i, int head) const;
  /// What `for i in a:b` is; empty where the colon begins a body. `i` is the colon.
  std::string julia_range(size_t i) const;
  /// What CUDA's `k<<<b, t>>>(x)` is; `open` is its first `<<`.
  std::string cuda_launch(size_t open) const;
  /// What Julia's `[1 2; 3 4]` is; empty where `i` is in no such brackets.
  std::string julia_matrix(size_t i) const;
  std::string_view slice(size_t first, size_t last) const;
  std::string undotted(size_t first, size_t last) const;  // without Julia's dots
  size_t operand_from(size_t first) const;                // its last token
  size_t operand_to(size_t last) const;                   // its first token
  size_t end_of_statement(size_t i) const;

  const TokenList& tokens_;
  std::string_view text_;
  int32_t file_;
  uint32_t base_;
  bool fragment_;  // the text is one expression of an f-string
  std::vector<Error>& errors_;
};

}  // namespace gk::syntax
