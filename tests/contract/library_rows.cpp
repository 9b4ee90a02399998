// Rows about what libraries do inside a capture: allocation nodes of theirs, scalars by reference. Real
// cuBLAS, called by the host program on the context's stream.
#include <array>
#include <memory>

#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

constexpr const char* kOnlyCuda = "libraries that record into a capture are on the GPU alone";

CONTRACT_ROW_GPU(
    36J,
    "a library's allocation nodes: relaunched, freed with the executable; graph memory returns to its start",
    kOnlyCuda) {
  const cuda::Host host;
  constexpr size_t kBytes = size_t{4} << 20, kFloats = kBytes / 4;
  Tensor x = array(0, kFloats), y = array(0, kFloats);
  ctx.synchronize();
  engine.reclaim();
  const int64_t used = cuda::Host::graph_used_bytes(), reserved = cuda::Host::graph_reserved_bytes();
  // Twice: memory that the library never gives back, and memory that it does.
  for (const bool freed : {false, true}) {
    Graph g = ctx.capture([&] {
      cuda::Stream s = ctx.stream();
      void* t = cuda::allocate_async(s, kBytes);
      cuda::fill_words(s, t, cuda::word_of(3), kFloats);
      cuda::copy(s, x.data(), t, kBytes);
      if (freed) cuda::free_async(s, t);
      axpy(y, x, 1.0F);
    });
    EXPECT_TRUE(all(x, 0));
    scale(y, 0);
    scale(x, 0);
    Exec e = g.instantiate();
    e.launch(ctx);
    ctx.synchronize();
    const int64_t after_one = cuda::Host::graph_used_bytes();
    for (int i = 1; i < 6; ++i) {
      e.launch(ctx);
      EXPECT_TRUE(all(y, static_cast<float>(3 * (i + 1)))) << "launch " << i;
      scale(x, 0);
    }
    e.launch(ctx, 4);
    EXPECT_TRUE(all(y, 30));
    EXPECT_EQ(cuda::Host::graph_used_bytes(), after_one);
    // An update that makes the executable anew takes the old one's allocations along.
    if (auto changed = e.try_update(ctx.capture([&] {
          cuda::Stream s = ctx.stream();
          void* t = cuda::allocate_async(s, kBytes);
          cuda::fill_words(s, t, cuda::word_of(5), kFloats);
          cuda::copy(s, x.data(), t, kBytes);
          if (freed) cuda::free_async(s, t);
          axpy(y, x, 1.0F);
        }));
        changed) {
      scale(y, 0);
      e.launch(ctx, 2);
      EXPECT_TRUE(all(y, 10));
      EXPECT_LE(cuda::Host::graph_used_bytes(), after_one);
    } else {
      EXPECT_TRUE(changed.error().code() == "E0709" || changed.error().code() == "E0705")
          << changed.error().what();
      e.launch(ctx);
      EXPECT_TRUE(all(y, 33));
    }
    scale(x, 0);
    scale(y, 0);
    // In flight as it goes.
    Gate gate(ctx);
    e.launch(ctx);
    e.close();
    g.close();
    gate.open();
    ctx.synchronize();
    EXPECT_FALSE(gate.was_forced());
    engine.reclaim();
    EXPECT_EQ(cuda::Host::graph_used_bytes(), used);
    EXPECT_EQ(cuda::Host::graph_reserved_bytes(), reserved);
    scale(x, 0);
    scale(y, 0);
  }
  // What cuBLAS itself needs while it is captured.
  const cuda::Blas blas;
  Tensor a = ctx.full(f32, {512, 512}, 1), c = ctx.full(f32, {512, 512}, 0);
  {
    const float one = 1, zero = 0;
    Exec e = ctx.capture([&] {
                  blas.set_stream(ctx.stream());
                  blas.sgemm(512, 512, 512, &one, a.data(), a.data(), &zero, c.data());
                })
                 .instantiate();
    e.launch(ctx, 3);
    EXPECT_TRUE(all(c, 512));
    e.launch(ctx);
    e.close();
    ctx.synchronize();
  }
  engine.reclaim();
  EXPECT_EQ(cuda::Host::graph_used_bytes(), used);
}

CONTRACT_ROW_GPU(41J,
                 "scalars by reference to a library: three replays equal, whatever became of the scalars",
                 kOnlyCuda) {
  const cuda::Host host;
  const cuda::Blas blas;
  constexpr int kRows = 64, kColumns = 48;
  std::vector<float> matrix(kRows * kColumns), vector(kColumns), expected(kRows, 0);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < vector.size(); ++i) vector[i] = static_cast<float>(i % 5) - 2;
  for (size_t r = 0; r < kRows; ++r)
    for (size_t k = 0; k < kColumns; ++k) expected[r] += 2 * matrix[r * kColumns + k] * vector[k];
  Tensor a = ctx.from_host(matrix, {kRows, kColumns}), x = ctx.from_host(vector, {kColumns});
  Tensor y = ctx.full(f32, {kRows}, -99), accumulated = ctx.full(f32, {kRows}, 1);
  Exec e;
  {
    // On the heap, so that they can be overwritten and given back once captured.
    auto scalars = std::make_unique<std::array<float, 3>>(std::array<float, 3>{2, 0, 1});
    float& alpha = (*scalars)[0];
    float& zero = (*scalars)[1];
    float& one = (*scalars)[2];
    e = ctx.capture([&] {
             blas.set_stream(ctx.stream());
             blas.sgemv(kRows, kColumns, &alpha, a.data(), x.data(), &zero, y.data());
             blas.sgemv(kRows, kColumns, &alpha, a.data(), x.data(), &one, accumulated.data());
           })
            .instantiate();
    scalars->fill(1e30F);
  }
  for (int i = 1; i <= 3; ++i) {
    e.launch(ctx);
    EXPECT_EQ(values(y), expected) << "replay " << i;
    std::vector<float> sum(kRows, 1);
    for (size_t r = 0; r < kRows; ++r) sum[r] += static_cast<float>(i) * expected[r];
    EXPECT_EQ(values(accumulated), sum) << "replay " << i;
  }

  // Scalars on the device, made inside the capture and dropped there: they are leased and hold their values,
  // whatever is allocated later.
  Tensor z = ctx.full(f32, {kRows}, -99);
  const float two = 2;
  Exec on_device = ctx.capture([&] {
                        Tensor alpha = ctx.empty(f32, {}), beta = ctx.full(f32, {}, 0);
                        alpha.copy_from(ctx, &two, sizeof two);
                        blas.set_stream(ctx.stream());
                        blas.scalars_on_device(true);
                        blas.sgemv(kRows, kColumns, alpha.data_as<float>(), a.data(), x.data(),
                                   beta.data_as<float>(), z.data());
                        blas.scalars_on_device(false);
                      })
                       .instantiate();
  for (int i = 1; i <= 3; ++i) {
    const std::vector<Tensor> over = churn(20, 1e30F, 1);
    on_device.launch(ctx);
    EXPECT_EQ(values(z), expected) << "replay " << i;
  }
  // The same eagerly.
  blas.set_stream(ctx.stream());
  const float alpha = 2, zero = 0;
  blas.sgemv(kRows, kColumns, &alpha, a.data(), x.data(), &zero, z.data());
  EXPECT_EQ(values(z), expected);
}

}  // namespace
}  // namespace gk::contract_test
