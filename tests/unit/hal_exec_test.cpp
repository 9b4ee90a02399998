// Executables as a whole: update from another graph, upload, destruction, products set anew; and what graphs
// keep, take back and give to them.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/unit/hal_fixture.h"
#include "tests/unit/product.h"

namespace gk::test {
namespace {

class HalExec : public HalTest {
 protected:
  void SetUp() override {
    HalTest::SetUp();
    if (device != nullptr) stream = need(device->create_stream());
  }
  void launch(hal::GraphExec& e, int times = 1) {
    for (int i = 0; i < times; ++i) GK_OK(e.launch(*stream));
    GK_OK(stream->synchronize());
  }
  /// Waits for what a driver does a little later.
  static bool soon(const std::function<bool()>& done) {
    for (int i = 0; i < 5000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done();
  }
  std::unique_ptr<hal::Stream> stream;
};

TEST_P(HalExec, takes_all_parameters_from_another_graph) {
  const auto a = block(0), b = block(0), c = block(0);
  auto g1 = need(device->create_graph()), g2 = need(device->create_graph());
  const hal::NodeId n = add(*g1, a, 1);
  need(g1->copy({c->address(), a->address(), kN * 4}, {{n}}));
  const hal::NodeId m = give(*g2, "fill", args(b->address(), 5, kN), {});
  need(g2->copy({c->address(), b->address(), kN * 4}, {{m}}));
  auto e = need(g1->instantiate());
  launch(*e);
  EXPECT_TRUE(all(c, 1));
  GK_OK(e->update(*g2));
  g2.reset();
  launch(*e);
  EXPECT_TRUE(all(a, 1));
  EXPECT_TRUE(all(b, 5));
  EXPECT_TRUE(all(c, 5));
  // Ids go on being those of the first graph.
  Args two = args(b->address(), 2, kN);
  GK_OK(e->set_kernel(n, kernel("add", two)));
  launch(*e);
  EXPECT_TRUE(all(c, 7));
}

TEST_P(HalExec, an_update_leaves_launches_in_flight_alone) {
  const auto a = block(0), b = block(0);
  auto g1 = need(device->create_graph()), g2 = need(device->create_graph());
  add(*g1, a, 1, {give(*g1, "slow", args(a->address(), 1, kN), {})});
  add(*g2, b, 1, {give(*g2, "slow", args(b->address(), 1, kN), {})});
  auto e = need(g1->instantiate());
  GK_OK(e->launch(*stream));
  GK_OK(e->update(*g2));
  GK_OK(e->launch(*stream));
  GK_OK(stream->synchronize());
  EXPECT_TRUE(all(a, 2));
  EXPECT_TRUE(all(b, 2));
}

TEST_P(HalExec, an_update_from_another_topology_says_what_differs_and_changes_nothing) {
  const auto a = block(0), b = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId n = add(*g, a, 1);
  add(*g, b, 1, {n});
  auto e = need(g->instantiate());
  const auto refuse = [&](hal::Graph& other, std::string_view words) {
    const auto r = e->update(other);
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().code, "E0709");
    EXPECT_EQ(r.error().kind, ErrorKind::Capture);
    EXPECT_NE(r.error().message.find(words), std::string::npos) << r.error().message;
  };
  auto longer = need(device->create_graph());
  add(*longer, a, 100, {add(*longer, a, 100, {add(*longer, a, 100)})});
  refuse(*longer, "the executable has 2 nodes, the graph 3");
  auto kind = need(device->create_graph());
  need(kind->copy({b->address(), a->address(), kN * 4}, {{add(*kind, a, 100)}}));
  refuse(*kind, "node 1");
  auto order = need(device->create_graph());
  add(*order, a, 100);
  add(*order, b, 100);
  refuse(*order, "differ");
  launch(*e, 2);
  EXPECT_TRUE(all(a, 2));
  EXPECT_TRUE(all(b, 2));
  Args ten = args(a->address(), 10, kN);
  GK_OK(e->set_kernel(n, kernel("add", ten)));
  launch(*e);
  EXPECT_TRUE(all(a, 12));
}

TEST_P(HalExec, conditionals_are_updated_with_the_rest) {
  const auto x = block(0), y = block(0), c = block(0);
  const auto record = [&](hal::Graph& g, float step, float limit) {
    const hal::NodeId test = give(g, "below", args(c->address(), x->address(), limit, 1), {});
    const hal::ConditionalOp loop{hal::ConditionalOp::Kind::While, c->address(), false,
                                  [&](hal::Recorder& body, int) -> Result<void> {
                                    const hal::NodeId n = add(body, x, step);
                                    const hal::NodeId m = add(body, y, 1, {n});
                                    give(body, "below", args(c->address(), x->address(), limit, 1), {m});
                                    return {};
                                  }};
    need(g.conditional(loop, {{test}}));
  };
  auto g1 = need(device->create_graph()), g2 = need(device->create_graph());
  record(*g1, 1, 3);
  record(*g2, 2, 13);
  auto e = need(g1->instantiate());
  launch(*e);
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(y, 3));
  const auto updated = e->update(*g2);
  if (!updated) {
    // A driver may refuse these; it must not half do them.
    EXPECT_EQ(updated.error().code, "E0709");
    EXPECT_FALSE(is_host());
    launch(*e);
    EXPECT_TRUE(all(x, 3));
    return;
  }
  launch(*e);
  EXPECT_TRUE(all(x, 13));
  EXPECT_TRUE(all(y, 8));
}

TEST_P(HalExec, an_upload_runs_nothing) {
  const auto x = block(0);
  auto g = need(device->create_graph());
  add(*g, x, 1);
  auto e = need(g->instantiate());
  GK_OK(e->upload(*stream));
  GK_OK(stream->synchronize());
  EXPECT_TRUE(all(x, 0));
  launch(*e);
  EXPECT_TRUE(all(x, 1));
}

TEST_P(HalExec, is_destroyed_once_and_refuses_use_after) {
  const auto x = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId n = add(*g, x, 1, {give(*g, "slow", args(x->address(), 1, kN), {})});
  auto e = need(g->instantiate());
  GK_OK(e->launch(*stream));
  GK_OK(e->destroy());  // in flight
  GK_OK(e->destroy());
  EXPECT_EQ(e->launch(*stream).error().code, "E0716");
  EXPECT_EQ(e->upload(*stream).error().code, "E0716");
  EXPECT_EQ(e->update(*g).error().code, "E0716");
  Args a = args(x->address(), 1, kN);
  EXPECT_EQ(e->set_kernel(n, kernel("add", a)).error().code, "E0716");
  GK_OK(stream->synchronize());
  EXPECT_TRUE(all(x, 2));
}

TEST_P(HalExec, one_whose_destruction_fails_counts_as_alive) {
  if (trace() == nullptr) GTEST_SKIP() << "only a trace fails on request";
  auto g = need(device->create_graph());
  add(*g, block(0), 1);
  const int64_t before = trace()->alive().execs;
  // It is called when the device goes, after this test.
  const auto released = std::make_shared<std::atomic<int>>(0);
  GK_OK(g->retain([released] { ++*released; }));
  auto failing = need(g->instantiate()), fine = need(g->instantiate());
  g.reset();
  EXPECT_EQ(trace()->alive().execs, before + 2);
  trace()->fail_next("destroy executable");
  const auto r = failing->destroy();
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0503");
  EXPECT_EQ(trace()->failed_call(), "destroy executable");
  failing.reset();
  fine.reset();
  EXPECT_EQ(trace()->alive().execs, before + 1);
  EXPECT_EQ(*released, 0) << "what it retains stays";
  // The destructor's own failure is the same.
  auto g2 = need(device->create_graph());
  auto dropped = need(g2->instantiate());
  trace()->fail_next("destroy executable");
  dropped.reset();
  EXPECT_EQ(trace()->alive().execs, before + 2);
}

TEST_P(HalExec, a_product_is_set_anew_where_that_can_be) {
  program::MatMulCall call;
  call.m = call.n = call.k = 8;
  call.lda = call.ldb = call.ldc = 8;
  call.stride_a = call.stride_b = call.stride_c = 64;
  if (!device->supports(call)) GTEST_SKIP() << "no library for it here";
  const auto a = block(1), b = block(2), c = block(0), d = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId n =
      need(g->library(test::Product(call, a->address(), b->address(), nullptr, c->address()).op, {}));
  const hal::NodeId other = add(*g, d, 1, {n});
  auto e = need(g->instantiate());
  EXPECT_EQ(e->can_set_library(), is_host());
  launch(*e);
  EXPECT_TRUE(all(c, 16, 64));
  const auto r = e->set_library(n, test::Product(call, b->address(), b->address(), nullptr, c->address()).op);
  EXPECT_EQ(r.has_value(), e->can_set_library());
  EXPECT_EQ(r ? "" : r.error().code, is_host() ? "" : "E0405");
  launch(*e);
  EXPECT_TRUE(all(c, r ? 32 : 16, 64));
  EXPECT_FALSE(
      e->set_library(other, test::Product(call, b->address(), b->address(), nullptr, c->address()).op)
          .has_value());
}

TEST_P(HalExec, products_of_graphs_and_streams_do_not_share_scratch_memory) {
  program::MatMulCall call;
  call.m = call.n = 256, call.k = 4096;  // few tiles and a long sum: libraries split it
  call.lda = call.k, call.ldb = call.ldc = call.n;
  call.stride_a = call.m * call.k, call.stride_b = call.k * call.n, call.stride_c = call.m * call.n;
  if (!device->supports(call)) GTEST_SKIP() << "no library for it here";
  const int64_t in = call.m * call.k, out = call.m * call.n;
  const auto a = block(1, in), b = block(2, in), twice = block(4, in);
  std::vector<memory::BlockPtr> results;
  for (int i = 0; i < 4; ++i) results.push_back(block(0, out));
  const auto product = [&](hal::Recorder& r, const memory::BlockPtr& left, int to) {
    need(r.library(test::Product(call, left->address(), b->address(), nullptr,
                                 results[static_cast<size_t>(to)]->address())
                       .op,
                   {}));
  };
  auto g1 = need(device->create_graph()), g2 = need(device->create_graph());
  product(*g1, a, 0);
  product(*g2, twice, 1);
  auto e1 = need(g1->instantiate()), e2 = need(g2->instantiate());
  auto s2 = need(device->create_stream()), s3 = need(device->create_stream());
  for (int i = 0; i < 20; ++i) {
    GK_OK(e1->launch(*stream));
    if (e2 != nullptr) GK_OK(e2->launch(*s2));
    product(*s2, a, 2);
    product(*s3, twice, 3);
    if (i == 10) e2.reset(), g2.reset();  // the other graph's must stay
  }
  for (auto* s : {stream.get(), s2.get(), s3.get()}) GK_OK(s->synchronize());
  EXPECT_TRUE(all(results[0], 2 * 4096, out));
  EXPECT_TRUE(all(results[1], 8 * 4096, out));
  EXPECT_TRUE(all(results[2], 2 * 4096, out));
  EXPECT_TRUE(all(results[3], 8 * 4096, out));
}

TEST_P(HalExec, what_came_after_a_mark_is_removed) {
  const auto x = block(0), y = block(0), c = block(1);
  auto token = std::make_shared<int>(0);
  auto g = need(device->create_graph());
  const hal::NodeId n = add(*g, x, 1);
  const int64_t mark = g->mark(), nodes = g->num_nodes(), edges = g->num_edges();
  auto before = need(g->instantiate());
  for (int round = 0; round < 2; ++round) {
    hal::NodeId last = add(*g, y, 100, {n});
    last = need(g->copy({x->address(), y->address(), kN * 4}, {{last}}));
    last = need(g->host_call([token] { ++*token; }, {{last}}));
    EXPECT_GT(g->num_nodes(), nodes + 2);
    GK_OK(g->rollback(mark));
    EXPECT_EQ(g->mark(), mark);
    EXPECT_EQ(g->num_nodes(), nodes);
    EXPECT_EQ(g->num_edges(), edges);
    EXPECT_EQ(token.use_count(), 1);
  }
  const hal::NodeId m = add(*g, y, 1, {n});
  EXPECT_EQ(m, n + 1);
  auto e = need(g->instantiate());
  launch(*e);
  launch(*before);
  EXPECT_TRUE(all(x, 2));
  EXPECT_TRUE(all(y, 1));
  EXPECT_EQ(*token, 0);
  EXPECT_EQ(g->rollback(g->mark() + 1).error().code, "E0508");
  EXPECT_EQ(g->rollback(-1).error().code, "E0508");
  GK_OK(g->rollback(0));
  EXPECT_EQ(g->num_edges(), 0);
}

TEST_P(HalExec, a_conditional_node_is_taken_back_or_the_graph_refuses) {
  const auto x = block(0), y = block(0), c = block(1);
  auto g = need(device->create_graph());
  const hal::NodeId n = add(*g, x, 1);
  const int64_t mark = g->mark(), nodes = g->num_nodes();
  need(g->conditional({hal::ConditionalOp::Kind::If, c->address(), true,
                       [&](hal::Recorder& body, int) -> Result<void> {
                         add(body, y, 1000);
                         return {};
                       }},
                      {{n}}));
  const auto r = g->rollback(mark);
  EXPECT_EQ(g->mark(), mark);
  if (!r) {
    // The driver cannot forget the handle of a condition.
    EXPECT_EQ(r.error().code, "E0715");
    EXPECT_EQ(g->instantiate().error().code, "E0715");
    return;
  }
  EXPECT_EQ(g->num_nodes(), nodes);
  launch(*need(g->instantiate()));
  EXPECT_TRUE(all(x, 1));
  EXPECT_TRUE(all(y, 0));
}

TEST_P(HalExec, retained_is_released_once_when_the_last_of_all_is_gone) {
  std::atomic<int> released{0};
  const auto x = block(0);
  auto g = need(device->create_graph());
  add(*g, x, 1, {give(*g, "slow", args(x->address(), 1, kN), {})});
  GK_OK(g->retain([&] { ++released; }));
  auto e1 = need(g->instantiate()), e2 = need(g->instantiate());
  g.reset();
  GK_OK(e1->destroy());
  EXPECT_EQ(released, 0);
  GK_OK(e2->launch(*stream));
  GK_OK(e2->destroy());
  e1.reset();
  e2.reset();
  GK_OK(stream->synchronize());
  EXPECT_TRUE(all(x, 2));
  EXPECT_TRUE(soon([&] { return released == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(released, 1);
}

TEST_P(HalExec, an_update_changes_what_is_retained) {
  std::atomic<int> first{0}, second{0};
  const auto x = block(0);
  auto g1 = need(device->create_graph()), g2 = need(device->create_graph());
  add(*g1, x, 1);
  add(*g2, x, 10);
  GK_OK(g1->retain([&] { ++first; }));
  GK_OK(g2->retain([&] { ++second; }));
  auto e = need(g1->instantiate());
  GK_OK(e->update(*g2));
  g2.reset();
  EXPECT_EQ(second, 0);
  launch(*e);
  EXPECT_TRUE(all(x, 10));
  EXPECT_EQ(second, 0);
  GK_OK(e->destroy());
  e.reset();
  EXPECT_TRUE(soon([&] { return second == 1; }));
  g1.reset();
  EXPECT_TRUE(soon([&] { return first == 1; }));
}

TEST_P(HalExec, a_retain_that_fails_calls_nothing) {
  if (trace() == nullptr) GTEST_SKIP() << "only a trace fails on request";
  std::atomic<int> released{0};
  auto g = need(device->create_graph());
  trace()->fail_next("retain object", ErrorKind::OutOfMemory);
  const auto r = g->retain([&] { ++released; });
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0601");
  g.reset();
  EXPECT_EQ(released, 0);
}

TEST_P(HalExec, graphs_and_streams_of_one_device_serve_many_threads) {
  std::vector<memory::BlockPtr> blocks, conditions;
  for (int t = 0; t < 4; ++t) blocks.push_back(block(0)), conditions.push_back(block(0));
  Args warm = args(blocks[0]->address(), 0, kN);
  (void)kernel("add", warm);  // loads the code
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto s = need(device->create_stream());
      for (int i = 0; i < 20; ++i) {
        auto g = need(device->create_graph());
        Args one = args(blocks[t]->address(), 1, kN);
        Args test = args(conditions[t]->address(), blocks[t]->address(), 1e9F, 1);
        hal::NodeId n = need(g->kernel(kernel("add", one), {}));
        n = need(g->kernel(kernel("below", test), {{n}}));
        n = need(g->host_call([&] { ++calls; }, {{n}}));
        const hal::ConditionalOp op{hal::ConditionalOp::Kind::If, conditions[t]->address(), false,
                                    [&](hal::Recorder& body, int) -> Result<void> {
                                      GK_CHECK(body.kernel(kernel("add", one), {}));
                                      return {};
                                    }};
        need(g->conditional(op, {{n}}));
        auto e = need(g->instantiate());
        g.reset();
        need(e->launch(*s));
        need(e->launch(*s));
        if (i % 2 == 0) need(s->synchronize());
      }
      need(s->synchronize());
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(calls, 4 * 20 * 2);
  for (const auto& b : blocks) EXPECT_TRUE(all(b, 80));
}

GK_ALL_DEVICES(HalExec);

}  // namespace
}  // namespace gk::test
