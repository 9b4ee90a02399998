// The typed array IR: a module is one straight list of operations in SSA form over whole arrays, what a
// statement or a capture becomes. All extents are known numbers. Promises: values are immutable; storage
// is named only at the edges (inputs by slot, outputs by slot).
//
// Semantics: an output bound to a slot overwrites that slot's array after every read of it; a fresh
// output becomes a new array. Slots are numbered 0..num_slots-1; a fresh output has a slot too, that no
// Input reads. Two slots never overlap in memory (the engine gives each buffer one slot).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ops.h"
#include "compiler/ir/type.h"
#include "runtime/base/error.h"

namespace gk::ir {

// Note [Regions]
// A Loop, a Repeat, an If and a While run regions: lists of nodes with parameters and yields, which compute
// values like those around them. A region is isolated: beside its own values it sees the module's numbers
// (Param) alone. What it uses of its surroundings is an operand of its node, which a parameter stands for.
// With x... for operands that regions only read and c... for those that are carried from turn to turn:
//   If    : (condition, x...); two regions (x...), which yield the results;
//   While : (condition, c..., x...); one region (c..., x...), which yields the next condition and the next
//   c...; Loop, Repeat: (c..., x...); one region (turn: i64[], c..., x...), which yields the next c....
// The results of a While, Loop or Repeat are the last c.... A Loop is a part of a kernel, a Repeat steps of
// their own. Regions know no storage: they become programs with slots where memory is planned.
using ValueId = int32_t;
struct Node;

struct Region {
  std::vector<ValueId> params;
  std::vector<Node> nodes;
  std::vector<ValueId> yields;
};

struct Node {
  Op op{};
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  Attrs attrs;
  Span span{};
  int group = -1;               // set by fuse: nodes of one group become one kernel; -1: not yet placed
  std::vector<Region> regions;  // If: two; the others: one
};

/// Which operand, parameter and yield are the first that belong together, and whether yields become operands.
struct RegionForm {
  size_t operand = 0, param = 0, yield = 0;
  bool carries = false;
};
constexpr RegionForm region_form(Op op) {
  switch (op) {
    case Op::If: return {1, 0, 0, false};
    case Op::While: return {1, 0, 1, true};
    default: return {0, 1, 0, true};
  }
}
constexpr bool has_regions(Op op) {
  return op == Op::Loop || op == Op::If || op == Op::While || op == Op::Repeat;
}
/// How many operands have parameters, and how many of these are carried.
inline size_t num_inputs(const Node& n) { return n.operands.size() - region_form(n.op).operand; }
inline size_t num_carried(const Node& n) { return region_form(n.op).carries ? n.results.size() : 0; }

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
  Region top;                     // top.params and top.yields are empty
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

/// infer() for any op, those with several results included: Input takes its slot's type, KernelCall gives
/// those of the operands its kernel writes, in order. Not for nodes with regions.
Result<std::vector<Type>> result_types(const Module& m, Op op, std::span<const Type> operands,
                                       const Attrs& attrs);

/// Appends a node with its inferred result type(s) and gives the first result, -1 when there is none; the
/// others follow in r.nodes.back().results. Errors as infer().
Result<ValueId> append(Module& m, Region& r, Op op, std::vector<ValueId> operands, Attrs attrs = {},
                       Span span = {});

/// The types that the regions of `n` yield for its results.
std::vector<Type> result_types(const Module& m, const Node& n);
/// Appends a node with regions, gives it its results and gives these.
std::vector<ValueId> append(Module& m, Region& r, Node n);

/// Checks every invariant (types re-inferred, definitions before uses, slots, yields). An error here is a
/// compiler bug: kind Internal, code E0901.
Result<void> verify(const Module& m);

/// Textual form; parse(print(m)) gives an equal module, and print(parse(t)) == t for printed t.
std::string print(const Module& m);
Result<Module> parse(std::string_view text);

}  // namespace gk::ir
