#include "compiler/passes/regions.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "compiler/passes/lookup.h"

namespace gk::passes {
namespace {

constexpr int kMostCopied = 16;  // nodes worth making again rather than keeping their value in memory

class Tidier {
 public:
  explicit Tidier(Module& m) : m_(m), look_(m), used_(m.value_types.size(), false) {
    for (const ir::Output& o : m.outputs) used_[static_cast<size_t>(o.value)] = true;
    for (const Node& n : m.top.nodes)
      for (ValueId v : all_operands(look_, n)) used_[static_cast<size_t>(v)] = true;
  }

  void run() {
    for (Node& n : m_.top.nodes) {
      if (!ir::has_regions(n.op)) continue;
      if (n.op == Op::If) drop_results(n);
      share_operands(n);
      copy_leaves(n);
      drop_operands(n);
    }
  }

 private:
  static bool any(const Node& n, size_t slot, bool ir::SlotInfo::*flag) {
    return std::any_of(n.regions.begin(), n.regions.end(),
                       [&](const ir::Region& r) { return r.module->slots[slot].*flag; });
  }
  static bool read_only(const Node& n, size_t slot) { return !any(n, slot, &ir::SlotInfo::is_output); }

  // Gives slot i the number to[i]; -1 removes it. Slots that become one are read only.
  static void renumber(Node& n, const std::vector<int>& to) {
    const int count = 1 + *std::max_element(to.begin(), to.end());
    for (ir::Region& r : n.regions) {
      std::vector<ir::SlotInfo> slots(static_cast<size_t>(count));
      for (size_t i = 0; i < to.size(); ++i) {
        if (to[i] < 0) continue;
        ir::SlotInfo& s = slots[static_cast<size_t>(to[i])];
        const bool read = s.is_input || r.module->slots[i].is_input;
        s = r.module->slots[i];
        s.is_input = read;
      }
      r.module->slots = std::move(slots);
      for (Node& i : r.module->top.nodes)
        if (i.op == Op::Input) i.attrs.index = to[static_cast<size_t>(i.attrs.index)];
      for (ir::Output& o : r.module->outputs) o.slot = to[static_cast<size_t>(o.slot)];
    }
    std::vector<ValueId> operands(1, n.operands[0]);
    operands.resize(n.operands.size(), -1);
    for (size_t i = 0; i + 1 < n.operands.size(); ++i)
      if (to[i] >= 0) operands[static_cast<size_t>(to[i]) + 1] = n.operands[i + 1];
    std::erase(operands, -1);
    n.operands = std::move(operands);
  }
  // The numbers when the slots of `gone` are left out.
  static std::vector<int> without(const std::vector<bool>& gone) {
    std::vector<int> to;
    int next = 0;
    for (const bool g : gone) to.push_back(g ? -1 : next++);
    return to;
  }

  void drop_results(Node& n) {
    const std::vector<int> slots = ir::result_slots(n);
    std::vector<ValueId> results;
    std::vector<bool> gone(n.regions[0].module->slots.size(), false);
    for (size_t k = 0; k < slots.size(); ++k) {
      if (used_[static_cast<size_t>(n.results[k])]) {
        results.push_back(n.results[k]);
        continue;
      }
      const auto s = static_cast<size_t>(slots[k]);
      gone[s] = n.regions[0].module->slots[s].fresh;
      for (ir::Region& r : n.regions) {
        std::erase_if(r.module->outputs, [&](const ir::Output& o) { return o.slot == slots[k]; });
        r.module->slots[s].is_output = false;
      }
    }
    if (results.size() == n.results.size()) return;
    n.results = std::move(results);
    if (std::count(gone.begin(), gone.end(), true) != 0) renumber_or_clear(n, gone);
  }

  static void renumber_or_clear(Node& n, const std::vector<bool>& gone) {
    if (std::count(gone.begin(), gone.end(), false) != 0) return renumber(n, without(gone));
    for (ir::Region& r : n.regions) r.module->slots.clear();
    n.operands.resize(1);
  }

  static void share_operands(Node& n) {
    const size_t slots = n.regions[0].module->slots.size();
    std::vector<int> to;
    std::unordered_map<ValueId, int> known;
    int next = 0;
    for (size_t i = 0; i < slots; ++i) {
      if (i + 1 < n.operands.size() && read_only(n, i)) {
        const auto [it, fresh] = known.try_emplace(n.operands[i + 1], next);
        to.push_back(it->second);
        next += fresh;
      } else {
        to.push_back(next++);
      }
    }
    if (next != static_cast<int>(slots)) renumber(n, to);
  }

  static void drop_operands(Node& n) {
    std::vector<bool> gone(n.regions[0].module->slots.size(), false);
    for (size_t i = 0; i + 1 < n.operands.size(); ++i)
      gone[i] = read_only(n, i) && !any(n, i, &ir::SlotInfo::is_input);
    if (std::count(gone.begin(), gone.end(), true) != 0) renumber_or_clear(n, gone);
  }

  // Counts the nodes of a value that is made of numbers alone; a large count for any other.
  int leaf_cost(ValueId v, int depth = 0) const {
    constexpr int kNever = kMostCopied + 1;
    const Node* n = look_.node(v);
    if (!n || look_.top(v) < 0 || depth > kMostCopied) return kNever;
    if (is_leaf(n->op)) return 1;
    const bool computes = ir::is_elementwise(n->op) && !may_fault(look_, *n) && look_.shape(v).empty();
    if (!computes && !is_view(n->op)) return kNever;
    int cost = 1;
    for (ValueId o : n->operands)
      if (cost < kNever) cost = std::min(kNever, cost + leaf_cost(o, depth + 1));
    return cost;
  }

  void copy_leaves(Node& n) {
    for (size_t i = 0; i + 1 < n.operands.size(); ++i) {
      if (!read_only(n, i) || leaf_cost(n.operands[i + 1]) > kMostCopied) continue;
      for (ir::Region& r : n.regions) {
        if (!r.module->slots[i].is_input) continue;
        r.module->slots[i].is_input = false;
        std::vector<Node> nodes;
        for (Node& inner : r.module->top.nodes) {
          if (inner.op == Op::Input && inner.attrs.index == static_cast<int64_t>(i))
            copy(n.operands[i + 1], inner.results[0], r, nodes);
          else
            nodes.push_back(std::move(inner));
        }
        r.module->top.nodes = std::move(nodes);
      }
    }
  }

  void copy(ValueId v, ValueId as, ir::Region& r, std::vector<Node>& out) {
    const Node& n = *look_.node(v);
    Node c;
    c.op = n.op;
    c.attrs = n.attrs;
    c.span = n.span;
    for (ValueId o : n.operands) {
      const ValueId inside = r.module->new_value(ir::Type(m_.type(o)));
      copy(o, inside, r, out);
      c.operands.push_back(inside);
    }
    if (n.op == Op::Param) {
      c.attrs.index = static_cast<int64_t>(r.module->params.size());
      r.module->params.push_back(m_.params[static_cast<size_t>(n.attrs.index)]);
      r.scalars.push_back(static_cast<int>(n.attrs.index));
    }
    c.results = {as};
    out.push_back(std::move(c));
  }

  Module& m_;
  Lookup look_;
  std::vector<bool> used_;
};

}  // namespace

Result<void> tidy_regions(ir::Module& m) {
  if (std::any_of(m.top.nodes.begin(), m.top.nodes.end(),
                  [](const Node& n) { return ir::has_regions(n.op); }))
    Tidier(m).run();
  return {};
}

}  // namespace gk::passes
