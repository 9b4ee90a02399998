#include "compiler/passes/lookup.h"

#include <algorithm>

#include "compiler/ir/kernel.h"

namespace gk::passes {

Lookup::Lookup(const Module& m)
    : m_(m),
      node_(m.value_types.size(), nullptr),
      top_(m.value_types.size(), -1),
      operand_(m.value_types.size(), -1) {
  walk(m.top, true);
}

void Lookup::walk(const ir::Region& r, bool top) {
  for (size_t i = 0; i < r.nodes.size(); ++i) {
    const Node& n = r.nodes[i];
    for (ValueId v : n.results) {
      node_[static_cast<size_t>(v)] = &n;
      top_[static_cast<size_t>(v)] = top ? static_cast<int32_t>(i) : -1;
    }
    const ir::RegionForm form = ir::region_form(n.op);
    for (const ir::Region& inner : n.regions) {
      for (size_t k = num_carried(n); k < num_inputs(n); ++k)
        operand_[static_cast<size_t>(inner.params[form.param + k])] = n.operands[form.operand + k];
      walk(inner, false);
    }
  }
}

ValueId Lookup::outside(ValueId v) const {
  for (ValueId o = v; o >= 0; o = operand_[static_cast<size_t>(v)]) v = o;
  return v;
}

Shape squeezed(const Shape& s) {
  Shape out;
  for (int64_t d : s)
    if (d != 1) out.push_back(d);
  return out;
}

std::optional<Scalar> constant_of(const Lookup& l, ValueId v) {
  const Node* n = l.node(l.outside(v));
  while (n && is_view(n->op)) n = l.node(l.outside(n->operands[0]));
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
    case Op::KernelCall: return n.attrs.kernel->uses_faults;
    case Op::Loop:
    case Op::If:
    case Op::While:
    case Op::Repeat:
      return std::any_of(n.regions.begin(), n.regions.end(), [&](const ir::Region& r) {
        return std::any_of(r.nodes.begin(), r.nodes.end(), [&](const Node& i) { return may_fault(l, i); });
      });
    default: return true;
  }
}

ValueId continued_value(const Lookup& l, ValueId v) {
  const Node* n = l.node(v);
  if (!n) return -1;
  const auto result =
      static_cast<size_t>(std::find(n->results.begin(), n->results.end(), v) - n->results.begin());
  switch (n->op) {
    case Op::UpdateSlice: return n->operands[0];
    case Op::KernelCall: {
      size_t written = 0;
      const auto& params = n->attrs.kernel->params;
      for (size_t p = 0; p < params.size(); ++p)
        if (params[p].kind == ir::KParam::Kind::Buffer && params[p].written && written++ == result)
          return n->operands[p];
      return -1;
    }
    case Op::If:
    case Op::While:
    case Op::Repeat: {
      const int input = continued_input(l, *n, result);
      return input < 0 ? -1 : n->operands[ir::region_form(n->op).operand + static_cast<size_t>(input)];
    }
    default: return -1;
  }
}

int continued_param(const Lookup& l, const ir::Region& r, size_t k) {
  ValueId v = r.yields[k];
  while (v >= 0 && l.node(v)) v = continued_value(l, v);
  const auto at = std::find(r.params.begin(), r.params.end(), v);
  return at == r.params.end() ? -1 : static_cast<int>(at - r.params.begin());
}

int continued_input(const Lookup& l, const Node& n, size_t k) {
  if (n.op != Op::If) return static_cast<int>(k);
  const int a = continued_param(l, n.regions[0], k), b = continued_param(l, n.regions[1], k);
  const bool first = n.regions[0].nodes.empty(), second = n.regions[1].nodes.empty();
  return a == b ? a : first && !second ? a : second && !first ? b : -1;
}

Shape loop_space(const Lookup& l, const Node& n) {
  for (ValueId v : n.results) {
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
  if (!std::all_of(n.results.begin(), n.results.end(), fits)) return false;
  for (const Node& i : n.regions[0].nodes) {
    if (!std::all_of(i.results.begin(), i.results.end(), fits)) return false;
    if (is_leaf(i.op)) continue;
    if (i.op == Op::Loop) {
      if (!is_elementwise_loop(l, i)) return false;
      continue;
    }
    if (is_view(i.op)) {
      const ValueId from = l.outside(i.operands[0]);
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
