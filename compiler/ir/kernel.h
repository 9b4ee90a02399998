// Kernel IR: scalar programs over an iteration space, what a fused group or a user's `kernel` becomes.
// One form serves both back ends. Promises: extents and strides that may change without recompiling are
// parameters (scalar i64), so the text of a kernel is the key of its code.
//
// A kernel is one of
//   Map    : body runs at every point of `axes`; stores its results.
//   Reduce : body runs at every point of axes x reduce_axes and ends with `reduce_values`; they are combined
//            over reduce_axes; then `epilogue` runs at every point of `axes`, reading ReduceResult k.
//   MatMul : acc[b.., m, n] = sum_k a * b with the operands' accesses; then `epilogue` at every point of
//            axes = (batch.., m, n) with ReduceResult 0 as acc.
//   User   : like Map, with explicit indexing (LoadIndexed, StoreIndexed, atomics) and control flow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/ops.h"
#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace gk::ir {

/// A number known now, or the i64 scalar parameter that brings it.
struct KSize {
  int64_t value = 0;
  int param = -1;  // >= 0: parameters[param]
  static KSize fixed(int64_t v) { return {v, -1}; }
  static KSize dynamic(int p) { return {0, p}; }
  bool operator==(const KSize&) const = default;
};

struct KParam {
  enum class Kind : uint8_t { Buffer, Scalar };
  Kind kind = Kind::Buffer;
  DType dtype = DType::F32;
  bool read = false, written = false;  // Buffer
  // Buffer, User kernels: extents per axis, for bounds checks and row-major indexing.
  std::vector<KSize> extents;
  std::string name;
};
// Buffer parameters never overlap each other where one is written; a pass gives an array that is read and
// written one parameter. A Map or Reduce may read element p and write element p of one buffer at the same
// point through the same access (in place), nothing else.

/// Strided access of a buffer: element offset = sum strides[i] * index[i] over axes, then reduce_axes.
struct Access {
  int param = -1;
  std::vector<KSize> strides;
  KSize offset{};  // elements
};

enum class KKind : uint8_t {
  Const,         // value
  ScalarParam,   // param
  AxisIndex,     // axis number (over axes, then reduce_axes), i64
  Extent,        // of buffer `param`, axis `axis`: i64 (User)
  Compute,       // op on args, elementwise ops of the op table but Cast
  Cast,          // args[0] to dtype
  Load,          // access
  Store,         // access, args[0]
  LoadIndexed,   // buffer param, args = one i64 per axis of its extents (User) or one linear index (Take)
  StoreIndexed,  // buffer param, args = indices..., value
  Atomic,        // buffer param, atomic op, args = indices..., value; result is the old value
  Gather,        // Take in fused code: access gives the base with the taken axis's contribution left out;
           // args[0] = index (i64), size = extent of the axis, stride = its stride; bounds: yields 0, faults
  RngUniform,
  RngNormal,     // args = seed (u64), position (u64): the draw with that number
  ReduceResult,  // reduction number `reduction`
  VarGet,
  VarSet,  // mutable local `local`; VarSet args[0]
  If,      // args[0] condition; blocks then, other
  For,     // local variable `local` runs args[0]..args[1] step args[2] (i64, step != 0); blocks body
  While,   // blocks cond (its `result` is the condition), body
  Break,
  Continue,
};

enum class AtomicOp : uint8_t { Add, Min, Max, And, Or, Xor, Exchange };

struct KBlock;

struct KInst {
  KKind kind{};
  DType dtype = DType::F32;  // of the result
  int result = -1;           // SSA number, -1: none
  std::vector<int> args;
  Op op{};  // Compute
  AtomicOp atomic{};
  Scalar value{};  // Const
  int param = -1;
  int axis = -1;           // AxisIndex, Extent: which one; Gather: the one that a fault tells
  int local = -1;          // VarGet, VarSet, For: which of the mutable ones
  int reduction = -1;      // ReduceResult: which one
  int use = -1;            // Load, Store, Gather, AxisIndex of a draft: which of its accesses
  Access access;           // Load, Store, Gather
  KSize size{}, stride{};  // Gather
  bool checked = true;     // LoadIndexed / StoreIndexed / Atomic / Gather: bounds
  std::vector<std::unique_ptr<KBlock>> blocks;
  Span span{};  // for faults: line of the user's text
};

struct KBlock {
  std::vector<KInst> insts;
  int result = -1;  // While's condition
};

struct KLocal {
  DType dtype;
  std::string name;
};

enum class ReduceOp : uint8_t { Sum, Prod, Min, Max, Any, All, ArgMin, ArgMax };

struct KReduction {
  ReduceOp op{};
  int value = -1;  // SSA number in body
  DType value_dtype = DType::F32;
  DType accumulator =
      DType::F32;  // ArgMin/ArgMax: result is i64, the linear index over reduce_axes, first wins
};

struct KMatMul {
  Access a, b;               // over (batch.., m, n, k): a has stride 0 along n, b along m
  DType dtype = DType::F32;  // of the operands (both)
  DType accumulator = DType::F32;
};

// Faults. When uses_faults, codegen adds two last parameters: `u8* faults` (a program::FaultRecord) and
// `i64 step`. Checked instructions are numbered 0.. in textual order, body before epilogue (sites, see
// fault_sites()); the first fault of all writes {step, site, axis, index, extent} by compare-and-swap.
struct FaultSite {
  /// LoadFromEnd: negative indices were counted from the end before the check.
  enum class Kind : uint8_t { Load, Store, DivideByZero, LoadFromEnd };
  Kind kind{};
  Span span{};
};

struct Kernel {
  enum class Kind : uint8_t { Map, Reduce, MatMul, User };
  Kind kind = Kind::Map;
  std::string name;                // stem for people; not part of the key
  std::vector<KParam> params;      // every parameter of the entry point, in order (a fault buffer is added by
                                   // codegen as the last one when uses_faults)
  std::vector<KSize> axes;         // parallel, row-major, last is innermost
  std::vector<KSize> reduce_axes;  // Reduce: last is innermost; MatMul: the one k axis
  std::vector<KLocal> locals;
  int num_values = 0;
  KBlock body;
  std::vector<KReduction> reductions;
  KMatMul matmul;
  KBlock epilogue;
  bool uses_faults = false;  // has a checked access, or integer division by a value that may be zero
  bool fast_math = false;
};

/// Full text: parameters, axes, body. Equal text (without name) means equal code.
std::string print(const Kernel& k);
/// The cache key: print() with `name` left out and spans dropped.
std::string key(const Kernel& k);
Result<void> verify(const Kernel& k);
/// The sites in their numbering. FloorDiv and Mod on integers are sites (DivideByZero) unless the divisor
/// is a Const other than 0; so are LoadIndexed, StoreIndexed, Atomic and Gather when `checked`.
std::vector<FaultSite> fault_sites(const Kernel& k);

}  // namespace gk::ir
