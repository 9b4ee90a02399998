#include "tests/script/expectations.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace gk::test {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

std::string_view next_word(std::string_view& s) {
  s = trim(s);
  size_t n = std::min(s.find_first_of(" \t"), s.size());
  std::string_view word = s.substr(0, n);
  s = trim(s.substr(n));
  return word;
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && p == text.data() + text.size();
}

bool parse_counter(std::string_view word, Counter& c) {
  size_t at = word.find_first_of("<>=");
  if (at == std::string_view::npos || at == 0) return false;
  size_t width = word[at] == '=' ? 1 : 2;
  c.name = word.substr(0, at);
  c.relation = word.substr(at, width);
  return (c.relation == "=" || c.relation == "<=" || c.relation == ">=") &&
         parse_number(word.substr(at + width), c.value);
}

// "directive: rest" of a comment that is one of ours; the comment may stand after code.
struct Directive {
  std::string_view name, rest;
  int offset = 0;  // of `fixed`: which line, counted from the error's
};
std::optional<Directive> find_directive(std::string_view line) {
  static constexpr std::string_view kNames[] = {"expect+",   "expect", "error",  "help",
                                                "fixed",     "mended", "prints", "status",
                                                "structure", "option", "skip",   "warning"};
  for (size_t at = line.find("# "); at != std::string_view::npos; at = line.find("# ", at + 2)) {
    std::string_view comment = line.substr(at + 2);
    for (std::string_view name : kNames)
      if (comment.substr(0, name.size()) == name && comment.substr(name.size(), 1) == ":")
        return Directive{name, comment.substr(name.size() + 1)};
    // `fixed -2: …`
    const size_t colon = comment.find(':');
    int offset = 0;
    if (comment.substr(0, 6) == "fixed " && colon != std::string_view::npos && colon > 7 &&
        (comment[6] == '-' || comment[6] == '+') && parse_number(comment.substr(7, colon - 7), offset))
      return Directive{"fixed", comment.substr(colon + 1), comment[6] == '-' ? -offset : offset};
  }
  return std::nullopt;
}

bool apply(const Directive& d, int line, Expectations& e) {
  std::string_view rest = d.rest;
  if (d.name == "expect" || d.name == "expect+") {
    if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);  // further blanks belong to the output
    while (!rest.empty() && (rest.back() == ' ' || rest.back() == '\r')) rest.remove_suffix(1);
    e.output.emplace_back(rest);
    return d.name == "expect" || e.output.size() > 1;
  }
  if (d.name == "error" || d.name == "warning") {
    std::string_view code = next_word(rest);
    e.errors.push_back({line, std::string(code), std::string(rest), {}, {}, std::string(d.name)});
    return code.size() == 5 && code[0] == 'E';
  }
  if (d.name == "help") {
    if (e.errors.empty() || trim(rest).empty()) return false;
    e.errors.back().helps.emplace_back(trim(rest));
    return true;
  }
  if (d.name == "fixed" || d.name == "mended") {
    if (e.errors.empty() || trim(rest).empty()) return false;
    ExpectedError& of = e.errors.back();
    of.fixes.push_back({of.line + d.offset, std::string(trim(rest)), d.name == "fixed"});
    return of.line + d.offset > 0;
  }
  if (d.name == "prints") {
    if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    e.fixed_output.emplace_back(rest.substr(0, rest.find_last_not_of(" \r") + 1));
    return !e.errors.empty();
  }
  if (d.name == "structure") {
    bool ok = !trim(rest).empty();
    while (ok && !trim(rest).empty()) {
      Counter c;
      ok = parse_counter(next_word(rest), c);
      e.structure.push_back(c);
    }
    return ok;
  }
  if (d.name == "status") {
    int status = 0;
    if (!parse_number(trim(rest), status)) return false;
    e.status = status;
    return true;
  }
  if (d.name == "option") {
    rest = trim(rest);
    size_t eq = rest.find('=');
    e.options.emplace_back(rest.substr(0, eq), eq == std::string_view::npos ? "" : rest.substr(eq + 1));
    return !rest.empty();
  }
  std::string_view device = next_word(rest);
  e.skips[std::string(device)] = rest;
  return !rest.empty();  // a skip needs its reason
}

}  // namespace

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    size_t n = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, n);
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(n + 1, text.size()));
  }
  return lines;
}

tl::expected<Expectations, std::string> read_expectations(std::string_view script) {
  Expectations e;
  int number = 0;
  while (!script.empty()) {
    size_t n = std::min(script.find('\n'), script.size());
    std::string_view line = script.substr(0, n);
    script.remove_prefix(std::min(n + 1, script.size()));
    ++number;
    if (trim(line).substr(0, 6) == "test \"") e.has_tests = true;
    if (auto d = find_directive(line); d && !apply(*d, number, e))
      return tl::unexpected<std::string>("line " + std::to_string(number) + ": not understood: # " +
                                         std::string(d->name) + ":" + std::string(d->rest));
  }
  return e;
}

std::string fixed_script(std::string_view script, Expectations& e) {
  std::map<int, std::string> fixed;
  std::vector<ExpectedError> left;
  for (ExpectedError& error : e.errors) {
    for (const Fix& f : error.fixes) fixed[f.line] = f.text;
    if (error.fixes.empty()) left.push_back(std::move(error));
  }
  e.errors = std::move(left);
  std::string out;
  int number = 0;
  while (!script.empty()) {
    size_t n = std::min(script.find('\n'), script.size());
    const auto at = fixed.find(++number);
    out += at == fixed.end() ? std::string(script.substr(0, n)) : at->second;
    out += '\n';
    script.remove_prefix(std::min(n + 1, script.size()));
  }
  return out;
}

namespace {

// Whether `code`, whose ellipses stand for anything, is somewhere in `line`.
bool stands_in(std::string_view code, std::string_view line) {
  static constexpr std::string_view kAnything = "\u2026";
  size_t at = 0;
  while (true) {
    const size_t gap = code.find(kAnything);
    const size_t found = line.find(code.substr(0, gap), at);
    if (found == std::string_view::npos) return false;
    at = found + code.substr(0, gap).size();
    if (gap == std::string_view::npos) return true;
    code.remove_prefix(gap + kAnything.size());
  }
}

}  // namespace

bool follows_help(std::string_view help, std::string_view line) {
  bool has_code = false;
  while (true) {
    const size_t open = help.find('`');
    const size_t close = open == std::string_view::npos ? open : help.find('`', open + 1);
    if (close == std::string_view::npos) return !has_code;
    has_code = true;
    if (stands_in(help.substr(open + 1, close - open - 1), line)) return true;
    help.remove_prefix(close + 1);
  }
}

std::vector<Diagnostic> read_diagnostics(std::string_view json_lines) {
  std::vector<Diagnostic> result;
  for (const std::string& line : split_lines(json_lines)) {
    auto j = nlohmann::json::parse(line, nullptr, false);
    Diagnostic d;
    if (j.is_object()) {
      d.line = j.value("line", 0);
      d.severity = j.value("severity", "error");
      d.code = j.value("code", "");
      d.message = j.value("message", "");
      d.helps = j.value("helps", std::vector<std::string>{});
    } else {
      d.severity = "error";
      d.message = line;
    }
    result.push_back(std::move(d));
  }
  return result;
}

}  // namespace gk::test
