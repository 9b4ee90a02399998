// Rows on captures: what they record, refuse and leave behind.
#include <atomic>
#include <optional>
#include <set>
#include <stdexcept>

#include "tests/contract/contract.h"
#include "tests/contract/dot_check.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

/// The code of the Capture error that a call gives, having asked nothing of the driver.
template <class F>
std::string refused(const Engine& e, F&& f) {
  const int64_t before = probe::calls(e);
  try {
    f();
  } catch (const CaptureError& error) {
    EXPECT_EQ(probe::calls(e), before) << "the driver was asked before: " << error.what();
    return error.code();
  }
  return "";
}

}  // namespace

CONTRACT_ROW(01J, "a capture executes nothing; each launch executes it once") {
  Tensor count = array(0), other = array(7), copy = array(0);
  add(count, 0);
  ctx.synchronize();
  std::atomic<int> called{0};
  probe::clear_calls(engine);
  Graph g = ctx.capture([&] {
    add(count, 1);
    copy.copy_from(ctx, other);
    ctx.host_call([&] { ++called; });
  });
  for (const char* name :
       {"launch kernel", "launch copy", "launch host call", "launch matmul", "launch graph"})
    EXPECT_EQ(probe::calls(engine, name), 0) << name;
  Exec e = g.instantiate();
  EXPECT_TRUE(all(count, 0));
  EXPECT_TRUE(all(copy, 0));
  EXPECT_EQ(called, 0);
  for (int i = 1; i <= 3; ++i) {
    e.launch(ctx);
    EXPECT_TRUE(all(count, static_cast<float>(i)));
    EXPECT_EQ(called, i);
  }
  EXPECT_TRUE(all(copy, 7));
  e.launch(ctx, 5);
  EXPECT_TRUE(all(count, 8));
  EXPECT_EQ(called, 8);
}

CONTRACT_ROW(03J, "an empty graph has no nodes; instantiating and launching it do nothing") {
  Tensor x = array(3);
  for (const Graph& g : {ctx.capture([] {}), ctx.graph("by hand")}) {
    ASSERT_TRUE(g);
    EXPECT_EQ(g.num_nodes(), 0);
    EXPECT_EQ(g.num_leases(), 0);
    Exec e = g.instantiate();
    EXPECT_EQ(e.num_driver_nodes(), 0);
    EXPECT_EQ(e.num_leases(), 0);
    add(x, 1);
    e.upload(ctx);
    e.launch(ctx);
    e.launch(ctx, 3);
    add(x, -1);
    EXPECT_TRUE(all(x, 3));
  }
  EXPECT_FALSE(Graph());
  EXPECT_EQ(engine.stats().leases, 0);
}

CONTRACT_ROW(04J, "a graph as text, exactly, and as DOT that is valid") {
  Tensor x = array(1), y = array(2), z = array(0);
  Graph g = ctx.capture(
      [&] {
        ctx.node("a", [&] { add(x, 1); });
        ctx.node("say \"b\" \\ {c}", {.after = std::vector<Node>{}}, [&] { add(y, 1); });
        lib.kernel("combine")(z, x, y);
      },
      {.name = "two and one"});
  const std::string leases = std::to_string(g.num_leases());
  EXPECT_EQ(g.print(),
            "graph two and one nodes=3 edges=2 driver_nodes=3 driver_edges=2 leases=3 arena=0\n"
            "  node 0 a\n"
            "    kernel add\n"
            "  node 1 say \"b\" \\ {c}\n"
            "    kernel add\n"
            "  node 2 #2 after a, say \"b\" \\ {c}\n"
            "    kernel combine\n");
  EXPECT_EQ(g.print(), g.print());
  const Dot dot = parse_dot(g.dot());
  EXPECT_EQ(dot.error, "") << g.dot();
  EXPECT_EQ(dot.name, "two and one");
  EXPECT_EQ(dot.nodes.size(), 3U);
  EXPECT_EQ(dot.labels.count("say \"b\" \\ {c}\nkernel add"), 1U) << g.dot();
  EXPECT_EQ(dot.edges.size(), 2U);
  for (const auto& [from, to] : dot.edges) EXPECT_TRUE(dot.nodes.count(from) && dot.nodes.count(to));
  const Dot empty = parse_dot(ctx.graph().dot());
  EXPECT_EQ(empty.error, "");
  EXPECT_TRUE(empty.nodes.empty() && empty.edges.empty());
}

CONTRACT_ROW(12J,
             "reading back and waiting inside: a typed error, the capture goes on, the stream is usable") {
  Tensor x = array(1), y = array(5);
  Exec e = ctx.capture([&] { add(y, 1); }).instantiate();
  const auto total = lib.fn<float(Tensor)>("total");
  const Callable show = ctx.compile("show.gk", "fn show(x: f32[N]) { print(x) }").function("show");
  ctx.synchronize();
  float element = 0;
  Graph g = ctx.capture([&] {
    add(x, 1);
    EXPECT_EQ(refused(engine, [&] { values(y); }), "E0703");
    EXPECT_EQ(refused(engine, [&] { y.rows(0, 1).to_host(ctx, &element, sizeof element); }), "E0703");
    EXPECT_EQ(refused(engine, [&] { ctx.synchronize(); }), "E0703");
    EXPECT_EQ(refused(engine, [&] { e.launch(ctx); }), "E0703");
    EXPECT_EQ(refused(engine, [&] { e.upload(ctx); }), "E0703");
    EXPECT_EQ(refused(engine, [&] { engine.reclaim(); }), "E0708");
    EXPECT_EQ(refused(engine, [&] { ctx.close(); }), "E0703");
    EXPECT_EQ(refused(engine, [&] { show.call({y}); }), "E0703");
    EXPECT_TRUE(ctx.is_capturing());
    scale(x, 3);
  });
  EXPECT_FALSE(ctx.is_capturing());
  EXPECT_EQ(g.num_nodes(), 2);
  Exec f = g.instantiate();
  f.launch(ctx);
  EXPECT_TRUE(all(x, 6));
  EXPECT_TRUE(all(y, 5));
  // A result that is read back as it is given: what was recorded for it stays.
  Graph h = ctx.capture([&] {
    EXPECT_EQ(code_of([&] { total(x); }), "E0703");
    add(x, 1);
  });
  h.instantiate().launch(ctx);
  EXPECT_TRUE(all(x, 7));
  e.launch(ctx);
  EXPECT_TRUE(all(y, 6));
  EXPECT_EQ(total(y), 6.0F * kN);
}

CONTRACT_ROW(13J, "quiet mode: what cannot be recorded gives no graph; everything else is an error still") {
  Tensor x = array(0), longer = array(1, kN + 1);
  const auto quietly = [&](const std::function<void()>& f) { return ctx.capture(f, {.quiet = true}); };
  EXPECT_FALSE(quietly([&] {
    add(x, 1);
    values(x);
    add(x, 1);
  }));
  EXPECT_FALSE(quietly([&] { ctx.synchronize(); }));
  Result<Graph> tried = ctx.try_capture([&] { values(x); }, {.quiet = true});
  ASSERT_TRUE(tried.has_value());
  EXPECT_FALSE(*tried);
  EXPECT_THROW(ctx.capture([&] { values(x); }), CaptureError);

  EXPECT_EQ(code_of([&] { quietly([&] { axpy(x, longer, 1); }); }), "E0303");
  EXPECT_THROW(quietly([&] { ctx.compile("bad.gk", "fn f( ="); }), CompileError);
  EXPECT_THROW(quietly([&] { ctx.empty(f32, {int64_t{1} << 50}); }), OutOfMemory);
  EXPECT_THROW(quietly([] { throw std::logic_error("mine"); }), std::logic_error);
  EXPECT_FALSE(ctx.is_capturing());
  EXPECT_TRUE(all(x, 0));
  EXPECT_EQ(engine.stats().leases, 0);

  Graph g = quietly([&] { add(x, 1); });
  ASSERT_TRUE(g);
  g.instantiate().launch(ctx);
  EXPECT_TRUE(all(x, 1));
}

CONTRACT_ROW(
    14J, "a download to pinned memory that is not an array is an error; to a pinned array it is recorded") {
  Tensor x = array(1), p = ctx.empty(f32, {kN}, MemoryPlace::Pinned);
  auto* memory = static_cast<float*>(p.host_data());
  ASSERT_NE(memory, nullptr);
  std::fill(memory, memory + kN, -1.0F);
  Graph g = ctx.capture([&] {
    add(x, 1);
    EXPECT_EQ(refused(engine, [&] { x.to_host(ctx, memory, x.size_bytes()); }), "E0703");
    p.copy_from(ctx, x);
  });
  EXPECT_EQ(memory[0], -1.0F);
  EXPECT_EQ(memory[kN - 1], -1.0F);
  Exec e = g.instantiate();
  for (int i = 2; i <= 3; ++i) {
    e.launch(ctx);
    ctx.synchronize();
    EXPECT_EQ(memory[0], static_cast<float>(i));
    EXPECT_EQ(memory[kN - 1], static_cast<float>(i));
  }
}

CONTRACT_ROW(15J, "a capture inside a capture is an error; the outer one is intact") {
  Tensor x = array(0), y = array(0);
  Graph made = ctx.graph("made before");
  bool entered = false;
  Graph g = ctx.capture([&] {
    add(x, 1);
    EXPECT_EQ(refused(engine, [&] { ctx.capture([&] { entered = true; }); }), "E0718");
    EXPECT_EQ(refused(engine, [&] { made.add("a", [&] { entered = true; }); }), "E0718");
    // Quiet mode is about what the inner one would record.
    Result<Graph> inner = ctx.try_capture([&] { entered = true; }, {.quiet = true});
    EXPECT_TRUE(!inner.has_value() || !*inner);
    EXPECT_TRUE(ctx.is_capturing());
    // A capture with another context is none inside this one.
    Worker other(engine);
    Graph h = other.ctx.capture([&] { other.kernel("add")(y, 10.0F); });
    EXPECT_EQ(h.num_nodes(), 1);
    h.instantiate().launch(other.ctx);
    other.ctx.synchronize();
    scale(x, 2);
  });
  EXPECT_FALSE(entered);
  EXPECT_EQ(g.num_nodes(), 2);
  EXPECT_EQ(made.num_nodes(), 0);
  EXPECT_TRUE(all(y, 10));
  Exec e = g.instantiate();
  e.launch(ctx, 2);
  EXPECT_TRUE(all(x, 6));
}

CONTRACT_ROW(24J,
             "code is compiled and loaded during a capture, on its thread and on another: it stays valid") {
  Tensor x = array(1), y = array(1);
  int64_t loaded = 0;
  Graph g = ctx.capture([&] {
    add(x, 1);
    probe::clear_calls(engine);
    // Texts of their own, so that no other test has loaded their code.
    Module mine = ctx.compile("mine.gk", "kernel k24(mut y: f32[n]) over i in n { y[i] = y[i] * 5 + 24 }");
    mine.kernel("k24")(x);
    on_thread([&] {
      Context c(engine);
      Module m = c.compile("theirs.gk", "kernel k42(mut y: f32[n]) over i in n { y[i] = y[i] * 7 + 42 }");
      m.kernel("k42")(y);
      EXPECT_EQ(y.to_host<float>(c)[0], 49.0F);
    });
    loaded = probe::calls(engine, "load module");
    add(x, 1);
  });
  EXPECT_GE(loaded, 2);
  EXPECT_EQ(g.num_nodes(), 3);
  g.instantiate().launch(ctx);
  EXPECT_TRUE(all(x, 35));
  EXPECT_TRUE(all(y, 49));
}

}  // namespace gk::contract_test
