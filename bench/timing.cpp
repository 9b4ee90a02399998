#include "bench/timing.h"

#include <algorithm>
#include <chrono>

namespace gk::bench {
namespace {

double at(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

std::vector<double> sorted(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v;
}

}  // namespace

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Samples::median() const { return at(sorted(us), 0.5); }

nlohmann::json Samples::json() const {
  const std::vector<double> s = sorted(us);
  return {{"p10", at(s, 0.1)}, {"median", at(s, 0.5)}, {"p90", at(s, 0.9)}, {"samples", s.size()}};
}

Result<std::vector<Samples>> in_turns(const std::vector<Timed>& things, int rounds, double per) {
  std::vector<Samples> all(things.size());
  const int warm = std::max(3, rounds / 20);
  for (int r = -warm; r < rounds; ++r) {
    // Whoever goes second would always find the caches as the first left them: the order alternates.
    for (size_t k = 0; k < things.size(); ++k) {
      const size_t i = r % 2 == 0 ? k : things.size() - 1 - k;
      const Timed& t = things[i];
      if (t.before) GK_CHECK(t.before());
      const double start = now_us();
      GK_CHECK(t.body());
      const double end = now_us();
      if (t.after) GK_CHECK(t.after());
      if (r >= 0) all[i].us.push_back((end - start) / per);
    }
  }
  return all;
}

}  // namespace gk::bench
