#include "compiler/engine/interp_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/passes/nan_check.h"

namespace gk::engine {

namespace {

using interp::Array;
using sema::Storage;
using sema::StoragePtr;
using sema::Unit;

// Counts what arrays hold, so that a limit means something here too.
struct Budget {
  int64_t limit = 0, in_use = 0, peak = 0;
};

struct Held {
  std::shared_ptr<Budget> budget;
  int64_t bytes = 0;
  Array array;
  std::function<Result<Array>()> stored;  // not null: the elements are still in a file
  ~Held() { budget->in_use -= bytes; }
};

Held& held_of(const Storage& s) { return *static_cast<Held*>(s.memory.get()); }
Array& array_of(const Storage& s) { return held_of(s).array; }

// A graph, or an executable of it: shared modules, and the storages each node is bound to.
struct GraphNode {
  std::shared_ptr<Unit> unit;
  std::vector<StoragePtr> slots;
};
struct GraphState {
  std::vector<GraphNode> nodes;
};

class InterpEffects final : public EffectsBase {
 public:
  explicit InterpEffects(int64_t limit) { budget_->limit = limit; }

  Result<void> allocate(Storage& s) override {
    auto held = std::make_shared<Held>();
    held->budget = budget_;
    GK_CHECK(make_room(s, *held));
    s.memory = held;
    return {};
  }

  Result<void> make_room(const Storage& s, Held& held) {
    auto shape = s.type.shape();
    auto n = num_elements(shape);
    int64_t bytes = 0;
    if (!n || __builtin_mul_overflow(*n, size_bytes(s.type.dtype), &bytes))
      return fail(ErrorKind::OutOfMemory, "E0602",
                  fmt::format("{} is too large to count", ir::to_string(s.type)));
    if (bytes > kMost || (budget_->limit && budget_->in_use + bytes > budget_->limit))
      return fail(ErrorKind::OutOfMemory, "E0601",
                  fmt::format("out of memory: asked {} bytes, in use {}, limit {}", bytes, budget_->in_use,
                              budget_->limit ? budget_->limit : kMost));
    try {
      held.array = Array::zeros(s.type.dtype, shape);
    } catch (const std::bad_alloc&) {
      return fail(ErrorKind::OutOfMemory, "E0601", fmt::format("out of memory: asked for {} bytes", bytes));
    }
    held.bytes = bytes;
    budget_->in_use += bytes;
    budget_->peak = std::max(budget_->peak, budget_->in_use);
    return {};
  }

  Result<void> allocate_stored(Storage& s, std::function<Result<Array>()> read) override {
    auto held = std::make_shared<Held>();
    held->budget = budget_;
    held->stored = std::move(read);
    s.memory = held;
    return {};
  }

  // What is still in a file gets its memory, then its elements.
  Result<void> fetch(Storage& s) {
    if (!s.memory) return allocate(s);
    Held& held = held_of(s);
    if (!held.stored) return {};
    GK_CHECK(make_room(s, held));
    auto elements = held.stored();
    if (!elements) {
      budget_->in_use -= std::exchange(held.bytes, 0);
      return fail(std::move(elements.error()));
    }
    held.array = std::move(*elements);
    held.stored = nullptr;
    return {};
  }

  Result<Array> download(const Storage& s) override {
    if (const Held& held = held_of(s); held.stored) return held.stored();
    return array_of(s);
  }
  Result<void> upload(Storage& s, const Array& a) override {
    GK_CHECK(fetch(s));
    array_of(s) = a;
    return {};
  }
  Result<void> copy_host(const Storage& src, int64_t offset, Storage& dst) override {
    Array& d = array_of(dst);
    auto from = static_cast<size_t>(offset * size_bytes(src.type.dtype));
    if (!d.bytes.empty()) std::memcpy(d.bytes.data(), array_of(src).bytes.data() + from, d.bytes.size());
    return {};
  }

  Result<void> synchronize() override { return {}; }

  Result<void> execute(Unit& unit, std::shared_ptr<void>* /*kept*/) override {
    ++counters.units;
    if (emit_log.on) emit_log.ir.push_back(ir::print(unit.module));
    return run(unit, unit.module.params);
  }

  Result<std::shared_ptr<void>> make_graph(std::vector<Unit> nodes, const std::string&,
                                           std::shared_ptr<void>* /*kept*/) override {
    ++counters.graphs;
    auto g = std::make_shared<GraphState>();
    for (auto& u : nodes) {
      if (emit_log.on) emit_log.ir.push_back(ir::print(u.module));
      GK_TRY(auto node, bound(std::move(u)));
      g->nodes.push_back(std::move(node));
    }
    return std::static_pointer_cast<void>(g);
  }
  Result<std::shared_ptr<void>> instantiate(const std::shared_ptr<void>& graph) override {
    ++counters.executables;
    return std::static_pointer_cast<void>(
        std::make_shared<GraphState>(*static_cast<GraphState*>(graph.get())));
  }
  Result<void> launch(const std::shared_ptr<void>& exec, int64_t times) override {
    auto* e = static_cast<GraphState*>(exec.get());
    for (int64_t i = 0; i < times; ++i) {
      if (interrupted()) return fail(ErrorKind::Interrupted, "E0806", "interrupted");
      ++counters.launches;
      for (auto& n : e->nodes)
        GK_CHECK(run_slots(n.unit->module, n.slots, n.unit->module.params, n.unit->span));
    }
    return {};
  }
  Result<void> update(const std::shared_ptr<void>& exec, int node, Unit unit) override {
    GK_TRY(auto made, bound(std::move(unit)));
    static_cast<GraphState*>(exec.get())->nodes[static_cast<size_t>(node)] = std::move(made);
    return {};
  }
  Result<void> rebind(const std::shared_ptr<void>& exec,
                      const std::vector<std::pair<StoragePtr, StoragePtr>>& pairs) override {
    for (auto& n : static_cast<GraphState*>(exec.get())->nodes)
      for (auto& s : n.slots)
        for (const auto& [from, to] : pairs)
          if (s == from) {
            s = to;
            break;
          }
    return {};
  }
  Result<void> launch_captured(std::shared_ptr<void>&, const ir::Module& module,
                               const std::vector<StoragePtr>& slots, const std::vector<Scalar>& scalars,
                               Span span) override {
    ++counters.launches;
    return run_slots(module, slots, scalars, span);
  }

  int64_t held_bytes(const std::shared_ptr<void>&) const override { return 0; }
  int64_t memory_bytes() const override { return budget_->limit; }
  bool is_given_up(const Storage&) const override { return false; }

  int64_t peak_bytes() const override { return budget_->peak; }
  int64_t driver_calls() const override { return 0; }
  int64_t kernels_compiled() const override { return 0; }
  int64_t disk_cache_hits() const override { return 0; }
  std::string device_json() const override { return R"({"id": "interp", "name": "reference interpreter"})"; }

 private:
  static constexpr int64_t kMost = int64_t{1} << 36;

  Result<GraphNode> bound(Unit unit) {
    for (auto& s : unit.slots) GK_CHECK(fetch(*s));
    GraphNode n;
    n.slots = unit.slots;
    n.unit = std::make_shared<Unit>(std::move(unit));
    return n;
  }

  Result<void> run(Unit& unit, const std::vector<Scalar>& params) {
    for (auto& s : unit.slots) GK_CHECK(fetch(*s));
    return run_slots(unit.module, unit.slots, params, unit.span);
  }

  Result<void> run_slots(const ir::Module& m, const std::vector<StoragePtr>& slots,
                         const std::vector<Scalar>& params, Span span) {
    for (const auto& s : slots) GK_CHECK(fetch(*s));
    std::vector<Array> arrays(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) arrays[i] = array_of(*slots[i]);
    auto r = interp::run(m, params, arrays, [this] { return interrupted(); });
    for (size_t i = 0; i < slots.size(); ++i)
      if (m.slots[i].is_output) array_of(*slots[i]) = std::move(arrays[i]);
    if (!r) return fail(std::move(r.error()).at(span));
    if (nan_check.on)
      for (const passes::NanSite& site : passes::nan_sites(m, nan_check.exempt)) {
        const auto i = static_cast<size_t>(site.slot);
        GK_CHECK(check_nan(array_of(*slots[i]), m.slots[i].name, site.span.valid() ? site.span : span));
      }
    return {};
  }

  std::shared_ptr<Budget> budget_ = std::make_shared<Budget>();
};

}  // namespace

std::unique_ptr<EffectsBase> make_interp_effects(int64_t memory_limit_bytes) {
  return std::make_unique<InterpEffects>(memory_limit_bytes);
}

}  // namespace gk::engine
