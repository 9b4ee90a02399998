// Source texts and the rendering of diagnostics. Owns file names and contents for as long as any span
// may point to them; thread-safe. Renders in Rust's layout (human), one line (short) or JSON lines (json).
#pragma once

#include <deque>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace gk::syntax {

class SourceMap {
 public:
  /// Adds a text; returns its file index. Texts are never removed.
  int32_t add(std::string name, std::string text);
  /// The index of a text added before under this name, else as add().
  int32_t find_or_add(std::string name, std::string text);
  const std::string& name(int32_t file) const;
  const std::string& text(int32_t file) const;
  int32_t size() const;
  struct Position {
    int line = 1;    // from 1
    int column = 1;  // from 1, in code points
  };
  Position position(int32_t file, uint32_t offset) const;
  /// The line (without its newline) that holds `offset`.
  std::string_view line_text(int32_t file, int line) const;
  /// "model.gk:7:11"; "" for an invalid span.
  std::string where(Span s) const;

 private:
  struct File {
    std::string name, text;
    std::vector<uint32_t> line_starts;
  };
  int32_t push(std::string name, std::string text);
  const File& file(int32_t index) const;
  mutable std::shared_mutex mutex_;  // of the list; a file does not change
  std::deque<File> files_;
};

enum class ErrorFormat { Human, Short, Json };

/// Renders one diagnostic, with a final newline. `severity` is "error" or "warning".
std::string render(const SourceMap& sources, const Error& e, ErrorFormat format, bool color,
                   std::string_view severity = "error");

/// The long text behind `--explain CODE`; empty when the code is unknown.
std::string_view explain(std::string_view code);
/// Every known code, in order.
std::vector<std::string_view> all_codes();

}  // namespace gk::syntax
