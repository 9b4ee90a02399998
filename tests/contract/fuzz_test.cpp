// The row on threads that do everything at random.
#include <chrono>
#include <optional>

#include "tests/contract/contract.h"
#include "tests/contract/fuzz_player.h"
#include "tests/contract/options.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {

CONTRACT_ROW(52P, "8 threads do all that can be done, at random; leases and memory return to zero") {
  constexpr int kThreads = 8;
  warm();
  const int64_t bytes = settled_bytes();
  const probe::Alive alive = probe::alive(engine);
  Board board;
  for (int i = 0; i < 6; ++i)
    board.inputs.push_back({array(static_cast<float>(i), kLength), static_cast<float>(i)});
  board.items.resize(kThreads / 2);
  const auto until = std::chrono::system_clock::now() +
                     std::chrono::milliseconds(static_cast<int64_t>(options().stress_seconds * 1000));
  on_threads(kThreads, [&](int i) { Player(engine, board, static_cast<unsigned>(i)).play(until); });
  for (const std::optional<Item>& item : board.items) {
    if (!item) continue;
    EXPECT_TRUE(all(item->y, item->y_value));
    EXPECT_TRUE(all(item->z, item->z_value));
  }
  for (const Input& x : board.inputs) EXPECT_TRUE(all(x.t, x.value));
  for (const char* name :
       {"capture", "launch", "update", "rebind", "whole update", "instantiate", "close", "check", "publish",
        "exchange", "compile", "eager", "failed capture", "take part"}) {
    EXPECT_GT(board.done[name], 0) << "nobody did: " << name;
  }
  board.items.clear();
  board.inputs.clear();
  EXPECT_EQ(settled_bytes(), bytes);
  const EngineStats s = engine.stats();
  EXPECT_EQ(s.leases, 0);
  EXPECT_EQ(s.pending_releases, 0);
  EXPECT_TRUE(engine.release_failures().empty());
  const probe::Alive now = probe::alive(engine);
  EXPECT_EQ(now.graphs, alive.graphs);
  EXPECT_EQ(now.execs, alive.execs);
  EXPECT_EQ(now.events, alive.events);
}

}  // namespace gk::contract_test
