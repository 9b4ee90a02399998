// The row on a long chain of dead temporaries: 50 arrays of 16 MiB under 400 MiB on a GPU, and the same in
// the proportion 1 : 25 on the host.
#include <string>

#include "gk/gk.h"
#include "tests/contract/contract.h"

namespace gk::contract_test {
namespace {

int64_t num_elements() { return on_gpu() ? int64_t{1} << 22 : int64_t{1} << 18; }
int64_t array_bytes() { return num_elements() * 4; }
int64_t limit_bytes() { return 25 * array_bytes(); }
constexpr int kSteps = 50;

std::string text(bool fused, int steps) {
  return std::string(fused ? "" : "pragma fuse off\n") +
         "fn step(x: f32[N]) -> f32[N] { var y = x; for _ in 0.." + std::to_string(steps) +
         " { y = y * 0.99 + 0.01 }; y }\n";
}

float expected(float x) {
  for (int i = 0; i < kSteps; ++i) x = x * 0.99F + 0.01F;
  return x;
}

/// At most so many arrays, and some small things.
::testing::AssertionResult within(int64_t peak_bytes, int64_t arrays) {
  if (peak_bytes >= 2 * array_bytes() && peak_bytes < arrays * array_bytes() + array_bytes() / 2)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the peak is " << peak_bytes << " bytes, "
                                       << static_cast<double>(peak_bytes) / static_cast<double>(array_bytes())
                                       << " arrays; expected 2 to " << arrays;
}

int64_t stat(const Session& s, const std::string& name) {
  const std::string all = s.stats_json(), key = "\"" + name + "\":";
  const size_t at = all.find(key);
  return at == std::string::npos ? -1 : std::stoll(all.substr(at + key.size()));
}

/// Everything in the language, in a session.
void in_a_session(bool fused) {
  std::string said;
  SessionOptions o;
  o.device = device();
  o.memory_limit_bytes = limit_bytes();
  o.out = o.err = [&](std::string_view t) { said += t; };
  const auto session = Session::open(std::move(o));
  const std::string n = std::to_string(num_elements());
  ASSERT_EQ(session->run("chain.gk",
                         text(fused, kSteps) + "let x = zeros(f32[" + n + "])\nvar out = zeros_like(x)\n" +
                             "let e = capture { out .= step(x) } |> instantiate\n" + "launch(times=3) e\n"),
            Status::Ok)
      << said;
  EXPECT_TRUE(within(stat(*session, "peak_bytes"), fused ? 2 : 4)) << session->stats_json();
  char value[32];
  // What `item` gives is the element's value exactly.
  std::snprintf(value, sizeof value, "%.17g", static_cast<double>(expected(0)));
  for (const std::string& at : {std::string("0"), n + " // 2", n + " - 1"}) {
    EXPECT_EQ(session->run("look.gk", "assert item(out[" + at + "]) == " + value + "\n"), Status::Ok) << said;
  }
}

}  // namespace

CONTRACT_ROW(
    45S,
    "a chain of 50 dead temporaries under a limit: from the language, and captured through the C++ API") {
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused ? "fused" : "not fused");
    in_a_session(fused);
    // As one function (one operation of the graph), and as 50 calls, each result dying with the next.
    for (const int calls : {1, kSteps}) {
      SCOPED_TRACE(std::to_string(calls) + " calls");
      Engine limited = open(limit_bytes());
      Worker w(limited);
      const auto step = w.ctx.compile("chain.gk", text(fused, kSteps / calls)).fn<Tensor(Tensor)>("step");
      Tensor x = w.array(0, num_elements()), y;
      w.ctx.synchronize();
      limited.reset_peak();
      Graph g = w.ctx.capture([&] {
        y = x;
        for (int i = 0; i < calls; ++i) y = step(y);
      });
      Exec e = g.instantiate();
      e.launch(w.ctx, 3);
      w.ctx.synchronize();
      // Fused, one function has no temporaries at all; 50 calls hand two buffers on in turn.
      EXPECT_TRUE(within(limited.stats().peak_bytes, fused && calls == 1 ? 2 : 4));
      for (const int64_t at : {int64_t{0}, num_elements() / 2, num_elements() - 1}) {
        float got = 0;
        y.rows(at, 1).to_host(w.ctx, &got, sizeof got);
        EXPECT_EQ(got, expected(0));
      }
      // Another executable of the same, and launches of both in turn.
      w.kernel("fill")(x, 0.5F);
      Exec f = g.instantiate();
      f.launch(w.ctx);
      e.launch(w.ctx);
      EXPECT_TRUE(w.all(y, expected(0.5F)));
    }
  }
}

}  // namespace gk::contract_test
