#include "compiler/syntax/recover.h"

#include <algorithm>

#include "GkParser.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using P = antlr::GkParser;

}  // namespace

bool starts_statement(int t) {
  switch (t) {
    case P::LET:
    case P::VAR:
    case P::CONST:
    case P::CAPTURED:
    case P::FN:
    case P::KERNEL:
    case P::TYPE:
    case P::GRAPH:
    case P::UPDATE:
    case P::FOR:
    case P::WHILE:
    case P::BREAK:
    case P::CONTINUE:
    case P::RETURN:
    case P::IMPORT:
    case P::PRAGMA:
    case P::ASSERT:
    case P::TEST:
    case P::BENCH:
    case P::EXPECT_ERROR:
    case P::MINUS:
    case P::PLUS:
    case P::TILDE:
    case P::NOT:
    case P::LBRACK:
    case P::LIST_LBRACK:
    case P::LBRACE: return true;
    default: return starts_expression(t) || is_terminator(t);
  }
}

antlr4::ParserRuleContext* enclosing_line(antlr4::ParserRuleContext* c) {
  while (c != nullptr && c->getRuleIndex() != P::RuleLine && c->getRuleIndex() != P::RuleNodeLine)
    c = dynamic_cast<antlr4::ParserRuleContext*>(c->parent);
  return c;
}

namespace {

std::string join_expected(std::vector<std::string> words) {
  if (words.size() > 3) words.resize(3);
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

/// The expected set in at most three phrases, the most telling first.
std::string expected_phrase(const std::vector<int>& set, int before) {
  auto has = [&](int t) { return std::find(set.begin(), set.end(), t) != set.end(); };
  std::vector<std::string> words;
  bool expression = has(P::IDENT) && has(P::INT);
  bool type = has(P::LIST_LBRACK) && !has(P::INT);
  bool operators = has(P::PLUS) && has(P::STAR);
  if (has(P::RPAREN) && before != P::LPAREN && before != P::COMMA) {
    if (!has(P::COMMA)) words.push_back("`,`");
    words.push_back("`)`");
  } else if (has(P::RBRACK) && before != P::LBRACK && before != P::COMMA) {
    if (!has(P::COMMA)) words.push_back("`,`");
    words.push_back("`]`");
  }
  if (expression) words.push_back("an expression");
  if (type) words.push_back("a type");
  for (int t : set) {
    bool said = t == P::RPAREN || t == P::RBRACK || is_terminator(t) || t == -1;
    bool covered =
        (expression && (starts_expression(t) || t == P::LBRACE || t == P::LBRACK || t == P::LIST_LBRACK ||
                        t == P::MINUS || t == P::PLUS || t == P::TILDE || t == P::NOT)) ||
        (type && (t == P::IDENT || t == P::LPAREN || t == P::LBRACE || t == P::LIST_LBRACK)) ||
        (operators && continues_after(t) && t != P::COMMA);
    bool internal = t == P::LAUNCH_WITH || t == P::LAMBDA_LPAREN || t == P::LAMBDA_NAME ||
                    t == P::PLACEMENT || t == P::REBIND_LBRACE || (t == P::LIST_LBRACK && has(P::LBRACK));
    if (!said && !covered && !internal) words.push_back(describe(t));
  }
  if (has(P::NEWLINE)) words.push_back("the end of the statement");
  std::vector<std::string> unique;
  for (std::string& w : words)
    if (std::find(unique.begin(), unique.end(), w) == unique.end()) unique.push_back(std::move(w));
  return join_expected(std::move(unique));
}

/// "unexpected keyword `var`", "unexpected end of the line".
std::string unexpected(std::string_view found) {
  if (found.starts_with("the ")) found.remove_prefix(4);
  if (found.starts_with("a ")) found.remove_prefix(2);
  return fmt::format("unexpected {}", found);
}

}  // namespace

Span Recovery::found_span(size_t i) const {
  const Token& t = at(i);
  if (t.type == P::NEWLINE || t.type == -1) {
    if (at(i + 1).type == P::RBRACE && t.begin == t.end) return {file_, at(i + 1).begin, at(i + 1).end};
    uint32_t end = i > 0 ? at(i - 1).end : t.begin;  // right behind the last word, not on the next line
    return {file_, end, end};
  }
  return {file_, t.begin, t.end};
}

std::string Recovery::found_text(size_t i) const {
  const Token& t = at(i);
  if (t.type == P::NEWLINE && t.begin == t.end) {
    if (at(i + 1).type == P::RBRACE) return "`}`";
    if (at(i + 1).type == -1) return fragment_ ? "the end of the expression" : "the end of the text";
  }
  return describe(t, text_, base_);
}

void Recovery::report(Error e, size_t first_token, size_t found) {
  // The layout pass may have reported this statement already.
  uint32_t from = at(first_token).begin, to = at(found).end;
  for (const Error& old : errors_)
    if (old.span.begin >= from && old.span.begin <= to) return;
  if (errors_.size() < kMaxErrors) errors_.push_back(std::move(e));
}

void Recovery::reportError(antlr4::Parser* parser, const antlr4::RecognitionException& ex) {
  if (inErrorRecoveryMode(parser)) return;
  beginErrorCondition(parser);
  size_t i = ex.getOffendingToken()->getTokenIndex();
  std::vector<int> expected;
  for (ssize_t t : ex.getExpectedTokens().toList()) expected.push_back(static_cast<int>(t));
  antlr4::ParserRuleContext* context = parser->getContext();

  int before = i > 0 ? at(i - 1).type : 0;
  std::string wanted = expected_phrase(expected, before);
  std::string found = found_text(i);
  Error e = syntax_error(
      "E0104", wanted.empty() ? unexpected(found) : fmt::format("expected {}, found {}", wanted, found),
      found_span(i));
  bool wants_expression = wanted.find("an expression") != std::string::npos;
  advise(e, context, i, wants_expression, expected);
  antlr4::ParserRuleContext* line = enclosing_line(context);
  report(std::move(e), line != nullptr ? line->start->getTokenIndex() : i, i);
}

void Recovery::recover(antlr4::Parser* parser, std::exception_ptr e) {
  antlr4::ParserRuleContext* c = parser->getContext();
  size_t rule = c->getRuleIndex();
  if (rule != P::RuleLine && rule != P::RuleNodeLine) std::rethrow_exception(e);
  skip_statement(parser, c->start->getTokenIndex());
}

antlr4::Token* Recovery::recoverInline(antlr4::Parser* parser) {
  throw antlr4::InputMismatchException(parser);
}

void Recovery::skip_statement(antlr4::Parser* parser, size_t first_token) {
  if (errors_.size() >= kMaxErrors) throw Enough{};
  int depth = at(first_token).depth;
  for (;;) {
    const Token& t = at(parser->getInputStream()->index());
    if (t.type == -1 || t.depth < depth) break;
    parser->consume();
    if (is_terminator(t.type) && t.depth == depth) break;
  }
  endErrorCondition(parser);
}

void Recovery::sync(antlr4::Parser* parser) {
  antlr4::ParserRuleContext* c = parser->getContext();
  bool graph = dynamic_cast<P::GraphStmtContext*>(c) != nullptr;
  if (!graph && c->getRuleIndex() != P::RuleFile && c->getRuleIndex() != P::RuleBlock) return;
  for (;;) {
    size_t i = parser->getInputStream()->index();
    int t = at(i).type;
    if (t == -1 || t == P::RBRACE || (t == P::LBRACE && c->start->getTokenIndex() == i)) return;
    if (graph ? t == P::NODE || is_terminator(t) : starts_statement(t)) return;
    std::string what = graph ? "`node`" : "a statement";
    Error e = syntax_error("E0104", fmt::format("expected {}, found {}", what, found_text(i)), found_span(i));
    if (graph)
      e.notes.push_back("a graph holds nodes alone: `node name { … }` or `node name after (a, b) { … }`");
    else
      advise(e, c, i, true, {});
    report(std::move(e), i, i);
    skip_statement(parser, i);
  }
}

}  // namespace gk::syntax
