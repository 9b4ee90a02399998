// The host's own f64 functions: within 1 ulp of long double, libm's special values, and the same bits in
// vectors of any width, in remainders and alone. GK_ULPS=1 prints the largest error of each.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "codegen_kernels.h"

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
    {Op::Atan, [](Long x) { return std::atan(x); }},   {Op::Sinh, [](Long x) { return std::sinh(x); }},
    {Op::Cosh, [](Long x) { return std::cosh(x); }},   {Op::Tanh, [](Long x) { return std::tanh(x); }},
    {Op::Asin, [](Long x) { return std::asin(x); }},   {Op::Acos, [](Long x) { return std::acos(x); }},
    {Op::Asinh, [](Long x) { return std::asinh(x); }}, {Op::Acosh, [](Long x) { return std::acosh(x); }},
    {Op::Atanh, [](Long x) { return std::atanh(x); }}, {Op::Cbrt, [](Long x) { return std::cbrt(x); }},
};

/// Distance in units of the last place of the f64 nearest to `want`.
double ulps(double got, Long want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  const double nearest = static_cast<double>(want);
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest ? 0 : 1e9;
  if (nearest == 0 && got == 0) return std::signbit(got) == std::signbit(want) ? 0 : 1e9;
  int exponent;
  std::frexp(nearest, &exponent);
  const Long unit = std::ldexp(Long{1}, std::max(exponent - 53, -1074));
  return static_cast<double>(std::fabs((Long{got} - want) / unit));
}

constexpr double kSpecial[] = {0.0,
                               0.5,
                               1.0,
                               2.0,
                               3.0,
                               2.5,
                               1.5707963267948966,
                               3.141592653589793,
                               5e-324,
                               1e-310,
                               2.2250738585072014e-308,
                               1e-20,
                               1e-8,
                               0.9999999999999999,
                               1.0000000000000002,
                               1.4142135623730951,
                               10.0,
                               22.0,
                               708.0,
                               709.9,
                               710.3,
                               745.2,
                               1023.5,
                               1075.0,
                               1e9,
                               1073741824.0,
                               1e10,
                               1e22,
                               1e300,
                               1.7976931348623157e308,
                               std::numeric_limits<double>::infinity()};

std::vector<double> samples() {
  std::vector<double> x;
  for (const double v : kSpecial) x.push_back(v), x.push_back(-v);
  x.push_back(std::numeric_limits<double>::quiet_NaN());
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(-1, 1), small(-10, 10), large(-800, 800);
  for (int i = 0; i < 10000; ++i) {
    x.push_back(std::bit_cast<double>(random()));
    x.push_back(unit(random));
    x.push_back(small(random));
    x.push_back(large(random));
    x.push_back(1 + unit(random) * 0.01);
    x.push_back(unit(random) * 1e9);
    x.push_back(std::exp2(large(random)));
    x.push_back(0.5 + unit(random) * 0.01);
    x.push_back(std::exp2(30 * unit(random) - 30) * (i % 2 == 0 ? 1 : -1));
  }
  // Where a series ends and the exponent changes: around sqrt(2) and its powers, and multiples of pi/2.
  for (int i = -1000; i < 1000; ++i)
    for (const double v : {0.7071067811865475, 1.4142135623730951, 2.8284271247461903, 1.5707963267948966,
                           3.141592653589793, 0.34657359027997264, 0.35355339059327373, 1.0606601717798212,
                           0.1715728752538099, 0.5, 0.41421356237309503})
      x.push_back(v * (1 + i * 0x1p-52));
  for (int i = 1; i < 300; ++i) {
    const double v = i;
    x.insert(x.end(), {v, -v, v * v * v, 1 / v, std::exp2(7 * (v - 150)), v * 1.5707963267948966});
  }
  return x;
}

/// A kernel of one function, f64 to f64, and what it gives for the samples: all at once, and one by one.
void check_function(const Function& f, const std::string& cpu, const std::vector<double>& x) {
  const auto n = static_cast<int64_t>(x.size());
  KernelBuilder b;
  const int in = b.buffer(DType::F64, true, false), out = b.buffer(DType::F64, false, true);
  b.axes({ir::KSize::fixed(n)});
  b.store(out, b.op(f.op, {b.load(in, {1})}, DType::F64), {1});
  std::vector<double> got(x.size()), alone(x.size());
  auto k = b.take();
  HostRun run{cpu, {}, {}};
  run(k, {n}, {}, {const_cast<double*>(x.data()), got.data()});
  run(k, {n}, {}, {const_cast<double*>(x.data()), alone.data()}, {}, 1);
  double worst = 0, where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = ulps(got[i], f.exact(Long{x[i]}));
    if (u > worst) worst = u, where = x[i];
    if (!std::isnan(got[i])) {
      ASSERT_EQ(std::bit_cast<uint64_t>(got[i]), std::bit_cast<uint64_t>(alone[i])) << x[i];
    }
  }
  if (std::getenv("GK_ULPS"))
    std::printf("%s %s %.3f at %.17g\n", cpu.c_str(), std::string(ir::info(f.op).name).c_str(), worst, where);
  // Without fused multiplication it is libm's, which allows itself a little more.
  EXPECT_LE(worst, cpu == "x86-64" ? 4.0 : 1.0) << cpu << " " << ir::info(f.op).name << " at " << where;
}

TEST(CodegenMathF64, functions_are_within_1_ulp) {
  const std::vector<double> x = samples();
  for (const std::string& cpu : host_cpus())
    for (const Function& f : kFunctions) check_function(f, cpu, x);
}

TEST(CodegenMathF64, pow_and_atan2_are_within_1_ulp) {
  std::vector<double> x, y;
  for (const double v : kSpecial)
    for (const double w : kSpecial)
      for (const double s : {1.0, -1.0})
        for (const double t : {1.0, -1.0}) x.push_back(v * s), y.push_back(w * t);
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> base(0, 20), exponent(-200, 200), near_one(0.9, 1.1),
      wide(-1e4, 1e4);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(base(random)), y.push_back(exponent(random));
    x.push_back(near_one(random)), y.push_back(wide(random));
    x.push_back(std::bit_cast<double>(random())), y.push_back(std::bit_cast<double>(random()));
  }
  const auto n = static_cast<int64_t>(x.size());
  KernelBuilder b;
  const int px = b.buffer(DType::F64, true, false), py = b.buffer(DType::F64, true, false),
            pow = b.buffer(DType::F64, false, true), angle = b.buffer(DType::F64, false, true);
  b.axes({ir::KSize::fixed(n)});
  const int vx = b.load(px, {1}), vy = b.load(py, {1});
  b.store(pow, b.op(Op::Pow, {vx, vy}, DType::F64), {1});
  b.store(angle, b.op(Op::Atan2, {vx, vy}, DType::F64), {1});
  auto k = b.take();
  for (const std::string& cpu : host_cpus()) {
    std::vector<double> p(x.size()), a(x.size());
    HostRun run{cpu, {}, {}};
    run(k, {n}, {}, {x.data(), y.data(), p.data(), a.data()});
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(ulps(p[i], std::pow(Long{x[i]}, Long{y[i]})), 1.0) << x[i] << " ** " << y[i] << " = " << p[i];
      ASSERT_LE(ulps(a[i], std::atan2(Long{x[i]}, Long{y[i]})), 1.0)
          << x[i] << " atan2 " << y[i] << " = " << a[i];
    }
  }
}

/// Among elements of other widths, where the loop has other vectors.
TEST(CodegenMathF64, the_width_of_a_loops_vectors_changes_no_bits) {
  const std::vector<double> x = samples();
  const auto n = static_cast<int64_t>(x.size());
  KernelBuilder b;
  const int in = b.buffer(DType::F64, true, false), out = b.buffer(DType::F64, false, true),
            bytes = b.buffer(DType::U8, false, true), singles = b.buffer(DType::F32, false, true);
  b.axes({ir::KSize::fixed(n)});
  const int v = b.load(in, {1});
  const int s = b.op(Op::Sin, {v}, DType::F64);
  b.store(out, s, {1});
  b.store(bytes, b.cast(s, DType::U8), {1});
  b.store(singles, b.op(Op::Cos, {b.cast(v, DType::F32)}, DType::F32), {1});
  auto k = b.take();
  std::vector<double> got(x.size()), alone(x.size());
  std::vector<uint8_t> some(x.size());
  std::vector<float> cosines(x.size()), one_by_one(x.size());
  HostRun run{{}, {}, {}};
  run(k, {n}, {}, {const_cast<double*>(x.data()), got.data(), some.data(), cosines.data()});
  run(k, {n}, {}, {const_cast<double*>(x.data()), alone.data(), some.data(), one_by_one.data()}, {}, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(got[i]) || std::isnan(cosines[i])) continue;
    ASSERT_EQ(got[i], alone[i]) << x[i];
    ASSERT_EQ(cosines[i], one_by_one[i]) << x[i];
  }
}

}  // namespace
}  // namespace gk::codegen_test
