// What evaluating a program depends on beside its text. Owns the settings, and the ways to files and to
// whoever is warned. Not for what a program itself says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace gk::sema {

struct EvalOptions {
  std::vector<std::string> args;
  std::map<std::string, std::string> defines;  // -D: const overrides
  bool seeded = false;
  uint64_t seed = 0;
  bool unchecked = false;
  /// Finds an imported file; `from` is the import statement. Errors: E0410.
  struct ImportedFile {
    std::string id;  // one for each file, however it is reached
    std::function<Result<std::string>()> read;
  };
  std::function<Result<ImportedFile>(const std::string& path, Span from)> importer;
  /// Told once for each line: what the program does is allowed, but hardly meant.
  std::function<void(const Error&)> warn;
  std::function<bool()> interrupted;  // asked while checking; running asks Effects
  int64_t max_capture_nodes = 200'000;
  int64_t max_eager_nodes = 4'000;  // flush a longer trace early
};

}  // namespace gk::sema
