// One pool and many threads, while its memory is in use on the device.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "tests/unit/memory_support.h"

namespace gk::test {
namespace {

using memory::BlockPtr;
using memory::Lease;
using memory::Timeline;

class MemoryPoolThreads : public ::testing::TestWithParam<const char*> {
 protected:
  void run(bool stress);
};

struct Parcel {
  BlockPtr block;
  float value = 0;
};

/// What threads hand to each other.
class Mailbox {
 public:
  /// False where it is full; then the parcel is the sender's still.
  bool put(Parcel& p) {
    std::lock_guard lock(mutex_);
    if (parcels_.size() == 12) return false;
    parcels_.push_back(std::move(p));
    return true;
  }
  Parcel take() {
    std::lock_guard lock(mutex_);
    if (parcels_.empty()) return {};
    Parcel p = std::move(parcels_.back());
    parcels_.pop_back();
    return p;
  }

 private:
  std::mutex mutex_;
  std::vector<Parcel> parcels_;
};

void MemoryPoolThreads::run(bool stress) {
  Work work(GetParam());
  if (work.device == nullptr) GTEST_SKIP() << work.reason;
  constexpr int kThreads = 4, kRounds = 120;
  auto pool = memory::Pool::create(work.device, int64_t{64} << 20, stress);
  Mailbox mailbox;
  std::atomic<int> wrong{0}, failed{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Timeline* t = need(pool->timeline());
      uint32_t seed = 31U * static_cast<uint32_t>(thread) + 5;
      const auto random = [&](uint32_t n) {
        seed = seed * 1664525 + 1013904223;
        return (seed >> 8) % n;
      };
      for (int i = 0; i < kRounds; ++i) {
        Parcel p;
        if (random(3) == 0) p = mailbox.take();
        if (p.block == nullptr) {
          // Few sizes, so that the same memory comes round; one has segments of its own.
          const int64_t size = std::vector<int64_t>{4000, 8000, 40000, 2 << 20}[random(4)];
          const auto where = random(5) == 0 ? hal::Placement::Pinned : hal::Placement::Device;
          Result<BlockPtr> b = pool->allocate(size, where, t);
          if (!b) {
            ++failed;
            continue;
          }
          p = {std::move(*b), static_cast<float>(thread * 1000 + i)};
          if (where == hal::Placement::Pinned) {
            // The CPU may write at once.
            auto* to = static_cast<float*>(p.block->host_address());
            for (int64_t k = 0; k < size / 4; ++k) to[k] = p.value;
          } else if (!work.fill(*t, p.block, p.value)) {
            ++failed;
          }
        }
        const Lease lease(p.block);
        if (!p.block->acquire(*t)) ++failed;
        if (random(2) == 0) {
          if (!work.slow(*t, p.block, 0.5F)) ++failed;
          p.value += 0.5F;
        }
        if (random(4) == 0 && !work.all(*t, p.block, p.value)) ++wrong;
        if (random(8) == 0 && !t->wait()) ++failed;
        if (random(16) == 0 && !pool->trim()) ++failed;
        if (random(3) == 0 && mailbox.put(p)) continue;
        if (random(2) == 0) pool->release(p.block);
      }
      pool->give_back(t);
    });
  }
  for (auto& t : threads) t.join();
  Timeline* t = need(pool->timeline());
  for (Parcel p = mailbox.take(); p.block != nullptr; p = mailbox.take()) {
    GK_OK(p.block->acquire(*t));
    if (!work.all(*t, p.block, p.value)) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(pool->stats().leases, 0);
  EXPECT_EQ(pool->stats().in_use_bytes, 0);
  GK_OK(pool->reclaim());
  EXPECT_EQ(pool->stats().cached_bytes, 0);
  EXPECT_EQ(pool->stats().retired, 0);
  EXPECT_TRUE(pool->retired().failures().empty());
  pool.reset();
  if (work.trace == nullptr) return;
  EXPECT_EQ(work.trace->alive().allocations, 0);
  EXPECT_EQ(work.trace->alive().events, 0);
  EXPECT_EQ(work.trace->alive().streams, 0);
}

TEST_P(MemoryPoolThreads, late_work_never_reaches_the_next_owner) { run(false); }
TEST_P(MemoryPoolThreads, late_work_never_reaches_the_next_owner_under_stress) { run(true); }

GK_ALL_DEVICES(MemoryPoolThreads);

}  // namespace
}  // namespace gk::test
