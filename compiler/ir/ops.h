// The op table: one entry an op, with its arity, class, type-and-shape rule, edge cases and doc. It is
// the definition every other part refers to; the interpreter is its executable form.
// (`gkrun --builtins` prints from it.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/type.h"
#include "runtime/base/error.h"

namespace gk::ir {

struct Kernel;

enum class Op : uint8_t {
#define GK_OP(op, ...) op,
#include "compiler/ir/op_rows.inc"
#undef GK_OP
  kCount,
};

enum class OpClass : uint8_t { Leaf, Elementwise, Random, View, Movement, Reduction, MatMul, Structure };

struct Attrs {
  std::vector<int64_t> axes;
  Shape shape;
  Shape starts, steps;
  bool keepdims = false;
  DType dtype = DType::F32;
  Scalar value{};
  int64_t index = 0;
  std::string name;  // Input: the user's name for it; KernelCall: the kernel's
  std::shared_ptr<const Kernel> kernel;
};

/// The dtypes of an op's operands.
enum class OperandClass : uint8_t { Any, Number, Float, Integer, Bool, BoolOrInteger, U64 };

/// What elementwise ops have in common with others, which says how they are typed. Arithmetic: not of bools.
/// Rounding: integers are themselves. Function: of libm and libdevice, not correctly rounded. Classification,
/// Comparison: give bools.
enum class OpGroup : uint8_t {
  None,
  Arithmetic,
  Rounding,
  Function,
  Classification,
  Bitwise,
  Shift,
  Comparison,
};

/// A function of C's library, which libdevice has under a like name. The interpreter calls it in f64.
struct LibraryFunction {
  const char* name = nullptr;
  double (*unary)(double) = nullptr;
  double (*binary)(double, double) = nullptr;
};

/// Instructions of an op of f32 in a kernel, about: how much code it is.
struct CodeSize {
  int host = 1, cuda = 1;
};

struct OpInfo {
  Op op{};
  std::string_view name;  // in IR text and, where it is one, the builtin's name
  int arity = 1;          // -1: variadic
  OpClass cls = OpClass::Elementwise;
  OpGroup group = OpGroup::None;
  OperandClass operands = OperandClass::Any;
  bool pure = true;  // no fault, may be duplicated, moved, or removed
  LibraryFunction library{};
  int cost = 1;                 // time, in additions
  CodeSize size{};              // of one element
  std::string_view signature;   // "atan2(y, x)": it is a builtin of its name
  std::string_view doc;         // one sentence
  std::string_view edge_cases;  // what NaN, overflow, zero, … give
};
const OpInfo& info(Op op);
std::optional<Op> parse_op(std::string_view name);
inline bool is_elementwise(Op op) { return info(op).cls == OpClass::Elementwise; }
inline bool is_comparison(Op op) { return info(op).group == OpGroup::Comparison; }
inline bool is_classification(Op op) { return info(op).group == OpGroup::Classification; }
inline bool is_rounding(Op op) { return info(op).group == OpGroup::Rounding; }
inline bool is_function(Op op) { return info(op).library.name != nullptr; }
/// Takes many instructions.
inline bool is_heavy(Op op) { return is_elementwise(op) && info(op).size.host >= 12; }
/// Integers become floats for it.
inline bool needs_float(Op op) { return is_elementwise(op) && info(op).operands == OperandClass::Float; }
inline bool gives_bool(Op op) { return is_comparison(op) || is_classification(op) || op == Op::Not; }

/// Result types of `op` (one, but for the ops of class Structure, which are typed by their bodies). Extents
/// may be unknown: only what is provably wrong is an error. Errors: Type (E02xx) or Shape (E03xx), with no
/// span; messages name types as written.
Result<Type> infer(Op op, std::span<const Type> operands, const Attrs& attrs);

/// numpy broadcasting of two shapes. Errors: E0301.
Result<Dims> broadcast(const Dims& a, const Dims& b);

}  // namespace gk::ir
