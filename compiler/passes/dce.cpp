#include "compiler/passes/dce.h"

#include <algorithm>

#include "compiler/passes/lookup.h"

namespace gk::passes {
namespace {

class Dce {
 public:
  explicit Dce(Module& m) : m_(m), look_(m), used_(m.value_types.size(), false) {
    for (const ir::Output& o : m.outputs) use(o.value);
  }
  void run() {
    mark(m_.top);
    sweep(m_.top);
  }

 private:
  void use(ValueId v) { used_[static_cast<size_t>(v)] = true; }
  bool used(ValueId v) const { return used_[static_cast<size_t>(v)]; }
  bool live(const Node& n) const {
    return std::any_of(n.results.begin(), n.results.end(), [&](ValueId v) { return used(v); }) ||
           may_fault(look_, n);
  }
  // A carried value is needed after the last turn or in the next one.
  bool needs_result(const Node& n, size_t k) const {
    return used(n.results[k]) || (k < num_carried(n) && needs_input(n, k));
  }
  bool needs_input(const Node& n, size_t i) const {
    const size_t p = ir::region_form(n.op).param + i;
    return std::any_of(n.regions.begin(), n.regions.end(),
                       [&](const ir::Region& r) { return used(r.params[p]); });
  }

  // What the yields of `r` that are used need.
  void mark(const ir::Region& r) {
    for (size_t i = r.nodes.size(); i-- > 0;) {
      const Node& n = r.nodes[i];
      if (!live(n)) continue;
      if (n.regions.empty())
        for (ValueId v : n.operands) use(v);
      else
        mark_inside(n);
    }
  }
  void mark_inside(const Node& n) {
    const ir::RegionForm form = ir::region_form(n.op);
    std::vector<bool> wanted(n.results.size(), false);
    for (bool more = true; more;) {
      for (size_t k = 0; k < wanted.size(); ++k) wanted[k] = needs_result(n, k);
      for (const ir::Region& r : n.regions) {
        for (size_t y = 0; y < r.yields.size(); ++y)
          if (y < form.yield || wanted[y - form.yield]) use(r.yields[y]);
        mark(r);
      }
      more = false;
      for (size_t k = 0; k < wanted.size(); ++k) more = more || wanted[k] != needs_result(n, k);
    }
    for (size_t i = 0; i < num_inputs(n); ++i)
      if (needs_input(n, i) || (i < num_carried(n) && wanted[i])) use(n.operands[form.operand + i]);
    for (size_t i = 0; i < form.operand; ++i) use(n.operands[i]);
  }

  // The lookup points at nodes: inner regions come first, and nothing moves before all is asked.
  void sweep(ir::Region& r) {
    std::vector<bool> keep;
    for (const Node& n : r.nodes) keep.push_back(live(n));
    for (size_t i = 0; i < r.nodes.size(); ++i)
      if (keep[i])
        for (ir::Region& inner : r.nodes[i].regions) sweep(inner);
    std::vector<Node> kept;
    for (size_t i = 0; i < r.nodes.size(); ++i) {
      if (!keep[i]) continue;
      if (!r.nodes[i].regions.empty()) trim(r.nodes[i]);
      kept.push_back(std::move(r.nodes[i]));
    }
    r.nodes = std::move(kept);
  }
  void trim(Node& n) const {
    const ir::RegionForm form = ir::region_form(n.op);
    std::vector<bool> result, input;
    for (size_t k = 0; k < n.results.size(); ++k) result.push_back(needs_result(n, k));
    for (size_t i = 0; i < num_inputs(n); ++i)
      input.push_back(i < num_carried(n) ? static_cast<bool>(result[i]) : needs_input(n, i));
    const auto keep = [](std::vector<ValueId>& list, size_t first, const std::vector<bool>& those) {
      size_t to = first;
      for (size_t i = 0; i < those.size(); ++i)
        if (those[i]) list[to++] = list[first + i];
      list.resize(to);
    };
    keep(n.operands, form.operand, input);
    keep(n.results, 0, result);
    for (ir::Region& r : n.regions) {
      keep(r.params, form.param, input);
      keep(r.yields, form.yield, result);
    }
  }

  Module& m_;
  Lookup look_;
  std::vector<bool> used_;
};

}  // namespace

Result<void> dce(ir::Module& m) {
  Dce(m).run();
  return {};
}

}  // namespace gk::passes
