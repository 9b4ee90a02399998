// Program texts in, results out. Promises that a file is written whole or not at all, and that what fails
// says which file and why. Knows nothing of programs.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace gk::cli {

inline constexpr size_t kMaxSourceBytes = size_t{64} << 20;

/// The bytes of a file, or of standard input for "-". Errors: a sentence without a final stop.
tl::expected<std::string, std::string> read_source(const std::string& path);

/// Writes to a temporary file in the same folder and renames it over `path`. What is not a regular file (a
/// pipe, /dev/null) is written in place; a symbolic link is followed. Errors: a sentence; nothing is left
/// behind.
tl::expected<void, std::string> write_result(const std::string& path, std::string_view text);

}  // namespace gk::cli
