// Branches and loops on the device, in graphs and on streams: what runs, how often, and what is refused.
#include <string>

#include "tests/unit/hal_fixture.h"
#include "tests/unit/product.h"

namespace gk::test {
namespace {

using hal::ConditionalOp;
using Nodes = std::vector<hal::NodeId>;

class HalConditional : public HalTest {
 protected:
  using Record = std::function<Result<void>(hal::Recorder&, int)>;
  void SetUp() override {
    HalTest::SetUp();
    if (device == nullptr) return;
    stream = need(device->create_stream());
    condition = block(0);
  }
  ConditionalOp if_op(Record record, bool has_else = false) const {
    return {ConditionalOp::Kind::If, condition->address(), has_else, std::move(record)};
  }
  ConditionalOp while_op(Record record) const {
    return {ConditionalOp::Kind::While, condition->address(), false, std::move(record)};
  }
  /// Makes a condition tell whether x[0] < v.
  hal::NodeId below(hal::Recorder& r, const memory::BlockPtr& x, float v, const Nodes& deps = {},
                    void* where = nullptr) {
    if (where == nullptr) where = condition->address();
    return give(r, "below", args(where, x->address(), v, 1), deps);
  }
  void launch(hal::GraphExec& e, int times = 1) {
    for (int i = 0; i < times; ++i) GK_OK(e.launch(*stream));
    GK_OK(stream->synchronize());
  }
  /// Gives `record` to the stream, or to a graph that is then launched: `how` tells which.
  void both(const std::function<void(hal::Recorder&)>& record,
            const std::function<void(const char*)>& check) {
    record(*stream);
    GK_OK(stream->synchronize());
    check("on a stream");
    auto g = need(device->create_graph());
    record(*g);
    auto e = need(g->instantiate());
    launch(*e);
    check("in a graph");
  }
  std::unique_ptr<hal::Stream> stream;
  memory::BlockPtr condition;
};

TEST_P(HalConditional, a_branch_is_taken_when_its_condition_holds) {
  const auto x = block(0), y = block(0);
  both(
      [&](hal::Recorder& r) {
        // True, then false.
        const hal::NodeId c = below(r, x, 1);
        const hal::NodeId first =
            need(r.conditional(if_op([&](hal::Recorder& body, int which) -> Result<void> {
                                 EXPECT_EQ(which, 0);
                                 add(body, y, 1);
                                 return {};
                               }),
                               {{c}}));
        const hal::NodeId again = below(r, x, -1, {first});
        need(r.conditional(if_op([&](hal::Recorder& body, int) -> Result<void> {
                             add(body, y, 100);
                             return {};
                           }),
                           {{again}}));
      },
      [&](const char* where) {
        EXPECT_TRUE(all(y, 1)) << where;
        EXPECT_TRUE(all(x, 0)) << where;
        add(*stream, y, -1);
        GK_OK(stream->synchronize());
      });
}

TEST_P(HalConditional, exactly_one_of_two_branches_runs) {
  const auto x = block(0), y = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId c = below(*g, x, 2);
  const hal::NodeId branch = need(g->conditional(if_op(
                                                     [&](hal::Recorder& body, int which) -> Result<void> {
                                                       // The branch changes the condition: the other one
                                                       // must not run then.
                                                       const hal::NodeId n =
                                                           add(body, y, which == 0 ? 1 : 10);
                                                       below(body, x, which == 0 ? -1 : 100, {n});
                                                       return {};
                                                     },
                                                     true),
                                                 {{c}}));
  add(*g, x, 1, {branch});
  auto e = need(g->instantiate());
  launch(*e, 4);  // x is 0, 1, 2, 3: true twice, false twice
  EXPECT_TRUE(all(x, 4));
  EXPECT_TRUE(all(y, 22));
}

TEST_P(HalConditional, on_a_stream_the_other_branch_runs_too) {
  const auto x = block(5), y = block(0);
  below(*stream, x, 2);
  need(stream->conditional(if_op(
                               [&](hal::Recorder& body, int which) -> Result<void> {
                                 add(body, y, which == 0 ? 1 : 10);
                                 return {};
                               },
                               true),
                           {}));
  GK_OK(stream->synchronize());
  EXPECT_TRUE(all(y, 10));
}

TEST_P(HalConditional, a_loop_runs_until_its_condition_is_false) {
  const auto x = block(0), y = block(0);
  int turns_recorded = 0;
  both(
      [&](hal::Recorder& r) {
        const hal::NodeId zero = give(r, "fill", args(x->address(), 0, kN), {});
        const hal::NodeId c = below(r, x, 7, {zero});
        const hal::NodeId loop =
            need(r.conditional(while_op([&](hal::Recorder& body, int which) -> Result<void> {
                                 EXPECT_EQ(which, 0);
                                 ++turns_recorded;
                                 const hal::NodeId n = add(body, x, 1);
                                 below(body, x, 7, {n});
                                 return {};
                               }),
                               {{c}}));
        need(r.copy({y->address(), x->address(), kN * 4}, {{loop}}));
      },
      [&](const char* where) {
        EXPECT_TRUE(all(x, 7)) << where;
        EXPECT_TRUE(all(y, 7)) << where;
      });
  EXPECT_EQ(turns_recorded, 7 + 1) << "a stream records each turn, a graph once";
}

TEST_P(HalConditional, a_loop_may_not_run_at_all_and_no_launch_sees_the_last_one) {
  const auto x = block(0), y = block(0), limit = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId c = below(*g, x, 3);
  need(g->conditional(while_op([&](hal::Recorder& body, int) -> Result<void> {
                        const hal::NodeId n = add(body, x, 1);
                        const hal::NodeId m = add(body, y, 1, {n});
                        below(body, x, 3, {m});
                        return {};
                      }),
                      {{c}}));
  auto e = need(g->instantiate());
  launch(*e);
  EXPECT_TRUE(all(y, 3));
  launch(*e, 3);  // x is 3: no turn
  EXPECT_TRUE(all(y, 3));
  give(*stream, "fill", args(x->address(), 1, kN), {});
  launch(*e);
  EXPECT_TRUE(all(y, 5));
}

TEST_P(HalConditional, they_nest) {
  // for (i = 0; i < 3; ++i) for (j = 0; j < 4; ++j) { y += 1; if (j < 2) z += 1; else w += 1; }
  const auto i = block(0), j = block(0), y = block(0), z = block(0), w = block(0);
  const auto inner = block(0), test = block(0);
  both(
      [&](hal::Recorder& r) {
        const hal::NodeId zero = give(r, "fill", args(i->address(), 0, kN), {});
        const hal::NodeId c = below(r, i, 3, {zero});
        need(r.conditional(while_op([&](hal::Recorder& outer, int) -> Result<void> {
                             const hal::NodeId start = give(outer, "fill", args(j->address(), 0, kN), {});
                             const hal::NodeId d = below(outer, j, 4, {start}, inner->address());
                             ConditionalOp loop = while_op([&](hal::Recorder& body, int) -> Result<void> {
                               const hal::NodeId a = add(body, y, 1);
                               const hal::NodeId b = below(body, j, 2, {a}, test->address());
                               ConditionalOp branch = if_op(
                                   [&](hal::Recorder& part, int which) -> Result<void> {
                                     add(part, which == 0 ? z : w, 1);
                                     return {};
                                   },
                                   true);
                               branch.condition = test->address();
                               const hal::NodeId tested = need(body.conditional(branch, {{b}}));
                               const hal::NodeId next = add(body, j, 1, {tested});
                               below(body, j, 4, {next}, inner->address());
                               return {};
                             });
                             loop.condition = inner->address();
                             const hal::NodeId done = need(outer.conditional(loop, {{d}}));
                             const hal::NodeId next = add(outer, i, 1, {done});
                             below(outer, i, 3, {next});
                             return {};
                           }),
                           {{c}}));
      },
      [&](const char* where) {
        EXPECT_TRUE(all(y, 12)) << where;
        EXPECT_TRUE(all(z, 6)) << where;
        EXPECT_TRUE(all(w, 6)) << where;
        for (const auto& b : {y, z, w}) give(*stream, "fill", args(b->address(), 0, kN), {});
        GK_OK(stream->synchronize());
      });
}

TEST_P(HalConditional, empty_bodies_do_nothing) {
  const auto x = block(0), y = block(0);
  for (const bool has_else : {false, true}) {
    for (const float value : {0.0F, 9.0F}) {
      both(
          [&](hal::Recorder& r) {
            const hal::NodeId set = give(r, "fill", args(x->address(), value, kN), {});
            const hal::NodeId c = below(r, x, 5, {set});
            const hal::NodeId n = need(r.conditional(
                if_op([](hal::Recorder&, int) -> Result<void> { return {}; }, has_else), {{c}}));
            give(r, "fill", args(y->address(), value + 1, kN), {n});
          },
          [&](const char* where) { EXPECT_TRUE(all(y, value + 1)) << where; });
    }
  }
}

TEST_P(HalConditional, a_node_in_a_body_can_be_changed) {
  const auto x = block(0), y = block(0), z = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId before = add(*g, z, 1);
  const hal::NodeId c = below(*g, x, 3, {before});
  hal::NodeId inside = -1, copied = -1;
  const hal::NodeId loop =
      need(g->conditional(while_op([&](hal::Recorder& body, int) -> Result<void> {
                            inside = add(body, x, 1);
                            copied = need(body.copy({y->address(), x->address(), kN * 4}, {{inside}}));
                            below(body, x, 3, {copied});
                            return {};
                          }),
                          {{c}}));
  const hal::NodeId after = add(*g, z, 1, {loop});
  const std::vector<hal::NodeId> ids = {before, c, loop, inside, copied, after};
  for (size_t i = 0; i < ids.size(); ++i) {
    for (size_t k = 0; k < i; ++k) EXPECT_NE(ids[i], ids[k]);
  }
  auto e = need(g->instantiate());
  launch(*e);
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(y, 3));
  Args half = args(x->address(), 0.5F, kN);
  GK_OK(e->set_kernel(inside, kernel("add", half)));
  GK_OK(e->set_copy(copied, {z->address(), x->address(), kN * 4}));
  give(*stream, "fill", args(x->address(), 0.25F, kN), {});
  launch(*e);
  EXPECT_TRUE(all(x, 3.25F));
  EXPECT_TRUE(all(y, 3));
  EXPECT_TRUE(all(z, 4.25F));
  EXPECT_EQ(e->set_kernel(loop, kernel("add", half)).error().code, "E0508");
}

TEST_P(HalConditional, a_launch_in_flight_keeps_the_bodies_it_was_launched_with) {
  const auto x = block(0), y = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId slow = give(*g, "slow", args(x->address(), 0, kN), {});
  const hal::NodeId c = below(*g, x, 1, {slow});
  hal::NodeId inside = -1;
  need(g->conditional(if_op([&](hal::Recorder& body, int) -> Result<void> {
                        inside = add(body, y, 1);
                        return {};
                      }),
                      {{c}}));
  auto e = need(g->instantiate());
  GK_OK(e->launch(*stream));
  Args ten = args(y->address(), 10, kN);
  GK_OK(e->set_kernel(inside, kernel("add", ten)));
  GK_OK(e->launch(*stream));
  GK_OK(stream->synchronize());
  EXPECT_TRUE(all(y, 11));
}

TEST_P(HalConditional, nodes_of_bodies_are_counted) {
  const auto x = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId c = below(*g, x, 1);
  const int64_t nodes = g->num_nodes(), edges = g->num_edges();
  need(g->conditional(if_op([&](hal::Recorder& body, int) -> Result<void> {
                        add(body, x, 1, {add(body, x, 1, {add(body, x, 1)})});
                        return {};
                      }),
                      {{c}}));
  EXPECT_GE(g->num_nodes(), nodes + 4);
  EXPECT_GE(g->num_edges(), edges + 3);
}

TEST_P(HalConditional, a_body_that_fails_leaves_the_graph_as_it_was_or_of_no_use) {
  const auto x = block(0), y = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId c = below(*g, x, 1);
  const int64_t nodes = g->num_nodes(), edges = g->num_edges(), mark = g->mark();
  for (const int failing : {0, 1}) {
    const auto r =
        g->conditional(if_op(
                           [&](hal::Recorder& body, int which) -> Result<void> {
                             const hal::NodeId n = add(body, y, 100);
                             GK_CHECK(body.conditional(if_op([&](hal::Recorder& part, int) -> Result<void> {
                                                         add(part, y, 1000);
                                                         return {};
                                                       }),
                                                       {{n}}));
                             if (which == failing)
                               return fail(ErrorKind::Runtime, "E0999", "this body fails");
                             return {};
                           },
                           true),
                       {{c}});
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().code, "E0999");
    EXPECT_EQ(g->mark(), mark);
    if (!is_host()) {
      EXPECT_EQ(g->instantiate().error().code, "E0715");
      return;
    }
    EXPECT_EQ(g->num_nodes(), nodes);
    EXPECT_EQ(g->num_edges(), edges);
  }
  add(*g, y, 1, {c});
  auto e = need(g->instantiate());
  launch(*e, 2);
  EXPECT_TRUE(all(y, 2));
}

TEST_P(HalConditional, a_node_of_another_body_is_nothing_to_come_after) {
  const auto x = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId outside = add(*g, x, 1);
  hal::NodeId inside = -1;
  std::string code;
  need(g->conditional(if_op([&](hal::Recorder& body, int) -> Result<void> {
                        inside = add(body, x, 1);
                        Args a = args(x->address(), 1, kN);
                        const auto r = body.kernel(kernel("add", a), {{outside}});
                        code = r.has_value() ? "none" : r.error().code;
                        return {};
                      }),
                      {{outside}}));
  EXPECT_EQ(code, "E0508");
  Args a = args(x->address(), 1, kN);
  EXPECT_EQ(g->kernel(kernel("add", a), {{inside}}).error().code, "E0508");
}

TEST_P(HalConditional, what_makes_no_sense_is_refused) {
  auto g = need(device->create_graph());
  const auto empty = [](hal::Recorder&, int) -> Result<void> { return {}; };
  for (hal::Recorder* r : {static_cast<hal::Recorder*>(g.get()), static_cast<hal::Recorder*>(stream.get())}) {
    ConditionalOp op = if_op(empty);
    op.condition = nullptr;
    EXPECT_EQ(r->conditional(op, {}).error().code, "E0508");
    EXPECT_EQ(r->conditional(if_op({}), {}).error().code, "E0508");
    op = while_op(empty);
    op.has_else = true;
    EXPECT_EQ(r->conditional(op, {}).error().code, "E0508");
  }
  const hal::NodeId missing = 9;
  EXPECT_EQ(g->conditional(if_op(empty), {&missing, 1}).error().code, "E0508");
  const auto r = g->conditional(if_op([](hal::Recorder& body, int) -> Result<void> {
                                  GK_CHECK(body.host_call([] {}, {}));
                                  return {};
                                }),
                                {});
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0405");
  EXPECT_EQ(r.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(g->num_nodes(), 0);
}

TEST_P(HalConditional, a_body_may_hold_a_matrix_product) {
  program::MatMulCall call;
  call.m = call.n = call.k = 8;
  call.lda = call.ldb = call.ldc = 8;
  call.stride_a = call.stride_b = call.stride_c = 64;
  if (!device->supports(call)) GTEST_SKIP() << "no library for it here";
  const auto a = block(1), b = block(2), c = block(0), x = block(0);
  auto g = need(device->create_graph());
  const hal::NodeId test = below(*g, x, 1);
  const auto r = g->conditional(
      if_op([&](hal::Recorder& body, int) -> Result<void> {
        GK_CHECK(body.library(test::Product(call, a->address(), b->address(), nullptr, c->address()).op, {}));
        return {};
      }),
      {{test}});
  if (!r) {
    // A library may do it in a way that bodies do not take; it says so.
    EXPECT_EQ(r.error().code, "E0405") << r.error().message;
    return;
  }
  auto e = need(g->instantiate());
  launch(*e);
  EXPECT_TRUE(all(c, 16, 64));
}

TEST_P(HalConditional, a_trace_logs_bodies_and_can_fail_in_them) {
  if (trace() == nullptr) GTEST_SKIP() << "only a trace logs";
  const auto x = block(0);
  auto g = need(device->create_graph());
  const auto record = [&](hal::Recorder& body, int) -> Result<void> {
    Args a = args(x->address(), 1, kN);
    GK_CHECK(body.kernel(kernel("add", a), {}));
    GK_CHECK(body.copy({x->address(), x->address(), 0}, {}));
    return {};
  };
  Args unused = args(x->address(), 1, kN);
  (void)kernel("add", unused);  // loads the code
  trace()->clear_log();
  trace()->fail_next("add copy");
  const auto r = g->conditional(if_op(record, true), {});
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0503");
  EXPECT_TRUE(trace()->failed());
  EXPECT_EQ(trace()->failed_call(), "add copy");
  EXPECT_EQ(g->mark(), 0);
  std::string text;
  for (const auto& c : trace()->log()) text += c.name + (c.detail == "if else" ? " if else" : "") + "; ";
  EXPECT_EQ(text, "add conditional if else; get function; add kernel; add copy; ");
}

GK_ALL_DEVICES(HalConditional);

}  // namespace
}  // namespace gk::test
