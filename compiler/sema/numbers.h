// What values without a dtype of their own are to arithmetic. Owns the questions alone; the answers to what
// becomes of them are in Evaluator (numbers.cpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/sema/value.h"
#include "runtime/base/error.h"

namespace gk::sema {

/// A host number, a bool of the host, or such a number kept on the device.
bool is_number(const Value& v);

/// A host integer that counts or points to something. Errors: E0203 where it is over 2**63 - 1.
Result<int64_t> small_integer(const Value& v, std::string_view what, Span span);

/// What checking can tell apart about a value: "f32[4]", "a float", "f32 (host)", parts in brackets.
std::string form_text(const Value& v);

/// The dtype of an operand, or the kind (I64, F64) of one that takes what it meets.
struct Adopting {
  DType dtype;
  bool weak;
  bool literal;  // of an array
};
std::optional<Adopting> dtype_of(const Value& v);

}  // namespace gk::sema
