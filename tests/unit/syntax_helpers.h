// Shared by the syntax tests. Owns a parsed text with its source; promises nothing about what it holds.
// Not for other folders' tests.
#pragma once

#include <string>

#include "compiler/syntax/parse.h"

namespace gk::syntax::testing {

struct Parsed {
  SourceMap sources;
  ParseResult result;
  explicit Parsed(std::string text) { result = parse(sources, sources.add("t.gk", std::move(text))); }
  std::string diagnostics(ErrorFormat format = ErrorFormat::Human) const {
    std::string out;
    for (const Error& e : result.errors) out += render(sources, e, format, false);
    return out;
  }
  std::string slice(Span s) const { return sources.text(s.file).substr(s.begin, s.end - s.begin); }
};

/// The dump of a text, without the (module …) around it; the diagnostics when it has any.
inline std::string tree(std::string text) {
  Parsed p(std::move(text));
  if (!p.result.errors.empty()) return p.diagnostics();
  std::string out = dump(p.result.module);
  const std::string head = "(module", tail = ")\n";
  out = out.substr(head.size(), out.size() - head.size() - tail.size());
  if (out.starts_with("\n  ")) out.erase(0, 3);
  return out;
}

inline std::string short_errors(std::string text) {
  return Parsed(std::move(text)).diagnostics(ErrorFormat::Short);
}
inline std::string human_errors(std::string text) { return Parsed(std::move(text)).diagnostics(); }

}  // namespace gk::syntax::testing
