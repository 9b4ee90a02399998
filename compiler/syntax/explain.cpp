#include "compiler/syntax/explain.h"

#include <algorithm>

#include "compiler/syntax/source.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

struct Entry {
  std::string_view code;
  std::string text;
};

/// Words of `why`, filled to 88 columns.
std::string filled(std::string_view why) {
  std::string out;
  size_t column = 0;
  while (!why.empty()) {
    size_t space = why.find(' ');
    std::string_view word = why.substr(0, space);
    if (column > 0 && column + 1 + word.size() > 88) {
      out += '\n';
      column = 0;
    }
    if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    why.remove_prefix(space == std::string_view::npos ? why.size() : space + 1);
  }
  return out;
}

std::string indented(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    if (!line.empty()) out += "    " + std::string(line);
    out += '\n';
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
  return out;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries = [] {
    std::vector<Entry> out;
    for (auto table : {language_explanations(), machine_explanations()})
      for (const Explanation& e : table)
        out.push_back({e.code, fmt::format("{}: {}\n\n{}\n\nWrong:\n\n{}\nRight:\n\n{}", e.code, e.title,
                                           filled(e.why), indented(e.wrong), indented(e.right))});
    return out;
  }();
  return kEntries;
}

}  // namespace

std::string_view explain(std::string_view code) {
  auto it = std::find_if(entries().begin(), entries().end(), [&](const Entry& e) { return e.code == code; });
  return it == entries().end() ? std::string_view() : std::string_view(it->text);
}

std::vector<std::string_view> all_codes() {
  std::vector<std::string_view> out;
  for (const Entry& e : entries()) out.push_back(e.code);
  return out;
}

}  // namespace gk::syntax
