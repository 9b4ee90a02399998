// gkrun on a GPU that is a stand-in for the driver: programs that only move data, and what is said where
// there is no GPU or no driver that serves. $GK_FAKE_LIBCUDA names the folder of the stand-in.
#include <optional>

#include "tests/script/gkrun_process.h"

namespace gk::tests {
namespace {

class GkrunFakeLibcuda : public Gkrun {
 protected:
  void SetUp() override {
    Gkrun::SetUp();
    if (IsSkipped()) return;
    const char* folder = std::getenv("GK_FAKE_LIBCUDA");
    if (folder == nullptr || !fs::exists(fs::path(folder) / "libcuda.so.1"))
      GTEST_SKIP() << "no stand-in here";
    ::setenv("LD_LIBRARY_PATH", folder, 1);
    // Kernels write nothing: in memory that is filled with a pattern every condition would hold, and loops
    // not end.
    const char* stress = std::getenv("GK_STRESS");
    stress_ = stress == nullptr ? "" : stress;
    ::setenv("GK_STRESS", "0", 1);
  }
  void TearDown() override {
    ::unsetenv("LD_LIBRARY_PATH");
    ::unsetenv("GKFAKE");
    if (stress_) ::setenv("GK_STRESS", stress_->c_str(), 1);
    Gkrun::TearDown();
  }
  Outcome with(const char* driver, const std::vector<std::string>& args) const {
    ::setenv("GKFAKE", driver, 1);
    return run_plain(args);
  }
  std::optional<std::string> stress_;
};

TEST_F(GkrunFakeLibcuda, data_goes_to_the_device_and_back) {
  ASSERT_EQ(run({"-e", "save(\"x.npy\", f32([1.5, 2.5, -3]))"}).status, 0);
  write("p.gk", "print(load(\"x.npy\"))\nsave(\"y.npy\", load(\"x.npy\"))\n");
  const Outcome r = with("report=1", {"--device", "cuda", "--no-cache", "p.gk"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "[ 1.5  2.5 -3. ]\n");
  EXPECT_EQ(r.err, "stand-in: 0 launches, 0 violations, 0 objects left\n");
  EXPECT_EQ(slurp(at("x.npy")), slurp(at("y.npy")));
}

TEST_F(GkrunFakeLibcuda, a_graph_is_made_and_launched) {
  // What its kernels compute is not looked at: they compute nothing.
  write("p.gk", R"gk(
var x = zeros(f32[64]), y = zeros(f32[64])
let e = capture {
  x .= x * 2 + 1
  if sum(x) > 0 { y .= sqrt(x) } else { y .= x }
} |> instantiate
launch e
launch(times=3) e
)gk");
  const Outcome r = with("report=1", {"--device", "cuda", "--no-cache", "p.gk"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.err.find(" 0 violations, 0 objects left\n"), std::string::npos) << r.err;
  EXPECT_EQ(r.err.find("stand-in: 0 launches"), std::string::npos) << r.err;
}

TEST_F(GkrunFakeLibcuda, the_device_is_listed_and_taken_by_default) {
  const Outcome r = with("", {"--list-devices"});
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.out.find("cuda:0   stand-in for an NVIDIA H200 (sm_90), 132 multiprocessors, 140.0 GiB"),
            std::string::npos)
      << r.out;
  // Its kernels write nothing; without a GPU the host computes.
  const std::vector<std::string> program = {"--no-cache", "-e", "print([1, 2] + 1)"};
  EXPECT_EQ(with("", program).out, "[0 0]\n");
  for (const char* driver : {"devices=0", "driver=12030", "init=802"}) {
    const Outcome host = with(driver, program);
    EXPECT_EQ(host.status, 0) << driver;
    EXPECT_EQ(host.out, "[2 3]\n") << driver << host.err;
  }
}

TEST_F(GkrunFakeLibcuda, no_gpu_an_old_driver_and_one_that_does_not_start_are_told) {
  const struct {
    const char *driver, *device, *message;
  } rows[] = {
      {"devices=0", "cuda", "error[E0501]: the NVIDIA driver finds no GPU\nhelp: use the device `host`\n"},
      {"", "cuda:3",
       "error[E0501]: there is no device cuda:3: the driver finds 1 GPU\nhelp: the last one is cuda:0\n"},
      {"driver=12030", "cuda",
       "error[E0502]: the NVIDIA driver is too old: it serves CUDA 12.3, and 12.4 is needed\n"
       "help: install an NVIDIA driver for CUDA 12.4 or newer, or use the device `host`\n"},
      {"init=802", "cuda",
       "error[E0502]: the NVIDIA driver does not start: CUDA_ERROR_SYSTEM_NOT_READY (system not yet "
       "initialized)\n"
       "help: install an NVIDIA driver for CUDA 12.4 or newer, or use the device `host`\n"}};
  for (const auto& row : rows) {
    const Outcome r = with(row.driver, {"--device", row.device, "--color", "never", "-e", "print(1)"});
    EXPECT_EQ(r.status, 4) << row.driver;
    EXPECT_EQ(r.out, "") << row.driver;
    EXPECT_EQ(r.err, row.message) << row.driver;
  }
}

// Whatever its kernels leave undone: the driver is given nothing against its rules, and at the end all is
// given back. A script that waits for what a kernel writes does not end here: its condition has to be the
// host's.
TEST_F(GkrunFakeLibcuda, programs_leave_nothing_behind) {
  const fs::path scripts = fs::path(GK_SOURCE_DIR) / "tests/scripts";
  int programs = 0;
  for (const char* group : {"graphs", "memory", "control"}) {
    for (const auto& entry : fs::directory_iterator(scripts / group)) {
      if (entry.path().extension() != ".gk") continue;
      ++programs;
      const Outcome r =
          with("report=1", {"--device", "cuda", "--cache-dir", at("cache"), entry.path().string()});
      EXPECT_LE(r.status, 3) << entry.path();
      if (r.status > 128) continue;  // it did not end
      // What does not compile has opened no device.
      if (r.status == 2) continue;
      EXPECT_NE(r.err.find(" 0 violations, 0 objects left\n"), std::string::npos) << entry.path() << "\n"
                                                                                  << r.err;
    }
  }
  EXPECT_GT(programs, 50);
}

}  // namespace
}  // namespace gk::tests
