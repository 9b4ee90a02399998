#include "runtime/library/host_blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "runtime/base/options.h"
#include "runtime/base/process.h"

namespace gk::library {
namespace {

// cblas.h's values, fixed by the BLAS Technical Forum's C interface.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;
// One tile of a big product. Fixed, so that results do not depend on the number of threads.
constexpr int64_t kTileRows = 256, kTileCols = 512;
// What one call in progress needs of the address space: OpenBLAS's buffer on x86-64 (32 << 22 bytes) and what
// goes with it.
constexpr size_t kPlaceBytes = size_t{136} << 20;
// Below this many multiplications a product is one call on one thread.
constexpr double kSerialLimit = 128.0 * 128.0 * 128.0;

template <class T>
T relu(T x) {
  return x > T(0) ? x : (x != x ? x : T(0));
}

}  // namespace

// OpenBLAS picks its kernels by the processor's model and falls back to those of 2004 for a model newer than
// itself. What the processor can do is the better guide; a choice that the user made stays.
static void choose_kernels() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    set_default_environment("OPENBLAS_CORETYPE", "SkylakeX");
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    set_default_environment("OPENBLAS_CORETYPE", "Haswell");
}

const HostBlas* HostBlas::open() {
  choose_kernels();
  // Its own threads are never used; some need more address space than a limited process has.
  const TemporaryEnvironment no_threads("OPENBLAS_NUM_THREADS", "1");
  void* lib = nullptr;
  for (const char* name : {"libopenblas.so.0", "libopenblas.so"}) {
    lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (lib != nullptr) break;
  }
  if (lib == nullptr) return nullptr;
  // Never closed: the library keeps threads and buffers that outlive any one user.
  static HostBlas blas;
  blas.sgemm_ = reinterpret_cast<Sgemm>(dlsym(lib, "cblas_sgemm"));
  blas.dgemm_ = reinterpret_cast<Dgemm>(dlsym(lib, "cblas_dgemm"));
  auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(lib, "openblas_set_num_threads"));
  if (blas.sgemm_ == nullptr || blas.dgemm_ == nullptr || set_threads == nullptr) return nullptr;
  set_threads(1);
  blas.take_buffer_ = reinterpret_cast<void* (*)(int)>(dlsym(lib, "blas_memory_alloc"));
  blas.give_buffer_ = reinterpret_cast<void (*)(void*)>(dlsym(lib, "blas_memory_free"));
  const Result<void> ready = blas.ready();
  // Without memory now there may be some later, and until then every product says so.
  return ready || ready.error().kind == ErrorKind::OutOfMemory ? &blas : nullptr;
}

// Note [Places]
// OpenBLAS packs matrices into a buffer that it maps for each call in progress and keeps for later ones.
// Where the system refuses it one, under a limit of the address space, it asks again without end. So a call
// needs a place, there are as many as buffers that it has mapped, and those are mapped one by one, each after
// its memory was seen to be had. More than the first are made only where much is left for others.
Result<void> HostBlas::make_places() const {
  const int want = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostPlaces);
  std::vector<void*> buffers;
  int made = 0;
  for (; made < want && address_space_left(made == 0 ? kPlaceBytes : 4 * kPlaceBytes); ++made) {
    if (take_buffer_ != nullptr && give_buffer_ != nullptr) buffers.push_back(take_buffer_(0));
  }
  for (void* b : buffers) give_buffer_(b);
  if (made == 0) {
    return fail(
        ErrorKind::OutOfMemory, "E0601",
        fmt::format("out of memory: the library for matrix products needs {} MiB of address space, which "
                    "this process may not have",
                    kPlaceBytes >> 20));
  }
  places_.release(made);
  return {};
}

Result<void> HostBlas::ready() const {
  if (ready_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(mutex_);
  if (ready_.load(std::memory_order_relaxed)) return {};
  if (!checked_) {
    GK_CHECK(make_places());
    checked_ = true;
    right_ = check();
  }
  if (!right_) return fail(ErrorKind::Device, "E0507", "the library for matrix products miscomputes");
  ready_.store(true, std::memory_order_release);
  return {};
}

const HostBlas* HostBlas::get() {
  static const HostBlas* blas = open();
  return blas;
}

// Small whole numbers: every order of summation gives the same, exact value.
template <class T>
static bool product_is_right(const std::function<void(const MatMulOp&)>& run, DType dtype, bool trans_a,
                             bool trans_b) {
  constexpr int64_t m = 17, n = 13, k = 9;
  program::MatMulCall call;
  call.dtype = dtype;
  call.m = m, call.n = n, call.k = k;
  call.trans_a = trans_a, call.trans_b = trans_b;
  call.lda = trans_a ? m : k, call.ldb = trans_b ? k : n, call.ldc = n;
  std::vector<T> a(m * k), b(k * n), c(m * n, T(-1));
  for (size_t i = 0; i < a.size(); ++i) a[i] = T(static_cast<int>(i * 7 % 23) - 11);
  for (size_t i = 0; i < b.size(); ++i) b[i] = T(static_cast<int>(i * 5 % 19) - 9);
  run({&call, a.data(), b.data(), nullptr, c.data()});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += a[static_cast<size_t>(trans_a ? p * m + i : i * k + p)] *
               b[static_cast<size_t>(trans_b ? j * k + p : p * n + j)];
      }
      if (c[static_cast<size_t>(i * n + j)] != sum) return false;
    }
  }
  return true;
}

bool HostBlas::check() const {
  const ForEach serial = [](int64_t count, const std::function<void(int64_t)>& body) {
    for (int64_t i = 0; i < count; ++i) body(i);
  };
  const auto product = [&](const MatMulOp& op) { run(op, serial); };
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      if (!product_is_right<float>(product, DType::F32, ta, tb)) return false;
      if (!product_is_right<double>(product, DType::F64, ta, tb)) return false;
    }
  }
  return true;
}

bool HostBlas::supports(const program::MatMulCall& call) const {
  using Activation = program::MatMulCall::Activation;
  if (call.dtype != DType::F32 && call.dtype != DType::F64) return false;
  if (call.activation != Activation::None && call.activation != Activation::Relu) return false;
  constexpr int64_t limit = std::numeric_limits<int>::max();
  return std::max({call.m, call.n, call.k, call.lda, call.ldb, call.ldc}) <= limit;
}

template <class T>
void HostBlas::tile(const MatMulOp& op, int64_t batch, int64_t row, int64_t rows, int64_t col,
                    int64_t cols) const {
  const program::MatMulCall& call = *op.call;
  const T* a = static_cast<const T*>(op.a) + batch * call.stride_a + (call.trans_a ? row : row * call.lda);
  const T* b = static_cast<const T*>(op.b) + batch * call.stride_b + (call.trans_b ? col * call.ldb : col);
  T* c = static_cast<T*>(op.c) + batch * call.stride_c + row * call.ldc + col;
  if (call.k == 0) {
    for (int64_t i = 0; i < rows; ++i) std::fill_n(c + i * call.ldc, cols, T(0));
  } else {
    const int ta = call.trans_a ? kTrans : kNoTrans, tb = call.trans_b ? kTrans : kNoTrans;
    const auto as_int = [](int64_t v) { return static_cast<int>(std::max<int64_t>(v, 1)); };
    places_.acquire();
    if constexpr (std::is_same_v<T, float>) {
      sgemm_(kRowMajor, ta, tb, as_int(rows), as_int(cols), as_int(call.k), 1.0F, a, as_int(call.lda), b,
             as_int(call.ldb), 0.0F, c, as_int(call.ldc));
    } else {
      dgemm_(kRowMajor, ta, tb, as_int(rows), as_int(cols), as_int(call.k), 1.0, a, as_int(call.lda), b,
             as_int(call.ldb), 0.0, c, as_int(call.ldc));
    }
    places_.release();
  }
  const bool activate = call.activation == program::MatMulCall::Activation::Relu;
  if (!call.has_bias && !activate) return;
  const T* bias = call.has_bias ? static_cast<const T*>(op.bias) + col : nullptr;
  for (int64_t i = 0; i < rows; ++i) {
    T* line = c + i * call.ldc;
    if (bias != nullptr) {
      for (int64_t j = 0; j < cols; ++j) line[j] += bias[j];
    }
    if (activate) {
      for (int64_t j = 0; j < cols; ++j) line[j] = relu(line[j]);
    }
  }
}

template <class T>
void HostBlas::run_typed(const MatMulOp& op, const ForEach& for_each) const {
  const program::MatMulCall& call = *op.call;
  if (call.m <= 0 || call.n <= 0 || call.batch <= 0) return;
  const double work = static_cast<double>(call.m) * static_cast<double>(call.n) *
                      static_cast<double>(std::max<int64_t>(call.k, 1));
  const bool split = work > kSerialLimit;
  const int64_t tile_rows = split ? kTileRows : call.m, tile_cols = split ? kTileCols : call.n;
  const int64_t down = (call.m + tile_rows - 1) / tile_rows, across = (call.n + tile_cols - 1) / tile_cols;
  const auto one = [&](int64_t i) {
    const int64_t batch = i / (down * across), row = i / across % down * tile_rows,
                  col = i % across * tile_cols;
    tile<T>(op, batch, row, std::min(tile_rows, call.m - row), col, std::min(tile_cols, call.n - col));
  };
  const int64_t tiles = call.batch * down * across;
  if (work * static_cast<double>(call.batch) <= kSerialLimit) {
    for (int64_t i = 0; i < tiles; ++i) one(i);
  } else {
    for_each(tiles, one);
  }
}

void HostBlas::run(const MatMulOp& op, const ForEach& for_each) const {
  if (op.call->dtype == DType::F32) {
    run_typed<float>(op, for_each);
  } else {
    run_typed<double>(op, for_each);
  }
}

}  // namespace gk::library
