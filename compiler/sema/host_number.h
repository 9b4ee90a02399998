// Host numbers as plain values: exact integers from -2**63 to 2**64 - 1, floats of 64 bits, and bools. Owns
// their arithmetic and what becomes of one that meets a dtype, for arrays, kernels and whatever else reads
// numbers. Promises that an integer is exact or an error. Not for names, arrays or messages about them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compiler/ir/ops.h"
#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace gk::sema {

/// `s` without its dtype: an integer is of I64, or of U64 where I64 does not hold it; a float is of F64.
Scalar host_number(const Scalar& s);
/// Nothing where it is out of range.
std::optional<Scalar> host_integer(__int128 v);
/// The value of an integer or a bool, of any dtype.
__int128 exact(const Scalar& integer);
/// What `op` gives for numbers of these dtypes, before they are known: I64, F64 or Bool.
DType host_dtype(ir::Op op, std::span<const DType> operands);

/// Integers stay exact; with a float among them, all are floats. Bools are given to what takes bools alone.
/// Errors, without a span: E0203 where an integer is out of range, E0802.
Result<Scalar> host_apply(ir::Op op, std::span<const Scalar> args);

/// The number in dtype `t`, which it meets. Errors, without a span: E0201 (bool against number), E0203 (a
/// float where an integer must stand, a number out of range).
Result<Scalar> host_fit(const Scalar& number, DType t);

/// `pi`, `euler`, `inf`, `nan`.
std::optional<Scalar> named_constant(std::string_view name);

/// The number that a text is, as in "-3" and "1e-5"; nothing where it is none. An integer out of range is
/// the float next to it.
std::optional<Scalar> number_from(const std::string& text);
/// Whether the text is an integer, in range or not.
bool is_integer_text(std::string_view text);
/// "-3", "0.5", "18446744073709551615"
std::string number_text(const Scalar& s);
/// "a bool", "an integer", "a float"
std::string_view kind_text(DType t);

}  // namespace gk::sema
