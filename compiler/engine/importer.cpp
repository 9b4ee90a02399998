#include "compiler/engine/importer.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace gk::engine {

namespace {
constexpr uintmax_t kMaxTextBytes = 64 << 20;
}

decltype(sema::EvalOptions::importer) make_importer(const syntax::SourceMap& sources) {
  return [&sources](const std::string& path, Span from) -> Result<sema::EvalOptions::ImportedFile> {
    namespace fs = std::filesystem;
    fs::path base = from.file >= 0 ? fs::path(sources.name(from.file)).parent_path() : fs::path();
    fs::path full = fs::path(path).is_absolute() ? fs::path(path) : base / path;
    std::error_code ec;
    if (!fs::is_regular_file(full, ec))
      return fail(ErrorKind::Type, "E0410",
                  fmt::format("`{}` is not a file that can be imported", full.string()), from);
    if (auto size = fs::file_size(full, ec); ec || size > kMaxTextBytes)
      return fail(ErrorKind::Type, "E0410", fmt::format("`{}` is larger than 64 MiB", full.string()), from);
    auto canonical = fs::canonical(full, ec);
    sema::EvalOptions::ImportedFile file;
    file.id = ec ? full.string() : canonical.string();
    file.read = [full, from]() -> Result<std::string> {
      std::ifstream in(full, std::ios::binary);
      std::string text((std::istreambuf_iterator<char>(in)), {});
      if (in.bad() || (!in && !in.eof()))
        return fail(ErrorKind::Type, "E0410", fmt::format("cannot read `{}`", full.string()), from);
      return text;
    };
    return file;
  };
}

}  // namespace gk::engine
