// The retire list: bounded drains, captures, blocking releases, failures.
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/memory/retire.h"
#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

using memory::RetireList;
using ::testing::ElementsAre;

/// An event that the test sets.
class Switch : public hal::Event {
 public:
  Result<bool> done() override {
    ++asked;
    if (broken) return fail(ErrorKind::Device, "E0503", "no answer");
    return on.load();
  }
  Result<void> wait() override {
    on.wait(false);
    return {};
  }
  std::atomic<bool> on{false}, broken{false};
  std::atomic<int> asked{0};
};

/// A gate that one thread waits at until another opens it.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class MemoryRetire : public ::testing::Test {
 protected:
  void publish(int count = 1) {
    for (int i = 0; i < count; ++i) {
      list.publish("counting", [this]() -> Result<void> {
        ++ran;
        return {};
      });
    }
  }
  RetireList list;
  std::atomic<int> ran{0};
};

TEST_F(MemoryRetire, a_bounded_drain_runs_so_many) {
  publish(600);
  EXPECT_EQ(list.pending(), 600);
  EXPECT_EQ(list.drain(256), 256);
  EXPECT_EQ(ran, 256);
  EXPECT_EQ(list.pending(), 344);
  EXPECT_EQ(list.drain(), 344);
  EXPECT_EQ(list.drain(), 0);
  EXPECT_EQ(ran, 600);
}

TEST_F(MemoryRetire, a_drain_inside_an_ending_does_nothing) {
  int64_t inside = -1;
  list.publish("draining", [&]() -> Result<void> {
    inside = list.drain();
    return {};
  });
  publish(3);
  EXPECT_EQ(list.drain(1), 1);
  EXPECT_EQ(inside, 0);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(list.drain(), 3);
}

TEST_F(MemoryRetire, an_ending_may_publish_and_what_it_held_may_too) {
  std::shared_ptr<void> held(nullptr, [this](void*) { publish(); });
  list.publish("publishing", [this, h = std::move(held)]() -> Result<void> {
    publish();
    return {};
  });
  EXPECT_EQ(list.drain(), 3);
  EXPECT_EQ(ran, 2);
}

TEST_F(MemoryRetire, a_failure_is_noted_once_and_not_retried) {
  int tried = 0;
  list.publish("giving it back", [&]() -> Result<void> {
    ++tried;
    return fail(ErrorKind::Device, "E0503", "the driver refused");
  });
  publish();
  EXPECT_EQ(list.drain(), 2);
  EXPECT_EQ(list.drain(), 0);
  EXPECT_EQ(tried, 1);
  EXPECT_EQ(ran, 1);
  EXPECT_THAT(list.failures(), ElementsAre("giving it back: E0503 the driver refused"));
}

TEST_F(MemoryRetire, an_ending_waits_for_its_events_and_holds_up_nobody) {
  const auto first = std::make_shared<Switch>(), second = std::make_shared<Switch>();
  std::vector<int> order;
  list.publish("a", [&]() -> Result<void> { return order.push_back(1), Result<void>{}; }, {first, second});
  list.publish("b", [&]() -> Result<void> { return order.push_back(2), Result<void>{}; });
  EXPECT_EQ(list.drain(), 1);
  first->on = true;
  EXPECT_EQ(list.drain(), 0);
  second->broken = true;  // cannot tell: not done
  second->on = true;
  EXPECT_EQ(list.drain(256), 0);
  EXPECT_EQ(list.pending(), 1);
  second->broken = false;
  EXPECT_EQ(list.drain(256), 1);
  EXPECT_THAT(order, ElementsAre(2, 1));
  EXPECT_TRUE(list.failures().empty());
}

// An allocation must not ask about everything that waits; but all get their turn.
TEST_F(MemoryRetire, a_bounded_drain_asks_about_few) {
  std::vector<std::shared_ptr<Switch>> events;
  for (int i = 0; i < 100; ++i) {
    events.push_back(std::make_shared<Switch>());
    list.publish("one", [this]() -> Result<void> { return ++ran, Result<void>{}; }, {events.back()});
  }
  EXPECT_EQ(list.drain(256), 0);
  int asked = 0;
  for (const auto& e : events) asked += e->asked;
  EXPECT_LE(asked, 8);
  events[99]->on = true;
  for (int i = 0; i < 100 && ran == 0; ++i) list.drain(256);
  EXPECT_EQ(ran, 1);
  for (const auto& e : events) e->on = true;
  EXPECT_EQ(list.drain(), 99);
}

TEST_F(MemoryRetire, nothing_ends_during_a_capture_and_the_last_end_drains) {
  GK_OK(list.begin_capture());
  GK_OK(list.begin_capture());
  EXPECT_EQ(list.captures(), 2);
  publish(2);
  EXPECT_EQ(list.drain(), 0);
  list.end_capture();
  EXPECT_EQ(list.drain(), 0);
  EXPECT_EQ(ran, 0);
  list.end_capture();
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(list.captures(), 0);
  list.end_capture();  // one too many
  EXPECT_EQ(list.captures(), 0);
}

TEST_F(MemoryRetire, a_capture_waits_for_an_ending_in_progress_and_stops_the_rest) {
  Gate inside, go_on;
  list.publish("slow", [&]() -> Result<void> {
    inside.open();
    go_on.pass();
    ++ran;
    return {};
  });
  publish(5);
  std::thread drainer([&] { list.drain(); });
  inside.pass();
  std::atomic<bool> begun{false};
  int seen = -1;
  std::thread capturer([&] {
    need(list.begin_capture());
    seen = ran;
    begun = true;
  });
  while (list.captures() == 0) std::this_thread::yield();
  EXPECT_FALSE(begun);
  go_on.open();
  capturer.join();
  drainer.join();
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(ran, 1);
  list.end_capture();  // begun by another thread, which is gone
  EXPECT_EQ(ran, 6);
}

TEST_F(MemoryRetire, a_capture_fails_fast_during_a_blocking_release) {
  {
    const auto blocking = need(list.begin_blocking());
    const auto r = list.begin_capture();
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().kind, ErrorKind::Capture);
    EXPECT_EQ(r.error().code, "E0708");
    EXPECT_EQ(list.captures(), 0);
    publish();
    EXPECT_EQ(list.drain(), 1);  // endings go on
  }
  GK_OK(list.begin_capture());
  list.end_capture();
}

TEST_F(MemoryRetire, a_blocking_release_is_refused_during_a_capture_whoever_began_it) {
  GK_OK(list.begin_capture());
  std::vector<std::string> codes;
  const auto ask = [&] {
    const auto refused = list.begin_blocking();
    codes.push_back(refused ? "" : refused.error().code);
    EXPECT_EQ(list.try_blocking(), nullptr);
  };
  ask();
  std::thread(ask).join();
  list.end_capture();
  EXPECT_NE(need(list.begin_blocking()), nullptr);
  EXPECT_NE(list.try_blocking(), nullptr);
  EXPECT_THAT(codes, ElementsAre("E0708", "E0708"));
}

TEST_F(MemoryRetire, captures_and_blocking_releases_are_refused_inside_an_ending) {
  std::vector<std::string> codes;
  list.publish("nested", [&]() -> Result<void> {
    codes.push_back(list.begin_capture().error().code);
    codes.push_back(list.begin_blocking().error().code);
    list.settle();
    return {};
  });
  EXPECT_EQ(list.drain(), 1);
  EXPECT_THAT(codes, ElementsAre("E0708", "E0708"));
}

TEST_F(MemoryRetire, what_is_left_ends_with_the_list) {
  const auto event = std::make_shared<Switch>();
  int late = 0;
  std::thread setter;
  {
    RetireList mine;
    mine.publish("waiting", [&]() -> Result<void> { return late = event->on ? 1 : 2, Result<void>{}; },
                 {event});
    GK_OK(mine.begin_capture());
    EXPECT_EQ(mine.drain(), 0);
    setter = std::thread([&] {
      event->on = true;
      event->on.notify_all();
    });
  }
  setter.join();
  EXPECT_EQ(late, 1);
}

TEST_F(MemoryRetire, threads_publish_drain_and_capture) {
  constexpr int kThreads = 4, kRounds = 2000;
  std::atomic<int> capturing{0}, wrong{0}, published{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      uint32_t seed = 7U * static_cast<uint32_t>(t) + 1;
      for (int i = 0; i < kRounds; ++i) {
        seed = seed * 1664525 + 1013904223;
        switch (seed >> 29) {
          case 0:
            if (list.begin_capture()) {
              ++capturing;
              --capturing;
              list.end_capture();
            }
            break;
          case 1:
            if (const auto b = list.try_blocking(); b != nullptr && list.captures() != 0) ++wrong;
            break;
          case 2: list.drain(16); break;
          default:
            ++published;
            list.publish("counted", [&]() -> Result<void> {
              if (capturing != 0) ++wrong;
              return ++ran, Result<void>{};
            });
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  list.drain();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ran, published);
  EXPECT_EQ(list.pending(), 0);
}

}  // namespace
}  // namespace gk::test
