// The pool: reuse, limits, recovery, leases, order between timelines, what is given back later.
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

class MemoryPool : public ::testing::Test {
 protected:
  // Calls are counted here, so there is no stress but where it is the matter.
  std::shared_ptr<memory::Pool> pool(int64_t limit = 0, bool stress = false) {
    return memory::Pool::create(device, limit, stress);
  }
  Work work{"trace"};
  std::shared_ptr<hal::trace::TraceDevice> device = work.trace;
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

TEST_F(MemoryPool, trimmed_memory_goes_when_its_users_are_done) {
  const auto p = pool();
  Timeline* a = need(p->timeline());
  BlockPtr x = need(p->allocate(8 * kMiB, hal::Placement::Device, a));
  GK_OK(work.slow(*a, x, 1));
  x.reset();
  GK_OK(p->trim());
  EXPECT_EQ(device->alive().allocations, 1);
  EXPECT_EQ(p->stats().retired, 1);
  EXPECT_EQ(p->stats().cached_bytes, 8 * kMiB);
  GK_OK(p->synchronize());
  EXPECT_EQ(device->alive().allocations, 0);
  EXPECT_EQ(p->stats().retired, 0);
  EXPECT_EQ(p->stats().cached_bytes, 0);
}

TEST_F(MemoryPool, nothing_is_freed_during_a_capture_but_it_is_used_again) {
  const auto p = pool(10 * kMiB);
  BlockPtr a = need(p->allocate(4 * kMiB)), b = need(p->allocate(5 * kMiB));
  a.reset(), b.reset();
  GK_OK(p->retired().begin_capture());
  GK_OK(p->trim());
  GK_OK(p->trim());  // they are on their way already
  EXPECT_EQ(device->alive().bytes, 9 * kMiB);
  EXPECT_EQ(p->stats().retired, 2);
  // What is on its way counts under the limit.
  const auto r = p->allocate(8 * kMiB);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0601");
  EXPECT_EQ(r.error().notes.size(), 1U);
  EXPECT_EQ(device->alive().bytes, 9 * kMiB);
  a = need(p->allocate(4 * kMiB));
  EXPECT_EQ(p->stats().driver_allocations, 2);
  p->retired().end_capture();
  EXPECT_EQ(device->alive().bytes, 4 * kMiB);
  EXPECT_EQ(p->stats().cached_bytes, 0);
  b = need(p->allocate(6 * kMiB));
  a.reset();
  GK_OK(p->trim());
  EXPECT_EQ(device->alive().bytes, 6 * kMiB);
}

TEST_F(MemoryPool, a_failed_free_is_noted_and_not_repeated) {
  const auto p = pool();
  need(p->allocate(4 * kMiB)).reset();
  device->fail_at(0);
  GK_OK(p->trim());
  EXPECT_TRUE(device->failed());
  EXPECT_THAT(p->retired().failures(),
              ElementsAre("giving 4194304 bytes back to the driver: E0503 release failed: a failure was "
                          "asked for"));
  GK_OK(p->trim());
  EXPECT_EQ(p->stats().cached_bytes, 0);
}

TEST_F(MemoryPool, short_of_memory_it_waits_and_ends_what_was_kept) {
  const auto p = pool(10 * kMiB);
  Timeline* t = need(p->timeline());
  BlockPtr x = need(p->allocate(6 * kMiB, hal::Placement::Device, t));
  GK_OK(work.slow(*t, x, 1));
  const std::shared_ptr<hal::Event> after = need(t->event());
  p->retired().publish("a launch's lease", [held = std::move(x)]() -> Result<void> { return {}; }, {after});
  const BlockPtr y = need(p->allocate(8 * kMiB, hal::Placement::Device, t));
  EXPECT_EQ(device->alive().bytes, 8 * kMiB);
  EXPECT_EQ(p->stats().peak_bytes, 8 * kMiB);
  EXPECT_EQ(p->stats().retired, 0);
}

TEST_F(MemoryPool, an_allocation_ends_no_more_than_256_things) {
  const auto p = pool();
  int ran = 0;
  for (int i = 0; i < 600; ++i) {
    p->retired().publish("one", [&]() -> Result<void> { return ++ran, Result<void>{}; });
  }
  EXPECT_EQ(p->stats().retired, 600);
  BlockPtr x = need(p->allocate(100));
  EXPECT_EQ(ran, 256);
  x = need(p->allocate(100));
  x = need(p->allocate(100));
  EXPECT_EQ(ran, 600);
}

TEST_F(MemoryPool, reclaim_gives_back_all_that_is_free) {
  const auto p = pool();
  Timeline* t = need(p->timeline());
  BlockPtr x = need(p->allocate(6 * kMiB, hal::Placement::Device, t)), keep = need(p->allocate(4 * kMiB));
  GK_OK(work.slow(*t, x, 1));
  x.reset();
  GK_OK(p->retired().begin_capture());
  const auto refused = p->reclaim();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, "E0708");
  EXPECT_EQ(device->alive().bytes, 10 * kMiB);
  p->retired().end_capture();
  GK_OK(p->reclaim());
  EXPECT_EQ(device->alive().bytes, 4 * kMiB);
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
