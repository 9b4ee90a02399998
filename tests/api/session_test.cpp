// gk::Session: whole programs, one after the other, and what a host program's functions do to it.
#include <stdexcept>

#include "tests/api/fixture.h"

namespace gk_test {
namespace {

class ApiSession : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<gk::Session> open(std::function<void(std::string_view)> out,
                                    std::function<void(std::string_view)> err) {
    gk::SessionOptions options;
    options.device = GetParam();
    options.out = std::move(out);
    options.err = std::move(err);
    return gk::Session::open(options);
  }
  std::string printed, told;
  std::function<void(std::string_view)> print = [this](std::string_view t) { printed += t; };
  std::function<void(std::string_view)> tell = [this](std::string_view t) { told += t; };
};

TEST_P(ApiSession, definitions_stay_from_one_run_to_the_next) {
  auto s = open(print, tell);
  if (s->open_status() != gk::Status::Ok) GTEST_SKIP() << told;
  EXPECT_EQ(s->run("a.gk", "fn twice(x) = x * 2\nlet y = ones(f32[2])"), gk::Status::Ok);
  EXPECT_EQ(s->run("b.gk", "print(twice(y))"), gk::Status::Ok);
  EXPECT_EQ(s->run("c.gk", "print(nothing)"), gk::Status::CompileError);
  EXPECT_EQ(s->run("d.gk", "print(y)"), gk::Status::Ok);
  EXPECT_EQ(printed, "[2. 2.]\n[1. 1.]\n");
  EXPECT_NE(told.find("E0401"), std::string::npos) << told;
}

TEST_P(ApiSession, an_output_function_that_throws_is_an_error_of_the_run) {
  auto s = open([](std::string_view) { throw std::runtime_error("full"); }, tell);
  if (s->open_status() != gk::Status::Ok) GTEST_SKIP() << told;
  EXPECT_EQ(s->run("a.gk", "print(1)"), gk::Status::RuntimeError);
  EXPECT_NE(told.find("E0512"), std::string::npos) << told;
  EXPECT_NE(told.find("a function of the host program threw: full"), std::string::npos) << told;
  EXPECT_EQ(s->run("b.gk", "let x = 1"), gk::Status::Ok);
}

TEST_P(ApiSession, nothing_leaves_a_run_though_the_function_for_diagnostics_throws) {
  auto s = open(print, [](std::string_view) { throw 1; });
  if (s->open_status() != gk::Status::Ok) GTEST_SKIP() << told;
  EXPECT_EQ(s->run("a.gk", "print(nothing)"), gk::Status::CompileError);
  EXPECT_EQ(s->run("b.gk", "print(2)"), gk::Status::Ok);
  EXPECT_EQ(printed, "2\n");
}

TEST_P(ApiSession, sums_and_products_have_one_order_with_fusion_and_without) {
  auto s = open(print, tell);
  if (s->open_status() != gk::Status::Ok) GTEST_SKIP() << told;
  for (const char* t : {"f32", "f64", "f16", "bf16", "i32"}) {
    const std::string type = t;
    const std::string setup =
        "var r = rng(seed=3)\n"
        "let a = " +
        type + "(randn(mut r, f32[70, 900])), v = " + type + "(randn(mut r, f32[900])), w = " + type +
        "(randn(mut r, f32[70]))\n"
        "let long = " +
        type + "(randn(mut r, f32[3, 50000])), b = " + type + "(randn(mut r, f32[2, 900, 31]))\n";
    const std::string results =
        "list(a @ v, w @ a, v @ v, v @ b, a @ b, long @ long[0], sum(long * long, axis=1), sum(long * long), "
        "sum(long[:, ::2] + 1, axis=1), sum(w[:, new] * a), maximum(a @ v + 1, 0), maximum(a @ b + 1, 0))";
    ASSERT_EQ(s->run("setup.gk", setup + "let fused = " + results), gk::Status::Ok) << told;
    ASSERT_EQ(s->run("unfused.gk", "pragma fuse off\nlet apart = " + results +
                                       "\nfor i in 0..len(apart) { assert all(apart[i] == fused[i]) }"),
              gk::Status::Ok)
        << type << told;
  }
}

GK_API_DEVICES(ApiSession);

}  // namespace
}  // namespace gk_test
