// Functions of the host program in streams and graphs: order, and how long they are kept.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tests/unit/hal_fixture.h"

namespace gk::test {
namespace {

class HalHostCall : public HalTest {};

TEST_P(HalHostCall, are_made_in_their_turn_on_a_stream) {
  auto s = need(device->create_stream());
  const auto pinned = need(device->allocate(4, hal::Placement::Pinned));
  auto* value = static_cast<float*>(pinned.host_address);
  *value = 0;
  float seen = -1;
  give(*s, "slow", args(pinned.address, 1, 1), {});
  need(s->host_call([&] { seen = *static_cast<volatile float*>(value); }, {}));
  give(*s, "add", args(pinned.address, 1, 1), {});
  EXPECT_EQ(seen, -1);
  GK_OK(s->synchronize());
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(*value, 2);
  GK_OK(device->release(pinned));
}

TEST_P(HalHostCall, a_stream_lets_go_of_a_function_that_was_called) {
  auto s = need(device->create_stream());
  auto token = std::make_shared<int>(0);
  for (int i = 0; i < 10; ++i) need(s->host_call([token] { ++*token; }, {}));
  GK_OK(s->synchronize());
  EXPECT_EQ(*token, 10);
  s.reset();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(HalHostCall, are_made_at_every_launch_in_the_order_of_the_graph) {
  auto s = need(device->create_stream());
  const auto pinned = need(device->allocate(4, hal::Placement::Pinned));
  auto* value = static_cast<float*>(pinned.host_address);
  *value = 0;
  std::string seen;
  auto token = std::make_shared<int>(0);
  const auto note = [&seen, value, token] {
    seen += std::to_string(static_cast<int>(*static_cast<volatile float*>(value))) + " ";
  };
  auto g = need(device->create_graph());
  const hal::NodeId a = need(g->host_call(note, {}));
  const hal::NodeId b = give(*g, "add", args(pinned.address, 1, 1), {a});
  const hal::NodeId c = need(g->host_call(note, {{b}}));
  give(*g, "add", args(pinned.address, 1, 1), {c});
  EXPECT_EQ(g->num_nodes(), 4);
  EXPECT_EQ(g->num_edges(), 3);
  auto e = need(g->instantiate());
  g.reset();  // the executable keeps the functions
  EXPECT_TRUE(seen.empty());
  for (int i = 0; i < 3; ++i) GK_OK(e->launch(*s));
  GK_OK(s->synchronize());
  EXPECT_EQ(seen, "0 1 2 3 4 5 ");
  GK_OK(device->release(pinned));
}

TEST_P(HalHostCall, a_graph_keeps_a_function_until_the_last_launch_is_done) {
  auto token = std::make_shared<std::atomic<int>>(0);
  auto s = need(device->create_stream());
  const auto x = block(0);
  {
    auto g = need(device->create_graph());
    const hal::NodeId slow = give(*g, "slow", args(x->address(), 1, kN), {});
    need(g->host_call([token] { ++*token; }, {{slow}}));
    auto e = need(g->instantiate());
    GK_OK(e->launch(*s));
  }
  GK_OK(s->synchronize());
  EXPECT_EQ(*token, 1);
  s.reset();
  // A driver may let go a little after the launch is done.
  for (int i = 0; i < 5000 && token.use_count() > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST_P(HalHostCall, nothing_to_call_is_refused) {
  auto s = need(device->create_stream());
  auto g = need(device->create_graph());
  EXPECT_EQ(s->host_call({}, {}).error().code, "E0506");
  EXPECT_EQ(g->host_call({}, {}).error().code, "E0506");
  EXPECT_EQ(g->num_nodes(), 0);
}

GK_ALL_DEVICES(HalHostCall);

}  // namespace
}  // namespace gk::test
