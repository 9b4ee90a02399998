// What people of NumPy, Julia, C and CUDA write, and what gk says for it. Owns the table of such names and
// the search for a name that was meant. Promises that what is to be written instead is gk, with the user's
// own arguments in it. Not for messages about what gk has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace gk::sema {

/// The candidate that `name` is a slip of: equal but for case, or one slip in three letters, where two
/// letters in the wrong order are one slip. Empty where none is that near.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates);

/// An argument as it is written, and its rank where that is known: 0 of a number.
struct WrittenArg {
  std::string name, text;
  std::optional<int> rank = std::nullopt;
};

/// Adds to `e` what gk has for the function `name`, called with `args` from elsewhere. In a kernel only what
/// is said of single numbers is. False: nothing is known of that name.
bool advise_call(Error& e, std::string_view name, const std::vector<WrittenArg>& args, bool in_kernel);

/// Adds to `e` what gk has for a value or a type called `name` elsewhere.
bool advise_name(Error& e, std::string_view name);

/// The prefix of another system's library, as in `np.sin`.
bool is_foreign_module(std::string_view name);

/// `text`, in brackets where it is more than one word, call, index or bracket.
std::string as_operand(std::string_view text);

}  // namespace gk::sema
