// Where the REPL's lines come from: an editor on a terminal, or a pipe. Owns nothing. Not for what a line
// means.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gk::cli {

/// What the end of a line may become: `words` in place of what stands from `begin` on.
struct Completion {
  size_t begin = 0;
  std::vector<std::string> words;
};

class Reader {
 public:
  enum class Got { Line, End, Interrupted };

  virtual ~Reader() = default;
  /// The next line, without its newline. Interrupted: Ctrl-C, and the line is gone.
  virtual Got read(const std::string& prompt, std::string& line) = 0;
  /// The line that read() will give next, where it is known already; null: nobody knows.
  virtual const std::string* ahead() { return nullptr; }
  /// An entry of one or more lines that was taken, for the next time.
  virtual void remember(const std::string& entry) = 0;
  virtual std::vector<std::string> history() const = 0;
};

/// Columns of the terminal that standard output is.
size_t terminal_width();
/// Lines of standard input; no prompt is shown.
std::unique_ptr<Reader> make_pipe_reader();
/// An editor on the terminal. `history_file` may be empty. `complete` is given what stands before the cursor.
std::unique_ptr<Reader> make_editor(const std::string& history_file,
                                    std::function<Completion(std::string_view)> complete);

}  // namespace gk::cli
