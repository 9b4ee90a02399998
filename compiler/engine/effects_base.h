// What every device's Effects share: printing, formatting, files, interruption. Owns the output callback and
// the interruption flag. Not for running anything: that is DeviceEffects and InterpEffects.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/sema/effects.h"

namespace gk::engine {

/// What a session wants to see of what the compiler made (--emit), gathered while the program runs.
struct EmitLog {
  bool on = false;
  std::vector<std::string> ir;  // a text per unit
  std::vector<std::string> plans;
  std::vector<std::string> apart;  // of the plan that is made just now
  std::vector<std::string> graphs, dots;
  std::vector<std::shared_ptr<ir::Module>> modules;  // for code of other targets
};

/// Whether arrays are searched for NaN after they are written, and which ones may hold some, by name.
struct NanCheck {
  bool on = false;
  std::vector<std::string> exempt{};
};

struct Counters {
  int64_t units = 0;  // modules executed or captured
  int64_t unit_cache_hits = 0;
  int64_t compiles = 0;  // modules compiled to programs
  int64_t graphs = 0, executables = 0, launches = 0;
  int64_t nodes = 0;  // driver nodes of graphs made
  int64_t leases = 0, arena_bytes = 0;
  // Updates of executables by the rung of the ladder that they took, and why the last one took a lower one.
  int64_t updates_patched = 0, updates_graph = 0, updates_reinstantiated = 0;
  std::string last_update_reason;
  double compile_ms = 0;
  std::map<std::string, double> pass_ms;
};

class EffectsBase : public sema::Effects {
 public:
  void print(std::string_view text) override { out(text); }
  std::string format(const interp::Array& a, bool shorten) override;
  std::string format(const Scalar& s) override;
  Result<std::string> format(const Scalar& s, std::string_view spec) override;
  Result<std::string> format(std::string_view text, std::string_view spec) override;
  Result<std::vector<sema::StoredArray>> load(const std::string& path) override;
  Result<void> save(const std::string& path,
                    const std::vector<std::pair<std::string, interp::Array>>& arrays) override;
  bool interrupted() const override {
    return interrupt_flag && interrupt_flag->load(std::memory_order_relaxed);
  }
  bool sync_every_statement() const override { return sync; }

  /// How many bytes are held and were held at most; 0 where the device does not count.
  virtual int64_t peak_bytes() const = 0;
  virtual int64_t driver_calls() const = 0;
  virtual int64_t kernels_compiled() const = 0;
  virtual int64_t disk_cache_hits() const = 0;
  virtual std::string device_json() const = 0;
  /// What the nodes of a graph or executable do, a line a step. Empty where nobody plans steps.
  virtual std::vector<std::vector<std::string>> node_steps(const sema::GraphObject& g,
                                                           bool executable) const {
    (void)g, (void)executable;
    return {};
  }

  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> progress;  // may be null

  /// Shows what is going on for as long as it lives.
  class Progress {
   public:
    Progress(const std::function<void(std::string_view)>& show, std::string_view what) : show_(show) {
      if (show_) show_(what);
    }
    ~Progress() {
      if (show_) show_("");
    }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

   private:
    const std::function<void(std::string_view)>& show_;
  };

  std::atomic<bool>* interrupt_flag = nullptr;
  bool sync = false;
  bool eager = false;  // a launch runs the graph's steps one by one
  NanCheck nan_check;
  int64_t memory_limit_bytes = 0;  // what a packed array may unpack to; 0: no limit
  EmitLog emit_log;
  Counters counters;

 protected:
  /// E0805 where `a` has a NaN.
  static Result<void> check_nan(const interp::Array& a, const std::string& name, Span span);
};

}  // namespace gk::engine
