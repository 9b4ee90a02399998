// One of the fuzz's threads: does everything at random, and knows what its arrays must hold. Owns its context
// and, in turn, a graph with its executables, which goes from thread to thread by the board.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/contract.h"

namespace gk::contract_test {

inline constexpr int64_t kLength = 257;

/// An array that nobody writes to, of one value.
struct Input {
  Tensor t;
  float value = 0;
};

/// A graph with its executables, and the two arrays that they add to. It goes from thread to thread, with
/// launches in flight.
struct Item {
  struct One {
    Exec exec;
    float to_y = 0;
  };
  Graph graph;
  std::vector<One> execs;
  Tensor y, z;
  float y_value = 0, z_value = 0;
  float to_y = 0, to_z = 0;  // what one launch adds, as recorded
  bool rebound = false;      // the executables, to another z than the graph's
};

/// What the threads share.
struct Board {
  std::mutex mutex;
  std::vector<Input> inputs;
  std::vector<std::optional<Item>> items;
  std::map<std::string, int64_t> done;
};

class Player {
 public:
  Player(Engine engine, Board& board, unsigned seed)
      : engine_(std::move(engine)), board_(board), random_(seed) {
    renew();
  }
  void play(std::chrono::system_clock::time_point until) {
    while (std::chrono::system_clock::now() < until && !::testing::Test::HasFailure()) turn();
    if (item_) check();
    item_.reset();
    std::lock_guard lock(board_.mutex);
    for (const auto& [name, n] : done_) board_.done[name] += n;
  }

 private:
  int up_to(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  float factor() { return static_cast<float>(1 + up_to(3)); }
  void renew() { worker_.emplace(engine_); }
  Input input() {
    std::lock_guard lock(board_.mutex);
    return board_.inputs[static_cast<size_t>(up_to(static_cast<int>(board_.inputs.size())))];
  }

  void turn() {
    if (!item_ || item_->y_value > 1e5F || item_->z_value > 1e5F) return capture();
    int at = up_to(kTurns);
    for (const auto& [weight, f] : kPlays) {
      at -= weight;
      if (at < 0) return (this->*f)();
    }
  }
  void seldom() {
    const int which = up_to(20);
    if (which == 0) {
      if (const std::string code = code_of([&] { engine_.reclaim(); }); !code.empty()) {
        EXPECT_EQ(code, "E0708");
        ++done_["reclaim refused during a capture"];
      }
    }
    if (which < 3) renew();
  }

  /// Records; nothing where a release that waits is in progress just then.
  Graph record(const std::function<void()>& f) {
    Result<Graph> g = worker_->ctx.try_capture(f);
    if (g) return *g;
    if (g.error().code() != "E0708") g.error().raise();
    ++done_["capture refused during a reclaim"];
    return {};
  }
  void capture() {
    Item item;
    const Input x = input();
    item.y = worker_->array(0, kLength);
    item.z = worker_->array(0, kLength);
    const float c = factor();
    item.to_y = c * x.value;
    item.to_z = x.value + 1;
    item.graph = record([&] { body(item, x, c); });
    if (!item.graph) return;
    item.execs.push_back({item.graph.instantiate(), item.to_y});
    item_ = std::move(item);
    ++done_["capture"];
  }
  void body(const Item& item, const Input& x, float c) {
    worker_->ctx.node("n", [&] { worker_->kernel("axpy")(item.y, x.t, c); });
    Tensor u = worker_->lib.fn<Tensor(Tensor, float)>("plus")(x.t, 1);
    worker_->kernel("axpy")(item.z, u, 1.0F);
  }
  Item::One& some() {
    return item_->execs[static_cast<size_t>(up_to(static_cast<int>(item_->execs.size())))];
  }
  void launch() {
    const Item::One& one = some();
    const int times = 1 + up_to(3);
    one.exec.launch(worker_->ctx, times);
    item_->y_value += static_cast<float>(times) * one.to_y;
    item_->z_value += static_cast<float>(times) * item_->to_z;
    ++done_["launch"];
  }
  void update() {
    Item::One& one = some();
    const float c = factor();
    if (up_to(2) == 0) {
      one.exec.node("n").update(worker_->kernel("add"), {item_->y, c});
      one.to_y = c;
    } else {
      const Input x = input();
      one.exec.node("n").update(worker_->kernel("axpy"), {item_->y, x.t, c});
      one.to_y = c * x.value;
    }
    ++done_["update"];
  }
  void rebind() {
    check();
    Tensor z = worker_->array(0, kLength);
    for (const Item::One& one : item_->execs) one.exec.rebind({{item_->z, z}});
    if (up_to(2) == 0) item_->z.free();
    item_->z = std::move(z);
    item_->z_value = 0;
    item_->rebound = true;
    ++done_["rebind"];
  }
  void whole_update() {
    // Others would go on adding what was recorded to z.
    if (item_->rebound || item_->execs.size() > 1) return;
    const Input x = input();
    const float c = factor();
    const Graph g = record([&] { body(*item_, x, c); });
    if (!g) return;
    Item::One& one = some();
    one.exec.update(g);
    item_->graph = g;
    one.to_y = item_->to_y = c * x.value;
    item_->to_z = x.value + 1;
    ++done_["whole update"];
  }
  void instantiate() {
    if (item_->rebound || item_->execs.size() > 3) return;
    item_->execs.push_back({item_->graph.instantiate(), item_->to_y});
    ++done_["instantiate"];
  }
  void close() {
    if (item_->execs.size() > 1) {
      const auto at = up_to(static_cast<int>(item_->execs.size()));
      if (up_to(2) == 0) item_->execs[static_cast<size_t>(at)].exec.close();
      item_->execs.erase(item_->execs.begin() + at);
    } else if (up_to(2) == 0) {
      // All at once, and its memory by hand, with launches in flight.
      item_->y.free();
      item_->z.free();
      launch();
      item_.reset();
    }
    ++done_["close"];
  }
  void check() {
    ASSERT_TRUE(worker_->all(item_->y, item_->y_value));
    ASSERT_TRUE(worker_->all(item_->z, item_->z_value));
    ++done_["check"];
  }
  /// Another array takes the place of one of the inputs, which others may be using.
  void publish() {
    Input x;
    x.value = static_cast<float>(1 + up_to(9));
    if (up_to(2) == 0) {
      x.t = worker_->array(x.value, kLength);
    } else {
      x.t = worker_->ctx.from_host(std::vector<float>(kLength, x.value), {kLength});
    }
    std::lock_guard lock(board_.mutex);
    std::swap(board_.inputs[static_cast<size_t>(up_to(static_cast<int>(board_.inputs.size())))], x);
    ++done_["publish"];
  }
  void exchange() {
    {
      std::lock_guard lock(board_.mutex);
      std::swap(board_.items[static_cast<size_t>(up_to(static_cast<int>(board_.items.size())))], item_);
    }
    ++done_["exchange"];
  }
  void compile() {
    const std::string k = std::to_string(up_to(16));
    const Module m = worker_->ctx.compile(
        "k" + k + ".gk", "kernel bump(mut y: f32[n]) over i in n { y[i] = y[i] + " + k + " }");
    m.kernel("bump")(item_->y);
    item_->y_value += std::stof(k);
    ++done_["compile"];
  }
  void eager() {
    const Input x = input();
    Tensor t = worker_->lib.fn<Tensor(Tensor, float)>("plus")(x.t, 2);
    worker_->kernel("axpy")(item_->z, t, 1.0F);
    item_->z_value += x.value + 2;
    ++done_["eager"];
  }
  void fail_inside() {
    struct Mine {};
    const int how = up_to(3);
    try {
      (void)record([&] {
        worker_->kernel("add")(item_->y, 100.0F);
        if (how == 0) throw Mine();
        if (how == 1) worker_->ctx.synchronize();
        if (how == 2) worker_->kernel("axpy")(item_->y, worker_->array(0, kLength + 1), 1.0F);
        ADD_FAILURE() << "it did not fail";
      });
    } catch (const Mine&) {
      EXPECT_EQ(how, 0);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), how == 1 ? "E0703" : "E0303");
    }
    ++done_["failed capture"];
  }
  /// A thread of its own inside a capture.
  void take_part() {
    const Graph g = record([&] {
      worker_->kernel("add")(item_->y, 1.0F);
      on_thread([&, token = worker_->ctx.capture_token()] {
        Worker w(token);
        Tensor t = w.ctx.empty(f32, {kLength});
        w.kernel("fill")(t, 2.0F);
        w.kernel("axpy")(item_->y, t, 1.0F);
      });
    });
    if (!g) return;
    g.instantiate().launch(worker_->ctx, 2);
    item_->y_value += 6;
    ++done_["take part"];
  }

  struct Play {
    int weight;
    void (Player::*f)();
  };
  static constexpr int kTurns = 25;
  static constexpr Play kPlays[] = {
      {6, &Player::launch},      {3, &Player::update},       {1, &Player::rebind}, {1, &Player::capture},
      {1, &Player::instantiate}, {1, &Player::close},        {1, &Player::check},  {1, &Player::publish},
      {2, &Player::exchange},    {1, &Player::compile},      {1, &Player::eager},  {1, &Player::fail_inside},
      {1, &Player::take_part},   {1, &Player::whole_update}, {3, &Player::seldom},

  };

  Engine engine_;
  Board& board_;
  std::mt19937 random_;
  std::optional<Worker> worker_;
  std::optional<Item> item_;
  std::map<std::string, int64_t> done_;
};

}  // namespace gk::contract_test
