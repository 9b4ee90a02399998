// Note [Host functions]
// The host's transcendental functions are built in the IR, without branches but for rare cases. So the loop
// vectoriser takes them, and an element has the same bits in the vector body, in the remainder, in an eager
// run and in a graph, whatever it is fused with; a vector math library would not promise that. f64:
// host_math_log.cpp, host_math_angle.cpp and host_math_power.cpp, where the processor fuses multiplication
// and addition; elsewhere libm's. What a formula cannot hold in one double it holds in two, so that the
// result is within 1 ulp. Arguments outside a formula's range (zeros and infinities of logarithms, angles
// beyond 2^30, results near overflow …) are rare: a branch of their own asks libm. f32: some are computed in
// f64 lanes and rounded once: within 0.51 ulp. Others have the formulas of those three files in f32 lanes, of
// which a vector has twice as many: within 1 ulp. Their rare arguments, and processors that do not fuse, take
// the formulas in f64 lanes of this file, which hold everywhere. tests/unit/codegen_math_test.cpp and
// codegen_math_f64_test.cpp measure all of them against long double. Series are fitted on reduced arguments
// (near to the least largest error; coefficients rounded one by one), but for Taylor's in logarithms of f32
// and in pow. f16 and bf16 use the f32 ones and round again. fast_math changes nothing here. Sources: Cody
// and Waite 1980 (reduction); Payne and Hanek 1983 (large arguments).
#include "compiler/codegen/host_math.h"

#include <array>

#include "compiler/codegen/host_formulas.h"
#include "compiler/codegen/host_parts.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

class Single : public Formulas {
 public:
  using Formulas::Formulas;
  D wide(Value* f) { return {b.CreateFPExt(f, real_), &b}; }
  Value* narrow(D x, llvm::Type* to) { return b.CreateFPTrunc(x.v, to); }

  /// (e^r - 1) / r for |r| <= 0.3466, interpolated at Chebyshev's nodes, relative error 2.7e-10.
  D expm1_over(D r) {
    return polynomial(r, std::array{1.0, 0.5000000047139321, 0.16666666719021456, 0.04166635280102047,
                                    0.008333298473121765, 0.0013941116406063054, 0.00019899282811157944});
  }
  D exp2(D x) {
    x = clamp(x, -300, 300);
    Value* low;
    D r = (x - nearest(x, &low)) * kLn2;
    return fma(r, expm1_over(r), k(1)) * power_of_two(low);
  }
  D exp(D x) {
    x = clamp(x, -200, 200);
    Value* low;
    D r = fma(-nearest(x, kLog2e, &low), k(kLn2), x);
    return fma(r, expm1_over(r), k(1)) * power_of_two(low);
  }
  D expm1(D x) {
    D c = clamp(x, -200, 200);
    Value* low;
    D r = fma(-nearest(c, kLog2e, &low), k(kLn2), c);
    D scale = power_of_two(low);
    return sign(fma(scale, r * expm1_over(r), scale - 1.0), x);
  }

  struct Log {
    D exponent, fraction;  // x = 2^exponent * e^fraction
  };
  /// For positive finite normal x; the fraction's relative error is 2e-12.
  Log log_parts(D x) {
    const auto [exponent, z, power] = split(x);
    D f = (z - 1.0) / (z + 1.0);
    D series = polynomial(f * f, std::array{2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13});
    return {exponent, f * series};
  }
  D log_specials(D x, D r) {
    r = pick(eq(x, inf()), inf(), r);
    r = pick(eq(x, k(0)), -inf(), r);
    return pick(b.CreateFCmpULT(x.v, k(0).v), nan(), r);  // below zero, or NaN
  }
  D log(D x) {
    Log p = log_parts(x);
    return log_specials(x, fma(p.exponent, k(kLn2), p.fraction));
  }
  D log2(D x) {
    Log p = log_parts(x);
    return log_specials(x, fma(p.fraction, k(kLog2e), p.exponent));
  }
  D log10(D x) {
    Log p = log_parts(x);
    return log_specials(x, fma(p.exponent, k(kLn2), p.fraction) * 0x1.bcb7b1526e50ep-2);
  }
  D log1p(D x) {
    D u = x + 1.0;
    D lost = (x - (u - 1.0)) / u;  // what the addition rounded off
    Log p = log_parts(u);
    return keep_zero(x, log_specials(u, fma(p.exponent, k(kLn2), p.fraction) + lost));
  }

  D sinh(D x) {
    D e = expm1(abs(x));
    return sign((e + e / (e + 1.0)) * 0.5, x);
  }
  D cosh(D x) {
    D e = exp(abs(x));
    return (e + k(1) / e) * 0.5;
  }
  /// e / (e + 2) of e = expm1(2a). In place of 2a, a goes through: e^(2r) = 2^n e^(2r') with r' of half the
  /// size, and (e^(2r') - 1) / r' is interpolated at Chebyshev's nodes, |r'| <= 0.1733, relative error 2e-10.
  D tanh(D x) {
    D a = pick(lt(k(30), abs(x)), k(30), abs(x));  // NaN stays
    Value* low;
    D r = fma(-nearest(a, 2 * kLog2e, &low), k(kLn2 / 2), a);
    D q = polynomial(r, std::array{2.0, 2.0000000188557285, 1.3333333375217165, 0.6666616448163275,
                                   0.2666655511398965, 0.08922314499880354, 0.02547108199828217});
    D scale = power_of_two(low);
    D e = fma(scale, r * q, scale - 1.0);
    return sign(e / (e + 2.0), x);
  }
  D asinh(D x) {
    D a = abs(x);
    D s = a * a;
    D r = log1p(a + s / (sqrt(s + 1.0) + 1.0));
    return sign(pick(eq(a, inf()), a, r), x);
  }
  D acosh(D x) {
    D r = log1p((x - 1.0) + sqrt((x - 1.0) * (x + 1.0)));
    return pick(lt(x, k(1)), nan(), r);
  }
  D atanh(D x) {
    D a = abs(x);
    return sign(log1p((a * 2.0) / (k(1) - a)) * 0.5, x);
  }

  struct Angle {
    D rest;
    Value* quarters;  // in the low two bits
  };
  static constexpr double kNear = 0x1p28;
  /// An angle less its quarter turns, below kNear.
  Angle reduce_near(D x) {
    Value* low;
    // Two parts of pi/2; the first has 25 bits, so its product is exact up to 2^28 quarter turns.
    D n = nearest(x, kTwoOverPi, &low);
    return {fma(-n, k(1.58932547735281966916e-08), fma(-n, k(1.57079631090164184570e+00), x)), low};
  }
  /// The same from kNear on.
  Angle reduce_far(D x) {
    // The needed bits of 2/pi times the 24-bit mantissa, in integers: quarter turns times 2^62 mod
    // 2^64.
    constexpr uint64_t kBits[4] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
                                   0xfe5163abdebbc561};
    Value* magnitude = bits(abs(x));
    Value* mantissa = b.CreateOr(b.CreateAnd(b.CreateLShr(magnitude, 29), i(0x7fffff)), i(0x800000));
    Value* shift = b.CreateAnd(b.CreateSub(b.CreateLShr(magnitude, 52), i(1023 + 25)), i(127));
    Value* second = b.CreateICmpNE(b.CreateAnd(shift, i(64)), i(0));
    Value* within = b.CreateAnd(shift, i(63));
    auto word = [&](int w) { return b.CreateSelect(second, i(kBits[w + 1]), i(kBits[w])); };
    auto funnel = [&](Value* high, Value* below) {
      return b.CreateIntrinsic(Intrinsic::fshl, {int_}, {high, below, within});
    };
    Value* top = funnel(word(0), word(1));
    Value* rest = b.CreateLShr(funnel(word(1), word(2)), 32);
    Value* turn = b.CreateAdd(b.CreateMul(mantissa, top), b.CreateLShr(b.CreateMul(mantissa, rest), 32));
    Value* q = b.CreateLShr(b.CreateAdd(turn, i(uint64_t{1} << 61)), 62);
    Value* left = b.CreateSub(turn, b.CreateShl(q, 62));
    D far = D{b.CreateSIToFP(left, real_), &b} * (kHalfPi * 0x1p-62);
    Value* minus = b.CreateFCmpOLT(x.v, k(0).v);
    far = pick(minus, -far, far);
    return {far, b.CreateSelect(minus, b.CreateNeg(q), q)};
  }
  D sin_part(D r) {
    return r * polynomial(r * r, std::array{0.9999999999956792, -0.16666666631620145, 0.008333328784578339,
                                            -0.00019839202702840318, 2.7173491825990705e-06});
  }
  D cos_part(D r) {
    return polynomial(r * r,
                      std::array{0.9999999999999445, -0.49999999999351596, 0.041666666543964025,
                                 -0.0013888880395805635, 2.479892906715655e-05, -2.7173446028739086e-07});
  }
  D finite_only(D x, D r) { return pick(lt(abs(x), inf()), r, nan()); }
  D sin(D x, Angle a, uint64_t ahead) {  // `ahead` quarter turns further: 1 makes it the cosine
    Value* q = b.CreateAdd(a.quarters, i(ahead));
    D v = pick(bit(q, 1), cos_part(a.rest), sin_part(a.rest));
    return finite_only(x, pick(bit(q, 2), -v, v));
  }
  /// The sine or cosine of an angle below kNear: less its half turns, one odd series serves.
  D sin_near(D x, bool cosine) {
    Value* low;
    D turns = cosine ? fma(x, k(kTwoOverPi / 2), k(-0.5)) : x;
    D n = cosine ? nearest(turns, &low) : nearest(x, kTwoOverPi / 2, &low);
    if (cosine) n = n + 0.5, low = b.CreateAdd(low, i(1));
    D r = fma(-n, k(2 * 1.58932547735281966916e-08), fma(-n, k(2 * 1.57079631090164184570e+00), x));
    D v = r * polynomial(r * r, std::array{0.9999999999830058, -0.16666666616987122, 0.008333330979635697,
                                           -0.00019840861780092325, 2.7525296935155038e-06,
                                           -2.3889646067412233e-08});
    return from_bits(b.CreateXor(bits(v), b.CreateShl(low, 63)));  // odd half turns turn the sign
  }
  D tan(D x) {
    const Angle near = reduce_near(x), far = reduce_far(x);
    Value* small = lt(abs(x), k(kNear));
    const Angle a{pick(small, near.rest, far.rest), b.CreateSelect(small, near.quarters, far.quarters)};
    D s = sin_part(a.rest), c = cos_part(a.rest);
    Value* odd = bit(a.quarters, 1);
    return finite_only(x, pick(odd, -c, s) / pick(odd, s, c));
  }

  /// The angle of (x, y) for y, x >= 0 and not both 0: within [0, pi/2].
  D angle(D y, D x) {
    Value* low = lt(y, x * kTanEighthPi);
    Value* high = lt(x, y * kTanEighthPi);
    D top = pick(low, y, pick(high, -x, y - x));
    D bottom = pick(low, x, pick(high, y, y + x));
    D base = pick(low, k(0), pick(high, k(kHalfPi), k(kHalfPi / 2)));
    D t = top / bottom;
    D series = polynomial(
        t * t, std::array{1.0, -1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17,
                          -1.0 / 19, 1.0 / 21, -1.0 / 23, 1.0 / 25, -1.0 / 27});
    return fma(t, series, base);
  }
  D atan(D x) { return sign(angle(abs(x), k(1)), x); }
  D asin(D x) {
    D a = abs(x);
    return sign(angle(a, sqrt((k(1) - a) * (a + 1.0))), x);
  }
  D acos(D x) {
    D r = angle(sqrt(k(1) - x), sqrt(x + 1.0)) * 2.0;
    return pick(eq(x, k(1)), k(0), r);
  }
  D atan2(D y, D x) {
    D ay = abs(y), ax = abs(x);
    Value* both = b.CreateAnd(eq(ay, inf()), eq(ax, inf()));
    D r = angle(pick(both, k(1), ay), pick(both, k(1), ax));
    r = pick(eq(ay, k(0)), k(0), r);
    Value* left = b.CreateICmpSLT(bits(x), i(0));
    r = sign(pick(left, k(kHalfPi * 2) - r, r), y);
    return pick(b.CreateFCmpUNO(x.v, y.v), nan(), r);
  }

  D pow(D x, D y) {
    D ax = abs(x);
    D r = exp2(y * log2(ax));
    Value* integer = eq(floor(y), y);
    D half = y * 0.5;
    Value* even = eq(floor(half), half);
    Value* odd = b.CreateAnd(integer, b.CreateNot(even));
    Value* minus = b.CreateICmpSLT(bits(x), i(0));
    r = pick(b.CreateAnd(odd, minus), -r, r);
    // A fractional power of a negative number, but not of -inf, which has its limits as zero has.
    r = pick(b.CreateAnd(b.CreateAnd(lt(x, k(0)), lt(ax, inf())), b.CreateNot(integer)), nan(), r);
    r = pick(b.CreateAnd(eq(x, k(-1)), eq(abs(y), inf())), k(1), r);
    r = pick(b.CreateFCmpUNO(x.v, y.v), nan(), r);
    return pick(b.CreateOr(eq(x, k(1)), eq(y, k(0))), k(1), r);
  }

  /// From y within 4 % of a^(-1/3), by a series and a step for a y^2.
  D cbrt(D x) {
    D a = abs(x);
    Value* third = b.CreateMul(b.CreateLShr(bits(a), 32), i(0x55555555));
    D y = from_bits(b.CreateSub(i(uint64_t{0x553f0000} << 32), third));
    D left = k(1) - (a * y) * (y * y);
    y = fma(y * left,
            polynomial(left, std::array{0.3333253762686724, 0.22220795240545216, 0.1750910618705695,
                                        0.1466249813774663}),
            y);
    D g = a * y * y;
    g = fma(g * (2.0 / 3), k(1) - g * y, g);
    return pick(b.CreateAnd(lt(k(0), a), lt(a, inf())), sign(g, x), x);
  }

  D erf(D x) {
    D a = abs(x);
    D s = clamp(a, 0, 1);
    D near =
        s *
        polynomial(s * s,
                   std::array{0x1.20dd750429b6dp0, -0x1.20dd750429b6dp0 / 3, 0x1.20dd750429b6dp0 / (2 * 5),
                              -0x1.20dd750429b6dp0 / (6 * 7), 0x1.20dd750429b6dp0 / (24 * 9),
                              -0x1.20dd750429b6dp0 / (120 * 11), 0x1.20dd750429b6dp0 / (720 * 13),
                              -0x1.20dd750429b6dp0 / (5040 * 15), 0x1.20dd750429b6dp0 / (40320 * 17.0),
                              -0x1.20dd750429b6dp0 / (362880 * 19.0), 0x1.20dd750429b6dp0 / (3628800 * 21.0),
                              -0x1.20dd750429b6dp0 / (39916800 * 23.0)});
    // erfc(x) e^(x^2) in t = 1 / (1 + x/2) for x in [0.9, 4]: error 2.4e-12; beyond 4, erf is 1 in f32.
    D c = clamp(a, 0, 4);
    D t = k(1) / (c * 0.5 + 1.0);
    D tail = polynomial(
        t, std::array{3.13913108998913697e-6, 0.2819681078491865, 0.283953169333300986, 0.23223893326995191,
                      0.246881096803972455, -0.138770718681392991, 0.457551592320822191,
                      -0.663270758505310927, 0.381230411341348863, -0.0818081027545745413});
    D far = k(1) - tail * exp(-(c * c));
    return sign(pick(lt(a, k(1)), near, far), x);
  }
};

/// `usual`, or `other` where an element is rare: computed for all if any is.
Value* unless_rare(Builder& b, Value* rare, Value* usual, llvm::function_ref<Value*()> other) {
  Value* any = rare->getType()->isVectorTy() ? b.CreateOrReduce(rare) : rare;
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* fn = before->getParent();
  auto* some = llvm::BasicBlock::Create(b.getContext(), "some", fn);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "done", fn);
  b.CreateCondBr(any, some, done);
  b.SetInsertPoint(some);
  Value* mixed = b.CreateSelect(rare, other(), usual);
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* result = b.CreatePHI(usual->getType(), 2);
  result->addIncoming(usual, before);
  result->addIncoming(mixed, some);
  return result;
}

/// Those that f64 lanes would be too slow for.
bool in_f32_lanes(Op op) {
  switch (op) {
    case Op::Exp2:
    case Op::Expm1:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Tan:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Sinh:
    case Op::Cosh:
    case Op::Tanh:
    case Op::Asinh:
    case Op::Acosh:
    case Op::Atanh:
    case Op::Cbrt: return true;
    default: return false;
  }
}

RareResult on_its_own_lanes(Builder& b, Op op, std::span<Value* const> args) {
  switch (op) {
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Acosh:
    case Op::Asinh:
    case Op::Atanh: return host_logarithm(b, op, args[0]);
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Atan2: return host_angle(b, op, args);
    default: return host_power(b, op, args);
  }
}

}  // namespace

bool has_rare_cases(Op op, bool single, bool fused) {
  if (op == Op::Asin || op == Op::Acos || op == Op::Tanh) return false;
  if (!single || op == Op::Sin || op == Op::Cos || op == Op::Tan) return true;
  return fused && op != Op::Atan && in_f32_lanes(op);
}

bool has_f64_formula(Op op) {
  return in_f32_lanes(op) || op == Op::Exp || op == Op::Sin || op == Op::Cos || op == Op::Pow ||
         op == Op::Atan2;
}
bool has_f32_formula(Op op) { return op == Op::Erf || has_f64_formula(op); }

RareResult host_math_f64(Builder& b, Op op, std::span<Value* const> args) {
  return on_its_own_lanes(b, op, args);
}

Value* host_math_f32(Builder& b, Op op, std::span<Value* const> args, bool fused) {
  Single f(b, args[0]->getType()->getWithNewType(b.getDoubleTy()), fused);
  using D = Formulas::D;
  const auto widely = [&] {
    const D x = f.wide(args[0]);
    const D result = [&]() -> D {
      switch (op) {
        case Op::Exp: return f.exp(x);
        case Op::Exp2: return f.exp2(x);
        case Op::Expm1: return f.expm1(x);
        case Op::Log: return f.log(x);
        case Op::Log2: return f.log2(x);
        case Op::Log10: return f.log10(x);
        case Op::Log1p: return f.log1p(x);
        case Op::Sin: return f.sin(x, f.reduce_far(x), 0);
        case Op::Cos: return f.sin(x, f.reduce_far(x), 1);
        case Op::Tan: return f.tan(x);
        case Op::Asin: return f.asin(x);
        case Op::Acos: return f.acos(x);
        case Op::Atan: return f.atan(x);
        case Op::Sinh: return f.sinh(x);
        case Op::Cosh: return f.cosh(x);
        case Op::Tanh: return f.tanh(x);
        case Op::Asinh: return f.asinh(x);
        case Op::Acosh: return f.acosh(x);
        case Op::Atanh: return f.atanh(x);
        case Op::Cbrt: return f.cbrt(x);
        case Op::Erf: return f.erf(x);
        case Op::Pow: return f.pow(x, f.wide(args[1]));
        default: return f.atan2(x, f.wide(args[1]));
      }
    }();
    return f.narrow(result, args[0]->getType());
  };
  if (op == Op::Sin || op == Op::Cos) {
    const D x = f.wide(args[0]);
    Value* large = b.CreateNot(f.lt(f.abs(x), f.k(Single::kNear)));
    Value* near = f.narrow(f.sin_near(x, op == Op::Cos), args[0]->getType());
    return unless_rare(b, large, near, widely);
  }
  if (!fused || !in_f32_lanes(op)) return widely();
  const RareResult usual = on_its_own_lanes(b, op, args);
  return usual.rare == nullptr ? usual.value : unless_rare(b, usual.rare, usual.value, widely);
}

}  // namespace gk::codegen
