/* A host program in C: compiles a function of gk, records it and launches the graph. */
#include <gk/gk_c.h>
#include <stdio.h>

#define TRY(call)                           \
  do {                                      \
    gk_error* e_ = (call);                  \
    if (e_) {                               \
      fputs(gk_error_rendered(e_), stderr); \
      gk_error_free(e_);                    \
      return 1;                             \
    }                                       \
  } while (0)

int main(int argc, char** argv) {
  gk_engine_options options = {0};
  options.device = argc > 1 ? argv[1] : NULL;
  gk_engine* engine;
  gk_context* ctx;
  gk_module* mod;
  gk_function* grow;
  gk_tensor* x;
  gk_graph* g;
  gk_exec* e;
  TRY(gk_engine_open(&options, &engine));
  TRY(gk_context_open(engine, &ctx));
  TRY(gk_compile(ctx, "grow.gk", "fn grow(mut x: f32[n], by: f32) { x .*= by }", &mod));
  TRY(gk_module_function(mod, "grow", &grow));
  const int64_t shape[1] = {4};
  TRY(gk_tensor_full(ctx, GK_F32, 1, shape, 1, &x));

  gk_values* args = gk_values_new();
  gk_values_add_tensor(args, x);
  gk_values_add_f32(args, 2);
  TRY(gk_capture_begin(ctx, NULL));
  TRY(gk_call(grow, args, NULL, NULL));
  TRY(gk_capture_end(ctx, &g));
  TRY(gk_graph_instantiate(g, &e));
  TRY(gk_exec_launch(e, ctx, 10));
  float data[4];
  TRY(gk_tensor_to_host(ctx, x, GK_F32, data, sizeof data));
  printf("%s: 2^10 = %g\n", gk_engine_device(engine), (double)data[3]);

  gk_values_free(args);
  gk_exec_free(e);
  gk_graph_free(g);
  gk_tensor_free(x);
  gk_function_free(grow);
  gk_module_free(mod);
  gk_context_free(ctx);
  gk_engine_free(engine);
  return data[3] == 1024 ? 0 : 1;
}
