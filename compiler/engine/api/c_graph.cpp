// The C interface: captures, graphs, executables.
#include "compiler/engine/api/c_handles.h"

namespace gk::engine {

std::function<void()> c_callback(gk_error* (*f)(void*), void* data) {
  if (!f) return {};
  return [f, data] {
    if (gk_error* e = f(data)) throw CallbackError{e};
  };
}

api::CaptureOptions c_options(const gk_capture_options* o) {
  api::CaptureOptions out;
  if (!o) return out;
  if (o->name) out.name = o->name;
  out.mode = static_cast<api::CaptureMode>(o->mode);
  if (o->on_stream) out.stream = o->stream;
  out.quiet = o->quiet;
  return out;
}

namespace {

// The nodes of these names, as NodeOptions; all so far where `count` is negative.
api::NodeOptions after_of(const api::Graph& g, int count, const char* const* names) {
  api::NodeOptions options;
  if (count < 0) return options;
  options.after.emplace();
  for (int i = 0; i < count; ++i) options.after->push_back(g.node(names && names[i] ? names[i] : ""));
  return options;
}

template <class T>
void raise(const ContextImpl& c, const gk::Result<T>& r) {
  if (!r) to_public(&c.engine->sources, r.error()).raise();
}

}  // namespace
}  // namespace gk::engine

using namespace gk::engine;
namespace api = gk::api;

gk_error* gk_capture(gk_context* c, const gk_capture_options* options, gk_error* (*f)(void*), void* data,
                     gk_graph** out) {
  if (auto* bad = c_check({c, reinterpret_cast<const void*>(f), out})) return bad;
  return c_call([&] {
    bool quiet = options && options->quiet;
    auto go = [&]() -> api::Graph {
      try {
        return c->context.capture(c_callback(f, data), c_options(options));
      } catch (const CallbackError& e) {
        const auto kind = static_cast<api::ErrorKind>(gk_error_get_kind(e.error));
        if (!quiet || !cannot_be_recorded(kind, gk_error_code(e.error))) throw;
        gk_error_free(e.error);
        return {};
      }
    };
    auto g = go();
    *out = g ? new gk_graph{std::move(g)} : nullptr;
  });
}

gk_error* gk_capture_begin(gk_context* c, const gk_capture_options* options) {
  if (auto* bad = c_check({c})) return bad;
  return c_call([&] {
    const auto& impl = Access::impl(c->context);
    raise(*impl, begin_capture(impl, c_options(options)));
  });
}
gk_error* gk_capture_end(gk_context* c, gk_graph** out) {
  if (auto* bad = c_check({c, out})) return bad;
  return c_call([&] {
    const auto& impl = Access::impl(c->context);
    auto g = end_capture(impl);
    raise(*impl, g);
    *out = *g ? new gk_graph{Access::make<api::Graph>(std::move(*g))} : nullptr;
  });
}
gk_error* gk_capture_discard(gk_context* c) {
  if (auto* bad = c_check({c})) return bad;
  return c_call([&] {
    const auto& impl = Access::impl(c->context);
    raise(*impl, discard_capture(impl));
  });
}
gk_error* gk_capture_begin_node(gk_context* c, const char* name, int count, const char* const* after) {
  if (auto* bad = c_check({c, name})) return bad;
  return c_call([&] {
    const auto& impl = Access::impl(c->context);
    raise(*impl, [&]() -> gk::Result<void> {
      GK_TRY(auto entry, impl->enter());
      GK_TRY(auto* recording, open_capture(*impl));
      std::optional<std::vector<std::string>> names;
      if (count >= 0) {
        names.emplace();
        for (int i = 0; i < count; ++i) {
          if (!after || !after[i])
            return gk::fail(gk::ErrorKind::Usage, "E0512", "the name of a node to come after is NULL");
          names->emplace_back(after[i]);
        }
      }
      return recording->begin_node(name, std::move(names));
    }());
  });
}
gk_error* gk_capture_end_node(gk_context* c) {
  if (auto* bad = c_check({c})) return bad;
  return c_call([&] {
    const auto& impl = Access::impl(c->context);
    raise(*impl, [&]() -> gk::Result<void> {
      GK_TRY(auto entry, impl->enter());
      GK_TRY(auto* recording, open_capture(*impl));
      return recording->end_node();
    }());
  });
}
gk_error* gk_capture_token(gk_context* c, gk_token** out) {
  if (auto* bad = c_check({c, out})) return bad;
  return c_call([&] { *out = new gk_token{c->context.capture_token()}; });
}
void gk_token_free(gk_token* t) { delete t; }

gk_error* gk_record_into(gk_context* c, CUgraph_st* graph, CUgraphNode_st* const* after, int num_after,
                         gk_error* (*f)(void*), void* data, CUgraphNode_st** frontier, int capacity,
                         int* count) {
  if (auto* bad = c_check({c, reinterpret_cast<const void*>(f)})) return bad;
  return c_call([&] {
    std::vector<CUgraphNode_st*> before;
    for (int i = 0; after && i < num_after; ++i) before.push_back(after[i]);
    auto nodes = c->context.record_into(graph, before, c_callback(f, data));
    for (size_t i = 0; frontier && i < nodes.size() && static_cast<int>(i) < capacity; ++i)
      frontier[i] = nodes[i];
    if (count) *count = static_cast<int>(nodes.size());
  });
}

gk_error* gk_graph_add(gk_graph* g, const char* name, int count, const char* const* after,
                       gk_error* (*f)(void*), void* data) {
  if (auto* bad = c_check({g, name, reinterpret_cast<const void*>(f)})) return bad;
  return c_call([&] { g->graph.add(name, after_of(g->graph, count, after), c_callback(f, data)); });
}
int64_t gk_graph_num_nodes(const gk_graph* g) { return g ? g->graph.num_nodes() : 0; }
int64_t gk_graph_num_leases(const gk_graph* g) { return g ? g->graph.num_leases() : 0; }
char* gk_graph_print(const gk_graph* g) { return c_text(g ? g->graph.print() : std::string()); }
char* gk_graph_dot(const gk_graph* g) { return c_text(g ? g->graph.dot() : std::string()); }
gk_error* gk_graph_instantiate(const gk_graph* g, gk_exec** out) {
  if (auto* bad = c_check({g, out})) return bad;
  return c_call([&] { *out = new gk_exec{g->graph.instantiate()}; });
}
void gk_graph_free(gk_graph* g) { delete g; }

gk_error* gk_exec_launch(gk_exec* e, gk_context* c, int64_t times) {
  if (auto* bad = c_check({e, c})) return bad;
  return c_call([&] { e->exec.launch(c->context, times); });
}
gk_error* gk_exec_launch_on(gk_exec* e, CUstream_st* stream, int64_t times) {
  if (auto* bad = c_check({e})) return bad;
  return c_call([&] { e->exec.launch(stream, times); });
}
gk_error* gk_exec_upload(gk_exec* e, gk_context* c) {
  if (auto* bad = c_check({e, c})) return bad;
  return c_call([&] { e->exec.upload(c->context); });
}
gk_error* gk_exec_upload_on(gk_exec* e, CUstream_st* stream) {
  if (auto* bad = c_check({e})) return bad;
  return c_call([&] { e->exec.upload(stream); });
}
gk_error* gk_exec_update_node(gk_exec* e, const char* name, const gk_function* f, const gk_values* args,
                              const gk_launch_shape* shape) {
  if (auto* bad = c_check({e, name, f})) return bad;
  return c_call([&] {
    e->exec.node(name).update(f->function, args ? args->values : std::vector<api::Value>{},
                              c_launch_shape(shape));
  });
}
gk_error* gk_exec_update(gk_exec* e, const gk_graph* g) {
  if (auto* bad = c_check({e, g})) return bad;
  return c_call([&] { e->exec.update(g->graph); });
}
gk_error* gk_exec_rebind(gk_exec* e, int count, const gk_tensor* const* from, const gk_tensor* const* to) {
  if (auto* bad = c_check({e, from, to})) return bad;
  return c_call([&] {
    std::vector<std::pair<api::Tensor, api::Tensor>> pairs;
    for (int i = 0; i < count; ++i)
      pairs.emplace_back(from[i] ? from[i]->tensor : api::Tensor(), to[i] ? to[i]->tensor : api::Tensor());
    e->exec.rebind(pairs);
  });
}
gk_update_rung gk_exec_last_update(const gk_exec* e) {
  return e ? static_cast<gk_update_rung>(e->exec.last_update().rung) : GK_UPDATE_NONE;
}
int64_t gk_exec_num_leases(const gk_exec* e) { return e ? e->exec.num_leases() : 0; }
gk_error* gk_exec_close(gk_exec* e) {
  if (auto* bad = c_check({e})) return bad;
  return c_call([&] { e->exec.close(); });
}
void gk_exec_free(gk_exec* e) { delete e; }
