#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>

#include "runtime/base/process.h"
#include "runtime/hal/host/workers.h"

namespace gk::hal::host {

namespace {

constexpr size_t kThreadBytes = size_t{12} << 20;  // a stack, and what a thread maps for itself
constexpr size_t kRoomBytes = size_t{128} << 20;   // what malloc reserves for the first of them

}  // namespace

struct Workers::Impl {
  explicit Impl(int threads) : arena(threads, 1) {}
  tbb::task_arena arena;
  std::atomic<bool> started{false};

  // oneTBB ends the process where it cannot start its threads, which it does with the first work.
  bool has_room(int threads) {
    if (started.load(std::memory_order_relaxed)) return true;
    if (!address_space_left(static_cast<size_t>(threads) * kThreadBytes + kRoomBytes)) return false;
    started = true;
    return true;
  }
};

// oneTBB gives an arena no more threads than there are, warns of more, and breaks where they are far more.
Workers::Workers(int threads) : threads_(std::max(1, tbb::info::default_concurrency())) {
  if (threads > 0) threads_ = std::min(threads, threads_);
  if (threads_ > 1) impl_ = std::make_unique<Impl>(threads_);
}

Workers::~Workers() = default;

void Workers::for_each(int64_t count, void (*body)(void*, int64_t), void* context) {
  if (threads_ == 1 || count <= 1 || !impl_->has_room(threads_)) {
    for (int64_t i = 0; i < count; ++i) body(context, i);
    return;
  }
  impl_->arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, count, 1),
        [&](const tbb::blocked_range<int64_t>& range) {
          for (int64_t i = range.begin(); i < range.end(); ++i) body(context, i);
        },
        tbb::simple_partitioner{});
  });
}

}  // namespace gk::hal::host
