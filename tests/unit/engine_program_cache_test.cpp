#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "compiler/engine/device_effects.h"
#include "compiler/engine/program_cache.h"
#include "runtime/hal/device.h"
#include "tests/unit/ir_build.h"

namespace gk::engine {
namespace {

using namespace std::chrono_literals;

class EngineProgramCache : public ::testing::Test {
 protected:
  void SetUp() override {
    install_host_loader();
    auto opened = hal::open("host", {});
    ASSERT_TRUE(opened);
    auto made = exec::Runtime::create(*opened, 0);
    ASSERT_TRUE(made);
    runtime = *made;
    cache = std::make_unique<ProgramCache>(**opened, "");
  }
  static ir::Module sine_of(int64_t n) {
    gk::test::Build b;
    const auto x = b.input(gk::test::type(DType::F32, {n}));
    b.output(b.add(ir::Op::Sin, {x}));
    return std::move(b.m);
  }
  Result<std::shared_ptr<exec::Loaded>> get(const ir::Module& m, std::function<bool()> interrupted = {}) {
    Counters counters;
    const std::function<void(std::string_view)> silent;
    return cache->get(*runtime, m, {counters, silent, nullptr, std::move(interrupted)});
  }
  std::shared_ptr<exec::Runtime> runtime;
  std::unique_ptr<ProgramCache> cache;
};

TEST_F(EngineProgramCache, one_program_for_one_structure) {
  const auto a = get(sine_of(4)), b = get(sine_of(4)), c = get(sine_of(5));
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(*a, *b);
  EXPECT_NE(*a, *c);
  EXPECT_EQ(cache->stats().compiles, 2);
  EXPECT_EQ(cache->stats().hits, 1);
}

// The one who compiles is asked whether it is interrupted, and takes its time with the answer.
TEST_F(EngineProgramCache, what_is_known_is_had_while_another_compiles) {
  const auto known = get(sine_of(4));
  ASSERT_TRUE(known);
  std::atomic<bool> compiling{false}, go_on{false};
  std::thread other([&] {
    const auto late = std::chrono::steady_clock::now() + 20s;
    EXPECT_TRUE(get(sine_of(6), [&] {
      compiling = true;
      while (!go_on && std::chrono::steady_clock::now() < late) std::this_thread::sleep_for(1ms);
      return false;
    }));
  });
  while (!compiling) std::this_thread::sleep_for(1ms);
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  const auto too_late = [&] { return std::chrono::steady_clock::now() > give_up; };
  const auto again = get(sine_of(4), too_late);
  const auto interrupted = get(sine_of(7), [] { return true; });
  go_on = true;
  other.join();
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *known);
  ASSERT_FALSE(interrupted);
  EXPECT_EQ(interrupted.error().code, "E0806");
  EXPECT_TRUE(get(sine_of(7)));
}

}  // namespace
}  // namespace gk::engine
