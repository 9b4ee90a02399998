// User kernels: loops, break and continue, bounds and the fault record, atomics from several threads.
#include <thread>

#include "codegen_kernels.h"

namespace gk::codegen_test {
namespace {

using ir::KSize;

/// Collatz steps of x[i], at most 1000: while, if, break; then a for with continue that adds odd numbers
/// below 10.
std::shared_ptr<ir::Kernel> loops() {
  KernelBuilder b(ir::Kernel::Kind::User);
  const int n = b.scalar(DType::I64);
  const int x = b.buffer(DType::I64, true, false, {KSize::dynamic(n)});
  const int z = b.buffer(DType::I64, false, true, {KSize::dynamic(n)});
  const int v = b.local(DType::I64), steps = b.local(DType::I64), j = b.local(DType::I64);
  b.axes({KSize::dynamic(n)});
  const int i = b.axis(0);
  b.set(v, b.load_at(x, {i}));
  b.set(steps, b.i64(0));
  b.while_(
      [&] {
        return b.op(Op::Ne, {b.get(v), b.i64(1)}, DType::Bool);
      },
      [&] {
        b.if_(b.op(Op::Ge, {b.get(steps), b.i64(1000)}, DType::Bool), [&] { b.leave(KKind::Break); });
        const int odd = b.op(Op::And, {b.get(v), b.i64(1)}, DType::I64);
        b.if_(
            b.op(Op::Eq, {odd, b.i64(1)}, DType::Bool),
            [&] {
              const int triple = b.op(Op::Mul, {b.get(v), b.i64(3)}, DType::I64);
              b.set(v, b.op(Op::Add, {triple, b.i64(1)}, DType::I64));
            },
            [&] {
              b.set(v, b.op(Op::Shr, {b.get(v), b.i64(1)}, DType::I64));
            });
        b.set(steps, b.op(Op::Add, {b.get(steps), b.i64(1)}, DType::I64));
      });
  b.for_(j, b.i64(9), b.i64(-1), b.i64(-1), [&] {
    const int odd = b.op(Op::And, {b.get(j), b.i64(1)}, DType::I64);
    b.if_(b.op(Op::Eq, {odd, b.i64(0)}, DType::Bool), [&] { b.leave(KKind::Continue); });
    b.set(steps, b.op(Op::Add, {b.get(steps), b.get(j)}, DType::I64));
  });
  b.store_at(z, {i}, b.get(steps));
  return b.take();
}

TEST(CodegenUser, while_for_break_and_continue) {
  std::vector<int64_t> x{1, 2, 3, 27, 97}, z(5);
  HostRun run;
  run(loops(), {5}, {}, {x.data(), z.data()}, {Scalar::of_int(5)});
  EXPECT_EQ(z, (std::vector<int64_t>{25, 26, 32, 136, 143}));
  EXPECT_EQ(run.fault.state, 0u);
  expect_assembles(loops(), {5}, {}, {Scalar::of_int(5)});
}

/// z[i, j + shift] = x[i + shift, j] over a 4 x 6 space.
std::shared_ptr<ir::Kernel> shifted() {
  KernelBuilder b(ir::Kernel::Kind::User);
  const int shift = b.scalar(DType::I64);
  const int x = b.buffer(DType::F32, true, false, {KSize::fixed(4), KSize::fixed(6)});
  const int z = b.buffer(DType::F32, false, true, {KSize::fixed(4), KSize::fixed(6)});
  b.axes({KSize::fixed(4), KSize::fixed(6)});
  const int i = b.axis(0), j = b.axis(1), s = b.param(shift);
  const int v = b.load_at(x, {b.op(Op::Add, {i, s}, DType::I64), j});
  b.store_at(z, {i, b.op(Op::Add, {j, s}, DType::I64)}, v);
  return b.take();
}

TEST(CodegenUser, bad_loads_give_0_bad_stores_do_nothing_and_the_first_fault_stays) {
  std::vector<float> x(24, 5), z(24, -1);
  HostRun run;
  run(shifted(), {4, 6}, {}, {x.data(), z.data()}, {Scalar::of_int(1)});
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 6; ++j) EXPECT_EQ(z[i * 6 + j], j == 0 ? -1 : i == 3 ? 0 : 5) << i << j;
  EXPECT_EQ(run.fault.state, 2u);
  EXPECT_EQ(run.fault.site, 1u);  // row 0, column 5: the store
  EXPECT_EQ(run.fault.axis, 1);
  EXPECT_EQ(run.fault.index, 6);
  EXPECT_EQ(run.fault.extent, 6);
  HostRun negative;
  negative(shifted(), {4, 6}, {}, {x.data(), z.data()}, {Scalar::of_int(-1)});
  EXPECT_EQ(negative.fault.site, 0u);
  EXPECT_EQ(negative.fault.axis, 0);
  EXPECT_EQ(negative.fault.index, -1);
  EXPECT_EQ(negative.fault.extent, 4);
  expect_assembles(shifted(), {4, 6}, {}, {Scalar::of_int(1)});
}

/// atomic op of f(i) on z[0].
std::shared_ptr<ir::Kernel> atomics(ir::AtomicOp op, DType t) {
  KernelBuilder b(ir::Kernel::Kind::User);
  const int z = b.buffer(t, true, true, {KSize::fixed(1)}), n = b.scalar(DType::I64);
  b.axes({KSize::dynamic(n)});
  b.atomic(op, z, {b.i64(0)}, b.cast(b.op(Op::And, {b.axis(0), b.i64(63)}, DType::I64), t));
  return b.take();
}

TEST(CodegenUser, atomics_of_several_threads_lose_nothing) {
  using ir::AtomicOp;
  auto compile = [&](AtomicOp op, DType t) {
    auto p = host_compiler().build(
        schedule_of(atomics(op, t), {64000}, {}, program::TargetKind::Host, {Scalar::of_int(64000)}));
    EXPECT_TRUE(p.has_value());
    return *p;
  };
  auto run = [&](AtomicOp op, DType t, void* cell) {
    auto p = compile(op, t);
    auto image = codegen::HostImage::load(*p->codes[0]);
    auto entry = (*image)->find(p->steps[0].function);
    int64_t n = 64000, step = 0;
    program::FaultRecord fault;
    void* record = &fault;
    void* params[] = {&cell, &n, &record, &step};
    std::vector<std::thread> threads;
    for (int64_t part = 0; part < 4; ++part)
      threads.emplace_back([&, part] { entry(params, part * 16000, (part + 1) * 16000); });
    for (auto& t : threads) t.join();
  };
  int64_t i = 0;
  run(AtomicOp::Add, DType::I64, &i);
  EXPECT_EQ(i, 1000 * 63 * 32);
  double d = 0;
  run(AtomicOp::Add, DType::F64, &d);
  EXPECT_EQ(d, 1000 * 63 * 32);
  float f = 0;
  run(AtomicOp::Max, DType::F32, &f);
  EXPECT_EQ(f, 63);
  uint8_t u = 200;
  run(AtomicOp::Min, DType::U8, &u);
  EXPECT_EQ(u, 0);
  int32_t o = 64;
  run(AtomicOp::Or, DType::I32, &o);
  EXPECT_EQ(o, 127);
}

TEST(CodegenUser, ptx_of_every_atomic_assembles) {
  using ir::AtomicOp;
  for (const DType t : {DType::Bool, DType::I8, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64,
                        DType::F16, DType::BF16, DType::F32, DType::F64})
    for (const AtomicOp op : {AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or,
                              AtomicOp::Xor, AtomicOp::Exchange}) {
      const bool bits = op == AtomicOp::And || op == AtomicOp::Or || op == AtomicOp::Xor;
      if (bits && is_float(t)) continue;
      auto k = atomics(op, t);
      for (const int sm : {75, 90}) {
        const std::string ptx = ptx_of(k, {1000}, {}, sm, {Scalar::of_int(1000)});
        if (ptxas().empty()) continue;
        EXPECT_EQ(assemble(ptx, sm), "") << name(t) << " " << static_cast<int>(op);
      }
    }
}

TEST(CodegenMapIndex, strides_offsets_and_broadcasts) {
  // z[i, j] = x[3 - i, 2 j + 1] + y[j], x is 4 x 9.
  KernelBuilder b;
  const int z = b.buffer(DType::F32, false, true), x = b.buffer(DType::F32, true, false),
            y = b.buffer(DType::F32, true, false);
  b.axes({KSize::fixed(4), KSize::fixed(4)});
  const int v = b.op(Op::Add, {b.load(x, {-9, 2}, 3 * 9 + 1), b.load(y, {0, 1})}, DType::F32);
  b.store(z, v, {4, 1});
  auto k = b.take();
  std::vector<float> xs(36), ys{100, 200, 300, 400}, zs(16);
  for (int i = 0; i < 36; ++i) xs[i] = static_cast<float>(i);
  for (const int64_t grain : {1, 3, 100}) {
    HostRun run;
    run(k, {4, 4}, {}, {zs.data(), xs.data(), ys.data()}, {}, grain);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) ASSERT_EQ(zs[i * 4 + j], xs[(3 - i) * 9 + 2 * j + 1] + ys[j]);
  }
  expect_assembles(k, {4, 4}, {});
}

TEST(CodegenMapIndex, gather_gives_0_and_a_fault_outside) {
  KernelBuilder b;
  const int z = b.buffer(DType::F32, false, true), x = b.buffer(DType::F32, true, false),
            at = b.buffer(DType::I64, true, false);
  b.axes({KSize::fixed(4)});
  const int i = b.load(at, {1});
  KInst& g = b.inst(KKind::Gather, DType::F32, {i});
  g.access = b.access(x, {0});
  g.size = KSize::fixed(5);
  g.stride = KSize::fixed(1);
  b.store(z, g.result, {1});
  auto k = b.take();
  float xs[] = {1, 2, 3, 4, 5}, zs[4];
  int64_t ats[] = {4, 0, 5, -1};
  HostRun run;
  run(k, {4}, {}, {zs, xs, ats});
  EXPECT_EQ(zs[0], 5);
  EXPECT_EQ(zs[1], 1);
  EXPECT_EQ(zs[2], 0);
  EXPECT_EQ(zs[3], 0);
  EXPECT_EQ(run.fault.state, 2u);
  EXPECT_EQ(run.fault.index, 5);
  EXPECT_EQ(run.fault.extent, 5);
  expect_assembles(k, {4}, {});
}

}  // namespace
}  // namespace gk::codegen_test
