// Rows about what a graph computes: bit for bit what eager calls compute, and random numbers that go on.
#include <cmath>
#include <cstring>

#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {

struct Layer {
  Tensor w, b;
};
struct Lorenz {
  Tensor x, y, z;
};
struct Generator {
  Tensor state;
};

}  // namespace gk::contract_test

GK_FIELDS(gk::contract_test::Layer, w, b);
GK_FIELDS(gk::contract_test::Lorenz, x, y, z);
GK_FIELDS(gk::contract_test::Generator, state);

namespace gk::contract_test {
namespace {

/// Numbers without a pattern, in -1 … 1.
std::vector<float> noise(size_t n, uint32_t seed) {
  std::vector<float> v(n);
  uint32_t s = seed * 2654435761U + 1;
  for (float& x : v) {
    s = s * 1664525U + 1013904223U;
    x = static_cast<float>(s >> 8) / 8388608.0F - 1.0F;
  }
  return v;
}

::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " numbers";
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return ::testing::AssertionFailure() << "element " << i << " is " << a[i] << " and " << b[i];
  }
  return ::testing::AssertionSuccess();
}

CONTRACT_ROW(43S, "a graph gives what eager calls give, bit for bit: an MLP of 4 x 256, RK4 of 10 x 4096") {
  constexpr int64_t kWidth = 256, kBatch = 16, kLayers = 4, kPoints = 4096;
  Module m = ctx.compile("models.gk", R"(
const D = 256, N = 4096
type Layer = { w: f32[D, D], b: f32[D] }
fn layer(x: f32[B, D], l: Layer) -> f32[B, D] = maximum(x @ l.w + l.b, 0)
fn mlp(x: f32[B, D], layers: [Layer; L]) -> f32[B, D] {
  var h = x
  for i in 0..L { h = layer(h, layers[i]) }
  h
}
type Lorenz = { x: f32[N], y: f32[N], z: f32[N] }
fn slope(s: Lorenz, sigma = 10.0, rho = 28.0, beta = 8/3) -> Lorenz =
  Lorenz(x = sigma * (s.y - s.x), y = s.x * (rho - s.z) - s.y, z = s.x * s.y - beta * s.z)
fn rk4(mut s: Lorenz, h: f32) {
  let k1 = slope(s)
  let k2 = slope(s + h/2 * k1)
  let k3 = slope(s + h/2 * k2)
  let k4 = slope(s + h * k3)
  s .= s + h/6 * (k1 + 2*k2 + 2*k3 + k4)
}
)");
  auto mlp = m.fn<Tensor(Tensor, std::vector<Layer>)>("mlp");
  std::vector<Layer> layers;
  for (uint32_t i = 0; i < kLayers; ++i) {
    std::vector<float> w = noise(kWidth * kWidth, i + 1);
    for (float& x : w) x *= 0.125F;
    layers.push_back({ctx.from_host(w, {kWidth, kWidth}), ctx.from_host(noise(kWidth, i + 50), {kWidth})});
  }
  Tensor batch = ctx.from_host(noise(kBatch * kWidth, 99), {kBatch, kWidth});
  const std::vector<float> eager = values(mlp(batch, layers));
  Tensor out;
  Graph g = ctx.capture([&] { out = mlp(batch, layers); });
  Exec e = g.instantiate();
  e.launch(ctx, 3);
  EXPECT_TRUE(same_bits(values(out), eager));
  // Another batch, through the array that was captured, and back.
  const std::vector<float> first = values(batch), second = noise(kBatch * kWidth, 7);
  batch.copy_from(ctx, second.data(), batch.size_bytes());
  e.launch(ctx);
  const std::vector<float> replayed = values(out);
  EXPECT_TRUE(same_bits(replayed, values(mlp(batch, layers))));
  EXPECT_FALSE(same_bits(replayed, eager));
  batch.copy_from(ctx, first.data(), batch.size_bytes());
  e.launch(ctx);
  EXPECT_TRUE(same_bits(values(out), eager));
  float most = 0;
  for (float x : eager) most = std::max(most, std::fabs(x));
  EXPECT_GT(most, 0.1F);

  auto rk4 = m.fn<void(Lorenz&, float)>("rk4");
  const auto start = [&] {
    return Lorenz{ctx.from_host(noise(kPoints, 1), {kPoints}), ctx.from_host(noise(kPoints, 2), {kPoints}),
                  ctx.full(f32, {kPoints}, 25)};
  };
  Lorenz s = start(), t = start();
  Exec steps = ctx.capture([&] {
                    for (int i = 0; i < 10; ++i) rk4(s, 0.01F);
                  })
                   .instantiate();
  EXPECT_TRUE(same_bits(values(s.x), values(t.x)));
  steps.launch(ctx, 3);
  for (int i = 0; i < 30; ++i) rk4(t, 0.01F);
  EXPECT_TRUE(same_bits(values(s.x), values(t.x)));
  EXPECT_TRUE(same_bits(values(s.y), values(t.y)));
  EXPECT_TRUE(same_bits(values(s.z), values(t.z)));
  EXPECT_FALSE(same_bits(values(s.x), values(start().x)));
}

CONTRACT_ROW(55P, "random state in a graph: replays go on where the last draw ended, as eager draws do") {
  Module m = ctx.compile("random.gk", R"(
fn fresh(seed: i64) = rng(seed=seed)
fn uniform(mut r, mut x: f32[N]) { x .= rand(mut r, f32[N]) }
fn normal(mut r, mut x: f32[N]) { x .= randn(mut r, f32[N]) }
)");
  auto fresh = m.fn<Generator(int64_t)>("fresh");
  auto uniform = m.fn<void(Generator&, Tensor&)>("uniform"),
       normal = m.fn<void(Generator&, Tensor&)>("normal");
  Tensor x = array(-1), y = array(-1);
  // Twelve draws, eagerly: uniform, normal, uniform, …
  Generator eager = fresh(5);
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 12; ++i) {
    (i % 2 == 0 ? uniform : normal)(eager, x);
    expected.push_back(values(x));
  }
  Generator r = fresh(5);
  const auto state = [&](const Generator& g) { return g.state.size() == 2; };
  EXPECT_TRUE(state(r));
  Graph g = ctx.capture([&] {
    uniform(r, x);
    normal(r, y);
  });
  Exec e = g.instantiate(), other = g.instantiate();
  const auto expect = [&](size_t first, const char* what) {
    EXPECT_TRUE(same_bits(values(x), expected[first])) << what;
    EXPECT_TRUE(same_bits(values(y), expected[first + 1])) << what;
  };
  e.launch(ctx);
  expect(0, "the capture drew nothing; the first launch draws first");
  e.launch(ctx);
  expect(2, "the next replay goes on");
  other.launch(ctx);
  expect(4, "another executable shares the state");
  uniform(r, x);
  normal(r, y);
  expect(6, "eager draws go on from replays");
  e.launch(ctx, 2);
  expect(10, "and replays from eager draws, several at once");
  EXPECT_FALSE(same_bits(expected[0], expected[2]));
  EXPECT_FALSE(same_bits(expected[2], expected[4]));
  for (const float v : expected[0]) ASSERT_TRUE(v >= 0 && v < 1) << v;
  // The state is an array like any other: leased, and rebound to begin anew.
  EXPECT_EQ(r.state.leases(), 3);
  Generator again = fresh(5);
  e.rebind({{r.state, again.state}});
  e.launch(ctx);
  expect(0, "from a state rebound");
  other.launch(ctx);
  EXPECT_FALSE(same_bits(values(x), expected[0]));
}

}  // namespace
}  // namespace gk::contract_test
