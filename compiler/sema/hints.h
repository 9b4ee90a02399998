// What the `help:` lines of arithmetic say. Owns the advice alone: whether there is a mistake is decided
// where it is made, in arith. Promises that what is advised has a meaning for these operands. Not for
// messages.
#pragma once

#include <string>

#include "compiler/sema/value.h"
#include "runtime/base/error.h"

namespace gk::sema {

/// `e`, E0203, with what can be written instead of the host number `number`, which meets the dtype `t` of
/// `other`, or of a place or a declared type.
Error fitting_help(Error e, const Scalar& number, DType t, const Value* other);

/// `e`, which the operator of `a` and `b` gave, with what the operands as they are written allow to say.
Error advised(Error e, const Value& a, const Value& b, const std::string& left, const std::string& right);

}  // namespace gk::sema
