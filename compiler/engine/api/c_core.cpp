// The C interface: errors, engines, contexts, arrays, programs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "compiler/engine/api/c_handles.h"
#include "include/gk/gk.h"

namespace gk::engine {

gk_error* c_error(const api::Error& e) {
  if (auto* out = new (std::nothrow) gk_error{e}) return out;
  // Not even room for an error: one that was made beforehand, and is never freed.
  static gk_error last{to_public(nullptr, out_of_host_memory())};
  return &last;
}

gk_error* c_check(std::initializer_list<const void*> arguments) {
  for (const void* a : arguments)
    if (!a) return c_error(to_public(nullptr, make_error(ErrorKind::Usage, "E0512", "an argument is NULL")));
  return nullptr;
}

api::Shape c_shape(int rank, const int64_t* shape) {
  if (rank < 0 || (rank > 0 && !shape))
    to_public(nullptr, make_error(ErrorKind::Usage, "E0512", "the shape is NULL, or its rank negative"))
        .raise();
  if (rank > gk::kMaxRank)  // not read: who knows how much of it is there
    to_public(nullptr, make_error(ErrorKind::Shape, "E0306",
                                  fmt::format("rank {} is over the limit of {}", rank, gk::kMaxRank)))
        .raise();
  return api::Shape(shape, shape + rank);
}

api::LaunchShape c_launch_shape(const gk_launch_shape* s) {
  if (!s) return {};
  return {s->grid, s->block, s->shared_bytes};
}

char* c_text(const std::string& text) {
  auto* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (out) std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

}  // namespace gk::engine

using gk::engine::c_call;
using gk::engine::c_check;
using gk::engine::c_shape;
namespace api = gk::api;

// ---- errors

const char* gk_error_code(const gk_error* e) { return e ? e->error.code().c_str() : ""; }
gk_error_kind gk_error_get_kind(const gk_error* e) {
  return e ? static_cast<gk_error_kind>(e->error.kind()) : GK_ERROR_INTERNAL;
}
const char* gk_error_message(const gk_error* e) { return e ? e->error.message().c_str() : ""; }
const char* gk_error_rendered(const gk_error* e) { return e ? e->error.rendered().c_str() : ""; }
const char* gk_error_file(const gk_error* e) {
  return e && !e->error.places().empty() ? e->error.places()[0].file.c_str() : nullptr;
}
int gk_error_line(const gk_error* e) {
  return e && !e->error.places().empty() ? e->error.places()[0].line : 0;
}
int gk_error_column(const gk_error* e) {
  return e && !e->error.places().empty() ? e->error.places()[0].column : 0;
}
void gk_error_free(gk_error* e) { delete e; }

// ---- engines

gk_error* gk_engine_open(const gk_engine_options* o, gk_engine** out) {
  if (auto* e = c_check({out})) return e;
  return c_call([&] {
    api::EngineOptions options;
    if (o) {
      if (o->device) options.device = o->device;
      options.memory_limit_bytes = o->memory_limit_bytes;
      if (o->cache_dir) options.cache_dir = o->cache_dir;
      options.use_cache = !o->no_cache;
      options.host_threads = o->host_threads;
      options.native_context = o->native_context;
      options.nan_check = o->nan_check;
      for (std::string_view left = o->nan_exempt ? o->nan_exempt : ""; !left.empty();) {
        const std::string_view name = left.substr(0, left.find(','));
        options.nan_exempt.emplace_back(name);
        left.remove_prefix(std::min(name.size() + 1, left.size()));
      }
    }
    *out = new gk_engine{api::Engine(std::move(options))};
  });
}
const char* gk_engine_device(const gk_engine* e) { return e ? e->engine.device().c_str() : ""; }
void gk_engine_get_stats(const gk_engine* e, gk_engine_stats* out) {
  if (!e || !out) return;
  auto s = e->engine.stats();
  *out = {s.in_use_bytes,     s.cached_bytes,     s.peak_bytes,  s.limit_bytes,
          s.leases,           s.pending_releases, s.compiles,    s.cache_hits,
          s.kernels_compiled, s.disk_cache_hits,  s.driver_calls};
}
gk_error* gk_engine_reclaim(gk_engine* e) {
  if (auto* bad = c_check({e})) return bad;
  return c_call([&] { e->engine.reclaim(); });
}
void gk_engine_free(gk_engine* e) { delete e; }

// ---- contexts

gk_error* gk_context_open(gk_engine* e, gk_context** out) {
  if (auto* bad = c_check({e, out})) return bad;
  return c_call([&] { *out = new gk_context{api::Context(e->engine)}; });
}
gk_error* gk_context_open_on(gk_engine* e, CUstream_st* stream, gk_context** out) {
  if (auto* bad = c_check({e, out})) return bad;
  return c_call([&] {
    api::ContextOptions options;
    options.stream = stream;
    *out = new gk_context{api::Context(e->engine, options)};
  });
}
gk_error* gk_context_open_in(const gk_token* t, gk_context** out) {
  if (auto* bad = c_check({t, out})) return bad;
  return c_call([&] { *out = new gk_context{api::Context(t->token)}; });
}
gk_error* gk_context_stream(gk_context* c, CUstream_st** out) {
  if (auto* bad = c_check({c, out})) return bad;
  return c_call([&] { *out = c->context.stream(); });
}
gk_error* gk_context_use(gk_context* c, const gk_tensor* x) {
  if (auto* bad = c_check({c, x})) return bad;
  return c_call([&] { c->context.use(x->tensor); });
}
gk_error* gk_context_synchronize(gk_context* c) {
  if (auto* bad = c_check({c})) return bad;
  return c_call([&] { c->context.synchronize(); });
}
gk_error* gk_context_host_call(gk_context* c, void (*f)(void*), void* data, void (*gone)(void*)) {
  if (auto* bad = c_check({c, reinterpret_cast<const void*>(f)})) return bad;
  return c_call([&] {
    // After an error the data stay the caller's: `gone` is armed at the end.
    auto armed = std::make_shared<std::atomic<bool>>(false);
    std::shared_ptr<void> kept(data, [gone, armed](void* d) {
      if (gone && armed->load()) gone(d);
    });
    c->context.host_call([f, kept] { f(kept.get()); });
    armed->store(true);
  });
}
void gk_context_interrupt(gk_context* c) {
  if (c) c->context.interrupt();
}
gk_error* gk_context_close(gk_context* c) {
  if (auto* bad = c_check({c})) return bad;
  return c_call([&] { c->context.close(); });
}
void gk_context_free(gk_context* c) { delete c; }

// ---- arrays

static gk_error* empty(gk_context* c, gk_dtype t, int rank, const int64_t* shape, api::MemoryPlace place,
                       gk_tensor** out) {
  if (auto* bad = c_check({c, out})) return bad;
  return c_call([&] {
    *out = new gk_tensor{c->context.empty(static_cast<api::DType>(t), c_shape(rank, shape), place)};
  });
}
gk_error* gk_tensor_empty(gk_context* c, gk_dtype t, int rank, const int64_t* shape, gk_tensor** out) {
  return empty(c, t, rank, shape, api::MemoryPlace::Device, out);
}
gk_error* gk_tensor_empty_pinned(gk_context* c, gk_dtype t, int rank, const int64_t* shape, gk_tensor** out) {
  return empty(c, t, rank, shape, api::MemoryPlace::Pinned, out);
}
gk_error* gk_tensor_full(gk_context* c, gk_dtype t, int rank, const int64_t* shape, double value,
                         gk_tensor** out) {
  if (auto* bad = c_check({c, out})) return bad;
  return c_call([&] {
    *out = new gk_tensor{c->context.full(static_cast<api::DType>(t), c_shape(rank, shape), value)};
  });
}
gk_error* gk_tensor_from_host(gk_context* c, gk_dtype t, int rank, const int64_t* shape, const void* data,
                              int64_t size_bytes, gk_tensor** out) {
  if (auto* bad = c_check({c, out})) return bad;
  return c_call([&] {
    *out = new gk_tensor{
        c->context.try_from_host(static_cast<api::DType>(t), c_shape(rank, shape), data, size_bytes).value()};
  });
}
gk_error* gk_tensor_wrap(gk_context* c, void* pointer, gk_dtype t, int rank, const int64_t* shape,
                         CUevent_st* ready, void (*deleter)(void*), void* data, gk_tensor** out) {
  if (auto* bad = c_check({c, out})) return bad;
  return c_call([&] {
    api::WrapOptions options;
    options.ready = ready;
    if (deleter) options.deleter = [deleter, data] { deleter(data); };
    *out = new gk_tensor{api::Tensor::wrap(c->context, pointer, static_cast<api::DType>(t),
                                           c_shape(rank, shape), std::move(options))};
  });
}
gk_error* gk_tensor_from_dlpack(gk_context* c, void* managed, gk_tensor** out) {
  if (auto* bad = c_check({c, managed, out})) return bad;
  return c_call([&] {
    *out = new gk_tensor{
        api::Tensor::from_dlpack(c->context, static_cast<api::dlpack::ManagedTensorVersioned*>(managed))};
  });
}
gk_error* gk_tensor_to_dlpack(gk_context* c, const gk_tensor* x, void** managed) {
  if (auto* bad = c_check({c, x, managed})) return bad;
  return c_call([&] { *managed = x->tensor.to_dlpack(c->context); });
}
gk_tensor* gk_tensor_share(const gk_tensor* x) {
  return x ? new (std::nothrow) gk_tensor{x->tensor} : nullptr;
}
gk_dtype gk_tensor_dtype(const gk_tensor* x) { return x ? static_cast<gk_dtype>(x->tensor.dtype()) : GK_F32; }
int gk_tensor_rank(const gk_tensor* x) { return x ? static_cast<int>(x->tensor.rank()) : 0; }
int64_t gk_tensor_extent(const gk_tensor* x, int axis) {
  return x && axis >= 0 && axis < x->tensor.rank() ? x->tensor.shape()[static_cast<size_t>(axis)] : 0;
}
int64_t gk_tensor_size_bytes(const gk_tensor* x) { return x ? x->tensor.size_bytes() : 0; }
void* gk_tensor_data(const gk_tensor* x) { return x ? x->tensor.data() : nullptr; }
void* gk_tensor_host_data(const gk_tensor* x) { return x ? x->tensor.host_data() : nullptr; }
int64_t gk_tensor_leases(const gk_tensor* x) { return x ? x->tensor.leases() : 0; }
static void check_dtype(const gk_tensor* x, gk_dtype t) {
  const auto given = static_cast<api::DType>(t);
  if (x->tensor.dtype() == given) return;
  if (static_cast<int>(t) < 0 || static_cast<int>(t) >= gk::kDTypeCount)
    gk::engine::to_public(nullptr, gk::make_error(gk::ErrorKind::Type, "E0202", "there is no such dtype"))
        .raise();
  gk::engine::to_public(
      nullptr, gk::make_error(gk::ErrorKind::Type, "E0211",
                              "the elements are " + std::string(api::name(x->tensor.dtype())) + ", not " +
                                  std::string(api::name(given))))
      .raise();
}
gk_error* gk_tensor_to_host(gk_context* c, const gk_tensor* x, gk_dtype t, void* data, int64_t size_bytes) {
  if (auto* bad = c_check({c, x})) return bad;
  return c_call([&] {
    check_dtype(x, t);
    x->tensor.to_host_raw(c->context, data, size_bytes);
  });
}
gk_error* gk_tensor_copy_from_host(gk_context* c, gk_tensor* x, gk_dtype t, const void* data,
                                   int64_t size_bytes) {
  if (auto* bad = c_check({c, x})) return bad;
  return c_call([&] {
    check_dtype(x, t);
    x->tensor.copy_from_raw(c->context, data, size_bytes);
  });
}
gk_error* gk_tensor_to_host_raw(gk_context* c, const gk_tensor* x, void* data, int64_t size_bytes) {
  if (auto* bad = c_check({c, x})) return bad;
  return c_call([&] { x->tensor.to_host_raw(c->context, data, size_bytes); });
}
gk_error* gk_tensor_copy_from_host_raw(gk_context* c, gk_tensor* x, const void* data, int64_t size_bytes) {
  if (auto* bad = c_check({c, x})) return bad;
  return c_call([&] { x->tensor.copy_from_raw(c->context, data, size_bytes); });
}
gk_error* gk_tensor_copy(gk_context* c, gk_tensor* dst, const gk_tensor* src) {
  if (auto* bad = c_check({c, dst, src})) return bad;
  return c_call([&] { dst->tensor.copy_from(c->context, src->tensor); });
}
void gk_tensor_release(gk_tensor* x) {
  if (x) x->tensor.free();
}
void gk_tensor_free(gk_tensor* x) { delete x; }

// ---- programs

gk_error* gk_compile(gk_context* c, const char* name, const char* text, gk_module** out) {
  if (auto* bad = c_check({c, name, text, out})) return bad;
  return c_call([&] { *out = new gk_module{c->context.compile(name, text)}; });
}
void gk_module_free(gk_module* m) { delete m; }
gk_error* gk_module_function(const gk_module* m, const char* name, gk_function** out) {
  if (auto* bad = c_check({m, name, out})) return bad;
  return c_call([&] { *out = new gk_function{m->module.function(name)}; });
}
void gk_function_free(gk_function* f) { delete f; }

static void add(gk_values* v, api::Value x) {
  if (v) v->values.push_back(std::move(x));
}
gk_values* gk_values_new(void) { return new (std::nothrow) gk_values; }
void gk_values_add_tensor(gk_values* v, const gk_tensor* x) {
  add(v, x ? api::Value(x->tensor) : api::Value());
}
void gk_values_add_f32(gk_values* v, float x) { add(v, x); }
void gk_values_add_f64(gk_values* v, double x) { add(v, x); }
void gk_values_add_i32(gk_values* v, int32_t x) { add(v, x); }
void gk_values_add_i64(gk_values* v, int64_t x) { add(v, x); }
void gk_values_add_bool(gk_values* v, bool x) { add(v, x); }
void gk_values_add_u64(gk_values* v, uint64_t x) { add(v, x); }
gk_error* gk_values_add_scalar(gk_values* v, gk_dtype t, const void* value) {
  if (auto* bad = c_check({v, value})) return bad;
  return c_call([&] {
    if (static_cast<int>(t) < 0 || static_cast<int>(t) >= gk::kDTypeCount)
      gk::engine::to_public(nullptr, gk::make_error(gk::ErrorKind::Type, "E0202", "there is no such dtype"))
          .raise();
    const auto s = gk::Scalar::load(static_cast<gk::DType>(t), value);
    v->values.push_back(gk::engine::Access::number(s, true));
  });
}
void gk_values_add_text(gk_values* v, const char* x) { add(v, x ? api::Value(x) : api::Value()); }
int gk_values_count(const gk_values* v) { return v ? static_cast<int>(v->values.size()) : 0; }

// The value at `i` of the kind wanted.
static const api::Value& at(const gk_values* v, int i, api::Value::Kind kind, const char* what) {
  using gk::make_error;
  if (i < 0 || i >= gk_values_count(v))
    gk::engine::to_public(nullptr, make_error(gk::ErrorKind::Shape, "E0308", "there is no such value"))
        .raise();
  const auto& x = v->values[static_cast<size_t>(i)];
  if (x.kind() != kind)
    gk::engine::to_public(nullptr,
                          make_error(gk::ErrorKind::Type, "E0211", std::string("the value is no ") + what))
        .raise();
  return x;
}
gk_error* gk_values_tensor(const gk_values* v, int i, gk_tensor** out) {
  if (auto* bad = c_check({v, out})) return bad;
  return c_call([&] { *out = new gk_tensor{at(v, i, api::Value::Kind::Array, "array").tensor()}; });
}
gk_error* gk_values_number(const gk_values* v, int i, double* out) {
  if (auto* bad = c_check({v, out})) return bad;
  return c_call([&] { *out = at(v, i, api::Value::Kind::Number, "number").as_double(); });
}
gk_error* gk_values_integer(const gk_values* v, int i, int64_t* out) {
  if (auto* bad = c_check({v, out})) return bad;
  return c_call([&] { *out = at(v, i, api::Value::Kind::Number, "number").as_int(); });
}
void gk_values_free(gk_values* v) { delete v; }

static void call(const gk_function* f, const std::vector<api::Value>& args, const gk_launch_shape* shape,
                 gk_values** results) {
  auto r = gk::engine::call_callable(gk::engine::Access::impl(f->function).get(), args,
                                     gk::engine::c_launch_shape(shape))
               .value();
  if (!results) return;
  auto out = std::make_unique<gk_values>();
  using Kind = api::Value::Kind;
  if (r.kind() == Kind::List || r.kind() == Kind::Tuple || r.kind() == Kind::Record)
    out->values = r.items();
  else if (r.kind() != Kind::None)
    out->values.push_back(std::move(r));
  *results = out.release();
}
gk_error* gk_call(const gk_function* f, const gk_values* args, const gk_launch_shape* shape,
                  gk_values** results) {
  if (auto* bad = c_check({f})) return bad;
  static const std::vector<api::Value> none;
  return c_call([&] { call(f, args ? args->values : none, shape, results); });
}
gk_error* gk_call_tensors(const gk_function* f, gk_tensor* const* args, int count, gk_values** results) {
  if (auto* bad = c_check({f})) return bad;
  if (count > 0 && !args) return c_check({args});
  for (int i = 0; i < count; ++i)
    if (auto* bad = c_check({args[i]})) return bad;
  return c_call([&] {
    std::vector<api::Value> values;
    values.reserve(static_cast<size_t>(std::max(count, 0)));
    for (int i = 0; i < count; ++i) values.emplace_back(args[i]->tensor);
    call(f, values, nullptr, results);
  });
}

const char* gk_version(void) {
  static const std::string text = gk::version();
  return text.c_str();
}
char* gk_explain(const char* code) { return gk::engine::c_text(code ? gk::explain(code) : std::string()); }
void gk_text_free(char* text) { std::free(text); }
