// The pool: reuse, limits, recovery, leases, threads.
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

using memory::BlockPtr;
using memory::Lease;

class MemoryPool : public ::testing::Test {
 protected:
  MemoryPool() {
    hal::OpenOptions options;
    options.threads = 1;
    device = std::dynamic_pointer_cast<hal::trace::TraceDevice>(need(hal::open("trace", options)));
  }
  std::shared_ptr<memory::Pool> pool(int64_t limit = 0) { return memory::Pool::create(device, limit); }
  std::shared_ptr<hal::trace::TraceDevice> device;
  static constexpr int64_t kMiB = int64_t{1} << 20;
};

TEST_F(MemoryPool, blocks_are_aligned_distinct_and_reused) {
  const auto p = pool();
  std::vector<BlockPtr> blocks;
  for (int64_t size : {1, 255, 256, 257, 100000, 5000000}) {
    blocks.push_back(need(p->allocate(size)));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()->address()) % 256, 0U);
    EXPECT_EQ(blocks.back()->size_bytes(), size);
    std::memset(blocks.back()->address(), static_cast<int>(blocks.size()), static_cast<size_t>(size));
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(static_cast<char*>(blocks[i]->address())[blocks[i]->size_bytes() - 1],
              static_cast<char>(i + 1));
  }
  const int64_t calls = p->stats().driver_allocations;
  const void* last = blocks.back()->address();
  blocks.clear();
  EXPECT_EQ(p->stats().in_use_bytes, 0);
  EXPECT_EQ(need(p->allocate(5000000))->address(), last);
  EXPECT_EQ(p->stats().driver_allocations, calls);
}

TEST_F(MemoryPool, nothing_is_a_valid_size_and_nonsense_is_not) {
  const auto p = pool();
  const BlockPtr none = need(p->allocate(0));
  EXPECT_EQ(none->size_bytes(), 0);
  EXPECT_EQ(p->stats().in_use_bytes, 0);
  for (int64_t size : {int64_t{-1}, INT64_MAX, INT64_MAX - 100, int64_t{1} << 60}) {
    const auto r = p->allocate(size);
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().kind, ErrorKind::OutOfMemory);
    EXPECT_EQ(r.error().code, "E0601");
  }
  EXPECT_EQ(device->alive().allocations, 0);
}

TEST_F(MemoryPool, free_neighbours_merge_again) {
  const auto p = pool();
  std::vector<BlockPtr> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(need(p->allocate(32 * 1024)));
  EXPECT_EQ(p->stats().driver_allocations, 1);
  for (size_t i = 0; i < 64; i += 2) blocks[i].reset();
  for (size_t i = 1; i < 64; i += 2) blocks[i].reset();
  EXPECT_EQ(p->stats().in_use_bytes, 0);
  const BlockPtr big = need(p->allocate(kMiB));
  EXPECT_EQ(p->stats().driver_allocations, 1);
}

TEST_F(MemoryPool, the_limit_is_hard_and_what_is_cached_gives_way) {
  const auto p = pool(10 * kMiB);
  BlockPtr a = need(p->allocate(4 * kMiB)), b = need(p->allocate(4 * kMiB));
  const auto r = p->allocate(4 * kMiB);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().message,
            "out of memory: asked for 4194304 bytes, in use 8388608 bytes, limit 10485760 bytes");
  a.reset();
  b.reset();
  const BlockPtr c = need(p->allocate(9 * kMiB));
  EXPECT_EQ(device->alive().bytes, 9 * kMiB);
  EXPECT_EQ(p->stats().peak_bytes, 9 * kMiB);
  EXPECT_FALSE(p->allocate(11 * kMiB).has_value());
  const BlockPtr small = need(p->allocate(1000));  // no room for a whole small segment
  EXPECT_LE(device->alive().bytes, 10 * kMiB);
}

TEST_F(MemoryPool, recovers_when_the_driver_has_no_memory) {
  const auto p = pool();
  bool reclaimed = false;
  BlockPtr held = need(p->allocate(3 * kMiB));
  p->set_reclaim([&] {
    reclaimed = true;
    held.reset();
  });
  device->fail_at(0, ErrorKind::OutOfMemory);
  const BlockPtr a = need(p->allocate(2 * kMiB));
  EXPECT_TRUE(reclaimed);
  p->set_reclaim(nullptr);
  device->fail_at(0, ErrorKind::Device);
  const auto r = p->allocate(64 * kMiB);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().kind, ErrorKind::Device);
}

TEST_F(MemoryPool, trim_returns_whole_free_pieces) {
  const auto p = pool();
  const BlockPtr keep = need(p->allocate(100));
  need(p->allocate(8 * kMiB)).reset();
  EXPECT_EQ(p->stats().cached_bytes, 10 * kMiB - 256);
  GK_OK(p->trim());
  EXPECT_EQ(device->alive().allocations, 1);
  EXPECT_EQ(p->stats().cached_bytes, 2 * kMiB - 256);
}

TEST_F(MemoryPool, the_gate_releases_exactly_once) {
  const auto p = pool();
  const BlockPtr b = need(p->allocate(1000));
  Lease first(b);
  Lease second(b);
  EXPECT_EQ(b->leases(), 2);
  EXPECT_EQ(p->stats().leases, 2);
  p->release(b);
  p->release(b);
  EXPECT_TRUE(b->released());
  EXPECT_EQ(p->stats().in_use_bytes, 1024);
  Lease third(b);  // still held, so a lease may be added
  EXPECT_NE(third.block(), nullptr);
  first = Lease();
  second = std::move(third);
  EXPECT_EQ(b->leases(), 1);
  second = Lease();
  EXPECT_EQ(p->stats().in_use_bytes, 0);
  EXPECT_EQ(Lease(b).block(), nullptr);  // too late
  const BlockPtr again = need(p->allocate(1000));
  p->release(b);
  EXPECT_EQ(p->stats().in_use_bytes, 1024);
}

TEST_F(MemoryPool, pinned_memory_waits_for_the_device) {
  const auto p = pool();
  BlockPtr a = need(p->allocate(1000, hal::Placement::Pinned));
  EXPECT_EQ(a->host_address(), a->address());
  a.reset();
  EXPECT_EQ(p->stats().driver_allocations, 1);
  need(p->allocate(1000, hal::Placement::Pinned)).reset();  // work may still read the first
  EXPECT_EQ(p->stats().driver_allocations, 2);
  GK_OK(p->synchronize());
  need(p->allocate(1000, hal::Placement::Pinned)).reset();
  EXPECT_EQ(p->stats().driver_allocations, 2);
}

TEST_F(MemoryPool, blocks_outlive_their_pool) {
  auto p = pool();
  BlockPtr b = need(p->allocate(1000));
  p.reset();
  std::memset(b->address(), 1, 1000);
  EXPECT_EQ(device->alive().allocations, 1);
  b.reset();
  EXPECT_EQ(device->alive().allocations, 0);
}

TEST_F(MemoryPool, threads_allocate_lease_and_release) {
  const auto p = pool(64 * kMiB);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  const BlockPtr shared = need(p->allocate(100));
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<BlockPtr> mine;
      std::vector<Lease> leases;
      uint32_t seed = 17U * static_cast<uint32_t>(t) + 1;
      for (int i = 0; i < 2000; ++i) {
        seed = seed * 1664525 + 1013904223;
        const int64_t size = 1 + seed % 70000;
        Result<BlockPtr> b = p->allocate(size);
        if (!b) {
          ++wrong;
          continue;
        }
        std::memset((*b)->address(), t, static_cast<size_t>(size));
        if (seed % 3 == 0) leases.emplace_back(*b);
        leases.emplace_back(shared);
        mine.push_back(std::move(*b));
        if (mine.size() > 16) {
          for (const BlockPtr& m : mine) {
            for (int64_t k = 0; k < m->size_bytes(); k += 997) {
              if (static_cast<char*>(m->address())[k] != static_cast<char>(t)) ++wrong;
            }
            if (seed % 2 == 0) p->release(m);
          }
          mine.clear();
          leases.clear();
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(p->stats().leases, 0);
  EXPECT_EQ(p->stats().in_use_bytes, 256);
}

}  // namespace
}  // namespace gk::test
