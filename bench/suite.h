// The measurements of gk_bench. Owns the runtime, the compiled works and the rows of results.
// Promises a row for every measurement that the device allows; where there is no raw driver, rows of gk
// alone. Not for printing: main.cpp does that.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/raw_driver.h"
#include "bench/timing.h"
#include "compiler/engine/effects_base.h"
#include "compiler/engine/program_cache.h"
#include "compiler/ir/module.h"
#include "runtime/exec/exec.h"

namespace gk::bench {

struct SuiteOptions {
  std::string device;  // "cuda", "host", …
  std::string only;    // a target such as "P4"; empty: all
  double effort = 1;   // scales the number of samples
};

class Suite {
 public:
  static Result<std::unique_ptr<Suite>> open(const SuiteOptions& options);
  Result<void> run();
  nlohmann::json rows() const { return rows_; }
  const hal::DeviceInfo& device() { return runtime_->device().info(); }
  /// Why there are no raw rows; empty where there are.
  const std::string& no_raw() const { return no_raw_; }

 private:
  /// A loaded program with arrays of its own, all zero.
  struct Work {
    std::string name;
    std::shared_ptr<exec::Loaded> loaded;
    exec::Bindings bindings;
    std::shared_ptr<RawLaunches> raw;
    memory::BlockPtr raw_arena;
    int64_t steps = 0;
  };
  Suite() = default;
  bool wants(std::string_view target) const { return options_.only.empty() || options_.only == target; }
  int rounds(double n) const;
  Result<Work> prepare(std::string name, const ir::Module& m);
  Result<std::shared_ptr<exec::Executable>> executable(const std::vector<exec::GraphNode>& nodes);
  static std::vector<exec::GraphNode> one_node(const Work& w) { return {{"", w.loaded, w.bindings, {}, {}}}; }
  Result<void> settle();
  /// gk beside raw (skipped where there is none), in turns.
  Result<void> row(std::string_view target, const Work& w, std::string_view what, Timed gk, Timed raw,
                   int rounds, double per = 1);

  Result<void> launches(std::string_view target, const Work& w);
  Result<void> eager(std::string_view target, const Work& w);
  Result<void> captures(std::string_view target, const Work& w);
  Result<void> updates(int nodes);
  Result<void> chain_memory(bool fuse);
  Result<void> language();
  /// A work of the language beside the same given to the runtime, in turns.
  Result<void> beside(std::string_view target, std::string_view work, Timed language, Timed runtime,
                      int rounds);

  SuiteOptions options_;
  std::shared_ptr<exec::Runtime> runtime_;
  engine::Counters counters_;
  std::function<void(std::string_view)> silent_;  // no progress is shown
  std::shared_ptr<engine::ProgramCache> cache_;
  std::unique_ptr<RawDriver> raw_;
  std::string no_raw_;
  nlohmann::json rows_ = nlohmann::json::array();
};

}  // namespace gk::bench
