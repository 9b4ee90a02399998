// The pass between lexer and parser: see Note [Layout] below.
#include <antlr4-runtime.h>

#include <algorithm>
#include <array>

#include "GkLexer.h"
#include "compiler/syntax/parse.h"
#include "compiler/syntax/tokens.h"
#include "fmt/format.h"

// Note [Layout]
// The parser wants one terminator after every statement and balanced brackets. This pass walks the raw
// tokens once with a stack of open brackets. A newline counts where the innermost bracket is a { (or
// none is open), unless the line ends in an operator or the next one starts with |>, else, or a clause
// of a node or kernel. A bracket left open is closed where the mistake shows (a statement keyword at the
// start of a line inside parentheses, the wrong closing bracket, the end of the text), with one error
// there; what follows then parses as if it had been right.

namespace gk::syntax {
namespace {

using L = antlr::GkLexer;
constexpr int kEnd = -1;

/// Tokens that go on with what a } ended, on the same line.
bool continues_block(int t) {
  switch (t) {
    case kEnd:
    case L::NEWLINE:
    case L::SEMI:
    case L::RBRACE:
    case L::RPAREN:
    case L::RBRACK:
    case L::COMMA:
    case L::DOT:
    case L::ELSE:
    case L::LBRACE:
    case L::LPAREN:
    case L::LBRACK:
    case L::FATARROW:
    case L::IN:
    case L::COLON: return true;
    default: return continues_after(t) && t != L::NOT && t != L::TILDE && t != L::BAD_NOT;
  }
}

int closer_of(int open) { return open == L::LPAREN ? L::RPAREN : open == L::LBRACK ? L::RBRACK : L::RBRACE; }
const char* spelling_of(int bracket) {
  switch (bracket) {
    case L::LPAREN: return "(";
    case L::RPAREN: return ")";
    case L::LBRACK: return "[";
    case L::RBRACK: return "]";
    case L::LBRACE: return "{";
    default: return "}";
  }
}

class Layout {
 public:
  Layout(RawTokens raw, std::string_view text, int32_t file, uint32_t base)
      : raw_(std::move(raw)), text_(text), file_(file), base_(base) {
    out_.errors = std::move(raw_.errors);
    out_.too_deep = raw_.too_deep;
    out_.tokens.reserve(raw_.tokens.size() + raw_.tokens.size() / 4);
  }

  TokenList run() {
    frames_.push_back({});
    for (at_ = 0; raw_.tokens[at_].type != kEnd && !out_.too_deep; ++at_) step(raw_.tokens[at_]);
    // A mistake in what was read says more.
    if (raw_.cut && !out_.too_deep) out_.errors.push_back(std::move(*raw_.cut));
    out_.too_deep = out_.too_deep || raw_.cut;
    finish();
    if (!out_.too_deep) retag();
    return std::move(out_);
  }

 private:
  struct Frame {
    int open = 0;          // LPAREN, LBRACK, LBRACE; 0 for the file
    size_t index = 0;      // of the bracket in out_.tokens
    uint32_t begin = 0;    // its offset
    bool postfix = false;  // a call or an index
    int head = 0;          // first token of the current statement
    int links = 0;         // operators since the last separator
    bool braces() const { return open == 0 || open == L::LBRACE; }
  };

  std::string_view slice(const Token& t) const { return text_.substr(t.begin - base_, t.end - t.begin); }
  Span span(const Token& t) const { return {file_, t.begin, t.end}; }
  int last(size_t back = 0) const {
    return back < out_.tokens.size() ? out_.tokens[out_.tokens.size() - 1 - back].type : 0;
  }
  const Token& raw_at(size_t i) const { return raw_.tokens[std::min(i, raw_.tokens.size() - 1)]; }
  bool at_statement_start() const {
    if (!frames_.back().braces()) return false;
    int t = last();
    return t == 0 || is_terminator(t) || (t == L::LBRACE && out_.tokens.size() == frames_.back().index + 1);
  }
  void report(Error e) {
    if (out_.errors.size() < kMaxErrors) out_.errors.push_back(std::move(e));
  }

  void emit(int type, uint32_t begin, uint32_t end) {
    Frame& f = frames_.back();
    if (at_statement_start() && !is_terminator(type)) f.head = type;
    int depth = static_cast<int>(frames_.size()) - 1;
    out_.tokens.push_back({type, begin, end, depth});
  }
  void emit_newline(uint32_t at) {
    emit(L::NEWLINE, at, at);
    frames_.back().links = 0;
  }

  void link(const Token& t, int weight) {
    if ((frames_.back().links += weight) <= kMaxChain) return;
    bool branches = t.type == L::ELSE;
    report(syntax_error("E0105",
                        branches ? "too many `else if` in one chain"
                                 : fmt::format("more than {} operators in one expression", kMaxChain),
                        span(t))
               .help(branches ? "look the value up in an array, or split the chain into functions"
                              : "name parts of it with `let`, or write a loop"));
    out_.too_deep = true;
  }

  // ---- brackets ----------------------------------------------------------------------------------

  void open_bracket(const Token& t) {
    bool postfix = t.type != L::LBRACE && ends_operand(last());
    if (postfix) link(t, 1);
    size_t index = out_.tokens.size();
    emit(t.type, t.begin, t.end);
    Frame f;
    f.open = t.type;
    f.index = index;
    f.begin = t.begin;
    f.postfix = postfix;
    frames_.push_back(f);
  }

  /// Closes the innermost bracket with a token of its own kind at [begin, end).
  void close_top(uint32_t begin, uint32_t end) {
    Frame f = frames_.back();
    if (f.open == L::LBRACE && !is_terminator(last()) && last() != L::LBRACE && last() != L::REBIND_LBRACE)
      emit_newline(begin);
    frames_.pop_back();
    out_.tokens.push_back({closer_of(f.open), begin, end, static_cast<int>(frames_.size()) - 1});
    matches_.push_back({f.index, out_.tokens.size() - 1});
  }

  Error unclosed(const Frame& f) const {
    return syntax_error("E0107", fmt::format("this `{}` is never closed", spelling_of(f.open)),
                        {file_, f.begin, f.begin + 1})
        .mark(fmt::format("no `{}` for it", spelling_of(closer_of(f.open))));
  }

  void close_bracket(const Token& t) {
    size_t level = frames_.size();
    while (level > 1 && closer_of(frames_[level - 1].open) != t.type) --level;
    if (level == 1) {  // nothing open of this kind
      if (frames_.size() > 1 && !frames_.back().braces()) {
        const Frame& f = frames_.back();
        report(
            syntax_error("E0107",
                         fmt::format("expected `{}`, found `{}`", spelling_of(closer_of(f.open)), slice(t)),
                         span(t))
                .label({file_, f.begin, f.begin + 1}, "to close this"));
        if (t.type == L::RBRACE) return;
        close_top(t.begin, t.end);
        return;
      }
      Error e = syntax_error("E0107", fmt::format("`{}` closes nothing", slice(t)), span(t));
      if (t.type == L::RBRACE && last_block_open_ >= 0)
        e.notes.push_back("every `{` before it is closed already; is there one `}` too many?");
      report(std::move(e));
      return;
    }
    if (level < frames_.size()) {
      report(unclosed(frames_.back()).label(span(t), fmt::format("`{}` comes first", slice(t))));
      while (frames_.size() > level) close_top(t.begin, t.begin);
    }
    if (t.type == L::RBRACE) note_indentation(frames_.back(), t);
    close_top(t.begin, t.end);
    if (t.type == L::RBRACE && frames_.back().braces()) {
      const Token& next = raw_at(at_ + 1);
      if (!continues_block(next.type) && !clause_ahead(next) && !slice_is(next, "elif")) emit_newline(t.end);
    }
  }

  bool slice_is(const Token& t, std::string_view word) const {
    return t.type == L::IDENT && slice(t) == word;
  }

  bool is_placement(const Token& t) const { return slice_is(t, "pinned") || slice_is(t, "host"); }

  int indentation(uint32_t offset, bool& first_on_line) const {
    size_t i = offset - base_;
    size_t start = text_.rfind('\n', i == 0 ? 0 : i - 1);
    start = start == std::string_view::npos || i == 0 ? 0 : start + 1;
    size_t text_start = text_.find_first_not_of(" \t", start);
    first_on_line = text_start == i;
    return static_cast<int>(text_start - start);
  }

  /// Remembers the first block whose } stands left of the line that opened it: where a } is missing.
  void note_indentation(const Frame& f, const Token& close) {
    last_block_open_ = f.begin;
    bool first = false, ignored = false;
    int closing = indentation(close.begin, first);
    if (first && !suspicious_.valid() && closing < indentation(f.begin, ignored))
      suspicious_ = {file_, f.begin, f.begin + 1};
  }

  // ---- newlines ----------------------------------------------------------------------------------

  /// `after` of a node, `over` of a kernel.
  bool clause_ahead(const Token& t) const {
    int head = frames_.back().head;
    return (t.type == L::AFTER && head == L::NODE) || (t.type == L::OVER && head == L::KERNEL);
  }

  void newline(const Token& t) {
    const Token& next = raw_at(at_ + 1);
    if (next.type == L::NEWLINE) return;  // the last of several decides
    const bool named_var = next.type == L::VAR && !declares(at_ + 1);
    bool statement = (starts_only_statements(next.type) && !named_var) ||
                     (is_contextual(next.type) && next.type != L::AFTER && next.type != L::OVER &&
                      next.type != L::AS && is_word(raw_at(at_ + 2).type));
    if (!frames_.back().braces()) {
      if (!statement) return;
      report(unclosed(frames_.back()).label(span(next), "a new statement starts here"));
      while (!frames_.back().braces()) close_top(t.begin, t.begin);
    }
    int before = last();
    if (before == 0 || is_terminator(before)) return;
    if (before == L::LBRACE && out_.tokens.size() == frames_.back().index + 1) return;
    if (next.type == L::PIPE || next.type == L::ELSE || clause_ahead(next)) return;
    if (before == L::RBRACE && slice_is(next, "elif")) return;
    if (continues_after(before) && !statement) return;
    emit(L::NEWLINE, t.begin, t.end);
    frames_.back().links = 0;
  }

  // ---- words -------------------------------------------------------------------------------------

  /// What a name follows that is declared: `var` is none, and is told to be a keyword.
  static bool is_declaration(int before) {
    return before == L::LET || before == L::VAR || before == L::CONST;
  }
  /// Whether a `var` declares: it does not where it is called, as in `var(x)`. `var (a, b) = …` would.
  bool declares(size_t at) const {
    if (raw_at(at + 1).type != L::LPAREN) return true;
    int depth = 0;
    for (size_t i = at + 1; i < raw_.tokens.size(); ++i) {
      const int t = raw_.tokens[i].type;
      if (t == L::LPAREN) ++depth;
      if (t == L::RPAREN && --depth == 0) return raw_at(i + 1).type == L::ASSIGN;
      if (t == L::NEWLINE || t == kEnd) break;
    }
    return false;
  }

  /// The type of a contextual keyword here: itself or IDENT.
  int settle(const Token& t) const {
    bool start = at_statement_start();
    int next = raw_at(at_ + 1).type;
    bool named = is_word(next) || next == L::LBRACE;
    bool keyword = false;
    switch (t.type) {
      case L::CAPTURED: keyword = start && next == L::FN; break;
      case L::KERNEL:
      case L::GRAPH: keyword = start && named; break;
      case L::NODE:
      case L::TYPE:
      case L::UPDATE: keyword = start && is_word(next); break;
      case L::TEST:
      case L::BENCH: keyword = start && (next == L::STRING || next == L::LBRACE); break;
      case L::AFTER: keyword = last() == L::IDENT && last(1) == L::NODE; break;
      case L::OVER: keyword = last() == L::RPAREN && frames_.back().head == L::KERNEL; break;
      case L::VAR: keyword = at_statement_start() ? declares(at_) : is_declaration(last()); break;
      case L::AS: keyword = last() == L::STRING && last(1) == L::IMPORT; break;
      default: return t.type;
    }
    return keyword ? t.type : static_cast<int>(L::IDENT);
  }

  /// The text of a name and the calls and indices behind it, or of what is in brackets.
  std::string raw_operand(size_t first) const {
    size_t last = first;
    int depth = 0;
    for (size_t i = first; i < raw_.tokens.size(); ++i) {
      const int t = raw_.tokens[i].type;
      if (t == kEnd || t == L::NEWLINE || t == L::SEMI) break;
      const bool open = t == L::LPAREN || t == L::LBRACK;
      if (depth == 0 && i > first && !open && t != L::DOT && raw_.tokens[i - 1].type != L::DOT) break;
      if (t == L::RPAREN || t == L::RBRACK) --depth;
      if (depth < 0) break;
      if (open) ++depth;
      last = i;
    }
    return std::string(text_.substr(raw_at(first).begin - base_, raw_at(last).end - raw_at(first).begin));
  }

  /// The text of the operand that ends with the token in front of this one: a name with its calls, indices
  /// and fields.
  std::string operand_before() const {
    size_t first = at_ - 1;
    int depth = 0;
    for (size_t i = at_; i-- > 0;) {
      const int t = raw_.tokens[i].type;
      if (t == L::RPAREN || t == L::RBRACK) ++depth;
      if (t == L::LPAREN || t == L::LBRACK) --depth;
      first = i;
      if (depth > 0 || i == 0) continue;
      const int before = raw_.tokens[i - 1].type;
      const bool bracket = t == L::LPAREN || t == L::LBRACK;
      if (t != L::DOT && before != L::DOT && !(bracket && ends_operand(before))) break;
    }
    const uint32_t begin = raw_at(first).begin;
    return std::string(text_.substr(begin - base_, raw_at(at_ - 1).end - begin));
  }

  bool inside_of(int head) const {
    return std::any_of(frames_.begin(), frames_.end(), [&](const Frame& f) { return f.head == head; });
  }

  /// C's `!` behind a name, as in Julia's `push!(x)`, or in front of nothing. Takes it.
  bool stray_not(const Token& t) {
    if (t.type != L::BAD_NOT) return false;
    const int next = raw_at(at_ + 1).type;
    const bool touches = at_ > 0 && raw_at(at_ - 1).end == t.begin && ends_operand(last());
    const bool before_operand = starts_expression(next) || next == L::LBRACK || next == L::MINUS ||
                                next == L::TILDE || next == L::NOT || next == L::BAD_NOT;
    if (!touches && before_operand) return false;
    report(syntax_error("E0104", "`!` is not gk", span(t)));
    return true;
  }

  /// Words and operators of other languages: one error, and the gk spelling goes on to the parser.
  int translate(const Token& t) {
    auto instead = [&](std::string_view right, int type) {
      report(syntax_error("E0104", fmt::format("`{}` is not gk", slice(t)), span(t))
                 .help(fmt::format("write `{}`", right)));
      return type;
    };
    switch (t.type) {
      case L::BAD_AND: return instead("and` or, between arrays, `&", L::AND);
      case L::BAD_OR: return instead("or` or, between arrays, `|", L::OR);
      case L::BAD_NOT: {
        const int next = raw_at(at_ + 1).type;
        if (!starts_expression(next) && next != L::LBRACK) {
          report(syntax_error("E0104", "`!` is not gk", span(t)));
          return L::NOT;
        }
        const std::string operand = raw_operand(at_ + 1);
        return instead(fmt::format("not {0}` or, for an array, `~{0}", operand), L::NOT);
      }
      case L::IDENT: break;
      default: return settle(t);
    }
    std::string_view word = slice(t);
    int next = raw_at(at_ + 1).type;
    if (word == "True") return instead("true", L::TRUE);
    if (word == "False") return instead("false", L::FALSE);
    if (at_statement_start() && is_word(next) && (word == "def" || word == "func" || word == "function"))
      return instead("fn", L::FN);
    if (word == "lambda" && (is_word(next) || next == L::COLON))
      report(syntax_error("E0104", "`lambda` is not gk", span(t)).help("write `x => x + 1`"));
    if (word == "None")
      report(syntax_error("E0104", "`None` is not gk", span(t))
                 .note("every name has a value; there is no empty one")
                 .help("for a new axis in an index, write `new`"));
    return L::IDENT;
  }

  /// C's `x++`: two signs together with nothing after them. Takes both.
  bool increment(const Token& t) {
    if (t.type != L::PLUS && t.type != L::MINUS) return false;
    const Token& next = raw_at(at_ + 1);
    if (next.type != t.type || next.begin != t.end || !ends_operand(last())) return false;
    int after = raw_at(at_ + 2).type;
    if (after != kEnd && !is_terminator(after) && after != L::RPAREN && after != L::RBRACE) return false;
    // The parser says what C's `for (i = 0; …; i++)` is.
    const bool of_loop =
        frames_.size() > 1 && !frames_.back().braces() && frames_[frames_.size() - 2].head == L::FOR;
    std::string sign(slice(t));
    const std::string place = operand_before();
    const bool name = place.find_first_of(".[(") == std::string::npos;
    if (!of_loop)
      report(
          syntax_error("E0104", fmt::format("`{0}{0}` is not gk", sign), {file_, t.begin, next.end})
              .help(fmt::format("write `{} {}{}= 1`", place, name || inside_of(L::KERNEL) ? "" : ".", sign)));
    ++at_;
    return true;
  }

  void step(const Token& t) {
    if (auto doc = raw_.docs.find(at_); doc != raw_.docs.end()) out_.docs[out_.tokens.size()] = doc->second;
    switch (t.type) {
      case L::NEWLINE: newline(t); return;
      case L::LPAREN:
      case L::LBRACK:
      case L::LBRACE: open_bracket(t); return;
      case L::RPAREN:
      case L::RBRACK:
      case L::RBRACE: close_bracket(t); return;
      default: break;
    }
    Frame& f = frames_.back();
    if ((last() == L::RBRACE || at_statement_start()) && slice_is(t, "elif")) {
      report(syntax_error("E0104", "`elif` is not gk", span(t)).help("write `else if`"));
      emit(L::ELSE, t.begin, t.begin);
      emit(L::IF, t.begin, t.end);
      return;
    }
    if (increment(t) || stray_not(t)) return;
    int type = translate(t);
    switch (type) {
      case L::UNTERMINATED:  // the closing brackets of its line are inside it
        emit(L::STRING, t.begin, t.end);
        while (!frames_.back().braces()) close_top(t.end, t.end);
        return;
      case L::SEMI:
        if (f.open == L::LBRACK && (!f.postfix || is_placement(out_.tokens[f.index - 1])))
          out_.tokens[f.index].type = L::LIST_LBRACK;
        [[fallthrough]];
      case L::COMMA: f.links = 0; break;
      case L::ELSE: link(t, kMaxChain / kMaxNesting); break;
      case L::DOT: link(t, 1); break;
      case L::ARROW:
        if (f.open == L::LBRACE && frames_[frames_.size() - 2].head == L::UPDATE && f.head != L::FN)
          out_.tokens[f.index].type = L::REBIND_LBRACE;
        break;
      default:
        if (continues_after(type)) link(t, 1);
    }
    emit(type, t.begin, t.end);
  }

  void finish() {
    const Token& end = raw_.tokens.back();
    // Text with a mistake is not incomplete: more of it would not mend the mistake.
    out_.open_at_end = out_.errors.empty() && (frames_.size() > 1 || continues_after(last()));
    if (frames_.size() > 1 && !out_.too_deep) {
      Error e = unclosed(frames_.back());
      for (size_t i = frames_.size() - 1; i-- > 1 && e.labels.size() < 2;)
        e.labels.push_back({{file_, frames_[i].begin, frames_[i].begin + 1}, "nor this one"});
      if (suspicious_.valid() && frames_.back().open == L::LBRACE)
        e.labels.push_back(
            {suspicious_, "the `}` for this one stands further left: the missing one may belong here"});
      report(std::move(e));
    }
    while (frames_.size() > 1) close_top(end.begin, end.begin);
    if (!out_.tokens.empty() && !is_terminator(last())) emit_newline(end.begin);
    emit(kEnd, end.begin, end.end);
  }

  // ---- second look -------------------------------------------------------------------------------

  /// Gives the brackets and words whose meaning depends on what follows their own types.
  void retag() {
    std::vector<Token>& t = out_.tokens;
    std::vector<size_t> match(t.size(), 0);
    for (auto [open, close] : matches_) match[open] = close;
    for (size_t i = 0; i + 1 < t.size(); ++i) {
      int next = t[i + 1].type;
      switch (t[i].type) {
        case L::LPAREN:
          if (i > 1 && t[i - 1].type == L::IDENT && t[i - 2].type == L::FN) break;  // parameters
          if (match[i] != 0 && t[match[i] + 1].type == L::FATARROW) t[i].type = L::LAMBDA_LPAREN;
          break;
        case L::LAUNCH:
          if (next == L::LPAREN && match[i + 1] != 0 && starts_expression(t[match[i + 1] + 1].type))
            t[i].type = L::LAUNCH_WITH;
          break;
        case L::IDENT:
          if (next == L::IDENT || next == L::LIST_LBRACK) {
            if (is_placement(t[i])) t[i].type = L::PLACEMENT;
          }
          [[fallthrough]];
        case L::UNDERSCORE:
          if (next == L::FATARROW) t[i].type = L::LAMBDA_NAME;
          break;
        default: break;
      }
    }
  }

  RawTokens raw_;
  std::string_view text_;
  int32_t file_;
  uint32_t base_;
  TokenList out_;
  std::vector<Frame> frames_;
  std::vector<std::pair<size_t, size_t>> matches_;
  size_t at_ = 0;
  int64_t last_block_open_ = -1;
  Span suspicious_{};
};

}  // namespace

TokenList layout(RawTokens raw, std::string_view text, int32_t file, uint32_t base) {
  return Layout(std::move(raw), text, file, base).run();
}

}  // namespace gk::syntax
