#include "codegen_kernels.h"

namespace gk::codegen_test {
namespace {

std::shared_ptr<ir::Kernel> axpy(ir::KSize n) {
  KernelBuilder b;
  const int z = b.buffer(DType::F32, false, true), x = b.buffer(DType::F32, true, false),
            y = b.buffer(DType::F32, true, false), a = b.scalar(DType::F32);
  if (n.param == -2) n = ir::KSize::dynamic(b.scalar(DType::I64));
  b.axes({n});
  const int v = b.op(Op::Mul, {b.param(a), b.load(x, {1})}, DType::F32);
  b.store(z, b.op(Op::Add, {v, b.load(y, {1})}, DType::F32), {1});
  return b.take();
}
const ir::KSize kDynamic{0, -2};

bool contains(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

TEST(CodegenMap, axpy_on_the_host_in_chunks_of_any_size) {
  for (const int64_t n : {1, 7, 64, 1000}) {
    for (const int64_t grain : {1, 13, 4096}) {
      std::vector<float> x(n), y(n), z(n, -1);
      for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i) * 0.1f, y[i] = static_cast<float>(n - i);
      HostRun run;
      run(axpy(kDynamic), {n}, {}, {z.data(), x.data(), y.data()}, {Scalar::of_float(2.5), Scalar::of_int(n)},
          grain);
      for (int64_t i = 0; i < n; ++i) {
        volatile float product = 2.5f * x[i];
        ASSERT_EQ(z[i], product + y[i]) << i;
      }
    }
  }
}

TEST(CodegenMap, host_loops_are_vectorised) {
  auto text = host_compiler().llvm_text(axpy(kDynamic));
  ASSERT_TRUE(text.has_value());
  EXPECT_TRUE(contains(*text, "<8 x float>") || contains(*text, "<16 x float>")) << *text;
  EXPECT_FALSE(contains(*text, "fmuladd"));

  KernelBuilder b;
  const int z = b.buffer(DType::F32, true, true);
  b.axes({ir::KSize::dynamic(b.scalar(DType::I64))});
  int v = b.load(z, {1});
  for (int i = 0; i < 3; ++i) v = b.op(Op::Tanh, {v}, DType::F32);
  b.store(z, v, {1});
  text = host_compiler().llvm_text(b.take());
  ASSERT_TRUE(text.has_value());
  EXPECT_TRUE(contains(*text, "<8 x float>") || contains(*text, "<16 x float>")) << *text;
}

TEST(CodegenMap, ptx_rounds_each_operation) {
  const std::string ptx =
      ptx_of(axpy(kDynamic), {1 << 20}, {}, 90, {Scalar::of_float(2), Scalar::of_int(1 << 20)});
  EXPECT_TRUE(contains(ptx, "add.rn.f32")) << ptx;
  EXPECT_TRUE(contains(ptx, "mul.rn.f32"));
  EXPECT_FALSE(contains(ptx, "fma"));
  EXPECT_FALSE(contains(ptx, ".ftz"));
  EXPECT_TRUE(contains(ptx, "ld.global.nc.v4")) << ptx;
  EXPECT_TRUE(contains(ptx, "st.global.v4"));
}

TEST(CodegenMap, ptx_assembles) {
  expect_assembles(axpy(kDynamic), {1 << 20}, {}, {Scalar::of_float(2), Scalar::of_int(1 << 20)});
}

}  // namespace
}  // namespace gk::codegen_test
