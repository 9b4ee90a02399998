#include "tests/script/ptx.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "include/gk/gk.h"
#include "tests/script/expectations.h"

namespace gk::test {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The emitted text holds one PTX module a kernel; each begins with its .version line.
std::vector<std::string> split_modules(const std::string& text) {
  std::vector<std::string> modules;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(".version", 0) == 0) modules.emplace_back();
    if (!modules.empty()) modules.back() += line + "\n";
  }
  return modules;
}

class PtxTest : public testing::Test {
 public:
  PtxTest(fs::path path, int sm) : path_(std::move(path)), sm_(sm) {}

  void TestBody() override {
    const char* ptxas = std::getenv("GK_PTXAS");
    if (!ptxas || !*ptxas || access(ptxas, X_OK) != 0) GTEST_SKIP() << "no ptxas to assemble with";
    const std::string text = read_file(path_);
    auto expected = read_expectations(text);
    ASSERT_TRUE(expected);
    std::string folder = (fs::temp_directory_path() / "gk_ptx.XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const fs::path before = fs::current_path();
    fs::current_path(folder);  // scripts may write files
    SessionOptions options;
    options.device = "host";
    options.emit_sm = sm_;
    options.out = options.err = [](std::string_view) {};
    for (const auto& [name, value] : expected->options)
      if (name == "args") {
        std::istringstream words(value);
        for (std::string word; words >> word;) options.args.push_back(word);
      }
    std::string ptx;
    Session::open(options)->emit(Emit::Ptx, path_.string(), text, ptx);
    static std::set<std::string> done;  // in this process
    for (const std::string& module : split_modules(ptx)) {
      if (!done.insert(module).second) continue;
      std::ofstream("k.ptx") << module;
      std::string command = fmt::format("'{}' -arch=sm_{} -O0 -o k.cubin k.ptx > log 2>&1", ptxas, sm_);
      EXPECT_EQ(std::system(command.c_str()), 0) << read_file("log") << module.substr(0, 4000);
    }
    fs::current_path(before);
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

 private:
  fs::path path_;
  int sm_;
};

}  // namespace

void add_ptx_tests(const fs::path& root, const fs::path& script) {
  for (int sm : {75, 80, 90, 100, 120}) {
    std::string name = fmt::format("{}.sm_{}", fs::relative(script, root).replace_extension().string(), sm);
    testing::RegisterTest("ptx", name.c_str(), nullptr, nullptr, script.c_str(), 1,
                          [=]() -> PtxTest* { return new PtxTest(script, sm); });
  }
}

}  // namespace gk::test
