// Rows about what the host program has of its own: graphs to record into, and how it asks for memory back,
// for an upload, for stricter or quiet captures.
#include <atomic>
#include <stdexcept>

#include "gk/gk.h"
#include "tests/contract/c_interface.h"
#include "tests/contract/contract.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {
namespace {

CONTRACT_ROW(57P,
             "work recorded into a graph of the host's own leases its memory until that is gone; no such "
             "graph: an error") {
  if (!on_gpu()) {
    Tensor x = array(1);
    int pretended = 0, called = 0;
    auto* graph = reinterpret_cast<CUgraph_st*>(&pretended);
    const auto r = ctx.try_record_into(graph, {}, [&] { ++called, add(x, 1.0F); });
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), "E0510");
    EXPECT_EQ(r.error().kind(), ErrorKind::Device);
    EXPECT_EQ(code_of([&] { (void)ctx.record_into(nullptr, {}, [&] { ++called; }); }), "E0512");
    EXPECT_EQ(called, 0);
    EXPECT_FALSE(ctx.is_capturing());
    EXPECT_EQ(x.leases(), 0);
    EXPECT_TRUE(all(x, 1));
    return;
  }
  const cuda::Host host;
  const cuda::Kernels kernels;
  const cuda::OwnStream stream;
  cuda::ForeignMemory memory(kN);
  memory.write(std::vector<float>(kN, -5));
  std::atomic<int> deleted{0};
  Tensor x = Tensor::wrap(ctx, memory.get(), f32, {kN}, {.deleter = [&] { ++deleted; }});
  Tensor y = array(0);
  auto plus = lib.fn<Tensor(Tensor, float)>("plus");
  cuda::OwnGraph g, other;
  const cuda::NodeHandle filled = g.add_fill({}, memory.get(), cuda::word_of(3), kN);
  const cuda::NodeHandle foreign = other.add_fill({}, memory.get(), cuda::word_of(3), kN);
  // What goes wrong leaves the host's graph as it was.
  const auto work = [&] {
    Tensor t = plus(x, 1.0F);
    axpy(y, t, 2.0F);
  };
  EXPECT_EQ(code_of([&] { (void)ctx.record_into(g.get(), {foreign}, work); }), "E0510");
  EXPECT_EQ(code_of([&] { (void)ctx.record_into(g.get(), {filled}, [&] { work(), ctx.synchronize(); }); }),
            "E0703");
  EXPECT_THROW((void)ctx.record_into(g.get(), {filled}, [&] { work(), throw std::domain_error("mine"); }),
               std::domain_error);
  EXPECT_EQ(g.num_nodes(), 1U);
  EXPECT_EQ(x.leases(), 0);
  EXPECT_EQ(y.leases(), 0);

  const std::vector<cuda::NodeHandle> frontier = ctx.record_into(g.get(), {filled}, work);
  ASSERT_FALSE(frontier.empty());
  EXPECT_EQ(g.num_nodes(), 3U);
  kernels.add_node(g.get(), frontier, y.data(), 0.5F, kN);
  EXPECT_GE(y.leases(), 1);
  ctx.synchronize();
  EXPECT_EQ(memory.read(), std::vector<float>(kN, -5));
  EXPECT_TRUE(all(y, 0));
  g.instantiate();
  // All handles and the host's graph go; its executable is left.
  x = Tensor();
  g.destroy_graph();
  ctx.synchronize();
  engine.reclaim();
  EXPECT_EQ(deleted, 0);
  const std::vector<Tensor> over = churn(30, 1e30F);
  ctx.synchronize();
  g.launch(stream.get());
  stream.synchronize();
  EXPECT_TRUE(all(y, 8.5));
  g.launch(stream.get());
  stream.synchronize();
  EXPECT_TRUE(all(y, 17));
  EXPECT_EQ(memory.read(), std::vector<float>(kN, 3));
  EXPECT_GE(y.leases(), 1);
  EXPECT_EQ(deleted, 0);
  g.destroy_exec();
  EXPECT_TRUE(eventually([&] {
    ctx.synchronize();
    engine.reclaim();
    return deleted == 1 && y.leases() == 0;
  }));
  EXPECT_EQ(deleted, 1);
  for (const Tensor& t : over) ASSERT_TRUE(all(t, 1e30F));
}

CONTRACT_ROW(58P,
             "`reclaim`, `upload`, stricter modes and quiet mode, each as documented, from C++ and from C") {
  // reclaim: what is cached goes back to the driver; what is in use or leased stays.
  constexpr int64_t kLarge = 1 << 20;
  Tensor x = array(1), large = array(2, kLarge), leased = array(3, kLarge);
  Graph g = ctx.capture([&] { axpy(x, leased.rows(0, kN), 1.0F); });
  Exec e = g.instantiate();
  ctx.synchronize();
  engine.reclaim();
  const probe::Alive before = probe::alive(engine);
  const int64_t in_use = engine.stats().in_use_bytes;
  large.free();
  leased.free();
  ctx.synchronize();
  const int64_t cached = engine.stats().cached_bytes;
  if (!stressed()) {
    EXPECT_EQ(probe::alive(engine).bytes, before.bytes);  // the pool keeps it
    EXPECT_GE(cached, kLarge * 4);
  }
  engine.reclaim();
  EXPECT_LE(probe::alive(engine).bytes, before.bytes - kLarge * 4);
  if (!stressed()) {
    EXPECT_LE(engine.stats().cached_bytes, cached - kLarge * 4);
  }
  EXPECT_EQ(engine.stats().in_use_bytes, in_use - kLarge * 4);
  e.launch(ctx);
  EXPECT_TRUE(all(x, 4));
  // Not while a graph is being made, by this thread or another; it does not wait for that either.
  Exec recorded = ctx.capture([&] {
                       add(x, 1.0F);
                       EXPECT_EQ(code_of([&] { engine.reclaim(); }), "E0708");
                       on_thread([&] { EXPECT_EQ(code_of([&] { engine.reclaim(); }), "E0708"); });
                       add(x, 1.0F);
                     })
                      .instantiate();
  engine.reclaim();
  recorded.launch(ctx);
  EXPECT_TRUE(all(x, 6));

  // upload: sends ahead, runs nothing.
  Exec fresh = g.instantiate();
  probe::clear_calls(engine);
  fresh.upload(ctx);
  EXPECT_EQ(probe::calls(engine, "upload graph"), 1);
  EXPECT_EQ(probe::calls(engine, "launch graph"), 0);
  EXPECT_TRUE(all(x, 6));
  fresh.launch(ctx);
  fresh.upload(ctx);  // also while it runs
  EXPECT_TRUE(all(x, 9));
  (void)ctx.capture([&] {
    EXPECT_EQ(code_of([&] { fresh.upload(ctx); }), "E0703");
    add(x, 1.0F);
  });
  fresh.close();
  EXPECT_EQ(code_of([&] { fresh.upload(ctx); }), "E0716");

  // Stricter modes: what gk does itself is let through, here and on other threads.
  for (const CaptureMode mode : {CaptureMode::Relaxed, CaptureMode::ThreadLocal, CaptureMode::Global}) {
    x = array(0);
    const std::vector<float> host(kN, 5);
    Exec strict = ctx.capture(
                         [&] {
                           Tensor t = ctx.from_host(host, {kN});
                           Tensor fits = ctx.empty(f32, {kLarge + static_cast<int64_t>(mode)});
                           axpy(x, t, 1.0F);
                           on_thread([&] {
                             Worker w(engine);
                             Tensor own = w.array(7, kLarge);
                             w.kernel("add")(own, 1.0F);
                             EXPECT_TRUE(w.all(own, 8));
                           });
                           add(x, 1.0F);
                         },
                         {.mode = mode})
                      .instantiate();
    EXPECT_TRUE(all(x, 0));
    strict.launch(ctx, 2);
    EXPECT_TRUE(all(x, 12));
    if (!on_gpu()) continue;
    // A library that allocates from the driver as it goes is what the stricter modes find.
    const cuda::Host current;
    const auto found = ctx.try_capture(
        [&] {
          add(x, 1.0F);
          try {
            const cuda::ForeignMemory memory(kN);
          } catch (const std::runtime_error&) {
          }
          add(x, 1.0F);
        },
        {.mode = mode});
    EXPECT_EQ(found.has_value(), mode == CaptureMode::Relaxed);
    if (!found) {
      EXPECT_EQ(found.error().code(), "E0715");
    }
    EXPECT_TRUE(all(x, 12));
  }

  // Quiet: what cannot be recorded gives no graph; all else is an error still.
  const auto quietly = [&](const std::function<void()>& f) { return ctx.capture(f, {.quiet = true}); };
  const int64_t leases = x.leases();
  EXPECT_TRUE(quietly([&] { add(x, 1.0F); }));
  EXPECT_FALSE(quietly([&] {
    add(x, 1.0F);
    (void)values(x);
  }));
  EXPECT_FALSE(quietly([&] { ctx.synchronize(); }));
  Tensor other_shape = array(0, kN + 1);
  EXPECT_EQ(code_of([&] { (void)quietly([&] { axpy(x, other_shape, 1.0F); }); }), "E0303");
  EXPECT_THROW((void)quietly([] { throw std::domain_error("mine"); }), std::domain_error);
  EXPECT_FALSE(ctx.is_capturing());
  EXPECT_EQ(x.leases(), leases);
  EXPECT_TRUE(all(x, 12));

  documented_in_c();
}

}  // namespace
}  // namespace gk::contract_test
