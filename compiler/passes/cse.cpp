#include "compiler/passes/cse.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <unordered_map>

#include "compiler/passes/lookup.h"

namespace gk::passes {
namespace {

// Everything that decides a node's value, as bytes.
std::string identity(const Node& n) {
  std::string key;
  const auto put = [&](int64_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  const auto shape = [&](const Shape& s) {
    put(s.rank());
    for (int64_t d : s) put(d);
  };
  put(static_cast<int64_t>(n.op));
  put(static_cast<int64_t>(n.operands.size()));
  for (ValueId v : n.operands) put(v);
  const ir::Attrs& a = n.attrs;
  put(static_cast<int64_t>(a.axes.size()));
  for (int64_t x : a.axes) put(x);
  shape(a.shape);
  shape(a.starts);
  shape(a.steps);
  put(a.keepdims);
  put(static_cast<int64_t>(a.dtype));
  put(static_cast<int64_t>(a.value.dtype));
  put(a.value.i);
  put(std::bit_cast<int64_t>(a.value.f));
  put(a.index);
  return key;
}

class Cse {
 public:
  explicit Cse(Module& m) : m_(m), to_(m.value_types.size()) {
    for (size_t i = 0; i < to_.size(); ++i) to_[i] = static_cast<ValueId>(i);
  }
  void run() {
    if (std::any_of(m_.top.nodes.begin(), m_.top.nodes.end(),
                    [](const Node& n) { return !n.regions.empty(); }))
      look_.emplace(m_);
    region(m_.top);
    for (ir::Output& o : m_.outputs) o.value = to_[static_cast<size_t>(o.value)];
  }

 private:
  // Parameters of one value are one, but for those that results continue: each has a place of its own.
  void parameters(Node& n) {
    const ir::RegionForm form = ir::region_form(n.op);
    std::vector<bool> apart(num_inputs(n), false);
    for (size_t k = 0; k < n.results.size(); ++k)
      if (const int i = continued_input(*look_, n, k); i >= 0) apart[static_cast<size_t>(i)] = true;
    std::unordered_map<ValueId, size_t> first;
    for (size_t i = 0; i < apart.size(); ++i) {
      if (apart[i]) continue;
      const auto [it, fresh] = first.try_emplace(n.operands[form.operand + i], i);
      if (fresh) continue;
      for (const ir::Region& r : n.regions)
        to_[static_cast<size_t>(r.params[form.param + i])] = r.params[form.param + it->second];
    }
  }

  void region(ir::Region& r) {
    std::unordered_map<std::string, ValueId> seen;
    std::vector<Node> kept;
    kept.reserve(r.nodes.size());
    for (Node& n : r.nodes) {
      for (ValueId& v : n.operands) v = to_[static_cast<size_t>(v)];
      if (!n.regions.empty()) parameters(n);
      for (ir::Region& inner : n.regions) region(inner);
      if (ir::info(n.op).cls != ir::OpClass::Structure) {
        const auto [it, fresh] = seen.try_emplace(identity(n), n.results[0]);
        if (!fresh) {
          to_[static_cast<size_t>(n.results[0])] = it->second;
          continue;
        }
      }
      kept.push_back(std::move(n));
    }
    r.nodes = std::move(kept);
    for (ValueId& v : r.yields) v = to_[static_cast<size_t>(v)];
  }

  Module& m_;
  std::optional<Lookup> look_;  // where there are regions
  std::vector<ValueId> to_;
};

}  // namespace

Result<void> cse(ir::Module& m) {
  Cse(m).run();
  return {};
}

}  // namespace gk::passes
