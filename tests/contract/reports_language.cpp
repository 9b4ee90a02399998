// Faults that users of other systems reported, of what programs say: arithmetic, indices, large expressions,
// and caches shared by processes.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/script.h"

namespace gk::contract_test {
namespace {

/// What a command prints, and its exit status.
std::pair<std::string, int> output_of(const std::string& command) {
  std::string text;
  FILE* f = popen(command.c_str(), "r");
  if (f == nullptr) return {"", -1};
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, f)) text.append(buffer, n);
  const int status = pclose(f);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

REPORT(33, "ten processes compile the same file into one cache folder") {
  const char* binary = std::getenv("GKRUN");
  if (binary == nullptr || *binary == 0) GTEST_SKIP() << "GKRUN does not name the binary";
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("gk_contract_" + std::to_string(getpid()));
  fs::create_directories(folder);
  struct Gone {
    fs::path p;
    ~Gone() {
      std::error_code ignored;
      fs::remove_all(p, ignored);
    }
  } gone{folder};
  const fs::path program = folder / "program.gk";
  std::ofstream(program) << R"(
kernel twist(mut y: f32[n], x: f32[n]) over i in n { y[i] = x[i] * 3 + f32(i) }
var x = linspace(0, 1, 1001), y = zeros(f32[1001])
launch twist(mut y, x)
let e = instantiate(capture { x .= sqrt(abs(y)) + x; y .= y - sum(x) / 1001 })
launch(times=3) e
print(f"{item(y[500]):.3f} {item(x[7]):.3f}")
)";
  const auto run = [&](const std::string& options) {
    return output_of(std::string(binary) + " --device " + (on_gpu() ? "cuda" : "host") + " --cache-dir " +
                     (folder / "cache").string() + " " + options + " " + program.string() + " 2>&1");
  };
  std::vector<std::pair<std::string, int>> results(10);
  on_threads(10, [&](int i) { results[static_cast<size_t>(i)] = run(""); });
  for (const auto& [text, status] : results) {
    EXPECT_EQ(status, 0) << text;
    EXPECT_EQ(text, results[0].first);
  }
  EXPECT_EQ(results[0].first.find("nan"), std::string::npos) << results[0].first;
  // One more finds all of it made, and gives the same.
  const auto [again, status] = run("--stats=json");
  EXPECT_EQ(status, 0);
  EXPECT_NE(again.find(results[0].first), std::string::npos) << again;
  EXPECT_NE(again.find("\"disk_cache_hits\":"), std::string::npos) << again;
  EXPECT_EQ(again.find("\"disk_cache_hits\":0,"), std::string::npos) << again;
  int files = 0;
  for (const auto& f : fs::recursive_directory_iterator(folder / "cache"))
    if (f.is_regular_file()) {
      ++files;
      EXPECT_EQ(f.path().string().find(".tmp"), std::string::npos) << f.path();
    }
  EXPECT_GT(files, 0);
}

REPORT(35, "floor division and `%` on negative operands, on every back end") {
  const std::string text = R"(
fn divided(a: i32[N], b: i32[N]) -> i32[N] = a // b
fn rest(a: i32[N], b: i32[N]) -> i32[N] = a % b
kernel both(mut q: i32[n], mut r: i32[n], a: i32[n], b: i32[n]) over i in n { q[i] = a[i] // b[i]; r[i] = a[i] % b[i] }
)";
  std::vector<int32_t> a, b, quotient, remainder;
  for (int32_t i = -9; i <= 9; ++i)
    for (int32_t j = -4; j <= 4; ++j) {
      if (j == 0) continue;
      int32_t q = i / j, r = i % j;
      if (r != 0 && (r < 0) != (j < 0)) --q, r += j;
      a.push_back(i), b.push_back(j), quotient.push_back(q), remainder.push_back(r);
    }
  const auto n = static_cast<int64_t>(a.size());
  Module m = ctx.compile("floor.gk", text);
  Tensor da = ctx.from_host(a, {n}), db = ctx.from_host(b, {n}), q, r;
  Tensor kq = ctx.zeros(i32, {n}), kr = ctx.zeros(i32, {n});
  const auto work = [&] {
    q = m.fn<Tensor(Tensor, Tensor)>("divided")(da, db);
    r = m.fn<Tensor(Tensor, Tensor)>("rest")(da, db);
    m.kernel("both")(kq, kr, da, db);
  };
  for (const bool replayed : {false, true}) {
    kq = ctx.zeros(i32, {n});
    Exec e;
    if (replayed) {
      e = ctx.capture(work).instantiate();
      e.launch(ctx);
    } else {
      work();
    }
    EXPECT_EQ(q.to_host<int32_t>(ctx), quotient);
    EXPECT_EQ(r.to_host<int32_t>(ctx), remainder);
    EXPECT_EQ(kq.to_host<int32_t>(ctx), quotient);
    EXPECT_EQ(kr.to_host<int32_t>(ctx), remainder);
  }
  for (const std::string& on : {std::string("interp"), std::string("host"), device()}) {
    Script script(on);
    EXPECT_EQ(script.run(
                  "assert all([-7, 7, -7, 6] // [2, -2, -2, 3] == [-4, -4, 3, 2])\n"
                  "assert all([-7, 7, -7, 6] % [2, -2, -2, 3] == [1, -1, -1, 0])\n"
                  "assert all([-7.0, 7.0] // 2.0 == [-4.0, 3.0]) and all([-7.0, 7.0] % 2.0 == [1.0, 1.0])\n"),
              Status::Ok)
        << on << ": " << script.err;
  }
}

REPORT(36, "an index out of range is found, and nothing else is written, on every back end") {
  Module m = ctx.compile("checked.gk", R"(
kernel shifted(mut y: f32[n], x: f32[n], by: i64) over i in n { y[i + by] = x[i] + 1 }
kernel far(mut y: f32[n], x: f32[n], by: i64) over i in n { y[i] = x[i + by] + 1 }
)");
  Kernel shifted = m.kernel("shifted"), far = m.kernel("far");
  Tensor rows = ctx.zeros(f32, {3, 100}), x = array(1, 100);
  Tensor y = rows.rows(1, 1).reshape({100}), before = rows.rows(0, 1).reshape({100}),
         after = rows.rows(2, 1).reshape({100});
  const auto check = [&](const std::function<void()>& submit) {
    for (const int64_t by : {int64_t{90}, int64_t{-90}, int64_t{1} << 40}) {
      fill(y, 0);
      shifted.call({y, x, by});
      submit();
      EXPECT_EQ(code_of([&] { ctx.synchronize(); }), "E0801") << by;
      EXPECT_EQ(code_of([&] { ctx.synchronize(); }), "") << by;  // said once
      EXPECT_TRUE(all(before, 0)) << by;
      EXPECT_TRUE(all(after, 0)) << by;
    }
  };
  check([] {});
  Exec e = ctx.capture([&] { shifted.call({y, x, int64_t{90}}); }).instantiate();
  for (int i = 0; i < 2; ++i) {
    fill(y, 0);
    e.launch(ctx);
    const auto raised = ctx.try_synchronize();
    ASSERT_FALSE(raised);
    EXPECT_EQ(raised.error().code(), "E0801");
    ASSERT_FALSE(raised.error().places().empty());
    EXPECT_EQ(raised.error().places()[0].file, "checked.gk");
    EXPECT_EQ(raised.error().places()[0].line, 2);
    const std::vector<float> got = values(y);
    for (size_t k = 0; k < got.size(); ++k) ASSERT_EQ(got[k], k < 90 ? 0 : 2) << k;
    EXPECT_TRUE(all(before, 0));
    EXPECT_TRUE(all(after, 0));
  }
  // A read outside gives 0.
  far.call({y, x, int64_t{99}});
  EXPECT_EQ(code_of([&] { ctx.synchronize(); }), "E0801");
  EXPECT_EQ(values(y)[0], 2);
  EXPECT_EQ(values(y)[1], 1);
  for (const std::string& on : {std::string("interp"), std::string("host"), device()}) {
    Script script(on);
    EXPECT_EQ(script.run("kernel k(mut y: f32[n], by: i64) over i in n { y[i + by] = 1 }\n"
                         "var y = zeros(f32[10])\n"
                         "expect_error E0801 { launch k(mut y, 5); print(y) }\n"
                         "let i = arange(3) + 8\n"
                         "expect_error E0801 { print(take(y, i)) }\n"),
              Status::Ok)
        << on << ": " << script.err;
  }
}

REPORT(37, "an expression of 2,000 operations: compiled, and right, eagerly and replayed") {
  std::string sum = "x", steps;
  for (int i = 0; i < 1000; ++i) {
    sum += " + x * 0.5";
    steps += "  y = y * 0.5 + x\n";
  }
  Module m =
      ctx.compile("large.gk", "fn one(x: f32[N]) -> f32[N] { " + sum +
                                  " }\nfn many(x: f32[N]) -> f32[N] {\n  var y = x\n" + steps + "  y\n}\n");
  const std::vector<float> data{1, -3, 0.1F, 1e-20F};
  std::vector<float> one, many;
  for (const float x : data) {
    volatile float s = x, y = x;  // rounded after every operation
    for (int i = 0; i < 1000; ++i) {
      volatile float half = x * 0.5F;
      s = s + half;
      half = y * 0.5F;
      y = half + x;
    }
    one.push_back(float{s});
    many.push_back(float{y});
  }
  Tensor x = ctx.from_host(data, {4}), a, b;
  const auto work = [&] {
    a = m.fn<Tensor(Tensor)>("one")(x);
    b = m.fn<Tensor(Tensor)>("many")(x);
  };
  work();
  EXPECT_EQ(values(a), one);
  EXPECT_EQ(values(b), many);
  Exec e = ctx.capture(work).instantiate();
  e.launch(ctx, 2);
  EXPECT_EQ(values(a), one);
  EXPECT_EQ(values(b), many);
}

}  // namespace
}  // namespace gk::contract_test
