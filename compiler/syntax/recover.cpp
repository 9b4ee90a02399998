#include "compiler/syntax/recover.h"

#include <algorithm>

#include "GkParser.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using P = antlr::GkParser;

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

/// The statement (or node) a context belongs to: where skipping starts.
antlr4::ParserRuleContext* enclosing_line(antlr4::ParserRuleContext* c) {
  while (c != nullptr && c->getRuleIndex() != P::RuleLine && c->getRuleIndex() != P::RuleNodeLine)
    c = dynamic_cast<antlr4::ParserRuleContext*>(c->parent);
  return c;
}

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
      "E0104", wanted.empty() ? "unexpected " + found : fmt::format("expected {}, found {}", wanted, found),
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

void Recovery::advise(Error& e, antlr4::ParserRuleContext* context, size_t i, bool wants_expression,
                      const std::vector<int>& expected) const {
  auto wants = [&](int t) { return std::find(expected.begin(), expected.end(), t) != expected.end(); };
  auto slice = [&](const Token& t) { return text_.substr(t.begin - base_, t.end - t.begin); };
  int found = at(i).type;
  int before = i > 0 ? at(i - 1).type : P::NEWLINE;
  antlr4::ParserRuleContext* line = enclosing_line(context);
  int head = line != nullptr ? at(line->start->getTokenIndex()).type : 0;
  auto help = [&](std::string text) { e.helps.push_back(std::move(text)); };

  if (found == P::ASSIGN && head == P::FOR && wants(P::IN)) return help("write `for i in 0..n { … }`");
  bool condition = head == P::IF || head == P::WHILE || head == P::ASSERT;
  if (found == P::ASSIGN && (condition || (wants(P::LBRACE) && !wants(P::LIST_LBRACK))))
    return help("to compare, write `==`");
  if (found == P::ASSIGN && wants(P::NEWLINE))
    return help("one assignment a statement; to compare, write `==`");
  bool declares = head == P::LET || head == P::VAR || head == P::CONST;
  if (declares && found >= P::ASSIGN_ELEMS && found <= P::DIV_ELEMS && !wants_expression) {
    e.message = fmt::format("expected `=`, found `{}`", slice(at(i)));
    return help("a new name is given its value with `=`; `.=` writes into an array that exists");
  }
  if (declares && found == P::LPAREN && wants(P::IDENT))
    return help("take the parts by index: `let t = f()`, then `t[0]` and `t[1]`");
  if (found == P::COLON && at(i + 1).type == P::ASSIGN) return help("a new name is declared as `let x = …`");
  if (found == P::COLON && (wants(P::LBRACE) || head == P::ELSE))
    return help("a body stands between braces: `{ … }`");
  if (found == P::NEWLINE && wants(P::LBRACE) && at(i + 1).type == P::LBRACE)
    return help("the `{` belongs on the same line");
  if (wants(P::LBRACE) && head == P::IF) return help("a body stands between braces: `if c { … }`");
  if (found == P::ELSE && is_terminator(before)) return help("`else` follows the `}` of an `if`");
  if ((found == P::FLOORDIV || found == P::SLASH) && is_terminator(before))
    return help("a comment starts with `#`");
  if (wants_expression && i > 0 && continues_after(before) && !is_terminator(found) &&
      text_.substr(at(i - 1).end - base_, at(i).begin - at(i - 1).end).find('\n') != std::string_view::npos) {
    e.message = fmt::format("expected an expression after `{}`, found {}", slice(at(i - 1)), found_text(i));
    e.labels.push_back({{file_, at(i - 1).begin, at(i - 1).end}, "the statement goes on after this"});
    return;
  }
  if (wants_expression && is_terminator(before) && continues_after(found))
    return help("an operator that goes on with a line stands at the end of the line above");
  if (before == P::DOT && i > 1 && at(i - 2).type == P::INT)
    return help(fmt::format("write `{}.0`", slice(at(i - 2))));
  if (found == P::DOT && before == P::INT) return help(fmt::format("write `{}.0`", slice(at(i - 1))));
  if (head == P::IMPORT && wants(P::STRING) && found == P::IDENT)
    return help(fmt::format("write `import \"{0}.gk\" as {0}`", slice(at(i))));
  if (wants(P::IDENT) && !wants_expression && found >= P::LET && found <= P::NEW)
    e.notes.push_back(fmt::format("`{}` is a keyword; choose another name", slice(at(i))));
  if (wants(P::NEWLINE) && before == P::IDENT && slice(at(i - 1)) == "print")
    return help("call it with parentheses: `print(x)`");
  if (wants(P::NEWLINE) && before == P::RBRACE && starts_statement(found))
    return help("start a new line, or separate the statements with `;`");
}

}  // namespace gk::syntax
