#include "compiler/passes/lookup.h"

#include <algorithm>

#include "compiler/ir/kernel.h"

namespace gk::passes {

Lookup::Lookup(const Module& m)
    : m_(m),
      node_(m.value_types.size(), nullptr),
      top_(m.value_types.size(), -1),
      block_(m.value_types.size(), nullptr) {
  walk(m.top, true);
}

void Lookup::walk(const ir::Block& b, bool top) {
  if (!top)
    for (ValueId p : b.params) block_[static_cast<size_t>(p)] = &b;
  for (size_t i = 0; i < b.nodes.size(); ++i) {
    const Node& n = b.nodes[i];
    for (ValueId r : n.results) {
      node_[static_cast<size_t>(r)] = &n;
      top_[static_cast<size_t>(r)] = top ? static_cast<int32_t>(i) : -1;
      block_[static_cast<size_t>(r)] = top ? nullptr : &b;
    }
    if (n.body) walk(*n.body, false);
  }
}

Shape squeezed(const Shape& s) {
  Shape out;
  for (int64_t d : s)
    if (d != 1) out.push_back(d);
  return out;
}

std::optional<Scalar> constant_of(const Lookup& l, ValueId v) {
  const Node* n = l.node(v);
  while (n && is_view(n->op)) n = l.node(n->operands[0]);
  if (!n || n->op != Op::Const) return std::nullopt;
  return n->attrs.value;
}

bool may_fault(const Lookup& l, const Node& n) {
  if (ir::info(n.op).pure) return false;
  switch (n.op) {
    case Op::FloorDiv:
    case Op::Mod: {
      if (!is_integer(l.module().type(n.results[0]).dtype)) return false;
      const auto divisor = constant_of(l, n.operands[1]);
      return !divisor || divisor->i == 0;
    }
    case Op::Loop:
      return std::any_of(n.body->nodes.begin(), n.body->nodes.end(),
                         [&](const Node& i) { return may_fault(l, i); });
    case Op::KernelCall: return n.attrs.kernel->uses_faults;
    case Op::If:
    case Op::While:
      return std::any_of(n.regions.begin(), n.regions.end(), [](const ir::Region& r) {
        const Lookup inside(*r.module);
        return std::any_of(r.module->top.nodes.begin(), r.module->top.nodes.end(),
                           [&](const Node& i) { return may_fault(inside, i); });
      });
    default: return true;
  }
}

namespace {
// `inside` are the blocks that `b` lies in, the body of the node asked about first.
void outside_values(const Lookup& l, const ir::Block& b, std::vector<const ir::Block*>& inside,
                    std::vector<ValueId>& out) {
  inside.push_back(&b);
  const auto use = [&](ValueId v) {
    if (std::find(inside.begin(), inside.end(), l.block(v)) == inside.end()) out.push_back(v);
  };
  for (const Node& n : b.nodes) {
    for (ValueId v : n.operands) use(v);
    if (n.body) outside_values(l, *n.body, inside, out);
  }
  for (ValueId v : b.yields) use(v);
  inside.pop_back();
}
}  // namespace

std::vector<ValueId> all_operands(const Lookup& l, const Node& n) {
  std::vector<ValueId> out = n.operands;
  std::vector<const ir::Block*> inside;
  if (n.body) outside_values(l, *n.body, inside, out);
  return out;
}

Shape loop_space(const Lookup& l, const Node& n) {
  for (ValueId v : n.operands) {
    const Shape s = squeezed(l.shape(v));
    if (!s.empty()) return s;
  }
  return {};
}

// Note [Elementwise loops]
// A Loop becomes a scalar `For` inside a kernel when every carried value is a scalar or has the one iteration
// space of the loop (extents of 1 aside), and the body only computes at the same point: elementwise ops,
// scalars spread over the space, anything read from outside through views. What moves elements (a slice of a
// carried value, a reduction, a gather) makes iterations depend on other points, and the loop is unrolled
// instead.
bool is_elementwise_loop(const Lookup& l, const Node& n) {
  if (n.attrs.index <= 0) return false;  // no trips: what the body reads must not be computed, it may fault
  const Shape space = loop_space(l, n);
  const auto fits = [&](ValueId v) {
    const Shape s = squeezed(l.shape(v));
    return s.empty() || s == space;
  };
  if (!std::all_of(n.operands.begin(), n.operands.end(), fits)) return false;
  for (const Node& i : n.body->nodes) {
    if (!std::all_of(i.results.begin(), i.results.end(), fits)) return false;
    if (is_leaf(i.op)) continue;
    if (i.op == Op::Loop) {
      if (!is_elementwise_loop(l, i)) return false;
      continue;
    }
    if (is_view(i.op)) {
      const ValueId from = i.operands[0];
      const Shape s = squeezed(l.shape(from));
      const bool same =
          s.empty() || (s == squeezed(l.shape(i.results[0])) && i.op != Op::Transpose && i.op != Op::Slice);
      if (l.top(from) < 0 && !same) return false;
      continue;
    }
    if (!ir::is_elementwise(i.op)) return false;
  }
  return true;
}

}  // namespace gk::passes
