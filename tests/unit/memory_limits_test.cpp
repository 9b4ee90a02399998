// The pool and the driver: limits, recovery, what goes back to the driver and when.
#include <gmock/gmock.h>

#include "tests/unit/memory_support.h"

namespace gk::test {
namespace {

using memory::BlockPtr;
using memory::Timeline;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MemoryLimits : public PoolTest {};

TEST_F(MemoryLimits, the_limit_is_hard_and_what_is_cached_gives_way) {
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

TEST_F(MemoryLimits, recovers_when_the_driver_has_no_memory) {
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

TEST_F(MemoryLimits, trim_returns_whole_free_pieces) {
  const auto p = pool();
  const BlockPtr keep = need(p->allocate(100));
  need(p->allocate(8 * kMiB)).reset();
  EXPECT_EQ(p->stats().cached_bytes, 10 * kMiB - 256);
  GK_OK(p->trim());
  EXPECT_EQ(device->alive().allocations, 1);
  EXPECT_EQ(p->stats().cached_bytes, 2 * kMiB - 256);
}

TEST_F(MemoryLimits, trimmed_memory_goes_when_its_users_are_done) {
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

TEST_F(MemoryLimits, nothing_is_freed_during_a_capture_but_it_is_used_again) {
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
  EXPECT_THAT(r.error().notes, ElementsAre("9437184 bytes more lie free between what is in use",
                                           "nothing is given back to the driver while a capture is active"));
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

TEST_F(MemoryLimits, a_failed_free_is_noted_and_not_repeated) {
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

TEST_F(MemoryLimits, short_of_memory_it_waits_and_ends_what_was_kept) {
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

TEST_F(MemoryLimits, an_allocation_ends_no_more_than_256_things) {
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

TEST_F(MemoryLimits, reclaim_gives_back_all_that_is_free) {
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

TEST_F(MemoryLimits, a_few_small_blocks_leave_room_for_a_large_one) {
  for (const int64_t limit : {2 * kMiB, 3 * kMiB, 4 * kMiB, 64 * kMiB, 1024 * kMiB}) {
    const auto p = pool(limit);
    const BlockPtr small = need(p->allocate(1000)), pinned = need(p->allocate(100, hal::Placement::Pinned));
    EXPECT_GT(need(p->allocate(limit / 10 * 9))->size_bytes(), 0) << limit;
  }
}

}  // namespace
}  // namespace gk::test
