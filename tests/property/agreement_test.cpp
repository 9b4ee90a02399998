// One meaning everywhere: random programs give the same numbers from the
// interpreter, statement by statement on a device, and from a replayed graph
// there. GK_PROPERTY_COUNT sets how many programs, GK_PROPERTY_SEED the first.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "compiler/engine/npy.h"
#include "gk/gk.h"
#include "tests/property/program_generator.h"

namespace gk::agreement {

namespace {

int64_t from_environment(const char* name, int64_t fallback) {
  const char* v = std::getenv(name);
  return v ? std::atoll(v) : fallback;
}

struct Run {
  Status status = Status::Ok;
  std::string errors;
  engine::NamedArrays arrays;
};

class Runner {
 public:
  explicit Runner(const std::string& device) : device_(device) {
    static int made = 0;
    path_ = (std::filesystem::temp_directory_path() / fmt::format("gk_property_{}_{}.npz", getpid(), ++made))
                .string();
  }
  ~Runner() { std::filesystem::remove(path_); }

  Run operator()(std::string text) {
    // A fresh session now and then: definitions pile up in one.
    if (!session_ || ++used_ > 50) {
      SessionOptions o;
      o.device = device_;
      o.out = [](std::string_view) {};
      o.err = [this](std::string_view t) { errors_ += t; };
      session_ = Session::open(o);
      used_ = 0;
    }
    errors_.clear();
    text.replace(text.find("PATH"), 4, path_);
    Run r;
    r.status = session_->run("generated.gk", text);
    r.errors = errors_;
    if (r.status == Status::Ok) {
      auto arrays = engine::read_npz(path_);
      if (arrays)
        r.arrays = std::move(*arrays);
      else
        r.errors = arrays.error().message;
    }
    return r;
  }

 private:
  std::string device_, path_, errors_;
  std::unique_ptr<Session> session_;
  int used_ = 0;
};

// "" when equal: bit for bit (NaNs are one value), or within the bound for
// inexact results.
std::string compare(const interp::Array& a, const interp::Array& b, bool exact) {
  if (a.dtype != b.dtype || !(a.shape == b.shape))
    return fmt::format("{}{} against {}{}", name(a.dtype), to_string(a.shape), name(b.dtype),
                       to_string(b.shape));
  double scale = 1;
  for (int64_t i = 0; i < a.size(); ++i)
    if (double v = std::fabs(a.get(i).as_double()); std::isfinite(v)) scale = std::max(scale, v);
  double bound = 1e-4;  // of f64 too: it may have been f32 on the way
  if (a.dtype == DType::F16) bound = 4e-3;
  if (a.dtype == DType::BF16) bound = 3e-2;
  for (int64_t i = 0; i < a.size(); ++i) {
    Scalar x = a.get(i), y = b.get(i);
    if (x == y) continue;
    double p = x.as_double(), q = y.as_double();
    if (std::isnan(p) && std::isnan(q)) continue;
    if (!exact && std::fabs(p - q) <= bound * scale) continue;
    if (!exact && !std::isfinite(p) && !std::isfinite(q)) continue;
    return fmt::format("element {}: {} against {}", i, p, q);
  }
  return "";
}

constexpr int kShards = 20;

// One shard's part of the programs.
void agree(const std::string& device, int shard) {
  int64_t count = from_environment("GK_PROPERTY_COUNT", 1000) / kShards;
  int64_t first = from_environment("GK_PROPERTY_SEED", 1) + shard * count;
  Runner interp("interp"), eager(device), graph(device);
  int failures = 0;
  for (int64_t seed = first; seed < first + count && failures < 5; ++seed) {
    Program p = generate(static_cast<uint64_t>(seed));
    Run reference = interp(p.eager), e = eager(p.eager), g = graph(p.graph);
    std::string wrong;
    if (reference.status != Status::Ok) wrong = "interp: " + reference.errors;
    if (e.status != Status::Ok) wrong += "eager: " + e.errors;
    if (g.status != Status::Ok) wrong += "graph: " + g.errors;
    if (wrong.empty() && (reference.arrays.size() != p.results.size() ||
                          e.arrays.size() != p.results.size() || g.arrays.size() != p.results.size()))
      wrong = "results are missing " + e.errors;
    for (size_t k = 0; wrong.empty() && k < p.results.size(); ++k) {
      auto d = compare(e.arrays[k].second, g.arrays[k].second, true);
      if (!d.empty()) wrong = fmt::format("{}, eager against graph: {}", p.results[k].name, d);
      d = compare(reference.arrays[k].second, e.arrays[k].second, p.results[k].exact);
      if (!d.empty()) wrong += fmt::format(" {}, interp against eager: {}", p.results[k].name, d);
    }
    if (!wrong.empty()) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << wrong << "\n" << p.graph;
    }
  }
}

}  // namespace

class Agreement : public testing::TestWithParam<int> {};
TEST_P(Agreement, interp_eager_graph) { agree("host", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Host, Agreement, testing::Range(0, kShards));

class AgreementGpu : public testing::TestWithParam<int> {};
TEST_P(AgreementGpu, interp_eager_graph) {
  if (list_devices(false).find("cuda:") == std::string::npos) GTEST_SKIP() << "no CUDA device answers";
  agree("cuda", GetParam());
}
INSTANTIATE_TEST_SUITE_P(Cuda, AgreementGpu, testing::Range(0, kShards));

}  // namespace gk::agreement
