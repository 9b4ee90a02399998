#include "runtime/base/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace gk {
namespace {

struct Traits {
  std::string_view name;
  int size;
  bool is_float, is_int, is_signed;
};

constexpr std::array<Traits, kDTypeCount> kTraits{{
    {"bool", 1, false, false, false},
    {"i8", 1, false, true, true},
    {"i16", 2, false, true, true},
    {"i32", 4, false, true, true},
    {"i64", 8, false, true, true},
    {"u8", 1, false, true, false},
    {"u16", 2, false, true, false},
    {"u32", 4, false, true, false},
    {"u64", 8, false, true, false},
    {"f16", 2, true, false, true},
    {"bf16", 2, true, false, true},
    {"f32", 4, true, false, true},
    {"f64", 8, true, false, true},
}};

const Traits& traits(DType t) { return kTraits[static_cast<size_t>(t)]; }

// A 16-bit float with `mant` fraction bits, rounded from f64 once, to nearest even. f32 sources are exact
// in f64, so this one function serves them too.
uint16_t narrow(double d, int mant) {
  const int bias = (1 << (14 - mant)) - 1;  // 15 - mant exponent bits
  const uint64_t bits = std::bit_cast<uint64_t>(d);
  const auto sign = static_cast<uint16_t>(bits >> 63 << 15);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t frac = bits & ((uint64_t{1} << 52) - 1);
  const auto inf = static_cast<uint16_t>((2 * bias + 1) << mant);
  if (biased == 0x7ff) {
    if (frac == 0) return sign | inf;
    const auto payload = static_cast<uint16_t>(frac >> (52 - mant));
    return static_cast<uint16_t>(sign | inf | payload | (1 << (mant - 1)));  // quiet
  }
  if (biased == 0) return sign;  // f64 subnormals are far below half of the smallest 16-bit float
  const int e = biased - 1023;
  const int min_normal = 1 - bias;
  int shift = 52 - mant;
  if (e < min_normal) shift += min_normal - e;
  if (shift >= 54) return sign;
  const uint64_t sig = frac | uint64_t{1} << 52;
  uint64_t q = sig >> shift;
  const uint64_t rest = sig & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  if (rest > half || (rest == half && (q & 1))) ++q;
  // A carry out of the fraction moves into the exponent by itself.
  uint64_t out = q;
  if (e >= min_normal) out = (static_cast<uint64_t>(e + bias - 1) << mant) + q;
  return out >= inf ? static_cast<uint16_t>(sign | inf) : static_cast<uint16_t>(sign | out);
}

int64_t wrap(int64_t v, DType t) {
  switch (t) {
    case DType::Bool: return v != 0;
    case DType::I8: return static_cast<int8_t>(v);
    case DType::I16: return static_cast<int16_t>(v);
    case DType::I32: return static_cast<int32_t>(v);
    case DType::U8: return static_cast<uint8_t>(v);
    case DType::U16: return static_cast<uint16_t>(v);
    case DType::U32: return static_cast<uint32_t>(v);
    default: return v;
  }
}

int64_t saturate(double v, DType t) {
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  if (t == DType::U64) {
    if (v <= 0) return 0;
    if (v >= 0x1p64) return -1;  // all ones: the largest u64
    return static_cast<int64_t>(static_cast<uint64_t>(v));
  }
  const int width = bits(t);
  const double low = is_signed(t) ? -std::ldexp(1.0, width - 1) : 0.0;
  const double past = std::ldexp(1.0, is_signed(t) ? width - 1 : width);
  if (v < low) v = low;
  if (v >= past) {
    if (t == DType::I64) return std::numeric_limits<int64_t>::max();
    v = past - 1;
  }
  return static_cast<int64_t>(v);
}

// An integer as f64 rounded to odd: a later rounding to 16 bits is then the only one.
double to_odd_double(int64_t v, bool is_unsigned) {
  const bool negative = !is_unsigned && v < 0;
  auto mag = static_cast<uint64_t>(v);
  if (negative) mag = 0 - mag;
  const int width = 64 - std::countl_zero(mag);
  if (width > 53) {
    const int drop = width - 53;
    const bool sticky = (mag & ((uint64_t{1} << drop) - 1)) != 0;
    mag = (mag >> drop | (sticky ? 1 : 0)) << drop;
  }
  const auto d = static_cast<double>(mag);
  return negative ? -d : d;
}

double round_to(double v, DType t) {
  switch (t) {
    case DType::F16: return f16_to_f32(f64_to_f16(v));
    case DType::BF16: return bf16_to_f32(f64_to_bf16(v));
    case DType::F32: return static_cast<double>(static_cast<float>(v));
    default: return v;
  }
}

double int_to_float(int64_t v, bool is_unsigned, DType t) {
  if (t == DType::F64)
    return is_unsigned ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
  if (t == DType::F32)
    return is_unsigned ? static_cast<float>(static_cast<uint64_t>(v)) : static_cast<float>(v);
  return round_to(to_odd_double(v, is_unsigned), t);
}

}  // namespace

int64_t size_bytes(DType t) { return traits(t).size; }
std::string_view name(DType t) { return traits(t).name; }
bool is_float(DType t) { return traits(t).is_float; }
bool is_integer(DType t) { return traits(t).is_int; }
bool is_signed(DType t) { return traits(t).is_int && traits(t).is_signed; }
int bits(DType t) { return traits(t).size * 8; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (kTraits[static_cast<size_t>(i)].name == text) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  if (is_float(a)) {
    if (bits(a) == bits(b)) return DType::F32;  // f16 with bf16
    return bits(a) > bits(b) ? a : b;
  }
  if (is_signed(a) == is_signed(b)) return bits(a) > bits(b) ? a : b;
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (bits(s) > bits(u)) return s;
  switch (u) {
    case DType::U8: return DType::I16;
    case DType::U16: return DType::I32;
    case DType::U32: return DType::I64;
    default: return std::nullopt;
  }
}

DType accumulator(DType t) {
  if (t == DType::F16 || t == DType::BF16) return DType::F32;
  return is_bool(t) ? DType::I64 : t;
}

float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t e = h >> 10 & 31, m = h & 0x3ff;
  if (e == 31) return std::bit_cast<float>(sign | 0x7f800000 | m << 13);
  if (e != 0) return std::bit_cast<float>(sign | (e + 112) << 23 | m << 13);
  const float small = static_cast<float>(m) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(small) | sign);
}
float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }
uint16_t f64_to_f16(double d) { return narrow(d, 10); }
uint16_t f64_to_bf16(double d) { return narrow(d, 7); }
uint16_t f32_to_f16(float f) { return narrow(static_cast<double>(f), 10); }
uint16_t f32_to_bf16(float f) { return narrow(static_cast<double>(f), 7); }

Scalar Scalar::of_int(int64_t v, DType t) {
  if (gk::is_float(t)) return {t, 0, int_to_float(v, false, t)};
  return {t, wrap(v, t), 0};
}

Scalar Scalar::of_float(double v, DType t) {
  if (gk::is_float(t)) return {t, 0, round_to(v, t)};
  if (is_bool(t)) return of_bool(v != 0);
  return {t, saturate(v, t), 0};
}

double Scalar::as_double() const {
  if (is_float()) return f;
  return int_to_float(i, dtype == DType::U64, DType::F64);
}

Scalar Scalar::cast(DType to) const {
  if (is_float()) return of_float(f, to);
  if (gk::is_float(to)) return {to, 0, int_to_float(i, dtype == DType::U64, to)};
  return {to, wrap(i, to), 0};
}

void Scalar::store(void* out) const {
  switch (dtype) {
    case DType::F64: std::memcpy(out, &f, 8); return;
    case DType::F32: {
      const auto v = static_cast<float>(f);
      std::memcpy(out, &v, 4);
      return;
    }
    case DType::F16:
    case DType::BF16: {
      const uint16_t v = dtype == DType::F16 ? f64_to_f16(f) : f64_to_bf16(f);
      std::memcpy(out, &v, 2);
      return;
    }
    default: {
      // Little-endian: the low bytes of the wrapped value come first (both back ends are).
      static_assert(std::endian::native == std::endian::little);
      const int64_t v = wrap(i, dtype);
      std::memcpy(out, &v, static_cast<size_t>(size_bytes(dtype)));
    }
  }
}

Scalar Scalar::load(DType t, const void* in) {
  switch (t) {
    case DType::F64: {
      double v = 0;
      std::memcpy(&v, in, 8);
      return {t, 0, v};
    }
    case DType::F32: {
      float v = 0;
      std::memcpy(&v, in, 4);
      return {t, 0, static_cast<double>(v)};
    }
    case DType::F16:
    case DType::BF16: {
      uint16_t v = 0;
      std::memcpy(&v, in, 2);
      return {t, 0, static_cast<double>(t == DType::F16 ? f16_to_f32(v) : bf16_to_f32(v))};
    }
    default: {
      int64_t v = 0;
      std::memcpy(&v, in, static_cast<size_t>(size_bytes(t)));
      return {t, wrap(v, t), 0};
    }
  }
}

}  // namespace gk
