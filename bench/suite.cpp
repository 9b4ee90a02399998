#include "bench/suite.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/modules.h"
#include "compiler/engine/device_effects.h"

namespace gk::bench {
namespace {

constexpr int kFew = 10;

int64_t launches_in_a_row(int64_t steps) {
  return std::clamp<int64_t>(20'000 / std::max<int64_t>(steps, 1), 8, 400);
}

}  // namespace

int Suite::rounds(double n) const { return std::max(kFew, static_cast<int>(n * options_.effort)); }

Result<std::unique_ptr<Suite>> Suite::open(const SuiteOptions& options) {
  engine::install_host_loader();
  std::unique_ptr<Suite> s(new Suite);
  s->options_ = options;
  GK_TRY(auto device, hal::open(options.device, {}));
  GK_TRY(s->runtime_, exec::Runtime::create(device, 0));
  s->cache_ = std::make_shared<engine::ProgramCache>(*device, "");
  if (device->info().target != program::TargetKind::Cuda) {
    s->no_raw_ = "not a CUDA device";
    return s;
  }
  const std::string& id = device->info().id;
  const size_t colon = id.rfind(':');
  auto raw = RawDriver::open(colon == std::string::npos ? 0 : std::atoi(id.c_str() + colon + 1));
  if (raw)
    s->raw_ = std::move(*raw);
  else
    s->no_raw_ = raw.error().message;
  return s;
}

Result<void> Suite::settle() {
  GK_CHECK(runtime_->synchronize());
  if (raw_) GK_CHECK(raw_->synchronize());
  return {};
}

Result<Suite::Work> Suite::prepare(std::string name, const ir::Module& m) {
  Work w;
  w.name = std::move(name);
  GK_TRY(w.loaded, cache_->get(*runtime_, m, {counters_, silent_}));
  const program::Program& p = w.loaded->program();
  w.steps = static_cast<int64_t>(p.steps.size());
  for (const program::Slot& slot : p.slots) {
    GK_TRY(auto block, runtime_->allocate(slot.size_bytes));
    const std::vector<char> zeros(static_cast<size_t>(slot.size_bytes));
    GK_CHECK(runtime_->upload(block, zeros.data(), slot.size_bytes));
    w.bindings.slots.push_back({std::move(block), 0});
  }
  w.bindings.scalars = m.params;
  if (raw_) {
    GK_TRY(w.raw_arena, runtime_->allocate(p.arena_bytes));
    GK_TRY(w.raw, raw_->take(*runtime_, *w.loaded, w.bindings, w.raw_arena->address()));
  }
  return w;
}

Result<std::shared_ptr<exec::Executable>> Suite::executable(const std::vector<exec::GraphNode>& nodes) {
  GK_TRY(auto graph, exec::Graph::create(*runtime_, nodes, "bench"));
  return graph->instantiate();
}

Result<void> Suite::row(std::string_view target, const Work& w, std::string_view what, Timed gk, Timed raw,
                        int rounds, double per) {
  std::vector<Timed> things{std::move(gk)};
  if (raw_) things.push_back(std::move(raw));
  GK_TRY(auto samples, in_turns(things, rounds, per));
  GK_CHECK(settle());
  nlohmann::json r{{"target", target},
                   {"work", w.name},
                   {"kernels", w.steps},
                   {"what", what},
                   {"gk_us", samples[0].json()}};
  if (raw_) {
    r["raw_us"] = samples[1].json();
    r["ratio"] = samples[0].median() / samples[1].median();
    r["difference_us"] = samples[0].median() - samples[1].median();
  }
  rows_.push_back(std::move(r));
  return {};
}

Result<void> Suite::launches(std::string_view target, const Work& w) {
  GK_TRY(auto exec, executable(one_node(w)));
  std::unique_ptr<RawGraph> raw;
  if (raw_) {
    GK_TRY(raw, raw_->graph(*w.raw));
  }
  auto idle = [this] { return settle(); };
  const int64_t many = launches_in_a_row(w.steps);
  const double samples = std::clamp(200'000.0 / static_cast<double>(w.steps + 50), 100.0, 2000.0);

  GK_CHECK(row(target, w, "launch, device idle", {idle, [&] { return exec->launch(*runtime_); }, idle},
               {idle, [&] { return raw->launch(); }, idle}, rounds(samples)));
  auto gk_many = [&] { return exec->launch(*runtime_, many); };
  auto raw_many = [&]() -> Result<void> {
    for (int64_t i = 0; i < many; ++i) GK_CHECK(raw->launch());
    return {};
  };
  GK_CHECK(row(target, w, "launch, back to back", {idle, gk_many, idle}, {idle, raw_many, idle}, rounds(40),
               static_cast<double>(many)));
  auto gk_all = [&]() -> Result<void> {
    GK_CHECK(gk_many());
    return runtime_->synchronize();
  };
  auto raw_all = [&]() -> Result<void> {
    GK_CHECK(raw_many());
    return raw_->synchronize();
  };
  return row(target, w, "per iteration", {idle, gk_all, {}}, {idle, raw_all, {}}, rounds(40),
             static_cast<double>(many));
}

Result<void> Suite::eager(std::string_view target, const Work& w) {
  auto idle = [this] { return settle(); };
  auto gk = [&] { return exec::run(*runtime_, w.loaded, w.bindings); };
  auto raw = [&] { return raw_->launch_each(*w.raw); };
  const double samples = std::clamp(20'000.0 / static_cast<double>(w.steps), 40.0, 2000.0);
  GK_CHECK(row(target, w, "eager, device idle", {idle, gk, idle}, {idle, raw, idle}, rounds(samples)));
  auto gk_all = [&]() -> Result<void> {
    for (int i = 0; i < kFew; ++i) GK_CHECK(gk());
    return runtime_->synchronize();
  };
  auto raw_all = [&]() -> Result<void> {
    for (int i = 0; i < kFew; ++i) GK_CHECK(raw());
    return raw_->synchronize();
  };
  return row(target, w, "eager, per iteration", {idle, gk_all, {}}, {idle, raw_all, {}}, rounds(40), kFew);
}

Result<void> Suite::captures(std::string_view target, const Work& w) {
  std::shared_ptr<exec::Executable> made;
  std::unique_ptr<RawGraph> raw;
  // What is destroyed is destroyed outside the measured time.
  auto drop = [&]() -> Result<void> {
    made.reset();
    raw.reset();
    return settle();
  };
  auto gk = [&]() -> Result<void> {
    GK_TRY(made, executable(one_node(w)));
    return {};
  };
  auto by_hand = [&]() -> Result<void> {
    GK_TRY(raw, raw_->graph(*w.raw));
    return {};
  };
  const double samples = std::clamp(10'000.0 / static_cast<double>(w.steps), 20.0, 500.0);
  return row(target, w, "capture and instantiate", {drop, gk, drop}, {drop, by_hand, drop}, rounds(samples));
}

Result<void> Suite::updates(int nodes) {
  std::vector<exec::GraphNode> declared;
  std::vector<std::shared_ptr<RawLaunches>> parts;
  Work last;
  for (int i = 0; i < nodes; ++i) {
    GK_TRY(last, prepare("increments", increment()));
    declared.push_back({fmt::format("n{}", i), last.loaded, last.bindings, {}, {}});
    parts.push_back(last.raw);
  }
  GK_TRY(Work other, prepare("increments", increment()));
  last.steps = nodes;
  GK_TRY(auto exec, executable(declared));
  std::unique_ptr<RawGraph> raw;
  if (raw_) {
    GK_TRY(raw, raw_->graph(*RawDriver::join(parts)));
  }
  const int middle = nodes / 2;
  const auto at = static_cast<size_t>(middle);
  const exec::Bindings own = declared[at].bindings;
  bool away = false, raw_away = false;
  auto idle = [this] { return settle(); };
  auto gk = [&]() -> Result<void> {
    away = !away;
    GK_CHECK(exec->update(middle, other.loaded, away ? other.bindings : own));
    return exec->launch(*runtime_);
  };
  auto by_hand = [&]() -> Result<void> {
    raw_away = !raw_away;
    GK_CHECK(raw->set_params(at, raw_away ? *other.raw : *parts[at], 0));
    return raw->launch();
  };
  GK_CHECK(row("P5", last, "update of one node, then launch", {idle, gk, idle}, {idle, by_hand, idle},
               rounds(nodes > 500 ? 200 : 1000)));
  if (away) GK_CHECK(gk());
  const exec::SlotBinding here = own.slots[0], there = other.bindings.slots[0];
  auto rebind = [&]() -> Result<void> {
    away = !away;
    const std::pair<exec::SlotBinding, exec::SlotBinding> pair{away ? here : there, away ? there : here};
    GK_CHECK(exec->rebind({&pair, 1}));
    return exec->launch(*runtime_);
  };
  return row("P5", last, "rebind of an array of one node, then launch", {idle, rebind, idle},
             {idle, by_hand, idle}, rounds(nodes > 500 ? 200 : 1000));
}

Result<void> Suite::chain_memory(bool fuse) {
  constexpr int64_t kLimit = int64_t{400} << 20;
  GK_TRY(auto device, hal::open(options_.device, {}));
  GK_TRY(auto runtime, exec::Runtime::create(device, kLimit));
  engine::ProgramCache cache(*device, "");
  GK_TRY(auto loaded, cache.get(*runtime, chain(fuse), {counters_, silent_}));
  exec::Bindings bindings;
  for (const program::Slot& slot : loaded->program().slots) {
    GK_TRY(auto block, runtime->allocate(slot.size_bytes));
    bindings.slots.push_back({std::move(block), 0});
  }
  const int64_t before = runtime->pool().stats().in_use_bytes;
  nlohmann::json r{{"target", "P6"},
                   {"work", fuse ? "chain" : "chain, fuse off"},
                   {"kernels", loaded->program().steps.size()},
                   {"buffer_bytes", loaded->program().slots[0].size_bytes},
                   {"limit_bytes", kLimit},
                   {"temporaries_without_planning_bytes", loaded->program().temporaries_bytes}};
  {
    runtime->pool().reset_peak();
    GK_TRY(auto graph, exec::Graph::create(*runtime, {{"", loaded, bindings, {}, {}}}, "chain"));
    GK_TRY(auto exec, graph->instantiate());
    GK_CHECK(exec->launch(*runtime, 3));
    GK_CHECK(runtime->synchronize());
    r["graph_extra_bytes"] = runtime->pool().stats().peak_bytes - before;
  }
  GK_CHECK(runtime->synchronize());
  runtime->pool().reset_peak();
  for (int i = 0; i < 3; ++i) GK_CHECK(exec::run(*runtime, loaded, bindings));
  GK_CHECK(runtime->synchronize());
  r["eager_extra_bytes"] = runtime->pool().stats().peak_bytes - before;
  rows_.push_back(std::move(r));
  return {};
}

Result<void> Suite::run() {
  if (wants("P2")) {
    for (const bool fuse : {true, false}) {
      const char* suffix = fuse ? "" : ", fuse off";
      GK_TRY(Work rk4, prepare(fmt::format("rk4{}", suffix), rk4_logistic(fuse)));
      GK_CHECK(launches("P2", rk4));
      GK_TRY(Work lorenz, prepare(fmt::format("lorenz{}", suffix), rk4_lorenz(fuse)));
      GK_CHECK(launches("P2", lorenz));
    }
  }
  if (wants("P3")) {
    GK_TRY(Work ten, prepare("ten kernels", increments(10)));
    GK_CHECK(eager("P3", ten));
    GK_CHECK(captures("P3", ten));
    GK_CHECK(launches("P3", ten));
  }
  if (wants("P4")) {
    for (const int n : {10, 100, 1000, 3000}) {
      GK_TRY(Work line, prepare("leased arrays", increments(n)));
      GK_CHECK(launches("P4", line));
      if (n >= 100) GK_CHECK(captures("P4", line));
    }
  }
  if (wants("P5"))
    for (const int n : {10, 100, 1000}) GK_CHECK(updates(n));
  if (wants("P6"))
    for (const bool fuse : {true, false}) GK_CHECK(chain_memory(fuse));
  if (wants("P20")) GK_CHECK(language());
  return {};
}

}  // namespace gk::bench
