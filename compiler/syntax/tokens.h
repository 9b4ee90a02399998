// Tokens as the parser sees them. Owns the two steps in front of the parser: lex (ANTLR's lexer, bytes
// checked first) and layout (which newlines count, contextual keywords, bracket matching, limits on
// nesting). Promises balanced brackets whatever the text, so that the parser and its recovery can rely
// on `depth`. Not for anything outside compiler/syntax.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/base/error.h"

namespace gk::syntax {

/// Operators in one bracket and statement that may follow each other: they nest to the left in the tree.
inline constexpr int kMaxChain = 2000;
/// Tokens in one line: a tree takes some hundred times the memory of its text.
inline constexpr int kMaxInLine = 100000;
/// Diagnostics kept for one text.
inline constexpr size_t kMaxErrors = 50;

struct Token {
  int type = 0;        // antlr::GkLexer's numbers; -1 is the end of the text
  uint32_t begin = 0;  // byte offsets into the whole file
  uint32_t end = 0;
  int depth = 0;  // open brackets around it; brackets themselves count as outside
};

/// What lex() found. `docs` maps an index into `tokens` to the text of the `##` lines before it.
struct RawTokens {
  std::vector<Token> tokens;  // ends with type -1
  std::unordered_map<size_t, std::string> docs;
  std::vector<Error> errors;
  bool too_deep = false;     // nesting over kMaxNesting: nothing more should look at this text
  std::optional<Error> cut;  // why the tokens end before the text does
};

struct TokenList {
  std::vector<Token> tokens;
  std::unordered_map<size_t, std::string> docs;
  std::vector<Error> errors;
  bool too_deep = false;
  bool open_at_end = false;  // no mistake so far, but a bracket is open or the last token wants more
};

/// Asks now and then whether somebody wants the parser to stop.
class Stop {
 public:
  explicit Stop(const std::function<bool()>& interrupted) : interrupted_(interrupted) {}
  /// For what takes a microsecond.
  bool wanted() { return ++asked_ % 1024 == 0 && now(); }
  /// For what may take long.
  bool now() const { return interrupted_ && interrupted_(); }

 private:
  const std::function<bool()>& interrupted_;
  uint32_t asked_ = 0;
};
/// Thrown where many frames of the parser, or of a walk over its tree, are left.
struct Stopped {};
inline Error stop_error() { return make_error(ErrorKind::Interrupted, "E0806", "interrupted"); }

/// `text` is the part of file `file` that starts at byte `base`. Where it is stopped, that is its last error
/// and nothing more should look at the text.
RawTokens lex(std::string_view text, int32_t file, uint32_t base, Stop& stop);
Error too_many_in_line(Span span);
/// Inserts and drops newlines, settles contextual keywords, balances brackets.
TokenList layout(RawTokens raw, std::string_view text, int32_t file, uint32_t base);

/// How a token type is written in messages: "`+`", "a name", "the end of the statement".
std::string describe(int type);
/// How a found token is written: "`foo`", "the end of the line".
std::string describe(const Token& t, std::string_view text, uint32_t base);

/// A keyword only in its place: node, after, over, …
bool is_contextual(int type);
/// A name, or what may turn out to be one.
bool is_word(int type);
/// Keywords that cannot stand inside an expression: at the start of a line they show that a bracket
/// further up was left open.
bool starts_only_statements(int type);
/// A newline that counts, or `;`.
bool is_terminator(int type);
/// True for the last token of a name, literal or bracket: what follows directly is a call or an index.
bool ends_operand(int type);
/// True when a newline after this token does not end the statement.
bool continues_after(int type);
/// True when an expression can start with this token.
bool starts_expression(int type);

inline Error syntax_error(std::string_view code, std::string message, Span span) {
  return make_error(ErrorKind::Syntax, code, std::move(message), span);
}

}  // namespace gk::syntax
