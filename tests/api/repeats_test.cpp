// Functions that are called again, from what the earlier calls became: see Note [Sites] in sema/sites.h.
#include "tests/api/fixture.h"

namespace gk_test {
namespace {

class ApiRepeats : public ApiTest {
 protected:
  static constexpr int kTurns = 6;
};

TEST_P(ApiRepeats, arrays_and_numbers_are_those_of_the_call) {
  auto f = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy");
  for (int i = 0; i < kTurns; ++i) {
    auto x = filled(static_cast<float>(i));
    auto y = f(x, 2);
    auto z = f(y, static_cast<float>(i));
    EXPECT_TRUE(all(y, 2 * static_cast<float>(i) + 1)) << i;
    EXPECT_TRUE(all(z, static_cast<float>(i * (2 * i + 1) + 1))) << i;
    EXPECT_FALSE(y.same_memory(z));
  }
}

TEST_P(ApiRepeats, results_of_earlier_calls_stay) {
  auto f = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy");
  std::vector<gk::Tensor> all_of_them;
  for (int i = 0; i < kTurns; ++i) all_of_them.push_back(f(filled(1), static_cast<float>(i)));
  for (int i = 0; i < kTurns; ++i)
    EXPECT_TRUE(all(all_of_them[static_cast<size_t>(i)], static_cast<float>(i + 1))) << i;
}

TEST_P(ApiRepeats, another_shape_dtype_or_pattern_is_another_call) {
  auto m = ctx->compile("m", R"gk(
fn sum_of(a, b) = a + b
fn add_to(mut a: f32[n], b: f32[n]) { a .= a + b }
fn first(x: f32[n], k: i64) = x[k]
fn power(x: f32[n], k: i64) = if k > 2 { x * x } else { x + k }
)gk");
  auto sum_of = m.function("sum_of");
  for (int i = 0; i < kTurns; ++i) {
    const auto two = ctx->full(gk::f32, {2}, i), three = ctx->full(gk::f32, {3}, i);
    const auto whole = ctx->full(gk::i32, {2}, i);
    EXPECT_EQ(sum_of.call({two, two}).tensor().to_host<float>(*ctx), std::vector<float>(2, 2.0F * i));
    EXPECT_EQ(sum_of.call({three, 1}).tensor().to_host<float>(*ctx), std::vector<float>(3, 1.0F + i));
    EXPECT_EQ(sum_of.call({whole, whole}).tensor().to_host<int>(*ctx), std::vector<int>(2, 2 * i));
  }
  auto add_to = m.function("add_to");
  auto x = ctx->full(gk::f32, {4}, 1);
  const auto y = ctx->full(gk::f32, {4}, 2);
  for (int i = 0; i < kTurns; ++i) add_to.call({x, y});
  EXPECT_EQ(x.to_host<float>(*ctx), std::vector<float>(4, 1 + 2.0F * kTurns));
  for (int i = 0; i < 2; ++i) {
    auto overlap = add_to.try_call({x, x});
    ASSERT_FALSE(overlap);
    EXPECT_EQ(overlap.error().code(), "E0404");
  }
  auto first = m.function("first");
  const auto z = ctx->from_host(std::vector<float>{5, 6, 7}, {3});
  for (int i = 0; i < 3 * kTurns; ++i)
    EXPECT_EQ(first.call({z, i % 3}).tensor().to_host<float>(*ctx), std::vector<float>{5.0F + i % 3});
  EXPECT_FALSE(first.try_call({z, 3}));
  auto power = m.function("power");
  for (int i = 0; i < kTurns; ++i)
    EXPECT_EQ(power.call({z, i}).tensor().to_host<float>(*ctx)[1], i > 2 ? 36.0F : 6.0F + i);
}

TEST_P(ApiRepeats, what_the_host_program_does_between_calls_counts) {
  auto bump = mod.fn<void(gk::Tensor&, float)>("bump");
  auto x = filled(0);
  for (int i = 0; i < kTurns; ++i) {
    bump(x, 1);
    if (i == 3) x = filled(10);
  }
  EXPECT_TRUE(all(x, 12));
  const gk::Graph g = ctx->capture([&] { bump(x, 1); });
  bump(x, 1);
  gk::Exec e = g.instantiate();
  for (int i = 0; i < 3; ++i) e.launch(*ctx);
  bump(x, 1);
  EXPECT_TRUE(all(x, 17));
}

GK_API_DEVICES(ApiRepeats);

}  // namespace
}  // namespace gk_test
