// The perceptron of mlp.gk written by hand in its own layout, activations [batch, in] and weights [in, out],
// both row-major, f32 in full precision: what a GPU allows. One kernel a layer, the same with programmatic
// edges, one cooperative kernel for all layers, and cuBLASLt's best algorithm with its fused epilogue. All as
// graphs. Build: nvcc -O3 -arch=sm_90 mlp.cu -lcublasLt -o mlp; without cuBLASLt: add -DNO_LT.
#include <cooperative_groups.h>
#ifndef NO_LT
#include <cublasLt.h>
#endif

#include <cmath>
#include <random>

#include "hand.cuh"

namespace cg = cooperative_groups;

constexpr int kBatch = 16, kWidth = 256, kLayers = 4, kThreads = 256;
constexpr int kSlices = kThreads / kBatch, kDepth = kWidth / kSlices;  // K is cut into slices of kDepth

// A block computes C columns for the whole batch. A thread has one row of the batch and one slice of K; lanes
// 16 apart hold two slices of the same row, so one shuffle and one pass through shared memory sum them up.
template <int C>
struct Columns {
  float v[C];
};

// Written as volatile loads so that all of them are on their way before anything is waited for: left to
// itself, the compiler moves them behind the wait for the layer before.
template <int C>
__device__ void load_weights(const float* w, int column, int slice, Columns<C> (&out)[kDepth]) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    const float* at = w + (slice * kDepth + k) * kWidth + column;
    if constexpr (C == 4)
      asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(out[k].v[0]), "=f"(out[k].v[1]), "=f"(out[k].v[2]), "=f"(out[k].v[3])
                   : "l"(at)
                   : "memory");
    else
      asm volatile("ld.global.v2.f32 {%0, %1}, [%2];"
                   : "=f"(out[k].v[0]), "=f"(out[k].v[1])
                   : "l"(at)
                   : "memory");
  }
}

template <int C>
__device__ void layer(const Columns<C> (&w)[kDepth], const float* h, const float* __restrict__ b, float* o,
                      int column, int slice, int row) {
  __shared__ float partial[kThreads / 32][kBatch][C];
  float sum[C] = {};
#pragma unroll
  for (int k = 0; k < kDepth; k += 4) {
    // Not through the read-only cache: with a grid barrier another block wrote this in the same kernel.
    const float4 x = __ldcg(reinterpret_cast<const float4*>(h + row * kWidth + slice * kDepth + k));
#pragma unroll
    for (int c = 0; c < C; ++c) {
      sum[c] = fmaf(x.x, w[k].v[c], sum[c]);
      sum[c] = fmaf(x.y, w[k + 1].v[c], sum[c]);
      sum[c] = fmaf(x.z, w[k + 2].v[c], sum[c]);
      sum[c] = fmaf(x.w, w[k + 3].v[c], sum[c]);
    }
  }
#pragma unroll
  for (int c = 0; c < C; ++c) sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], 16);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < 16)
#pragma unroll
    for (int c = 0; c < C; ++c) partial[warp][row][c] = sum[c];
  __syncthreads();
  const int t = static_cast<int>(threadIdx.x);
  if (t < kBatch * C) {
    const int r = t / C, c = t % C;
    float total = b[column + c];
#pragma unroll
    for (int p = 0; p < kThreads / 32; ++p) total += partial[p][r][c];
    __stcg(o + r * kWidth + column + c, fmaxf(total, 0.0f));
  }
}

template <int C>
__global__ void __launch_bounds__(kThreads)
    one_layer(const float* __restrict__ w, const float* h, const float* __restrict__ b, float* o) {
  const int column = static_cast<int>(blockIdx.x) * C, slice = static_cast<int>(threadIdx.x) / kBatch;
  Columns<C> weights[kDepth];
  load_weights<C>(w, column, slice, weights);
  layer<C>(weights, h, b, o, column, slice, static_cast<int>(threadIdx.x) % kBatch);
}

// The next layer starts early and loads its weights while this one computes.
template <int C>
__global__ void __launch_bounds__(kThreads)
    one_layer_early(const float* __restrict__ w, const float* h, const float* __restrict__ b, float* o) {
  const int column = static_cast<int>(blockIdx.x) * C, slice = static_cast<int>(threadIdx.x) / kBatch;
  Columns<C> weights[kDepth];
  cudaTriggerProgrammaticLaunchCompletion();
  load_weights<C>(w, column, slice, weights);
  cudaGridDependencySynchronize();
  layer<C>(weights, h, b, o, column, slice, static_cast<int>(threadIdx.x) % kBatch);
}

struct Pointers {
  const float *w[kLayers], *b[kLayers];
  float* h[kLayers + 1];
};

template <int C>
__global__ void __launch_bounds__(kThreads) all_layers(Pointers p) {
  const cg::grid_group grid = cg::this_grid();
  const int column = static_cast<int>(blockIdx.x) * C, slice = static_cast<int>(threadIdx.x) / kBatch;
  Columns<C> weights[kDepth];
  load_weights<C>(p.w[0], column, slice, weights);
#pragma unroll
  for (int l = 0; l < kLayers; ++l) {
    layer<C>(weights, p.h[l], p.b[l], p.h[l + 1], column, slice, static_cast<int>(threadIdx.x) % kBatch);
    if (l + 1 == kLayers) break;
    load_weights<C>(p.w[l + 1], column, slice, weights);
    grid.sync();
  }
}

struct Bench {
  cudaStream_t s;
  Pointers p;
  std::vector<double> want;

  void row(const std::string& system, const Graph& g) {
    CHECK(cudaMemset(p.h[kLayers], 0, kBatch * kWidth * sizeof(float)));
    CHECK(cudaGraphLaunch(g.exec, s));
    CHECK(cudaStreamSynchronize(s));
    report(s, "mlp", system, g, error_of(host_copy(p.h[kLayers], kBatch * kWidth), want));
  }
  template <int C>
  void by_hand() {
    const std::string of = ", " + std::to_string(C) + " columns a block";
    row("hand, a kernel a layer" + of, capture(s, [&] {
          for (int l = 0; l < kLayers; ++l)
            one_layer<C><<<kWidth / C, kThreads, 0, s>>>(p.w[l], p.h[l], p.b[l], p.h[l + 1]);
        }));
    row("hand, programmatic edges" + of, capture(s, [&] {
          for (int l = 0; l < kLayers; ++l) {
            cudaLaunchAttribute early{};
            early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
            early.val.programmaticStreamSerializationAllowed = 1;
            cudaLaunchConfig_t config{};
            config.gridDim = kWidth / C;
            config.blockDim = kThreads;
            config.stream = s;
            config.attrs = &early;
            config.numAttrs = l > 0 ? 1 : 0;
            CHECK(cudaLaunchKernelEx(&config, one_layer_early<C>, p.w[l], static_cast<const float*>(p.h[l]),
                                     p.b[l], p.h[l + 1]));
          }
        }));
    row("hand, one cooperative kernel" + of, capture(s, [&] {
          void* args[] = {&p};
          CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(all_layers<C>), dim3(kWidth / C),
                                            dim3(kThreads), args, 0, s));
        }));
  }
#ifndef NO_LT
  // Row-major [batch, out] = [batch, in] [in, out] is column-major [out, batch] = [out, in] [in, batch].
  void library() {
    cublasLtHandle_t lt;
    CHECK(cublasLtCreate(&lt));
    constexpr size_t kWorkspace = size_t{32} << 20;
    void* workspace = nullptr;
    CHECK(cudaMalloc(&workspace, kWorkspace));
    cublasLtMatmulDesc_t d;
    CHECK(cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    CHECK(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    cublasLtMatrixLayout_t a, c;
    CHECK(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, kWidth, kWidth, kWidth));
    CHECK(cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, kWidth, kBatch, kWidth));
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &kWorkspace, sizeof kWorkspace));
    const auto bias = [&](int l) {
      CHECK(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.b[l], sizeof p.b[l]));
    };
    bias(0);
    cublasLtMatmulHeuristicResult_t found[32];
    int count = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(lt, d, a, c, c, c, preference, 32, found, &count));
    const float one = 1, zero = 0;
    Graph first, best;
    double least = 1e30;
    for (int i = 0; i < count; ++i) {
      bool usable = true;
      const auto work = [&] {
        for (int l = 0; l < kLayers; ++l) {
          bias(l);
          usable =
              usable && cublasLtMatmul(lt, d, &one, p.w[l], a, p.h[l], c, &zero, p.h[l + 1], c, p.h[l + 1], c,
                                       &found[i].algo, workspace, kWorkspace, s) == CUBLAS_STATUS_SUCCESS;
        }
      };
      work();
      CHECK(cudaStreamSynchronize(s));
      if (!usable) continue;
      const Graph g = capture(s, work);
      const double t = quick_us(s, g);
      if (first.exec == nullptr) first = g;
      if (t < least) {
        least = t;
        best = g;
      }
    }
    if (first.exec != nullptr) row("cublasLt, first heuristic", first);
    if (best.exec != nullptr) row("cublasLt, best algorithm", best);
  }
#endif
};

int main() {
  Bench bench;
  CHECK(cudaStreamCreateWithFlags(&bench.s, cudaStreamNonBlocking));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<double> h;
  for (int l = 0; l <= kLayers; ++l) {
    std::vector<float> values(kBatch * kWidth);
    for (auto& v : values) v = normal(random);
    bench.p.h[l] = device_copy(values);
    if (l == 0) h.assign(values.begin(), values.end());
  }
  for (int l = 0; l < kLayers; ++l) {
    std::vector<float> w(kWidth * kWidth), b(kWidth);
    for (auto& v : w) v = normal(random) / 16;
    for (auto& v : b) v = normal(random);
    bench.p.w[l] = device_copy(w);
    bench.p.b[l] = device_copy(b);
    std::vector<double> next(kBatch * kWidth);
    for (int r = 0; r < kBatch; ++r)
      for (int c = 0; c < kWidth; ++c) {
        double sum = b[c];
        for (int k = 0; k < kWidth; ++k) sum += h[r * kWidth + k] * w[k * kWidth + c];
        next[r * kWidth + c] = std::max(sum, 0.0);
      }
    h = next;
  }
  bench.want = h;
  bench.by_hand<4>();
  bench.by_hand<2>();
#ifndef NO_LT
  bench.library();
#endif
  return 0;
}
