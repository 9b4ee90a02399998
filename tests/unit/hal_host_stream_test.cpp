// Who runs what on a host stream: short work at once on the thread that gives it, what nobody has begun on a
// thread that waits for it, the rest and functions of the host program on the stream's own thread; in order.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/hal/device.h"

namespace gk::test {
namespace {

std::thread::id ran_on;
std::atomic<int> order{0};
std::atomic<bool> gate_open{false};

void note_thread(void* const*, int64_t, int64_t) { ran_on = std::this_thread::get_id(); }
void append(void* const* params, int64_t, int64_t) {
  int digit = 0;
  std::memcpy(&digit, params[0], sizeof digit);
  order.store(order.load() * 10 + digit);
}
void wait_for_gate(void* const*, int64_t, int64_t) {
  while (!gate_open.load()) std::this_thread::yield();
}

class HalHostStream : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = hal::open("host", {});
    ASSERT_TRUE(opened.has_value());
    device = std::move(*opened);
    auto made = device->create_stream();
    ASSERT_TRUE(made.has_value());
    stream = std::move(*made);
    order = 0;
    gate_open = false;
  }
  /// `work`: as LaunchDims::work.
  static void give(hal::Recorder& r, hal::HostFunction& f, int64_t work, int digit = 0) {
    void* params[] = {&digit};
    const uint32_t sizes[] = {sizeof digit};
    hal::KernelLaunch l;
    l.function = &f;
    l.dims.items = 1;
    l.dims.work = work;
    l.params = params;
    l.param_sizes = sizes;
    ASSERT_TRUE(r.kernel(l, {}).has_value());
  }
  std::shared_ptr<hal::Device> device;
  std::unique_ptr<hal::Stream> stream;
  hal::HostFunction note{note_thread}, digit{append}, gate{wait_for_gate};
};

TEST_F(HalHostStream, short_work_runs_on_the_thread_that_gives_it) {
  give(*stream, note, 1);
  EXPECT_EQ(ran_on, std::this_thread::get_id());  // before any wait
}

TEST_F(HalHostStream, a_short_graph_runs_on_the_thread_that_launches_it) {
  auto graph = device->create_graph();
  ASSERT_TRUE(graph.has_value());
  give(**graph, note, 1);
  auto e = (*graph)->instantiate();
  ASSERT_TRUE(e.has_value());
  ran_on = {};
  ASSERT_TRUE((*e)->launch(*stream).has_value());
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST_F(HalHostStream, giving_long_work_does_not_wait_for_it) {
  give(*stream, gate, -1);
  give(*stream, digit, 1, 5);  // short, but something is ahead of it
  EXPECT_EQ(order, 0);
  gate_open = true;
  ASSERT_TRUE(stream->synchronize().has_value());
  EXPECT_EQ(order, 5);
}

TEST_F(HalHostStream, work_that_nobody_waits_for_is_done_all_the_same) {
  give(*stream, digit, -1, 3);
  for (int i = 0; i < 5000 && order != 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(order, 3);
}

TEST_F(HalHostStream, functions_of_the_host_program_run_on_the_streams_thread) {
  ran_on = std::this_thread::get_id();
  ASSERT_TRUE(stream->host_call([] { ran_on = std::this_thread::get_id(); }, {}).has_value());
  ASSERT_TRUE(stream->synchronize().has_value());
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST_F(HalHostStream, everything_runs_in_the_order_in_which_it_was_given) {
  for (int round = 0; round < 200; ++round) {
    order = 0;
    give(*stream, digit, round % 2 ? 1 : -1, 1);
    give(*stream, digit, -1, 2);
    give(*stream, digit, 1, 3);
    ASSERT_TRUE(stream->host_call([] { order = order * 10 + 4; }, {}).has_value());
    give(*stream, digit, 1, 5);
    ASSERT_TRUE(stream->synchronize().has_value());
    ASSERT_EQ(order, 12345);
  }
}

TEST_F(HalHostStream, several_threads_may_give_and_wait) {
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        ASSERT_TRUE(stream->host_call([&] { ++done; }, {}).has_value());
        give(*stream, digit, i % 3 - 1, 0);
        if (i % 7 == 0) {
          ASSERT_TRUE(stream->synchronize().has_value());
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(stream->synchronize().has_value());
  EXPECT_EQ(done, 900);
}

TEST_F(HalHostStream, an_event_is_done_when_what_was_given_before_is) {
  give(*stream, gate, -1);
  auto e = stream->record();
  ASSERT_TRUE(e.has_value());
  EXPECT_FALSE(*(*e)->done());
  auto other = device->create_stream();
  ASSERT_TRUE(other.has_value());
  ASSERT_TRUE((*other)->wait(**e).has_value());
  give(**other, digit, 1, 7);
  EXPECT_EQ(order, 0);
  gate_open = true;
  ASSERT_TRUE((*other)->synchronize().has_value());
  EXPECT_EQ(order, 7);
  EXPECT_TRUE(*(*e)->done());
}

}  // namespace
}  // namespace gk::test
