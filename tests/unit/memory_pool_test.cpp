// The pool: reuse, leases, order between timelines, wrapped memory, what outlives it.
#include <gmock/gmock.h>

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
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MemoryPool : public PoolTest {};

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

TEST_F(MemoryPool, pinned_memory_is_handed_on_after_a_wait_that_began_after_its_release) {
  const auto p = pool();
  Timeline *t = need(p->timeline()), *other = need(p->timeline());
  const auto pinned = [&](Timeline* for_whom) {
    return need(p->allocate(1000, hal::Placement::Pinned, for_whom));
  };
  BlockPtr a = pinned(t);
  EXPECT_EQ(a->host_address(), a->address());
  const void* address = a->address();
  const Timeline::Wait early = t->begin_wait();
  GK_OK(work.slow(*t, a, 1));
  a.reset();
  t->end_wait(early);
  EXPECT_NE(pinned(t)->address(), address);  // its own stream, too: the CPU writes at once
  GK_OK(other->wait());
  EXPECT_NE(pinned(t)->address(), address);
  std::thread([&] { need(t->wait()); }).join();  // by whomever
  EXPECT_EQ(pinned(other)->address(), address);
  EXPECT_EQ(p->stats().driver_allocations, 1);
}

TEST_F(MemoryPool, pinned_memory_of_an_idle_timeline_or_of_nobody_is_handed_on) {
  const auto p = pool();
  Timeline* t = need(p->timeline());
  BlockPtr a = need(p->allocate(1000, hal::Placement::Pinned, t));
  const void* address = a->address();
  a.reset();
  a = need(p->allocate(1000, hal::Placement::Pinned));
  EXPECT_EQ(a->address(), address);
  a.reset();
  a = need(p->allocate(1000, hal::Placement::Pinned));
  EXPECT_EQ(a->address(), address);
  GK_OK(a->acquire(*t));
  GK_OK(work.slow(*t, a, 1));
  a.reset();
  EXPECT_NE(need(p->allocate(1000, hal::Placement::Pinned))->address(), address);
  GK_OK(p->synchronize());
  EXPECT_EQ(need(p->allocate(1000, hal::Placement::Pinned))->address(), address);
}

TEST_F(MemoryPool, the_same_timeline_again_costs_no_driver_call) {
  const auto p = pool();
  Timeline* t = need(p->timeline());
  BlockPtr x = need(p->allocate(5000, hal::Placement::Device, t));
  GK_OK(work.slow(*t, x, 1));
  EXPECT_EQ(work.calls([&] {
    for (int i = 0; i < 1000; ++i) {
      x.reset();
      x = need(p->allocate(5000, hal::Placement::Device, t));
    }
  }),
            0);
}

TEST_F(MemoryPool, another_timeline_comes_after_the_last_user) {
  const auto p = pool();
  Timeline *a = need(p->timeline()), *b = need(p->timeline());
  BlockPtr x = need(p->allocate(8 * kMiB, hal::Placement::Device, a));
  const void* address = x->address();
  GK_OK(work.slow(*a, x, 1));
  x.reset();
  EXPECT_THAT(work.names([&] { x = need(p->allocate(8 * kMiB, hal::Placement::Device, b)); }),
              ElementsAre("record event", "stream waits for event"));
  EXPECT_EQ(x->address(), address);
  GK_OK(work.fill(*b, x, 3));
  EXPECT_TRUE(work.all(*b, x, 3));
  x.reset();
  // b used it last. Nobody's: waited for.
  EXPECT_THAT(work.names([&] { x = need(p->allocate(8 * kMiB)); }), ElementsAre("synchronize stream"));
  EXPECT_EQ(x->address(), address);
  x.reset();
  EXPECT_THAT(work.names([&] { x = need(p->allocate(8 * kMiB, hal::Placement::Device, a)); }), IsEmpty());
}

TEST_F(MemoryPool, memory_that_needs_no_order_is_preferred) {
  const auto p = pool();
  Timeline *a = need(p->timeline()), *b = need(p->timeline());
  BlockPtr x = need(p->allocate(8 * kMiB, hal::Placement::Device, a)),
           y = need(p->allocate(9 * kMiB, hal::Placement::Device, b)),
           far = need(p->allocate(64 * kMiB, hal::Placement::Device, b));
  const void *of_a = x->address(), *of_b = y->address();
  GK_OK(work.fill(*a, x, 1));
  GK_OK(work.fill(*b, y, 1));
  x.reset(), y.reset(), far.reset();
  EXPECT_THAT(work.names([&] { y = need(p->allocate(8 * kMiB, hal::Placement::Device, b)); }), IsEmpty());
  EXPECT_EQ(y->address(), of_b);
  // The next without order is far too big for it.
  EXPECT_EQ(work.calls([&] { x = need(p->allocate(8 * kMiB, hal::Placement::Device, b)); }), 2);
  EXPECT_EQ(x->address(), of_a);
}

// Two threads with runtimes of their own share the segments of small blocks. Note [Neighbours of several
// timelines]
TEST_F(MemoryPool, neighbours_in_a_segment_do_not_order_timelines) {
  const auto p = pool();
  std::vector<Timeline*> t{need(p->timeline()), need(p->timeline())};
  std::vector<BlockPtr> x(2);
  const auto turn = [&] {
    for (size_t i = 0; i < 2; ++i) {
      x[i] = need(p->allocate(3000, hal::Placement::Device, t[i]));
      GK_OK(work.fill(*t[i], x[i], 1));
    }
    x[0].reset();
    x[1].reset();
  };
  turn();
  turn();
  for (const std::string& call : work.names([&] {
         for (int i = 0; i < 100; ++i) turn();
       })) {
    ASSERT_EQ(call, "launch kernel");
  }
}

TEST_F(MemoryPool, neighbours_of_several_timelines_merge_before_the_driver_is_asked) {
  const auto p = pool();
  std::vector<Timeline*> t{need(p->timeline()), need(p->timeline())};
  std::vector<BlockPtr> x;
  for (size_t i = 0; i < 5; ++i) {
    x.push_back(need(p->allocate(400 * 1024, hal::Placement::Device, t[i % 2])));
    GK_OK(work.slow(*t[i % 2], x.back(), 1));
  }
  x.clear();
  EXPECT_EQ(work.calls([&] { x.push_back(need(p->allocate(kMiB, hal::Placement::Device, t[0]))); }), 2);
  EXPECT_EQ(p->stats().driver_allocations, 1);
  GK_OK(work.fill(*t[0], x[0], 3));
  GK_OK(p->synchronize());
  EXPECT_TRUE(work.all(*t[0], x[0], 3));
}

TEST_F(MemoryPool, without_order_memory_goes_back_and_keeps_its_user) {
  const auto p = pool();
  Timeline *a = need(p->timeline()), *b = need(p->timeline());
  for (int64_t k = 0; k < 2; ++k) {
    BlockPtr x = need(p->allocate(8 * kMiB, hal::Placement::Device, a));
    GK_OK(work.slow(*a, x, 1));
    x.reset();
    device->fail_at(k);
    const auto r = p->allocate(8 * kMiB, hal::Placement::Device, b);
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().code, "E0503");
    EXPECT_EQ(p->stats().in_use_bytes, 0);
    x = need(p->allocate(8 * kMiB, hal::Placement::Device, b));
    GK_OK(work.fill(*b, x, 3));
    EXPECT_TRUE(work.all(*b, x, 3));
    x.reset();
    GK_OK(p->synchronize());
  }
  BlockPtr x = need(p->allocate(8 * kMiB, hal::Placement::Device, a));
  GK_OK(work.slow(*a, x, 1));
  x.reset();
  device->fail_at(0);
  EXPECT_FALSE(p->allocate(8 * kMiB).has_value());  // waits, in vain
  EXPECT_EQ(p->stats().in_use_bytes, 0);
}

TEST_F(MemoryPool, wrapped_memory_tells_its_owner_once) {
  const auto p = pool();
  Timeline* t = need(p->timeline());
  std::vector<float> mine(1000, 1);
  int gone = 0;
  BlockPtr x = p->wrap(mine.data(), 4000, hal::Placement::Device, [&] { ++gone; });
  EXPECT_EQ(x->address(), mine.data());
  EXPECT_EQ(x->host_address(), mine.data());
  EXPECT_EQ(p->stats().in_use_bytes, 0);
  {
    Lease lease(x);
    p->release(x);
    p->release(x);
    EXPECT_EQ(gone, 0);
  }
  EXPECT_EQ(gone, 1);  // no work could have used it
  x.reset();
  EXPECT_EQ(gone, 1);

  x = p->wrap(mine.data(), 4000, hal::Placement::Device, [&] { ++gone; });
  GK_OK(x->acquire(*t));
  GK_OK(work.slow(*t, x, 1));
  EXPECT_EQ(work.calls([&] { x.reset(); }), 0);
  p->retired().drain();
  EXPECT_EQ(gone, 1);
  GK_OK(t->wait());
  EXPECT_EQ(mine[999], 2.0F);
  p->retired().drain();
  EXPECT_EQ(gone, 2);

  x = p->wrap(mine.data(), 4000, hal::Placement::Device, [&] { ++gone; });
  GK_OK(p->retired().begin_capture());
  x.reset();
  EXPECT_EQ(gone, 2);
  p->retired().end_capture();
  EXPECT_EQ(gone, 3);
}

TEST_F(MemoryPool, wrapped_memory_outlives_its_pool) {
  auto p = pool();
  std::vector<float> mine(1000, 1);
  int gone = 0;
  BlockPtr x = p->wrap(mine.data(), 4000, hal::Placement::Device, [&] { ++gone; });
  Timeline* t = need(p->timeline());
  GK_OK(x->acquire(*t));
  GK_OK(work.slow(*t, x, 1));
  p.reset();
  EXPECT_EQ(gone, 0);
  x.reset();
  EXPECT_EQ(gone, 1);
  EXPECT_EQ(mine[0], 2.0F);
  EXPECT_EQ(device->alive().streams, 0);
}

// What was published may hold a block, which holds the pool's memory: the pool's end breaks that circle.
TEST_F(MemoryPool, endings_that_hold_memory_go_with_the_pool) {
  auto p = pool();
  Timeline* t = need(p->timeline());
  BlockPtr x = need(p->allocate(1000, hal::Placement::Device, t));
  GK_OK(work.slow(*t, x, 1));
  const std::shared_ptr<hal::Event> after = need(t->event());
  p->retired().publish("a lease", [held = std::move(x)]() -> Result<void> { return {}; }, {after});
  p.reset();
  EXPECT_EQ(device->alive().allocations, 0);
  EXPECT_EQ(device->alive().streams, 0);
}

TEST_F(MemoryPool, timelines_are_used_again) {
  const auto p = pool();
  Timeline *a = need(p->timeline()), *b = need(p->timeline());
  EXPECT_NE(a, b);
  p->give_back(a);
  p->give_back(a);
  EXPECT_EQ(need(p->timeline()), a);
  EXPECT_NE(need(p->timeline()), a);
  EXPECT_EQ(device->alive().streams, 3);
  device->fail_at(0);
  EXPECT_FALSE(p->timeline().has_value());
}

TEST_F(MemoryPool, stress_poisons_memory_and_returns_it_at_once) {
  const auto p = pool(0, true);
  Timeline* t = need(p->timeline());
  const std::string poison(4000, '\xCB');
  const auto bytes = [](const BlockPtr& b) {
    return std::string(static_cast<const char*>(b->host_address()), static_cast<size_t>(b->size_bytes()));
  };
  for (const auto placement : {hal::Placement::Device, hal::Placement::Pinned}) {
    BlockPtr x = need(p->allocate(4000, placement));
    EXPECT_EQ(bytes(x), poison);
    std::memset(x->host_address(), 1, 4000);
    p->release(x);
    EXPECT_EQ(bytes(x), poison);
    x = need(p->allocate(4000, placement, t));
    GK_OK(t->wait());
    EXPECT_EQ(bytes(x), poison);
    GK_OK(work.fill(*t, x, 1));
    GK_OK(work.slow(*t, x, 1));
    const BlockPtr seen = need(p->allocate(4000, hal::Placement::Device, t));
    GK_OK(work.fill(*t, seen, 0));
    GK_OK(work.add(*t, seen, x));
    p->release(x);
    EXPECT_TRUE(work.all(*t, seen, 2));  // the work before the release saw none of it
    GK_OK(t->wait());
    EXPECT_EQ(bytes(x), poison);
  }
  need(p->allocate(8 * kMiB, hal::Placement::Device, t)).reset();
  GK_OK(t->wait());
  EXPECT_GE(device->alive().bytes, 8 * kMiB);
  const BlockPtr small = need(p->allocate(100));
  EXPECT_LT(device->alive().bytes, 8 * kMiB);
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

// Threads with timelines of their own allocate, give late work, release, and pass blocks on to one another:
// whatever a block's former users still do, its present one must find what it wrote.
}  // namespace
}  // namespace gk::test
