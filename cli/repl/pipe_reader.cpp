#include <iostream>

#include "cli/repl/reader.h"

namespace gk::cli {

namespace {

class PipeReader : public Reader {
 public:
  Got read(const std::string& prompt, std::string& line) override {
    (void)prompt;
    return std::getline(std::cin, line) ? Got::Line : Got::End;
  }
  void remember(const std::string& entry) override { entries_.push_back(entry); }
  std::vector<std::string> history() const override { return entries_; }

 private:
  std::vector<std::string> entries_;
};

}  // namespace

std::unique_ptr<Reader> make_pipe_reader() { return std::make_unique<PipeReader>(); }

}  // namespace gk::cli
