// What the tests of the embedding interface share: an engine and a context on the device of the parameter, a
// few functions of gk, and expectations on errors. Owns nothing else. Uses the public headers alone, as a
// host program does.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gk/gk.h"

namespace gk_test {

/// Functions that most tests use.
inline constexpr const char* kText = R"gk(
const SIZE = 16
fn axpy(x: f32[n], a: f32) = a * x + 1
fn add(x, y) = x + y
fn bump(mut x: f32[n], by: f32) { x .+= by }
fn both(x: f32[n]) = (x + 1, x * 2)
type Parts = { a: f32[_], b: f32[_] }
fn parts(x: f32[n]) = Parts(a=x + 1, b=x * 2)
fn total(x: f32[n]) -> f32 = sum(x)
fn same(x) = x
fn pick(x: f32[n], i: i32[m]) = x[i]
fn scaled(x: f32[n], flag: bool, name) = if flag { x * 2 } else { x }
fn chain(x: f32[n]) {
  let a = sin(x)
  let b = a * 2
  b + x
}
kernel combine(mut z: f32[n], x: f32[n], y: f32[n]) over i in n { z[i] = x[i] * x[i] + y[i] }
)gk";

class ApiTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    gk::EngineOptions options;
    options.device = GetParam();
    options.use_cache = false;
    auto opened = gk::Engine::open(options);
    if (!opened) GTEST_SKIP() << GetParam() << ": " << opened.error().what();
    engine = std::make_unique<gk::Engine>(std::move(*opened));
    ctx = std::make_unique<gk::Context>(*engine);
    mod = ctx->compile("test.gk", kText);
  }
  void TearDown() override {
    mod = {};
    ctx.reset();
    engine.reset();
  }
  gk::Tensor filled(float v, int64_t n = kN) { return ctx->full(gk::f32, {n}, v); }
  std::vector<float> values(const gk::Tensor& t) { return t.to_host<float>(*ctx); }
  /// All elements are `v`.
  ::testing::AssertionResult all(const gk::Tensor& t, float v) {
    for (float x : values(t))
      if (x != v) return ::testing::AssertionFailure() << x << " is not " << v;
    return ::testing::AssertionSuccess();
  }
  static constexpr int64_t kN = 1000;

  std::unique_ptr<gk::Engine> engine;
  std::unique_ptr<gk::Context> ctx;
  gk::Module mod;
};

/// The code of what `f` throws; "" when it throws nothing of gk's.
inline std::string thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const gk::Error& e) {
    return e.code();
  }
  return "";
}
template <class T>
std::string code_of(const gk::Result<T>& r) {
  return r ? "" : r.error().code();
}

}  // namespace gk_test

#define GK_API_DEVICES(suite)                                               \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, ::testing::Values("host", "trace")); \
  INSTANTIATE_TEST_SUITE_P(Gpu, suite, ::testing::Values("cuda", "trace:cuda"))
