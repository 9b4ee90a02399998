// What the `help:` lines of arithmetic say. Owns the advice alone: whether there is a mistake is decided
// where it is made, in arith. Promises that what is advised has a meaning for these operands. Not for
// messages.
#pragma once

#include <string>

#include "compiler/sema/value.h"
#include "runtime/base/error.h"

namespace gk::sema {

/// For a float literal `v` that meets the integer dtype `t` of `other`, or of a place or a declared type.
std::string for_float_literal(const Value& v, DType t, const Value* other, DType default_float);

/// `e`, which the operator of `a` and `b` gave, with what the operands as they are written allow to say.
Error advised(Error e, const Value& a, const Value& b, const std::string& left, const std::string& right);

}  // namespace gk::sema
