// Rows on memory: what graphs keep alive, and what becomes of it.
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>

#include "tests/contract/contract.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"
#include "tests/contract/probe.h"

namespace gk::contract_test {

CONTRACT_ROW(07J, "a freed input survives in the executable: old contents right, new owners untouched") {
  int64_t settled = 0;
  for (const int round : {0, 1, 2, 3}) {
    SCOPED_TRACE(round);
    {
      Tensor x = array(3), y = array(0);
      const void* const address = x.data();
      Graph g = ctx.capture([&] { axpy(y, x, 1); });
      Exec e = g.instantiate();
      if (round % 2 == 0) {
        x.free();
        EXPECT_TRUE(x.is_freed());
        EXPECT_EQ(x.data(), nullptr);
        x.free();  // no more than once
        EXPECT_EQ(code_of([&] { add(x, 1); }), "E0716");
      } else {
        x = Tensor();
      }
      if (round >= 2) g.close();  // the executable alone
      engine.reclaim();
      const std::vector<Tensor> fresh = churn(8, 100);
      for (const Tensor& t : fresh) EXPECT_NE(t.data(), address);
      e.launch(ctx);
      e.launch(ctx);
      EXPECT_TRUE(all(y, 6));
      for (const Tensor& t : fresh) EXPECT_TRUE(all(t, 100));
    }
    const int64_t now = settled_bytes();
    EXPECT_EQ(now, round == 0 ? now : settled) << "the memory was not given back";
    settled = now;
  }
  EXPECT_EQ(engine.stats().leases, 0);
}

CONTRACT_ROW(08J,
             "views and wrapped foreign memory survive; the deleter runs once, after the last executable") {
  std::vector<float> rows(3 * kN);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / kN);
  Tensor base = ctx.from_host(rows, {3, kN}), y = array(0);
  Tensor view = base.rows(1, 1).reshape({kN}), rest = base.rows(2, 1).reshape({kN});
  Exec of_view = ctx.capture([&] { axpy(y, view, 1); }).instantiate();
  base.free();
  EXPECT_TRUE(view.is_freed() && rest.is_freed());
  base = view = rest = Tensor();
  engine.reclaim();
  std::vector<Tensor> fresh = churn(4, 100, 3 * kN);
  of_view.launch(ctx, 2);
  EXPECT_TRUE(all(y, 2));
  for (const Tensor& t : fresh) EXPECT_TRUE(all(t, 100));

  std::optional<cuda::Host> host;  // for memory of its own
  if (on_gpu()) host.emplace();
  auto memory = std::make_shared<cuda::ForeignMemory>(kN);
  memory->write(std::vector<float>(kN, 5));
  const std::weak_ptr<cuda::ForeignMemory> alive = memory;
  void* const at = memory->get();
  auto gone = std::make_shared<std::atomic<int>>(0);
  Tensor w =
      Tensor::wrap(ctx, at, f32, {kN}, {.keepalive = std::move(memory), .deleter = [gone] { ++*gone; }});
  Graph g = ctx.capture([&] { axpy(y, w, 1); });
  Exec first = g.instantiate(), second = g.instantiate();
  const auto held = [&] {
    engine.reclaim();
    return *gone == 0 && !alive.expired();
  };
  w.free();
  w = Tensor();
  EXPECT_TRUE(held());
  g = Graph();
  EXPECT_TRUE(held());
  first.close();
  EXPECT_TRUE(held());
  second.launch(ctx);
  ctx.synchronize();
  {
    Gate gate(ctx);
    second.launch(ctx);
    second = Exec();
    ctx.empty(f32, {kN});
    EXPECT_EQ(*gone, 0) << "a launch that uses it is in flight";
    EXPECT_FALSE(alive.expired());
    EXPECT_FALSE(gate.was_forced());
    give_wrong_orders_time();
    gate.open();
    EXPECT_TRUE(all(y, 12));
  }
  engine.reclaim();
  EXPECT_EQ(*gone, 1);
  EXPECT_TRUE(alive.expired());
  engine.reclaim();
  EXPECT_EQ(*gone, 1);
}

CONTRACT_ROW(09J, "a temporary is stable: 10 launches overwrite it, memory stays the same") {
  const auto plus = lib.fn<Tensor(Tensor, float)>("plus");
  const auto twice = lib.fn<Tensor(Tensor)>("twice");
  Tensor x = array(0), y;
  Exec e = ctx.capture([&] { y = twice(plus(x, 1)); }).instantiate();
  const void* const address = y.data();
  e.launch(ctx);
  ctx.synchronize();
  const EngineStats before = engine.stats();
  const probe::Alive alive = probe::alive(engine);
  probe::clear_calls(engine);
  for (int i = 1; i <= 10; ++i) {
    add(x, 1);
    e.launch(ctx);
    EXPECT_TRUE(all(y, 2 * (static_cast<float>(i) + 1)));
  }
  EXPECT_EQ(y.data(), address);
  EXPECT_EQ(engine.stats().in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(engine.stats().cached_bytes, before.cached_bytes);
  EXPECT_EQ(probe::calls(engine, "allocate"), 0);
  EXPECT_EQ(probe::alive(engine).allocations, alive.allocations);
}

CONTRACT_ROW(10J, "a buffer allocated in a capture is usable at once by others, before any launch") {
  Tensor x = array(1), made, result;
  const auto plus = lib.fn<Tensor(Tensor, float)>("plus");
  const auto others_use = [&](const Tensor& t, float v) {
    on_thread([&] {
      Worker w(engine);
      w.kernel("fill")(t, v);
      EXPECT_TRUE(w.all(t, v));
    });
  };
  Graph g = ctx.capture([&] {
    made = ctx.empty(f32, {kN});
    result = plus(x, 1);
    fill(made, 5);
    others_use(made, 7);
    others_use(result, 8);
  });
  others_use(made, 9);
  EXPECT_TRUE(all(made, 9));
  EXPECT_TRUE(all(result, 8));
  Exec e = g.instantiate();
  e.launch(ctx);
  EXPECT_TRUE(all(made, 5));
  EXPECT_TRUE(all(result, 2));
  others_use(made, 11);
  e.launch(ctx);
  EXPECT_TRUE(all(made, 5));
}

CONTRACT_ROW(
    11J,
    "garbage freed during a capture: {device, pinned, host} x {same, other stream} x {same, other thread}") {
  enum class Kind { Device, Pinned, Foreign };
  Worker other(engine);
  Tensor y = array(0);
  std::optional<cuda::Host> host;  // for memory of its own
  if (on_gpu()) host.emplace();
  warm();
  for (int round = 0; round < 2; ++round) {
    for (const Kind kind : {Kind::Device, Kind::Pinned, Kind::Foreign}) {
      for (const bool other_stream : {false, true}) {
        for (const bool other_thread : {false, true}) {
          SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(kind) << " other stream "
                                            << other_stream << " other thread " << other_thread);
          Worker& user = other_stream ? other : main;
          auto gone = std::make_shared<std::atomic<int>>(0);
          cuda::ForeignMemory memory(kN);
          const int64_t before = settled_bytes();
          Tensor t;
          if (kind == Kind::Foreign) {
            t = Tensor::wrap(user.ctx, memory.get(), f32, {kN}, {.deleter = [gone] { ++*gone; }});
          } else {
            t = user.ctx.empty(f32, {kN}, kind == Kind::Pinned ? MemoryPlace::Pinned : MemoryPlace::Device);
          }
          Tensor copy = user.array(0);
          fill(y, 0);
          user.kernel("fill")(t, 4.0F);
          user.ctx.synchronize();
          ctx.synchronize();
          {
            Gate gate(user.ctx);
            user.kernel("add")(t, 1.0F);
            user.kernel("copy_to")(copy, t);
            Graph g = ctx.capture([&] {
              add(y, 1);
              if (other_thread) {
                on_thread([&] { t = Tensor(); });
              } else {
                t.free();
              }
              // Whoever gets its memory meanwhile comes after the work in flight.
              Tensor next = other.array(100);
              add(y, 2);
            });
            EXPECT_EQ(*gone, 0) << "work that uses it is in flight";
            EXPECT_FALSE(gate.was_forced()) << "a release waited for the device";
            give_wrong_orders_time();
            gate.open();
            EXPECT_TRUE(user.all(copy, 5));
            EXPECT_EQ(g.num_nodes(), 2);
            g.instantiate().launch(ctx);
            EXPECT_TRUE(all(y, 3));
          }
          t = copy = Tensor();
          other.ctx.synchronize();
          EXPECT_EQ(settled_bytes(), before);
          EXPECT_EQ(*gone, kind == Kind::Foreign ? 1 : 0);
        }
      }
    }
  }
}

CONTRACT_ROW(17J, "an upload is a snapshot: the source changes afterwards, the old values are replayed") {
  auto source = std::make_unique<std::vector<float>>(kN);
  std::iota(source->begin(), source->end(), 0.0F);
  const std::vector<float> snapshot = *source;
  Tensor x = array(0), y, z = array(0);
  Graph g = ctx.capture([&] {
    x.copy_from(ctx, source->data(), x.size_bytes());
    y = ctx.from_host(*source, {kN});
    std::fill(source->begin(), source->end(), 50.0F);
    z.copy_from(ctx, source->data(), z.size_bytes());  // one more, of other contents
    add(x, 1);
  });
  source.reset();
  Exec e = g.instantiate();
  g.close();
  // Whatever staging memory was used for it must not be used for something else.
  const std::vector<float> noise(kN, -7);
  for (int i = 0; i < 20; ++i) {
    Tensor t = ctx.from_host(noise, {kN}), p = ctx.empty(f32, {kN}, MemoryPlace::Pinned);
    p.copy_from(ctx, noise.data(), p.size_bytes());
    ctx.capture([&] { t.copy_from(ctx, noise.data(), t.size_bytes()); });
  }
  for (int i = 0; i < 3; ++i) {
    fill(x, -1);
    fill(y, -1);
    fill(z, -1);
    e.launch(ctx);
    std::vector<float> expected = snapshot;
    EXPECT_EQ(values(y), expected);
    for (float& v : expected) v += 1;
    EXPECT_EQ(values(x), expected);
    EXPECT_TRUE(all(z, 50));
  }
}

CONTRACT_ROW(18J, "pinned arrays are live, in both directions") {
  Tensor in = ctx.empty(f32, {kN}, MemoryPlace::Pinned), out = ctx.empty(f32, {kN}, MemoryPlace::Pinned);
  Tensor x = array(0);
  auto* const written = static_cast<float*>(in.host_data());
  auto* const read = static_cast<float*>(out.host_data());
  ASSERT_TRUE(written != nullptr && read != nullptr);
  std::fill(written, written + kN, 0.0F);
  Exec e = ctx.capture([&] {
                x.copy_from(ctx, in);
                add(x, 1);
                out.copy_from(ctx, x);
                axpy(x, in, 1);  // and a kernel reads it where it lies
              })
               .instantiate();
  for (int i = 0; i < 3; ++i) {
    const float v = 10.0F * static_cast<float>(i);
    std::fill(written, written + kN, v);
    e.launch(ctx);
    ctx.synchronize();
    for (const int64_t k : {int64_t{0}, kN / 2, kN - 1}) EXPECT_EQ(read[k], v + 1);
    EXPECT_TRUE(all(x, 2 * v + 1));
    // The executable alone keeps both.
    if (i == 1) in = out = Tensor();
    Tensor churned = ctx.empty(f32, {kN}, MemoryPlace::Pinned);
    std::fill_n(static_cast<float*>(churned.host_data()), kN, -1.0F);
  }
}

}  // namespace gk::contract_test
