// gk_bench: prints one JSON document of rows, each a thing that gk does beside the same done by the driver
// alone.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "bench/suite.h"
#include "gk_config.h"

namespace {

constexpr const char* kUsage =
    "usage: gk_bench [--device D] [--only P4] [--effort X]\n"
    "Measures launches, eager runs, captures, updates and memory; prints JSON. The commit is taken from "
    "GK_COMMIT.\n";

int failed(const gk::Error& e) {
  fmt::print(stderr, "gk_bench: {}: {}\n", e.code, e.message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  gk::bench::SuiteOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--help") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (i + 1 == argc || (arg != "--device" && arg != "--only" && arg != "--effort")) {
      fmt::print(stderr, "{}", kUsage);
      return 2;
    }
    const char* value = argv[++i];
    if (arg == "--device") options.device = value;
    if (arg == "--only") options.only = value;
    if (arg == "--effort") options.effort = std::atof(value);
  }
  if (options.device.empty()) {
    const auto devices = gk::hal::list_devices();
    options.device = devices.empty() ? "host" : devices[0].id;
  }
  auto suite = gk::bench::Suite::open(options);
  if (!suite) return failed(suite.error());
  const auto outcome = (*suite)->run();
  const auto& info = (*suite)->device();
  const char* commit = std::getenv("GK_COMMIT");
  nlohmann::json doc{{"tool", "gk_bench"},
                     {"version", GK_VERSION},
                     {"commit", commit != nullptr ? commit : "unknown"},
                     {"device", {{"id", info.id}, {"name", info.name}, {"driver", info.driver}}},
                     {"rows", (*suite)->rows()}};
  if (!(*suite)->no_raw().empty()) doc["no_raw_rows"] = (*suite)->no_raw();
  // What was measured before a failure is worth keeping.
  if (!outcome) doc["error"] = outcome.error().message;
  fmt::print("{}\n", doc.dump(1));
  return outcome ? 0 : failed(outcome.error());
}
