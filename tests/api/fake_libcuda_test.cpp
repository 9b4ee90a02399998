// A host program with kernels of gk's own making on the stand-in for the driver: which calls it costs, and
// that all that the driver is given is there. What the kernels compute is not looked at: they compute
// nothing.
#include "tests/fake_libcuda/fake_libcuda.h"

#include <algorithm>

#include "tests/api/graph_fixture.h"

namespace gk_test {
namespace {

class DriverApi : public GraphTest {
 protected:
  void SetUp() override {
    if (!fake.ok()) GTEST_SKIP() << "the driver is no stand-in";
    fake.reset();
    GraphTest::SetUp();
  }
  void TearDown() override {
    if (!fake.ok()) return;
    GraphTest::TearDown();
    EXPECT_EQ(fake.live(nullptr), 0);
    const char* text = "";
    EXPECT_EQ(fake.violations(&text), 0) << text;
  }
  /// How often `f` has this function of the driver called.
  template <class F>
  int64_t count(const char* name, F f) const {
    const int64_t before = fake.calls(name);
    f();
    return fake.calls(name) - before;
  }
  gk::Tensor sent(float v) { return ctx->from_host(std::vector<float>(kN, v), {kN}); }
  const gk::test::FakeLibcuda fake;
};

TEST_P(DriverApi, arrays_go_to_the_device_and_back) {
  const auto x = sent(3);
  EXPECT_TRUE(all(x, 3));
  GkFakeRecord r;
  for (int64_t i = 0; fake.log_at(i, &r) != 0; ++i) EXPECT_EQ(std::string(r.what), "copy");
}

TEST_P(DriverApi, a_captured_program_is_launched_updated_and_launched_again) {
  auto x = sent(2), y = sent(1), z = sent(0), z2 = sent(0);
  auto g = ctx->graph();
  g.add("c", [&] { combine(z, x, y); });
  g.add("b", [&] { bump(z, 1); });
  auto e = g.instantiate();
  ctx->synchronize();
  const int64_t before = fake.log_size();
  EXPECT_EQ(count("cuGraphLaunch", [&] { e.launch(*ctx, 5); }), 5);
  ctx->synchronize();
  ASSERT_EQ(fake.log_size() - before, 10);
  std::string first, second;
  for (int64_t i = 0; i < 10; ++i) {
    GkFakeRecord r;
    ASSERT_NE(fake.log_at(before + i, &r), 0);
    EXPECT_EQ(std::string(r.what), "kernel");
    EXPECT_NE(r.graph, 0U);
    std::string& name = i % 2 == 0 ? first : second;
    if (i < 2) name = r.name;
    EXPECT_EQ(r.name, name) << "the second node comes after the first, whose result it changes";
  }
  EXPECT_NE(first, second);
  int64_t instantiated = 0;
  const int64_t patched = count("cuGraphExecKernelNodeSetParams_v2", [&] {
    instantiated = count("cuGraphInstantiateWithFlags", [&] {
      e.node("c").update(mod.kernel("combine"), {z2, x, x});
    });
  });
  EXPECT_EQ(patched, 1);
  EXPECT_EQ(instantiated, 0);
  EXPECT_EQ(e.last_update().rung, gk::UpdateRung::Patched);
  EXPECT_EQ(count("cuGraphLaunch", [&] { e.launch(*ctx); }), 1);
  // Arrays whose last handle goes stay while the executable uses them.
  x = y = z = z2 = {};
  e.launch(*ctx);
  ctx->synchronize();
}

TEST_P(DriverApi, each_driver_call_of_a_program_may_fail) {
  const auto attempt = [&]() -> std::string {
    return thrown([&] {
      auto x = sent(2), y = sent(1), z = sent(0);
      auto g = ctx->capture([&] {
        combine(z, axpy(x, 2), y);
        bump(z, 1);
      });
      auto e = g.instantiate();
      e.launch(*ctx);
      e.launch(*ctx);
      ctx->synchronize();
      (void)values(z);
    });
  };
  ASSERT_EQ(attempt(), "");
  TearDown();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int64_t kStep = 7;  // each attempt compiles
#else
  constexpr int64_t kStep = 1;
#endif
  int64_t failures = 0;
  for (int64_t k = 0;; k += kStep) {
    ASSERT_LT(k, 1000);
    GraphTest::SetUp();
    fake.reset();
    fake.fail_at(nullptr, k, k % 2 == 0 ? 2 : 719);  // out of memory, a launch that failed
    const std::string code = attempt();
    const char* const failed = fake.failed_call();
    fake.fail_at(nullptr, -1, 0);
    if (!code.empty()) {
      ++failures;
      const bool is_known =
          code == "E0503" || code == "E0504" || code == "E0505" || code == "E0601" || code == "E0715";
      EXPECT_TRUE(is_known) << code << " " << failed;
    }
    if (failed == nullptr) break;
    EXPECT_EQ(attempt(), "") << "after the failure of " << failed;
    GraphTest::TearDown();
    const char* text = "";
    EXPECT_EQ(fake.violations(&text), 0) << failed << ": " << text;
    const std::string name = failed;
    if (name.find("Destroy") == std::string::npos && name.find("Free") == std::string::npos &&
        name != "cuCtxSetCurrent") {
      EXPECT_EQ(fake.live(nullptr), 0) << failed;
    }
    fake.capture_mode() = 0;
  }
  EXPECT_GT(failures, 20 / kStep);
}

INSTANTIATE_TEST_SUITE_P(FakeLibcuda, DriverApi, ::testing::Values("cuda"));

}  // namespace
}  // namespace gk_test
