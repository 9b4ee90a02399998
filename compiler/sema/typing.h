// The dtypes of an elementwise op: one function for arrays, kernels and numbers of the host. Owns the rule by
// which operands meet and which dtypes an op takes, as its row says. Promises that what is accepted is the
// same everywhere. Not for shapes, for what the values are, nor for texts about where the operands stand.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "compiler/ir/ops.h"

namespace gk::sema {

/// An operand, as typing sees it.
struct Typed {
  DType dtype;        // of one without a dtype: its kind, I64, F64 or Bool
  bool weak = false;  // it has no dtype of its own and takes that of what it meets
  /// Of a weak integer that the device computes: it takes only a dtype that holds all it can be.
  struct Range {
    double low, high;
  };
  bool computed = false;
  std::optional<Range> range{};
};

/// Why an op is not defined for its operands.
struct Untypable {
  enum class Why : uint8_t {
    NoCommonDType,  // E0205
    OfBools,        // E0204: it takes numbers
    OfFloats,       // E0201: it takes integers, or integers and bools
    OfNumbers,      // E0208: it takes bools
    NoCondition,    // E0201: the first operand of `where` is no bool
  } why{};
  DType dtype{};      // that the operands met in
  bool weak = false;  // none of them has one
};

struct Typing {
  enum class Form : uint8_t {
    Compute,
    Itself,    // the first operand: integers are rounded already
    Constant,  // a bool that no value changes: integers are finite
  };
  Form form = Form::Compute;
  ir::Op op{};                      // what is computed
  std::array<DType, 3> operands{};  // the dtype that each operand is given
  DType dtype{};                    // the one they meet in
  DType result{};
  bool weak = false;  // the result has no dtype of its own
};

/// The dtype that two operands meet in, the kind where neither has one.
std::optional<DType> meet(const Typed& a, const Typed& b, DType default_float);
/// Whether `w`, which has no dtype, takes `t`; whether its value fits is not asked.
bool takes(const Typed& w, DType t);

tl::expected<Typing, Untypable> type_elementwise(ir::Op op, std::span<const Typed> operands,
                                                 DType default_float);

/// E0205 of a message that says what cannot be done with the two.
Error no_common_dtype(std::string_view message, bool of_bools);
/// What is told of it, without a span; `operands`: each in words, "f32[3]". The help is a general one.
Error untypable(const Untypable& why, ir::Op op, std::span<const std::string> operands);

}  // namespace gk::sema
