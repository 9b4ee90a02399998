// Note [Angles]
// Sine, cosine and tangent take quarter turns off, in three parts of pi/2; what is left is a pair. Arcus
// sine and cosine beyond 1/2 are those of sqrt((1 - |x|) / 2), whose square is exact, so that one series
// serves; the root's rounding error is kept. Of arcus tangents, the f64 ones have three ranges, the f32 one
// two: a quotient costs the same in each, and a longer series costs less in f32 than selections do.
#include "compiler/codegen/host_pairs.h"
#include "compiler/codegen/host_parts.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;

namespace {

class Angles : public Pairs {
 public:
  using Pairs::Pairs;

  Result sin(D x) {
    Value* q;
    Pair r = reduce(abs(x), &q);
    Value* signs = b.CreateXor(b.CreateShl(q, 62), bits(x));
    return {turned(quarter(r, q), signs), within(x, 0x1p30)};
  }
  Result cos(D x) {
    Value* q;
    Pair r = reduce(x, &q);
    q = b.CreateAdd(q, i(1));
    return {turned(quarter(r, q), b.CreateShl(q, 62)), within(x, 0x1p30)};
  }
  /// The series and, for odd quarter turns, minus its inverse.
  Result tan(D x) {
    Value* q;
    Pair r = reduce(x, &q);
    r = tidy(r.h, r.l);
    D z = r.h * r.h;
    D curve = series(z,
                     std::array{0.3333333333333338, 0.1333333333332528, 0.05396825397294483,
                                0.021869488398207057, 0.008863237937934362, 0.0035921007530687206,
                                0.0014560461878692674, 0.0005888627208567242, 0.0002437532246454179,
                                8.356435395708542e-05, 6.719285368987269e-05, -2.5573702161210252e-05,
                                4.856703862394488e-05, -2.4230896966996304e-05, 9.78756850414673e-06},
                     std::array{0.333333522, 0.133325875, 0.0540678464, 0.02124382, 0.0109299747,
                                -2.43463164e-05, 0.004430186});
    D cube = r.h * z;
    Pair t = sum_of(cube, curve, r.h);
    D lost = fma(r.l, t.h * t.h, r.l);  // by the derivative; and, about, what z was rounded by
    t.l = t.l + fma(fma(r.h, r.h, -z) * r.h, k(0.5), lost);
    D inverse = k(-1) / t.h;
    inverse = fma(inverse, fma(inverse, t.l, fma(inverse, t.h, k(1))), inverse);
    return {keep_zero(x, pick(bit(q, 1), inverse, t.h + t.l)), within(x, single_ ? 0x1p16 : 0x1p30)};
  }

  Result asin(D x) {
    const Half h = half_of(x);
    D root = sqrt(h.square);
    D v = pick(h.small, -abs(x), root + root);
    D lost = pick(h.small, k(0), root_lost(root, h.square));
    D r = base_less(pick(h.small, k(0), k(half_pi().h)), v, lost, h.square);
    return {sign(r, x), nullptr};
  }
  Result acos(D x) {
    const Half h = half_of(x);
    D root = sign(sqrt(h.square), -x);
    D v = pick(h.small, x, root + root);
    D lost = pick(h.small, k(0), root_lost(root, h.square));
    D far = pick(lt(x, k(0)), k(half_pi().h * 2), k(0));
    return {base_less(pick(h.small, k(half_pi().h), far), v, lost, h.square), nullptr};
  }
  Result atan(D x) {
    if (single_) return {sign(two_ranges(abs(x)), x), nullptr};
    return {sign(angle(abs(x), k(1)).h, x), within(x, 1e300)};
  }
  Result atan2(D y, D x) {
    D ay = abs(y), ax = abs(x);
    Pair a = angle(ay, ax);
    Pair left = sum(k(kHalfPi * 2), -a.h);
    D r = pick(lt(x, k(0)), left.h + (left.l + (k(half_pi().l * 2) - a.l)), a.h);
    Value* holds = b.CreateAnd(b.CreateAnd(lt(k(1e-150), ay), lt(ay, k(1e150))),
                               b.CreateAnd(lt(k(1e-150), ax), lt(ax, k(1e150))));
    return {sign(r, y), holds};
  }

 private:
  /// An angle less its quarter turns, and their number in the low bits. The first difference is exact; of the
  /// second, which may cancel all but the last bits, nothing is lost.
  Pair reduce(D x, Value** quarters) {
    D n = nearest(x, kTwoOverPi, quarters);
    D y = fma(-n, k(half_pi().h), x);
    D p = n * half_pi().l, rest = fma(-n, k(half_pi().l), p);
    D t = y - p;
    rest = fma(-n, k(single_ ? -0x1.ee59dap-50 : -0x1.f1976b7ed8fbcp-110), rest);
    return {t, ((y - t) - p) + rest};
  }
  /// The sine, or the cosine where q is odd.
  D quarter(Pair r, Value* q) { return pick(bit(q, 1), cos_part(r), sin_part(r)); }
  D turned(D v, Value* signs) {
    return from_bits(b.CreateXor(bits(v), b.CreateAnd(signs, i(uint64_t{1} << 63))));
  }
  D sin_part(Pair r) {
    D z = r.h * r.h;
    D curve =
        polynomial(z, std::array{-0.16666666666666632, 0.008333333333322484, -0.00019841269829852873,
                                 2.7557313705397643e-06, -2.5050760022623525e-08, 1.5896898515985805e-10});
    return r.h + fma(r.l, fma(z, k(-0.5), k(1)), r.h * (z * curve));
  }
  D cos_part(Pair r) {
    Pair z = product(r.h, r.h);
    D curve =
        polynomial(z.h, std::array{0.0416666666666666, -0.0013888888888874496, 2.4801587289691307e-05,
                                   -2.7557314407487464e-07, 2.087573018893973e-09, -1.135998098043689e-11});
    D half = z.h * 0.5;
    D w = k(1) - half;
    D rest = fma(z.h * z.h, curve, -fma(r.h, r.l, z.l * 0.5));
    return w + (((k(1) - w) - half) + rest);
  }

  struct Half {
    Value* small;  // |x| < 1/2
    D square;      // of x, or of the sine of half the angle: 1/4 at most
  };
  Half half_of(D x) {
    D a = abs(x);
    Value* small = lt(a, k(0.5));
    return {small, pick(small, x * x, fma(a, k(-0.5), k(0.5)))};
  }
  /// Twice what the root lacks, of the root's sign.
  D root_lost(D root, D square) { return fma(-root, root, square) * rough_inverse(root); }
  /// base - asin(v, or twice that of its half) - lost. The base, 0 or |base| >= |v|, is a multiple of pi/2.
  D base_less(D base, D v, D lost, D square) {
    D curve = series(
        square,
        std::array{0.1666666666666538, 0.07500000000343371, 0.044642856823325396, 0.03038195933493116,
                   0.022371753476927388, 0.017359771393646795, 0.013884598405988524, 0.01217326706119682,
                   0.006510945521559316, 0.019573575350165785, -0.016293462632019293, 0.031958499293590195},
        std::array{0.166667536, 0.0749525502, 0.0454754829, 0.0241553672, 0.0422057062});
    D s = base - v;
    D low = fma(base, k(half_pi().l / half_pi().h), (base - s) - v) - lost;
    return s + fma(-(v * square), curve, low);
  }

  /// The arcus tangent of a >= 0: of a, or of -1/a and pi/2 more.
  D two_ranges(D a) {
    a = pick(lt(k(0x1p40), a), k(0x1p40), a);
    Value* large = lt(k(1), a);
    D top = pick(large, k(-1), a), bottom = pick(large, a, k(1)), base = pick(large, k(half_pi().h), k(0));
    D t = top / bottom, z = t * t;
    D lost = fma(-t, bottom, top) * rough_inverse(bottom);
    // In one chain: two would take numbers of opposite signs from each other.
    constexpr std::array kSeries{-0.333332986, 0.19998534,    -0.142641008, 0.1095149,     -0.0840151161,
                                 0.0579257086, -0.0311471503, 0.0108986115, -0.00179013854};
    D curve = chain(z, kSeries, 0, 1);
    D s = base + t;
    D low = fma(base, k(half_pi().l / half_pi().h), (base - s) + t);
    low = fma(lost, fma(z, k(-0.5), k(1)), low);  // about the derivative
    const Pair r = sum_of(t * z, curve, s);
    return r.h + (r.l + low);
  }
  /// The angle of (x, y) for y, x > 0: within (0, pi/2).
  Pair angle(D y, D x) {
    Value* low = lt(y, x * kTanEighthPi);
    Value* high = lt(x, y * kTanEighthPi);
    Pair zero{k(0), k(0)};
    Pair top = pick(low, Pair{y, k(0)}, pick(high, Pair{-x, k(0)}, sum(y, -x)));
    Pair bottom = pick(low, Pair{x, k(0)}, pick(high, Pair{y, k(0)}, sum(y, x)));
    const Two half = half_pi();
    Pair base = pick(low, zero, pick(high, Pair{k(half.h), k(half.l)}, Pair{k(half.h / 2), k(half.l / 2)}));
    Pair t = over(top, bottom);
    D z = t.h * t.h;
    D curve = polynomial(
        z, std::array{-0.333333333333332, 0.19999999999953863, -0.14285714280226844, 0.11111110785044133,
                      -0.09090897804431204, 0.07692061056042782, -0.06663113644622888, 0.05847958919234884,
                      -0.05039616042760414, 0.038072388425602885, -0.017915674855925517});
    Pair v = sum(base.h, t.h);
    return tidy(v.h, v.l + (fma(t.h * z, curve, t.l) + base.l));
  }
};

}  // namespace

RareResult host_angle(Builder& b, Op op, std::span<Value* const> args) {
  Angles f(b, args[0]->getType());
  const Formulas::D x{args[0], &b};
  const auto result = [&] {
    switch (op) {
      case Op::Sin: return f.sin(x);
      case Op::Cos: return f.cos(x);
      case Op::Tan: return f.tan(x);
      case Op::Asin: return f.asin(x);
      case Op::Acos: return f.acos(x);
      case Op::Atan: return f.atan(x);
      default: return f.atan2(x, Formulas::D{args[1], &b});
    }
  }();
  return {result.value.v, result.holds == nullptr ? nullptr : b.CreateNot(result.holds)};
}

}  // namespace gk::codegen
