// gk in C: the same as gk/runtime.h, for C11 and for languages that bind to C. Handles are opaque: what a
// function makes, the matching _free ends, in any order; NULL may be freed. Every call that can fail returns
// a gk_error*, owned by the caller: NULL is ok. After an error the results are untouched. No exception
// leaves, nothing aborts. Threads: as for the C++ classes of the same names. Strings are UTF-8; those
// returned as const char* live as long as the handle they came from.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;

typedef struct gk_error gk_error;
typedef struct gk_engine gk_engine;
typedef struct gk_context gk_context;
typedef struct gk_tensor gk_tensor;
typedef struct gk_module gk_module;
typedef struct gk_function gk_function;
typedef struct gk_values gk_values;
typedef struct gk_graph gk_graph;
typedef struct gk_exec gk_exec;
typedef struct gk_token gk_token;

/* ---- errors ---- */

/* Who has to act; the values of gk::ErrorKind. */
typedef enum gk_error_kind {
  GK_ERROR_SYNTAX,
  GK_ERROR_TYPE,
  GK_ERROR_SHAPE,
  GK_ERROR_UNSUPPORTED,
  GK_ERROR_DEVICE,
  GK_ERROR_OUT_OF_MEMORY,
  GK_ERROR_CAPTURE,
  GK_ERROR_LEASE,
  GK_ERROR_INTERRUPTED,
  GK_ERROR_ASSERTION,
  GK_ERROR_IO,
  GK_ERROR_USAGE,
  GK_ERROR_RUNTIME,
  GK_ERROR_INTERNAL
} gk_error_kind;

const char* gk_error_code(const gk_error* e); /* "E0716" */
gk_error_kind gk_error_get_kind(const gk_error* e);
const char* gk_error_message(const gk_error* e);  /* one sentence */
const char* gk_error_rendered(const gk_error* e); /* all of it, as gkrun shows it */
/* Where it happened; NULL and 0 where there is no text. */
const char* gk_error_file(const gk_error* e);
int gk_error_line(const gk_error* e);
int gk_error_column(const gk_error* e);
void gk_error_free(gk_error* e);

/* ---- engines ---- */

typedef struct gk_engine_options {
  const char* device;         /* "host", "cuda:0", …; NULL: cuda where a GPU answers, else host */
  int64_t memory_limit_bytes; /* 0: the device's own */
  const char* cache_dir;      /* NULL: the default one */
  bool no_cache;
  int host_threads;                /* 0: as many as the process may use, which is the most */
  struct CUctx_st* native_context; /* NULL: the device's primary one */
  bool nan_check;                  /* arrays are searched for NaN when they have been written: E0805 */
  const char* nan_exempt;          /* "x,y": arrays of these names may hold some; NULL: none */
} gk_engine_options;

typedef struct gk_engine_stats {
  int64_t in_use_bytes, cached_bytes, peak_bytes, limit_bytes;
  int64_t leases, pending_releases;
  int64_t compiles, cache_hits, kernels_compiled, disk_cache_hits;
  int64_t driver_calls;
} gk_engine_stats;

/* `options` may be NULL. */
gk_error* gk_engine_open(const gk_engine_options* options, gk_engine** out);
const char* gk_engine_device(const gk_engine* e);
void gk_engine_get_stats(const gk_engine* e, gk_engine_stats* out);
gk_error* gk_engine_reclaim(gk_engine* e);
void gk_engine_free(gk_engine* e);

/* ---- contexts ---- */

gk_error* gk_context_open(gk_engine* e, gk_context** out);
/* On a stream of the host program's (a CUstream), which must outlive it. */
gk_error* gk_context_open_on(gk_engine* e, struct CUstream_st* stream, gk_context** out);
/* Takes part in a capture of another thread. */
gk_error* gk_context_open_in(const gk_token* t, gk_context** out);
/* The stream that work goes to; inside a capture the recording's; NULL on the host device. */
gk_error* gk_context_stream(gk_context* c, struct CUstream_st** out);
/* The host program's own work, given to that stream next, uses this array; inside a capture the graph keeps
 * it.
 */
gk_error* gk_context_use(gk_context* c, const gk_tensor* x);
gk_error* gk_context_synchronize(gk_context* c);
/* Calls `f(data)` in stream order; while a graph is made, at every launch. `gone(data)`, where not NULL, when
 * it is called no more. */
gk_error* gk_context_host_call(gk_context* c, void (*f)(void* data), void* data, void (*gone)(void* data));
void gk_context_interrupt(gk_context* c);
gk_error* gk_context_close(gk_context* c);
void gk_context_free(gk_context* c);

/* ---- arrays ---- */

typedef enum gk_dtype {
  GK_BOOL,
  GK_I8,
  GK_I16,
  GK_I32,
  GK_I64,
  GK_U8,
  GK_U16,
  GK_U32,
  GK_U64,
  GK_F16,
  GK_BF16,
  GK_F32,
  GK_F64,
  GK_DTYPE_INT = 0x7fffffff /* no dtype: gives the type all values of an int, so that others are E0202 */
} gk_dtype;

gk_error* gk_tensor_empty(gk_context* c, gk_dtype t, int rank, const int64_t* shape, gk_tensor** out);
/* Page-locked host memory that the device can use. */
gk_error* gk_tensor_empty_pinned(gk_context* c, gk_dtype t, int rank, const int64_t* shape, gk_tensor** out);
gk_error* gk_tensor_full(gk_context* c, gk_dtype t, int rank, const int64_t* shape, double value,
                         gk_tensor** out);
gk_error* gk_tensor_from_host(gk_context* c, gk_dtype t, int rank, const int64_t* shape, const void* data,
                              int64_t size_bytes, gk_tensor** out);
/* Memory of the host program's own; `deleter(data)`, where not NULL, when nothing uses it any more. `ready`
 * (a CUevent, may be NULL): when the contents are there. */
gk_error* gk_tensor_wrap(gk_context* c, void* pointer, gk_dtype t, int rank, const int64_t* shape,
                         struct CUevent_st* ready, void (*deleter)(void* data), void* data, gk_tensor** out);
/* DLPack: a DLManagedTensorVersioned*. Taken over by gk_tensor_from_dlpack unless there is an error. */
gk_error* gk_tensor_from_dlpack(gk_context* c, void* managed, gk_tensor** out);
gk_error* gk_tensor_to_dlpack(gk_context* c, const gk_tensor* x, void** managed);
/* Another handle to the same memory. */
gk_tensor* gk_tensor_share(const gk_tensor* x);
gk_dtype gk_tensor_dtype(const gk_tensor* x);
int gk_tensor_rank(const gk_tensor* x);
int64_t gk_tensor_extent(const gk_tensor* x, int axis);
int64_t gk_tensor_size_bytes(const gk_tensor* x);
void* gk_tensor_data(const gk_tensor* x);
void* gk_tensor_host_data(const gk_tensor* x); /* NULL unless the CPU may touch it */
int64_t gk_tensor_leases(const gk_tensor* x);
/* `t` is what lies at `data`. Errors: E0211 (the array has another dtype), E0303 (another number of bytes).
 */
gk_error* gk_tensor_to_host(gk_context* c, const gk_tensor* x, gk_dtype t, void* data, int64_t size_bytes);
gk_error* gk_tensor_copy_from_host(gk_context* c, gk_tensor* x, gk_dtype t, const void* data,
                                   int64_t size_bytes);
/* Bytes, whatever they are. */
gk_error* gk_tensor_to_host_raw(gk_context* c, const gk_tensor* x, void* data, int64_t size_bytes);
gk_error* gk_tensor_copy_from_host_raw(gk_context* c, gk_tensor* x, const void* data, int64_t size_bytes);
gk_error* gk_tensor_copy(gk_context* c, gk_tensor* dst, const gk_tensor* src);
/* Gives the memory up now; the handle stays to be freed. */
void gk_tensor_release(gk_tensor* x);
void gk_tensor_free(gk_tensor* x);

/* ---- programs ---- */

gk_error* gk_compile(gk_context* c, const char* name, const char* text, gk_module** out);
void gk_module_free(gk_module* m);
/* A function or kernel. */
gk_error* gk_module_function(const gk_module* m, const char* name, gk_function** out);
void gk_function_free(gk_function* f);

/* Arguments and results: a list of arrays, numbers and texts. A number is a host number, as a literal of the
 * program's text is, whatever its C type; gk_values_add_scalar gives a scalar of a dtype, which lies at
 * `value`. */
gk_values* gk_values_new(void);
void gk_values_add_tensor(gk_values* v, const gk_tensor* x);
void gk_values_add_f32(gk_values* v, float x);
void gk_values_add_f64(gk_values* v, double x);
void gk_values_add_i32(gk_values* v, int32_t x);
void gk_values_add_i64(gk_values* v, int64_t x);
void gk_values_add_bool(gk_values* v, bool x);
gk_error* gk_values_add_scalar(gk_values* v, gk_dtype t, const void* value);
void gk_values_add_u64(gk_values* v, uint64_t x);
void gk_values_add_text(gk_values* v, const char* x);
int gk_values_count(const gk_values* v);
/* The array at `i`, a new handle. Errors: E0211 (no array), E0308 (no such value). */
gk_error* gk_values_tensor(const gk_values* v, int i, gk_tensor** out);
/* The number at `i`, where that type holds it exactly. Errors: E0211 (no number, or not exact), E0308. */
gk_error* gk_values_number(const gk_values* v, int i, double* out);
gk_error* gk_values_integer(const gk_values* v, int i, int64_t* out);
void gk_values_free(gk_values* v);

/* How a kernel is laid out; zeros are chosen. */
typedef struct gk_launch_shape {
  uint32_t grid, block, shared_bytes;
} gk_launch_shape;

/* `results` (may be NULL) gets a new list: empty, one value, or the parts of a tuple or record in order.
 * `shape` may be NULL. */
gk_error* gk_call(const gk_function* f, const gk_values* args, const gk_launch_shape* shape,
                  gk_values** results);
/* The same of `count` arrays alone, which stand at `args`: no list is made. Errors: also E0512 where one is
 * NULL. */
gk_error* gk_call_tensors(const gk_function* f, gk_tensor* const* args, int count, gk_values** results);

/* ---- graphs ---- */

typedef enum gk_capture_mode {
  GK_CAPTURE_RELAXED,
  GK_CAPTURE_THREAD_LOCAL,
  GK_CAPTURE_GLOBAL
} gk_capture_mode;

typedef struct gk_capture_options {
  const char* name; /* may be NULL */
  gk_capture_mode mode;
  bool on_stream; /* record on `stream`, which may be the default one */
  struct CUstream_st* stream;
  bool quiet; /* what cannot be recorded gives NULL instead of an error */
} gk_capture_options;

/* Records what `f(data)` calls. An error that it returns ends and discards the capture and is returned; NULL
 * goes on. `options` may be NULL. */
gk_error* gk_capture(gk_context* c, const gk_capture_options* options, gk_error* (*f)(void* data), void* data,
                     gk_graph** out);
/* The same in two calls, on one thread; between them the context records. Every begin needs an end; discard
 * ends without a graph. */
gk_error* gk_capture_begin(gk_context* c, const gk_capture_options* options);
gk_error* gk_capture_end(gk_context* c, gk_graph** out);
gk_error* gk_capture_discard(gk_context* c);
/* Between begin_node and end_node one named node is recorded, after the nodes named (count -1: all so far).
 */
gk_error* gk_capture_begin_node(gk_context* c, const char* name, int count, const char* const* after);
gk_error* gk_capture_end_node(gk_context* c);
gk_error* gk_capture_token(gk_context* c, gk_token** out);
void gk_token_free(gk_token* t);
/* Records into a graph of the host program's (a CUgraph). `frontier` gets up to `capacity` nodes that later
 * work comes after, and `count` how many there are. */
gk_error* gk_record_into(gk_context* c, struct CUgraph_st* graph, struct CUgraphNode_st* const* after,
                         int num_after, gk_error* (*f)(void* data), void* data,
                         struct CUgraphNode_st** frontier, int capacity, int* count);

/* Adds what `f(data)` calls as one more node, after the nodes named (count -1: all). */
gk_error* gk_graph_add(gk_graph* g, const char* name, int count, const char* const* after,
                       gk_error* (*f)(void* data), void* data);
int64_t gk_graph_num_nodes(const gk_graph* g);
int64_t gk_graph_num_leases(const gk_graph* g);
/* Stable text, to be ended with gk_text_free. */
char* gk_graph_print(const gk_graph* g);
char* gk_graph_dot(const gk_graph* g);
void gk_text_free(char* text);
gk_error* gk_graph_instantiate(const gk_graph* g, gk_exec** out);
void gk_graph_free(gk_graph* g);

gk_error* gk_exec_launch(gk_exec* e, gk_context* c, int64_t times);
gk_error* gk_exec_launch_on(gk_exec* e, struct CUstream_st* stream, int64_t times);
gk_error* gk_exec_upload(gk_exec* e, gk_context* c);
gk_error* gk_exec_upload_on(gk_exec* e, struct CUstream_st* stream);
/* Retargets a named node; all or nothing. */
gk_error* gk_exec_update_node(gk_exec* e, const char* name, const gk_function* f, const gk_values* args,
                              const gk_launch_shape* shape);
gk_error* gk_exec_update(gk_exec* e, const gk_graph* g);
gk_error* gk_exec_rebind(gk_exec* e, int count, const gk_tensor* const* from, const gk_tensor* const* to);

typedef enum gk_update_rung {
  GK_UPDATE_NONE,
  GK_UPDATE_PATCHED,
  GK_UPDATE_GRAPH_UPDATED,
  GK_UPDATE_REINSTANTIATED
} gk_update_rung;
gk_update_rung gk_exec_last_update(const gk_exec* e);
int64_t gk_exec_num_leases(const gk_exec* e);
gk_error* gk_exec_close(gk_exec* e);
void gk_exec_free(gk_exec* e);

/* "gk 0.1.0 (…)"; lives for ever. */
const char* gk_version(void);
/* The long text of a code; "" when there is none; to be ended with gk_text_free. */
char* gk_explain(const char* code);

#ifdef __cplusplus
}
#endif
