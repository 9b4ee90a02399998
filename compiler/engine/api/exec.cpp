// gk::Exec and gk::ExecNode: launching, updating and rebinding executables.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/engine/api/core.h"

namespace gk::engine {

namespace {

Result<Owner::Entry> enter(ExecImpl& x) {
  GK_TRY(auto entry, x.owner.enter("the executable"));
  if (!x.exec) return fail(ErrorKind::Capture, "E0716", "the executable was closed");
  return entry;
}

Result<void> same_engine(const ExecImpl& x, const ContextCore& c) {
  if (x.engine == c.engine) return {};
  return fail(ErrorKind::Capture, "E0717", "the context belongs to another engine than the executable");
}

// A runtime on a stream of the host program's.
Result<std::shared_ptr<exec::Runtime>> runtime_on(ExecImpl& x, void* stream) {
  for (auto& [s, r] : x.streams)
    if (s == stream) return r;
  GK_TRY(auto r, x.engine->runtime->fork(std::optional<void*>(stream)));
  if (x.streams.size() >= 16) x.streams.erase(x.streams.begin());
  x.streams.emplace_back(stream, r);
  return r;
}

}  // namespace

int64_t& gathered_here() {
  static thread_local int64_t count = 0;
  return count;
}

namespace {

Result<void> check_times(int64_t times) {
  if (times >= 0) return {};
  return fail(ErrorKind::Usage, "E0512", fmt::format("a graph cannot be launched {} times", times));
}

// So that an interruption of many launches is heard.
Result<void> launch_in_slices(exec::Executable& e, exec::Runtime& rt, int64_t times,
                              std::atomic<bool>* interrupted) {
  constexpr int64_t kSlice = 4096;
  if (times <= kSlice) return e.launch(rt, times);
  if (interrupted) interrupted->store(false, std::memory_order_relaxed);
  for (; times > 0; times -= kSlice) {
    if (interrupted && interrupted->load(std::memory_order_relaxed))
      return fail(ErrorKind::Interrupted, "E0806", "interrupted");
    GK_CHECK(e.launch(rt, std::min(times, kSlice)));
  }
  return {};
}

// What `f` calls, gathered instead of run.
class Gathering {
 public:
  explicit Gathering(ContextCore& c) : c_(c) {
    c_.effects->collected = &calls;
    ++gathered_here();
  }
  ~Gathering() {
    c_.effects->collected = nullptr;
    --gathered_here();
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;
  std::vector<DeviceEffectsBase::Collected> calls;

 private:
  ContextCore& c_;
};

// Puts the one call that was gathered in the place of a node.
Result<void> retarget(ExecImpl& x, int64_t first, int64_t count, const std::string& name,
                      std::vector<DeviceEffectsBase::Collected> calls) {
  auto label = name.empty() ? fmt::format("operation {}", first) : "`" + name + "`";
  auto unchanged = "the executable is as it was";
  if (count != 1)
    return fail(make_error(ErrorKind::Capture, "E0705",
                           fmt::format("node {} is {} operations; an update is of one", label, count))
                    .note(unchanged));
  if (calls.size() != 1)
    return fail(make_error(ErrorKind::Capture, "E0705",
                           calls.empty() ? fmt::format("nothing is called to update node {} with", label)
                                         : fmt::format("node {} is one operation, and {} are called", label,
                                                       calls.size()))
                    .note(unchanged));
  auto span = calls[0].span;
  auto r =
      x.exec->update(static_cast<int32_t>(first), std::move(calls[0].program), std::move(calls[0].bindings));
  if (!r) return fail(std::move(r.error()).at(span));
  return {};
}

struct Place {
  const memory::Block* block;
  int64_t offset_bytes;
  bool operator==(const Place&) const = default;
  struct Hash {
    size_t operator()(const Place& p) const {
      return std::hash<const void*>()(p.block) ^ static_cast<size_t>(p.offset_bytes) * 0x9E3779B97F4A7C15U;
    }
  };
};

// What a rebinding needs beyond what the executable checks: each array is used, and no two become one.
Result<void> check_rebinding(const exec::Executable& e,
                             const std::vector<std::pair<exec::SlotBinding, exec::SlotBinding>>& pairs,
                             const std::vector<std::string>& labels) {
  const auto place = [](const exec::SlotBinding& s) { return Place{s.block.get(), s.offset_bytes}; };
  std::unordered_set<Place, Place::Hash> used;
  for (const auto& n : e.nodes())
    for (const auto& s : n.bindings.slots) used.insert(place(s));
  std::unordered_set<Place, Place::Hash> after = used;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!used.contains(place(pairs[i].first)))
      return fail(make_error(ErrorKind::Capture, "E0706", fmt::format("no node uses {}", labels[i]))
                      .note("the executable is as it was"));
    after.erase(place(pairs[i].first));
  }
  for (size_t i = 0; i < pairs.size(); ++i)
    if (!after.insert(place(pairs[i].second)).second)
      return fail(make_error(ErrorKind::Capture, "E0706",
                             fmt::format("what {} is rebound to is used by the graph already", labels[i]))
                      .note("two arrays of one graph cannot become one; the executable is as it was"));
  return {};
}

std::pair<int64_t, int64_t> group_at(const std::vector<exec::GraphNode>& nodes, size_t i) {
  size_t end = i + 1;
  if (!nodes[i].name.empty())
    while (end < nodes.size() && nodes[end].name == nodes[i].name) ++end;
  return {static_cast<int64_t>(i), static_cast<int64_t>(end - i)};
}

}  // namespace
}  // namespace gk::engine

namespace gk::api {

using engine::guarded;

namespace {

const syntax::SourceMap* sources_of(const std::shared_ptr<detail::ExecImpl>& x) {
  return x ? &x->engine->sources : nullptr;
}

// Enters both and calls `f(executable, runtime)`.
template <class F>
Result<void> with_context(const Exec& e, const std::shared_ptr<detail::ExecImpl>& impl, Context& ctx,
                          const char* what, F f) {
  return guarded(sources_of(impl), [&]() -> gk::Result<void> {
    GK_TRY(auto x, engine::need(e, "the executable"));
    auto& c = engine::behind(ctx);
    GK_TRY(auto context_entry, c.enter());
    GK_CHECK(engine::same_engine(*x, c));
    GK_TRY(auto entry, engine::enter(*x));
    GK_CHECK(c.refuse_in_capture(what));
    return f(*x->exec, *c.runtime);
  });
}
template <class F>
Result<void> with_stream(const Exec& e, const std::shared_ptr<detail::ExecImpl>& impl, CUstream_st* stream,
                         F f) {
  return guarded(sources_of(impl), [&]() -> gk::Result<void> {
    GK_TRY(auto x, engine::need(e, "the executable"));
    GK_TRY(auto entry, engine::enter(*x));
    GK_TRY(auto runtime, engine::runtime_on(*x, stream));
    return f(*x->exec, *runtime);
  });
}

}  // namespace

Result<void> Exec::try_launch(Context& ctx, int64_t times) const {
  return with_context(*this, impl_, ctx, "launching a graph",
                      [&](exec::Executable& e, exec::Runtime& rt) -> gk::Result<void> {
                        GK_CHECK(engine::check_times(times));
                        return engine::launch_in_slices(e, rt, times, &engine::behind(ctx).interrupted);
                      });
}

Result<void> Exec::try_launch(CUstream_st* stream, int64_t times) const {
  return with_stream(*this, impl_, stream, [&](exec::Executable& e, exec::Runtime& rt) -> gk::Result<void> {
    GK_CHECK(engine::check_times(times));
    return engine::launch_in_slices(e, rt, times, nullptr);
  });
}

Result<void> Exec::try_upload(Context& ctx) const {
  return with_context(*this, impl_, ctx, "uploading a graph",
                      [](exec::Executable& e, exec::Runtime& rt) { return e.upload(rt); });
}

Result<void> Exec::try_upload(CUstream_st* stream) const {
  return with_stream(*this, impl_, stream,
                     [](exec::Executable& e, exec::Runtime& rt) { return e.upload(rt); });
}

Result<ExecNode> Exec::try_node(std::string_view name) const {
  return guarded(sources_of(impl_), [&]() -> gk::Result<ExecNode> {
    GK_TRY(auto x, engine::need(*this, "the executable"));
    GK_TRY(auto entry, engine::enter(*x));
    const auto& nodes = x->exec->nodes();
    std::string has;
    for (size_t i = 0; i < nodes.size();) {
      auto [first, count] = engine::group_at(nodes, i);
      if (nodes[i].name == name && !name.empty()) return ExecNode(x, first, count, std::string(name));
      if (!nodes[i].name.empty()) has += (has.empty() ? "" : ", ") + nodes[i].name;
      i += static_cast<size_t>(count);
    }
    return fail(
        make_error(gk::ErrorKind::Capture, "E0704", fmt::format("the executable has no node `{}`", name))
            .note(has.empty() ? "none of its nodes has a name" : "its nodes are " + has));
  });
}

Result<ExecNode> Exec::try_node(const Node& n) const {
  if (impl_) {
    auto graph = detail::Access::graph_of(n);
    if (!graph || graph != impl_->graph.lock())
      return engine::to_public(
          nullptr,
          make_error(gk::ErrorKind::Capture, "E0717",
                     n.name().empty() ? "the node belongs to another graph"
                                      : fmt::format("node `{}` belongs to another graph", n.name())));
  }
  if (!n.name().empty()) return try_node(n.name());
  return guarded(sources_of(impl_), [&]() -> gk::Result<ExecNode> {
    GK_TRY(auto x, engine::need(*this, "the executable"));
    GK_TRY(auto entry, engine::enter(*x));
    const auto index = detail::Access::index_of(n);
    if (index < 0 || index >= static_cast<int64_t>(x->exec->nodes().size()))
      return fail(gk::ErrorKind::Capture, "E0704", "the executable was made before this node was recorded");
    return ExecNode(x, index, 1, {});
  });
}

Result<void> Exec::try_update(const Graph& g) const {
  return guarded(sources_of(impl_), [&]() -> gk::Result<void> {
    GK_TRY(auto x, engine::need(*this, "the executable"));
    GK_TRY(auto entry, engine::enter(*x));
    GK_TRY(auto graph, engine::need(g, "the graph"));
    GK_TRY(auto graph_entry, graph->owner.enter("the graph"));
    if (!graph->graph) return fail(gk::ErrorKind::Capture, "E0716", "the graph was closed");
    if (graph->context->engine != x->engine)
      return fail(gk::ErrorKind::Capture, "E0717", "the graph belongs to another engine than the executable");
    return x->exec->update(*graph->graph);
  });
}

Result<void> Exec::try_rebind(const std::vector<std::pair<Tensor, Tensor>>& pairs) const {
  return guarded(sources_of(impl_), [&]() -> gk::Result<void> {
    GK_TRY(auto x, engine::need(*this, "the executable"));
    GK_TRY(auto entry, engine::enter(*x));
    std::vector<std::pair<exec::SlotBinding, exec::SlotBinding>> inner;
    std::vector<std::string> labels;
    for (const auto& [from, to] : pairs) {
      GK_TRY(auto a, engine::need(from, "a tensor"));
      if (a->engine != x->engine) GK_CHECK(engine::need_tensor(*x->engine, from));
      GK_TRY(auto b, engine::need_tensor(*x->engine, to));
      if (a->dtype != b->dtype || a->shape != b->shape)
        return fail(
            make_error(gk::ErrorKind::Capture, "E0706",
                       fmt::format("cannot rebind {} to {}", engine::type_text(*a), engine::type_text(*b)))
                .note("rebinding needs equal dtype and shape; the executable is as it was"));
      if (a->place != b->place)
        return fail(
            make_error(gk::ErrorKind::Capture, "E0706", "rebinding needs the same placement on both sides")
                .note("the executable is as it was"));
      inner.push_back({{a->block, a->offset_bytes}, {b->block, b->offset_bytes}});
      labels.push_back(a->name.empty() ? engine::type_text(*a) : "`" + a->name + "`");
    }
    GK_CHECK(engine::check_rebinding(*x->exec, inner, labels));
    return x->exec->rebind(inner);
  });
}

UpdateReport Exec::last_update() const {
  UpdateReport r;
  if (!impl_) return r;
  auto entry = engine::enter(*impl_);
  if (!entry) return r;
  r.rung = static_cast<UpdateRung>(impl_->exec->last_update());
  r.reason = impl_->exec->last_update_reason();
  return r;
}

int64_t Exec::num_leases() const {
  if (!impl_) return 0;
  auto entry = engine::enter(*impl_);
  return entry ? impl_->exec->num_leases() : 0;
}
int64_t Exec::arena_bytes() const {
  if (!impl_) return 0;
  auto entry = engine::enter(*impl_);
  return entry ? impl_->exec->arena_bytes() : 0;
}
int64_t Exec::num_driver_nodes() const {
  if (!impl_) return 0;
  auto entry = engine::enter(*impl_);
  return entry ? impl_->exec->num_driver_nodes() : 0;
}

Result<void> Exec::try_close() const {
  return guarded(sources_of(impl_), [&]() -> gk::Result<void> {
    if (!impl_) return {};
    GK_TRY(auto entry, impl_->owner.enter("the executable"));
    if (!impl_->exec) return {};
    auto e = std::exchange(impl_->exec, nullptr);
    return e->close();
  });
}

// ---- ExecNode

Result<void> ExecNode::try_update(const Callable& f, std::vector<Value> args, LaunchShape shape) const {
  return guarded(sources_of(exec_), [&]() -> gk::Result<void> {
    GK_TRY(auto callable, engine::need(f, "the function"));
    auto& c = *callable->module->context;
    GK_CHECK(engine::same_engine(*exec_, c));
    GK_TRY(auto context_entry, c.enter());
    GK_TRY(auto entry, engine::enter(*exec_));
    GK_CHECK(c.refuse_in_capture("an update"));
    engine::Gathering gathering(c);
    GK_CHECK(engine::call_value(*callable, std::move(args), shape));
    return engine::retarget(*exec_, first_, count_, name_, std::move(gathering.calls));
  });
}

static std::optional<Error> update_core(detail::ExecImpl& x, int64_t first, int64_t count,
                                        const std::string& name, Context& ctx, const std::function<void()>& f,
                                        bool convert) {
  auto& c = engine::behind(ctx);
  const auto* sources = &x.engine->sources;
  auto checked = [&]() -> gk::Result<std::pair<engine::Owner::Entry, engine::Owner::Entry>> {
    GK_CHECK(engine::same_engine(x, c));
    GK_TRY(auto context_entry, c.enter());
    GK_TRY(auto entry, engine::enter(x));
    GK_CHECK(c.refuse_in_capture("an update"));
    if (!f) return fail(gk::ErrorKind::Usage, "E0512", "the function to record is empty");
    return std::pair(std::move(context_entry), std::move(entry));
  };
  auto entries = checked();
  if (!entries) return engine::to_public(sources, entries.error());
  engine::Gathering gathering(c);
  if (auto e = engine::run_user(f, convert, false, [] {})) return e;
  auto r =
      guarded(sources, [&] { return engine::retarget(x, first, count, name, std::move(gathering.calls)); });
  if (!r) return r.error();
  return std::nullopt;
}

void ExecNode::update(Context& ctx, const std::function<void()>& f) const {
  if (auto e = update_core(*exec_, first_, count_, name_, ctx, f, false)) e->raise();
}

Result<void> ExecNode::try_update(Context& ctx, const std::function<void()>& f) const {
  if (auto e = update_core(*exec_, first_, count_, name_, ctx, f, true)) return *e;
  return {};
}

}  // namespace gk::api
