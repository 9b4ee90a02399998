// Rows on executables: launching, what a launch costs, whole-graph updates.
#include <algorithm>
#include <atomic>

#include "tests/contract/contract.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"
#include "tests/contract/steps.h"

namespace gk::contract_test {

CONTRACT_ROW(02J, "an executable sent ahead, then launched, is right; also from another stream") {
  Tensor x = array(0);
  Graph g = ctx.capture([&] { add(x, 1); });
  Exec e = g.instantiate();
  probe::clear_calls(engine);
  e.upload(ctx);
  EXPECT_EQ(probe::calls(engine, "upload graph"), 1);
  EXPECT_EQ(probe::calls(engine, "launch graph"), 0);
  EXPECT_TRUE(all(x, 0));
  e.launch(ctx);
  EXPECT_TRUE(all(x, 1));

  Worker other(engine);
  Exec f = g.instantiate();
  f.upload(other.ctx);
  f.launch(ctx);
  f.upload(ctx);  // again, and with a launch in flight
  f.launch(other.ctx);
  EXPECT_TRUE(all(x, 3));
  f.close();
  EXPECT_EQ(code_of([&] { f.upload(ctx); }), "E0716");
}

CONTRACT_ROW(05J, "an executable takes over another graph: a += 1 becomes b += 2; a is kept, b changes") {
  Tensor a = array(0), b = array(0);
  Graph first = ctx.capture([&] { add(a, 1); });
  Graph second = ctx.capture([&] { add(b, 2); });
  Exec e = first.instantiate(), untouched = first.instantiate();
  const probe::Alive before = probe::alive(engine);
  e.launch(ctx);
  e.update(second);
  e.launch(ctx);
  EXPECT_TRUE(all(a, 1));
  EXPECT_TRUE(all(b, 2));
  const UpdateReport report = e.last_update();
  EXPECT_TRUE(report.rung == UpdateRung::Patched || report.rung == UpdateRung::GraphUpdated);
  EXPECT_EQ(probe::alive(engine).execs, before.execs);
  EXPECT_EQ(a.leases(), 2);  // first, untouched
  EXPECT_EQ(b.leases(), 2);  // second, e
  second.close();
  b.free();
  std::vector<Tensor> fresh = churn(4, 100);
  e.launch(ctx);
  untouched.launch(ctx);
  EXPECT_TRUE(all(a, 2));
  for (const Tensor& t : fresh) EXPECT_TRUE(all(t, 100));
  // And back.
  e.update(first);
  EXPECT_EQ(a.leases(), 3);
  e.launch(ctx);
  EXPECT_TRUE(all(a, 3));
}

CONTRACT_ROW(06J, "a graph of another topology is refused; the executable works on with its leases") {
  Tensor x = array(1), y = array(0), z = array(0);
  Exec e = ctx.capture([&] { axpy(y, x, 1); }).instantiate();
  Graph longer = ctx.capture([&] {
    axpy(z, x, 1);
    axpy(z, x, 1);
  });
  Graph empty = ctx.graph();
  Graph other_kind = ctx.capture([&] { ctx.host_call([] {}); });
  e.launch(ctx);
  const int64_t leased = x.leases();
  for (const Graph& g : {longer, empty, other_kind}) {
    EXPECT_EQ(code_of([&] { e.update(g); }), "E0709");
    EXPECT_EQ(e.num_leases(), 2);
  }
  EXPECT_EQ(x.leases(), leased);
  EXPECT_EQ(z.leases(), 1);
  x = Tensor();
  longer.close();
  engine.reclaim();
  std::vector<Tensor> fresh = churn(4, 100);
  e.launch(ctx);
  EXPECT_TRUE(all(y, 2));
  EXPECT_TRUE(all(z, 0));
  for (const Tensor& t : fresh) EXPECT_TRUE(all(t, 100));
}

CONTRACT_ROW(19J, "launched by two threads in turn, 10 rounds: a = 11, b = the sum of 2 .. 11") {
  // Each stream is still busy when it is given its launch: only an order across streams makes it right.
  Tensor a = array(1), b = array(0);
  Exec count = ctx.capture([&] { add(a, 1); }).instantiate();
  Exec sum = ctx.capture([&] { axpy(b, a, 1); }).instantiate();
  Exec both = ctx.capture([&] {
                   add(a, 1);
                   axpy(b, a, 1);
                 })
                  .instantiate();
  Meeting turn(2);
  on_threads(2, [&](int me) {
    Context mine(engine);
    for (int round = 0; round < 10; ++round) {
      if (me == 0) {
        keep_busy(mine, 2);
        count.launch(mine);
      }
      turn.wait();
      if (me == 1) {
        keep_busy(mine, 2);
        sum.launch(mine);
      }
      turn.wait();
    }
    mine.synchronize();
  });
  EXPECT_TRUE(all(a, 11));
  EXPECT_TRUE(all(b, 65));

  fill(a, 1);
  fill(b, 0);
  on_threads(2, [&](int me) {
    Context mine(engine);
    for (int round = 0; round < 10; ++round) {
      if (round % 2 == me) {
        keep_busy(mine, 2);
        both.launch(mine);
      }
      turn.wait();
    }
  });
  EXPECT_TRUE(all(a, 11));
  EXPECT_TRUE(all(b, 65));

  // An executable never overlaps itself, though it uses no memory at all.
  std::atomic<int> inside{0}, most{0}, times{0};
  Exec call = ctx.capture([&] {
                   ctx.host_call([&] {
                     most = std::max(most.load(), ++inside);
                     std::this_thread::sleep_for(std::chrono::milliseconds(5));
                     --inside;
                     ++times;
                   });
                 })
                  .instantiate();
  Context other(engine);
  for (int round = 0; round < 3; ++round) {
    call.launch(ctx);
    call.launch(other);
  }
  ctx.synchronize();
  other.synchronize();
  EXPECT_EQ(times, 6);
  EXPECT_EQ(most, 1);
}

CONTRACT_ROW(44S, "a launch is one driver call and constant work, with 10 to 3000 arrays leased") {
  Worker other(engine);
  std::vector<int64_t> steps;
  for (const int n : {10, 100, 1000, 3000}) {
    SCOPED_TRACE(n);
    std::vector<Tensor> xs;
    for (int i = 0; i < n; ++i) xs.push_back(array(0, 16));
    Graph g = ctx.capture([&] {
      for (const Tensor& x : xs) add(x, 1);
    });
    Exec e = g.instantiate();
    EXPECT_EQ(e.num_leases(), n);
    e.launch(ctx);
    const int64_t before = probe::calls(engine);
    constexpr int kLaunches = 5;
    for (int i = 0; i < kLaunches; ++i) e.launch(ctx);
    EXPECT_EQ(probe::calls(engine) - before, kLaunches);
    probe::clear_calls(engine);
    e.launch(ctx, 3);
    EXPECT_EQ(probe::call_names(engine), std::vector<std::string>(3, "launch graph"));
    float expected = 9;
    // The driver's own work for a graph is not ours to bound.
    if (!engine.is_cuda()) {
      // Short work runs where it is given, unless something is ahead of it.
      Gate gate(ctx);
      int64_t least = INT64_MAX;
      for (int i = 0; i < 5; ++i, ++expected) least = std::min(least, count_steps([&] { e.launch(ctx); }));
      EXPECT_FALSE(gate.was_forced());
      steps.push_back(least);
    }
    // Other work on this stream, on others' arrays, and waiting take nothing away from it.
    Tensor mine = array(1, 16);
    other.array(1, 16);
    ctx.synchronize();
    probe::clear_calls(engine);
    e.launch(ctx), ++expected;
    EXPECT_EQ(probe::call_names(engine), std::vector<std::string>(1, "launch graph"));
    // Once another stream has used an array, a launch is ordered after that, and then it costs one call
    // again.
    other.kernel("add")(xs[0], 1.0F);
    probe::clear_calls(engine);
    e.launch(ctx), ++expected;
    const auto ordered = probe::call_names(engine);
    EXPECT_GT(ordered.size(), 1U);
    EXPECT_LT(ordered.size(), 10U) << "not the one array alone was ordered";
    probe::clear_calls(engine);
    e.launch(ctx), ++expected;
    EXPECT_EQ(probe::call_names(engine), std::vector<std::string>(1, "launch graph"));
    EXPECT_TRUE(all(xs[0], expected + 1));
    for (const int i : {1, n / 2, n - 1}) EXPECT_TRUE(all(xs[static_cast<size_t>(i)], expected));
  }
  if (steps.empty() || steps[0] < 0) return;  // steps cannot be counted here
  RecordProperty("steps_of_10", std::to_string(steps.front()));
  RecordProperty("steps_of_3000", std::to_string(steps.back()));
  for (const int64_t s : steps) EXPECT_LT(std::abs(s - steps[0]), 1000) << s << " steps, not " << steps[0];
}

CONTRACT_ROW(
    46P,
    "a node retargeted while a launch is in flight: that one keeps the old buffer, the next has the new") {
  Tensor x = array(3), old_z = array(0), new_z = array(0), after = array(0);
  Graph g = ctx.capture([&] {
    ctx.node("c", [&] { axpy(old_z, x, 1); });
    ctx.node("d", [&] { add(after, 1); });
  });
  Exec e = g.instantiate();
  e.launch(ctx);
  warm();
  Gate gate(ctx);
  e.launch(ctx);
  e.node("c").update(lib.kernel("axpy"), {new_z, x, 10.0F});
  EXPECT_EQ(e.last_update().rung, UpdateRung::Patched);
  EXPECT_FALSE(gate.was_forced());
  e.launch(ctx);
  e.node("c").update(lib.kernel("add"), {new_z, 0.5F});  // another function
  e.launch(ctx);
  EXPECT_FALSE(gate.was_forced()) << "an update waited for a launch";
  gate.open();
  EXPECT_TRUE(all(old_z, 6));
  EXPECT_TRUE(all(new_z, 30.5F));
  EXPECT_TRUE(all(after, 4));
  // The graph's other executables have the node as it was recorded.
  g.instantiate().launch(ctx);
  EXPECT_TRUE(all(old_z, 9));

  // A new buffer that another stream has still to write: the next launch comes after that.
  Worker other(engine);
  Tensor late = other.array(0);
  {
    Gate writer(other.ctx);
    other.kernel("fill")(late, 100.0F);
    e.node("c").update(lib.kernel("axpy"), {late, x, 1.0F});
    e.launch(ctx);
    EXPECT_FALSE(writer.was_forced()) << "an update or a launch waited for another stream";
    give_wrong_orders_time();
  }
  EXPECT_TRUE(all(late, 103));
}

CONTRACT_ROW(47P, "the old buffer goes back once the last launch that uses it is done, and not before") {
  constexpr int64_t kBig = 1 << 18;  // a MiB, so that it cannot hide among small ones
  Worker other(engine);
  Tensor seen = array(0, kBig), new_z = array(0, kBig), old_z = array(0, kBig);
  Exec e = ctx.capture([&] {
                ctx.node("write", [&] { add(old_z, 1); });
                ctx.node("read", [&] { axpy(seen, old_z, 1); });
              })
               .instantiate();
  e.launch(ctx);
  warm();
  const int64_t before = settled_bytes();
  {
    Gate gate(ctx);
    e.launch(ctx);
    e.rebind({{old_z, new_z}});
    old_z = Tensor();
    // Whoever gets the memory, on any stream, writes to it after the launch.
    std::vector<Tensor> fresh;
    for (int i = 0; i < 4; ++i) fresh.push_back(other.array(100, kBig));
    EXPECT_FALSE(gate.was_forced()) << "a release, or an allocation, waited for the device";
    give_wrong_orders_time();
    gate.open();
    e.launch(ctx);
    EXPECT_TRUE(all(seen, 1 + 2 + 1));
    EXPECT_TRUE(all(new_z, 1));
    for (const Tensor& t : fresh) EXPECT_TRUE(other.all(t, 100));
  }
  EXPECT_EQ(settled_bytes(), before - kBig * 4);
}

}  // namespace gk::contract_test
