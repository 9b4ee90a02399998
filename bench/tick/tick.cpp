// gk_tick: a small graph launched and waited for once a period, as a control loop does: what a turn costs the
// loop, in percentiles, and how often it asks for memory. Prints one JSON document.
// Usage: gk_tick [DEVICE [PERIOD_US [TURNS]]]
#include <gk/gk.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

static std::atomic<long> allocations{0};

void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size > 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

static const char* kProgram = R"gk(
fn step(mut x: f32[n], mut v: f32[n], h: f32) {
  v .= v - h * (x + 0.1 * v)
  x .= x + h * v
}
)gk";

using Clock = std::chrono::steady_clock;

static int run(const char* device, int period_us, int turns) {
  gk::EngineOptions options;
  options.device = device;
  gk::Engine engine{options};
  gk::Context ctx{engine};
  gk::Module mod = ctx.compile("tick.gk", kProgram);
  auto step = mod.fn<void(gk::Tensor&, gk::Tensor&, float)>("step");
  std::printf("{\"device\": \"%s\", \"period_us\": %d, \"rows\": [", engine.device().c_str(), period_us);
  bool first = true;
  for (const int64_t n : {16, 1000, 100000}) {
    gk::Tensor x = ctx.full(gk::f32, {n}, 1), v = ctx.zeros(gk::f32, {n});
    gk::Exec e = ctx.capture([&] { step(x, v, 0.01f); }).instantiate();
    std::vector<double> us;
    us.reserve(static_cast<size_t>(turns));
    e.launch(ctx);
    ctx.synchronize();
    const long before = allocations.load();
    auto next = Clock::now();
    for (int i = 0; i < turns; ++i) {
      next += std::chrono::microseconds(period_us);
      std::this_thread::sleep_until(next);
      const auto start = Clock::now();
      e.launch(ctx);
      ctx.synchronize();
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    const double asked = static_cast<double>(allocations.load() - before) / turns;
    std::sort(us.begin(), us.end());
    const auto at = [&](double q) { return us[static_cast<size_t>(q * (turns - 1))]; };
    std::printf(
        "%s\n {\"elements\": %ld, \"p10_us\": %.2f, \"p50_us\": %.2f, \"p90_us\": %.2f, \"p99_us\": %.2f, "
        "\"max_us\": %.1f, \"allocations_a_turn\": %.2f}",
        first ? "" : ",", static_cast<long>(n), at(0.1), at(0.5), at(0.9), at(0.99), us.back(), asked);
    first = false;
  }
  std::printf("\n]}\n");
  return 0;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "host", argc > 2 ? std::atoi(argv[2]) : 1000,
               argc > 3 ? std::max(1, std::atoi(argv[3])) : 2000);
  } catch (const gk::Error& e) {
    std::fputs(e.rendered().c_str(), stderr);
    return 1;
  }
}
