#include "compiler/engine/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

namespace gk::engine {

struct Pattern::Compiled {
  re2::RE2 re;
};

Pattern::Pattern(std::string_view text, std::unique_ptr<Compiled> compiled)
    : text_(text), compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::parse(std::string_view text) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto compiled =
      std::unique_ptr<Compiled>(new Compiled{re2::RE2(re2::StringPiece(text.data(), text.size()), options)});
  if (!compiled->re.ok())
    return fail(make_error(ErrorKind::Usage, "E1101", fmt::format("`{}` is not a regular expression", text))
                    .note(compiled->re.error()));
  return Pattern(text, std::move(compiled));
}

bool Pattern::chooses_all() const { return text_.empty(); }

bool Pattern::chooses(std::string_view title) const {
  return re2::RE2::PartialMatch(re2::StringPiece(title.data(), title.size()), compiled_->re);
}

}  // namespace gk::engine
