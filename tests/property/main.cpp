// Generated programs against the model: as tests (a shard of seeds each), or by
// hand:
//
//   gk_property_tests --seed=1 --count=100000 --jobs=16 [--device=cuda]
//   [--all-ways] [--shrink] gk_property_tests --seed=7 --print            the
//   program of seed 7, and what is right gk_property_tests --seed=7 --shrink a
//   smaller program that fails in the same way
//
// As tests GK_PROPERTY_SEED sets the first seed (1) and GK_PROPERTY_COUNT the
// number of programs (2000).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "tests/property/generator.h"
#include "tests/property/runner.h"

namespace gk::property {

namespace {

int64_t from_environment(const char* name, int64_t fallback) {
  const char* v = std::getenv(name);
  return v ? std::atoll(v) : fallback;
}

constexpr int kShards = 20;

void hold(const std::string& device, int shard) {
  Range r;
  r.device = device;
  r.count = std::max<int64_t>(1, from_environment("GK_PROPERTY_COUNT", 2000) / kShards);
  r.first = static_cast<uint64_t>(from_environment("GK_PROPERTY_SEED", 1) + shard * r.count);
  r.most_failures = 3;
  for (const Found& f : run_range(r).found)
    ADD_FAILURE() << "seed " << f.seed << " " << f.failure.kind << "\n"
                  << f.failure.detail << "\nsee it: gk_property_tests --seed=" << f.seed
                  << " --device=" << device << " --shrink\n"
                  << to_text(generate(f.seed), {});
}

class Programs : public testing::TestWithParam<int> {};
TEST_P(Programs, agree_with_the_model) { hold("host", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Host, Programs, testing::Range(0, kShards));

class ProgramsGpu : public testing::TestWithParam<int> {};
TEST_P(ProgramsGpu, agree_with_the_model) {
  if (!cuda_answers()) GTEST_SKIP() << "no CUDA device answers";
  hold("cuda", GetParam());
}
INSTANTIATE_TEST_SUITE_P(Cuda, ProgramsGpu, testing::Range(0, kShards));

// ---- by hand

struct Options {
  Range range;
  int jobs = 1;
  bool print = false, shrink = false;
  std::string keep;  // a folder for shrunk programs
};

void show(const Found& f, const Options& o) {
  std::string text = fmt::format("==== seed {} {}\n{}\n", f.seed, f.failure.kind, f.failure.detail);
  if (o.shrink) {
    const Program small = shrink(generate(f.seed), f.failure, o.range.device, o.range.seconds);
    const std::string script = as_script(small, f.failure.kind);
    text += script;
    if (!o.keep.empty()) std::ofstream(fmt::format("{}/seed_{}.gk", o.keep, f.seed)) << script;
  }
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// One job's part; what it found is told on stdout, and in numbers in its file.
void job(const Options& o, int k, const std::string& report) {
  Range r = o.range;
  const int64_t per = (r.count + o.jobs - 1) / o.jobs;
  r.first += static_cast<uint64_t>(per * k);
  r.count = std::min(per, std::max<int64_t>(0, o.range.count - per * k));
  const Summary s = run_range(r);
  for (const Found& f : s.found) show(f, o);
  std::ofstream out(report);
  out << s.programs << "\n";
  for (const Found& f : s.found) out << f.seed << " " << f.failure.kind << "\n";
}

int by_hand(const Options& o) {
  if (o.print) {
    const Program p = generate(o.range.first);
    Style style;
    style.folder = ".";
    fmt::print("{}\n# ---- with what is right\n{}", to_text(p, style), as_script(p, "as generated"));
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const Folder folder;
  const std::string& name = folder.path();
  if (name.empty()) return 2;
  std::vector<pid_t> children;
  for (int k = 0; k < o.jobs; ++k) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      job(o, k, fmt::format("{}/{}", name, k));
      std::fflush(nullptr);
      _exit(0);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) waitpid(pid, nullptr, 0);
  int64_t programs = 0, found = 0;
  std::map<std::string, std::vector<std::string>> kinds;
  bool whole = true;
  for (int k = 0; k < o.jobs; ++k) {
    std::ifstream in(fmt::format("{}/{}", name, k));
    int64_t n = 0;
    whole = whole && (in >> n);
    programs += n;
    std::string seed, kind;
    while (in >> seed && std::getline(in, kind)) {
      kinds[kind.substr(1)].push_back(seed);
      ++found;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const auto& [kind, seeds] : kinds) {
    std::string some;
    for (size_t k = 0; k < std::min<size_t>(seeds.size(), 5); ++k) some += " " + seeds[k];
    fmt::print("{:5} {}: seeds{}{}\n", seeds.size(), kind, some, seeds.size() > 5 ? " ..." : "");
  }
  fmt::print(
      "{} programs from seed {} on {} in {:.1f} s ({:.1f} ms each and "
      "job): {} failures{}\n",
      programs, o.range.first, o.range.device, seconds,
      programs ? seconds * 1e3 * o.jobs / static_cast<double>(programs) : 0, found,
      whole ? "" : "; a job ended early");
  return found == 0 && whole ? 0 : 1;
}

}  // namespace
}  // namespace gk::property

int main(int argc, char** argv) {
  gk::property::Options o;
  int kept = 1;
  for (int k = 1; k < argc; ++k) {
    const std::string a = argv[k];
    auto value = [&](const char* name) -> const char* {
      const size_t n = std::strlen(name);
      return a.compare(0, n, name) == 0 ? a.c_str() + n : nullptr;
    };
    if (const char* v = value("--seed="))
      o.range.first = std::strtoull(v, nullptr, 10), o.range.count = 1;
    else if (const char* v = value("--count="))
      o.range.count = std::atoll(v);
    else if (const char* v = value("--jobs="))
      o.jobs = std::max(1, std::atoi(v));
    else if (const char* v = value("--device="))
      o.range.device = v;
    else if (const char* v = value("--seconds="))
      o.range.seconds = std::atoi(v);
    else if (const char* v = value("--failures="))
      o.range.most_failures = std::atoll(v);
    else if (const char* v = value("--keep="))
      o.keep = v, o.shrink = true;
    else if (a == "--all-ways")
      o.range.all_ways = true;
    else if (a == "--print")
      o.print = true;
    else if (a == "--shrink")
      o.shrink = o.range.all_ways = true;
    else
      argv[kept++] = argv[k];
  }
  if (kept == 1 && argc > 1) return gk::property::by_hand(o);
  argc = kept;
  argv[argc] = nullptr;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
