// Timelines and blocks' last users: order where it is missing, no driver call where it is there.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/unit/memory_support.h"

namespace gk::test {
namespace {

using memory::BlockPtr;
using memory::Lease;
using memory::Timeline;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class MemoryTimeline : public ::testing::Test {
 protected:
  MemoryTimeline() : work("trace"), pool(memory::Pool::create(work.device, 0, false)) {
    a = need(pool->timeline());
    b = need(pool->timeline());
    c = need(pool->timeline());
  }
  BlockPtr block(Timeline* t, int64_t n = 1000) {
    return need(pool->allocate(n * 4, hal::Placement::Device, t));
  }
  Work work;
  std::shared_ptr<memory::Pool> pool;
  Timeline *a = nullptr, *b = nullptr, *c = nullptr;
};

TEST_F(MemoryTimeline, the_same_user_again_asks_nothing) {
  const BlockPtr x = block(a);
  GK_OK(work.slow(*a, x, 1));
  EXPECT_EQ(work.calls([&] {
    for (int i = 0; i < 1000; ++i) need(x->acquire(*a));
  }),
            0);
  EXPECT_EQ(a->departures(), 0U);
}

TEST_F(MemoryTimeline, another_user_comes_after_the_last_one) {
  const BlockPtr x = block(a);
  GK_OK(work.fill(*a, x, 1));
  GK_OK(work.slow(*a, x, 2));
  EXPECT_THAT(work.names([&] { need(x->acquire(*b)); }),
              ElementsAre("record event", "stream waits for event"));
  EXPECT_EQ(a->departures(), 1U);
  EXPECT_EQ(b->departures(), 0U);
  EXPECT_TRUE(work.all(*b, x, 3));
  // And back, though b was given nothing but the wait.
  EXPECT_THAT(work.names([&] { need(x->acquire(*a)); }),
              ElementsAre("record event", "stream waits for event"));
  EXPECT_EQ(b->departures(), 1U);
}

TEST_F(MemoryTimeline, an_idle_user_needs_no_order_but_loses_the_block) {
  const BlockPtr x = block(a);
  GK_OK(work.slow(*a, x, 2));
  GK_OK(a->wait());
  EXPECT_FALSE(a->busy());
  EXPECT_THAT(work.names([&] { need(x->acquire(*b)); }), IsEmpty());
  EXPECT_EQ(a->departures(), 1U);
  EXPECT_EQ(work.calls([&] { need(a->wait()); }), 0);
}

TEST_F(MemoryTimeline, order_goes_through_a_user_that_did_nothing) {
  const BlockPtr x = block(a);
  GK_OK(work.fill(*a, x, 1));
  GK_OK(work.slow(*a, x, 2));
  GK_OK(x->acquire(*b));
  EXPECT_TRUE(b->busy());  // it waits for a
  GK_OK(x->acquire(*c));
  EXPECT_TRUE(work.all(*c, x, 3));
}

TEST_F(MemoryTimeline, work_given_after_a_wait_began_is_not_forgotten) {
  const BlockPtr x = block(a);
  GK_OK(work.slow(*a, x, 1));
  const Timeline::Wait w = a->begin_wait();
  GK_OK(a->stream().synchronize());
  GK_OK(work.slow(*a, x, 1));
  a->end_wait(w);
  EXPECT_TRUE(a->busy());
}

// Between "busy" and the work itself, only the thread that gives the work knows which of them was reached.
TEST_F(MemoryTimeline, only_the_giver_knows_that_it_is_idle) {
  const BlockPtr x = block(a);
  GK_OK(work.slow(*a, x, 1));
  std::thread([&] { need(a->wait()); }).join();
  EXPECT_TRUE(a->busy());
  GK_OK(a->wait());
  EXPECT_FALSE(a->busy());
}

TEST_F(MemoryTimeline, the_cpu_waits_for_the_last_user) {
  const BlockPtr x = block(a);
  GK_OK(work.fill(*a, x, 1));
  GK_OK(work.slow(*a, x, 2));
  EXPECT_THAT(work.names([&] { need(x->acquire_host()); }), ElementsAre("synchronize stream"));
  EXPECT_EQ(static_cast<float*>(x->host_address())[999], 3.0F);
  EXPECT_EQ(work.calls([&] { need(x->acquire_host()); }), 0);
  const BlockPtr fresh = need(pool->allocate(4));
  EXPECT_EQ(work.calls([&] { need(fresh->acquire_host()); }), 0);
}

TEST_F(MemoryTimeline, a_failed_acquire_changes_nothing) {
  for (int64_t k = 0; k < 2; ++k) {
    const BlockPtr x = block(a);
    GK_OK(work.fill(*a, x, 1));
    GK_OK(work.slow(*a, x, 2));
    work.trace->fail_at(k);
    const auto r = x->acquire(*b);
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().kind, ErrorKind::Device);
    EXPECT_EQ(work.calls([&] { need(x->acquire(*a)); }), 0);  // still its own
    GK_OK(x->acquire(*b));
    EXPECT_TRUE(work.all(*b, x, 3));
    GK_OK(pool->synchronize());
  }
  work.trace->fail_at(0);
  const BlockPtr x = block(a);
  GK_OK(x->acquire(*b));  // a is idle
  EXPECT_FALSE(work.trace->failed());
  work.trace->fail_at(-1);
}

TEST_F(MemoryTimeline, a_closed_one_is_waited_for_by_its_last_event) {
  const BlockPtr x = block(a);
  GK_OK(work.fill(*a, x, 1));
  GK_OK(work.slow(*a, x, 2));
  EXPECT_THAT(work.names([&] { need(a->close()); }), ElementsAre("record event"));
  EXPECT_TRUE(a->closed());
  EXPECT_EQ(work.calls([&] { need(a->close()); }), 0);
  EXPECT_THAT(work.names([&] { need(x->acquire(*b)); }), ElementsAre("stream waits for event"));
  EXPECT_TRUE(work.all(*b, x, 3));
  const auto r = x->acquire(*a);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0716");
  GK_OK(a->wait());
  EXPECT_TRUE(a->finished());
  EXPECT_FALSE(a->busy());
}

TEST_F(MemoryTimeline, closing_waits_where_no_event_can_be_had) {
  const BlockPtr x = block(a);
  GK_OK(work.fill(*a, x, 1));
  GK_OK(work.slow(*a, x, 2));
  work.trace->fail_at(0);
  EXPECT_THAT(work.names([&] { need(a->close()); }), ElementsAre("record event", "synchronize stream"));
  EXPECT_THAT(work.names([&] { need(x->acquire(*b)); }), IsEmpty());
  EXPECT_TRUE(work.all(*b, x, 3));
}

TEST_F(MemoryTimeline, what_the_host_program_can_reach_is_never_idle) {
  const BlockPtr x = block(a);
  a->expose();
  GK_OK(a->wait());
  EXPECT_TRUE(a->busy());
  EXPECT_THAT(work.names([&] { need(x->acquire(*b)); }),
              IsSupersetOf({"record event", "stream waits for event"}));  // and whether somebody captures it
  a->conceal();
  EXPECT_TRUE(a->busy());
  GK_OK(a->wait());
  EXPECT_FALSE(a->busy());
}

// Note [Launches and departures], step by step: the block is taken over after it was acquired and before the
// work is given.
TEST_F(MemoryTimeline, a_launch_sees_that_it_lost_a_block_meanwhile) {
  constexpr int64_t kBig = 1 << 19;  // elements: has a segment of its own
  BlockPtr x = block(c, kBig);
  const BlockPtr sum = block(a);
  GK_OK(work.fill(*c, x, 5));
  GK_OK(work.fill(*a, sum, 0));
  const void* address = x->address();
  Lease lease(x);
  uint64_t known = a->departures();
  GK_OK(x->acquire(*a));
  GK_OK(x->acquire(*b));
  GK_OK(work.slow(*a, sum, 1));
  GK_OK(work.add(*a, sum, x));
  EXPECT_NE(a->departures(), known);
  while (a->departures() != known) {
    known = a->departures();
    GK_OK(x->acquire(*a));
  }
  x.reset();
  lease = Lease();
  const BlockPtr y = block(c, kBig);
  EXPECT_EQ(y->address(), address);
  GK_OK(work.fill(*c, y, 7));
  EXPECT_TRUE(work.all(*a, sum, 6));
}

/// A device whose host program has streams of its own: the handle is a Stream's address.
class Foreign : public hal::Device {
 public:
  explicit Foreign(std::shared_ptr<hal::Device> inner) : inner_(std::move(inner)) {}
  struct Stream : hal::Stream {
    explicit Stream(hal::Stream& s, const bool& capturing) : inner(s), capturing(capturing) {}
    Result<hal::NodeId> kernel(const hal::KernelLaunch& l, std::span<const hal::NodeId> d) override {
      return inner.kernel(l, d);
    }
    Result<hal::NodeId> copy(const hal::CopyOp& op, std::span<const hal::NodeId> d) override {
      return inner.copy(op, d);
    }
    Result<hal::NodeId> library(const hal::LibraryOp& op, std::span<const hal::NodeId> d) override {
      return inner.library(op, d);
    }
    Result<hal::NodeId> host_call(std::function<void()> f, std::span<const hal::NodeId> d) override {
      return inner.host_call(std::move(f), d);
    }
    Result<hal::NodeId> conditional(const hal::ConditionalOp& op, std::span<const hal::NodeId> d) override {
      return inner.conditional(op, d);
    }
    void* native() const override { return &inner; }
    Result<bool> is_capturing() override { return capturing; }
    Result<void> synchronize() override { return inner.synchronize(); }
    Result<std::unique_ptr<hal::Event>> record() override { return inner.record(); }
    Result<void> wait(hal::Event& e) override { return inner.wait(e); }
    hal::Stream& inner;
    const bool& capturing;
  };
  const hal::DeviceInfo& info() const override { return inner_->info(); }
  Result<hal::Allocation> allocate(int64_t n, hal::Placement p) override { return inner_->allocate(n, p); }
  Result<void> release(const hal::Allocation& a) override { return inner_->release(a); }
  Result<std::shared_ptr<hal::Module>> load(const program::Code& c) override { return inner_->load(c); }
  Result<std::unique_ptr<hal::Stream>> create_stream() override { return inner_->create_stream(); }
  Result<std::unique_ptr<hal::Graph>> create_graph() override { return inner_->create_graph(); }
  Result<std::unique_ptr<hal::Stream>> wrap_stream(void* native) override {
    if (native == nullptr) return fail(ErrorKind::Device, "E0510", "there is no default stream");
    return std::make_unique<Stream>(*static_cast<hal::Stream*>(native), capturing);
  }
  Result<std::unique_ptr<hal::Graph>> wrap_graph(void* g, std::span<void* const> after,
                                                 hal::NodeId& frontier) override {
    return inner_->wrap_graph(g, after, frontier);
  }
  Result<void> trim_graph_memory() override { return inner_->trim_graph_memory(); }
  Result<void> read(void* d, const void* s, int64_t n, hal::Stream& t) override {
    return inner_->read(d, s, n, t);
  }
  Result<void> write(void* d, const void* s, int64_t n, hal::Stream& t) override {
    return inner_->write(d, s, n, t);
  }
  Result<void> synchronize() override { return inner_->synchronize(); }
  bool supports(const program::LibraryCall& c) const override { return inner_->supports(c); }
  int64_t driver_calls() const override { return inner_->driver_calls(); }
  bool capturing = false;

 private:
  std::shared_ptr<hal::Device> inner_;
};

class MemoryForeign : public ::testing::Test {
 protected:
  MemoryForeign() : theirs(need(device->create_stream())), pool(memory::Pool::create(device, 0, false)) {
    t = need(pool->timeline_of(theirs.get()));
    own = need(pool->timeline());
  }
  Work work{"trace"};
  std::shared_ptr<Foreign> device = std::make_shared<Foreign>(work.device);
  std::unique_ptr<hal::Stream> theirs;
  std::shared_ptr<memory::Pool> pool;
  Timeline *t = nullptr, *own = nullptr;
};

TEST_F(MemoryForeign, a_handle_has_one_timeline) {
  EXPECT_EQ(need(pool->timeline_of(theirs.get())), t);
  const auto other = need(device->create_stream());
  EXPECT_NE(need(pool->timeline_of(other.get())), t);
  const auto r = pool->timeline_of(nullptr);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0510");
  pool->give_back(t);  // is not the pool's to give to others
  EXPECT_NE(need(pool->timeline()), t);
}

// The host program gives work that nobody sees here.
TEST_F(MemoryForeign, its_work_is_waited_for_always) {
  const BlockPtr x = need(pool->allocate(4000, hal::Placement::Device, t));
  GK_OK(t->wait());
  GK_OK(work.fill(*t, x, 1));
  GK_OK(work.slow(*t, x, 1));
  EXPECT_THAT(work.names([&] { need(x->acquire(*own)); }),
              ElementsAre("record event", "stream waits for event"));
  EXPECT_TRUE(work.all(*own, x, 2));
}

TEST_F(MemoryForeign, a_stream_that_somebody_captures_is_left_alone) {
  BlockPtr x = need(pool->allocate(4000, hal::Placement::Device, t));
  GK_OK(work.fill(*t, x, 1));
  device->capturing = true;
  for (const auto& r : {x->acquire(*own), x->acquire_host(), t->close()}) {
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().kind, ErrorKind::Capture);
    EXPECT_EQ(r.error().code, "E0711");
  }
  x.reset();
  const auto taken = pool->allocate(4000, hal::Placement::Device, own);
  GK_OK(taken);  // other memory is there
  EXPECT_FALSE(t->closed());
  device->capturing = false;
}

TEST_F(MemoryForeign, a_closed_stream_s_place_is_taken_by_another) {
  BlockPtr x = need(pool->allocate(4000, hal::Placement::Device, t));
  GK_OK(work.fill(*t, x, 1));
  GK_OK(work.slow(*t, x, 1));
  GK_OK(t->close());
  const auto another = need(device->create_stream());
  Timeline* const second = need(pool->timeline_of(another.get()));
  EXPECT_NE(second, t);  // its work is not done
  GK_OK(x->acquire(*own));
  EXPECT_TRUE(work.all(*own, x, 2));
  // Now it is, and the same handle may come again.
  Timeline* const again = need(pool->timeline_of(theirs.get()));
  EXPECT_EQ(again, t);
  EXPECT_FALSE(t->closed());
  EXPECT_TRUE(t->busy());
  GK_OK(x->acquire(*t));
  GK_OK(work.fill(*t, x, 5));
  GK_OK(x->acquire(*own));
  EXPECT_TRUE(work.all(*own, x, 5));
}

// Two threads read what a third timeline is still writing. Whichever comes second must not rely on an order
// that the first has not made yet.
class MemoryTimelineThreads : public ::testing::TestWithParam<const char*> {};

TEST_P(MemoryTimelineThreads, readers_at_the_same_time_both_come_after_the_writer) {
  Work work(GetParam());
  if (work.device == nullptr) GTEST_SKIP() << work.reason;
  const auto pool = memory::Pool::create(work.device, 0);
  Timeline* writer = need(pool->timeline());
  constexpr int kReaders = 3;
  std::vector<Timeline*> readers;
  for (int i = 0; i < kReaders; ++i) readers.push_back(need(pool->timeline()));
  for (int round = 0; round < 20; ++round) {
    const BlockPtr x = need(pool->allocate(4000, hal::Placement::Device, writer));
    GK_OK(work.fill(*writer, x, 1));
    GK_OK(work.slow(*writer, x, static_cast<float>(round)));
    std::atomic<int> ready{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kReaders; ++i) {
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < kReaders) {
        }
        const Lease lease(x);
        if (!x->acquire(*readers[static_cast<size_t>(i)])) ++wrong;
        if (!work.all(*readers[static_cast<size_t>(i)], x, 1.0F + static_cast<float>(round))) ++wrong;
      });
    }
    for (auto& t : threads) t.join();
    ASSERT_EQ(wrong, 0) << "in round " << round;
  }
}

// A launch of one thread and a takeover by another at the same moment: by Note [Launches and departures] the
// last user that the block remembers comes after all of them, so its memory is handed on safely.
TEST_P(MemoryTimelineThreads, launches_and_takeovers_at_once_leave_nobody_behind) {
  Work work(GetParam());
  if (work.device == nullptr) GTEST_SKIP() << work.reason;
  const auto pool = memory::Pool::create(work.device, 0, false);
  const std::vector<Timeline*> users{need(pool->timeline()), need(pool->timeline())};
  Timeline* next = need(pool->timeline());
  constexpr int kTurns = 2;
  constexpr int64_t kBig = int64_t{2} << 20;  // has a segment of its own
  for (int round = 0; round < 8; ++round) {
    BlockPtr x = need(pool->allocate(kBig, hal::Placement::Device, next));
    GK_OK(work.fill(*next, x, 5));
    const void* address = x->address();
    std::vector<BlockPtr> sums;
    for (Timeline* t : users) {
      sums.push_back(need(pool->allocate(4000, hal::Placement::Device, t)));
      GK_OK(work.fill(*t, sums.back(), 0));
    }
    std::atomic<int> ready{0}, wrong{0};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < users.size(); ++i) {
      threads.emplace_back([&, t = users[i], sum = sums[i]] {
        const Lease lease(x);
        ++ready;
        while (ready < 2) {
        }
        for (int turn = 0; turn < kTurns; ++turn) {
          uint64_t known = t->departures();
          if (!x->acquire(*t) || !work.slow(*t, sum, 1) || !work.add(*t, sum, x)) ++wrong;
          while (t->departures() != known) {
            known = t->departures();
            if (!x->acquire(*t)) ++wrong;
          }
        }
      });
    }
    for (auto& t : threads) t.join();
    ASSERT_EQ(wrong, 0);
    x.reset();
    const BlockPtr y = need(pool->allocate(kBig, hal::Placement::Device, next));
    EXPECT_EQ(y->address(), address);
    GK_OK(work.fill(*next, y, 7));
    for (size_t i = 0; i < users.size(); ++i) {
      ASSERT_TRUE(work.all(*users[i], sums[i], kTurns * 6)) << "in round " << round;
    }
  }
}

GK_ALL_DEVICES(MemoryTimelineThreads);

}  // namespace
}  // namespace gk::test
