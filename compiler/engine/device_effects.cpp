#include "compiler/engine/device_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>

#include "compiler/engine/program_cache.h"
#include "compiler/formats/edges.h"
#include "runtime/exec/exec.h"
#include "runtime/hal/device.h"

namespace gk::engine {

namespace {

using interp::Array;
using sema::Placement;
using sema::Storage;
using sema::StoragePtr;
using sema::Unit;

// A copy to the host takes about as long as this many bytes of a longer one.
constexpr int64_t kCopyIsWorthBytes = 1 << 16;

Memory& memory_of(const Storage& s) { return *static_cast<Memory*>(s.memory.get()); }

int64_t bytes_of(const Storage& s) {
  auto n = num_elements(s.type.shape());
  int64_t bytes = 0;
  if (!n || __builtin_mul_overflow(*n, size_bytes(s.type.dtype), &bytes)) return -1;
  return bytes;
}

// A graph or executable keeps the storages' memory through leases; the storages themselves tell names.
struct GraphState {
  std::shared_ptr<exec::Graph> graph;
  std::vector<exec::GraphNode> nodes;  // without graphs: what a launch runs, step by step
};
struct ExecState {
  std::shared_ptr<exec::Executable> exec;
  std::vector<exec::GraphNode> nodes;
};
struct KeptState {
  std::shared_ptr<exec::Loaded> loaded;
  std::vector<bool> written;  // by slot
  exec::Bindings room;        // of the last run; holds nothing between runs
};
struct CapturedState {
  std::shared_ptr<exec::Loaded> loaded;
  std::shared_ptr<exec::Graph> graph;
  std::shared_ptr<exec::Executable> exec;
  std::vector<std::pair<const void*, int64_t>> bound;  // blocks and offsets of the last call, by slot
  std::vector<Scalar> scalars;
};

// Of one structure, whichever was made first: the cache may have given one up and made it again. Names and
// numbers are those of whoever asked first.
bool same_work(const program::Program& a, const program::Program& b) {
  const auto told = [](program::Program p) {
    for (auto& slot : p.slots) slot.name.clear();
    for (auto& scalar : p.scalars) scalar = Scalar{scalar.dtype};
    return program::print(p);
  };
  const auto same_code = [](const auto& x, const auto& y) { return x->key == y->key; };
  return told(a) == told(b) &&
         std::equal(a.codes.begin(), a.codes.end(), b.codes.begin(), b.codes.end(), same_code);
}

class HostImageModule final : public hal::Module {
 public:
  explicit HostImageModule(std::shared_ptr<codegen::HostImage> image) : image_(std::move(image)) {}
  Result<hal::Function*> function(std::string_view name) override {
    auto it = functions_.find(name);
    if (it == functions_.end()) {
      auto entry = image_->find(name);
      if (!entry)
        return fail(ErrorKind::Internal, "E0902", fmt::format("compiled code has no function `{}`", name));
      it = functions_.emplace(std::string(name), std::make_unique<hal::HostFunction>(entry)).first;
    }
    return it->second.get();
  }

 private:
  std::shared_ptr<codegen::HostImage> image_;
  std::map<std::string, std::unique_ptr<hal::HostFunction>, std::less<>> functions_;
};

Result<std::shared_ptr<hal::Module>> load_host_image(const program::Code& code) {
  GK_TRY(auto image, codegen::HostImage::load(code));
  return std::make_shared<HostImageModule>(std::move(image));
}

class DeviceEffects final : public DeviceEffectsBase {
 public:
  DeviceEffects(std::shared_ptr<exec::Runtime> runtime, std::shared_ptr<ProgramCache> cache)
      : runtime_(std::move(runtime)), cache_(std::move(cache)) {}

  Result<void> allocate(Storage& s) override {
    int64_t bytes = bytes_of(s);
    if (bytes < 0)
      return fail(ErrorKind::OutOfMemory, "E0602",
                  fmt::format("{} is too large to count", ir::to_string(s.type)));
    auto m = std::make_shared<Memory>();
    if (s.placement == Placement::Host) {
      if (bytes > kMostHostBytes)
        return fail(ErrorKind::OutOfMemory, "E0601",
                    fmt::format("out of memory: asked {} bytes on the host", bytes));
      m->host = std::make_shared<Array>(Array::zeros(s.type.dtype, s.type.shape()));
    } else {
      auto where = s.placement == Placement::Pinned ? hal::Placement::Pinned : hal::Placement::Device;
      GK_TRY(m->block, runtime_->allocate(bytes, where));
    }
    s.memory = m;
    return {};
  }

  Result<void> allocate_stored(Storage& s, std::function<Result<Array>()> read) override {
    auto m = std::make_shared<Memory>();
    m->stored = std::move(read);
    s.memory = m;
    return {};
  }

  Result<Array> download(const Storage& s) override {
    Memory& m = memory_of(s);
    if (m.stored) return m.stored();  // to the host: the device need not hold it
    if (m.host) {
      GK_CHECK(refresh(m));
      return *m.host;
    }
    GK_CHECK(runtime_->synchronize());
    Array a = Array::zeros(s.type.dtype, s.type.shape());
    GK_CHECK(
        runtime_->download(a.bytes.data(), m.block, static_cast<int64_t>(a.bytes.size()), m.offset_bytes));
    return a;
  }

  // A copy a run of elements that lie together, where the whole would be more.
  Result<Array> download_edges(const Storage& s, int64_t edges) override {
    Memory& m = memory_of(s);
    const Shape all = s.type.shape();
    const int64_t item = size_bytes(s.type.dtype);
    const int64_t copies = formats::num_edge_runs(all, edges);
    if (m.stored || m.host || bytes_of(s) < copies * kCopyIsWorthBytes) return download(s);
    GK_CHECK(runtime_->synchronize());
    std::vector<formats::EdgeRun> runs;
    Array a = Array::zeros(s.type.dtype, formats::edge_runs(all, edges, runs));
    for (const formats::EdgeRun& r : runs)
      GK_CHECK(runtime_->download(a.bytes.data() + r.to * item, m.block, r.count * item,
                                  m.offset_bytes + r.from * item));
    return a;
  }

  Result<void> upload(Storage& s, const Array& a) override {
    Memory& m = memory_of(s);
    GK_CHECK(fetch(s, m));
    if (m.host) {
      *m.host = a;
      return host_was_written(m);
    }
    return runtime_->upload(m.block, a.bytes.data(), static_cast<int64_t>(a.bytes.size()), m.offset_bytes);
  }

  Result<void> copy_host(const Storage& src, int64_t offset, Storage& dst) override {
    Memory &from = memory_of(src), &to = memory_of(dst);
    auto bytes = static_cast<size_t>(bytes_of(dst));
    if (!from.host || bytes_of(dst) < 0)
      return fail(ErrorKind::Internal, "E0901", "a host copy from device memory");
    GK_CHECK(refresh(from));
    const std::byte* data = from.host->bytes.data() + offset * size_bytes(src.type.dtype);
    if (to.host) {
      if (bytes) std::memmove(to.host->bytes.data(), data, bytes);
      return host_was_written(to);
    }
    // Launches that read the pinned array must be done before the host writes it.
    GK_CHECK(runtime_->synchronize());
    if (bytes) std::memcpy(static_cast<std::byte*>(to.block->host_address()) + to.offset_bytes, data, bytes);
    return {};
  }

  Result<void> synchronize() override { return runtime_->synchronize(); }

  Result<void> execute(Unit& unit, std::shared_ptr<void>* kept) override {
    ++counters.units;
    GK_TRY(auto loaded, program_of(unit.module, layout));
    if (kept) *kept = kept_of(unit, loaded);
    GK_TRY(auto bindings, bind(unit, collected != nullptr || runtime_->recording() != nullptr));
    if (collected) {
      collected->push_back({std::move(loaded), std::move(bindings), unit.span});
      return {};
    }
    GK_CHECK(exec::run(*runtime_, loaded, bindings, unit.span));
    return stop_at_nan();
  }

  bool keeps_work() const override {
    return !collected && !layout.given() && !nan_check.on && !emit_log.on && !runtime_->recording();
  }

  Result<void> run_kept(const std::shared_ptr<void>& kept, const std::vector<StoragePtr>& slots,
                        const std::vector<Scalar>& scalars, Span span) override {
    ++counters.units;
    ++counters.unit_cache_hits;
    auto& state = *static_cast<KeptState*>(kept.get());
    Result<void> done = bind(state, slots, scalars, &Memory::copy_is_newer, state.room);
    if (done) done = exec::run(*runtime_, state.loaded, state.room, span);
    state.room.slots.clear();
    return done;
  }

  bool same_kept(const std::shared_ptr<void>& a, const std::shared_ptr<void>& b) const override {
    const auto& x = static_cast<const KeptState*>(a.get())->loaded;
    const auto& y = static_cast<const KeptState*>(b.get())->loaded;
    return x == y || same_work(x->program(), y->program());
  }

  Result<std::shared_ptr<void>> make_graph(const std::shared_ptr<void>& kept,
                                           const std::vector<StoragePtr>& slots,
                                           const std::vector<Scalar>& scalars, Span span) override {
    ++counters.unit_cache_hits;
    const auto& state = *static_cast<const KeptState*>(kept.get());
    std::vector<exec::GraphNode> nodes(1);
    nodes[0].program = state.loaded;
    GK_CHECK(bind(state, slots, scalars, &Memory::written_by_graphs, nodes[0].bindings));
    nodes[0].span = span;
    return graph_of(std::move(nodes), "");
  }

  Result<std::shared_ptr<void>> make_graph(std::vector<Unit> units, const std::string& name,
                                           std::shared_ptr<void>* kept) override {
    std::vector<exec::GraphNode> nodes;
    for (auto& u : units) {
      exec::GraphNode n;
      GK_TRY(n.program, program_of(u.module));
      if (kept) *kept = kept_of(u, n.program);
      GK_TRY(n.bindings, bind(u, true));
      n.name = u.name;
      n.span = u.span;
      for (int a : u.after) n.after.push_back(a);
      nodes.push_back(std::move(n));
    }
    return graph_of(std::move(nodes), name);
  }

  Result<std::shared_ptr<void>> graph_of(std::vector<exec::GraphNode> nodes, const std::string& name) {
    ++counters.graphs;
    auto state = std::make_shared<GraphState>();
    if (eager) {
      state->nodes = std::move(nodes);
      return std::static_pointer_cast<void>(state);
    }
    GK_TRY(state->graph, exec::Graph::create(*runtime_, std::move(nodes), name));
    if (emit_log.on) {
      emit_log.graphs.push_back(state->graph->print());
      emit_log.dots.push_back(state->graph->dot());
    }
    return std::static_pointer_cast<void>(state);
  }

  Result<std::shared_ptr<void>> instantiate(const std::shared_ptr<void>& graph) override {
    ++counters.executables;
    auto state = std::make_shared<ExecState>();
    if (eager) {
      state->nodes = static_cast<GraphState*>(graph.get())->nodes;
      return std::static_pointer_cast<void>(state);
    }
    GK_TRY(state->exec, static_cast<GraphState*>(graph.get())->graph->instantiate());
    note(*state->exec);
    return std::static_pointer_cast<void>(state);
  }

  Result<void> launch(const std::shared_ptr<void>& exec, int64_t times) override {
    auto& state = *static_cast<ExecState*>(exec.get());
    if (eager) {
      for (; times > 0; --times) {
        if (interrupted()) return fail(ErrorKind::Interrupted, "E0806", "interrupted");
        ++counters.launches;
        for (auto& n : state.nodes) GK_CHECK(exec::run(*runtime_, n.program, n.bindings, n.span));
      }
      return stop_at_nan();
    }
    auto& e = *state.exec;
    // In slices, so that an interruption of many launches is heard.
    while (times > 0) {
      if (interrupted()) return fail(ErrorKind::Interrupted, "E0806", "interrupted");
      int64_t now = std::min<int64_t>(times, 4096);
      counters.launches += now;
      GK_CHECK(e.launch(*runtime_, now));
      times -= now;
    }
    return stop_at_nan();
  }

  Result<void> update(const std::shared_ptr<void>& exec, int node, Unit unit) override {
    GK_TRY(auto loaded, program_of(unit.module));
    GK_TRY(auto bindings, bind(unit, true));
    if (eager) {
      auto& n = static_cast<ExecState*>(exec.get())->nodes[static_cast<size_t>(node)];
      n.program = std::move(loaded);
      n.bindings = std::move(bindings);
      return {};
    }
    exec::Executable& e = *static_cast<ExecState*>(exec.get())->exec;
    GK_CHECK(e.update(node, std::move(loaded), std::move(bindings)));
    note_update(e);
    return {};
  }

  Result<void> rebind(const std::shared_ptr<void>& exec,
                      const std::vector<std::pair<StoragePtr, StoragePtr>>& pairs) override {
    std::vector<std::pair<exec::SlotBinding, exec::SlotBinding>> blocks;
    for (const auto& [from, to] : pairs) {
      GK_TRY(auto a, slot_of(*from));
      GK_TRY(auto b, slot_of(*to));
      memory_of(*to).written_by_graphs = true;
      blocks.push_back({a, b});
    }
    if (eager) {
      for (auto& n : static_cast<ExecState*>(exec.get())->nodes)
        for (auto& s : n.bindings.slots)
          for (auto& [from, to] : blocks)
            if (s.block == from.block) {
              s = to;
              break;
            }
      return {};
    }
    exec::Executable& e = *static_cast<ExecState*>(exec.get())->exec;
    GK_CHECK(e.rebind(blocks));
    note_update(e);
    return {};
  }

  Result<void> launch_captured(std::shared_ptr<void>& handle, const ir::Module& module,
                               const std::vector<StoragePtr>& slots, const std::vector<Scalar>& scalars,
                               Span span) override {
    exec::Bindings bindings;
    std::vector<std::pair<const void*, int64_t>> bound;
    for (size_t i = 0; i < slots.size(); ++i) {
      GK_TRY(auto slot, slot_of(*slots[i]));
      if (module.slots[i].is_output) memory_of(*slots[i]).written_by_graphs = true;
      bound.emplace_back(slot.block.get(), slot.offset_bytes);
      bindings.slots.push_back(std::move(slot));
    }
    bindings.scalars = scalars;
    if (eager) {
      ++counters.launches;
      GK_TRY(auto loaded, program_of(module));
      GK_CHECK(exec::run(*runtime_, loaded, bindings, span));
      return stop_at_nan();
    }
    if (!handle) {
      auto state = std::make_shared<CapturedState>();
      GK_TRY(state->loaded, program_of(module));
      std::vector<exec::GraphNode> nodes(1);
      nodes[0].program = state->loaded;
      nodes[0].bindings = std::move(bindings);
      nodes[0].span = span;
      ++counters.graphs;
      ++counters.executables;
      GK_TRY(state->graph, exec::Graph::create(*runtime_, std::move(nodes), "captured"));
      if (emit_log.on) {
        emit_log.graphs.push_back(state->graph->print());
        emit_log.dots.push_back(state->graph->dot());
      }
      GK_TRY(state->exec, state->graph->instantiate());
      note(*state->exec);
      // The graph's leases are the first call's arrays; executables keep what they use themselves.
      state->graph = nullptr;
      state->bound = std::move(bound);
      state->scalars = scalars;
      handle = state;
    } else {
      auto& state = *static_cast<CapturedState*>(handle.get());
      if (state.bound != bound || state.scalars != scalars) {
        GK_CHECK(state.exec->update(0, state.loaded, std::move(bindings)));
        note_update(*state.exec);
        state.bound = std::move(bound);
        state.scalars = scalars;
      }
    }
    ++counters.launches;
    GK_CHECK(static_cast<CapturedState*>(handle.get())->exec->launch(*runtime_, 1));
    return stop_at_nan();
  }

  int64_t held_bytes(const std::shared_ptr<void>& handle) const override {
    if (!handle) return 0;
    const exec::Executable& e = *static_cast<CapturedState*>(handle.get())->exec;
    int64_t held = e.arena_bytes();
    for (const auto& n : e.nodes())
      for (const auto& s : n.bindings.slots) {
        const auto here = std::count_if(n.bindings.slots.begin(), n.bindings.slots.end(),
                                        [&](const auto& other) { return other.block == s.block; });
        constexpr long kLease = 1;
        if (s.block.use_count() <= here + kLease) held += s.block->size_bytes() / here;
      }
    return held;
  }
  int64_t memory_bytes() const override {
    const int64_t limit = runtime_->pool().stats().limit_bytes;
    return limit ? limit : runtime_->device().info().total_bytes;
  }
  bool is_given_up(const Storage& s) const override {
    const auto& block = memory_of(s).block;
    return block && block->released();
  }

  int64_t peak_bytes() const override { return runtime_->pool().stats().peak_bytes; }
  int64_t driver_calls() const override { return runtime_->device().driver_calls(); }
  int64_t kernels_compiled() const override { return cache_->compiler().stats().kernels_compiled; }
  int64_t disk_cache_hits() const override { return cache_->compiler().stats().disk_cache_hits; }
  std::vector<std::vector<std::string>> node_steps(const sema::GraphObject& g,
                                                   bool executable) const override {
    std::vector<std::vector<std::string>> steps;
    const auto add = [&](const std::vector<exec::GraphNode>& nodes) {
      for (const auto& n : nodes) steps.push_back(exec::step_labels(n));
    };
    if (!executable) {
      const auto& state = *static_cast<const GraphState*>(g.handle.get());
      add(state.graph ? state.graph->nodes() : state.nodes);
    } else {
      const auto& state = *static_cast<const ExecState*>(g.handle.get());
      add(state.exec ? state.exec->nodes() : state.nodes);
    }
    return steps;
  }

  std::string device_json() const override {
    const auto& i = runtime_->device().info();
    nlohmann::json j{{"id", i.id},
                     {"name", i.name},
                     {"sm", i.sm},
                     {"multiprocessors", i.multiprocessors},
                     {"memory_bytes", i.total_bytes},
                     {"driver", i.driver},
                     {"blas_lt", i.has_blas_lt}};
    return j.dump();
  }

 private:
  static constexpr int64_t kMostHostBytes = int64_t{1} << 37;

  // The device keeps what a search has found like any fault. A session asks at once, so that nothing that
  // follows runs on it; a host program hears of it when it waits.
  Result<void> stop_at_nan() { return nan_check.on ? runtime_->synchronize() : Result<void>(); }

  // The block a slot's work touches; a host array is sent over once.
  Result<exec::SlotBinding> slot_of(Storage& s) override {
    if (!s.memory) GK_CHECK(allocate(s));
    Memory& m = memory_of(s);
    GK_CHECK(fetch(s, m));
    if (!m.host) return exec::SlotBinding{m.block, m.offset_bytes};
    if (!m.device_copy) {
      GK_TRY(m.device_copy, runtime_->allocate(static_cast<int64_t>(m.host->bytes.size())));
      GK_CHECK(
          runtime_->upload(m.device_copy, m.host->bytes.data(), static_cast<int64_t>(m.host->bytes.size())));
    }
    return exec::SlotBinding{m.device_copy, 0};
  }

  // What is still in a file gets its memory, then its elements: a limit refuses what is not yet read.
  Result<void> fetch(const Storage& s, Memory& m) {
    if (!m.stored) return {};
    GK_TRY(auto block, runtime_->allocate(bytes_of(s)));
    GK_TRY(auto elements, m.stored());
    GK_CHECK(runtime_->upload(block, elements.bytes.data(), static_cast<int64_t>(elements.bytes.size())));
    m.block = std::move(block);
    m.stored = nullptr;
    return {};
  }

  // The host reads a host array: what the device wrote comes back first.
  Result<void> refresh(Memory& m) {
    if (!m.device_copy || !(m.copy_is_newer || m.written_by_graphs)) return {};
    GK_CHECK(runtime_->synchronize());
    GK_CHECK(
        runtime_->download(m.host->bytes.data(), m.device_copy, static_cast<int64_t>(m.host->bytes.size())));
    m.copy_is_newer = false;
    return {};
  }

  // Graphs name the copy: it stays the same block.
  Result<void> host_was_written(Memory& m) {
    m.copy_is_newer = false;
    if (!m.device_copy) return {};
    return runtime_->upload(m.device_copy, m.host->bytes.data(), static_cast<int64_t>(m.host->bytes.size()));
  }

  // `repeated`: it may run at any time from now on.
  Result<exec::Bindings> bind(const Unit& unit, bool repeated = false) {
    exec::Bindings b;
    for (size_t i = 0; i < unit.slots.size(); ++i) {
      GK_TRY(auto slot, slot_of(*unit.slots[i]));
      b.slots.push_back(std::move(slot));
      if (!unit.module.slots[i].is_output) continue;
      Memory& m = memory_of(*unit.slots[i]);
      (repeated ? m.written_by_graphs : m.copy_is_newer) = true;
    }
    b.scalars = unit.module.params;
    return b;
  }

  static std::shared_ptr<void> kept_of(const Unit& unit, std::shared_ptr<exec::Loaded> loaded) {
    auto state = std::make_shared<KeptState>();
    state->loaded = std::move(loaded);
    for (const auto& s : unit.module.slots) state->written.push_back(s.is_output);
    return state;
  }

  Result<void> bind(const KeptState& kept, const std::vector<StoragePtr>& slots,
                    const std::vector<Scalar>& scalars, bool Memory::*written, exec::Bindings& b) {
    b.slots.reserve(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      GK_TRY(auto slot, slot_of(*slots[i]));
      b.slots.push_back(std::move(slot));
      if (kept.written[i]) memory_of(*slots[i]).*written = true;
    }
    b.scalars = scalars;
    return {};
  }

  void note(const exec::Executable& e) {
    counters.nodes += e.num_driver_nodes();
    counters.leases += e.num_leases();
    counters.arena_bytes += e.arena_bytes();
  }

  void note_update(const exec::Executable& e) {
    switch (e.last_update()) {
      case exec::UpdateRung::None: return;
      case exec::UpdateRung::Patched: ++counters.updates_patched; break;
      case exec::UpdateRung::GraphUpdated: ++counters.updates_graph; break;
      case exec::UpdateRung::Reinstantiated: ++counters.updates_reinstantiated; break;
    }
    counters.last_update_reason = e.last_update_reason();
  }

  Result<std::shared_ptr<exec::Loaded>> program_of(const ir::Module& m, const Layout& with = {}) {
    return cache_->get(
        *runtime_, m,
        {counters, progress, emit_log.on ? &emit_log : nullptr, [this] { return interrupted(); }}, with);
  }

  std::shared_ptr<exec::Runtime> runtime_;
  std::shared_ptr<ProgramCache> cache_;
};

}  // namespace

void install_host_loader() {
  static std::once_flag once;
  std::call_once(once, [] { hal::set_host_loader(load_host_image); });
}

std::unique_ptr<DeviceEffectsBase> make_device_effects(std::shared_ptr<exec::Runtime> runtime,
                                                       std::shared_ptr<ProgramCache> cache) {
  return std::make_unique<DeviceEffects>(std::move(runtime), std::move(cache));
}

Result<std::unique_ptr<EffectsBase>> make_device_effects(const std::string& device,
                                                         int64_t memory_limit_bytes,
                                                         const std::string& cache_dir,
                                                         codegen::Compiler::Warn warn, NanCheck nan_check) {
  install_host_loader();
  hal::OpenOptions options;
  options.threads = 0;
  options.memory_limit_bytes = memory_limit_bytes;
  GK_TRY(auto opened, hal::open(device, options));
  GK_TRY(auto runtime, exec::Runtime::create(opened, memory_limit_bytes));
  std::unique_ptr<EffectsBase> effects = make_device_effects(
      runtime, std::make_shared<ProgramCache>(*opened, cache_dir, std::move(warn), nan_check));
  effects->nan_check = std::move(nan_check);
  return effects;
}

}  // namespace gk::engine
