#include "cli/repl/pasted.h"

#include <algorithm>
#include <utility>

namespace gk::cli {

namespace {

constexpr std::string_view kPython = ">>> ";  // what documents for others are full of

bool begins_with_prompt(std::string_view line) {
  const auto is = [&](std::string_view prompt) {
    return line.starts_with(prompt) || line == prompt.substr(0, prompt.size() - 1);
  };
  return is(kPrompt) || is(kContinued) || is(kPython);
}

}  // namespace

std::string_view without_prompt(std::string_view line) {
  while (begins_with_prompt(line)) line.remove_prefix(std::min(line.size(), kPrompt.size()));
  return line;
}

std::vector<std::string> pasted_lines(std::string_view text, std::string& rest) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    // Terminals send a carriage return for each end of a line, some of them both.
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    if (text[i] == '\n' || text[i] == '\r')
      lines.push_back(std::exchange(line, {}));
    else
      line += text[i];
  }
  const bool prompts =
      begins_with_prompt(line) || std::any_of(lines.begin(), lines.end(), begins_with_prompt);
  if (prompts) {
    std::erase_if(lines, [](const std::string& l) { return !begins_with_prompt(l); });
    if (!begins_with_prompt(line)) line.clear();
  }
  for (std::string& l : lines) l = std::string(without_prompt(l));
  rest = std::string(without_prompt(line));
  return lines;
}

}  // namespace gk::cli
