// Several runtimes over one device: order between their streams, launches counted call by call, threads that
// take part in a recording.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

using exec::Recording;
Arg f(float v) { return value(Scalar::of_float(v)); }

std::string code_of(const Result<void>& r) { return r ? "" : r.error().code; }

class ExecThreads : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    if (rt == nullptr) return;
    Builder a = builder("adder"), s = builder("slow"), x = builder("axpy");
    add = load(a.slots(1).scalars({1}).add(a.array(0), scalar_slot(0)).build());
    slow = load(s.slots(1).scalars({1}).slow(s.array(0), scalar_slot(0)).build());
    axpy = load(x.slots(2).axpy(x.array(0), x.array(1), f(1)).build());
  }
  std::shared_ptr<exec::Executable> make(const std::shared_ptr<exec::Loaded>& p, exec::Bindings b) {
    return need(need(exec::Graph::create(*rt, {{"", p, std::move(b), {}, {}}}, "g"))->instantiate());
  }
  /// Names of the device's calls while `f` runs; only a trace knows.
  std::vector<std::string> calls(const std::function<void()>& run) {
    auto* trace = dynamic_cast<hal::trace::TraceDevice*>(device.get());
    if (trace == nullptr) {
      run();
      return {};
    }
    trace->clear_log();
    run();
    std::vector<std::string> names;
    for (const auto& call : trace->log()) names.push_back(call.name);
    return names;
  }
  std::shared_ptr<exec::Loaded> add, slow, axpy;
};

TEST_P(ExecThreads, another_runtime_comes_after_what_used_the_array_last) {
  const auto other = need(rt->fork());
  EXPECT_NE(&other->stream(), &rt->stream());
  EXPECT_EQ(&other->pool(), &rt->pool());
  const auto x = block(0);
  for (int i = 0; i < 3; ++i) {
    GK_OK(exec::run(*rt, slow, bind({x}, {1})));
    GK_OK(exec::run(*other, slow, bind({x}, {1})));
  }
  EXPECT_TRUE(all(x, 6));
}

TEST_P(ExecThreads, what_a_gone_runtime_did_is_waited_for) {
  const auto x = block(0);
  auto other = need(rt->fork());
  GK_OK(exec::run(*other, slow, bind({x}, {1})));
  other.reset();
  GK_OK(exec::run(*rt, add, bind({x}, {1})));
  EXPECT_TRUE(all(x, 2));
  // Its stream goes to the next one.
  const auto third = need(rt->fork());
  GK_OK(exec::run(*third, add, bind({x}, {1})));
  EXPECT_TRUE(all(x, 3));
}

TEST_P(ExecThreads, a_steady_launch_is_one_call_however_many_arrays) {
  for (const int arrays : {3, 300}) {
    Builder b = builder("many", 16);
    b.slots(arrays);
    for (int i = 0; i < arrays; ++i) b.add(slot(i, 64), f(1));
    std::vector<memory::BlockPtr> blocks;
    for (int i = 0; i < arrays; ++i) blocks.push_back(block(0, 16));
    GK_OK(rt->synchronize());
    const auto p = load(b.build());
    const auto e = make(p, bind(blocks));
    EXPECT_EQ(e->num_leases(), arrays);
    GK_OK(e->launch(*rt));
    const int64_t before = device->driver_calls();
    for (int i = 0; i < 10; ++i) GK_OK(e->launch(*rt));
    EXPECT_EQ(device->driver_calls() - before, 10);
    // Another runtime takes one array: one order, once; then it is steady again.
    const auto other = need(rt->fork());
    Builder c = builder("one", 16);
    const auto one = load(c.slots(1).add(slot(0, 64), f(1)).build());
    GK_OK(exec::run(*other, one, bind({blocks[1]})));
    const auto again = calls([&] { need(e->launch(*rt)); });
    const auto steady = calls([&] { need(e->launch(*rt)); });
    if (!again.empty()) {
      EXPECT_EQ(again, (std::vector<std::string>{"record event", "stream waits for event", "launch graph"}));
      EXPECT_EQ(steady, (std::vector<std::string>{"launch graph"}));
    }
    EXPECT_TRUE(all(blocks[1], 14, 16));
    EXPECT_TRUE(all(blocks[2], 13, 16));
  }
}

TEST_P(ExecThreads, an_update_acquires_what_is_new_and_no_more) {
  const auto x = block(0), y = block(0);
  const auto e = make(add, bind({x}, {1}));
  GK_OK(e->launch(*rt));
  const auto other = need(rt->fork());
  GK_OK(exec::run(*other, slow, bind({y}, {1})));
  GK_OK(e->update(0, add, bind({y}, {2})));
  const auto first = calls([&] { need(e->launch(*rt)); });
  const auto steady = calls([&] { need(e->launch(*rt)); });
  if (!first.empty()) {
    EXPECT_EQ(first, (std::vector<std::string>{"record event", "stream waits for event", "launch graph"}));
    EXPECT_EQ(steady, (std::vector<std::string>{"launch graph"}));
  }
  EXPECT_TRUE(all(y, 5));
}

TEST_P(ExecThreads, launches_of_one_executable_on_two_streams_do_not_overlap) {
  const auto x = block(0);
  const auto e = make(slow, bind({x}, {1}));
  const auto other = need(rt->fork());
  for (int i = 0; i < 3; ++i) {
    GK_OK(e->launch(*rt));
    GK_OK(e->launch(*other));
  }
  EXPECT_TRUE(all(x, 6));
}

// Row 19: a is incremented by one thread's graph, b sums a by the other's.
TEST_P(ExecThreads, two_threads_launch_in_turns) {
  const auto a = block(1), b = block(0);
  const auto ea = make(add, bind({a}, {1}));
  const auto eb = make(axpy, bind({b, a}));
  std::atomic<int> turn{0};
  const auto worker = [&](int parity, exec::Executable& e) {
    const auto mine = need(rt->fork());
    for (int i = 0; i < 10; ++i) {
      for (int now = turn.load(); now % 2 != parity; now = turn.load()) turn.wait(now);
      need(e.launch(*mine));
      turn.fetch_add(1);
      turn.notify_all();
    }
  };
  std::thread first([&] { worker(0, *ea); }), second([&] { worker(1, *eb); });
  first.join();
  second.join();
  EXPECT_TRUE(all(a, 11));
  EXPECT_TRUE(all(b, 65));
}

TEST_P(ExecThreads, a_fault_is_raised_where_the_work_was_given) {
  Builder b = builder();
  const auto p = load(b.slots(1).add(b.array(0), f(1)).fault(7, 5).build());
  const auto x = block(0);
  const auto other = need(rt->fork());
  GK_OK(exec::run(*other, p, bind({x})));
  GK_OK(rt->synchronize());
  EXPECT_EQ(code_of(other->synchronize()), "E0801");
  GK_OK(other->synchronize());
  // Whoever launches an executable hears of it, not the runtime that made it.
  const auto e = make(p, bind({x}));
  GK_OK(e->launch(*other));
  EXPECT_EQ(code_of(other->synchronize()), "E0801");
  GK_OK(other->synchronize());
  GK_OK(rt->synchronize());
}

TEST_P(ExecThreads, a_fault_of_a_runtime_that_is_gone_is_raised_by_the_next_wait_of_another) {
  Builder b = builder();
  const auto p = load(b.slots(1).add(b.array(0), f(1)).fault(7, 5).build());
  const auto x = block(0);
  const auto e = make(p, bind({x}));
  const auto by_call = [&](exec::Runtime& gone) { return exec::run(gone, p, bind({x})); };
  const auto by_launch = [&](exec::Runtime& gone) { return e->launch(gone); };
  for (const auto& give : {std::function<Result<void>(exec::Runtime&)>(by_call), {by_launch}}) {
    auto gone = need(rt->fork());
    GK_OK(give(*gone));
    gone.reset();
    std::vector<float> read(static_cast<size_t>(kN));
    EXPECT_EQ(code_of(rt->download(read.data(), x, kN * 4)), "E0801") << "it waits for the work";
    EXPECT_EQ(read, std::vector<float>(static_cast<size_t>(kN), 1));
    GK_OK(rt->synchronize());
    need(rt->upload(x, std::vector<float>(static_cast<size_t>(kN), 0).data(), kN * 4));
  }
}

TEST_P(ExecThreads, an_executable_outlives_the_runtime_that_made_it) {
  Builder b = builder();
  const auto p = load(b.slots(1).add(b.array(0), f(1)).fault(7, 5).build());
  const auto x = block(0);
  auto maker = need(rt->fork());
  const auto e = need(need(exec::Graph::create(*maker, {{"", p, bind({x}), {}, {}}}, "g"))->instantiate());
  maker.reset();
  GK_OK(e->launch(*rt, 2));
  EXPECT_EQ(code_of(rt->synchronize()), "E0801");
  GK_OK(rt->synchronize());
  EXPECT_TRUE(all(x, 2));
}

// A graph whose temporary two executables would otherwise have in common.
TEST_P(ExecThreads, executables_of_a_recording_run_at_the_same_time) {
  Builder b = builder("copy");
  const auto copy = load(b.slots(2).copy(b.array(0), b.array(1)).build());
  const auto one = block(1), x = block(0), y = block(0);
  const auto r = need(exec::Recording::begin(*rt, {}));
  {
    const auto t = need(rt->allocate(kN * 4));
    GK_OK(exec::run(*rt, copy, bind({t, one})));
    GK_OK(exec::run(*rt, add, bind({t}, {1})));
    GK_OK(exec::run(*rt, axpy, bind({x, t})));
  }
  const auto g = need(r->finish());
  const auto first = need(g->instantiate()), second = need(g->instantiate());
  EXPECT_EQ(first->arena_bytes(), kN * 4);
  EXPECT_EQ(second->arena_bytes(), kN * 4);
  EXPECT_EQ(second->num_leases(), 3);
  // All that they have in common is what both read: that they have a copy of each.
  const auto one_more = block(1);
  const std::pair<exec::SlotBinding, exec::SlotBinding> pairs[] = {{{x, 0}, {y, 0}},
                                                                   {{one, 0}, {one_more, 0}}};
  GK_OK(second->rebind(pairs));
  const auto other = need(rt->fork());
  GK_OK(first->launch(*rt));
  GK_OK(second->launch(*other));
  const auto names = calls([&] {
    need(first->launch(*rt));
    need(second->launch(*other));
    need(first->launch(*rt));
  });
  if (!names.empty()) {
    EXPECT_EQ(names, std::vector<std::string>(3, "launch graph")) << "neither is ordered after the other";
  }
  GK_OK(other->synchronize());
  EXPECT_TRUE(all(x, 6));
  EXPECT_TRUE(all(y, 4));
  // The graph goes on serving when the one that has its own temporaries is gone.
  GK_OK(need(g->instantiate())->launch(*rt));
  EXPECT_TRUE(all(x, 8));
}

TEST_P(ExecThreads, code_and_programs_are_shared) {
  const auto other = need(rt->fork());
  const auto x = block(0);
  const auto names = calls([&] {
    Builder b = builder("shared");
    const auto p = need(exec::Loaded::create(*other, b.slots(1).add(b.array(0), f(1)).build()));
    need(exec::run(*rt, p, bind({x})));
  });
  EXPECT_EQ(std::count(names.begin(), names.end(), "load module"), 0);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ExecThreads, host_calls_come_in_their_turn) {
  const auto x = block(0);
  std::atomic<int> seen{0};
  GK_OK(exec::run(*rt, slow, bind({x}, {1})));
  GK_OK(rt->host_call([&] { seen = 1; }));
  GK_OK(rt->synchronize());
  EXPECT_EQ(seen, 1);
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  GK_OK(exec::run(*rt, add, bind({x}, {1})));
  GK_OK(rt->host_call([&] { ++seen; }));
  GK_OK(exec::run(*rt, add, bind({x}, {1})));
  const auto g = need(r->finish());
  EXPECT_EQ(g->print(),
            "graph r nodes=3 edges=2 driver_nodes=3 driver_edges=2 leases=1 arena=0\n"
            "  node 0 #0\n    kernel add\n  node 1 #1 after #0\n    host call\n  node 2 #2 after #1\n"
            "    kernel add\n");
  EXPECT_EQ(seen, 1);
  const auto e = need(g->instantiate());
  GK_OK(e->launch(*rt, 5));
  GK_OK(rt->synchronize());
  EXPECT_EQ(seen, 6);
  // Recorded again where a node needs the graph anew.
  Builder two = builder("two");
  const auto p = load(two.slots(1).add(two.array(0), f(1)).add(two.array(0), f(1)).build());
  GK_OK(e->update(0, p, bind({x})));
  EXPECT_EQ(e->last_update(), exec::UpdateRung::Reinstantiated);
  GK_OK(e->launch(*rt));
  GK_OK(rt->synchronize());
  EXPECT_EQ(seen, 7);
  EXPECT_TRUE(all(x, 1 + 10 + 3));
  EXPECT_EQ(code_of(rt->host_call(nullptr)), "E0902");
}

// ---- threads in a recording ----

TEST_P(ExecThreads, threads_take_part_one_at_a_time) {
  const auto x = block(0);
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  std::vector<std::thread> threads;
  std::vector<memory::BlockPtr> sums(8);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const auto mine = need(rt->fork());
      need(r->join(*mine));
      EXPECT_EQ(mine->recording(), r.get());
      EXPECT_EQ(code_of(mine->synchronize()), "E0703");
      sums[static_cast<size_t>(t)] = need(mine->allocate(kN * 4));
      need(mine->upload(sums[static_cast<size_t>(t)], std::vector<float>(kN, 0).data(), kN * 4));
      for (int i = 0; i < 25; ++i) {
        const auto dead = need(mine->allocate(kN * 4));
        need(exec::run(*mine, add, bind({x}, {1})));
        need(exec::run(*mine, axpy, bind({sums[static_cast<size_t>(t)], x})));
      }
      need(r->leave(*mine));
      EXPECT_EQ(mine->recording(), nullptr);
      need(mine->synchronize());
    });
  }
  for (auto& t : threads) t.join();
  const auto g = need(r->finish());
  EXPECT_EQ(g->nodes().size(), 8U * 51);
  const auto e = need(g->instantiate());
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 200));
  float total = 0;
  for (const auto& s : sums) total += values(s)[0];
  // Each sum takes x between two of all increments: at least their own 25, at most the last 25.
  EXPECT_GE(total, 8 * 325);
  EXPECT_LE(total, 200 * 200);
  EXPECT_EQ(rt->pool().retired().captures(), 0);
}

TEST_P(ExecThreads, a_thread_that_is_not_done_ends_it_and_comes_late) {
  const auto x = block(0);
  const auto other = need(rt->fork()), more = need(rt->fork());
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  GK_OK(r->join(*other));
  EXPECT_EQ(code_of(r->join(*other)), "E0718");
  const auto nested = Recording::begin(*other, {});
  ASSERT_FALSE(nested.has_value());
  EXPECT_EQ(nested.error().code, "E0718");
  GK_OK(exec::run(*other, add, bind({x}, {1})));
  const auto end = r->finish();
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().code, "E0714");
  EXPECT_EQ(rt->recording(), nullptr);
  EXPECT_EQ(x->leases(), 0);
  EXPECT_EQ(rt->pool().retired().captures(), 0);
  // What comes late is refused and does not run, until the thread has left.
  EXPECT_EQ(code_of(exec::run(*other, add, bind({x}, {1}))), "E0713");
  EXPECT_EQ(code_of(other->synchronize()), "E0713");
  EXPECT_EQ(code_of(other->host_call([] {})), "E0713");
  EXPECT_EQ(code_of(r->join(*more)), "E0713");
  GK_OK(r->leave(*other));
  GK_OK(exec::run(*other, add, bind({x}, {1})));
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ExecThreads, concurrent_recordings_are_graphs_of_their_own) {
  std::vector<std::thread> threads;
  std::vector<memory::BlockPtr> blocks;
  for (int t = 0; t < 4; ++t) blocks.push_back(block(0));
  GK_OK(rt->synchronize());
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto mine = need(rt->fork());
      const auto& x = blocks[static_cast<size_t>(t)];
      for (int round = 0; round < 10; ++round) {
        const auto r = need(Recording::begin(*mine, {.name = "r"}));
        for (int i = 0; i <= t; ++i) need(exec::run(*mine, add, bind({x}, {1})));
        const auto g = need(r->finish());
        EXPECT_EQ(g->nodes().size(), static_cast<size_t>(t) + 1);
        need(need(g->instantiate())->launch(*mine));
      }
    });
  }
  for (auto& t : threads) t.join();
  for (int t = 0; t < 4; ++t)
    EXPECT_TRUE(all(blocks[static_cast<size_t>(t)], 10.0F * static_cast<float>(t + 1)));
}

GK_ALL_DEVICES(ExecThreads);

}  // namespace
}  // namespace gk::test
