// The typed array IR: a module is one straight list of operations in SSA form over whole arrays, what a
// statement or a capture becomes. All extents are known numbers. Promises: values are immutable; storage
// is named only at the edges (inputs by slot, outputs by slot).
//
// Semantics: an output bound to a slot overwrites that slot's array after every read of it; a fresh
// output becomes a new array. Slots are numbered 0..num_slots-1; a fresh output has a slot too, that no
// Input reads. Two slots never overlap in memory (the engine gives each buffer one slot).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ops.h"
#include "compiler/ir/type.h"
#include "runtime/base/error.h"

namespace gk::ir {

// Note [Regions]
// An If or a While runs regions: complete modules of their own, whose slots stand for the operands after the
// first (the condition). Slot i is operand i + 1: an Input reads what it holds when the region begins, an
// Output is what it holds after; a slot that a region does not write keeps its value. The results of the node
// are the slots that some region writes, in order. Beyond the operands' slots a region has
//   If    : fresh slots, which both regions write: results with no value before;
//   While : one last slot, bool[], which the region writes and does not read: whether to go round again.
// The scalar slots of a region are scalar slots of the module around it, by `scalars`. A region has the flags
// of the module around it.
using ValueId = int32_t;
struct Block;
struct Module;

struct Region {
  std::unique_ptr<Module> module;
  std::vector<int> scalars;  // for each param of `module`, the param around that it is
};

struct Node {
  Op op{};
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  Attrs attrs;
  Span span{};
  int group = -1;               // set by fuse: nodes of one group become one kernel; -1: not yet placed
  std::unique_ptr<Block> body;  // Loop
  std::vector<Region> regions;  // If: two, While: one
};

struct Block {
  std::vector<ValueId> params;
  std::vector<Node> nodes;
  std::vector<ValueId> yields;
};

struct Output {
  ValueId value = -1;
  int slot = -1;
};

struct SlotInfo {
  Type type;
  bool is_input = false;   // read by an Input
  bool is_output = false;  // written by an Output
  bool fresh = false;      // output that is a new array
  std::string name;        // for people
};

struct Module {
  std::vector<Type> value_types;  // indexed by ValueId
  Block top;                      // top.params and top.yields are empty
  std::vector<SlotInfo> slots;
  std::vector<Output> outputs;
  std::vector<Scalar> params;  // current values of Param slots
  std::string name;
  bool fuse = true;  // `pragma fuse off` clears it
  bool fast_math = false;
  bool tf32 = false;

  const Type& type(ValueId v) const { return value_types[static_cast<size_t>(v)]; }
  ValueId new_value(Type t) {
    value_types.push_back(std::move(t));
    return static_cast<ValueId>(value_types.size() - 1);
  }
};

inline bool has_regions(Op op) { return op == Op::If || op == Op::While; }
/// The slots of the regions of `n` that are its results, in their order.
std::vector<int> result_slots(const Node& n);
/// A deep copy: modules own their bodies and so cannot be copied by assignment.
Module clone(const Module& m);

/// infer() for any op, those with several results included: Input takes its slot's type, Loop gives the types
/// of its operands, KernelCall those of the operands its kernel writes, in order. Not for If and While, whose
/// result types are those of result_slots().
Result<std::vector<Type>> result_types(const Module& m, Op op, std::span<const Type> operands,
                                       const Attrs& attrs);

/// Appends a node with its inferred result type(s) and gives the first result, -1 when there is none; the
/// others follow in b.nodes.back().results. The caller of a Loop fills b.nodes.back().body. Errors as
/// infer().
Result<ValueId> append(Module& m, Block& b, Op op, std::vector<ValueId> operands, Attrs attrs = {},
                       Span span = {});

/// Checks every invariant (types re-inferred, definitions before uses, slots, yields). An error here is a
/// compiler bug: kind Internal, code E0901.
Result<void> verify(const Module& m);

/// Textual form; parse(print(m)) gives an equal module, and print(parse(t)) == t for printed t.
std::string print(const Module& m);
Result<Module> parse(std::string_view text);

}  // namespace gk::ir
