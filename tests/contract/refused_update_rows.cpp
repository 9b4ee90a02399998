// Rows about updates that are refused or that the driver fails: nothing is patched, all nodes change or none.
#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/probe.h"
#include "tests/contract/script.h"

namespace gk::contract_test {
namespace {

CONTRACT_ROW(40J,
             "retargets that are refused: two operations, a foreign node, wrong types; nothing is patched") {
  Kernel add = lib.kernel("add");
  Tensor a = array(0), b = array(0), d = ctx.full(f64, {kN}, 0);
  Graph g = ctx.capture([&] {
    ctx.node("one", [&] { add(a, 1.0F); });
    ctx.node("two", [&] {
      add(a, 1.0F);
      add(a, 1.0F);
    });
  });
  Exec e = g.instantiate();
  Graph elsewhere = ctx.capture([&] { ctx.node("one", [&] { add(b, 1.0F); }); });
  Engine second = open();
  Context its{second};
  Tensor foreign = its.full(f32, {kN}, 0), freed = array(0);
  freed.free();
  e.launch(ctx);
  probe::clear_calls(engine);
  const auto update = [&](const char* node, std::vector<Value> args) {
    return code_of([&] { e.node(node).update(add, std::move(args)); });
  };
  EXPECT_EQ(update("two", {b, 1.0F}), "E0705");
  EXPECT_EQ(update("three", {b, 1.0F}), "E0704");
  EXPECT_EQ(code_of([&] { e.node(elsewhere.node("one")).update(add, {b, 1.0F}); }), "E0717");
  const std::string dtype = update("one", {d, 1.0F});
  EXPECT_TRUE(dtype == "E0202" || dtype == "E0211") << dtype;
  const std::string number = update("one", {1.0F, 1.0F});
  EXPECT_TRUE(number == "E0202" || number == "E0211" || number == "E0206") << number;
  EXPECT_EQ(update("one", {b}), "E0206");
  EXPECT_EQ(update("one", {freed, 1.0F}), "E0716");
  EXPECT_EQ(update("one", {foreign, 1.0F}), "E0717");
  Kernel copy = lib.kernel("copy_to");
  EXPECT_EQ(code_of([&] { e.node("one").update(copy, {b, b}); }), "E0404");
  EXPECT_EQ(code_of([&] { e.node("one").update(ctx, [&] { add(b, 1.0F), add(b, 1.0F); }); }), "E0705");
  EXPECT_EQ(code_of([&] { e.node("one").update(ctx, [] {}); }), "E0705");
  EXPECT_EQ(code_of([&] { e.node("one").update(ctx, [&] { ctx.synchronize(); }); }), "E0705");
  EXPECT_EQ(probe::calls(engine, "set kernel"), 0);
  EXPECT_EQ(probe::calls(engine, "update graph"), 0);
  EXPECT_EQ(probe::calls(engine, "instantiate graph"), 0);
  EXPECT_EQ(e.last_update().rung, UpdateRung::None);
  EXPECT_EQ(b.leases(), 1);  // elsewhere's
  e.launch(ctx);
  EXPECT_TRUE(all(a, 6));
  EXPECT_TRUE(all(b, 0));
  e.close();
  EXPECT_EQ(update("one", {b, 1.0F}), "E0716");
}

CONTRACT_ROW(48P, "an update of several nodes is all or nothing, whichever call of the driver fails") {
  Kernel add = lib.kernel("add"), axpy = lib.kernel("axpy");
  Tensor x = array(1), x2 = array(1), y = array(0), z = array(0);
  const auto record = [&](Tensor& on, float v) {
    return ctx.capture([&] {
      add(on, v);
      axpy(y, on, 1.0F);
      add(on, v);
      axpy(z, on, 1.0F);
      add(on, v);
    });
  };
  Graph g = record(x, 1), changed = record(x2, 10);
  struct Case {
    const char* what;
    std::function<void(const Exec&)> change;
    float step;                      // what it adds to x2 then, each time
    std::vector<const char*> lower;  // rungs of the ladder below the first
    int64_t most_failures;           // calls of that one
  };
  const Case cases[] = {
      {"rebind",
       [&](const Exec& e) {
         e.rebind({{x, x2}});
       },
       1,
       {"update graph", "instantiate graph"},
       5},
      {"update", [&](const Exec& e) { e.update(changed); }, 10, {"instantiate graph"}, 1},
  };
  const auto try_all = [&](const Case& c, bool to_the_end) {
    int64_t failures = 0;
    for (int64_t k = 0; k < 200; ++k) {
      const std::string where = std::string(c.what) + ", call " + std::to_string(k);
      Exec e = g.instantiate();
      const float before = values(x)[0], other = values(x2)[0];
      probe::fail_at(engine, k);
      // A failure on one rung is made good on the next one, unless that fails as well.
      for (const char* rung : to_the_end ? c.lower : std::vector<const char*>())
        probe::fail_next(engine, rung);
      const std::string code = code_of([&] { c.change(e); });
      const bool given = probe::failed(engine);
      probe::fail_at(engine, -1);
      float expected = before;
      if (!code.empty()) {
        ++failures;
        ASSERT_TRUE(given) << where;
        ASSERT_EQ(code, "E0503") << where;
        ASSERT_EQ(x2.leases(), 1) << where;
        e.launch(ctx);
        expected += 3;
        ASSERT_TRUE(all(x, expected)) << where;
        ASSERT_TRUE(all(x2, other)) << where;
        c.change(e);  // it can be asked again
      }
      e.launch(ctx);
      ASSERT_TRUE(all(x, expected)) << where;
      ASSERT_TRUE(all(x2, other + 3 * c.step)) << where;
      if (!given) break;
      ASSERT_LT(k, 199) << c.what;
    }
    EXPECT_GE(failures, to_the_end ? c.most_failures : 0) << c.what;
  };
  for (const Case& c : cases) {
    try_all(c, false);
    try_all(c, true);
  }
  EXPECT_EQ(x2.leases(), 1);  // of the graph alone
}

CONTRACT_ROW(
    51P,
    "an update is checked first: each refusal names its line, the node and the array, and changes nothing") {
  // In the language every refusal stands at its statement.
  Script script;
  ASSERT_EQ(script.run(R"(
var x = zeros(f32[4]), y = zeros(f32[4]), longer = zeros(f32[5]), wide = zeros(f64[4])
graph g {
  node a { x .+= 1 }
  node b { y .+= 2 }
}
let e = instantiate(g)
)"),
            Status::Ok)
      << script.err;
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"update e.c { x .+= 1 }", "E0704"},   {"update e.a { x .= y }", "E0705"},
      {"update e.b { x .+= 5 }", "E0705"},   {"update e { x -> longer }", "E0706"},
      {"update e { x -> wide }", "E0706"},   {"update e { x -> y }", "E0706"},
      {"update e { longer -> x }", "E0706"},
  };
  for (const auto& [statement, code] : refused) {
    EXPECT_NE(script.run("\n\n" + statement + "\n"), Status::Ok) << statement;
    EXPECT_NE(script.err.find("script.gk:3:"), std::string::npos) << statement << ": " << script.err;
    EXPECT_NE(script.err.find(code), std::string::npos) << statement << ": " << script.err;
  }
  ASSERT_EQ(script.run("launch e\nassert all(x == 1) and all(y == 2)"), Status::Ok) << script.err;

  // From C++: the definition that the argument does not fit, by its line.
  Kernel add = lib.kernel("add"), fill = lib.kernel("fill"), axpy = lib.kernel("axpy");
  Tensor p = array(0), q = array(0), d = ctx.full(f64, {kN}, 0);
  Graph g = ctx.graph("g");
  Node first = g.add("first", {.after = std::vector<Node>{}}, [&] { add(p, 1.0F); });
  g.add("second", {.after = std::vector<Node>{}}, [&] { fill(q, 4.0F); });
  Exec e = g.instantiate();
  auto wrong = e.node("first").try_update(add, {d, 1.0F});
  ASSERT_FALSE(wrong);
  ASSERT_FALSE(wrong.error().places().empty());
  EXPECT_EQ(wrong.error().places()[0].file, "lib.gk");
  EXPECT_EQ(wrong.error().places()[0].line, 3);
  // It would read what `second` writes, and no order is declared between the two.
  auto unordered = e.node("first").try_update(axpy, {p, q, 1.0F});
  ASSERT_FALSE(unordered);
  EXPECT_EQ(unordered.error().code(), "E0705");
  EXPECT_NE(std::string(unordered.error().what()).find("second"), std::string::npos)
      << unordered.error().what();
  EXPECT_EQ(q.leases(), 2);
  Tensor fresh = array(0);
  EXPECT_EQ(code_of([&] { e.node("first").update(axpy, {fresh, q, 1.0F}); }), "E0705");
  EXPECT_EQ(fresh.leases(), 0);
  e.launch(ctx, 2);
  EXPECT_TRUE(all(p, 2));
  EXPECT_TRUE(all(q, 4));
  // Rebinding: dtype, shape, an array that the graph does not use, one that it uses already.
  Tensor shorter = array(0, kN - 1), unused = array(0);
  const auto rebind = [&](const Tensor& from, const Tensor& to) {
    return code_of([&] { e.rebind({{from, to}}); });
  };
  EXPECT_EQ(rebind(p, d), "E0706");
  EXPECT_EQ(rebind(p, shorter), "E0706");
  EXPECT_EQ(rebind(unused, p), "E0706");
  EXPECT_EQ(rebind(p, q), "E0706");
  EXPECT_EQ(rebind(p, Tensor()), "E0716");
  e.launch(ctx);
  EXPECT_TRUE(all(p, 3));
}

}  // namespace
}  // namespace gk::contract_test
