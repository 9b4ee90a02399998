// Every elementwise op in every dtype on edge values, against the interpreter's definition.
#include <cmath>
#include <limits>

#include "codegen_kernels.h"
#include "compiler/interp/interp.h"
#include "compiler/ir/apply.h"
#include "compiler/ir/op_table.h"

namespace gk::codegen_test {
namespace {

constexpr DType kAll[] = {DType::Bool, DType::I8,  DType::I16, DType::I32,  DType::I64, DType::U8, DType::U16,
                          DType::U32,  DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64};

std::vector<Scalar> edges(DType t) {
  std::vector<Scalar> out;
  if (is_bool(t)) return {Scalar::of_bool(false), Scalar::of_bool(true)};
  if (is_float(t)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (const double v : {0.0,  0.5,  1.0,   1.5,  2.5,  3.0,   7.25,   100.0, 255.5,  65504.0,    3e9,
                           1e19, 3e38, 1e300, 1e-3, 6e-8, 1e-40, 5e-324, 0.1,   2049.0, 16777217.0, inf}) {
      out.push_back(Scalar::of_float(v, t));
      out.push_back(Scalar::of_float(-v, t));
    }
    out.push_back(Scalar::of_float(std::nan(""), t));
    return out;
  }
  for (const int64_t v : {0LL,
                          1LL,
                          2LL,
                          3LL,
                          7LL,
                          10LL,
                          31LL,
                          32LL,
                          63LL,
                          64LL,
                          100LL,
                          127LL,
                          128LL,
                          255LL,
                          32767LL,
                          65535LL,
                          2147483647LL,
                          2147483648LL,
                          4294967295LL,
                          0x4020000000000001LL,
                          std::numeric_limits<long long>::max()})
    for (const int64_t w : {v, -v, -v - 1}) out.push_back(Scalar::of_int(w, t));
  return out;
}

bool same(const Scalar& a, const Scalar& b) {
  if (a.dtype != b.dtype) return false;
  if (a.is_float() && std::isnan(a.f) && std::isnan(b.f)) return true;
  return a == b;
}

bool accepts(Op op, DType t) { return ir::in_class(ir::info(op).operands, t); }
bool exact(Op op) { return !ir::is_function(op); }
DType result_of(Op op, DType t) { return ir::gives_bool(op) ? DType::Bool : t; }

struct Column {
  std::vector<std::byte> bytes;
  DType t;
  Column(DType type, const std::vector<Scalar>& v) : bytes(v.size() * 8), t(type) {
    for (size_t i = 0; i < v.size(); ++i) v[i].store(bytes.data() + i * static_cast<size_t>(size_bytes(t)));
  }
  Column(DType type, size_t n) : bytes(n * 8), t(type) {}
  Scalar at(size_t i) const { return Scalar::load(t, bytes.data() + i * static_cast<size_t>(size_bytes(t))); }
};

std::vector<Op> ops_of(DType t, int arity) {
  std::vector<Op> out;
  for (int o = 0; o < static_cast<int>(Op::kCount); ++o) {
    const Op op = static_cast<Op>(o);
    if (!ir::is_elementwise(op) || ir::info(op).arity != arity || op == Op::Cast || !accepts(op, t)) continue;
    if (op == Op::PowInt) continue;  // its operands differ in dtype: CodegenMath has it
    if (op == Op::Atan2 || (op == Op::Pow && is_float(t)) || !exact(op)) continue;
    out.push_back(op);
  }
  return out;
}

/// One kernel that applies every op of this arity to every combination of edge values.
std::shared_ptr<ir::Kernel> all_ops(DType t, int arity) {
  KernelBuilder b;
  std::vector<int> in, args;
  for (int a = 0; a < arity; ++a) in.push_back(b.buffer(t, true, false));
  std::vector<int> out;
  for (const Op op : ops_of(t, arity)) out.push_back(b.buffer(result_of(op, t), false, true));
  b.axes({ir::KSize::dynamic(b.scalar(DType::I64))});
  for (const int p : in) args.push_back(b.load(p, {1}));
  size_t n = 0;
  for (const Op op : ops_of(t, arity)) b.store(out[n++], b.op(op, args, result_of(op, t)), {1});
  return b.take();
}

class CodegenOps : public testing::TestWithParam<DType> {};

void unary_and_binary(DType t, const std::string& cpu) {
  for (const int arity : {1, 2}) {
    const std::vector<Scalar> values = edges(t);
    std::vector<Scalar> x, y;
    for (const Scalar& v : values)
      for (const Scalar& w : values) {
        x.push_back(v);
        y.push_back(w);
        if (arity == 1) break;
      }
    const int64_t n = static_cast<int64_t>(x.size());
    Column cx(t, x), cy(t, y);
    std::vector<void*> buffers{cx.bytes.data()};
    if (arity == 2) buffers.push_back(cy.bytes.data());
    std::vector<Column> results;
    for (const Op op : ops_of(t, arity)) results.emplace_back(result_of(op, t), x.size());
    for (Column& c : results) buffers.push_back(c.bytes.data());
    HostRun run{cpu, {}, {}};
    run(all_ops(t, arity), {n}, {}, buffers, {Scalar::of_int(n)});
    size_t c = 0;
    for (const Op op : ops_of(t, arity)) {
      int shown = 0;
      for (size_t i = 0; i < x.size() && shown < 5; ++i) {
        const Scalar args[] = {x[i], y[i]};
        const Scalar want = ir::apply(op, std::span(args, static_cast<size_t>(arity)), result_of(op, t));
        const Scalar got = results[c].at(i);
        if (same(got, want)) continue;
        ++shown;
        ADD_FAILURE() << cpu << " " << ir::info(op).name << " " << name(t) << " (" << x[i].as_double() << ", "
                      << y[i].as_double() << ") gives " << got.as_double() << ", not " << want.as_double();
      }
      ++c;
    }
  }
}

TEST_P(CodegenOps, unary_and_binary_match_the_interpreter) {
  for (const std::string& cpu : host_cpus()) unary_and_binary(GetParam(), cpu);
}

void casts(DType t, const std::string& cpu) {
  KernelBuilder b;
  const int in = b.buffer(t, true, false);
  std::vector<int> out;
  for (const DType to : kAll) out.push_back(b.buffer(to, false, true));
  const std::vector<Scalar> x = edges(t);
  b.axes({ir::KSize::fixed(static_cast<int64_t>(x.size()))});
  const int v = b.load(in, {1});
  for (size_t i = 0; i < out.size(); ++i) b.store(out[i], b.cast(v, kAll[i]), {1});
  Column cx(t, x);
  std::vector<Column> results;
  for (const DType to : kAll) results.emplace_back(to, x.size());
  std::vector<void*> buffers{cx.bytes.data()};
  for (Column& c : results) buffers.push_back(c.bytes.data());
  HostRun run{cpu, {}, {}};
  run(b.take(), {static_cast<int64_t>(x.size())}, {}, buffers);
  for (size_t c = 0; c < results.size(); ++c)
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_TRUE(same(results[c].at(i), x[i].cast(kAll[c])))
          << cpu << " " << name(t) << " " << x[i].as_double() << " to " << name(kAll[c]) << " gives "
          << results[c].at(i).as_double() << ", not " << x[i].cast(kAll[c]).as_double();
}

TEST_P(CodegenOps, casts_match_the_language) {
  for (const std::string& cpu : host_cpus()) casts(GetParam(), cpu);
}

TEST_P(CodegenOps, ptx_of_every_op_assembles) {
  const DType t = GetParam();
  for (const int arity : {1, 2}) {
    auto k = all_ops(t, arity);
    if (k->params.size() < 3) continue;
    // What differs between architectures is float minima and 16-bit arithmetic.
    for (const int sm : {75, 90}) {
      const std::string ptx = ptx_of(k, {1 << 20}, {}, sm, {Scalar::of_int(1 << 20)});
      if (ptxas().empty()) continue;
      EXPECT_EQ(assemble(ptx, sm), "") << name(t);
    }
  }
  KernelBuilder b;
  const int in = b.buffer(t, true, false);
  std::vector<int> out;
  for (const DType to : kAll) out.push_back(b.buffer(to, false, true));
  b.axes({ir::KSize::dynamic(b.scalar(DType::I64))});
  const int v = b.load(in, {1});
  for (size_t i = 0; i < out.size(); ++i) b.store(out[i], b.cast(v, kAll[i]), {1});
  expect_assembles(b.take(), {1 << 20}, {}, {Scalar::of_int(1 << 20)});
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CodegenOps, testing::ValuesIn(kAll),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(CodegenRandom, draws_match_the_interpreter) {
  for (const DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    KernelBuilder b;
    const int u = b.buffer(t, false, true), n = b.buffer(t, false, true), seed = b.scalar(DType::U64);
    b.axes({ir::KSize::fixed(1000)});
    const int s = b.param(seed), p = b.cast(b.axis(0), DType::U64);
    b.store(u, b.inst(KKind::RngUniform, t, {s, p}).result, {1});
    b.store(n, b.inst(KKind::RngNormal, t, {s, p}).result, {1});
    auto k = b.take();
    Column cu(t, 1000), cn(t, 1000);
    HostRun run;
    run(k, {1000}, {}, {cu.bytes.data(), cn.bytes.data()}, {Scalar::of_int(42, DType::U64)});
    for (size_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(cu.at(i).f, interp::rng_uniform(42, i, t)) << i;
      ASSERT_EQ(cn.at(i).f, interp::rng_normal(42, i, t)) << i;
    }
    expect_assembles(k, {1000}, {}, {Scalar::of_int(42, DType::U64)});
  }
}

TEST(CodegenFaults, division_by_zero_is_a_fault_and_gives_0) {
  KernelBuilder b;
  const int z = b.buffer(DType::I32, false, true), x = b.buffer(DType::I32, true, false);
  b.axes({ir::KSize::fixed(4)});
  const int hundred = b.constant(Scalar::of_int(100, DType::I32));
  b.store(z, b.op(Op::FloorDiv, {hundred, b.load(x, {1})}, DType::I32), {1});
  int32_t xs[] = {3, -3, 0, 7}, zs[4];
  HostRun run;
  run(b.take(), {4}, {}, {zs, xs});
  EXPECT_EQ(zs[0], 33);
  EXPECT_EQ(zs[1], -34);
  EXPECT_EQ(zs[2], 0);
  EXPECT_EQ(zs[3], 14);
  EXPECT_EQ(run.fault.state, 2u);
  EXPECT_EQ(run.fault.site, 0u);
  EXPECT_EQ(run.fault.step, 7);
}

}  // namespace
}  // namespace gk::codegen_test
