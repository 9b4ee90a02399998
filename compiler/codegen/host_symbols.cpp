#include "compiler/codegen/host_symbols.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "compiler/ir/op_table.h"
#include "runtime/base/dtype.h"

// Of the compiler's run-time library: 128-bit arithmetic, which LLVM uses to count the trips of loops.
extern "C" {
__extension__ typedef __int128 gk_int128;
__extension__ typedef unsigned __int128 gk_uint128;
gk_int128 __multi3(gk_int128, gk_int128);
gk_uint128 __udivti3(gk_uint128, gk_uint128);
gk_int128 __divti3(gk_int128, gk_int128);
gk_uint128 __umodti3(gk_uint128, gk_uint128);
gk_int128 __modti3(gk_int128, gk_int128);
}

namespace gk::codegen {

namespace {

struct Symbol {
  std::string_view name;
  void* address;
};

template <class F>
void* address_of(F* f) {
  return reinterpret_cast<void*>(f);
}
using F1 = double(double);
using F2 = double(double, double);

// Conversions that processors without such instructions leave to the compiler's run-time library. 16-bit
// floats travel in vector registers; bf16 as _Float16 does, and g++ 12 has no type of its own for it.
_Float16 as_half(uint16_t bits) { return std::bit_cast<_Float16>(bits); }
uint16_t bits_of(_Float16 h) { return std::bit_cast<uint16_t>(h); }
_Float16 f32_to_half(float f) { return as_half(f32_to_f16(f)); }
_Float16 f64_to_half(double d) { return as_half(f64_to_f16(d)); }
float half_to_f32(_Float16 h) { return f16_to_f32(bits_of(h)); }
_Float16 f32_to_bfloat(float f) { return as_half(f32_to_bf16(f)); }
_Float16 f64_to_bfloat(double d) { return as_half(f64_to_bf16(d)); }

// Note [Element-wise copies]
// Plain accesses that other points of a kernel may race with are unordered atomics, and LLVM turns a loop
// that copies by them into one call of these. No element may be torn, so they go element by element.
template <class T>
void copy_elements(void* to, const void* from, size_t size_bytes) {
  auto* d = static_cast<T*>(to);
  const auto* s = static_cast<const T*>(from);
  for (size_t i = 0; i < size_bytes / sizeof(T); ++i)
    __atomic_store_n(d + i, __atomic_load_n(s + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}
template <class T>
void move_elements(void* to, const void* from, size_t size_bytes) {
  if (to <= from) return copy_elements<T>(to, from, size_bytes);
  auto* d = static_cast<T*>(to);
  const auto* s = static_cast<const T*>(from);
  for (size_t i = size_bytes / sizeof(T); i-- > 0;)
    __atomic_store_n(d + i, __atomic_load_n(s + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}
template <class T>
void set_elements(void* to, uint8_t byte, size_t size_bytes) {
  T value = 0;
  std::memset(&value, byte, sizeof value);
  for (size_t i = 0; i < size_bytes / sizeof(T); ++i)
    __atomic_store_n(static_cast<T*>(to) + i, value, __ATOMIC_RELAXED);
}

/// Given by address, not looked up: a program that embeds gk may well carry
/// another libm symbol of the same name.
const Symbol kSymbols[] = {
    {"floor", address_of<F1>(std::floor)},
    {"ceil", address_of<F1>(std::ceil)},
    {"trunc", address_of<F1>(std::trunc)},
    {"roundeven", address_of<F1>(::roundeven)},
    {"fmod", address_of<F2>(std::fmod)},
    {"fmodf", address_of<float(float, float)>(::fmodf)},
    {"floorf", address_of<float(float)>(::floorf)},
    {"ceilf", address_of<float(float)>(::ceilf)},
    {"truncf", address_of<float(float)>(::truncf)},
    {"roundevenf", address_of<float(float)>(::roundevenf)},
    {"fma", address_of<double(double, double, double)>(::fma)},
    {"fmaf", address_of<float(float, float, float)>(::fmaf)},
    {"__truncsfhf2", address_of(f32_to_half)},
    {"__truncdfhf2", address_of(f64_to_half)},
    {"__extendhfsf2", address_of(half_to_f32)},
    {"__truncsfbf2", address_of(f32_to_bfloat)},
    {"__truncdfbf2", address_of(f64_to_bfloat)},
    {"__llvm_memcpy_element_unordered_atomic_1", address_of(copy_elements<uint8_t>)},
    {"__llvm_memcpy_element_unordered_atomic_2", address_of(copy_elements<uint16_t>)},
    {"__llvm_memcpy_element_unordered_atomic_4", address_of(copy_elements<uint32_t>)},
    {"__llvm_memcpy_element_unordered_atomic_8", address_of(copy_elements<uint64_t>)},
    {"__llvm_memmove_element_unordered_atomic_1", address_of(move_elements<uint8_t>)},
    {"__llvm_memmove_element_unordered_atomic_2", address_of(move_elements<uint16_t>)},
    {"__llvm_memmove_element_unordered_atomic_4", address_of(move_elements<uint32_t>)},
    {"__llvm_memmove_element_unordered_atomic_8", address_of(move_elements<uint64_t>)},
    {"__llvm_memset_element_unordered_atomic_1", address_of(set_elements<uint8_t>)},
    {"__llvm_memset_element_unordered_atomic_2", address_of(set_elements<uint16_t>)},
    {"__llvm_memset_element_unordered_atomic_4", address_of(set_elements<uint32_t>)},
    {"__llvm_memset_element_unordered_atomic_8", address_of(set_elements<uint64_t>)},
    {"__multi3", address_of(__multi3)},
    {"__udivti3", address_of(__udivti3)},
    {"__divti3", address_of(__divti3)},
    {"__umodti3", address_of(__umodti3)},
    {"__modti3", address_of(__modti3)},
    {"memcpy", address_of<void*(void*, const void*, size_t)>(::memcpy)},
    {"memset", address_of<void*(void*, int, size_t)>(::memset)},
    {"memmove", address_of<void*(void*, const void*, size_t)>(::memmove)},
};

}  // namespace

void* host_symbol(std::string_view name) {
  for (const Symbol& s : kSymbols)
    if (name == s.name) return s.address;
  for (const ir::OpInfo& i : ir::op_table())
    if (i.library.name != nullptr && name == i.library.name)
      return i.library.unary != nullptr ? address_of(i.library.unary) : address_of(i.library.binary);
  return nullptr;
}

}  // namespace gk::codegen
