#include <antlr4-runtime.h>

#include <cctype>

#include "GkLexer.h"
#include "compiler/syntax/number_array.h"
#include "compiler/syntax/parse.h"
#include "compiler/syntax/streams.h"
#include "compiler/syntax/tokens.h"
#include "compiler/syntax/utf8.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using antlr::GkLexer;

bool is_quote(uint32_t c) { return c == '\'' || c == 0x201C || c == 0x201D || c == 0x2018 || c == 0x2019; }

/// The length of a text in other quotes than gk's that `text` begins with, on one line; 0 where there is
/// none.
size_t quoted_length(std::string_view text) {
  const auto first = decode_utf8(text, 0);
  if (!is_quote(first.code_point)) return 0;
  const uint32_t close = first.code_point == 0x201C   ? 0x201D
                         : first.code_point == 0x2018 ? 0x2019
                                                      : first.code_point;
  for (size_t i = first.size; i < text.size() && text[i] != '\n' && text[i] != '\r';) {
    const auto c = decode_utf8(text, i);
    i += c.size;
    if (c.code_point == close) return i;
  }
  return 0;
}

std::string_view inside_quotes(std::string_view quoted) {
  quoted.remove_prefix(decode_utf8(quoted, 0).size);
  size_t last = quoted.size() - 1;
  while (last > 0 && (static_cast<unsigned char>(quoted[last]) & 0xC0) == 0x80) --last;
  return quoted.substr(0, last);
}

/// `before` is the character in front of it.
Error unknown_character(std::string_view found, Span span, char before) {
  auto first = decode_utf8(found, 0);
  uint32_t c = first.code_point;
  if (c < 0x20 || c == 0x7F)
    return syntax_error("E0101", fmt::format("the character U+{:04X} is not part of any gk text", c), span)
        .help("remove it; the file may not be a text file");
  std::string shown(found.substr(0, first.size));
  Error e = syntax_error("E0101", fmt::format("unexpected character `{}`", shown), span);
  const bool after_operand =
      std::isalnum(static_cast<unsigned char>(before)) || before == ')' || before == ']';
  if (c == '\'' && after_operand) return std::move(e).help("the transpose of x is `x.T`");
  const bool quoted = is_quote(c) && found.size() > first.size;
  if (quoted && found.find('"') == std::string_view::npos)
    return std::move(e).help(
        fmt::format("strings are written with straight double quotes: `\"{}\"`", inside_quotes(found)));
  switch (c) {
    case 0x201C:
    case 0x201D:
    case '\'':
    case 0x2018:
    case 0x2019: return std::move(e).help("strings are written with straight double quotes: \"text\"");
    case 0x2212:
    case 0x2013:
    case 0x2014: return std::move(e).help("the minus sign is `-`");
    case 0x00D7:
    case 0x00B7: return std::move(e).help("multiplication is `*`, the matrix product `@`");
    case 0x00F7: return std::move(e).help("division is `/`, floor division `//`");
    case 0x2264: return std::move(e).help("write `<=`");
    case 0x2265: return std::move(e).help("write `>=`");
    case 0x2260: return std::move(e).help("write `!=`");
    case '?': return std::move(e).help("a choice is written `if c { a } else { b }`");
    case '$':
    case '`':
    case '\\': break;
    default: break;
  }
  return e;
}

std::string doc_text(std::string_view line) {
  line.remove_prefix(2);
  if (!line.empty() && line[0] == ' ') line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  return std::string(line);
}

bool opens(int t) { return t == GkLexer::LPAREN || t == GkLexer::LBRACK || t == GkLexer::LBRACE; }
bool closes(int t) { return t == GkLexer::RPAREN || t == GkLexer::RBRACK || t == GkLexer::RBRACE; }

}  // namespace

Error too_many_in_line(Span span) {
  return syntax_error("E0105", fmt::format("more than {} words and signs in one line", kMaxInLine), span)
      .help("break the line; long tables are better read from a file, with `load`");
}

RawTokens lex(std::string_view text, int32_t file, uint32_t base, Stop& stop) {
  RawTokens out;
  TextStream input(text);
  GkLexer lexer(&input);
  lexer.removeErrorListeners();

  int depth = 0, in_line = 0;
  uint32_t line_begin = base;
  std::string doc;
  int newlines_since_doc = 0;
  int previous = GkLexer::NEWLINE;
  for (;;) {
    auto token = lexer.nextToken();
    int type = static_cast<int>(static_cast<ptrdiff_t>(token->getType()));
    if (token->getType() == antlr4::Token::EOF) break;
    const bool long_one = previous == GkLexer::NUMBER_ARRAY;
    if (long_one ? stop.now() : stop.wanted()) {
      out.errors = {stop_error()};
      out.too_deep = true;
      break;
    }
    in_line = type == GkLexer::NEWLINE ? 0 : in_line + 1;
    if (in_line > kMaxInLine) {
      out.cut = too_many_in_line({file, base + static_cast<uint32_t>(token->getStartIndex()),
                                  base + static_cast<uint32_t>(token->getStopIndex() + 1)});
      break;
    }
    Token t{type, base + static_cast<uint32_t>(token->getStartIndex()),
            base + static_cast<uint32_t>(token->getStopIndex() + 1), 0};
    std::string_view slice = text.substr(t.begin - base, t.end - t.begin);
    Span span{file, t.begin, t.end};
    switch (type) {
      case GkLexer::DOC:
        if (previous == GkLexer::NEWLINE) {
          if (!doc.empty()) doc += '\n';
          doc += doc_text(slice);
          newlines_since_doc = 0;
        }
        continue;  // `previous` stays: a doc comment is as good as white space
      case GkLexer::UNKNOWN: {
        const char before = t.begin > base ? text[t.begin - base - 1] : '\0';
        const bool transposes = slice == "'" && ends_operand(previous) && before != ' ';
        if (const size_t length = transposes ? 0 : quoted_length(text.substr(t.begin - base)); length > 0) {
          t.end = t.begin + static_cast<uint32_t>(length);
          if (out.errors.size() < kMaxErrors)
            out.errors.push_back(
                unknown_character(text.substr(t.begin - base, length), {file, t.begin, t.end}, '\0'));
          t.type = type = GkLexer::STRING;
          input.seek(t.end - base);
          break;
        }
        // A run of the same kind of rubbish is one mistake.
        bool same_run =
            !out.errors.empty() && out.errors.back().code == "E0101" && out.errors.back().span.end == t.begin;
        if (same_run) {
          out.errors.back().span.end = t.end;
          continue;
        }
        Error e = unknown_character(slice, span, before);
        // So are the two quotes of a string.
        bool repeated = !out.errors.empty() && !e.helps.empty() && out.errors.back().helps == e.helps &&
                        out.errors.back().span.begin >= line_begin;
        if (!repeated && out.errors.size() < kMaxErrors) out.errors.push_back(std::move(e));
        continue;
      }
      case GkLexer::UNTERMINATED: {
        size_t stop = text.find_first_of("\r\n", t.begin - base);
        if (stop == std::string_view::npos) stop = text.size();
        t.end = base + static_cast<uint32_t>(stop);
        Error e = syntax_error("E0103", "this string is not closed", {file, t.begin, t.end});
        e.span_text = "no closing quote on this line";
        e.helps.push_back("close it with `\"`; a line break inside a string is written \\n");
        if (out.errors.size() < kMaxErrors) out.errors.push_back(std::move(e));
        // Go on at the line's end: the lexer would otherwise try every later quote as a start.
        input.seek(stop);
        break;
      }
      case GkLexer::LBRACK: {
        if (ends_operand(previous)) break;  // an index
        const auto length = scan_number_array(text.substr(t.begin - base), nullptr);
        if (!length) break;
        t.type = type = GkLexer::NUMBER_ARRAY;
        t.end = t.begin + static_cast<uint32_t>(*length);
        input.seek(t.end - base);
        break;
      }
      case GkLexer::NEWLINE:
        line_begin = t.end;
        if (!doc.empty() && ++newlines_since_doc > 1) doc.clear();
        break;
      default: break;
    }
    if (opens(type)) ++depth;
    if (closes(type) && depth > 0) --depth;
    if (depth > kMaxNesting) {
      out.errors.push_back(
          syntax_error("E0105", fmt::format("brackets are nested more than {} deep", kMaxNesting), span)
              .help("name the inner parts with `let`, or move them into functions"));
      out.too_deep = true;
      break;
    }
    if (type != GkLexer::NEWLINE && !doc.empty()) {
      out.docs.emplace(out.tokens.size(), std::move(doc));
      doc.clear();
    }
    previous = type;
    out.tokens.push_back(t);
  }
  uint32_t end = base + static_cast<uint32_t>(text.size());
  out.tokens.push_back({-1, end, end, 0});
  return out;
}

}  // namespace gk::syntax
