// What --test=RE and --bench=RE choose titles by. Owns a compiled regular expression. Promises: matching
// takes time linear in the title, whatever the pattern, and no stack. Back references and looking ahead are
// therefore no part of the syntax, which is RE2's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace gk::engine {

class Pattern {
 public:
  /// Errors: Usage E1101 where `text` is no regular expression.
  static Result<Pattern> parse(std::string_view text);
  /// Whether a part of `title` matches; an empty pattern chooses all.
  bool chooses(std::string_view title) const;
  bool chooses_all() const;
  const std::string& text() const { return text_; }

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

 private:
  struct Compiled;
  Pattern(std::string_view text, std::unique_ptr<Compiled> compiled);
  std::string text_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace gk::engine
