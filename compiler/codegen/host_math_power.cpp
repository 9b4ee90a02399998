// Note [Exponentials and powers]
// e^x = 2^n e^r, |r| <= ln 2 / 2, r a pair. The hyperbolic sine and cosine are made of those of r, which are
// short odd and even series, and of 2^n: cosh x = cosh r cosh(n ln 2) + sinh r sinh(n ln 2). The cube root
// takes the exponent apart by an integer multiplication, and no division at all.
#include "compiler/codegen/host_pairs.h"
#include "compiler/codegen/host_parts.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;

namespace {

class Powers : public Pairs {
 public:
  using Pairs::Pairs;

  Result exp(D x) {
    const Exponent e = reduce_exponent(x);
    D s = e.r + fma(e.r * e.r, tail(e.r), fma(e.l, e.r, e.l));
    D scale = power_of_two(e.low);
    return {fma(scale, s, scale), within(x, 708)};
  }
  Result exp2(D x) {
    Value* low;
    D n = nearest(x, &low), f = x - n;
    if (!single_) return {exp2_of({f, k(0)}, low), within(x, 1021)};
    D curve =
        polynomial(f, std::array{0.240226537, 0.0555035807, 0.00961773284, 0.00133916433, 0.000155489644});
    D s = fma(f, k(kLn2), k(1));
    s = s + fma(f * f, curve, fma(f, k(kLn2), k(1) - s));
    return {s * power_of_two(low), within(x, 120)};
  }
  /// 2^n r + (2^n - 1), of which nothing is lost, and the curve: 2^n (r^2/2 + r^3 P(r)).
  Result expm1(D x) {
    const Exponent e = reduce_exponent(x);
    D scale = power_of_two(e.low), less = scale - 1.0;
    const Pair square = product(e.r, e.r * 0.5), most = sum_of(scale, e.r, less);
    D curve =
        series(e.r,
               std::array{2 * 0.16666666666666685, 2 * 0.04166666666666669, 2 * 0.008333333333315944,
                          2 * 0.001388888888886928, 2 * 0.00019841269898691053, 2 * 2.480158735721264e-05,
                          2 * 2.7557232839774002e-06, 2 * 2.755724509734088e-07, 2 * 2.511266661703218e-08,
                          2 * 2.0923791803299547e-09},
               std::array{2 * 0.166666657, 2 * 0.0416664816, 2 * 0.00833357032, 2 * 0.00139333308,
                          2 * 0.000197398811});
    curve = square.h + fma(e.r * square.h, curve, fma(e.l, e.r, e.l) + square.l);
    D r = most.h + (fma(scale, curve, most.l) + ((scale - less) - 1.0));
    return {sign(r, x), within(x, single_ ? 87 : 708)};
  }

  Result sinh(D x) {
    const Hyperbolic p = hyperbolic(abs(x), !single_);
    D rest = fma(p.minus, p.cosh_less, fma(p.plus, p.sinh_less, fma(p.plus_low, p.r, p.minus_low)));
    const Pair most = sum_of(p.plus, p.r, p.minus);
    D r = most.h + (most.l + rest);
    if (single_) return {sign(r, x), within(x, 87)};
    r = pick(within(x, 0x1p-30), abs(x), r + r);
    return {sign(r, x), within(x, 710.47586)};
  }
  Result cosh(D x) {
    const Hyperbolic p = hyperbolic(abs(x), !single_);
    D rest = fma(p.plus, p.cosh_less, fma(p.minus, p.sinh_less, p.plus_low));
    const Pair most = sum_of(p.minus, p.r, p.plus);
    D r = most.h + (most.l + rest);
    return {single_ ? r : r + r, within(x, single_ ? 87 : 710.47586)};
  }
  /// f32: below 1 an odd polynomial; from there 1 - 2 / (e^2a + 1), which has a quarter of the quotient's
  /// error.
  D tanh_f32(D x) {
    constexpr double kHalfLn2 = kLn2 / 2, kHigh = static_cast<float>(kHalfLn2);
    D a = abs(x), z = a * a;
    D curve = polynomial(z, std::array{0.133333107, -0.0539634148, 0.0218295488, -0.00869784759,
                                       0.00320680339, -0.000923500846, 0.000142793188});
    const Pair third = product(z, k(-0.333333332));
    D near = fma(a, third.h + fma(z * z, curve, third.l), a);
    D c = pick(lt(k(10), a), k(10), a);  // NaN stays
    Value* low;
    D n = nearest(c, 2 * kLog2e, &low);
    D r = fma(-n, k(kHalfLn2 - kHigh), fma(-n, k(kHigh), c));
    D less = r * polynomial(r, std::array{2.00000002, 2.00000001, 1.33332042, 0.666663439, 0.267812981,
                                          0.08917536});  // e^2r - 1
    D scale = power_of_two(low);
    D far = k(1) - k(2) / fma(scale, less, scale + 1.0);
    return sign(pick(lt(a, k(0.9375)), near, far), x);
  }
  Result tanh(D x) {
    if (single_) return {tanh_f32(x), nullptr};
    D a = abs(x), limit = k(22);
    const Hyperbolic p = hyperbolic(pick(lt(limit, a), limit, a), false);  // NaN stays
    Pair top = sum_of(p.plus, p.r, p.minus), bottom = sum_of(p.minus, p.r, p.plus);
    top.l = top.l + fma(p.minus, p.cosh_less, fma(p.plus, p.sinh_less, fma(p.plus_low, p.r, p.minus_low)));
    bottom = tidy(bottom.h, bottom.l + fma(p.plus, p.cosh_less,
                                           fma(p.minus, p.sinh_less, fma(p.minus_low, p.r, p.plus_low))));
    D inverse = k(1) / bottom.h, q = top.h * inverse;
    D rest = fma(-q, bottom.h, top.h) + fma(-q, bottom.l, top.l);
    return {sign(fma(rest, inverse, q), x), nullptr};
  }

  /// 2^(y log2 x) with the logarithm to 2^-70.
  Result pow(D x, D y) {
    const Split p = split(x);
    D f = p.mantissa - 1.0;
    Pair s = over({f, k(0)}, tidy(k(2), f));
    Pair z = times(s, s);
    D curve = polynomial(z.h, std::array{2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                         2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25});
    Pair a = product(z.h, curve);
    Pair third = tidy(k(2.0 / 3), a.h);
    third.l = third.l + (a.l + fma(z.l, k(2.0 / 5), k(0x1.5555555555555p-55)));
    Pair t = times(times(s, z), third);
    Pair l = tidy(s.h * 2.0, t.h);
    l = tidy(l.h, l.l + (t.l + s.l * 2.0));
    Pair m = times(l, kLog2e, kLog2eLow);
    Pair log = tidy(p.exponent, m.h);  // an integer and at most 1/2
    log = tidy(log.h, log.l + m.l);
    Pair e = product(y, log.h);
    Value* low;
    D n = nearest(e.h, &low);
    D value = exp2_of({e.h - n, fma(y, log.l, e.l)}, low);
    return {value, b.CreateAnd(is_normal(x), within(e.h, 1020))};
  }

  /// From y about a^(-1/3), better with each step: g = a y^2, then a Newton step for g itself.
  Result cbrt(D x) {
    D a = abs(x), back = k(1);
    if (!single_) {  // the remainder of a small number would be rounded to a multiple of the least one
      Value* small = lt(a, k(0x1p-900));
      a = pick(small, a * 0x1p180, a);
      back = pick(small, k(0x1p-60), back);
    }
    D y = inverse_cube_root(a);
    D left = fma(-(a * y), y * y, k(1));
    D curve = series(
        left, std::array{0.3333253762686724, 0.22220795240545216, 0.1750910618705695, 0.1466249813774663},
        std::array{0.333322644, 0.223955125, 0.175383702});
    y = fma(y * left, curve, y);
    D g = a * y * y;
    g = fma(g * (2.0 / 3), fma(-g, y, k(1)), g);
    Pair square = product(g, g);
    D rest = fma(square.l, g, fma(square.h, g, -a));
    D r = fma(rest, y * y * (-1.0 / 3), g);
    if (!single_) return {sign(r * back, x), lt(a, inf())};
    return {sign(r, x), b.CreateAnd(lt(k(0x1p-100), a), lt(a, inf()))};
  }

 private:
  static constexpr double kLog2eLow = 0x1.777d0ffda0d24p-56;

  struct Exponent {
    D r, l;
    Value* low;  // x = n ln 2 + r + l, n in the low bits
  };
  Exponent reduce_exponent(D x) {
    Exponent e{k(0), k(0), nullptr};
    D n = nearest(x, kLog2e, &e.low);
    D t = fma(-n, k(ln2().h), x);  // exact
    e.r = fma(-n, k(ln2().l), t);
    e.l = fma(-n, k(ln2().l), t - e.r);
    return e;
  }
  /// (e^r - 1 - r) / r^2 for |r| <= 0.3467.
  D tail(D r) {
    return polynomial(
        r, std::array{0.5000000000000013, 0.16666666666666685, 0.041666666666511636, 0.008333333333315401,
                      0.0013888888947842998, 0.00019841269900677016, 2.48014891991824e-05,
                      2.7557230539014318e-06, 2.763151632400299e-07, 2.51135211898793e-08});
  }
  /// 2^(n + f), |f| <= 1/2, with n in the low bits.
  D exp2_of(Pair f, Value* low) {
    Pair t = product(f.h, k(kLn2));
    t = tidy(t.h, t.l + fma(f.h, k(ln2().l), f.l * kLn2));
    D s = t.h + fma(t.h * t.h, tail(t.h), fma(t.l, t.h, t.l));
    D scale = power_of_two(low);
    return fma(scale, s, scale);
  }
  struct Hyperbolic {
    D r, cosh_less, sinh_less;           // cosh r - 1, sinh r - r
    D plus, minus, plus_low, minus_low;  // 2^(n-1) + 2^(-n-1) and their difference; or half of them
  };
  Hyperbolic hyperbolic(D a, bool half) {
    const Exponent e = reduce_exponent(a);
    D z = e.r * e.r;
    D even = series(z,
                    std::array{0.5000000000000013, 0.04166666666651163, 0.0013888888947845629,
                               2.480148919605187e-05, 2.7631517511566425e-07},
                    std::array{0.5, 0.0416664556, 0.00139357522});
    D odd = series(z,
                   std::array{0.16666666666666677, 0.008333333333321456, 0.00019841269886510475,
                              2.7557243864755403e-06, 2.51091458559819e-08},
                   std::array{0.166666672, 0.00833319034, 0.000199601665});
    // In halves, where 2^(n-1) may be beyond the largest number and its inverse below the smallest normal
    // one.
    const uint64_t less = uint64_t{half ? 2u : 1u} << mantissa_bits();
    Value* up = b.CreateAdd(b.CreateShl(e.low, mantissa_bits()), i(one() - less));
    Value* down = b.CreateSub(i(2 * (one() - less)), up);
    if (half) down = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, down, i(0));
    D high = from_bits(up), low = from_bits(down);
    D plus = high + low, minus = high - low;
    return {e.r, z * even, fma(e.r * z, odd, e.l), plus, minus, (high - plus) + low, (high - minus) - low};
  }
  /// a^(-1/3) within 4 %, for normal a; a finite number for zero.
  D inverse_cube_root(D a) {
    if (single_) {
      Value* third = b.CreateSIToFP(bits(a), real_);
      D y = fma(D{third, &b}, k(-1.0 / 3), k(0x54a2aaab));
      return from_bits(b.CreateFPToSI(y.v, int_));
    }
    Value* third = b.CreateMul(b.CreateLShr(bits(a), 32), i(0x55555555));
    return from_bits(b.CreateSub(i(uint64_t{0x553f0000} << 32), third));
  }
};

}  // namespace

RareResult host_power(Builder& b, Op op, std::span<Value* const> args) {
  Powers f(b, args[0]->getType());
  const Formulas::D x{args[0], &b};
  const auto result = [&] {
    switch (op) {
      case Op::Exp: return f.exp(x);
      case Op::Exp2: return f.exp2(x);
      case Op::Expm1: return f.expm1(x);
      case Op::Sinh: return f.sinh(x);
      case Op::Cosh: return f.cosh(x);
      case Op::Tanh: return f.tanh(x);
      case Op::Cbrt: return f.cbrt(x);
      default: return f.pow(x, Formulas::D{args[1], &b});
    }
  }();
  return {result.value.v, result.holds == nullptr ? nullptr : b.CreateNot(result.holds)};
}

}  // namespace gk::codegen
