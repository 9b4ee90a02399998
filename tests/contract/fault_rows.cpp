// Rows about failures: any call of the driver may fail, and a capture may be broken from outside.
#include <algorithm>
#include <atomic>
#include <optional>

#include "gk/gk.h"
#include "tests/contract/contract.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

struct Program {
  const char* name;
  std::function<void()> run;
};

/// What is there when nothing is in use.
struct Left {
  probe::Alive alive;
  int64_t in_use_bytes = 0, leases = 0, pending = 0;
};

class Faults : public contract {
 public:
  using Contract::ctx;
  using Contract::engine;
  void TestBody() override {}
  Module m = ctx.compile("faults.gk", R"(
fn product(a: f32[N, N], b: f32[N, N]) -> f32[N, N] = a @ b
fn grow(mut x: f32[N], limit: f32) { while sum(x) < limit { x .*= 2 } }
fn centre(x: f32[N]) -> f32[N] = x - sum(x) / N
)");
  int compiled = 0, wrapped = 0;
  std::atomic<int> deleted{0};
  cuda::ForeignMemory memory{kN};

  std::vector<Program> programs();
  Left left() {
    ctx.synchronize();
    engine.reclaim();
    const EngineStats s = engine.stats();
    return {probe::alive(engine), s.in_use_bytes, s.leases, s.pending_releases};
  }
  void check_left(const Left& expected, const std::string& where) {
    const Left now = left();
    const auto &a = now.alive, &b = expected.alive;
    EXPECT_EQ(a.allocations, b.allocations) << where;
    EXPECT_EQ(a.bytes, b.bytes) << where;
    EXPECT_EQ(a.events, b.events) << where;
    EXPECT_EQ(a.graphs, b.graphs) << where;
    EXPECT_EQ(a.execs, b.execs) << where;
    EXPECT_EQ(now.in_use_bytes, expected.in_use_bytes) << where;
    EXPECT_EQ(now.leases, expected.leases) << where;
    EXPECT_EQ(now.pending, 0) << where;
  }
  /// A program that uses a bit of everything; what it gives is checked.
  void next_program() {
    Tensor x = array(1), y;
    Graph g = ctx.capture([&] { y = lib.fn<Tensor(Tensor, float)>("plus")(x, 2.0F); });
    Exec e = g.instantiate();
    e.launch(ctx, 2);
    ASSERT_TRUE(all(y, 3));
    add(x, 1.0F);
    e.launch(ctx);
    ASSERT_TRUE(all(y, 4));
  }
};

std::vector<Program> Faults::programs() {
  std::vector<Program> p;
  p.push_back({"eager", [this] {
                 Tensor x = ctx.from_host(std::vector<float>(kN, 3), {kN});
                 Tensor y = lib.fn<Tensor(Tensor, float)>("plus")(x, 1.0F);
                 y = lib.fn<Tensor(Tensor, Tensor)>("sum_of")(x, y);
                 ASSERT_TRUE(all(y, 7));
                 Tensor a = ctx.full(f32, {8, 8}, 1);
                 ASSERT_TRUE(all(m.fn<Tensor(Tensor, Tensor)>("product")(a, a), 8));
                 m.function("grow").call({x, 5000.0F});
                 ASSERT_TRUE(all(x, 6));
               }});
  p.push_back({"code", [this] {
                 // Never the same text twice, so that code is loaded each time.
                 const std::string v = std::to_string(++compiled);
                 Tensor x = array(0);
                 ctx.compile("new" + v + ".gk",
                             "kernel k(mut y: f32[n]) over i in n { y[i] = y[i] + " + v + ".0 }")
                     .kernel("k")(x);
                 ASSERT_TRUE(all(x, static_cast<float>(compiled)));
               }});
  p.push_back({"capture, instantiate, launch, destroy", [this] {
                 Tensor x = array(1), y;
                 const std::vector<float> host(kN, 10);
                 Graph g = ctx.capture([&] {
                   Tensor t = ctx.from_host(host, {kN});
                   y = m.fn<Tensor(Tensor)>("centre")(lib.fn<Tensor(Tensor, Tensor)>("sum_of")(x, t));
                   axpy(y, t, 1.0F);
                 });
                 Exec e = g.instantiate(), e2 = g.instantiate();
                 e.upload(ctx);
                 e.launch(ctx, 3);
                 ASSERT_TRUE(all(y, 10));
                 e2.launch(ctx);
                 g.close();
                 e.close();
                 ASSERT_TRUE(all(y, 10));
                 e2.close();
               }});
  p.push_back({"several threads' contexts", [this] {
                 Tensor x = array(1);
                 Exec e = ctx.capture([&] { add(x, 1.0F); }).instantiate();
                 Worker other(engine);
                 e.launch(ctx);
                 e.launch(other.ctx);
                 other.kernel("add")(x, 1.0F);
                 e.launch(ctx);
                 ASSERT_TRUE(all(x, 5));
                 other.ctx.close();
               }});
  p.push_back({"update and rebind", [this] {
                 Tensor x = array(0), y = array(0), z = array(0);
                 Graph g = ctx.graph("g");
                 g.add("a", [&] { add(x, 1.0F); });
                 g.add("b", [&] { axpy(y, x, 1.0F); });
                 Exec e = g.instantiate();
                 e.launch(ctx);
                 e.node("a").update(lib.kernel("fill"), {x, 5.0F});
                 e.launch(ctx);
                 e.rebind({{y, z}});
                 e.launch(ctx);
                 Graph same = ctx.capture([&] {
                   ctx.node("a", [&] { add(z, 1.0F); });
                   ctx.node("b", [&] { axpy(y, z, 1.0F); });
                 });
                 e.update(same);
                 e.launch(ctx);
                 ASSERT_TRUE(all(x, 5));
                 ASSERT_TRUE(all(z, 6));
                 ASSERT_TRUE(all(y, 12));
               }});
  p.push_back({"pinned and foreign memory, host calls", [this] {
                 memory.write(std::vector<float>(kN, 1));
                 const auto called = std::make_shared<int>(0);
                 {
                   Tensor t = Tensor::wrap(ctx, memory.get(), f32, {kN}, {.deleter = [this] { ++deleted; }});
                   ++wrapped;
                   Tensor pinned = ctx.empty(f32, {kN}, MemoryPlace::Pinned);
                   std::fill_n(static_cast<float*>(pinned.host_data()), kN, 2.0F);
                   Exec e = ctx.capture([&] {
                                 axpy(t, pinned, 1.0F);
                                 ctx.host_call([called] { ++*called; });
                                 pinned.copy_from(ctx, t);
                               })
                                .instantiate();
                   e.launch(ctx);
                   ctx.synchronize();
                   ASSERT_EQ(static_cast<float*>(pinned.host_data())[kN - 1], 3);
                   ASSERT_EQ(*called, 1);
                 }
                 engine.reclaim();
               }});
  p.push_back({"conditional nodes and products", [this] {
                 Tensor x = array(1), a = ctx.full(f32, {16, 16}, 0.5), c;
                 Exec e = ctx.capture([&] {
                               m.function("grow").call({x, 3000.0F});
                               c = m.fn<Tensor(Tensor, Tensor)>("product")(a, a);
                             })
                              .instantiate();
                 e.launch(ctx);
                 ASSERT_TRUE(all(x, 4));
                 ASSERT_TRUE(all(c, 4));
               }});
  return p;
}

CONTRACT_ROW(56P, "whichever call of the driver fails: a typed error, nothing leaks, the next program runs") {
  std::optional<cuda::Host> host;
  if (on_gpu()) host.emplace();
  Faults f;
  for (const Program& p : f.programs()) {
    p.run();  // code is made before
    f.next_program();
    Left expected = f.left();
    int64_t failures = 0, k = 0;
    for (;; ++k) {
      probe::clear_calls(f.engine);
      probe::fail_at(f.engine, k);
      const std::string code = code_of([&] {
        p.run();
        f.ctx.synchronize();
        f.engine.reclaim();
      });
      const bool given = probe::failed(f.engine);
      probe::fail_at(f.engine, -1);
      const std::vector<std::string> names = probe::call_names(f.engine);
      if (!given) {
        EXPECT_EQ(code, "") << p.name;
        break;
      }
      const std::string call = names.at(static_cast<size_t>(k));
      const std::string where = std::string(p.name) + ", call " + std::to_string(k) + ": " + call;
      if (HasFatalFailure()) FAIL() << where;
      failures += !code.empty();
      // What a destructor or a deferred ending meets is noted, not thrown.
      EXPECT_TRUE(code.empty() || code == "E0503") << where << ": " << code;
      f.next_program();
      if (HasFatalFailure()) FAIL() << where;
      if (call == "destroy executable") {
        // It counts as never gone: it and what it uses are kept.
        EXPECT_EQ(probe::alive(f.engine).execs, expected.alive.execs + 1) << where;
        expected = f.left();
      } else {
        f.check_left(expected, where);
      }
      EXPECT_TRUE(eventually([&] { return f.deleted == f.wrapped || call == "destroy executable"; }))
          << where;
      f.deleted = f.wrapped = 0;
      ASSERT_LT(k, 2000) << p.name;
    }
    EXPECT_GT(failures, 3) << p.name;
    // The last round, without a failure, has done what it should.
    f.check_left(expected, p.name);
  }
}

CONTRACT_ROW_GPU(53P,
                 "a capture broken from outside: the first call that failed is named, eager work goes on",
                 "nothing outside can reach a stream of the host device") {
  const cuda::Host host;
  const cuda::OwnStream outside;
  const cuda::OwnEvent event;
  event.record(outside.get());
  cuda::OwnStream explicit_stream;
  struct Way {
    const char* name;
    std::function<int(cuda::Stream)> act;
  };
  const Way ways[] = {
      {"waits for the stream", [](cuda::Stream s) { return cuda::stream_synchronize(s); }},
      {"waits for an event from outside", [&](cuda::Stream s) { return cuda::stream_wait(s, event.get()); }},
      {"ends the capture", [](cuda::Stream s) { return cuda::end_capture(s); }},
  };
  for (const Way& w : ways) {
    for (const bool own : {false, true}) {
      Tensor x = array(0), y = array(0);
      const auto body = [&](bool broken) {
        add(x, 1.0F);
        cuda::Stream s = ctx.stream();
        cuda::fill_words(s, y.data(), cuda::word_of(2), kN);
        if (broken) (void)w.act(s);
        axpy(x, y, 10.0F);
        add(y, 1.0F);
      };
      CaptureOptions o;
      if (own) o.stream = explicit_stream.get();
      const auto g = ctx.try_capture([&] { body(true); }, o);
      ASSERT_FALSE(g) << w.name;
      EXPECT_EQ(g.error().code(), "E0715") << w.name;
      EXPECT_EQ(g.error().kind(), ErrorKind::Capture) << w.name;
      // The first call that met it, by the driver's name.
      EXPECT_NE(g.error().rendered().find("cu"), std::string::npos) << g.error().rendered();
      EXPECT_FALSE(ctx.is_capturing()) << w.name;
      EXPECT_FALSE(cuda::is_capturing(explicit_stream.get())) << w.name;
      EXPECT_EQ(x.leases(), 0) << w.name;
      EXPECT_TRUE(all(x, 0)) << w.name;
      // The same, eagerly.
      body(false);
      ctx.synchronize();
      EXPECT_TRUE(all(x, 21)) << w.name;
      EXPECT_TRUE(all(y, 3)) << w.name;
      // And recorded again, unbroken.
      Exec e = ctx.capture([&] { body(false); }, o).instantiate();
      e.launch(ctx);
      EXPECT_TRUE(all(x, 42)) << w.name;
      // In quiet mode there is no graph.
      o.quiet = true;
      EXPECT_FALSE(ctx.capture([&] { body(true); }, o)) << w.name;
      EXPECT_TRUE(all(x, 42)) << w.name;
    }
  }
  EXPECT_EQ(cuda::Host::synchronize(), 0);
}

}  // namespace
}  // namespace gk::contract_test
