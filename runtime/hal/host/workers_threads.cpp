// The same workers without oneTBB: plain threads and one queue of jobs. For the thread sanitizer, which sees
// all that these do and nothing of what an uninstrumented library does; slower where many small jobs come at
// once.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/hal/host/workers.h"

namespace gk::hal::host {
namespace {

constexpr int kMost = 1024;  // threads

struct Job {
  int64_t count = 0;
  void (*body)(void*, int64_t) = nullptr;
  void* context = nullptr;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> left{0};

  void work() {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      body(context, i);
      if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_all();
    }
  }
  void wait() {
    for (int64_t now = left.load(std::memory_order_acquire); now != 0;
         now = left.load(std::memory_order_acquire)) {
      left.wait(now, std::memory_order_acquire);
    }
  }
};

}  // namespace

struct Workers::Impl {
  explicit Impl(int threads) {
    for (int i = 1; i < threads; ++i) pool.emplace_back([this] { serve(); });
  }
  ~Impl() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& t : pool) t.join();
  }
  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return stop || !jobs.empty(); });
      if (stop) return;
      const std::shared_ptr<Job> job = jobs.front();
      lock.unlock();
      job->work();
      lock.lock();
      std::erase(jobs, job);
    }
  }

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<std::shared_ptr<Job>> jobs;  // under mutex, as is stop
  bool stop = false;
  std::vector<std::thread> pool;
};

Workers::Workers(int threads)
    : threads_(threads > 0 ? std::min(threads, kMost)
                           : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))) {
  if (threads_ > 1) impl_ = std::make_unique<Impl>(threads_);
}

Workers::~Workers() = default;

void Workers::for_each(int64_t count, void (*body)(void*, int64_t), void* context) {
  if (threads_ == 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) body(context, i);
    return;
  }
  const auto job = std::make_shared<Job>();
  job->count = count, job->body = body, job->context = context;
  job->left = count;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->jobs.push_back(job);
  }
  impl_->wake.notify_all();
  job->work();
  job->wait();
  std::lock_guard lock(impl_->mutex);
  std::erase(impl_->jobs, job);
}

}  // namespace gk::hal::host
