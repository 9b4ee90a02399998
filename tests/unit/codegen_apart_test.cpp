// Work on threads that nobody has to wait for: what comes back, what an interruption leaves behind, and that
// the process ends around it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "codegen_kernels.h"
#include "compiler/codegen/apart.h"

namespace gk::codegen {
namespace {

const Interrupted kNever = [] { return false; };
const Interrupted kAlways = [] { return true; };

TEST(CodegenApart, gives_what_the_work_gives) {
  const auto caller = std::this_thread::get_id();
  const auto made = run_apart(
      [&](const Interrupted&) -> Result<std::string> {
        EXPECT_NE(std::this_thread::get_id(), caller);
        return std::string("code");
      },
      kNever, nullptr);
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, "code");
  const auto failed = run_apart(
      [](const Interrupted&) -> Result<std::string> { return fail(ErrorKind::Internal, "E0901", "no"); },
      kNever, nullptr);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, "E0901");
  const auto thrown =
      run_apart([](const Interrupted&) -> Result<std::string> { throw std::bad_alloc(); }, kNever, nullptr);
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().code, "E0601");
}

TEST(CodegenApart, an_interruption_waits_for_nobody) {
  // Held by the work: it lives as long as that.
  const auto held = std::make_shared<std::atomic<bool>>(false);
  const std::weak_ptr<std::atomic<bool>> left = held;
  const auto stopped = run_apart(
      [held](const Interrupted& unwanted) -> Result<std::string> {
        while (!unwanted() || !*held) std::this_thread::yield();
        return std::string("too late");
      },
      kAlways, nullptr);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::Interrupted);
  EXPECT_FALSE(left.expired()) << "it goes on";
  *held = true;
  while (left.use_count() > 1) std::this_thread::yield();
}

#if !defined(__SANITIZE_THREAD__)
[[noreturn]] void spin() {
  for (volatile int i = 0;;) {
    i = static_cast<int>(i) + 1;
  }
}

TEST(CodegenApartDeathTest, the_process_ends_around_it) {
  EXPECT_EXIT(
      {
        const auto stopped = run_apart([](const Interrupted&) -> Result<std::string> { spin(); }, kAlways,
                                       reinterpret_cast<const void*>(&spin));
        std::exit(stopped ? 1 : 7);
      },
      testing::ExitedWithCode(7), "");
}
#endif

// A kernel of thousands of instructions: the compiler can be asked for it again, and for others meanwhile.
TEST(CodegenApart, a_giant_kernel_can_be_interrupted) {
  const auto kernel = [](int sines) {
    codegen_test::KernelBuilder b(ir::Kernel::Kind::User);
    const int z = b.buffer(DType::F64, false, true, {ir::KSize::fixed(8)});
    const int x = b.buffer(DType::F64, true, false, {ir::KSize::fixed(8)});
    b.axes({ir::KSize::fixed(8)});
    const int i = b.axis(0);
    int v = b.load_at(x, {i});
    for (int k = 0; k < sines; ++k) v = b.op(ir::Op::Sin, {v}, DType::F64);
    b.store_at(z, {i}, v);
    return b.take();
  };
  Compiler compiler({}, "");
  const auto build = [&](int sines, const Interrupted& interrupted) {
    return compiler.build(codegen_test::schedule_of(kernel(sines), {8}, {}, program::TargetKind::Host),
                          interrupted);
  };
  for (int after : {1, 2, 5}) {  // 0 is before the kernel
    std::atomic<int> asked{0};
    const auto caller = std::this_thread::get_id();
    const auto built = build(3000, [&] {
      EXPECT_EQ(std::this_thread::get_id(), caller) << "what it asks may be gone when the work ends";
      return asked++ >= after;
    });
    ASSERT_FALSE(built) << after;
    EXPECT_EQ(built.error().kind, ErrorKind::Interrupted);
  }
  EXPECT_EQ(compiler.stats().kernels_compiled, 0);
  EXPECT_TRUE(build(3, kNever));
  EXPECT_TRUE(build(150, kNever)) << "on a thread of its own";
  EXPECT_EQ(compiler.stats().kernels_compiled, 2);
}

}  // namespace
}  // namespace gk::codegen
