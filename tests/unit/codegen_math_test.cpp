// The host's transcendental functions: f32 within 0.51 ulp or 1 ulp of long double, special values, and the
// same bits wherever an element lies. GK_ULPS=1 prints the largest error of each.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "codegen_kernels.h"
#include "compiler/ir/apply.h"

namespace gk::codegen_test {
namespace {

using Long = long double;

struct Function {
  Op op;
  Long (*exact)(Long);
};
const Function kFunctions[] = {
    {Op::Exp, [](Long x) { return std::exp(x); }},     {Op::Exp2, [](Long x) { return std::exp2(x); }},
    {Op::Expm1, [](Long x) { return std::expm1(x); }}, {Op::Log, [](Long x) { return std::log(x); }},
    {Op::Log2, [](Long x) { return std::log2(x); }},   {Op::Log10, [](Long x) { return std::log10(x); }},
    {Op::Log1p, [](Long x) { return std::log1p(x); }}, {Op::Sin, [](Long x) { return std::sin(x); }},
    {Op::Cos, [](Long x) { return std::cos(x); }},     {Op::Tan, [](Long x) { return std::tan(x); }},
    {Op::Asin, [](Long x) { return std::asin(x); }},   {Op::Acos, [](Long x) { return std::acos(x); }},
    {Op::Atan, [](Long x) { return std::atan(x); }},   {Op::Sinh, [](Long x) { return std::sinh(x); }},
    {Op::Cosh, [](Long x) { return std::cosh(x); }},   {Op::Tanh, [](Long x) { return std::tanh(x); }},
    {Op::Asinh, [](Long x) { return std::asinh(x); }}, {Op::Acosh, [](Long x) { return std::acosh(x); }},
    {Op::Atanh, [](Long x) { return std::atanh(x); }}, {Op::Cbrt, [](Long x) { return std::cbrt(x); }},
    {Op::Erf, [](Long x) { return std::erf(x); }},
};

/// Those made of f64 arithmetic round once.
double bound(Op op) {
  switch (op) {
    case Op::Exp:
    case Op::Sin:
    case Op::Cos:
    case Op::Erf: return 0.51;
    default: return 1;
  }
}

/// Distance in units of the last place of the f32 nearest to `want`.
double ulps(float got, Long want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  const float nearest = static_cast<float>(want);
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest ? 0 : 1e9;
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : 1e9;
  int exponent;
  std::frexp(nearest, &exponent);
  const Long unit = std::ldexp(Long{1}, std::max(exponent - 24, -149));
  return static_cast<double>(std::fabs((Long{got} - want) / unit));
}

std::vector<float> samples() {
  std::vector<float> x;
  const float inf = std::numeric_limits<float>::infinity();
  for (const float v : {0.0f,
                        1.0f,
                        0.5f,
                        2.0f,
                        1.5707964f,
                        3.1415927f,
                        1e-45f,
                        1e-38f,
                        3.4028235e38f,
                        88.72284f,
                        89.0f,
                        104.0f,
                        0.9999999f,
                        1.0000001f,
                        4.0f,
                        3.92f,
                        1e-10f,
                        2.7182817f,
                        10.0f,
                        1000.0f,
                        1e10f,
                        2.6843546e8f,
                        16367173.0f * 0x1p72f,
                        inf}) {
    x.push_back(v);
    x.push_back(-v);
  }
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  std::mt19937 random(1);
  std::uniform_real_distribution<float> unit(-1, 1), small(-10, 10), large(-100, 100);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    x.push_back(unit(random));
    x.push_back(small(random));
    x.push_back(large(random));
    x.push_back(1 + unit(random) * 0.01f);
    x.push_back(std::exp2(large(random) / 10));
    x.push_back(0.5f + unit(random) * 0.01f);
    x.push_back(std::exp2(20 * unit(random) - 20) * (i % 2 == 0 ? 1 : -1));
  }
  // Where a series ends and the exponent changes: around sqrt(2) and its powers, and multiples of pi/2.
  for (int i = -1000; i < 1000; ++i)
    for (const float v : {0.70710677f, 1.4142135f, 2.828427f, 1.5707964f, 3.1415927f, 0.34657359f,
                          0.35355338f, 1.0606601f, 0.171573f, 0.5f, 0.41421357f})
      x.push_back(v * (1 + static_cast<float>(i) * 0x1p-23f));
  for (int i = 1; i < 300; ++i) {
    const auto v = static_cast<float>(i);
    x.insert(x.end(), {v, -v, v * v * v, 1 / v, std::exp2(v - 150), std::exp2(150 - v), v * 1.5707964f});
  }
  return x;
}

void f32_functions(const std::string& cpu) {
  const std::vector<float> x = samples();
  const auto n = static_cast<int64_t>(x.size());
  KernelBuilder b;
  const int in = b.buffer(DType::F32, true, false);
  std::vector<int> out;
  for (size_t f = 0; f < std::size(kFunctions); ++f) out.push_back(b.buffer(DType::F32, false, true));
  b.axes({ir::KSize::fixed(n)});
  const int v = b.load(in, {1});
  for (size_t f = 0; f < std::size(kFunctions); ++f)
    b.store(out[f], b.op(kFunctions[f].op, {v}, DType::F32), {1});
  std::vector<std::vector<float>> got(std::size(kFunctions), std::vector<float>(x.size()));
  std::vector<void*> buffers{const_cast<float*>(x.data())};
  for (auto& g : got) buffers.push_back(g.data());
  auto k = b.take();
  HostRun run{cpu, {}, {}};
  run(k, {n}, {}, buffers);
  for (size_t f = 0; f < std::size(kFunctions); ++f) {
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double u = ulps(got[f][i], kFunctions[f].exact(Long{x[i]}));
      if (u > worst) worst = u, where = x[i];
    }
    EXPECT_LE(worst, bound(kFunctions[f].op))
        << cpu << " " << ir::info(kFunctions[f].op).name << " at " << where;
    if (std::getenv("GK_ULPS"))
      std::printf("%s %s %.3f at %.9g\n", cpu.c_str(), std::string(ir::info(kFunctions[f].op).name).c_str(),
                  worst, where);
  }
  // One element at a time: no vectors, the same bits.
  std::vector<std::vector<float>> alone(std::size(kFunctions), std::vector<float>(x.size()));
  std::vector<void*> again{const_cast<float*>(x.data())};
  for (auto& g : alone) again.push_back(g.data());
  run(k, {n}, {}, again, {}, 1);
  for (size_t f = 0; f < std::size(kFunctions); ++f)
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(got[f][i])) continue;
      ASSERT_EQ(got[f][i], alone[f][i]) << ir::info(kFunctions[f].op).name << " " << x[i];
    }
}

TEST(CodegenMath, f32_functions_are_within_1_ulp) {
  for (const std::string& cpu : host_cpus()) f32_functions(cpu);
}

void pow_and_atan2(const std::string& cpu) {
  std::vector<float> x, y;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {0.0f,  -0.0f,  1.0f,    -1.0f, 0.5f,   -0.5f,       2.0f,
                           -2.0f, 3.0f,   -3.0f,   2.5f,  -2.5f,  inf,         -inf,
                           nan,   1e-45f, -1e-45f, 3e38f, -3e38f, 16777215.0f, 16777216.0f};
  for (const float v : special)
    for (const float w : special) x.push_back(v), y.push_back(w);
  std::mt19937 random(2);
  std::uniform_real_distribution<float> base(0, 20), exponent(-30, 30);
  for (int i = 0; i < 50000; ++i) {
    x.push_back(base(random));
    y.push_back(exponent(random));
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    y.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  }
  const auto n = static_cast<int64_t>(x.size());
  KernelBuilder b;
  const int px = b.buffer(DType::F32, true, false), py = b.buffer(DType::F32, true, false),
            pow = b.buffer(DType::F32, false, true), angle = b.buffer(DType::F32, false, true);
  b.axes({ir::KSize::fixed(n)});
  const int vx = b.load(px, {1}), vy = b.load(py, {1});
  b.store(pow, b.op(Op::Pow, {vx, vy}, DType::F32), {1});
  b.store(angle, b.op(Op::Atan2, {vx, vy}, DType::F32), {1});
  std::vector<float> p(x.size()), a(x.size());
  HostRun run{cpu, {}, {}};
  run(b.take(), {n}, {}, {x.data(), y.data(), p.data(), a.data()});
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(ulps(p[i], std::pow(Long{x[i]}, Long{y[i]})), 0.51) << x[i] << " ** " << y[i] << " = " << p[i];
    ASSERT_LE(ulps(a[i], std::atan2(Long{x[i]}, Long{y[i]})), 0.51)
        << x[i] << " atan2 " << y[i] << " = " << a[i];
  }
}

TEST(CodegenMath, pow_and_atan2_are_within_0_51_ulp) {
  for (const std::string& cpu : host_cpus()) pow_and_atan2(cpu);
}

void other_functions(const std::string& cpu) {
  for (const DType t : {DType::F64, DType::F16, DType::BF16}) {
    KernelBuilder b;
    const int in = b.buffer(t, true, false);
    std::vector<int> out;
    for (size_t f = 0; f < std::size(kFunctions); ++f) out.push_back(b.buffer(t, false, true));
    std::vector<Scalar> x;
    for (const double v : {0.0, -0.0, 0.1, 0.5, -0.5, 1.0, -1.0, 2.0, 5.5, -7.0, 100.0, -1000.0, 1e300})
      x.push_back(Scalar::of_float(v, t));
    const auto n = static_cast<int64_t>(x.size());
    const auto size = static_cast<size_t>(size_bytes(t));
    b.axes({ir::KSize::fixed(n)});
    const int v = b.load(in, {1});
    for (size_t f = 0; f < std::size(kFunctions); ++f) b.store(out[f], b.op(kFunctions[f].op, {v}, t), {1});
    std::vector<std::byte> bytes(x.size() * size);
    for (size_t i = 0; i < x.size(); ++i) x[i].store(bytes.data() + i * size);
    std::vector<std::vector<std::byte>> got(std::size(kFunctions), std::vector<std::byte>(bytes.size()));
    std::vector<void*> buffers{bytes.data()};
    for (auto& g : got) buffers.push_back(g.data());
    HostRun run{cpu, {}, {}};
    auto k = b.take();
    run(k, {n}, {}, buffers);
    for (size_t f = 0; f < std::size(kFunctions); ++f)
      for (size_t i = 0; i < x.size(); ++i) {
        const Scalar args[] = {x[i]};
        const double want = ir::apply(kFunctions[f].op, args, t).f;
        const double g = Scalar::load(t, got[f].data() + i * size).f;
        const double unit = t == DType::F64 ? 1e-15 : t == DType::F16 ? 1e-3 : 8e-3;
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(g));
        } else if (std::isinf(want) || want == 0) {
          EXPECT_EQ(g, want) << ir::info(kFunctions[f].op).name << " " << x[i].f;
        } else {
          EXPECT_NEAR(g, want, unit * std::fabs(want)) << ir::info(kFunctions[f].op).name << " " << x[i].f;
        }
      }
    expect_assembles(k, {n}, {});
  }
}

TEST(CodegenMath, f64_functions_and_half_functions_match_the_interpreter) {
  for (const std::string& cpu : host_cpus()) other_functions(cpu);
}

TEST(CodegenMath, ptx_of_f32_functions_assembles) {
  KernelBuilder b;
  const int in = b.buffer(DType::F32, true, true), other = b.buffer(DType::F32, true, false);
  b.axes({ir::KSize::fixed(1000)});
  int v = b.load(in, {1});
  for (const Function& f : kFunctions) v = b.op(f.op, {v}, DType::F32);
  v = b.op(Op::Pow, {v, b.load(other, {1})}, DType::F32);
  v = b.op(Op::Atan2, {v, b.load(other, {1})}, DType::F32);
  v = b.op(Op::Mod, {v, b.load(other, {1})}, DType::F32);
  b.store(in, v, {1});
  auto k = b.take();
  expect_assembles(k, {1000}, {});
  // libdevice's own approximations say .ftz where it has scaled their operands; arithmetic never does.
  const std::string ptx = ptx_of(k, {1000}, {});
  for (size_t at = ptx.find(".ftz"); at != std::string::npos; at = ptx.find(".ftz", at + 1))
    EXPECT_NE(ptx.rfind(".approx", at), std::string::npos);
  for (const char* bad :
       {"add.rn.ftz", "sub.rn.ftz", "mul.rn.ftz", "fma.rn.ftz", "div.rn.ftz", "sqrt.rn.ftz"})
    EXPECT_EQ(ptx.find(bad), std::string::npos) << bad;
}

}  // namespace
}  // namespace gk::codegen_test
