// Note [Logarithms]
// log 2^e m = e ln 2 + log m, sqrt(1/2) <= m < sqrt(2). Of an m that is known exactly, log, log2 and log10
// take a series in m - 1 (f32) or in s = (m - 1) / (m + 1) (f64). What is a sum or has roots in it is written
// as a quotient that needs one division: log1p(x), acosh, asinh and atanh are all e ln 2 + 2 atanh(t / 2),
// t = 2 (u - 2^e) / (u + 2^e), and their u - 2^e has no cancellation that loses anything. Rounding errors of
// sums, roots and the quotient are kept; they need a rough inverse only.
#include "compiler/codegen/host_pairs.h"
#include "compiler/codegen/host_parts.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;

namespace {

// (2 atanh(s) - 2s) / s^3 by powers of s^2, fitted for s^2 < 0.0295 and, for atanh, 0.0425.
constexpr std::array kAtanh{0.6666666666666734,  0.39999999999416574, 0.2857142874204731, 0.22222198602281729,
                            0.18183563046851947, 0.1531407853380185,  0.14795708243181527};
constexpr std::array kAtanhWide{0.6666666666666655,  0.4000000000008684, 0.2857142854893795,
                                0.22222225038033025, 0.1818162343945171, 0.15392439712383002,
                                0.13152165080397937, 0.13982635870550977};
constexpr std::array kAtanh32{0.666667759, 0.399775803, 0.298707545};
constexpr std::array kAtanhWide32{0.666666627, 0.400009632, 0.285012811, 0.241907164};
// (log(1 + f) - f) / f^2 to three bases, for one chain: two would take numbers of opposite signs from each
// other.
constexpr std::array kLog{-0.499999881, 0.333333254,  -0.250016004, 0.200020015,  -0.166087702,
                          0.141811922,  -0.132445663, 0.1290856,    -0.0762322024};
constexpr std::array kLog2{-0.721347332, 0.480898201,  -0.360697865, 0.288570106, -0.239596322,
                           0.204544917,  -0.191157088, 0.186522856,  -0.110155813};
constexpr std::array kLog10{-0.217147186, 0.144764796,  -0.108580746, 0.0868675187, -0.0721275955,
                            0.0615876503, -0.057543803, 0.0560717806, -0.0330686755};
/// The same with another s: by powers of two.
template <size_t N>
constexpr std::array<double, N> scaled(std::array<double, N> c, double first, double ratio) {
  for (double& v : c) v *= first, first *= ratio;
  return c;
}

class Logarithms : public Pairs {
 public:
  using Pairs::Pairs;

  Result log(D x) {
    const Split p = split(x);
    D f = p.mantissa - 1.0;
    if (single_) {
      D low = fma(f * f, chain(f, kLog, 0, 1), p.exponent * ln2().l);
      return {with_multiple(p.exponent, ln2().h, f, low), is_normal(x)};
    }
    D s = f / (f + 2.0), z = s * s, half = f * f * 0.5;
    D low = fma(s, fma(z, polynomial(z, kAtanh), half), p.exponent * kLn2Low);
    return {fma(p.exponent, k(kLn2High), f - (half - low)), is_normal(x)};
  }
  Result log2(D x) {
    const Split p = split(x);
    if (single_) {
      D f = p.mantissa - 1.0;
      D low = fma(f * f, chain(f, kLog2, 0, 1), f * 0x1.4ae0cp-26);
      return {fma(f, k(0x1.715476p0), low) + p.exponent, is_normal(x)};
    }
    const Pair l = log_pair(p.mantissa - 1.0);
    const Pair m = product(l.h, k(kLog2e)), t = tidy(p.exponent, m.h);
    return {t.h + (t.l + fma(l.l, k(kLog2e), fma(l.h, k(0x1.777d0ffda0d24p-56), m.l))), is_normal(x)};
  }
  Result log10(D x) {
    const Split p = split(x);
    if (single_) {
      D f = p.mantissa - 1.0;
      D low = fma(f * f, chain(f, kLog10, 0, 1), fma(p.exponent, k(-0x1.ec10cp-27), f * -0x1.5b235ep-27));
      Pair m = product(f, k(0x1.bcb7b2p-2));
      return {with_multiple(p.exponent, 0x1.344136p-2, m.h, m.l + low), is_normal(x)};
    }
    const Pair l = log_pair(p.mantissa - 1.0);
    constexpr double kLog10e = 0x1.bcb7b1526e50ep-2, kLog10eLow = 0x1.95355baaafad3p-57;
    const Pair m = product(l.h, k(kLog10e));
    D low = fma(p.exponent, k(-0x1.9dc1da994fd21p-59), m.l);
    low = fma(l.l, k(kLog10e), fma(l.h, k(kLog10eLow), low));
    return {with_multiple(p.exponent, 0x1.34413509f79ffp-2, m.h, low), is_normal(x)};
  }
  Result log1p(D x) {
    const Split p = split(x + 1.0);
    Pair half = tidy(fma(p.power, k(0.5), k(0.5)), x * 0.5);
    D r = of_quotient(p.exponent, tidy(k(1) - p.power, x), half);
    Value* holds = b.CreateAnd(lt(k(-1), x), lt(x, k(single_ ? 1e37 : 1e300)));
    return {sign(r, x), holds};
  }

  /// u = x + sqrt(x^2 - 1), u - 1 = d + sqrt(d (d + 2)) with d = x - 1, which is exact.
  Result acosh(D x) {
    D d = x - 1.0, twice = d + d;
    D square = fma(d, d, twice);
    Pair root = root_of(square, fma(d, d, twice - square));
    Pair v = tidy(root.h, d);
    v.l = v.l + root.l;
    const Split p = split(v.h + 1.0);
    Pair top = tidy(k(1) - p.power, v.h);
    Pair half = tidy(fma(p.power, k(0.5), k(0.5)), v.h * 0.5);
    D r = of_quotient(p.exponent, {top.h, top.l + v.l}, {half.h, fma(v.l, k(0.5), half.l)});
    return {r, b.CreateAnd(b.CreateFCmpOGE(x.v, k(1).v), lt(x, k(root_limit())))};
  }
  /// u = a + sqrt(a^2 + 1). With e = 0, (u - 1) / (u + 1) is a / (1 + sqrt(a^2 + 1)).
  Result asinh(D x) {
    D a = abs(x);
    D square = fma(a, a, k(1));
    Pair root = root_of(square, fma(a, a, k(1) - square));
    Pair u = tidy(root.h, a);
    u.l = u.l + root.l;
    const Split p = split(u.h);
    Value* small = eq(p.power, k(1));
    Pair top = pick(small, Pair{a, k(0)}, Pair{u.h - p.power, u.l});
    Pair more = pick(small, root, u);
    Pair half = tidy(p.power * 0.5, more.h * 0.5);
    half.l = fma(more.l, k(0.5), half.l);
    return {sign(of_quotient(p.exponent, top, half), x), lt(a, k(root_limit()))};
  }
  /// Half the logarithm of n / d = (1 + a) / (1 - a); its exponent may be off by a little more than a half.
  /// n - 2^e d is a (1 + 2^e) + (1 - 2^e), which for e = 0 is 2a.
  Result atanh(D x) {
    D a = abs(x);
    Pair n = tidy(k(1), a), d = tidy(k(1), -a);
    const uint64_t fraction = (uint64_t{1} << mantissa_bits()) - 1;
    Value* ratio = b.CreateAdd(b.CreateSub(bits(n.h), bits(d.h)), i(one() + fraction / 2 + 1));
    D power = from_bits(b.CreateAnd(ratio, i(~fraction)));
    d = {d.h * power, d.l * power};
    D difference = fma(a, power + 1.0, k(1) - power);
    Pair bottom = tidy(n.h, d.h);
    bottom.l = bottom.l + (n.l + d.l);
    Pair top{difference, ((n.h - d.h) - difference) + (n.l - d.l)};
    D r = of_quotient(exponent(ratio), top, bottom, 0.5);
    return {sign(r, x), lt(a, k(single_ ? 1 - 0x1p-20 : 1 - 0x1p-45))};
  }

 private:
  static constexpr double kLn2High = 0x1.62e42fee00000p-1,
                          kLn2Low = 0x1.a39ef35793c76p-33;  // 32 bits, the rest

  double root_limit() const { return single_ ? 0x1p60 : 1e150; }
  Pair root_of(D square, D rest) {
    D q = sqrt(square);
    return {q, (fma(-q, q, square) + rest) * rough_half_inverse(q)};
  }
  /// n c + h + l for an integer n, c rounded, and |h| below c.
  D with_multiple(D n, double c, D h, D l) {
    D s = fma(n, k(c), h);
    return s + ((fma(n, k(c), -s) + h) + l);
  }
  /// e ln 2 + 2 atanh(top / 2 half), or half of that, with top / half.
  D of_quotient(D exponent, Pair top, Pair half, double of = 1) {
    D t = top.h / half.h, z = t * t;
    D rest = fma(-t, half.l, fma(-t, half.h, top.h) + top.l) * rough_inverse(half.h);
    D curve = of == 1 ? series(z, scaled(kAtanh, 0.125, 0.25), scaled(kAtanh32, 0.125, 0.25))
                      : series(z, scaled(kAtanhWide, 0.5, 1), scaled(kAtanhWide32, 0.5, 1));
    D low = fma(t * z, curve, fma(exponent, k(ln2().l * of), rest));
    return with_multiple(exponent, ln2().h * of, t, low);
  }
  /// log(1 + f) = f - f^2/2 + s (f^2/2 + z P(z)), s = f / (2 + f), z = s^2; the second number is small, but
  /// not as small as a rounding error.
  Pair log_pair(D f) {
    D s = f / (f + 2.0), z = s * s;
    Pair half = product(f, f * 0.5);
    Pair t = tidy(f, -half.h);
    return {t.h, t.l + fma(s, fma(z, polynomial(z, kAtanh), half.h), -half.l)};
  }
};

}  // namespace

RareResult host_logarithm(Builder& b, Op op, Value* value) {
  Logarithms f(b, value->getType());
  const Formulas::D x{value, &b};
  const auto result = [&] {
    switch (op) {
      case Op::Log: return f.log(x);
      case Op::Log2: return f.log2(x);
      case Op::Log10: return f.log10(x);
      case Op::Log1p: return f.log1p(x);
      case Op::Acosh: return f.acosh(x);
      case Op::Asinh: return f.asinh(x);
      default: return f.atanh(x);
    }
  }();
  return {result.value.v, b.CreateNot(result.holds)};
}

}  // namespace gk::codegen
