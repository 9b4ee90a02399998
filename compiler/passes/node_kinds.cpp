// What a node is to fusion: see fuse.h.
#include <algorithm>

#include "compiler/passes/fuse.h"

namespace gk::passes {

std::vector<NodeKind> node_kinds(const Lookup& l) {
  const Module& m = l.module();
  std::vector<NodeKind> kinds(m.top.nodes.size());
  std::vector<bool> output(m.value_types.size(), false);
  for (const ir::Output& o : m.outputs) output[static_cast<size_t>(o.value)] = true;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const Node& n = m.top.nodes[i];
    const bool out = !n.results.empty() && output[static_cast<size_t>(n.results[0])];
    const auto leaf = [&](ValueId v) {
      return l.top(v) >= 0 && kinds[static_cast<size_t>(l.top(v))] == NodeKind::Leaf && l.shape(v).empty();
    };
    NodeKind& k = kinds[i];
    k = NodeKind::Map;
    if (n.op == Op::Input) {
      k = NodeKind::Input;
    } else if (n.op == Op::KernelCall) {
      k = NodeKind::Call;
    } else if (n.op == Op::If || n.op == Op::While || n.op == Op::Repeat) {
      k = NodeKind::Branch;
    } else if (n.op == Op::MatMul) {
      k = NodeKind::Product;
    } else if (is_reduction(n.op)) {
      k = NodeKind::Reduce;
    } else if (n.op == Op::UpdateSlice) {
      const Op base = l.op(n.operands[0]);
      if (!m.fuse || base == Op::Input || base == Op::UpdateSlice || base == Op::KernelCall)
        k = NodeKind::Region;
    } else if (out) {
      k = NodeKind::Map;
    } else if (is_leaf(n.op)) {
      k = NodeKind::Leaf;
    } else if (is_view(n.op) || n.op == Op::RngAdvance) {
      k = NodeKind::View;
    } else if (ir::is_elementwise(n.op) && !may_fault(l, n) &&
               std::all_of(n.operands.begin(), n.operands.end(), leaf)) {
      k = NodeKind::Leaf;
    }
  }
  return kinds;
}

bool needs_buffer(NodeKind kind, const Node& n, size_t k) {
  switch (kind) {
    case NodeKind::Product:
    case NodeKind::Call:
    case NodeKind::Branch: return true;
    case NodeKind::Region: return k == 0;
    case NodeKind::Map: return n.op == Op::Take && k == 0;
    default: return false;
  }
}

}  // namespace gk::passes
