// What a syntax error's `help:` lines say: the gk form of what stands there, where it can be told.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "GkParser.h"
#include "compiler/syntax/recover.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

using P = antlr::GkParser;

constexpr std::string_view kLeaveOut = "leave it out: gk has its functions without a module, as in `sqrt(x)`";

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
    case P::GE:
    case P::AMP:
    case P::BAR:
    case P::PERCENT:
    case P::FLOORDIV: return true;
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

std::string Recovery::undotted(size_t first, size_t last) const {
  std::string out;
  for (size_t k = first; k <= last; ++k) {
    const int next = at(k + 1).type;
    const bool dot = at(k).type == P::DOT && k < last && (is_binary_operator(next) || next == P::LPAREN);
    const bool power = at(k).type == P::CARET && k > first && at(k - 1).type == P::DOT;
    out += dot ? "" : power ? "**" : slice(k, k);
    if (k < last) out += text_.substr(at(k).end - base_, at(k + 1).begin - at(k).end);
  }
  return out;
}

std::string Recovery::julia_range(size_t i) const {
  size_t end = i + 1;
  while (at(end).depth > at(i).depth || (at(end).type != P::LBRACE && at(end).type != P::COLON &&
                                         at(end).type != -1 && !is_terminator(at(end).type)))
    ++end;
  const bool bounds = at(end).type == P::LBRACE || end == i + 2 || at(i - 1).type == P::INT;
  if (end == i + 1 || !bounds) return "";
  if (at(end).type == P::COLON) return "a range has no step: go over `0..n`, and multiply the index";
  uint64_t n = 0;
  const std::string_view to = slice(i + 1, end - 1);
  const auto [stop, status] = std::from_chars(to.data(), to.data() + to.size(), n);
  const bool number = status == std::errc() && stop == to.data() + to.size() && n < 1u << 31;
  return fmt::format("write `{}..{}`: a range ends below its end", slice(operand_to(i - 1), i - 1),
                     number ? std::to_string(n + 1) : fmt::format("{} + 1", to));
}

std::string Recovery::cuda_launch(size_t open) const {
  const int depth = at(open).depth;
  const bool launch = at(open - 1).type == P::LAUNCH || at(open - 1).type == P::LAUNCH_WITH;
  // Between the commas: blocks, threads, and what gk does not need.
  std::vector<size_t> commas;
  size_t close = open;
  for (; at(close).type != -1 && !is_terminator(at(close).type) && at(close).type != P::SHR; ++close)
    if (at(close).type == P::COMMA && at(close).depth == depth) commas.push_back(close);
  const size_t last = end_of_statement(close);
  if (at(close).type != P::SHR || last < close + 2 || commas.empty())
    return "write `launch(threads=256) k(…)`";
  const size_t end = commas.size() > 1 ? commas[1] : close;
  return fmt::format("write `launch(threads={}) {}{}`: how many blocks follows from `over`",
                     slice(commas[0] + 1, end - 1), launch ? "" : slice(open - 1, open - 1),
                     slice(close + 2, last));
}

std::string Recovery::julia_matrix(size_t i) const {
  size_t open = i;
  while (open > 0 && at(open).depth >= at(i).depth) --open;
  if (at(open).type != P::LBRACK && at(open).type != P::LIST_LBRACK) return "";
  if (open > 0 && ends_operand(at(open - 1).type)) return "";
  std::string row, rows;
  bool several = false;
  size_t k = open + 1;
  for (; at(k).type != P::RBRACK; ++k) {
    const int t = at(k).type;
    if (t == P::SEMI) {
      rows += fmt::format("{}[{}]", rows.empty() ? "" : ", ", row);
      row.clear();
      several = true;
    } else if (t == P::INT || t == P::FLOAT) {
      row += fmt::format("{}{}", row.empty() || row.ends_with('-') ? "" : ", ", slice(k, k));
    } else if (t == P::MINUS && at(k + 1).begin == at(k).end) {
      row += row.empty() ? "-" : ", -";
    } else {
      return "";
    }
  }
  if (k < open + 3) return "";
  return several ? fmt::format("write `[{}, [{}]]`", rows, row) : fmt::format("write `[{}]`", row);
}

/// Julia's `sin.(x)`, `x .+ y`, `1:n`; CUDA's `k<<<b, t>>>(x)`; Rust's `let mut`; Python's comprehensions.
std::string Recovery::other_language(size_t i, int head) const {
  const int found = at(i).type;
  const int before = i > 0 ? at(i - 1).type : 0;
  auto one = [&](size_t k) { return slice(k, k); };
  if (before == P::DOT && found == P::LPAREN && i > 1)
    return fmt::format("write `{}{}`: functions of arrays go element by element",
                       slice(operand_to(i - 2), i - 2), undotted(i, operand_from(i)));
  if (before == P::DOT && is_binary_operator(found) && i > 1)
    return fmt::format("write `{} {} {}`: operators go element by element", slice(operand_to(i - 2), i - 2),
                       found == P::CARET ? "**" : one(i), undotted(i + 1, operand_from(i + 1)));
  if (found == P::ASSIGN_ELEMS && at(i + 1).type == P::ASSIGN && at(i + 1).begin == at(i).end && i > 0)
    return fmt::format("write `{} == {}`: operators go element by element", slice(operand_to(i - 1), i - 1),
                       slice(i + 2, operand_from(i + 2)));
  const size_t shift = found == P::SHL ? i : before == P::SHL ? i - 1 : 0;
  if (shift > 0 && at(shift + 1).type == P::LT && at(shift + 1).begin == at(shift).end)
    return cuda_launch(shift);
  if (found == P::COLON && head == P::FOR)
    if (std::string told = julia_range(i); !told.empty()) return told;
  if (found == P::ASSIGN && before == P::DOTDOT && i > 1) {
    const size_t last = operand_from(i + 1);
    const std::string to(slice(i + 1, last));
    const bool number = last == i + 1 && at(last).type == P::INT && to.size() < 10;
    return fmt::format("write `{}..{}`: a range ends below its end", slice(operand_to(i - 2), i - 2),
                       number ? std::to_string(std::strtoll(to.c_str(), nullptr, 10) + 1) : to + " + 1");
  }
  if (found == P::INT || found == P::FLOAT)
    if (std::string told = julia_matrix(i); !told.empty()) return told;
  if (found == P::LPAREN && before == P::FOR && at(i + 2).type == P::ASSIGN)
    return fmt::format("write `for {} in 0..n {{ … }}`", one(i + 1));
  if (head == P::PRAGMA && found == P::ASSIGN)
    return fmt::format("write `pragma {} {}`", one(i - 1), slice(i + 1, end_of_statement(i + 1)));
  if (found == P::FATARROW && head != P::LET && before == P::RPAREN) {
    const size_t first = operand_to(i - 1);
    if (first > 0 && at(first - 1).type == P::FN)
      return fmt::format("write `fn {} = {}`", slice(first, i - 1), slice(i + 1, end_of_statement(i + 1)));
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
    const bool imports = word == "from" || word == "using" || word == "include";
    if (imports && is_python_module(one(i))) return std::string(kLeaveOut);
    if (imports) return fmt::format("write `import \"{0}.gk\" as {0}`", one(i));
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
  if (found == P::COLON && head == P::FN && before == P::RPAREN && at(i + 1).type == P::IDENT) {
    size_t last = i + 1;
    while (at(last + 1).type != P::LBRACE && at(last + 1).type != P::ASSIGN && at(last + 1).type != -1 &&
           !is_terminator(at(last + 1).type))
      ++last;
    return help(fmt::format("the result type is `-> {}`", slice(i + 1, last)));
  }
  if (before == P::ELSE) {
    e.message = fmt::format("expected `{{` or `if` after `else`, found {}", found_text(i));
    return help("a body stands between braces: `else { … }`");
  }
  if (found == P::COLON && wants(P::LBRACE)) return help("a body stands between braces: `{ … }`");
  if (found == P::NEWLINE && wants(P::LBRACE) && at(i + 1).type == P::LBRACE)
    return help("the `{` belongs on the same line");
  if (wants(P::LBRACE) && head == P::IF) return help("a body stands between braces: `if c { … }`");
  if (found == P::ELSE && is_terminator(before)) return help("`else` follows the `}` of an `if`");
  if ((found == P::FLOORDIV || found == P::SLASH) && is_terminator(before))
    return help("a comment starts with `#`");
  if (wants(P::NEWLINE) && found == P::IDENT && before == P::IDENT) {
    // `x = 3 // some words`
    size_t k = i - 1;
    while (k > 0 && at(k).type == P::IDENT) --k;
    if (at(k).type == P::FLOORDIV) return help("a comment starts with `#`");
  }
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
    return help(std::string(kLeaveOut));
  if (head == P::IMPORT && wants(P::STRING) && found == P::IDENT) {
    const bool named = slice(i + 1, i + 1) == "as" && at(i + 2).type == P::IDENT;
    return help(fmt::format("write `import \"{}.gk\" as {}`", slice(i, i),
                            slice(named ? i + 2 : i, named ? i + 2 : i)));
  }
  if (wants(P::IDENT) && !wants_expression && found >= P::LET && found <= P::NEW)
    e.notes.push_back(fmt::format("`{}` is a keyword; choose another name", slice(i, i)));
  if (wants(P::NEWLINE) && before == P::IDENT && slice(i - 1, i - 1) == "print")
    return help("call it with parentheses: `print(x)`");
  if (wants(P::NEWLINE) && before == P::RBRACE && starts_statement(found))
    return help("start a new line, or separate the statements with `;`");
}

}  // namespace gk::syntax
