// What the suites share that run hal/cuda against the stand-in for the driver: it is asked for what the
// runtime called, and at the end of each test nothing may be left of any kind. Without the stand-in they are
// skipped.
#pragma once

#include <string>

#include "tests/fake_libcuda/fake_libcuda.h"
#include "tests/unit/hal_fixture.h"

namespace gk::test {

// CUresults.
inline constexpr int kInvalidValue = 1, kOutOfMemory = 2, kIllegalAddress = 700, kLaunchFailed = 719,
                     kUnknown = 999;

class FakeLibcudaTest : public HalTest {
 protected:
  void SetUp() override {
    if (!fake.ok()) GTEST_SKIP() << "the driver is no stand-in";
    fake.reset();
    HalTest::SetUp();
  }
  void TearDown() override {
    if (!fake.ok()) return;
    close();
    EXPECT_EQ(fake.live(nullptr), 0) << left();
    EXPECT_EQ(violations(), "");
    fake.reset();
  }
  void close() {
    module.reset();
    rt.reset();
    device.reset();
  }
  std::string violations() const {
    const char* text = "";
    fake.violations(&text);
    return text;
  }
  /// "streams 1 events 2"
  std::string left() const {
    std::string all;
    for (const char* kind :
         {"contexts", "streams", "events", "graphs", "execs", "modules", "allocations", "objects", "links"}) {
      if (const int64_t n = fake.live(kind); n != 0) all += std::string(kind) + " " + std::to_string(n) + " ";
    }
    return all;
  }
  /// The names of the calls that `f` makes, without what only asks for the context.
  template <class F>
  std::vector<std::string> calls_of(F f) const {
    const int64_t from = fake.calls(nullptr);
    f();
    std::vector<std::string> names;
    for (int64_t i = from; i < fake.calls(nullptr); ++i) {
      const std::string name = fake.call_name(i);
      if (name != "cuCtxGetCurrent" && name != "cuCtxSetCurrent" &&
          name != "cuThreadExchangeStreamCaptureMode") {
        names.push_back(name);
      }
    }
    return names;
  }
  /// The kernels that ran since the i-th record, in order: "fill add ".
  std::string kernels_since(int64_t i) const {
    std::string names;
    for (GkFakeRecord r; fake.log_at(i, &r) != 0; ++i) {
      if (std::string(r.what) == "kernel" || std::string(r.what) == "copy") {
        names += (*r.name != '\0' ? r.name : r.what) + std::string(" ");
      }
    }
    return names;
  }
  const FakeLibcuda fake;
};

#define GK_FAKE_LIBCUDA(suite) INSTANTIATE_TEST_SUITE_P(FakeLibcuda, suite, ::testing::Values("cuda"))

}  // namespace gk::test
