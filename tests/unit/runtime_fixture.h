// Small programs for the runtime's tests, the same on every device: C++ functions behind a test host loader,
// or PTX. Owns the opened device. Promises that a device that does not answer skips the test with its reason.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/exec/exec.h"
#include "runtime/hal/device.h"
#include "runtime/hal/trace/trace.h"

namespace gk::test {

/// Kernels: fill(p, v, n), add(p, v, n), axpy(y, x, v, n), slow(p, v, n) which is add after some 20 ms,
/// below(c, x, v, n) which makes the byte c[0] tell whether x[0] < v, and fault(index, extent, faults, step)
/// which reports an index out of range.
std::shared_ptr<const program::Code> code_for(program::TargetKind target);

/// Gives the process the loader of the C++ functions.
void use_test_code();

using program::Arg;
using program::Ref;
Ref slot(int32_t index, int64_t size_bytes, int64_t offset_bytes = 0);
Ref arena(int64_t offset_bytes, int64_t size_bytes);
Arg pointer(Ref r);
Arg value(Scalar s);
Arg scalar_slot(int32_t index, DType dtype = DType::F32);

/// Builds a program over f32 arrays of `n` elements.
class Builder {
 public:
  Builder(const hal::Device& device, std::string name, int64_t n);
  Builder& slots(int count);
  Builder& slot_of(std::string name, int64_t size_bytes);
  Builder& scalars(std::vector<float> values);
  Builder& temporaries(int count);  // arena space for so many arrays
  Ref array(int32_t i) const { return slot(i, bytes_); }
  Ref temporary(int32_t i) const { return arena(i * stride_, bytes_); }
  Builder& fill(Ref p, Arg v);
  Builder& add(Ref p, Arg v);
  Builder& slow(Ref p, Arg v);
  Builder& axpy(Ref y, Ref x, Arg v);
  Builder& copy(Ref dst, Ref src);
  Builder& fault(int64_t index, int64_t extent, uint8_t kind = 0);
  Builder& matmul(program::MatMulCall call, Ref a, Ref b, Ref c);
  /// condition = x[0] < v
  Builder& below(Ref condition, Ref x, Arg v);
  /// A step of one or two bodies; reads and writes are those given, after the condition.
  Builder& repeat(int64_t times, program::Body body, std::vector<Ref> touched);
  Builder& conditional(program::Step::Kind kind, Ref condition, std::vector<program::Body> bodies,
                       std::vector<Ref> touched);
  std::shared_ptr<const program::Program> build();

 private:
  program::Step& launch(std::string function, std::vector<Arg> args, int64_t items);
  program::Program p_;
  int64_t n_, bytes_, stride_;
};

/// A runtime over one device, by the test's parameter.
class RuntimeTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;
  void open(int64_t limit_bytes = 0);
  Builder builder(std::string name = "p", int64_t n = kN) const { return {*device, std::move(name), n}; }
  std::shared_ptr<exec::Loaded> load(std::shared_ptr<const program::Program> p);
  memory::BlockPtr block(float value, int64_t n = kN);
  std::vector<float> values(const memory::BlockPtr& b, int64_t n = kN);
  /// All values of the block are `v`.
  ::testing::AssertionResult all(const memory::BlockPtr& b, float v, int64_t n = kN);
  exec::Bindings bind(std::vector<memory::BlockPtr> blocks, std::vector<float> scalars = {}) const;
  static constexpr int64_t kN = 1000;

  std::shared_ptr<hal::Device> device;
  std::shared_ptr<exec::Runtime> rt;
};

/// Checks a Result and takes its value; the test ends where it failed.
template <class T>
T need(Result<T> r) {
  if (!r) {
    ADD_FAILURE() << r.error().code << ": " << r.error().message;
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}

}  // namespace gk::test

#define GK_OK(expr)                                                                                    \
  do {                                                                                                 \
    const auto gk_result = (expr);                                                                     \
    ASSERT_TRUE(gk_result.has_value()) << gk_result.error().code << ": " << gk_result.error().message; \
  } while (0)
#define GK_ALL_DEVICES(suite)                                               \
  INSTANTIATE_TEST_SUITE_P(Cpu, suite, ::testing::Values("host", "trace")); \
  INSTANTIATE_TEST_SUITE_P(Gpu, suite, ::testing::Values("cuda", "trace:cuda"))
