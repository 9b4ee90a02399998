// Reductions and matrix products: values, the fixed order of sums, extents of 0, 1 and primes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "codegen_kernels.h"

namespace gk::codegen_test {
namespace {

using ir::ReduceOp;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// out[rows] = op over the columns of x[rows, columns] (along = 1), or the other way round (along = 0).
std::shared_ptr<ir::Kernel> reduction(ReduceOp op, DType t, DType acc, int64_t rows, int64_t columns,
                                      int along, bool swap_strides = false) {
  KernelBuilder b(ir::Kernel::Kind::Reduce);
  const bool arg = op == ReduceOp::ArgMin || op == ReduceOp::ArgMax;
  const DType out_type = arg ? DType::I64 : t;
  const int x = b.buffer(t, true, false), out = b.buffer(out_type, false, true);
  const int64_t kept = along == 1 ? rows : columns, gone = along == 1 ? columns : rows;
  b.axes({ir::KSize::fixed(kept)});
  b.kernel().reduce_axes = {ir::KSize::fixed(gone)};
  std::vector<int64_t> strides =
      along == 1 ? std::vector<int64_t>{columns, 1} : std::vector<int64_t>{1, columns};
  if (swap_strides) strides = along == 1 ? std::vector<int64_t>{1, rows} : std::vector<int64_t>{rows, 1};
  const int r = b.reduce(op, b.load(x, strides), t, acc);
  b.in_epilogue();
  const DType result = arg ? DType::I64 : acc;
  b.store(out, b.cast(b.result(r, result), out_type), {1});
  return b.take();
}

/// The order that Note [Order of reductions on the host] states.
float ordered_sum(const std::vector<float>& x) {
  float partial[32] = {};
  for (size_t i = 0; i < x.size(); ++i) partial[i % 32] += x[i];
  for (int half = 16; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) partial[j] += partial[j + half];
  return partial[0];
}

std::vector<float> noise(int64_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> unit(-1, 1);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = unit(random);
  return x;
}

TEST(CodegenReduce, sums_have_one_order_by_rows_by_columns_and_by_chunks) {
  for (const int64_t n : {0, 1, 5, 31, 32, 33, 255, 256, 257, 1031}) {
    for (const int64_t m : {1, 3, 64, 67}) {
      const std::vector<float> x = noise(m * n);
      std::vector<float> transposed(x.size()), want;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) transposed[j * m + i] = x[i * n + j];
      for (int64_t i = 0; i < m; ++i)
        want.push_back(ordered_sum(std::vector<float>(x.begin() + i * n, x.begin() + (i + 1) * n)));
      std::vector<float> got(static_cast<size_t>(m), -1);
      HostRun run;
      run(reduction(ReduceOp::Sum, DType::F32, DType::F32, m, n, 1), {m}, {n},
          {const_cast<float*>(x.data()), got.data()});
      ASSERT_EQ(got, want) << m << " x " << n;
      run(reduction(ReduceOp::Sum, DType::F32, DType::F32, m, n, 1, true), {m}, {n},
          {transposed.data(), got.data()}, {}, 5);
      ASSERT_EQ(got, want) << "transposed " << m << " x " << n;
    }
  }
}

TEST(CodegenReduce, sums_over_two_axes_run_over_the_linear_index) {
  KernelBuilder b(ir::Kernel::Kind::Reduce);
  const int x = b.buffer(DType::F32, true, false), out = b.buffer(DType::F32, false, true);
  b.kernel().reduce_axes = {ir::KSize::fixed(13), ir::KSize::fixed(77)};
  const int r = b.reduce(ReduceOp::Sum, b.load(x, {77, 1}), DType::F32, DType::F32);
  b.in_epilogue();
  b.store(out, b.result(r, DType::F32), {});
  const std::vector<float> v = noise(13 * 77);
  float got = 0;
  auto k = b.take();
  HostRun run;
  run(k, {}, {13, 77}, {const_cast<float*>(v.data()), &got});
  EXPECT_EQ(got, ordered_sum(v));
  expect_assembles(k, {}, {13, 77});
}

TEST(CodegenReduce, every_op_and_argument_ties) {
  const int64_t n = 300;
  std::vector<int32_t> x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<int32_t>((i * 7919) % 101) - 50;
  const auto top = std::max_element(x.begin(), x.end()), bottom = std::min_element(x.begin(), x.end());
  int32_t out = 0;
  int64_t at = -1;
  HostRun run;
  run(reduction(ReduceOp::Max, DType::I32, DType::I32, 1, n, 1), {1}, {n}, {x.data(), &out});
  EXPECT_EQ(out, *top);
  run(reduction(ReduceOp::Min, DType::I32, DType::I32, 1, n, 1), {1}, {n}, {x.data(), &out});
  EXPECT_EQ(out, *bottom);
  run(reduction(ReduceOp::ArgMax, DType::I32, DType::I64, 1, n, 1), {1}, {n}, {x.data(), &at});
  EXPECT_EQ(at, top - x.begin());
  run(reduction(ReduceOp::ArgMin, DType::I32, DType::I64, 1, n, 1, true), {1}, {n}, {x.data(), &at});
  EXPECT_EQ(at, bottom - x.begin());
  run(reduction(ReduceOp::Sum, DType::I32, DType::I32, 1, n, 1), {1}, {n}, {x.data(), &out});
  EXPECT_EQ(out, std::accumulate(x.begin(), x.end(), 0));
  std::vector<int32_t> small{3, -1, 5, 7};
  run(reduction(ReduceOp::Prod, DType::I32, DType::I32, 1, 4, 1), {1}, {4}, {small.data(), &out});
  EXPECT_EQ(out, -105);
  bool flags[] = {false, true, false}, answer = false;
  run(reduction(ReduceOp::Any, DType::Bool, DType::Bool, 1, 3, 1), {1}, {3}, {flags, &answer});
  EXPECT_TRUE(answer);
  run(reduction(ReduceOp::All, DType::Bool, DType::Bool, 1, 3, 1), {1}, {3}, {flags, &answer});
  EXPECT_FALSE(answer);
}

TEST(CodegenReduce, nan_wins_and_the_first_one_is_found) {
  std::vector<float> x = noise(100);
  float out = 0;
  int64_t at = -1;
  x[70] = x[40] = kNan;
  HostRun run;
  for (const ReduceOp op : {ReduceOp::Min, ReduceOp::Max}) {
    run(reduction(op, DType::F32, DType::F32, 1, 100, 1), {1}, {100}, {x.data(), &out});
    EXPECT_TRUE(std::isnan(out));
  }
  for (const ReduceOp op : {ReduceOp::ArgMin, ReduceOp::ArgMax}) {
    run(reduction(op, DType::F32, DType::I64, 1, 100, 1), {1}, {100}, {x.data(), &at});
    EXPECT_EQ(at, 40);
  }
}

TEST(CodegenReduce, ptx_of_every_shape_assembles) {
  for (const auto& [op, t] :
       {std::pair{ReduceOp::Sum, DType::F16}, {ReduceOp::Max, DType::F64}, {ReduceOp::ArgMax, DType::I64}})
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4096, 33}, {100, 5000}, {1, 100000}})
      for (const int along : {0, 1}) {
        const DType acc = op == ReduceOp::ArgMax ? DType::I64 : t == DType::F16 ? DType::F32 : t;
        auto k = reduction(op, t, acc, rows, columns, along);
        const int64_t kept = along == 1 ? rows : columns, gone = along == 1 ? columns : rows;
        const std::string ptx = ptx_of(k, {kept}, {gone});
        if (ptxas().empty()) continue;
        EXPECT_EQ(assemble(ptx, 90), "");
      }
  for (const ReduceOp op : {ReduceOp::Any, ReduceOp::All})
    expect_assembles(reduction(op, DType::Bool, DType::Bool, 100, 3000, 1), {100}, {3000});
  expect_assembles(reduction(ReduceOp::Sum, DType::F32, DType::F32, 100, 3000, 0), {3000}, {100});
}

std::shared_ptr<ir::Kernel> product(DType t, DType acc, int64_t batch, int64_t m, int64_t n, int64_t k,
                                    bool ta, bool tb) {
  KernelBuilder b(ir::Kernel::Kind::MatMul);
  const int x = b.buffer(t, true, false), y = b.buffer(t, true, false), z = b.buffer(t, false, true);
  b.axes({ir::KSize::fixed(batch), ir::KSize::fixed(m), ir::KSize::fixed(n)});
  b.kernel().reduce_axes = {ir::KSize::fixed(k)};
  auto& mm = b.kernel().matmul;
  mm.dtype = t;
  mm.accumulator = acc;
  mm.a = ta ? b.access(x, {m * k, 1, 0, m}) : b.access(x, {m * k, k, 0, 1});
  mm.b = tb ? b.access(y, {k * n, 0, k, 1}) : b.access(y, {k * n, 0, 1, n});
  b.in_epilogue();
  b.store(z, b.cast(b.result(0, acc), t), {m * n, n, 1});
  return b.take();
}

TEST(CodegenMatMul, shapes_0_1_and_primes_match_sums_in_order) {
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                {5, 7, 11},
                                {4, 32, 17},
                                {37, 67, 29},
                                {8, 64, 0},
                                {0, 4, 4},
                                {3, 0, 5},
                                {13, 96, 64}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const int64_t batch = 2;
        const std::vector<float> x = noise(batch * m * k), y = noise(batch * k * n, 2);
        std::vector<float> z(static_cast<size_t>(batch * m * n) + 1, -7), want = z;
        for (int64_t c = 0; c < batch; ++c)
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              float sum = 0;
              for (int64_t l = 0; l < k; ++l)
                sum = std::fma(x[c * m * k + (ta ? l * m + i : i * k + l)],
                               y[c * k * n + (tb ? j * k + l : l * n + j)], sum);
              want[(c * m + i) * n + j] = sum;
            }
        HostRun run;
        run(product(DType::F32, DType::F32, batch, m, n, k, ta, tb), {batch, m, n}, {k},
            {const_cast<float*>(x.data()), const_cast<float*>(y.data()), z.data()}, {}, 3);
        ASSERT_EQ(z, want) << m << " " << n << " " << k << " " << ta << tb;
      }
}

TEST(CodegenMatMul, integers_wrap) {
  std::vector<int8_t> x(33 * 40, 100), y(40 * 35, 3), z(33 * 35);
  HostRun run;
  run(product(DType::I8, DType::I8, 1, 33, 35, 40, false, false), {1, 33, 35}, {40},
      {x.data(), y.data(), z.data()});
  for (const int8_t v : z) ASSERT_EQ(v, static_cast<int8_t>(100 * 3 * 40));
}

TEST(CodegenMatMul, ptx_assembles) {
  for (const DType t : {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64, DType::U8}) {
    const DType acc = t == DType::F16 || t == DType::BF16 ? DType::F32 : t;
    const std::string small = ptx_of(product(t, acc, 1, 16, 256, 256, false, false), {1, 16, 256}, {256});
    const std::string large =
        ptx_of(product(t, acc, 1, 1000, 1000, 1000, false, true), {1, 1000, 1000}, {1000});
    if (ptxas().empty()) continue;
    EXPECT_EQ(assemble(small, 90), "");
    EXPECT_EQ(assemble(large, 90), "");
  }
  expect_assembles(product(DType::F32, DType::F32, 1, 16, 256, 256, false, false), {1, 16, 256}, {256});
}

}  // namespace
}  // namespace gk::codegen_test
