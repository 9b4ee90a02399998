// Note [Host f64 functions]
// Built in the IR like the f32 ones, where the processor fuses multiplication and addition; elsewhere, and
// for functions that are not here, libm's. What a formula cannot hold in one double it holds in two, so that
// the result is within 1 ulp (tests/unit/codegen_math_test.cpp measures it). Series are Taylor's on reduced
// arguments. Arguments outside a formula's range (zeros and infinities of logarithms, angles beyond 2^30,
// results near overflow …) are rare: a branch of their own asks libm. Sources: Dekker 1971 (pairs of
// doubles); Cody and Waite 1980 (reduction).
#include "compiler/codegen/host_formulas.h"
#include "compiler/codegen/host_math.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;

namespace {

class Double : public Formulas {
 public:
  using Formulas::Formulas;

  struct Result {
    D value;
    Value* holds;  // where the formula does
  };

  Result exp(D x) {
    const Exponent e = reduce_exponent(x);
    D s = e.r + fma(e.r * e.r, tail(e.r), fma(e.l, e.r, e.l));
    D scale = power_of_two(e.low);
    return {fma(scale, s, scale), within(x, 708)};
  }
  Result exp2(D x) {
    Value* low;
    D n = nearest(x, &low);
    return {exp2_of({x - n, k(0)}, low), within(x, 1021)};
  }
  Result expm1(D x) { return {keep_zero(x, expm1_pair(x).h), within(x, 708)}; }

  Result log(D x) {
    const Split p = split(x);
    D f = p.mantissa - 1.0;
    D s = f / (f + 2.0), z = s * s, half = f * f * 0.5;
    D low = fma(s, half + log_series(z), p.exponent * kLn2Low);
    return {p.exponent * kLn2High - ((half - low) - f), is_normal(x)};
  }
  Result log2(D x) {
    const Split p = split(x);
    Pair m = times(log_pair(p.mantissa - 1.0), kLog2e, kLog2eLow);
    Pair t = sum(p.exponent, m.h);
    return {t.h + (t.l + m.l), is_normal(x)};
  }
  Result log10(D x) {
    const Split p = split(x);
    Pair m = times(log_pair(p.mantissa - 1.0), 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);  // 1 / ln 10
    Pair n = times({p.exponent, k(0)}, 0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59);         // log10 2
    Pair t = sum(n.h, m.h);
    return {t.h + (t.l + (m.l + n.l)), is_normal(x)};
  }
  Result log1p(D x) {
    D u = x + 1.0;
    D lost = pick(lt(x, k(1)), x - (u - 1.0), k(1) - (u - x)) / u;  // what the addition rounded off
    const Split p = split(u);
    Pair l = log_pair(p.mantissa - 1.0);
    Pair t = sum(p.exponent * kLn2High, l.h);
    Pair v = sum(t.h, lost);
    D r = v.h + (v.l + (t.l + (l.l + p.exponent * kLn2Low)));
    return {keep_zero(x, r), b.CreateAnd(lt(k(-1), x), lt(x, k(1e300)))};
  }

  Result sinh(D x) {
    Pair e = expm1_pair(abs(x));
    Pair d = plus(e, 1);
    Pair q = over(e, d);
    Pair s = sum(e.h, q.h);
    D r = pick(lt(abs(x), k(40)), (s.h + (s.l + (e.l + q.l))) * 0.5, half_exp(abs(x)));
    return {sign(r, x), within(x, 710.6)};
  }
  Result cosh(D x) {
    Pair d = plus(expm1_pair(abs(x)), 1);
    Pair q = over({k(1), k(0)}, d);
    Pair s = sum(d.h, q.h);
    D r = pick(lt(abs(x), k(40)), (s.h + (s.l + (d.l + q.l))) * 0.5, half_exp(abs(x)));
    return {r, within(x, 710.6)};
  }
  Result tanh(D x) {
    Pair e = expm1_pair(clamp(abs(x), 0, 22) * 2.0);
    return {sign(over(e, plus(e, 2)).h, x), b.CreateFCmpORD(x.v, x.v)};
  }

  Result sin(D x, uint64_t ahead) {  // `ahead` quarter turns further: 1 makes it the cosine
    Value* q;
    Pair r = reduce_angle(x, &q);
    q = b.CreateAdd(q, i(ahead));
    D v = pick(bit(q, 1), cos_pair(r).h, sin_pair(r).h);
    v = pick(bit(q, 2), -v, v);
    return {ahead == 0 ? keep_zero(x, v) : v, within(x, 0x1p30)};
  }
  Result tan(D x) {
    Value* q;
    Pair r = reduce_angle(x, &q);
    Pair s = sin_pair(r), c = cos_pair(r);
    Value* odd = bit(q, 1);
    Pair top = pick(odd, {-c.h, -c.l}, s);
    return {keep_zero(x, over(top, pick(odd, s, c)).h), within(x, 0x1p30)};
  }
  Result atan(D x) { return {sign(angle(abs(x), k(1)).h, x), within(x, 1e300)}; }
  Result atan2(D y, D x) {
    D ay = abs(y), ax = abs(x);
    Pair a = angle(ay, ax);
    Pair left = sum(k(kHalfPi * 2), -a.h);
    D r = pick(lt(x, k(0)), left.h + (left.l + (k(kHalfPiLow * 2) - a.l)), a.h);
    Value* holds = b.CreateAnd(b.CreateAnd(lt(k(1e-150), ay), lt(ay, k(1e150))),
                               b.CreateAnd(lt(k(1e-150), ax), lt(ax, k(1e150))));
    return {sign(r, y), holds};
  }

  /// 2^(y log2 x) with the logarithm to 2^-70.
  Result pow(D x, D y) {
    const Split p = split(x);
    D f = p.mantissa - 1.0;
    Pair s = over({f, k(0)}, tidy(k(2), f));
    Pair z = times(s, s);
    D series = polynomial(z.h, std::array{2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                          2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25});
    Pair a = product(z.h, series);
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

 private:
  struct Pair {
    D h, l;  // their sum, |l| a few rounding errors of h
  };
  // Exact: a + c; the same for |a| >= |c|; a c.
  Pair sum(D a, D c) {
    D s = a + c, t = s - a;
    return {s, (a - (s - t)) + (c - t)};
  }
  Pair tidy(D a, D c) {
    D s = a + c;
    return {s, (a - s) + c};
  }
  Pair product(D a, D c) {
    D p = a * c;
    return {p, fma(a, c, -p)};
  }
  Pair plus(Pair a, double c) {
    Pair s = sum(a.h, k(c));
    return {s.h, s.l + a.l};
  }
  Pair times(Pair a, Pair o) {
    Pair p = product(a.h, o.h);
    return {p.h, p.l + fma(a.h, o.l, a.l * o.h)};
  }
  Pair times(Pair a, double h, double l) { return times(a, {k(h), k(l)}); }
  Pair over(Pair a, Pair o) {
    D inverse = k(1) / o.h, q = a.h * inverse;
    D rest = fma(-q, o.h, a.h) + fma(-q, o.l, a.l);
    return tidy(q, rest * inverse);
  }
  using Formulas::pick;
  Pair pick(Value* c, Pair yes, Pair no) { return {pick(c, yes.h, no.h), pick(c, yes.l, no.l)}; }

  Value* within(D x, double limit) { return lt(abs(x), k(limit)); }
  Value* is_normal(D x) { return b.CreateAnd(b.CreateFCmpOGE(x.v, k(0x1p-1022).v), lt(x, inf())); }

  static constexpr double kLog2eLow = 0x1.777d0ffda0d24p-56;
  static constexpr double kLn2High = 0x1.62e42fee00000p-1,
                          kLn2Low = 0x1.a39ef35793c76p-33;  // 32 bits, the rest
  static constexpr double kHalfPiLow = 0x1.1a62633145c07p-54, kHalfPiLowest = -0x1.f1976b7ed8fbcp-110;

  struct Exponent {
    D r, l;
    Value* low;  // x = n ln 2 + r + l, n in the low bits
  };
  Exponent reduce_exponent(D x) {
    Exponent e{k(0), k(0), nullptr};
    D n = nearest(x * kLog2e, &e.low);
    D t = fma(-n, k(kLn2High), x), rest = n * kLn2Low;
    e.r = t - rest;
    e.l = (t - e.r) - rest;
    return e;
  }
  /// (e^r - 1 - r) / r^2 for |r| <= 0.35.
  D tail(D r) {
    return polynomial(
        r, std::array{1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                      1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800});
  }
  /// 2^(n + f), |f| <= 1/2, with n in the low bits.
  D exp2_of(Pair f, Value* low) {
    Pair t = product(f.h, k(kLn2));
    t = tidy(t.h, t.l + fma(f.h, k(0x1.abc9e3b39803fp-56), f.l * kLn2));
    D s = t.h + fma(t.h * t.h, tail(t.h), fma(t.l, t.h, t.l));
    D scale = power_of_two(low);
    return fma(scale, s, scale);
  }
  /// e^x / 2 for 40 <= x < 710.6: where e^x is beyond the largest number, its half may not be.
  D half_exp(D x) {
    const Exponent e = reduce_exponent(x);
    D s = e.r + fma(e.r * e.r, tail(e.r), fma(e.l, e.r, e.l));
    D quarter = power_of_two(b.CreateSub(e.low, i(2)));
    return fma(quarter, s, quarter) * 2.0;
  }
  Pair expm1_pair(D x) {
    const Exponent e = reduce_exponent(x);
    D scale = power_of_two(e.low);
    D less = scale - 1.0;
    Pair t = sum(scale * e.r, less);
    D curve = fma(e.r * e.r, tail(e.r), fma(e.l, e.r, e.l));
    return tidy(t.h, t.l + (((scale - less) - 1.0) + scale * curve));
  }

  /// z P(z): log(1 + f) = f - f^2/2 + s (f^2/2 + z P(z)), s = f / (2 + f), z = s^2.
  D log_series(D z) {
    return z * polynomial(z, std::array{2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15,
                                        2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23});
  }
  Pair log_pair(D f) {
    D s = f / (f + 2.0);
    D series = log_series(s * s);
    Pair half = product(f, f * 0.5);
    Pair t = tidy(f, -half.h);
    return tidy(t.h, t.l + fma(s, half.h + series, -half.l));
  }

  /// An angle less its quarter turns, and their number in the low bits.
  Pair reduce_angle(D x, Value** quarters) {
    D n = nearest(x * kTwoOverPi, quarters);
    D y = fma(-n, k(kHalfPi), x);
    D t = fma(-n, k(kHalfPiLow), y);
    D rest = fma(-n, k(kHalfPiLow), y - t);
    return tidy(t, fma(-n, k(kHalfPiLowest), rest));
  }
  Pair sin_pair(Pair r) {
    D z = r.h * r.h;
    D series = z * polynomial(z, std::array{-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                                            1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000});
    return tidy(r.h, fma(r.l, fma(z, k(-0.5), k(1)), r.h * series));
  }
  Pair cos_pair(Pair r) {
    Pair z = product(r.h, r.h);
    D series = polynomial(z.h, std::array{1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
                                          -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000});
    D half = z.h * 0.5;
    D w = k(1) - half;
    D rest = fma(z.h * z.h, series, -fma(r.h, r.l, z.l * 0.5));
    return tidy(w, ((k(1) - w) - half) + rest);
  }
  /// The angle of (x, y) for y, x > 0: within (0, pi/2).
  Pair angle(D y, D x) {
    Value* low = lt(y, x * kTanEighthPi);
    Value* high = lt(x, y * kTanEighthPi);
    Pair zero{k(0), k(0)};
    Pair top = pick(low, Pair{y, k(0)}, pick(high, Pair{-x, k(0)}, sum(y, -x)));
    Pair bottom = pick(low, Pair{x, k(0)}, pick(high, Pair{y, k(0)}, sum(y, x)));
    Pair base =
        pick(low, zero, pick(high, Pair{k(kHalfPi), k(kHalfPiLow)}, Pair{k(kHalfPi / 2), k(kHalfPiLow / 2)}));
    Pair t = over(top, bottom);
    D z = t.h * t.h;
    D series = polynomial(
        z, std::array{-1.0 / 3,  1.0 / 5,   -1.0 / 7,  1.0 / 9,   -1.0 / 11, 1.0 / 13,  -1.0 / 15,
                      1.0 / 17,  -1.0 / 19, 1.0 / 21,  -1.0 / 23, 1.0 / 25,  -1.0 / 27, 1.0 / 29,
                      -1.0 / 31, 1.0 / 33,  -1.0 / 35, 1.0 / 37,  -1.0 / 39, 1.0 / 41,  -1.0 / 43});
    Pair v = sum(base.h, t.h);
    return tidy(v.h, v.l + (fma(t.h * z, series, t.l) + base.l));
  }
};

Double::Result formula(Double& f, Op op, std::span<Value* const> args, Builder& b) {
  using D = Formulas::D;
  const D x{args[0], &b};
  switch (op) {
    case Op::Exp: return f.exp(x);
    case Op::Exp2: return f.exp2(x);
    case Op::Expm1: return f.expm1(x);
    case Op::Log: return f.log(x);
    case Op::Log2: return f.log2(x);
    case Op::Log10: return f.log10(x);
    case Op::Log1p: return f.log1p(x);
    case Op::Sin: return f.sin(x, 0);
    case Op::Cos: return f.sin(x, 1);
    case Op::Tan: return f.tan(x);
    case Op::Atan: return f.atan(x);
    case Op::Sinh: return f.sinh(x);
    case Op::Cosh: return f.cosh(x);
    case Op::Tanh: return f.tanh(x);
    case Op::Pow: return f.pow(x, D{args[1], &b});
    default: return f.atan2(x, D{args[1], &b});
  }
}

}  // namespace

bool has_f64_formula(Op op) {
  switch (op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Expm1:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Atan:
    case Op::Sinh:
    case Op::Cosh:
    case Op::Tanh:
    case Op::Pow:
    case Op::Atan2: return true;
    default: return false;
  }
}

RareResult host_math_f64(Builder& b, Op op, std::span<Value* const> args) {
  Double f(b, args[0]->getType(), true);
  const Double::Result r = formula(f, op, args, b);
  return {r.value.v, b.CreateNot(r.holds)};
}

}  // namespace gk::codegen
