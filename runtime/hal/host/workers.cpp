#include "runtime/hal/host/workers.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <atomic>

namespace gk::hal::host {

struct Workers::Impl {
  explicit Impl(int threads) : arena(threads, 1) {}
  tbb::task_arena arena;
};

Workers::Workers(int threads) : threads_(threads > 0 ? threads : tbb::info::default_concurrency()) {
  if (threads_ < 1) threads_ = 1;
  if (threads_ > 1) impl_ = std::make_unique<Impl>(threads_);
}

Workers::~Workers() = default;

void Workers::for_each(int64_t count, void (*body)(void*, int64_t), void* context) {
  if (threads_ == 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) body(context, i);
    return;
  }
  // The scheduler orders these threads already; the pair of atomics says so to race detectors, which cannot
  // look into the library.
  std::atomic<int64_t> begun{0}, ended{0};
  begun.store(1, std::memory_order_release);
  impl_->arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, count, 1),
        [&](const tbb::blocked_range<int64_t>& range) {
          (void)begun.load(std::memory_order_acquire);
          for (int64_t i = range.begin(); i < range.end(); ++i) body(context, i);
          ended.fetch_add(range.end() - range.begin(), std::memory_order_acq_rel);
        },
        tbb::simple_partitioner{});
  });
  (void)ended.load(std::memory_order_acquire);
}

}  // namespace gk::hal::host
