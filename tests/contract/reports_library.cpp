// Faults that users of other systems reported, of library calls in graphs. With gk's own
// matrix products everywhere; with real cuBLAS, called by the host program, on a GPU as well.
#include <cmath>
#include <memory>

#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

/// Small integers, so that sums are exact in whatever order.
std::vector<float> small(int64_t n, int64_t step) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>((static_cast<int64_t>(i) * step) % 7 - 3);
  return v;
}

/// A[m, k] B[k, n]
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, size_t m, size_t n,
                           size_t k) {
  std::vector<float> c(m * n, 0);
  for (size_t i = 0; i < m; ++i)
    for (size_t l = 0; l < k; ++l)
      for (size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}

const char* products() {
  return R"(
fn product(a: f32[M, K], b: f32[K, N]) -> f32[M, N] = a @ b
fn batched(a: f32[B, M, K], x: f32[B, K, 1], y: f32[B, M, 1]) -> f32[B, M, 1] = 1.0 * (a @ x) + 0.0 * y
fn sums(x: f32[N]) = (sum(x), max(x), argmax(x))
fn train(mut w: f32[M, N], x: f32[B, M], y: f32[B, N]) {
  let xt = copy(x.T)
  w .= w - 0.0009765625 * (xt @ (x @ w - y))
  w .= w - 0.0009765625 * (xt @ (x @ w - y))
}
)";
}

REPORT(2, "a batched matrix-vector product with literals 1 and 0: three replays agree") {
  constexpr int kCount = 3, kRows = 20, kColumns = 30;
  const std::vector<float> a = small(kCount * kRows * kColumns, 3), x = small(kCount * kColumns, 5);
  std::vector<float> expected;
  for (int i = 0; i < kCount; ++i) {
    const std::vector<float> one =
        product({a.begin() + i * kRows * kColumns, a.begin() + (i + 1) * kRows * kColumns},
                {x.begin() + i * kColumns, x.begin() + (i + 1) * kColumns}, kRows, 1, kColumns);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  Tensor da = ctx.from_host(a, {kCount, kRows, kColumns}), dx = ctx.from_host(x, {kCount, kColumns, 1});
  Tensor dy = ctx.full(f32, {kCount, kRows, 1}, -99), out;
  Module m = ctx.compile("products.gk", products());
  auto batched = m.fn<Tensor(Tensor, Tensor, Tensor)>("batched");
  Exec e = ctx.capture([&] { out = batched(da, dx, dy); }).instantiate();
  for (int i = 0; i < 3; ++i) {
    e.launch(ctx);
    EXPECT_EQ(values(out), expected) << "replay " << i;
  }
  EXPECT_EQ(values(batched(da, dx, dy)), expected);
  if (!on_gpu()) return;
  const cuda::Host host;
  const cuda::Blas blas;
  const auto addresses = [&](const Tensor& t) {
    std::vector<uint64_t> p;
    for (int64_t i = 0; i < kCount; ++i) p.push_back(cuda::pointer(t.rows(i, 1).data()));
    return ctx.from_host(p, {kCount});
  };
  Exec library;
  {
    Tensor as = addresses(da), xs = addresses(dx), ys = addresses(dy);
    library = ctx.capture([&] {
                   blas.set_stream(ctx.stream());
                   blas.sgemm_batched(kRows, 1, kColumns, std::make_unique<float>(1).get(), as.data(),
                                      xs.data(), std::make_unique<float>(0).get(), ys.data(), kCount);
                 })
                  .instantiate();
    // Only the addresses of the arrays go into the call: whoever hands them out keeps the arrays.
    for (int i = 0; i < 3; ++i) {
      const std::vector<Tensor> over = churn(10, 1e30F, 64);
      library.launch(ctx);
      EXPECT_EQ(values(dy), expected) << "replay " << i;
    }
  }
}

REPORT(7, "scratch memory that a capture needs more of than was warmed up") {
  const std::vector<float> few = small(2500, 3), many = small(100000, 5);
  const auto sum = [](const std::vector<float>& v) {
    float s = 0;
    for (const float x : v) s += x;
    return s;
  };
  Tensor a = ctx.from_host(few, {2500}), b = ctx.from_host(many, {100000});
  Tensor p = ctx.from_host(few, {50, 50}), q = ctx.from_host(many, {250, 400}),
         qt = ctx.from_host(many, {400, 250});
  Module m = ctx.compile("products.gk", products());
  using Sums = std::tuple<Tensor, Tensor, Tensor>;
  auto sums = m.fn<Sums(Tensor)>("sums");
  auto times = m.fn<Tensor(Tensor, Tensor)>("product");
  Sums warm = sums(a);
  Tensor warm_product = times(p, p);
  Sums s1, s2;
  Tensor p1, p2;
  Exec e = ctx.capture([&] {
                s1 = sums(a);
                s2 = sums(b);
                p1 = times(p, p);
                p2 = times(q, qt);
              })
               .instantiate();
  const std::vector<Tensor> over = churn(20, -1e30F, 5000);
  for (int i = 0; i < 3; ++i) {
    e.launch(ctx);
    EXPECT_EQ(values(std::get<0>(s1))[0], sum(few));
    EXPECT_EQ(values(std::get<0>(s2))[0], sum(many));
    EXPECT_EQ(values(std::get<1>(s2))[0], 3);
    EXPECT_EQ(values(p1), product(few, few, 50, 50, 50));
    EXPECT_EQ(values(p2), product(many, many, 250, 250, 400));
    (void)sums(b);  // eager work in between has scratch of its own
  }
  for (const Tensor& t : over) ASSERT_TRUE(all(t, -1e30F));
  EXPECT_EQ(values(std::get<0>(warm))[0], sum(few));
  EXPECT_EQ(values(warm_product), product(few, few, 50, 50, 50));
  if (!on_gpu()) return;
  const cuda::Host host;
  const cuda::Blas blas;
  Tensor c1 = ctx.zeros(f32, {50, 50}), c2 = ctx.zeros(f32, {250, 250});
  const float one = 1, zero = 0;
  blas.set_stream(ctx.stream());
  blas.sgemm(50, 50, 50, &one, p.data(), p.data(), &zero, c1.data());
  Exec library = ctx.capture([&] {
                      blas.set_stream(ctx.stream());
                      blas.sgemm(50, 50, 50, &one, p.data(), p.data(), &zero, c1.data());
                      blas.sgemm(250, 250, 400, &one, q.data(), qt.data(), &zero, c2.data());
                    })
                     .instantiate();
  for (int i = 0; i < 3; ++i) {
    library.launch(ctx);
    EXPECT_EQ(values(c1), product(few, few, 50, 50, 50));
    EXPECT_EQ(values(c2), product(many, many, 250, 250, 400));
  }
}

REPORT(9, "two graphs of matrix products, one destroyed, the other replayed") {
  constexpr int64_t kN2 = 128;
  const std::vector<float> data = small(kN2 * kN2, 3), expected = product(data, data, kN2, kN2, kN2);
  Tensor a = ctx.from_host(data, {kN2, kN2}), c1, c2;
  Module m = ctx.compile("products.gk", products());
  auto times = m.fn<Tensor(Tensor, Tensor)>("product");
  Exec first = ctx.capture([&] { c1 = times(a, a); }).instantiate();
  Exec second = ctx.capture([&] { c2 = times(a, a); }).instantiate();
  first.launch(ctx);
  second.launch(ctx);
  EXPECT_EQ(values(c1), expected);
  second.launch(ctx);
  second.close();  // in flight
  c2 = Tensor();
  engine.reclaim();
  const std::vector<Tensor> over = churn(20, 1e30F, kN2 * kN2);
  fill(c1.reshape({kN2 * kN2}), 0);
  first.launch(ctx);
  EXPECT_EQ(values(c1), expected);
  if (!on_gpu()) return;
  const cuda::Host host;
  Tensor d1 = ctx.zeros(f32, {kN2, kN2}), d2 = ctx.zeros(f32, {kN2, kN2});
  const float one = 1, zero = 0;
  const auto record = [&](const cuda::Blas& blas, Tensor& c) {
    return ctx
        .capture([&] {
          blas.set_stream(ctx.stream());
          blas.sgemm(kN2, kN2, kN2, &one, a.data(), a.data(), &zero, c.data());
        })
        .instantiate();
  };
  const cuda::Blas kept;
  Exec one_handle = record(kept, d1);
  Exec same_handle = record(kept, d2);
  same_handle.launch(ctx);
  same_handle.close();
  engine.reclaim();
  one_handle.launch(ctx);
  EXPECT_EQ(values(d1), expected);
  EXPECT_EQ(values(d2), expected);
  ASSERT_EQ(cuda::Host::synchronize(), 0);
}

REPORT(10, "temporaries used on a side branch, captured in a loop: memory stays flat") {
  Tensor x = array(1), y = array(0), z = array(0);
  auto twice = lib.fn<Tensor(Tensor)>("twice");
  const auto round = [&] {
    Graph g = ctx.graph("branches");
    Node side = g.add("side", {.after = std::vector<Node>{}}, [&] {
      Tensor t = twice(x);
      axpy(y, t, 1.0F);
    });
    Node straight = g.add("main", {.after = std::vector<Node>{}}, [&] { axpy(z, x, 3.0F); });
    g.add("join", {.after = std::vector<Node>{side, straight}}, [&] {
      Tensor t = twice(y);
      axpy(z, t, 0.0F);
    });
    Exec e = g.instantiate();
    e.launch(ctx, 2);
  };
  round();
  round();
  const int64_t bytes = settled_bytes();
  const probe::Alive alive = probe::alive(engine);
  for (int i = 0; i < 50; ++i) round();
  EXPECT_EQ(settled_bytes(), bytes);
  EXPECT_EQ(probe::alive(engine), alive);
  EXPECT_TRUE(all(y, 52 * 4));
  EXPECT_TRUE(all(z, 52 * 6));
  if (!on_gpu()) return;
  // A branch on a stream of the host's own, that leaves the captured one and comes back.
  const cuda::Host host;
  const cuda::Kernels kernels;
  const cuda::OwnStream side;
  const cuda::OwnEvent fork, join;
  fill(y, 0);
  const auto forked = [&] {
    Exec e = ctx.capture([&] {
                  Tensor t = twice(x), u = twice(t);
                  const cuda::Stream s = ctx.stream();
                  fork.record(s);
                  ASSERT_EQ(cuda::stream_wait(side.get(), fork.get()), 0);
                  kernels.add(side.get(), t.data(), 1, kN);
                  kernels.add(s, u.data(), 10, kN);
                  join.record(side.get());
                  ASSERT_EQ(cuda::stream_wait(s, join.get()), 0);
                  axpy(y, t, 1.0F);
                  axpy(y, u, 1.0F);
                })
                 .instantiate();
    e.launch(ctx, 2);
  };
  forked();
  const int64_t before = settled_bytes();
  for (int i = 0; i < 50; ++i) forked();
  EXPECT_EQ(settled_bytes(), before);
  EXPECT_TRUE(all(y, 102 * (3 + 14)));
}

REPORT(14, "two passes over a transposed copy in one capture: right from the first replay on") {
  constexpr int64_t kB = 16, kM = 24, kO = 8;
  Module m = ctx.compile("products.gk", products());
  auto train = m.fn<void(Tensor&, Tensor, Tensor)>("train");
  const std::vector<float> x = small(kB * kM, 5), y = small(kB * kO, 3);
  std::vector<float> xt(x.size()), w(kM * kO, 0.0F);
  for (size_t i = 0; i < kB; ++i)
    for (size_t j = 0; j < kM; ++j) xt[j * kB + i] = x[i * kM + j];
  Tensor dx = ctx.from_host(x, {kB, kM}), dy = ctx.from_host(y, {kB, kO});
  Tensor eager = ctx.zeros(f32, {kM, kO}), replayed = ctx.zeros(f32, {kM, kO});
  Exec e = ctx.capture([&] { train(replayed, dx, dy); }).instantiate();
  for (int replay = 0; replay < 2; ++replay) {
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<float> d = product(x, w, kB, kO, kM);
      for (size_t i = 0; i < d.size(); ++i) d[i] -= y[i];
      const std::vector<float> gradient = product(xt, d, kM, kO, kB);
      for (size_t i = 0; i < w.size(); ++i) w[i] -= 0.0009765625F * gradient[i];
    }
    e.launch(ctx);
    train(eager, dx, dy);
    const std::vector<float> got = values(replayed);
    EXPECT_EQ(got, values(eager)) << "replay " << replay;
    for (size_t i = 0; i < w.size(); ++i)
      ASSERT_NEAR(got[i], w[i], 1e-4F * (1 + std::fabs(w[i]))) << "replay " << replay << ", element " << i;
  }
}

}  // namespace
}  // namespace gk::contract_test
