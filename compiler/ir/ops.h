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
  // Leaves
  Input,  // external array; attrs.index = slot
  Const,  // 0-d constant; attrs.value
  Param,  // 0-d host scalar, patchable; attrs.index = scalar slot, attrs.value = value now
  Iota,   // i64 index along attrs.axes[0] of attrs.shape
  // Elementwise unary (operand and result have the same shape; dtype as the table says)
  Neg,
  Abs,
  Sign,
  Not /* bool */,
  BitNot,
  Floor,
  Ceil,
  Round /* half to even */,
  Trunc,
  Sqrt,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  IsNan,
  IsInf,
  IsFinite,
  Cast,  // to attrs.dtype
  // Elementwise binary (same shape, same dtype; sema inserts Cast and Broadcast)
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  Min,
  Max,
  Atan2,
  PowInt,  // (float, i64 or u64): products by repeated squaring
  And,
  Or,
  Xor,  // bool or integer
  Shl,
  Shr,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,  // result bool
  // Elementwise ternary
  Where,  // bool, T, T
  // Random: elementwise over attrs.shape given state u64[2] = {seed, draws}
  RngUniform,  // [0, 1), attrs.dtype f32/f64
  RngNormal,
  RngAdvance,  // state -> state with draws advanced by attrs.index elements
  // Views and movement
  Broadcast,    // to attrs.shape (numpy rule, operand rank <= result rank)
  Reshape,      // to attrs.shape, same element count, row-major
  Transpose,    // permutation attrs.axes
  Slice,        // attrs.starts, attrs.shape (result extents), attrs.steps (non-zero, may be negative)
  UpdateSlice,  // (base, value): base with the region starts/steps of value's shape replaced
  Take,    // (x, index of integer dtype), attrs.axes[0]: numpy take; index out of range gives 0 and a fault
  Concat,  // along attrs.axes[0], n operands
  // Reductions over attrs.axes (sorted, distinct), attrs.keepdims
  Sum,
  Prod,
  ReduceMin,
  ReduceMax,
  Any,
  All,
  ArgMin,
  ArgMax /* axes: one axis, or all flattened */,
  // Linear algebra
  MatMul,  // [.., M, K] x [.., K, N], batch dims broadcast; vectors as numpy
  // Structure
  Loop,        // operands: initial carried values; attrs.index = trip count; one body block with
               // parameters (i: i64[], carried...) that yields the next carried values
  KernelCall,  // user kernel: attrs.kernel, attrs.shape = extents, attrs.index = threads per block (0:
               // default);
               // operands in parameter order; results: new values of the mut parameters, in order
  If,          // operands: condition, then one a slot of the two regions; see Note [Regions] in module.h
  While,  // operands: first condition, then one a slot of the one region but its last, the next condition
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

struct OpInfo {
  Op op;
  std::string_view name;  // in IR text and, where it is one, the builtin's name
  int arity;              // -1: variadic
  OpClass cls;
  bool pure;                    // no fault, may be duplicated, moved, or removed
  std::string_view dtypes;      // "float", "number", "bool|integer", … as documentation and for the rule
  std::string_view doc;         // one sentence
  std::string_view edge_cases;  // what NaN, overflow, zero, … give
};
const OpInfo& info(Op op);
std::optional<Op> parse_op(std::string_view name);
inline bool is_elementwise(Op op) { return info(op).cls == OpClass::Elementwise; }

/// Result types of `op` (one, but for the ops of class Structure, which are typed by their bodies). Extents
/// may be unknown: only what is provably wrong is an error. Errors: Type (E02xx) or Shape (E03xx), with no
/// span; messages name types as written.
Result<Type> infer(Op op, std::span<const Type> operands, const Attrs& attrs);

/// numpy broadcasting of two shapes. Errors: E0301.
Result<Dims> broadcast(const Dims& a, const Dims& b);

}  // namespace gk::ir
