// Reads the sources themselves and holds them to the folder rules of ARCHITECTURE.md: which folder may
// include which, where the heavy third-party headers may appear, where the environment is read, and how
// headers open.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct Include {
  std::string file;  // from the source root
  int line = 0;
  std::string header;
};

fs::path source_root() {
  if (const char* given = std::getenv("GK_SOURCE_DIR")) return given;
  return GK_SOURCE_DIR;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view p) { return starts_with(text, p); });
}

bool is_header(const std::string& file) { return file.ends_with(".h") || file.ends_with(".hpp"); }

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Every C++ file of the product, sorted, relative to the root.
std::vector<std::string> product_files(const fs::path& root) {
  std::vector<std::string> files;
  for (const char* folder : {"include", "compiler", "runtime", "cli"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".cpp" || extension == ".h" || extension == ".hpp")
        files.push_back(fs::relative(entry.path(), root).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Include> includes_in(const std::string& file, const std::vector<std::string>& lines) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
  std::vector<Include> found;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (std::regex_search(lines[i], match, pattern))
      found.push_back({file, static_cast<int>(i) + 1, match[1]});
  }
  return found;
}

bool is_ours(std::string_view header) {
  return starts_with_any(header, {"include/", "gk/", "compiler/", "runtime/", "cli/"});
}

/// Why `file` may not include `header`; empty when it may.
std::string objection(std::string_view file, std::string_view header) {
  if (starts_with(file, "cli/") && is_ours(header) &&
      !starts_with_any(header, {"include/gk/", "gk/", "cli/"}))
    return "cli/ stands on the public API (include/gk) alone";
  if (starts_with(file, "include/") && is_ours(header) && !starts_with_any(header, {"include/gk/", "gk/"}))
    return "a public header may not show an inner one";
  if (starts_with(file, "runtime/") && starts_with_any(header, {"compiler/", "include/", "gk/", "cli/"}))
    return "runtime/ knows nothing of the compiler";
  if (starts_with(file, "compiler/") && !starts_with(file, "compiler/engine/")) {
    if (starts_with(header, "runtime/") && !starts_with_any(header, {"runtime/base/", "runtime/program/"}))
      return "of runtime/, the compiler sees base and program alone (compiler/engine excepted)";
    if (starts_with(header, "compiler/engine/")) return "the engine is above the compiler";
    if (starts_with_any(header, {"include/", "gk/", "cli/"})) return "the public API is above the compiler";
  }
  if (starts_with_any(header, {"llvm/", "llvm-c/"}) && !starts_with(file, "compiler/codegen/"))
    return "LLVM's headers belong in compiler/codegen alone";
  if ((starts_with(header, "antlr4") ||
       starts_with_any(header, {"GkLexer", "GkParser", "GkVisitor", "GkBaseVisitor"})) &&
      !starts_with(file, "compiler/syntax/"))
    return "ANTLR's headers belong in compiler/syntax alone";
  if (starts_with_any(header, {"cuda", "cublas", "nvrtc", "driver_types", "library_types"}) &&
      !starts_with_any(file, {"runtime/hal/cuda/", "runtime/library/"}))
    return "CUDA's headers belong in runtime/hal/cuda and runtime/library alone";
  if (is_header(std::string(file)) &&
      starts_with_any(header, {"llvm/", "llvm-c/", "antlr4", "oneapi/tbb", "tbb/", "cblas", "CLI/"}) &&
      starts_with(file, "include/"))
    return "third-party types stay out of the public header";
  if (starts_with(header, "re2/") && file != "compiler/engine/pattern.cpp")
    return "RE2 stands behind compiler/engine/pattern.h";
  return {};
}

class Layering : public testing::Test {
 protected:
  void SetUp() override {
    root_ = source_root();
    if (!fs::exists(root_ / "compiler") || !fs::exists(root_ / "runtime"))
      GTEST_SKIP() << "the sources are not at " << root_ << "; GK_SOURCE_DIR names them";
    files_ = product_files(root_);
    ASSERT_GT(files_.size(), 20u) << "too few sources under " << root_;
  }

  /// The complaints of `check` about each file, one a line.
  void expect_none(
      const std::function<std::string(const std::string&, const std::vector<std::string>&)>& check) {
    std::ostringstream complaints;
    for (const std::string& file : files_) complaints << check(file, lines_of(root_ / file));
    EXPECT_EQ(complaints.str(), "");
  }

  fs::path root_;
  std::vector<std::string> files_;
};

TEST_F(Layering, includes_go_one_way) {
  expect_none([](const std::string& file, const std::vector<std::string>& lines) {
    std::string complaints;
    for (const Include& i : includes_in(file, lines)) {
      const std::string why = objection(i.file, i.header);
      if (!why.empty())
        complaints += i.file + ":" + std::to_string(i.line) + ": " + i.header + ": " + why + "\n";
    }
    return complaints;
  });
}

TEST_F(Layering, the_environment_is_read_in_one_file) {
  static const std::regex reads(R"(\b(secure_)?getenv\s*\(|\benviron\b)");
  expect_none([](const std::string& file, const std::vector<std::string>& lines) {
    std::string complaints;
    if (file == "runtime/base/options.cpp") return complaints;
    for (size_t i = 0; i < lines.size(); ++i)
      if (std::regex_search(lines[i].substr(0, lines[i].find("//")), reads))
        complaints += file + ":" + std::to_string(i + 1) +
                      ": reads the environment; runtime/base/options.cpp does that\n";
    return complaints;
  });
}

TEST_F(Layering, headers_open_with_what_they_own) {
  expect_none([](const std::string& file, const std::vector<std::string>& lines) {
    if (!is_header(file)) return std::string();
    size_t comment = 0, letters = 0;
    while (comment < lines.size() && starts_with(lines[comment], "//")) letters += lines[comment++].size();
    std::string complaints;
    // Two full lines of this tree's width say what three of eighty columns do. The public header explains
    // itself with an example, so it may say more.
    const size_t most = starts_with(file, "include/") ? 40 : 14;
    if (comment < 2 || letters < 100 || comment > most)
      complaints += file + ": opens with " + std::to_string(comment) +
                    " lines of comment; two full ones are the least, " + std::to_string(most) + " the most\n";
    if (std::find(lines.begin(), lines.end(), "#pragma once") == lines.end())
      complaints += file + ": no #pragma once\n";
    return complaints;
  });
}

TEST(LayeringRules, forbid_what_they_should) {
  EXPECT_NE(objection("cli/main.cpp", "runtime/base/error.h"), "");
  EXPECT_NE(objection("cli/main.cpp", "compiler/formats/format.h"), "");
  EXPECT_NE(objection("compiler/sema/a.cpp", "runtime/hal/device.h"), "");
  EXPECT_NE(objection("compiler/passes/a.cpp", "compiler/engine/format.h"), "");
  EXPECT_NE(objection("runtime/exec/a.cpp", "compiler/ir/type.h"), "");
  EXPECT_NE(objection("compiler/passes/a.cpp", "llvm/IR/Module.h"), "");
  EXPECT_NE(objection("compiler/engine/a.cpp", "antlr4-runtime.h"), "");
  EXPECT_NE(objection("runtime/memory/a.cpp", "cuda.h"), "");
  EXPECT_NE(objection("runtime/hal/host/a.cpp", "cublasLt.h"), "");
  EXPECT_NE(objection("include/gk/gk.h", "runtime/base/error.h"), "");
  EXPECT_NE(objection("compiler/engine/session.cpp", "re2/re2.h"), "");
}

TEST(LayeringRules, allow_what_they_should) {
  EXPECT_EQ(objection("cli/main.cpp", "include/gk/gk.h"), "");
  EXPECT_EQ(objection("cli/main.cpp", "cli/options.h"), "");
  EXPECT_EQ(objection("cli/main.cpp", "CLI/CLI.hpp"), "");
  EXPECT_EQ(objection("compiler/sema/a.cpp", "runtime/base/error.h"), "");
  EXPECT_EQ(objection("compiler/codegen/a.cpp", "llvm/IR/Module.h"), "");
  EXPECT_EQ(objection("compiler/codegen/a.cpp", "runtime/program/program.h"), "");
  EXPECT_EQ(objection("compiler/engine/a.cpp", "runtime/hal/device.h"), "");
  EXPECT_EQ(objection("compiler/engine/pattern.cpp", "re2/re2.h"), "");
  EXPECT_EQ(objection("compiler/syntax/a.cpp", "antlr4-runtime.h"), "");
  EXPECT_EQ(objection("runtime/hal/cuda/a.cpp", "cuda.h"), "");
  EXPECT_EQ(objection("runtime/library/a.cpp", "cublasLt.h"), "");
}

}  // namespace
