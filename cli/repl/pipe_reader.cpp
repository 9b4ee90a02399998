#include <iostream>
#include <optional>
#include <utility>

#include "cli/repl/reader.h"

namespace gk::cli {

namespace {

class PipeReader : public Reader {
 public:
  Got read(const std::string& prompt, std::string& line) override {
    (void)prompt;
    if (next_) {
      line = std::move(*next_);
      next_.reset();
      return Got::Line;
    }
    return std::getline(std::cin, line) ? Got::Line : Got::End;
  }
  const std::string* ahead() override {
    std::string line;
    if (!next_ && std::getline(std::cin, line)) next_ = std::move(line);
    return next_ ? &*next_ : nullptr;
  }
  void remember(const std::string& entry) override { entries_.push_back(entry); }
  std::vector<std::string> history() const override { return entries_; }

 private:
  std::vector<std::string> entries_;
  std::optional<std::string> next_;
};

}  // namespace

std::unique_ptr<Reader> make_pipe_reader() { return std::make_unique<PipeReader>(); }

}  // namespace gk::cli
