// What goes on for long: launches with updates and captures in between, and executables destroyed in flight.
// Memory must stay flat, and results right. `--launches` says how long.
#include <algorithm>
#include <fstream>
#include <optional>

#include "tests/contract/contract.h"
#include "tests/contract/options.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

/// What must be as it was, each time that nothing is in flight.
struct Level {
  int64_t in_use_bytes, cached_bytes, leases;
  probe::Alive alive;
  bool operator==(const Level&) const = default;
};

/// Resident memory of the process; 0 where a sanitizer keeps what is freed.
int64_t resident_bytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
#endif
}

class StressSoak : public Contract {
 protected:
  Level level() {
    settled_bytes();
    const EngineStats s = engine.stats();
    EXPECT_EQ(s.pending_releases, 0);
    return {s.in_use_bytes, s.cached_bytes, s.leases, probe::alive(engine)};
  }
  void expect_level(const Level& now, const Level& was) {
    EXPECT_EQ(now.in_use_bytes, was.in_use_bytes);
    EXPECT_EQ(now.cached_bytes, was.cached_bytes);
    EXPECT_EQ(now.leases, was.leases);
    EXPECT_EQ(now.alive.allocations, was.alive.allocations);
    EXPECT_EQ(now.alive.bytes, was.alive.bytes);
    EXPECT_EQ(now.alive.modules, was.alive.modules);
    EXPECT_EQ(now.alive.streams, was.alive.streams);
    EXPECT_EQ(now.alive.events, was.alive.events);
    EXPECT_EQ(now.alive.graphs, was.alive.graphs);
    EXPECT_EQ(now.alive.execs, was.alive.execs);
  }
};

// Each launch adds v to one of the sums, and the sum of both to a temporary; the node's target and v change.
TEST_F(StressSoak, launches_with_updates_and_captures_in_between) {
  const auto plus = lib.fn<Tensor(Tensor, float)>("plus");
  const int64_t launches = options().launches;
  constexpr int64_t kUpdateEvery = 10, kCaptureEvery = 1000;
  Tensor sums[2] = {array(0), array(0)}, seen = array(0);
  float expected[2] = {0, 0}, expected_seen = 0;
  size_t target = 0;
  float v = 1;
  std::optional<Exec> e;
  std::optional<Level> first;
  int64_t resident = 0;
  for (int64_t i = 0; i < launches; ++i) {
    if (i % kCaptureEvery == 0) {
      if (i > 0) {
        for (const size_t k : {size_t{0}, size_t{1}})
          ASSERT_TRUE(all(sums[k], expected[k])) << "before launch " << i;
        ASSERT_TRUE(all(seen, expected_seen)) << "before launch " << i;
      }
      e.reset();
      const Level now = level();
      if (first) expect_level(now, *first);
      if (HasFailure()) FAIL() << "before launch " << i;
      // The first round compiles, loads and grows what stays.
      if (i > 0 && !first) {
        first = now;
        resident = resident_bytes();
      }
      for (Tensor& s : sums) s = array(0);
      seen = array(0);
      expected[0] = expected[1] = expected_seen = 0;
      target = 0;
      v = 1;
      Graph g = ctx.capture([&] {
        ctx.node("add", [&] { add(sums[0], 1); });
        Tensor t = plus(sums[1], 1);
        Tensor u = plus(t, 1);
        axpy(seen, u, 1);
      });
      e = g.instantiate();
    } else if (i % kUpdateEvery == 0) {
      target = static_cast<size_t>(i / kUpdateEvery) % 2;
      v = static_cast<float>(i / kUpdateEvery % 7);
      e->node("add").update(lib.kernel("add"), {sums[target], v});
    }
    e->launch(ctx);
    expected[target] += v;
    expected_seen += expected[1] + 2;
    if (i % 100 == 0) (void)array(100);  // what an update gave back is written over
  }
  for (const size_t k : {size_t{0}, size_t{1}}) EXPECT_TRUE(all(sums[k], expected[k]));
  EXPECT_TRUE(all(seen, expected_seen));
  e.reset();
  if (first) {
    expect_level(level(), *first);
    // A dozen bytes a launch would be a leak; the allocator's own unrest is less than these MiB.
    EXPECT_LT(resident_bytes() - resident, (int64_t{16} << 20) + 8 * launches);
  }
}

TEST_F(StressSoak, executables_are_destroyed_in_flight) {
  Tensor x = array(0);
  Graph g = ctx.capture([&] {
    add(x, 1);
    Tensor t = lib.fn<Tensor(Tensor, float)>("plus")(x, 1);
    add(x, 1);
  });
  constexpr int64_t kCycles = 10000, kCheckEvery = 1000;
  destroy_in_flight(g, 100);
  const Level first = level();
  int64_t done = 100;
  for (; done < kCycles + 100; done += kCheckEvery) {
    destroy_in_flight(g, kCheckEvery);
    ASSERT_TRUE(all(x, 2 * static_cast<float>(done + kCheckEvery)));
    expect_level(level(), first);
    if (HasFailure()) FAIL() << "after " << done + kCheckEvery << " cycles";
  }
  EXPECT_EQ(x.leases(), 1);
  g.close();
  EXPECT_EQ(x.leases(), 0);
}

}  // namespace
}  // namespace gk::contract_test
