// One way to call a function of another system, and what gk has for such a call. Owns how the arguments of a
// call meet the parameters of a form. Promises that a form which says nothing of an argument does not fit.
// Not for the table of the forms: habits.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/sema/habits.h"

namespace gk::sema {

enum class Where : uint8_t { Arrays, Anywhere };  // Anywhere: said of single numbers too, so in kernels

/// `params` names the arguments in order, with blanks between them:
///   x         given by place or by name
///   x:1       likewise, and of rank 1
///   .axis     given by name
///   axis=0    written so
///   axis?     may be left out
///   rtol~1e-5 stands for 1e-5 where it is left out
///   *         any number of arguments by place
/// `write` has $1 for the first of them, %1 for the same as an operand, ^1 for indices that count from 1 as
/// such that count from 0, and $* for all that are given.
struct Habit {
  std::string_view name, params, write;
  Where where = Where::Arrays;
};

/// What to write for the call; nothing where the form does not fit its arguments. Of a name
/// alone, or with one argument, parameters of one letter stand for the others.
std::optional<std::string> form_of(const Habit& habit, const std::vector<WrittenArg>& args);

/// What gk calls an argument that PyTorch or NumPy call `name`.
std::string_view known_name(std::string_view name);

/// f32 for `float32` and `Float32`, i64 for `int64` and `Int64`.
std::optional<std::string> sized_type(std::string_view name);

}  // namespace gk::sema
