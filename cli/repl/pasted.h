// Lines that were copied from where a REPL shows them. Owns what the prompts look like. Promises that a line
// without a prompt stays as it is. Not for reading lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gk::cli {

inline constexpr std::string_view kPrompt = "gk> ", kContinued = "... ";

/// The line without the prompt that it begins with, however often that was copied.
std::string_view without_prompt(std::string_view line);
/// The lines of `text`. Where some of them begin with a prompt, only these, without it: the others are what
/// was printed. `rest` gets what stands behind the last newline.
std::vector<std::string> pasted_lines(std::string_view text, std::string& rest);

}  // namespace gk::cli
