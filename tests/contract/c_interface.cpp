#include "tests/contract/c_interface.h"

#include <string>
#include <vector>

#include "gk/gk_c.h"
#include "tests/contract/contract.h"

namespace gk::contract_test {
namespace {

/// The code of an error, which is freed; "" where there is none.
std::string code(gk_error* e) {
  if (e == nullptr) return "";
  std::string c = gk_error_code(e);
  gk_error_free(e);
  return c;
}

struct State {
  gk_engine* engine = nullptr;
  gk_context* context = nullptr;
  gk_function* add = nullptr;
  gk_tensor* x = nullptr;
  gk_values* args = nullptr;
  bool read_back = false, reclaim = false, mistake = false;
};

gk_error* record(void* data) {
  auto* s = static_cast<State*>(data);
  if (gk_error* e = gk_call(s->add, s->args, nullptr, nullptr)) return e;
  if (s->read_back) return gk_context_synchronize(s->context);
  if (s->reclaim) return gk_engine_reclaim(s->engine);
  if (s->mistake) return gk_call(s->add, nullptr, nullptr, nullptr);
  return nullptr;
}

}  // namespace

void documented_in_c() {
  State s;
  gk_engine_options o{};
  o.device = device().c_str();
  ASSERT_EQ(code(gk_engine_open(&o, &s.engine)), "");
  ASSERT_EQ(code(gk_context_open(s.engine, &s.context)), "");
  gk_module* m = nullptr;
  ASSERT_EQ(code(gk_compile(s.context, "c.gk",
                            "kernel add(mut y: f32[n], v: f32) over i in n { y[i] = y[i] + v }", &m)),
            "");
  ASSERT_EQ(code(gk_module_function(m, "add", &s.add)), "");
  const int64_t shape[] = {1000};
  ASSERT_EQ(code(gk_tensor_full(s.context, GK_F32, 1, shape, 1, &s.x)), "");
  s.args = gk_values_new();
  gk_values_add_tensor(s.args, s.x);
  gk_values_add_f32(s.args, 2);
  const auto all = [&](float v) {
    std::vector<float> got(1000);
    EXPECT_EQ(code(gk_tensor_to_host(s.context, s.x, GK_F32, got.data(), 4000)), "");
    return got == std::vector<float>(1000, v);
  };

  gk_capture_options quiet{};
  quiet.quiet = true;
  gk_graph* g = nullptr;
  EXPECT_EQ(code(gk_capture(s.context, &quiet, record, &s, &g)), "");
  ASSERT_NE(g, nullptr);
  gk_graph* none = nullptr;
  s.read_back = true;
  EXPECT_EQ(code(gk_capture(s.context, &quiet, record, &s, &none)), "");
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(code(gk_capture(s.context, nullptr, record, &s, &none)), "E0703");
  EXPECT_EQ(none, nullptr);
  s.read_back = false;
  s.mistake = true;
  EXPECT_EQ(code(gk_capture(s.context, &quiet, record, &s, &none)), "E0206");
  s.mistake = false;
  s.reclaim = true;
  EXPECT_EQ(code(gk_capture(s.context, nullptr, record, &s, &none)), "E0708");
  s.reclaim = false;
  EXPECT_TRUE(all(1));
  EXPECT_EQ(gk_tensor_leases(s.x), 1);

  gk_exec* e = nullptr;
  ASSERT_EQ(code(gk_graph_instantiate(g, &e)), "");
  EXPECT_EQ(code(gk_exec_upload(e, s.context)), "");
  EXPECT_TRUE(all(1));
  EXPECT_EQ(code(gk_exec_launch(e, s.context, 3)), "");
  EXPECT_TRUE(all(7));
  gk_exec_free(e);
  gk_graph_free(g);

  float expected = 7;
  for (const gk_capture_mode mode : {GK_CAPTURE_RELAXED, GK_CAPTURE_THREAD_LOCAL, GK_CAPTURE_GLOBAL}) {
    gk_capture_options strict{};
    strict.mode = mode;
    g = nullptr;
    e = nullptr;
    ASSERT_EQ(code(gk_capture(s.context, &strict, record, &s, &g)), "");
    ASSERT_EQ(code(gk_graph_instantiate(g, &e)), "");
    EXPECT_EQ(code(gk_exec_launch(e, s.context, 1)), "");
    expected += 2;
    EXPECT_TRUE(all(expected));
    EXPECT_EQ(code(gk_exec_close(e)), "");
    EXPECT_EQ(code(gk_exec_upload(e, s.context)), "E0716");
    gk_exec_free(e);
    gk_graph_free(g);
  }

  // reclaim: what was given back is the pool's, then the driver's.
  const int64_t large[] = {4 << 20};
  gk_tensor* y = nullptr;
  ASSERT_EQ(code(gk_tensor_empty(s.context, GK_F32, 1, large, &y)), "");
  gk_values_free(s.args);
  gk_tensor_free(s.x);
  gk_tensor_free(y);
  ASSERT_EQ(code(gk_context_synchronize(s.context)), "");
  gk_engine_stats stats{};
  gk_engine_get_stats(s.engine, &stats);
  const int64_t cached = stats.cached_bytes;
  if (!stressed()) {
    EXPECT_GE(cached, large[0] * 4);
  }
  EXPECT_EQ(code(gk_engine_reclaim(s.engine)), "");
  gk_engine_get_stats(s.engine, &stats);
  if (!stressed()) {
    EXPECT_LE(stats.cached_bytes, cached - large[0] * 4);
  }
  EXPECT_EQ(stats.leases, 0);
  gk_function_free(s.add);
  gk_module_free(m);
  gk_context_free(s.context);
  gk_engine_free(s.engine);
}

}  // namespace gk::contract_test
