// What a syntax error's `help:` lines say: the gk form of what stands there, where it can be told.
#include <algorithm>
#include <array>
#include <charconv>

#include "GkParser.h"
#include "compiler/syntax/recover.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using P = antlr::GkParser;

/// Modules of Python, which people import for functions that gk has by itself.
bool is_python_module(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kModules = {
      "numpy", "math", "torch", "jax", "scipy", "random", "cupy", "pandas", "matplotlib"};
  return std::find(kModules.begin(), kModules.end(), name) != kModules.end();
}

bool is_binary_operator(int t) {
  switch (t) {
    case P::PLUS:
    case P::MINUS:
    case P::STAR:
    case P::SLASH:
    case P::CARET:
    case P::POW:
    case P::EQ:
    case P::NE:
    case P::LT:
    case P::LE:
    case P::GT:
    case P::GE: return true;
    default: return false;
  }
}

}  // namespace

std::string_view Recovery::slice(size_t first, size_t last) const {
  return text_.substr(at(first).begin - base_, at(last).end - at(first).begin);
}

size_t Recovery::operand_from(size_t i) const {
  auto close = [&](size_t open) {
    size_t k = open + 1;
    while (at(k).type != -1 && at(k).depth > at(open).depth) ++k;
    return k;
  };
  if (at(i).type == P::MINUS) ++i;
  if (at(i).type == P::LPAREN || at(i).type == P::LBRACK) i = close(i);
  while (at(i + 1).type == P::LPAREN || at(i + 1).type == P::LBRACK ||
         (at(i + 1).type == P::DOT && at(i + 2).type == P::IDENT))
    i = at(i + 1).type == P::DOT ? i + 2 : close(i + 1);
  return i;
}

size_t Recovery::operand_to(size_t i) const {
  while (i > 0) {
    if (at(i).type == P::RPAREN || at(i).type == P::RBRACK) {
      const int depth = at(i).depth;
      while (i > 0 &&
             !(at(i - 1).depth == depth && (at(i - 1).type == P::LPAREN || at(i - 1).type == P::LBRACK)))
        --i;
      if (i > 0) --i;
      if (i == 0 || !ends_operand(at(i - 1).type)) return i;
      --i;
    } else if (at(i).type == P::IDENT && at(i - 1).type == P::DOT && i > 1) {
      i -= 2;
    } else {
      return i;
    }
  }
  return i;
}

size_t Recovery::end_of_statement(size_t i) const {
  const int depth = at(i).depth;
  while (at(i).type != -1 && !(is_terminator(at(i).type) && at(i).depth <= depth)) ++i;
  return i > 0 ? i - 1 : 0;
}

/// Julia's `sin.(x)`, `x .+ y`, `1:n`; CUDA's `k<<<b, t>>>(x)`; Rust's `let mut`; Python's comprehensions.
std::string Recovery::other_language(size_t i, int head) const {
  const int found = at(i).type;
  const int before = i > 0 ? at(i - 1).type : 0;
  auto one = [&](size_t k) { return slice(k, k); };
  if (before == P::DOT && found == P::LPAREN && i > 1)
    return fmt::format("write `{}{}`: functions of arrays go element by element",
                       slice(operand_to(i - 2), i - 2), slice(i, operand_from(i)));
  if (before == P::DOT && is_binary_operator(found) && i > 1)
    return fmt::format("write `{} {} {}`: operators go element by element", slice(operand_to(i - 2), i - 2),
                       found == P::CARET ? "**" : one(i), slice(i + 1, operand_from(i + 1)));
  if (found == P::ASSIGN_ELEMS && at(i + 1).type == P::ASSIGN && at(i + 1).begin == at(i).end && i > 0)
    return fmt::format("write `{} == {}`: operators go element by element", slice(operand_to(i - 1), i - 1),
                       slice(i + 2, operand_from(i + 2)));
  if (found == P::VAR && (at(i + 1).type == P::LPAREN)) {
    const bool method = before == P::DOT && i > 1;
    const std::string_view of = method                        ? slice(operand_to(i - 2), i - 2)
                                : at(i + 2).type == P::RPAREN ? "x"
                                                              : slice(i + 2, operand_from(i + 2));
    return fmt::format("the variance is `mean(square({0} - mean({0})))`", of);
  }
  const size_t shift = found == P::SHL ? i : before == P::SHL ? i - 1 : 0;
  if (shift > 0 && at(shift + 1).type == P::LT && at(shift + 1).begin == at(shift).end) {
    size_t close = shift;
    while (at(close).type != -1 && !is_terminator(at(close).type) && at(close).type != P::SHR) ++close;
    const bool launch = at(shift - 1).type == P::LAUNCH || at(shift - 1).type == P::LAUNCH_WITH;
    const size_t last = end_of_statement(close);
    if (at(close).type != P::SHR || last < close + 2) return "write `launch(threads=256) k(…)`";
    return fmt::format("write `launch(threads={}) {}{}`: how many blocks follows from `over`", one(close - 1),
                       launch ? "" : one(shift - 1), slice(close + 2, last));
  }
  if (found == P::COLON && head == P::FOR && !is_terminator(at(i + 1).type)) {
    const size_t last = operand_from(i + 1);
    if (at(last + 1).type == P::COLON) return "a range has no step: go over `0..n`, and multiply the index";
    uint64_t n = 0;
    const std::string_view to = slice(i + 1, last);
    const auto [end, status] = std::from_chars(to.data(), to.data() + to.size(), n);
    const bool number = status == std::errc() && end == to.data() + to.size() && n < 1u << 31;
    return fmt::format("write `{}..{}`: a range ends below its end", slice(operand_to(i - 1), i - 1),
                       number ? std::to_string(n + 1) : fmt::format("{} + 1", to));
  }
  const int opens = i > 1 ? at(i - 2).type : 0;
  if (found == P::COLON && before == P::INT && (opens == P::ASSIGN || opens == P::LPAREN))
    return fmt::format("an array of numbers is `arange(a, b)`, up to below b: `arange({}, {} + 1)`",
                       one(i - 1), slice(i + 1, operand_from(i + 1)));
  if (found == P::MUT && (before == P::LET || before == P::VAR))
    return fmt::format("write `var {}`", slice(i + 1, end_of_statement(i + 1)));
  if (found == P::FOR && at(i).depth > 0 && ends_operand(before))
    return "make a list with `list(n, i => …)`, or compute on whole arrays";
  if (found == P::IF && ends_operand(before) && at(i - 1).end < at(i).begin)
    return "a choice is written `if c { a } else { b }`; between arrays `where(c, a, b)`";
  if ((found == P::LPAREN && before == P::FOR) || (found == P::COMMA && i > 1 && at(i - 2).type == P::FOR))
    return "take the parts by index: `for t in xs { … t[0] … t[1] … }`";
  if (found == P::IDENT && before == P::IDENT) {
    const std::string_view word = one(i - 1);
    if (word == "struct" || word == "class") return fmt::format("write `type {} = {{ … }}`", one(i));
    if (word == "from" || word == "using" || word == "include")
      return fmt::format("write `import \"{0}.gk\" as {0}`", one(i));
    const bool typed =
        word == "int" || word == "float" || word == "double" || word == "auto" || word == "bool";
    if (typed && head == P::CONST) return fmt::format("write `const {}`", slice(i, end_of_statement(i)));
    if (typed && at(i + 1).type == P::ASSIGN)
      return fmt::format("write `var {}`", slice(i, end_of_statement(i)));
  }
  return "";
}

void Recovery::advise(Error& e, antlr4::ParserRuleContext* context, size_t i, bool wants_expression,
                      const std::vector<int>& expected) const {
  auto wants = [&](int t) { return std::find(expected.begin(), expected.end(), t) != expected.end(); };
  int found = at(i).type;
  int before = i > 0 ? at(i - 1).type : P::NEWLINE;
  antlr4::ParserRuleContext* line = enclosing_line(context);
  int head = line != nullptr ? at(line->start->getTokenIndex()).type : 0;
  auto help = [&](std::string text) { e.helps.push_back(std::move(text)); };

  if (std::string told = other_language(i, head); !told.empty()) return help(std::move(told));
  if (found == P::ASSIGN && head == P::FOR && wants(P::IN)) return help("write `for i in 0..n { … }`");
  bool condition = head == P::IF || head == P::WHILE || head == P::ASSERT;
  if (found == P::ASSIGN && (condition || (wants(P::LBRACE) && !wants(P::LIST_LBRACK))))
    return help("to compare, write `==`");
  if (found == P::ASSIGN && wants(P::NEWLINE))
    return help("one assignment a statement; to compare, write `==`");
  bool declares = head == P::LET || head == P::VAR || head == P::CONST;
  if (declares && found >= P::ASSIGN_ELEMS && found <= P::DIV_ELEMS && !wants_expression) {
    e.message = fmt::format("expected `=`, found `{}`", slice(i, i));
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
    e.message =
        fmt::format("expected an expression after `{}`, found {}", slice(i - 1, i - 1), found_text(i));
    e.labels.push_back({{file_, at(i - 1).begin, at(i - 1).end}, "the statement goes on after this"});
    return;
  }
  if (wants_expression && is_terminator(before) && continues_after(found))
    return help("an operator that goes on with a line stands at the end of the line above");
  if (before == P::DOT && i > 1 && at(i - 2).type == P::INT)
    return help(fmt::format("write `{}.0`", slice(i - 2, i - 2)));
  if (found == P::DOT && before == P::INT) return help(fmt::format("write `{}.0`", slice(i - 1, i - 1)));
  if (head == P::IMPORT && wants(P::STRING) && found == P::IDENT && is_python_module(slice(i, i)))
    return help("leave it out: gk has its functions without a module, as in `sqrt(x)`");
  if (head == P::IMPORT && wants(P::STRING) && found == P::IDENT)
    return help(fmt::format("write `import \"{0}.gk\" as {0}`", slice(i, i)));
  if (wants(P::IDENT) && !wants_expression && found >= P::LET && found <= P::NEW)
    e.notes.push_back(fmt::format("`{}` is a keyword; choose another name", slice(i, i)));
  if (wants(P::NEWLINE) && before == P::IDENT && slice(i - 1, i - 1) == "print")
    return help("call it with parentheses: `print(x)`");
  if (wants(P::NEWLINE) && before == P::RBRACE && starts_statement(found))
    return help("start a new line, or separate the statements with `;`");
}

}  // namespace gk::syntax
