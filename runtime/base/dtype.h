// Element types. Owns the DType enumeration, its traits, promotion, and the 16-bit float
// conversions. Promises one definition of promotion and of number conversion for every layer.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gk {

enum class DType : uint8_t { Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64 };
inline constexpr int kDTypeCount = 13;

/// Bytes of one element (bool is 1).
int64_t size_bytes(DType t);
/// "f32", "bool", …
std::string_view name(DType t);
/// Inverse of name(); nullopt when `text` names no dtype.
std::optional<DType> parse_dtype(std::string_view text);
bool is_float(DType t);
bool is_integer(DType t);  // signed or unsigned, not bool
bool is_signed(DType t);   // I8…I64
inline bool is_bool(DType t) { return t == DType::Bool; }
/// Bits of an integer or float dtype (bool: 8).
int bits(DType t);

/// Array API promotion; integer with float gives the float; f16 with bf16 gives f32; bool with a
/// number gives the number; u64 with a signed integer gives f64 is NOT done: nullopt (an error).
/// Source: Python Array API standard 2023.12, "Type promotion rules".
std::optional<DType> promote(DType a, DType b);
/// The dtype that sums and products of `t` accumulate in: f16/bf16 -> f32, bool -> i64, else t.
DType accumulator(DType t);

/// IEEE 754 binary16 / bfloat16 conversions, round to nearest even, NaN kept.
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
uint16_t f64_to_f16(double d);  // one rounding
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float f);
uint16_t f64_to_bf16(double d);  // one rounding

/// A host scalar with its dtype. Integers and bool live in `i` (u64 as the same bits), floats in `f`
/// (already rounded to the dtype).
struct Scalar {
  DType dtype = DType::I64;
  int64_t i = 0;
  double f = 0;

  static Scalar of_bool(bool v) { return {DType::Bool, v ? 1 : 0, 0}; }
  static Scalar of_int(int64_t v, DType t = DType::I64);
  static Scalar of_float(double v, DType t = DType::F32);
  bool is_float() const { return gk::is_float(dtype); }
  double as_double() const;
  /// Language conversion: float to integer truncates and saturates, NaN gives 0; integers wrap;
  /// to bool is "not zero"; to float rounds once.
  Scalar cast(DType to) const;
  /// Writes size_bytes(dtype) bytes.
  void store(void* out) const;
  static Scalar load(DType t, const void* in);
  bool operator==(const Scalar& o) const {
    return dtype == o.dtype && i == o.i && std::bit_cast<uint64_t>(f) == std::bit_cast<uint64_t>(o.f);
  }
};

}  // namespace gk
