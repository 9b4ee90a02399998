// Runs every tests/scripts/**/*.gk on every device, and the examples on host: one named test a script and
// device, script.NAME.DEVICE. Scripts with helps that say what to write are run once more as they say,
// fixed.NAME. The scripts say what they expect; see expectations.h.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "include/gk/gk.h"
#include "tests/script/expectations.h"
#include "tests/script/ptx.h"

namespace gk::test {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A script may write files: it gets an empty folder of its own as working directory.
class Workplace {
 public:
  Workplace() : before_(fs::current_path()) {
    std::string name = (fs::temp_directory_path() / "gk_script.XXXXXX").string();
    made_ = ::mkdtemp(name.data()) != nullptr;
    if (made_) fs::current_path(folder_ = name);
  }
  ~Workplace() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
    if (made_) fs::remove_all(folder_, ignored);
  }
  bool made() const { return made_; }

 private:
  fs::path before_, folder_;
  bool made_ = false;
};

struct Captured {
  std::string out, err;
};

std::string apply_options(const Expectations& e, SessionOptions& s) {
  for (const auto& [name, value] : e.options) {
    if (name == "memory_limit") {
      size_t digits = 0;
      const long long mib = std::stoll(value, &digits);
      if (value.substr(digits) != "MiB") return "not a number of MiB: " + value;
      s.memory_limit_bytes = mib << 20;
    } else if (name == "seed") {
      s.seeded = true;
      s.seed = std::stoull(value);
    } else if (name == "define") {
      size_t eq = value.find('=');
      if (eq == std::string::npos) return "not name=value: " + value;
      s.defines.emplace_back(value.substr(0, eq), value.substr(eq + 1));
    } else if (name == "args") {
      std::istringstream words(value);
      for (std::string word; words >> word;) s.args.push_back(word);
    } else if (name == "unchecked") {
      s.unchecked = true;
    } else if (name == "sync") {
      s.sync = true;
    } else if (name == "nan_check") {
      s.nan_check = true;
      std::istringstream names(value);
      for (std::string n; std::getline(names, n, ',');) s.nan_exempt.push_back(n);
    } else {
      return "no such option: " + name;
    }
  }
  return "";
}

void check_errors(const Expectations& e, const Captured& captured, Status status) {
  std::vector<Diagnostic> found;
  for (Diagnostic& d : read_diagnostics(captured.err))
    if (d.severity != "warning" || d.line > 0) found.push_back(std::move(d));
  std::vector<bool> used(found.size(), false);
  for (const ExpectedError& want : e.errors) {
    bool met = false;
    for (size_t i = 0; i < found.size() && !met; ++i) {
      if (used[i] || found[i].line != want.line || found[i].code != want.code) continue;
      if (found[i].severity != want.severity) continue;
      if (found[i].message.find(want.text) == std::string::npos) continue;
      met = used[i] = true;
      for (const std::string& help : want.helps) {
        const auto has = [&](const std::string& h) { return h.find(help) != std::string::npos; };
        EXPECT_TRUE(std::any_of(found[i].helps.begin(), found[i].helps.end(), has))
            << "line " << want.line << " should have the help '" << help << "'; diagnostics were:\n"
            << captured.err;
      }
    }
    EXPECT_TRUE(met) << "line " << want.line << " should give " << want.code << " '" << want.text
                     << "'; diagnostics were:\n"
                     << captured.err;
  }
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(used[i]) << "unexpected diagnostic at line " << found[i].line << ": " << found[i].code << " "
                         << found[i].message;
  if (e.status)
    EXPECT_EQ(static_cast<int>(status), *e.status);
  else if (std::all_of(e.errors.begin(), e.errors.end(),
                       [](const auto& w) { return w.severity == "warning"; }))
    EXPECT_EQ(static_cast<int>(status), 0) << captured.err;
  else
    EXPECT_NE(static_cast<int>(status), 0);
}

void check_structure(const Expectations& e, const std::string& stats_json) {
  auto stats = nlohmann::json::parse(stats_json, nullptr, false);
  ASSERT_TRUE(stats.is_object()) << stats_json;
  for (const Counter& c : e.structure) {
    ASSERT_TRUE(stats.contains(c.name) && stats[c.name].is_number()) << c.name << " is not in " << stats_json;
    long long value = stats[c.name].get<long long>();
    bool met = c.relation == "="    ? value == c.value
               : c.relation == "<=" ? value <= c.value
                                    : value >= c.value;
    EXPECT_TRUE(met) << c.name << " is " << value << ", should be " << c.relation << c.value;
  }
}

class ScriptTest : public testing::Test {
 public:
  ScriptTest(fs::path path, std::string device, bool is_example)
      : path_(std::move(path)), device_(std::move(device)), is_example_(is_example) {}

  void TestBody() override {
    const std::string text = read_file(path_);
    auto read = read_expectations(text);
    ASSERT_TRUE(read) << path_ << ": " << read.error();
    const Expectations& e = *read;
    for (const auto& [device, reason] : e.skips)
      if (device == device_ || device + "-eager" == device_) GTEST_SKIP() << reason;
    Workplace workplace;
    ASSERT_TRUE(workplace.made());

    Captured captured;
    SessionOptions options;
    // "host-eager": on host, graphs run step by step.
    const size_t dash = device_.find("-eager");
    options.device = device_.substr(0, dash);
    options.eager = dash != std::string::npos;
    options.format = DiagnosticFormat::Json;
    options.use_cache = false;
    options.out = [&](std::string_view t) { captured.out += t; };
    options.err = [&](std::string_view t) { captured.err += t; };
    std::string wrong = apply_options(e, options);
    ASSERT_EQ(wrong, "") << path_;

    {
      auto session = Session::open(options);
      ASSERT_EQ(session->open_status(), Status::Ok) << captured.err;
      Status status = session->run(path_.string(), text);
      check_errors(e, captured, status);
      if (!is_example_) {
        EXPECT_EQ(split_lines(captured.out), e.output);
      }
      if (device_ == "host" && !e.structure.empty()) check_structure(e, session->stats_json());
    }
    if (!e.has_tests) return;
    captured = {};
    auto session = Session::open(options);
    TestReport report;
    Status status = session->test(path_.string(), text, "", report);
    EXPECT_EQ(static_cast<int>(status), 0) << captured.err << captured.out;
    EXPECT_EQ(report.failed, 0) << captured.err << captured.out;
    EXPECT_GT(report.passed, 0);
  }

 private:
  fs::path path_;
  std::string device_;
  bool is_example_;
};

void add(const std::string& kind, const fs::path& root, const fs::path& path, const std::string& device,
         bool example) {
  // Suites with Gpu in their names carry ctest's label gpu.
  const std::string suite = kind + (device.substr(0, 4) == "cuda" ? "Gpu" : "");
  std::string name = fs::relative(path, root).replace_extension().string() + "." + device;
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, path.c_str(), 1,
                        [=]() -> ScriptTest* { return new ScriptTest(path, device, example); });
}

// The script with its mistakes mended as the helps say.
class FixedTest : public testing::Test {
 public:
  explicit FixedTest(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    const std::string text = read_file(path_);
    auto read = read_expectations(text);
    ASSERT_TRUE(read) << path_ << ": " << read.error();
    Expectations& e = *read;
    Workplace workplace;
    ASSERT_TRUE(workplace.made());
    Captured before;
    run(e, text, before);
    follow(e.errors, read_diagnostics(before.err));
    Captured after;
    const std::string fixed = fixed_script(text, e);
    const Status status = run(e, fixed, after);
    check_errors(e, after, status);
    if (!e.fixed_output.empty()) {
      EXPECT_EQ(split_lines(after.out), e.fixed_output);
    }
  }

 private:
  Status run(const Expectations& e, const std::string& text, Captured& captured) {
    SessionOptions options;
    options.device = "host";
    options.format = DiagnosticFormat::Json;
    options.use_cache = false;
    options.out = [&](std::string_view t) { captured.out += t; };
    options.err = [&](std::string_view t) { captured.err += t; };
    EXPECT_EQ(apply_options(e, options), "") << path_;
    return Session::open(options)->run(path_.string(), text);
  }

  // What the script gives as mended is what a help of the error says.
  static void follow(const std::vector<ExpectedError>& errors, const std::vector<Diagnostic>& found) {
    for (const ExpectedError& error : errors) {
      if (std::none_of(error.fixes.begin(), error.fixes.end(), [](const Fix& f) { return f.as_told; }))
        continue;
      bool said = false;
      for (const Diagnostic& d : found)
        for (const std::string& help : d.helps)
          for (const Fix& f : error.fixes)
            said = said || (d.line == error.line && d.code == error.code && follows_help(help, f.text));
      EXPECT_TRUE(said) << "line " << error.line << ": no help of its error says what is fixed";
    }
  }

  fs::path path_;
};

void add_fixed(const fs::path& root, const fs::path& path) {
  const std::string text = read_file(path);
  if (text.find("# fixed") == std::string::npos && text.find("# mended") == std::string::npos) return;
  const std::string name = fs::relative(path, root).replace_extension().string();
  testing::RegisterTest("fixed", name.c_str(), nullptr, nullptr, path.c_str(), 1,
                        [=]() -> FixedTest* { return new FixedTest(path); });
}

std::vector<fs::path> scripts_below(const fs::path& root, bool recursive) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::recursive_directory_iterator it(root, ec), end; it != end; it.increment(ec)) {
    if (!recursive && it->is_directory()) it.disable_recursion_pending();
    // What other scripts import is no script by itself.
    if (it->is_directory() && it->path().filename() == "imported") it.disable_recursion_pending();
    if (it->path().extension() == ".gk") found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool gpu_answers() {
  SessionOptions options;
  options.device = "cuda";
  options.err = [](std::string_view) {};
  return Session::open(options)->open_status() == Status::Ok;
}

std::vector<std::string> devices() {
  std::string wanted = environment("GK_TEST_DEVICES", "");
  if (wanted.empty()) {
    std::vector<std::string> all = {"interp", "host", "host-eager", "trace"};
    if (gpu_answers()) all.insert(all.end(), {"cuda", "cuda-eager"});
    return all;
  }
  std::vector<std::string> result;
  std::istringstream words(wanted);
  for (std::string word; std::getline(words, word, ',');) result.push_back(word);
  return result;
}

}  // namespace
}  // namespace gk::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  using namespace gk::test;
  const fs::path scripts = environment("GK_SCRIPTS_DIR", GK_SOURCE_DIR "/tests/scripts");
  const fs::path examples = environment("GK_EXAMPLES_DIR", GK_SOURCE_DIR "/examples");
  for (const std::string& device : devices()) {
    for (const fs::path& path : scripts_below(scripts, true)) add("script", scripts, path, device, false);
    // The reference interpreter would take minutes for these.
    if (device == "interp") continue;
    for (const fs::path& path : scripts_below(examples, false)) add("example", examples, path, device, true);
  }
  for (const fs::path& path : scripts_below(scripts, true)) {
    add_fixed(scripts, path);
    add_ptx_tests(scripts, path);
  }
  for (const fs::path& path : scripts_below(examples, false)) add_ptx_tests(examples, path);
  return RUN_ALL_TESTS();
}
