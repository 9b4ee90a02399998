// `bench` blocks: submit time, time per iteration and latency, apart, with median and spread.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "compiler/engine/session_impl.h"

namespace gk {

using syntax::StmtKind;

namespace {

using Clock = std::chrono::steady_clock;

double us(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

struct Quantiles {
  double low, median, high;  // 10th, 50th, 90th percentile
};
Quantiles quantiles(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  auto at = [&](double q) { return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1) + 0.5)]; };
  return {at(0.1), at(0.5), at(0.9)};
}

}  // namespace

Status Session::bench(std::string_view name, std::string_view text, std::string_view filter, bool json) {
  return impl_->run_blocks(StmtKind::Bench, name, text, filter, [&](const Impl::Blocks& benches) {
    Status s = Status::Ok;
    if (benches.empty() && !json) impl_->out(fmt::format("no benches in {}\n", name));
    auto& runner = *impl_->runner;
    auto& effects = *impl_->effects;
    nlohmann::json rows = nlohmann::json::array();
    for (const auto* stmt : benches) {
      auto once = [&]() -> Result<void> { return runner.run_bench(*stmt->body, runner.root()); };
      auto measure = [&]() -> Result<nlohmann::json> {
        auto start = Clock::now();
        for (int i = 0; i < 3; ++i) GK_CHECK(once());
        GK_CHECK(effects.synchronize());
        double estimate = std::max(us(Clock::now() - start) / 3, 0.5);
        // About half a second in eleven batches.
        auto batch = static_cast<int64_t>(std::clamp(45'000.0 / estimate, 1.0, 20'000.0));
        std::vector<double> submit, per, latency;
        for (int b = 0; b < 11; ++b) {
          auto t0 = Clock::now();
          for (int64_t i = 0; i < batch; ++i) GK_CHECK(once());
          auto t1 = Clock::now();
          GK_CHECK(effects.synchronize());
          auto t2 = Clock::now();
          submit.push_back(us(t1 - t0) / static_cast<double>(batch));
          per.push_back(us(t2 - t0) / static_cast<double>(batch));
          auto t3 = Clock::now();
          GK_CHECK(once());
          GK_CHECK(effects.synchronize());
          latency.push_back(us(Clock::now() - t3));
        }
        auto row = [](const Quantiles& q) {
          return nlohmann::json{{"p10", q.low}, {"median", q.median}, {"p90", q.high}};
        };
        return nlohmann::json{{"name", stmt->text},
                              {"batch", batch},
                              {"submit_us", row(quantiles(submit))},
                              {"per_iteration_us", row(quantiles(per))},
                              {"latency_us", row(quantiles(latency))}};
      };
      auto row = [&] {
        engine::EffectsBase::Progress shown(effects.progress, fmt::format("measuring {}", stmt->text));
        return measure();
      }();
      if (!row) {
        // The others are measured all the same.
        const Status failed = impl_->report(row.error(), false);
        if (s == Status::Ok) s = failed;
        rows.push_back(nlohmann::json{{"name", stmt->text}, {"error", row.error().code}});
        if (failed == Status::Interrupted) break;
        continue;
      }
      if (!json)
        impl_->out(fmt::format(
            "{:<40} submit {:>9.2f} us   per iteration {:>9.2f} us (p10 {:.2f}, p90 {:.2f})   "
            "latency {:>9.2f} us\n",
            stmt->text, (*row)["submit_us"]["median"].get<double>(),
            (*row)["per_iteration_us"]["median"].get<double>(),
            (*row)["per_iteration_us"]["p10"].get<double>(), (*row)["per_iteration_us"]["p90"].get<double>(),
            (*row)["latency_us"]["median"].get<double>()));
      rows.push_back(std::move(*row));
    }
    if (json) {
      nlohmann::json doc{
          {"file", name}, {"device", nlohmann::json::parse(effects.device_json())}, {"benches", rows}};
      impl_->out(doc.dump(2) + "\n");
    }
    return s;
  });
}

}  // namespace gk
