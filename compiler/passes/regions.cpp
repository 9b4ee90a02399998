#include "compiler/passes/regions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "compiler/passes/lookup.h"

namespace gk::passes {
namespace {

constexpr int kMostCopied = 16;  // nodes worth making again rather than keeping their value in memory

// ---- Values that regions hand through

class HandedThrough {
 public:
  explicit HandedThrough(Module& m) : m_(m), to_(m.value_types.size()) {
    for (size_t i = 0; i < to_.size(); ++i) to_[i] = static_cast<ValueId>(i);
  }
  void run() {
    region(m_.top);
    for (ir::Output& o : m_.outputs) rename(o.value);
  }

 private:
  void rename(ValueId& v) const { v = to_[static_cast<size_t>(v)]; }
  void region(ir::Region& r) {
    for (Node& n : r.nodes) {
      for (ValueId& v : n.operands) rename(v);
      for (ir::Region& inner : n.regions) region(inner);
      if (n.op == Op::If)
        chosen(n);
      else if (!n.regions.empty())
        carried(n);
    }
    for (ValueId& v : r.yields) rename(v);
  }

  /// The operand that yield `k` of a region is; -1: none.
  static ValueId operand(const Node& n, const ir::Region& r, size_t k) {
    const auto at = std::find(r.params.begin(), r.params.end(), r.yields[k]);
    return at == r.params.end() ? -1 : n.operands[1 + static_cast<size_t>(at - r.params.begin())];
  }
  void chosen(const Node& n) {
    for (size_t k = 0; k < n.results.size(); ++k) {
      const ValueId v = operand(n, n.regions[0], k);
      if (v >= 0 && v == operand(n, n.regions[1], k)) to_[static_cast<size_t>(n.results[k])] = v;
    }
  }
  // What is carried and stays the same is not carried.
  void carried(Node& n) {
    const ir::RegionForm form = ir::region_form(n.op);
    ir::Region& r = n.regions[0];
    for (size_t k = n.results.size(); k-- > 0;) {
      if (r.yields[form.yield + k] != r.params[form.param + k]) continue;
      to_[static_cast<size_t>(n.results[k])] = n.operands[form.operand + k];
      const auto last = [k](std::vector<ValueId>& list, size_t first) {
        const auto at = list.begin() + static_cast<long>(first + k);
        std::rotate(at, at + 1, list.end());
      };
      last(n.operands, form.operand);
      last(r.params, form.param);
      r.yields.erase(r.yields.begin() + static_cast<long>(form.yield + k));
      n.results.erase(n.results.begin() + static_cast<long>(k));
    }
  }

  Module& m_;
  std::vector<ValueId> to_;
};

// ---- Values made again

class Remaker {
 public:
  explicit Remaker(Module& m) : m_(m), look_(m), used_(m.value_types.size(), false) { use(m.top); }
  void run() {
    region(m_.top);
    // Nodes move now, regions do not.
    for (auto& [r, nodes] : made_) {
      std::move(r->nodes.begin(), r->nodes.end(), std::back_inserter(nodes));
      r->nodes = std::move(nodes);
    }
  }

 private:
  void use(const ir::Region& r) {
    for (const Node& n : r.nodes) {
      for (ValueId v : n.operands) used_[static_cast<size_t>(v)] = true;
      for (const ir::Region& inner : n.regions) use(inner);
    }
    for (ValueId v : r.yields) used_[static_cast<size_t>(v)] = true;
  }

  void region(ir::Region& r) {
    for (Node& n : r.nodes) {
      if (n.op == Op::If || n.op == Op::While || n.op == Op::Repeat) inputs(n);
      for (ir::Region& inner : n.regions) region(inner);
    }
  }

  // A result that continues a value needs it in memory.
  void inputs(Node& n) {
    const ir::RegionForm form = ir::region_form(n.op);
    std::vector<bool> continued(num_inputs(n), false);
    for (size_t k = 0; k < n.results.size(); ++k)
      if (const int i = continued_input(look_, n, k); i >= 0) continued[static_cast<size_t>(i)] = true;
    for (size_t i = 0; i < continued.size(); ++i) {
      const ValueId v = look_.outside(n.operands[form.operand + i]);
      if (continued[i] || leaf_cost(v) > kMostCopied) continue;
      for (ir::Region& r : n.regions) {
        ValueId& param = r.params[form.param + i];
        if (!used_[static_cast<size_t>(param)]) continue;
        // The new node takes the name that its users know.
        const ValueId name = std::exchange(param, m_.new_value(ir::Type(m_.type(param))));
        std::vector<Node> nodes;
        remake(v, name, nodes);
        made_.emplace_back(&r, std::move(nodes));
      }
    }
  }
  void remake(ValueId v, ValueId as, std::vector<Node>& out) {
    Node c;
    const Node& n = *look_.node(v);
    c.op = n.op;
    c.attrs = n.attrs;
    c.span = n.span;
    for (ValueId o : n.operands) {
      c.operands.push_back(m_.new_value(ir::Type(m_.type(o))));
      remake(look_.outside(o), c.operands.back(), out);
    }
    c.results = {as};
    out.push_back(std::move(c));
  }

  // Counts the nodes of a value that is made of numbers alone; a large count for any other.
  int leaf_cost(ValueId v, int depth = 0) const {
    constexpr int kNever = kMostCopied + 1;
    const Node* n = look_.node(v);
    if (!n || depth > kMostCopied) return kNever;
    if (is_leaf(n->op)) return 1;
    const bool computes = ir::is_elementwise(n->op) && !may_fault(look_, *n) && look_.shape(v).empty();
    if (!computes && !is_view(n->op)) return kNever;
    int cost = 1;
    for (ValueId o : n->operands)
      if (cost < kNever) cost = std::min(kNever, cost + leaf_cost(look_.outside(o), depth + 1));
    return cost;
  }

  Module& m_;
  Lookup look_;
  std::vector<bool> used_;
  std::vector<std::pair<ir::Region*, std::vector<Node>>> made_;
};

}  // namespace

Result<void> tidy_regions(ir::Module& m) {
  const auto any = [](const Node& n) { return !n.regions.empty(); };
  if (std::none_of(m.top.nodes.begin(), m.top.nodes.end(), any)) return {};
  HandedThrough(m).run();
  Remaker(m).run();
  return {};
}

}  // namespace gk::passes
