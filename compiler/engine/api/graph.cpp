// Recording: Context::capture and its kin, and gk::Graph.
#include <fmt/format.h>

#include "compiler/engine/api/core.h"

namespace gk::engine {

std::optional<api::Error> run_user(const std::function<void()>& f, bool convert, bool quiet,
                                   const std::function<void()>& undo) {
  try {
    f();
    return std::nullopt;
  } catch (const api::Error& e) {
    undo();
    if (convert || (quiet && cannot_be_recorded(e.kind(), e.code()))) return e;
    throw;
  } catch (...) {
    undo();
    throw;
  }
}

namespace {

// A recording open on a context: closed and discarded on every way out but finish().
class Open {
 public:
  Open(ContextCore& c, std::shared_ptr<exec::Recording> r, const std::shared_ptr<GraphImpl>& becomes)
      : c_(c) {
    c_.recording = std::move(r);
    c_.graph_to_be = becomes;
    graph_ = becomes;
    graph_->growing = true;
  }
  ~Open() { discard(); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  exec::Recording& operator*() { return *c_.recording; }
  void discard() {
    if (!c_.recording) return;
    auto r = std::exchange(c_.recording, nullptr);
    r->discard();
    graph_->growing = false;
  }
  Result<std::shared_ptr<exec::Graph>> finish(std::vector<void*>* frontier = nullptr) {
    auto r = std::exchange(c_.recording, nullptr);
    auto g = r->finish();
    graph_->growing = false;
    if (g && frontier) *frontier = r->frontier();
    return g;
  }

 private:
  ContextCore& c_;
  std::shared_ptr<GraphImpl> graph_;
};

Error no_such_mode() { return make_error(ErrorKind::Usage, "E0512", "there is no such capture mode"); }

Error nested() {
  return make_error(ErrorKind::Capture, "E0718", "a capture inside a capture")
      .note("the outer one goes on unharmed")
      .help("make the inner graph first");
}

using Ended = std::variant<std::shared_ptr<GraphImpl>, api::Error>;

// One capture from beginning to end. `quiet`: what belongs to captures gives no graph.
Ended capture(const std::shared_ptr<ContextImpl>& context, exec::RecordingOptions options,
              const std::function<void()>& f, bool quiet, bool convert, std::vector<void*>* frontier) {
  auto& c = behind(context);
  const auto* sources = &c.engine->sources;
  auto out = [&](const Error& e) -> Ended {
    if (quiet && cannot_be_recorded(e.kind, e.code)) return std::shared_ptr<GraphImpl>();
    return to_public(sources, e);
  };
  if (!f) return out(make_error(ErrorKind::Usage, "E0512", "the function to record is empty"));
  if (options.mode > hal::CaptureMode::Global) return out(no_such_mode());
  auto entry = c.enter();
  if (!entry) return out(entry.error());
  if (auto ok = c.refuse_in_update("a capture"); !ok) return out(ok.error());
  if (c.is_recording()) return out(nested());
  auto begun = exec::Recording::begin(*c.runtime, std::move(options));
  if (!begun) return out(begun.error());
  auto impl = engine::make_handle<GraphImpl>();
  impl->context = context;
  Open open(c, std::move(*begun), impl);
  if (auto e = run_user(f, convert, quiet, [&] { open.discard(); })) {
    if (quiet && cannot_be_recorded(e->kind(), e->code())) return std::shared_ptr<GraphImpl>();
    return *e;
  }
  auto g = open.finish(frontier);
  if (!g) return out(g.error());
  impl->graph = std::move(*g);
  return impl;
}

// The named nodes among `after`. Errors: E0704, E0717.
Result<std::optional<std::vector<std::string>>> names_of(const std::shared_ptr<GraphImpl>& graph,
                                                         const api::NodeOptions& options) {
  if (!options.after) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& n : *options.after) {
    if (Access::graph_of(n) != graph || !graph)
      return fail(ErrorKind::Capture, "E0717",
                  n.name().empty() ? "a node to come after belongs to another graph"
                                   : fmt::format("node `{}` belongs to another graph", n.name()));
    if (n.name().empty())
      return fail(make_error(ErrorKind::Capture, "E0704", "a node without a name cannot be named in `after`")
                      .help("record it with a name: ctx.node(\"a\", …)"));
    names.push_back(n.name());
  }
  return names;
}

// Records `f` as one named node.
std::optional<api::Error> record_node(exec::Recording& r, const syntax::SourceMap* sources, std::string name,
                                      std::optional<std::vector<std::string>> after,
                                      const std::function<void()>& f, bool convert,
                                      const std::function<void()>& undo) {
  auto out = [&](const Error& e) { return to_public(sources, e); };
  if (name.empty()) return out(make_error(ErrorKind::Usage, "E0512", "a node needs a name"));
  if (!f) return out(make_error(ErrorKind::Usage, "E0512", "the function to record is empty"));
  if (auto ok = r.begin_node(std::move(name), std::move(after)); !ok) return out(ok.error());
  if (auto e = run_user(f, convert, false, undo)) return e;
  if (auto ok = r.end_node(); !ok) {
    undo();
    return out(ok.error());
  }
  return std::nullopt;
}

}  // namespace
}  // namespace gk::engine

namespace gk::api {

using engine::guarded;

namespace {

exec::RecordingOptions recording_options(const CaptureOptions& o) {
  exec::RecordingOptions r;
  r.name = o.name;
  r.mode = static_cast<hal::CaptureMode>(o.mode);
  if (o.stream) r.stream = *o.stream;
  return r;
}

Graph graph_of(std::shared_ptr<detail::GraphImpl> g) { return detail::Access::make<Graph>(std::move(g)); }

std::vector<Node> nodes_of(const std::shared_ptr<detail::GraphImpl>& g) {
  std::vector<Node> out;
  const auto& all = g->graph->nodes();
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && !all[i].name.empty() && all[i].name == all[i - 1].name) continue;
    out.push_back(detail::Access::node(g, all[i].name, static_cast<int64_t>(i)));
  }
  return out;
}

// The graph behind a handle, entered. Errors: E0716, E0710.
struct Entered {
  std::shared_ptr<detail::GraphImpl> graph;
  engine::Owner::Entry entry;
};
gk::Result<Entered> enter(const Graph& g) {
  GK_TRY(auto i, engine::need(g, "the graph"));
  GK_TRY(auto entry, i->owner.enter("the graph"));
  if (i->closed) return fail(gk::ErrorKind::Capture, "E0716", "the graph was closed");
  if (!i->graph) return fail(gk::ErrorKind::Capture, "E0716", "the graph is still being made");
  return Entered{i, std::move(entry)};
}

const syntax::SourceMap* sources_of(const std::shared_ptr<detail::GraphImpl>& g) {
  return g ? &g->context->engine->sources : nullptr;
}

}  // namespace

Graph Context::capture(const std::function<void()>& f, CaptureOptions options) const {
  auto r = engine::capture(impl_, recording_options(options), f, options.quiet, false, nullptr);
  if (auto* e = std::get_if<Error>(&r)) e->raise();
  return graph_of(std::get<0>(std::move(r)));
}

Result<Graph> Context::try_capture(const std::function<void()>& f, CaptureOptions options) const {
  auto r = engine::capture(impl_, recording_options(options), f, options.quiet, true, nullptr);
  if (auto* e = std::get_if<Error>(&r)) return *e;
  return graph_of(std::get<0>(std::move(r)));
}

static std::variant<std::vector<CUgraphNode_st*>, Error> record_into_core(
    const std::shared_ptr<detail::ContextImpl>& c, CUgraph_st* graph,
    const std::vector<CUgraphNode_st*>& after, const std::function<void()>& f, bool convert) {
  if (!graph)
    return engine::to_public(nullptr,
                             make_error(gk::ErrorKind::Usage, "E0512", "the graph to record into is null"));
  exec::RecordingOptions o;
  o.into = graph;
  o.after.assign(after.begin(), after.end());
  std::vector<void*> frontier;
  auto r = engine::capture(c, std::move(o), f, false, convert, &frontier);
  if (auto* e = std::get_if<Error>(&r)) return *e;
  std::vector<CUgraphNode_st*> out;
  for (void* n : frontier) out.push_back(static_cast<CUgraphNode_st*>(n));
  return out;
}

std::vector<CUgraphNode_st*> Context::record_into(CUgraph_st* graph,
                                                  const std::vector<CUgraphNode_st*>& after,
                                                  const std::function<void()>& f) const {
  auto r = record_into_core(impl_, graph, after, f, false);
  if (auto* e = std::get_if<Error>(&r)) e->raise();
  return std::get<0>(std::move(r));
}

Result<std::vector<CUgraphNode_st*>> Context::try_record_into(CUgraph_st* graph,
                                                              const std::vector<CUgraphNode_st*>& after,
                                                              const std::function<void()>& f) const {
  auto r = record_into_core(impl_, graph, after, f, true);
  if (auto* e = std::get_if<Error>(&r)) return *e;
  return std::get<0>(std::move(r));
}

static std::variant<Node, Error> node_core(detail::ContextImpl& c, std::string name,
                                           const NodeOptions& options, const std::function<void()>& f,
                                           bool convert) {
  const auto* sources = &c.engine->sources;
  auto entry = c.enter();
  if (!entry) return engine::to_public(sources, entry.error());
  if (!c.is_recording())
    return engine::to_public(
        sources, make_error(gk::ErrorKind::Capture, "E0703", "a node is recorded inside a capture")
                     .help("to add to a graph that is made, call add() of the graph"));
  auto graph = c.graph_to_be.lock();
  auto after = engine::names_of(graph, options);
  if (!after) return engine::to_public(sources, after.error());
  // A node that fails leaves the whole capture to whoever catches the error: nothing to undo here but the
  // node.
  auto recording = c.recording;
  auto e = engine::record_node(*recording, sources, name, std::move(*after), f, convert,
                               [&] { (void)recording->end_node(); });
  if (e) return *e;
  return detail::Access::node(graph, std::move(name), -1);
}

Node Context::node(std::string name, NodeOptions options, const std::function<void()>& f) const {
  auto r = node_core(engine::behind(impl_), std::move(name), options, f, false);
  if (auto* e = std::get_if<Error>(&r)) e->raise();
  return std::get<0>(std::move(r));
}

Result<Node> Context::try_node(std::string name, NodeOptions options, const std::function<void()>& f) const {
  auto r = node_core(engine::behind(impl_), std::move(name), options, f, true);
  if (auto* e = std::get_if<Error>(&r)) return *e;
  return std::get<0>(std::move(r));
}

Result<CaptureToken> Context::try_capture_token() const {
  auto& c = engine::behind(impl_);
  return guarded(&c.engine->sources, [&]() -> gk::Result<CaptureToken> {
    GK_TRY(auto entry, c.enter());
    if (!c.is_recording()) return fail(gk::ErrorKind::Capture, "E0703", "no capture is open on this context");
    auto t = engine::make_handle<detail::TokenImpl>();
    t->engine = c.engine;
    t->recording = c.recording;
    t->graph = c.graph_to_be;
    return detail::Access::make<CaptureToken>(std::move(t));
  });
}

// ---- Graph

static std::variant<Node, Error> add_core(const Graph& g, std::string name, const NodeOptions& options,
                                          const std::function<void()>& f, bool convert) {
  auto entered = enter(g);
  if (!entered) return engine::to_public(nullptr, entered.error());
  auto& graph = entered->graph;
  auto& c = *graph->context;
  const auto* sources = &c.engine->sources;
  auto out = [&](const gk::Error& e) { return engine::to_public(sources, e); };
  auto entry = c.enter();
  if (!entry) return out(entry.error());
  if (auto ok = c.refuse_in_update("adding to a graph"); !ok) return out(ok.error());
  if (c.is_recording()) return out(engine::nested());
  auto after = engine::names_of(graph, options);
  if (!after) return out(after.error());
  auto begun = exec::Recording::extend(*c.runtime, *graph->graph);
  if (!begun) return out(begun.error());
  engine::Open open(c, std::move(*begun), graph);
  if (auto e =
          engine::record_node(*open, sources, name, std::move(*after), f, convert, [&] { open.discard(); }))
    return *e;
  auto finished = open.finish();
  if (!finished) return out(finished.error());
  graph->graph = std::move(*finished);
  for (auto& n : nodes_of(graph))
    if (n.name() == name) return n;
  return detail::Access::node(graph, std::move(name), -1);  // a node that does nothing
}

Node Graph::add(std::string name, NodeOptions options, const std::function<void()>& f) {
  auto r = add_core(*this, std::move(name), options, f, false);
  if (auto* e = std::get_if<Error>(&r)) e->raise();
  return std::get<0>(std::move(r));
}

Result<Node> Graph::try_add(std::string name, NodeOptions options, const std::function<void()>& f) {
  auto r = add_core(*this, std::move(name), options, f, true);
  if (auto* e = std::get_if<Error>(&r)) return *e;
  return std::get<0>(std::move(r));
}

const std::string& Graph::name() const {
  static const std::string none;
  return impl_ && impl_->graph ? impl_->graph->name() : none;
}

std::vector<Node> Graph::nodes() const {
  auto e = enter(*this);
  return e ? nodes_of(e->graph) : std::vector<Node>{};
}

Result<Node> Graph::try_node(std::string_view name) const {
  return guarded(sources_of(impl_), [&]() -> gk::Result<Node> {
    GK_TRY(auto e, enter(*this));
    std::string has;
    for (auto& n : nodes_of(e.graph)) {
      if (n.name() == name && !name.empty()) return n;
      if (!n.name().empty()) has += (has.empty() ? "" : ", ") + n.name();
    }
    return fail(make_error(gk::ErrorKind::Capture, "E0704", fmt::format("the graph has no node `{}`", name))
                    .note(has.empty() ? "none of its nodes has a name" : "its nodes are " + has));
  });
}

int64_t Graph::num_leases() const {
  auto e = enter(*this);
  return e ? e->graph->graph->num_leases() : 0;
}
std::string Graph::print() const {
  auto e = enter(*this);
  return e ? e->graph->graph->print() : std::string();
}
std::string Graph::dot() const {
  auto e = enter(*this);
  return e ? e->graph->graph->dot() : std::string();
}

void Graph::close() {
  auto e = enter(*this);
  if (!e) return;
  if (e->graph->growing) return;
  e->graph->closed = true;
  e->graph->graph = nullptr;
}

Result<Exec> Graph::try_instantiate() const {
  return guarded(sources_of(impl_), [&]() -> gk::Result<Exec> {
    GK_TRY(auto e, enter(*this));
    if (e.graph->growing)
      return fail(gk::ErrorKind::Capture, "E0703", "the graph is being added to; instantiate it afterwards");
    auto x = engine::make_handle<detail::ExecImpl>();
    x->engine = e.graph->context->engine;
    x->graph = e.graph;
    GK_TRY(x->exec, e.graph->graph->instantiate());
    return detail::Access::make<Exec>(std::move(x));
  });
}

}  // namespace gk::api
