// Questions that every pass asks of a module: who defines a value, is it a view, may it fault. Owns no state
// that outlives a pass; a Lookup is built from a module and is stale once nodes are added or removed.
// Not for changing modules.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/module.h"

namespace gk::passes {

using ir::Module;
using ir::Node;
using ir::Op;
using ir::ValueId;

/// Definitions by value, those inside regions too.
class Lookup {
 public:
  explicit Lookup(const Module& m);
  const Module& module() const { return m_; }
  /// The node that defines `v`; null for a parameter of a region.
  const Node* node(ValueId v) const { return node_[static_cast<size_t>(v)]; }
  /// Index in module.top.nodes of the node that defines `v`; -1 when `v` is defined inside a region.
  int32_t top(ValueId v) const { return top_[static_cast<size_t>(v)]; }
  /// The operand that a parameter of a region always is; -1 for any other value.
  ValueId operand(ValueId v) const { return operand_[static_cast<size_t>(v)]; }
  /// The outermost value that `v` is, by way of such operands; else `v`.
  ValueId outside(ValueId v) const;
  Op op(ValueId v) const { return node(v) ? node(v)->op : Op::kCount; }
  Shape shape(ValueId v) const { return m_.type(v).shape(); }
  int64_t elements(ValueId v) const { return num_elements(shape(v)).value_or(0); }

 private:
  void walk(const ir::Region& r, bool top);
  const Module& m_;
  std::vector<const Node*> node_;
  std::vector<int32_t> top_;
  std::vector<ValueId> operand_;  // by parameter: the operand that it always is; -1: none
};

inline bool is_view(Op op) {
  return op == Op::Broadcast || op == Op::Reshape || op == Op::Transpose || op == Op::Slice;
}
/// Recomputed wherever it is used.
inline bool is_leaf(Op op) { return op == Op::Const || op == Op::Param || op == Op::Iota; }
inline bool is_reduction(Op op) { return ir::info(op).cls == ir::OpClass::Reduction; }

/// The extents other than 1: two shapes with equal ones are walked alike.
Shape squeezed(const Shape& s);
/// The value of every element of `v`, when that is one constant.
std::optional<Scalar> constant_of(const Lookup& l, ValueId v);
/// Whether running `n` can raise a fault.
bool may_fault(const Lookup& l, const Node& n);
/// The value that `v` is, but for a part that was written: what it may be written over. -1: none.
ValueId continued_value(const Lookup& l, ValueId v);
/// The parameter of region `r` that its yield `k` continues, or is, by number; -1: none.
int continued_param(const Lookup& l, const ir::Region& r, size_t k);
/// The input that result `k` of a node with regions continues, by number; -1: none. A carried value continues
/// its own. A result of an If continues one that both regions do, or that one of them leaves as it is and
/// computes nothing.
int continued_input(const Lookup& l, const Node& n, size_t k);
/// Whether a Loop is one scalar recurrence an element: see Note [Elementwise loops] in lookup.cpp.
bool is_elementwise_loop(const Lookup& l, const Node& n);
/// Squeezed shape that an elementwise loop runs over.
Shape loop_space(const Lookup& l, const Node& n);

}  // namespace gk::passes
