// Matrix products on the host by OpenBLAS, opened at run time. Promises a product checked against a naive one
// before the library is first trusted (old releases miscompute on new processors), results that do not depend
// on the number of threads, and no threads of its own: the library runs serially inside the device's workers.
// Not for dtypes narrower than f32, nor for gelu: generated kernels serve those.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <semaphore>

#include "runtime/library/matmul.h"

namespace gk::library {

class HostBlas {
 public:
  /// The process's library: opened and checked at the first call. Null where there is none or it miscomputes.
  static const HostBlas* get();
  bool supports(const program::MatMulCall& call) const;
  /// To be called before a product is given to run(). Errors: OutOfMemory E0601 where the library would find
  /// no memory to work in; Device E0507 where it miscomputes.
  Result<void> ready() const;
  /// Runs body(i) for every i of [0, count), in any order, perhaps at the same time.
  using ForEach = std::function<void(int64_t count, const std::function<void(int64_t)>& body)>;
  /// C = act(A·B + bias); `op` must be supported. Returns when done.
  void run(const MatMulOp& op, const ForEach& for_each) const;

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                         float*, int);
  using Dgemm = void (*)(int, int, int, int, int, int, double, const double*, int, const double*, int, double,
                         double*, int);
  static const HostBlas* open();
  Result<void> make_places() const;
  bool check() const;
  template <class T>
  void tile(const MatMulOp& op, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols) const;
  template <class T>
  void run_typed(const MatMulOp& op, const ForEach& for_each) const;
  Sgemm sgemm_ = nullptr;
  Dgemm dgemm_ = nullptr;
  void* (*take_buffer_)(int) = nullptr;
  void (*give_buffer_)(void*) = nullptr;
  // See Note [Places].
  static constexpr int kMostPlaces = 128;
  mutable std::mutex mutex_;
  mutable std::atomic<bool> ready_{false};
  mutable bool checked_ = false, right_ = false;  // under mutex_
  mutable std::counting_semaphore<kMostPlaces> places_{0};
};

}  // namespace gk::library
