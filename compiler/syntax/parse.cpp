#include "compiler/syntax/parse.h"

#include <antlr4-runtime.h>

#include <algorithm>
#include <mutex>

#include "GkLexer.h"
#include "GkParser.h"
#include "compiler/syntax/build.h"
#include "compiler/syntax/recover.h"
#include "compiler/syntax/streams.h"
#include "compiler/syntax/tokens.h"
#include "compiler/syntax/utf8.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using antlr::GkParser;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
/// Expressions inside expressions: brackets (at most kMaxNesting) with prefix operators between them.
constexpr int kMaxExprDepth = 3 * kMaxNesting;

struct TooDeep {
  size_t token;
};

/// The generated parser with a limit on recursion. Everything that nests without brackets (not not x,
/// a ** b ** c, x => y => z) goes through the rule `expr`.
class LimitedParser final : public GkParser {
 public:
  LimitedParser(antlr4::TokenStream* tokens, Stop& stop) : GkParser(tokens), stop_(stop) {}
  antlr4::Token* consume() override {
    if (stop_.wanted()) throw Stopped{};
    return GkParser::consume();
  }
  void enterRecursionRule(antlr4::ParserRuleContext* context, size_t state, size_t rule,
                          int precedence) override {
    if (++depth_ > kMaxExprDepth) throw TooDeep{getInputStream()->index()};
    GkParser::enterRecursionRule(context, state, rule, precedence);
  }
  void unrollRecursionContexts(antlr4::ParserRuleContext* parent) override {
    --depth_;
    GkParser::unrollRecursionContexts(parent);
  }
  void restart() {
    reset();
    depth_ = 0;
  }

 private:
  Stop& stop_;
  int depth_ = 0;
};

/// One text on its way through the parser; owns what the parse tree points into.
class Parse {
 public:
  Parse(std::string_view text, int32_t file, uint32_t base, bool fragment, Stop& stop)
      : text_(text),
        file_(file),
        base_(base),
        fragment_(fragment),
        list_(layout(lex(text, file, base, stop), text, file, base)),
        stream_(list_.tokens),
        parser_(&stream_, stop) {
    parser_.removeErrorListeners();
  }

  const TokenList& list() const { return list_; }

  /// SLL, which is right for every text without mistakes and several times as fast; then LL with
  /// messages. Null when the text is too deep.
  template <class Context>
  Context* run(Context* (GkParser::*rule)(), std::vector<Error>& errors) {
    errors.insert(errors.end(), list_.errors.begin(), list_.errors.end());
    if (list_.too_deep) return nullptr;
    try {
      return twice(rule, errors);
    } catch (const Stopped&) {
      errors = {stop_error()};
      return nullptr;
    }
  }

 private:
  template <class Context>
  Context* twice(Context* (GkParser::*rule)(), std::vector<Error>& errors) {
    auto* simulator = parser_.getInterpreter<antlr4::atn::ParserATNSimulator>();
    try {
      simulator->setPredictionMode(antlr4::atn::PredictionMode::SLL);
      parser_.setErrorHandler(std::make_shared<antlr4::BailErrorStrategy>());
      return (parser_.*rule)();
    } catch (const antlr4::ParseCancellationException&) {
    } catch (const TooDeep& e) {
      return too_deep(e, errors), nullptr;
    }
    try {
      parser_.restart();
      simulator->setPredictionMode(antlr4::atn::PredictionMode::LL);
      parser_.setErrorHandler(std::make_shared<Recovery>(list_, text_, file_, base_, fragment_, errors));
      return (parser_.*rule)();
    } catch (const Enough&) {
      return nullptr;
    } catch (const antlr4::RecognitionException&) {
      return nullptr;  // reported; only a fragment has no statement to recover at
    } catch (const TooDeep& e) {
      return too_deep(e, errors), nullptr;
    }
  }

  void too_deep(const TooDeep& e, std::vector<Error>& errors) const {
    const Token& t = list_.tokens[e.token];
    errors.push_back(syntax_error("E0105",
                                  fmt::format("expressions are nested more than {} deep", kMaxExprDepth),
                                  {file_, t.begin, t.end})
                         .help("name the inner parts with `let`, or move them into functions"));
  }

  std::string_view text_;
  int32_t file_;
  uint32_t base_;
  bool fragment_;
  TokenList list_;
  SmallTokens stream_;
  LimitedParser parser_;
};

void sort_errors(std::vector<Error>& errors) {
  std::stable_sort(errors.begin(), errors.end(),
                   [](const Error& a, const Error& b) { return a.span.begin < b.span.begin; });
}

Module build_module(GkParser::FileContext* tree, const TokenList& list, std::string_view text, int32_t file,
                    uint32_t base, std::vector<Error>& errors, Stop& stop) {
  Module m;
  Builder builder(list, text, file, base, errors, stop);
  const std::vector<Error> syntax = errors;
  for (GkParser::LineContext* line : tree->line()) {
    if (line->stmt() == nullptr || line->end == nullptr) continue;
    // A statement with a mistake has holes in its tree.
    uint32_t begin = list.tokens[line->start->getTokenIndex()].begin;
    uint32_t end = list.tokens[line->end->getTokenIndex()].end;
    bool broken = std::any_of(syntax.begin(), syntax.end(),
                              [&](const Error& e) { return e.span.begin >= begin && e.span.begin <= end; });
    if (broken) continue;
    try {
      m.stmts.push_back(builder.line(line));
    } catch (const Stopped&) {
      errors = {stop_error()};
      return m;
    }
  }
  return m;
}

}  // namespace

// ANTLR's parsers of one grammar share what they learn of it, which is not safe from two threads.
static std::mutex& antlr_mutex() {
  static std::mutex mutex;
  return mutex;
}

ParseResult parse(const SourceMap& sources, int32_t file, const std::function<bool()>& interrupted) {
  std::lock_guard lock(antlr_mutex());
  ParseResult result;
  std::string_view text = sources.text(file);
  result.module.span = {file, 0, static_cast<uint32_t>(text.size())};
  if (size_t bad = first_invalid_utf8(text); bad != std::string_view::npos) {
    auto at = static_cast<uint32_t>(bad);
    result.errors.push_back(syntax_error("E0102",
                                         fmt::format("the byte 0x{:02X} at offset {} is not UTF-8",
                                                     static_cast<unsigned char>(text[bad]), bad),
                                         {file, at, at + 1})
                                .help("save the file as UTF-8"));
    return result;
  }
  uint32_t base = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  text.remove_prefix(base);
  Stop stop(interrupted);
  if (stop.now()) {
    result.errors = {stop_error()};
    return result;
  }
  Parse p(text, file, base, false, stop);
  GkParser::FileContext* tree = p.run(&GkParser::file, result.errors);
  if (tree != nullptr) {
    Span whole = result.module.span;
    result.module = build_module(tree, p.list(), text, file, base, result.errors, stop);
    result.module.span = whole;
  }
  sort_errors(result.errors);
  return result;
}

ExprPtr parse_fragment(std::string_view text, int32_t file, uint32_t base, std::vector<Error>& errors,
                       size_t& count) {
  size_t before = errors.size();
  const std::function<bool()> never;
  Stop stop(never);
  Parse p(text, file, base, true, stop);
  count += p.list().tokens.size();
  GkParser::FragmentExprContext* tree = p.run(&GkParser::fragmentExpr, errors);
  if (tree == nullptr || errors.size() != before) return nullptr;
  return Builder(p.list(), text, file, base, errors, stop).expr(tree->expr());
}

bool is_incomplete(std::string_view text) {
  if (first_invalid_utf8(text) != std::string_view::npos) return false;
  const std::function<bool()> never;
  Stop stop(never);
  return layout(lex(text, 0, 0, stop), text, 0, 0).open_at_end;
}

}  // namespace gk::syntax
