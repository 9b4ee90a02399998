// Fusion: decides which nodes become one kernel, as Node.group. A pure function of the module and two limits;
// promises that the groups form no cycle, that what is expensive is computed once, and idempotence.
// Nodes left at -1 (views, leaves, cheap values with several users) are recomputed where they are used.
// Not for how a group is computed: that is lower.
#pragma once

#include "compiler/passes/lookup.h"
#include "compiler/passes/pipeline.h"

namespace gk::passes {

Result<void> fuse(ir::Module& m, const Options& options);

/// What a node is to fusion.
enum class NodeKind : uint8_t {
  Leaf,  // Const, Param, Iota, scalars computed from these alone: recomputed
  Input,
  View,  // recomputed as a change of indices; RngAdvance too
  Map,   // one value a point
  Reduce,
  Product,  // MatMul
  Region,   // UpdateSlice written over the storage of its base
  Call,     // user kernel
  Branch,   // If, While: a step with bodies of its own
};

/// The kind of each node of the top block. A leaf or view that is an output is a Map.
std::vector<NodeKind> node_kinds(const Lookup& l);

/// Whether operand `k` of `n` must be an array in memory.
bool needs_buffer(NodeKind kind, const Node& n, size_t k);

}  // namespace gk::passes
