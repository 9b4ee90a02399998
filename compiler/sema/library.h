// The library that is written in gk (stdlib/*.gk): its definitions are builtins. Owns their texts, which are
// part of the binary, and what a session parsed of them. Promises that a file is parsed when one of its names
// is first used, and that an error in a definition is told at the call. Not for what each definition means.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/sema/builtins.h"
#include "compiler/sema/value.h"
#include "compiler/syntax/source.h"

namespace gk::sema {

/// The rows of builtins that the library defines.
std::span<const BuiltinInfo> library_builtins();
bool is_library(const Builtin& b);

class Library {
 public:
  explicit Library(syntax::SourceMap& sources) : sources_(sources) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  /// The definition behind builtin `name`, in whose body literals and `default_float` of the caller meet.
  std::shared_ptr<const Callable> find(std::string_view name, DType default_float);
  /// Whether a span lies in one of its files.
  bool owns(Span s) const;

 private:
  struct File {
    std::shared_ptr<Scope> scope;
    std::shared_ptr<syntax::Module> module;
    int32_t source = -1;
  };
  const File& file(int number, DType default_float);
  syntax::SourceMap& sources_;
  std::map<std::pair<int, DType>, File> files_;
};

}  // namespace gk::sema
