/* The C interface, used as a C11 program uses it. Called by c_api_test.cpp, which makes gtest cases of it:
 * each function returns NULL, or a text that says what is wrong. */
#include "tests/api/c_api_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gk/gk_c.h"

static char message[1024];

#define OK(call)                                                                                           \
  do {                                                                                                     \
    gk_error* e_ = (call);                                                                                 \
    if (e_) {                                                                                              \
      snprintf(message, sizeof message, "%s:%d: %s: %s: %s", __FILE__, __LINE__, #call, gk_error_code(e_), \
               gk_error_message(e_));                                                                      \
      gk_error_free(e_);                                                                                   \
      return message;                                                                                      \
    }                                                                                                      \
  } while (0)
#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      snprintf(message, sizeof message, "%s:%d: not so: %s", __FILE__, __LINE__, #condition); \
      return message;                                                                         \
    }                                                                                         \
  } while (0)
#define FAILS(wanted, call)                                                                           \
  do {                                                                                                \
    gk_error* e_ = (call);                                                                            \
    const char* got_ = e_ ? gk_error_code(e_) : "ok";                                                 \
    if (strcmp(got_, wanted) != 0) {                                                                  \
      snprintf(message, sizeof message, "%s:%d: %s gave %s, not %s", __FILE__, __LINE__, #call, got_, \
               wanted);                                                                               \
      return message;                                                                                 \
    }                                                                                                 \
    gk_error_free(e_);                                                                                \
  } while (0)

enum { N = 100 };

struct world {
  gk_engine* engine;
  gk_context* context;
  gk_module* module;
  gk_function *axpy, *bump, *combine;
  gk_tensor *x, *y, *z;
};

static const char* text =
    "fn axpy(x: f32[n], a: f32) = a * x + 1\n"
    "fn bump(mut x: f32[n], by: f32) { x .+= by }\n"
    "fn both(x: f32[n]) = (x + 1, 7)\n"
    "kernel combine(mut z: f32[n], x: f32[n], y: f32[n]) over i in n { z[i] = x[i] * x[i] + y[i] }\n";

static const char* open_world(const char* device, struct world* w) {
  gk_engine_options options;
  memset(&options, 0, sizeof options);
  memset(w, 0, sizeof *w);
  options.device = device;
  options.no_cache = true;
  OK(gk_engine_open(&options, &w->engine));
  OK(gk_context_open(w->engine, &w->context));
  OK(gk_compile(w->context, "c.gk", text, &w->module));
  OK(gk_module_function(w->module, "axpy", &w->axpy));
  OK(gk_module_function(w->module, "bump", &w->bump));
  OK(gk_module_function(w->module, "combine", &w->combine));
  int64_t shape[1] = {N};
  OK(gk_tensor_full(w->context, GK_F32, 1, shape, 2, &w->x));
  OK(gk_tensor_full(w->context, GK_F32, 1, shape, 1, &w->y));
  OK(gk_tensor_full(w->context, GK_F32, 1, shape, 0, &w->z));
  return NULL;
}

/* In no particular order: handles keep what they need. */
static void close_world(struct world* w) {
  gk_engine_free(w->engine);
  gk_context_free(w->context);
  gk_tensor_free(w->x);
  gk_function_free(w->axpy);
  gk_module_free(w->module);
  gk_tensor_free(w->y);
  gk_function_free(w->bump);
  gk_tensor_free(w->z);
  gk_function_free(w->combine);
}

static const char* all_are(gk_context* c, const gk_tensor* t, float v) {
  float data[N];
  OK(gk_tensor_to_host(c, t, GK_F32, data, sizeof data));
  for (int i = 0; i < N; ++i)
    if (data[i] != v) {
      snprintf(message, sizeof message, "element %d is %g, not %g", i, (double)data[i], (double)v);
      return message;
    }
  return NULL;
}
#define ALL(t, v)                                   \
  do {                                              \
    const char* m_ = all_are(w->context, (t), (v)); \
    if (m_) return m_;                              \
  } while (0)

static gk_values* values(const gk_tensor* a, const gk_tensor* b, const gk_tensor* c) {
  gk_values* v = gk_values_new();
  gk_values_add_tensor(v, a);
  if (b) gk_values_add_tensor(v, b);
  if (c) gk_values_add_tensor(v, c);
  return v;
}

static const char* errors(struct world* w) {
  gk_module* m = NULL;
  gk_error* e = gk_compile(w->context, "bad.gk", "fn f(x) =\n  x + y\n", &m);
  CHECK(e && !m);
  CHECK(strcmp(gk_error_code(e), "E0401") == 0);
  CHECK(gk_error_get_kind(e) == GK_ERROR_TYPE);
  CHECK(strcmp(gk_error_file(e), "bad.gk") == 0);
  CHECK(gk_error_line(e) == 2 && gk_error_column(e) == 7);
  CHECK(strstr(gk_error_rendered(e), "bad.gk:2:7"));
  gk_error_free(e);
  gk_error_free(NULL);
  /* A rank over the limit: the shape is not read. */
  gk_tensor* unranked = NULL;
  const int64_t one = 1;
  FAILS("E0306", gk_tensor_empty(w->context, GK_F32, 1000000, &one, &unranked));
  CHECK(!unranked);
  /* A node to come after that is not named. */
  OK(gk_capture_begin(w->context, NULL));
  FAILS("E0512", gk_capture_begin_node(w->context, "a", 2, NULL));
  OK(gk_capture_discard(w->context));
  CHECK(strcmp(gk_error_code(NULL), "") == 0 && gk_error_file(NULL) == NULL);
  gk_engine_options options;
  memset(&options, 0, sizeof options);
  options.device = "toaster";
  gk_engine* none = NULL;
  FAILS("E0501", gk_engine_open(&options, &none));
  CHECK(!none);
  FAILS("E0512", gk_engine_open(NULL, NULL));
  FAILS("E0512", gk_compile(w->context, NULL, "", &m));
  FAILS("E0512", gk_tensor_empty(w->context, GK_F32, 2, NULL, &w->x));
  FAILS("E0512", gk_capture(w->context, NULL, NULL, NULL, NULL));
  char* long_text = gk_explain("E0716");
  CHECK(long_text && strstr(long_text, "E0716"));
  gk_text_free(long_text);
  CHECK(strncmp(gk_version(), "gk ", 3) == 0);
  return NULL;
}

static const char* arrays(struct world* w) {
  int64_t shape[2] = {2, 3};
  float data[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0};
  gk_tensor *t = NULL, *u = NULL, *p = NULL;
  OK(gk_tensor_from_host(w->context, GK_F32, 2, shape, data, sizeof data, &t));
  CHECK(gk_tensor_rank(t) == 2 && gk_tensor_extent(t, 1) == 3 && gk_tensor_dtype(t) == GK_F32);
  CHECK(gk_tensor_size_bytes(t) == 24 && gk_tensor_data(t));
  OK(gk_tensor_to_host(w->context, t, GK_F32, back, sizeof back));
  CHECK(memcmp(data, back, sizeof data) == 0);
  FAILS("E0303", gk_tensor_to_host(w->context, t, GK_F32, back, 4));
  FAILS("E0211", gk_tensor_to_host(w->context, t, GK_I32, back, sizeof back));
  FAILS("E0202", gk_tensor_to_host(w->context, t, (gk_dtype)99, back, sizeof back));
  OK(gk_tensor_empty(w->context, GK_F32, 2, shape, &u));
  OK(gk_tensor_copy(w->context, u, t));
  memset(back, 0, sizeof back);
  OK(gk_tensor_to_host(w->context, u, GK_F32, back, sizeof back));
  CHECK(memcmp(data, back, sizeof data) == 0);
  OK(gk_tensor_copy_from_host(w->context, u, GK_F32, data, sizeof data));
  FAILS("E0211", gk_tensor_copy_from_host(w->context, u, GK_I32, data, sizeof data));
  OK(gk_tensor_copy_from_host_raw(w->context, u, data, sizeof data));
  void* managed = NULL;
  OK(gk_tensor_to_dlpack(w->context, u, &managed));
  gk_tensor *taken = NULL, *again = gk_tensor_share(u);
  OK(gk_tensor_from_dlpack(w->context, managed, &taken));
  CHECK(gk_tensor_data(taken) == gk_tensor_data(u) && gk_tensor_data(again) == gk_tensor_data(u));
  OK(gk_tensor_empty_pinned(w->context, GK_F32, 2, shape, &p));
  CHECK(gk_tensor_host_data(p));
  gk_tensor_release(t);
  FAILS("E0716", gk_tensor_to_host(w->context, t, GK_F32, back, sizeof back));
  gk_tensor_free(t);
  gk_tensor_free(u);
  gk_tensor_free(taken);
  gk_tensor_free(again);
  gk_tensor_free(p);
  gk_tensor_free(NULL);
  return NULL;
}

static void count(void* data) { ++*(int*)data; }

static const char* wrapping(struct world* w) {
  int64_t shape[1] = {N};
  int deleted = 0;
  gk_tensor* t = NULL;
  FAILS("E0512", gk_tensor_wrap(w->context, NULL, GK_F32, 1, shape, NULL, count, &deleted, &t));
  OK(gk_tensor_wrap(w->context, gk_tensor_data(w->x), GK_F32, 1, shape, NULL, count, &deleted, &t));
  gk_tensor_free(t);
  OK(gk_context_synchronize(w->context));
  OK(gk_engine_reclaim(w->engine));
  CHECK(deleted == 1);
  OK(gk_context_use(w->context, w->x));
  int calls = 0;
  OK(gk_context_host_call(w->context, count, &calls, NULL));
  OK(gk_context_synchronize(w->context));
  CHECK(calls == 1);
  return NULL;
}

static const char* calls(struct world* w) {
  gk_values *args = gk_values_new(), *results = NULL;
  gk_values_add_tensor(args, w->x);
  gk_values_add_f32(args, 3);
  OK(gk_call(w->axpy, args, NULL, &results));
  CHECK(gk_values_count(results) == 1);
  gk_tensor* r = NULL;
  OK(gk_values_tensor(results, 0, &r));
  ALL(r, 7);
  FAILS("E0308", gk_values_tensor(results, 1, &r));
  double number = 0;
  FAILS("E0211", gk_values_number(results, 0, &number));
  gk_tensor_free(r);
  gk_values_free(results);
  gk_function* both = NULL;
  OK(gk_module_function(w->module, "both", &both));
  gk_values* one = values(w->x, NULL, NULL);
  OK(gk_call(both, one, NULL, &results));
  CHECK(gk_values_count(results) == 2);
  OK(gk_values_number(results, 1, &number));
  CHECK(number == 7);
  gk_values_free(results);
  OK(gk_call(both, one, NULL, NULL));
  gk_tensor* at[] = {w->x, NULL};
  OK(gk_call_tensors(both, at, 1, &results));
  CHECK(gk_values_count(results) == 2);
  OK(gk_values_number(results, 1, &number));
  CHECK(number == 7);
  gk_values_free(results);
  FAILS("E0206", gk_call_tensors(both, NULL, 0, NULL));
  FAILS("E0206", gk_call_tensors(both, at, -1, NULL));
  FAILS("E0512", gk_call_tensors(both, at, 2, NULL));
  FAILS("E0512", gk_call_tensors(both, NULL, 1, NULL));
  FAILS("E0512", gk_call_tensors(NULL, at, 1, NULL));
  FAILS("E0206", gk_call(w->axpy, one, NULL, NULL));
  FAILS("E0206", gk_call(w->axpy, NULL, NULL, NULL));
  gk_launch_shape shape = {2, 64, 0};
  gk_values* three = values(w->z, w->x, w->y);
  OK(gk_call(w->combine, three, &shape, NULL));
  ALL(w->z, 5);
  FAILS("E0401", gk_module_function(w->module, "nothing", &both));
  gk_values_free(three);
  gk_values_free(one);
  gk_values_free(args);
  gk_function_free(both);
  return NULL;
}

static gk_error* record_bump(void* data) {
  struct world* w = data;
  gk_values* v = values(w->x, NULL, NULL);
  gk_values_add_f32(v, 1);
  gk_error* e = gk_call(w->bump, v, NULL, NULL);
  gk_values_free(v);
  return e;
}
static gk_error* record_combine(void* data) {
  struct world* w = data;
  gk_values* v = values(w->z, w->x, w->y);
  gk_error* e = gk_call(w->combine, v, NULL, NULL);
  gk_values_free(v);
  return e;
}
static gk_error* record_wait(void* data) {
  struct world* w = data;
  return gk_context_synchronize(w->context);
}

static const char* graphs(struct world* w) {
  gk_graph* g = NULL;
  gk_exec* e = NULL;
  OK(gk_capture(w->context, NULL, record_bump, w, &g));
  CHECK(gk_graph_num_nodes(g) == 1 && gk_graph_num_leases(g) >= 1);
  ALL(w->x, 2);
  OK(gk_graph_instantiate(g, &e));
  OK(gk_exec_upload(e, w->context));
  OK(gk_exec_launch(e, w->context, 2));
  ALL(w->x, 4);
  gk_graph* none = (gk_graph*)(void*)&none;
  FAILS("E0703", gk_capture(w->context, NULL, record_wait, w, &none));
  gk_capture_options quiet;
  memset(&quiet, 0, sizeof quiet);
  quiet.quiet = true;
  OK(gk_capture(w->context, &quiet, record_wait, w, &none));
  CHECK(!none);
  OK(gk_graph_add(g, "c", -1, NULL, record_combine, w));
  FAILS("E0408", gk_graph_add(g, "c", -1, NULL, record_combine, w));
  const char* after[1] = {"c"};
  OK(gk_graph_add(g, "d", 1, after, record_combine, w));
  FAILS("E0704", gk_graph_add(g, "e", 1, (const char*[]){"nothing"}, record_combine, w));
  CHECK(gk_graph_num_nodes(g) == 3);
  char *print = gk_graph_print(g), *dot = gk_graph_dot(g);
  CHECK(print && dot && strstr(dot, "digraph"));
  gk_text_free(print);
  gk_text_free(dot);
  OK(gk_exec_close(e));
  FAILS("E0716", gk_exec_launch(e, w->context, 1));
  gk_exec_free(e);
  gk_graph_free(g);
  return NULL;
}

static const char* two_calls(struct world* w) {
  gk_graph* g = NULL;
  gk_exec* e = NULL;
  FAILS("E0703", gk_capture_end(w->context, &g));
  OK(gk_capture_begin(w->context, NULL));
  FAILS("E0718", gk_capture_begin(w->context, NULL));
  OK(gk_capture_begin_node(w->context, "a", -1, NULL));
  OK(record_bump(w));
  OK(gk_capture_end_node(w->context));
  gk_token* token = NULL;
  OK(gk_capture_token(w->context, &token));
  gk_context* worker = NULL;
  OK(gk_context_open_in(token, &worker));
  gk_context_free(worker);
  gk_token_free(token);
  OK(gk_capture_end(w->context, &g));
  OK(gk_graph_instantiate(g, &e));
  OK(gk_exec_launch(e, w->context, 1));
  ALL(w->x, 3);
  OK(gk_capture_begin(w->context, NULL));
  OK(record_bump(w));
  OK(gk_capture_discard(w->context));
  ALL(w->x, 3);
  OK(gk_capture_begin(w->context, NULL)); /* and never ended */
  gk_exec_free(e);
  gk_graph_free(g);
  return NULL;
}

static const char* updates(struct world* w) {
  gk_graph* g = NULL;
  gk_exec* e = NULL;
  int64_t shape[1] = {N};
  gk_tensor* z2 = NULL;
  OK(gk_tensor_full(w->context, GK_F32, 1, shape, 0, &z2));
  OK(gk_capture_begin(w->context, NULL));
  OK(gk_capture_begin_node(w->context, "c", 0, NULL));
  OK(record_combine(w));
  OK(gk_capture_end_node(w->context));
  OK(gk_capture_end(w->context, &g));
  OK(gk_graph_instantiate(g, &e));
  gk_values* v = values(z2, w->x, w->x);
  OK(gk_exec_update_node(e, "c", w->combine, v, NULL));
  CHECK(gk_exec_last_update(e) != GK_UPDATE_NONE);
  OK(gk_exec_launch(e, w->context, 1));
  ALL(w->z, 0);
  ALL(z2, 6);
  FAILS("E0704", gk_exec_update_node(e, "d", w->combine, v, NULL));
  const gk_tensor *from[1] = {z2}, *to[1] = {w->z};
  OK(gk_exec_rebind(e, 1, from, to));
  OK(gk_exec_launch(e, w->context, 1));
  ALL(w->z, 6);
  FAILS("E0706", gk_exec_rebind(e, 1, from, to));
  OK(gk_exec_update(e, g));
  CHECK(gk_exec_num_leases(e) >= 1);
  gk_engine_stats stats;
  gk_engine_get_stats(w->engine, &stats);
  CHECK(stats.leases >= 1 && stats.in_use_bytes > 0 && stats.driver_calls > 0);
  gk_values_free(v);
  gk_tensor_free(z2);
  gk_exec_free(e);
  gk_graph_free(g);
  return NULL;
}

static const struct {
  const char* name;
  const char* (*run)(struct world*);
} cases[] = {{"errors", errors}, {"arrays", arrays},       {"wrapping", wrapping}, {"calls", calls},
             {"graphs", graphs}, {"two_calls", two_calls}, {"updates", updates}};

const char* c_api_run(const char* name, const char* device) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (strcmp(cases[i].name, name) != 0) continue;
    struct world w;
    const char* wrong = open_world(device, &w);
    if (!wrong) wrong = cases[i].run(&w);
    close_world(&w);
    return wrong;
  }
  return "there is no such case";
}

const char* c_api_skip(const char* device) {
  gk_engine_options options;
  memset(&options, 0, sizeof options);
  options.device = device;
  gk_engine* e = NULL;
  gk_error* bad = gk_engine_open(&options, &e);
  gk_engine_free(e);
  if (!bad) return NULL;
  snprintf(message, sizeof message, "%s: %s", device, gk_error_message(bad));
  gk_error_free(bad);
  return message;
}
