// Numbers across the border: what C++ gives is a host number, a scalar of a dtype is asked for by name, and
// what comes out is the number or an error.
#include <cmath>

#include "tests/api/fixture.h"

namespace gk_test {
namespace {

constexpr const char* kNumbers = R"gk(
fn twice(x, k) = x * k
fn as_i8(x: i64[n], k: i8) = x * i64(k)
fn flagged(x, on: bool) = if on { x * 2 } else { x }
fn third() = 1 / 3
fn seven() = 7
fn large() = 2**53 + 1
fn half() = 0.5f32
captured fn scaled(x, k) = x * k
captured fn mixed(k) = (k + 1, [k], k * 0.5)
)gk";

class ApiNumbers : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (!IsSkipped()) m = ctx->compile("numbers.gk", kNumbers);
  }
  gk::Module m;
};

TEST_P(ApiNumbers, a_number_takes_the_dtype_it_meets_whatever_its_c_type) {
  for (const char* f : {"twice", "scaled"}) {
    auto call = m.function(f);
    EXPECT_EQ(call.call({ctx->full(gk::u8, {1}, 200), 2}).tensor().dtype(), gk::u8) << f;
    EXPECT_EQ(call.call({ctx->full(gk::f64, {1}, 3), 0.1}).tensor().to_host<double>(*ctx)[0], 3 * 0.1) << f;
    EXPECT_EQ(call.call({ctx->full(gk::f16, {1}, 3), 0.5f}).tensor().dtype(), gk::f16) << f;
    EXPECT_EQ(call.call({ctx->full(gk::f64, {1}, 3), int8_t{2}}).tensor().dtype(), gk::f64) << f;
    EXPECT_EQ(code_of(call.try_call({ctx->full(gk::u8, {1}, 1), 256})), "E0203") << f;
  }
}

TEST_P(ApiNumbers, a_scalar_of_a_dtype_is_asked_for_by_name) {
  const auto x = ctx->full(gk::f32, {1}, 3);
  EXPECT_EQ(m.function("twice").call({x, gk::Value::scalar(gk::f64, 0.1)}).tensor().dtype(), gk::f64);
  EXPECT_EQ(m.function("scaled").call({x, gk::Value::scalar(gk::f64, 0.1)}).tensor().dtype(), gk::f64);
  EXPECT_EQ(m.function("scaled").call({x, 0.1}).tensor().dtype(), gk::f32);
  EXPECT_EQ(code_of(gk::Value::try_scalar(gk::i8, 300)), "E0203");
  EXPECT_EQ(code_of(gk::Value::try_scalar(gk::i8, 0.5)), "E0203");
}

TEST_P(ApiNumbers, an_annotation_converts_or_refuses) {
  const auto x = ctx->full(gk::i64, {1}, 3);
  auto f = m.fn<gk::Tensor(gk::Tensor, int64_t)>("as_i8");
  EXPECT_EQ(f(x, -128).to_host<int64_t>(*ctx)[0], -384);
  EXPECT_EQ(code_of(f.try_call(x, 128)), "E0203");
  EXPECT_EQ(code_of(m.try_fn<gk::Tensor(gk::Tensor, double)>("as_i8")), "E0211");
  EXPECT_EQ(code_of(m.try_fn<gk::Tensor(gk::Tensor, int)>("flagged")), "E0211");
  EXPECT_EQ(m.fn<gk::Tensor(gk::Tensor, bool)>("flagged")(x, true).to_host<int64_t>(*ctx)[0], 6);
}

TEST_P(ApiNumbers, results_are_the_number_or_an_error) {
  EXPECT_EQ(m.fn<double()>("third")(), 1.0 / 3);
  EXPECT_EQ(m.fn<int8_t()>("seven")(), 7);
  EXPECT_EQ(m.fn<double()>("seven")(), 7);
  EXPECT_EQ(code_of(m.fn<int()>("third").try_call()), "E0211");
  EXPECT_EQ(code_of(m.fn<int()>("large").try_call()), "E0203");
  EXPECT_EQ(m.fn<int64_t()>("large")(), (int64_t{1} << 53) + 1);
  EXPECT_EQ(m.fn<double()>("half")(), 0.5);
  const gk::Value third = m.function("third").call({}), large = m.function("large").call({});
  EXPECT_FALSE(third.has_dtype());
  EXPECT_TRUE(m.function("half").call({}).has_dtype());
  EXPECT_EQ(code_of(third.try_as_int()), "E0211");
  EXPECT_EQ(code_of(large.try_as_double()), "E0211");
  EXPECT_EQ(large.as_int(), (int64_t{1} << 53) + 1);
  EXPECT_EQ(gk::Value(2.0).as_int(), 2);
  EXPECT_EQ(gk::Value(3).as_double(), 3);
  EXPECT_EQ(gk::Value(true).as_int(), 1);
  EXPECT_TRUE(std::isnan(gk::Value(NAN).as_double()));
  EXPECT_EQ(code_of(gk::Value(NAN).try_as_int()), "E0211");
  EXPECT_EQ(gk::Value(UINT64_MAX).as_uint(), UINT64_MAX);
  EXPECT_EQ(code_of(gk::Value(UINT64_MAX).try_as_int()), "E0211");
  EXPECT_EQ(code_of(gk::Value(-1).try_as_uint()), "E0211");
  EXPECT_EQ(code_of(gk::Value(filled(1)).try_as_double()), "E0211");
  EXPECT_EQ(code_of(gk::Value("3").try_as_int()), "E0211");
  EXPECT_EQ(thrown([&] { (void)gk::Value(0.5).as_int(); }), "E0211");
}

TEST_P(ApiNumbers, a_captured_function_gives_numbers_too) {
  for (int k : {1, 2, 1, 5}) {
    const auto r = m.function("mixed").call({k});
    EXPECT_EQ(r.items()[0].as_int(), k + 1);
    EXPECT_EQ(r.items()[1].tensor().to_host<int64_t>(*ctx)[0], k);
    EXPECT_EQ(r.items()[2].as_double(), k * 0.5);
  }
}

GK_API_DEVICES(ApiNumbers);

}  // namespace
}  // namespace gk_test
