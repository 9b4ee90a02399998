// Tables of the documents that repeat what the program knows.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compiler/sema/builtins.h"
#include "compiler/syntax/explain.h"
#include "compiler/syntax/source.h"

namespace gk {
namespace {

namespace fs = std::filesystem;

class Docs : public testing::Test {
 protected:
  void SetUp() override {
    const char* given = std::getenv("GK_SOURCE_DIR");
    root_ = fs::path(given ? given : GK_SOURCE_DIR) / "docs";
    if (!fs::exists(root_)) GTEST_SKIP() << "the documents are not at " << root_;
  }
  std::vector<std::string> lines_of(const char* name) const {
    std::ifstream in(root_ / name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  fs::path root_;
};

std::set<std::string> without(std::set<std::string> a, const std::set<std::string>& b) {
  for (const std::string& s : b) a.erase(s);
  return a;
}

TEST_F(Docs, codes_and_titles_are_those_of_explain) {
  std::set<std::string> documented, known;
  for (const std::string& line : lines_of("errors.md"))
    if (line.size() > 11 && line.starts_with("| E") && line.substr(7, 3) == " | " &&
        !line.substr(5, 2).starts_with("x"))
      documented.insert(line.substr(2, line.rfind(" |") - 2));
  for (const auto table : {syntax::language_explanations(), syntax::machine_explanations()})
    for (const syntax::Explanation& e : table) known.insert(std::string(e.code) + " | " + e.title);
  EXPECT_EQ(without(documented, known), std::set<std::string>()) << "in the document alone";
  EXPECT_EQ(without(known, documented), std::set<std::string>()) << "not in the document";
}

TEST_F(Docs, builtins_are_those_that_there_are) {
  std::set<std::string> documented, known = {"pi", "euler", "inf", "nan", "args"};
  bool here = false;
  for (const std::string& line : lines_of("language.md")) {
    if (line.starts_with("## ")) here = line == "## Builtins";
    if (!here || !line.starts_with("| ") || line.starts_with("| kind")) continue;
    bool code = false;
    std::string word;
    for (const char c : line.substr(line.find('|', 1))) {
      if (code && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
        word += c;
      else if (!word.empty())
        documented.insert(std::exchange(word, {}));
      if (c == '`') code = !code;
    }
  }
  std::set<std::string> told;  // the elementwise ones have their documents in the op table
  for (const sema::Builtin& b : sema::public_builtins()) {
    known.emplace(b.name);
    if (!b.op) told.emplace(b.name);
  }
  EXPECT_EQ(without(documented, known), std::set<std::string>()) << "in the document alone";
  EXPECT_EQ(without(told, documented), std::set<std::string>()) << "not in the document";
}

}  // namespace
}  // namespace gk
