// A host program in C++: compiles a program of gk, records a graph of its functions, launches it many times,
// gives one node another output. Without an argument it runs on the first GPU, else on the CPU.
#include <gk/gk.h>

#include <cmath>
#include <cstdio>
#include <vector>

static const char* kProgram = R"gk(
# One step of a damped oscillator, for n of them at once.
fn step(mut x: f32[n], mut v: f32[n], h: f32) {
  v .= v - h * (x + 0.1 * v)
  x .= x + h * v
}
fn energy(x: f32[n], v: f32[n]) = sum(x * x + v * v) / 2
kernel snapshot(mut out: f32[n], x: f32[n]) over i in n { out[i] = x[i] }
)gk";

static int run(const char* device) {
  gk::EngineOptions options;
  options.device = device;
  gk::Engine engine{options};
  gk::Context ctx{engine};
  std::printf("device: %s (%s)\n", engine.device().c_str(), engine.device_name().c_str());

  gk::Module mod = ctx.compile("oscillator.gk", kProgram);
  auto step = mod.fn<void(gk::Tensor&, gk::Tensor&, float)>("step");
  auto energy = mod.fn<float(gk::Tensor, gk::Tensor)>("energy");

  const int64_t n = 1000;
  std::vector<float> start(n);
  for (int64_t i = 0; i < n; ++i) start[i] = static_cast<float>(i) / n;
  gk::Tensor x = ctx.from_host(start, {n}), v = ctx.zeros(gk::f32, {n});
  gk::Tensor first = ctx.zeros(gk::f32, {n}), last = ctx.zeros(gk::f32, {n});
  const float before = energy(x, v);

  gk::Graph g = ctx.graph("oscillate");
  gk::Node steps = g.add("steps", [&] {
    for (int i = 0; i < 10; ++i) step(x, v, 0.01f);
  });
  g.add("snapshot", {.after = {{steps}}}, [&] { mod.kernel("snapshot")(first, x); });
  gk::Exec e = g.instantiate();
  e.launch(ctx);
  e.node("snapshot").update(mod.kernel("snapshot"), {last, x});  // another output; no new capture
  e.launch(ctx, 99);

  const float after = energy(x, v);
  const bool kept = first.to_host<float>(ctx) != last.to_host<float>(ctx);
  std::printf("energy: %.3f, after 1000 steps %.3f; snapshots differ: %s\n", before, after,
              kept ? "yes" : "no");
  return after < before && std::isfinite(after) && kept ? 0 : 1;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "");
  } catch (const gk::Error& e) {
    std::fputs(e.rendered().c_str(), stderr);
    return 2;
  }
}
