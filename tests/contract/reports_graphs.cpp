// Faults that users of other systems reported, of conditional bodies, shared memory and executables side by
// side.
#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

const char* bodies() {
  return R"(
fn spread(mut x: f32[N]) {
  if max(x) > 3 {
    let t = x - sum(x) / N
    let u = t / max(abs(t))
    x .= u + sum(u * u)
  }
}
fn pile(mut y: f32[N], t: f32[N]) { while sum(y) < 100 { y .+= t } }
fn pile_twice(mut y: f32[N], x: f32[N]) {
  let t = x * 2
  let s = sum(t)
  while sum(y) < 100 { y .+= t + s * 0 }
}
fn nothing(mut x: f32[N]) {
  if sum(x) > 0 { }
  if sum(x) > 0 { } else { }
  while sum(x) < -1000 { }
  x .+= 1
}
fn waits(mut x: f32[N]) {
  while sum(x) < 10 {
    x .+= 1
    let v = item(sum(x))
    x .+= v
  }
}
)";
}

REPORT(23, "an allocation inside an `if` body: planned with the graph, no node of it refused") {
  Module m = ctx.compile("bodies.gk", bodies());
  auto spread = m.fn<void(Tensor&)>("spread");
  std::vector<float> data(512);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 9);
  Tensor x = ctx.from_host(data, {512}), y = ctx.from_host(data, {512}), idle = array(1, 512);
  Exec e = ctx.capture([&] {
                spread(x);
                spread(idle);
              })
               .instantiate();
  Tensor warm = ctx.from_host(data, {512});
  spread(warm);  // eager calls keep scratch memory of their own
  const int64_t bytes = settled_bytes();
  for (int i = 0; i < 3; ++i) {
    e.launch(ctx);
    spread(y);
    EXPECT_EQ(values(x), values(y)) << "launch " << i;
    EXPECT_NE(values(x), data);
    EXPECT_TRUE(all(idle, 1));
  }
  EXPECT_EQ(settled_bytes(), bytes);
}

REPORT(24, "a temporary of the surroundings, dropped while a `while` body is recorded") {
  Module m = ctx.compile("bodies.gk", bodies());
  auto pile = m.function("pile"), pile_twice = m.function("pile_twice");
  auto twice = lib.fn<Tensor(Tensor)>("twice");
  Tensor x = array(1, 10), y = array(0, 10), z = array(0, 10), w = array(0, 10);
  Exec e = ctx.capture([&] {
                {
                  Tensor t = twice(x);
                  pile.call({y, t});
                }
                pile.call({z, twice(twice(x))});
                Tensor later = array(50, 10);  // takes over what was dropped, after the loops
                axpy(x, later, 0.0F);
                pile_twice.call({w, x});
              })
               .instantiate();
  for (int i = 0; i < 2; ++i) {
    fill(y, 0), fill(z, 0), fill(w, 0);
    const std::vector<Tensor> over = churn(20, -1e30F, 10);
    e.launch(ctx);
    EXPECT_TRUE(all(y, 10));
    EXPECT_TRUE(all(z, 12));
    EXPECT_TRUE(all(w, 10));
  }
  EXPECT_EQ(engine.release_failures(), std::vector<std::string>{});
}

REPORT(25,
       "a wait inside a conditional body, then the end of the capture: an error at its line, nothing else") {
  Module m = ctx.compile("bodies.gk", bodies());
  Tensor x = array(0, 4), y = array(0, 4);
  Graph g = ctx.capture([&] {
    add(y, 1.0F);
    const auto r = m.function("waits").try_call({x});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), "E0703");
    ASSERT_FALSE(r.error().places().empty());
    EXPECT_EQ(r.error().places()[0].line, 24);
  });
  Exec e = g.instantiate();
  e.launch(ctx);
  EXPECT_TRUE(all(y, 1));
  EXPECT_TRUE(all(x, 0));
  EXPECT_EQ(x.leases(), 0);
  // Not caught, it ends the capture.
  EXPECT_EQ(code_of([&] { (void)ctx.capture([&] { m.function("waits").call({x}); }); }), "E0703");
  EXPECT_FALSE(ctx.is_capturing());
  m.function("waits").call({x});
  EXPECT_TRUE(all(x, 5));
}

REPORT(31, "empty bodies of conditionals: they end, eagerly and in a graph") {
  Module m = ctx.compile("bodies.gk", bodies());
  auto nothing = m.fn<void(Tensor&)>("nothing");
  Tensor x = array(1);
  nothing(x);
  Exec e = ctx.capture([&] { nothing(x); }).instantiate();
  e.launch(ctx, 2);
  EXPECT_TRUE(all(x, 4));
  fill(x, 0);
  e.launch(ctx);
  EXPECT_TRUE(all(x, 1));
}

REPORT(32, "one graph, two streams, two executables: neither waits for the other") {
  Module m = ctx.compile("apart.gk", "fn count(mut y: f32[N], x: f32[N]) { y .+= x * 2 - 2 }");
  Tensor x = array(2), y = array(0);
  Graph g = ctx.capture([&] { m.fn<void(Tensor&, Tensor)>("count")(y, x); });
  Exec e1 = g.instantiate(), e2 = g.instantiate();
  Worker other(engine);
  Tensor x2 = other.array(5), y2 = other.array(0);
  e2.rebind({{x, x2}, {y, y2}});
  e1.launch(ctx);
  e2.launch(other.ctx);
  other.ctx.synchronize();
  ctx.synchronize();
  probe::clear_calls(engine);
  Gate gate(ctx);
  e1.launch(ctx, 2);
  e2.launch(other.ctx, 3);
  EXPECT_EQ(probe::calls(engine, "stream waits for event"), 0);
  // Comes to its end while the first one still stands before the gate.
  EXPECT_TRUE(other.all(y2, 32));
  EXPECT_FALSE(gate.was_forced());
  gate.open();
  EXPECT_TRUE(all(y, 6));
  // On the same arrays they are put in order instead.
  e2.rebind({{x2, x}, {y2, y}});
  for (int i = 0; i < 20; ++i) {
    e1.launch(ctx);
    e2.launch(other.ctx);
  }
  EXPECT_TRUE(all(y, 86));
  // So they are where they share the temporaries of what was captured.
  Module t =
      ctx.compile("temporaries.gk", "fn centre(mut y: f32[N], x: f32[N]) { y .+= x - sum(x) / N + max(x) }");
  fill(y, 0), other.kernel("fill")(y2, 0.0F);
  Graph shared = ctx.capture([&] { t.fn<void(Tensor&, Tensor)>("centre")(y, x); });
  Exec e3 = shared.instantiate(), e4 = shared.instantiate();
  e4.rebind({{x, x2}, {y, y2}});
  for (int i = 0; i < 50; ++i) {
    e3.launch(ctx);
    e4.launch(other.ctx);
  }
  EXPECT_TRUE(all(y, 100));
  EXPECT_TRUE(other.all(y2, 250));
}

REPORT(16, "a kernel with dynamic shared memory, eagerly and replayed") {
  Tensor x = array(1), y = array(0);
  const Kernel shared = lib.kernel("axpy").with({.block = 128, .shared_bytes = 64 << 10});
  shared(y, x, 2.0F);
  EXPECT_TRUE(all(y, 2));
  Graph g = ctx.capture([&] { ctx.node("n", [&] { shared(y, x, 2.0F); }); });
  Exec e = g.instantiate();
  e.launch(ctx, 3);
  EXPECT_TRUE(all(y, 8));
  // Patched in where it was not before, and more of it.
  Exec plain = ctx.capture([&] { ctx.node("n", [&] { axpy(y, x, 2.0F); }); }).instantiate();
  plain.node("n").update(lib.kernel("axpy"), {y, x, 1.0F}, {.block = 256, .shared_bytes = 96 << 10});
  plain.launch(ctx);
  EXPECT_TRUE(all(y, 9));
  if (!on_gpu()) return;
  EXPECT_EQ(code_of([&] { lib.kernel("axpy").with({.shared_bytes = 16U << 20})(y, x, 1.0F); }), "E0303");
  // A kernel of the host program's own that needs it.
  const cuda::Host host;
  const cuda::Kernels kernels;
  constexpr uint32_t kFloats = 16384;  // 64 KiB
  Tensor many = array(0.5F, kFloats), sum = ctx.zeros(f32, {1});
  kernels.shared_sum(ctx.stream(), sum.data(), many.data(), kFloats);
  EXPECT_EQ(values(sum)[0], kFloats / 2);
  Exec own = ctx.capture([&] {
                  add(many, 0.5F);
                  kernels.shared_sum(ctx.stream(), sum.data(), many.data(), kFloats);
                  axpy(y, x, 1.0F);
                })
                 .instantiate();
  own.launch(ctx);
  EXPECT_EQ(values(sum)[0], kFloats);
  own.launch(ctx);
  EXPECT_EQ(values(sum)[0], kFloats * 3 / 2);
  EXPECT_TRUE(all(y, 11));
}

}  // namespace
}  // namespace gk::contract_test
