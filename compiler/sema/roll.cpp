#include "compiler/sema/roll.h"

#include <unordered_map>
#include <unordered_set>

namespace gk::sema {

namespace {

using Values = std::unordered_set<ir::ValueId>;

// A body is one kernel's and cannot be cut: a heavier one is traced turn by turn, whose kernels can.
constexpr int64_t kMostWeight = 1500;
constexpr int64_t kFunctionWeight = 50;

int64_t weight(const ir::Node& n) {
  int64_t w = ir::is_heavy(n.op) ? kFunctionWeight : 1;
  for (const auto& inner : n.regions)
    for (const auto& i : inner.nodes) w += weight(i);
  return w;
}

// Whether what `n` gives may differ from turn to turn; then it is added.
bool varies(const ir::Node& n, Values& varying) {
  bool v = ir::has_regions(n.op) || n.op == ir::Op::KernelCall;
  for (const auto o : n.operands) v = v || varying.contains(o);
  if (v) varying.insert(n.results.begin(), n.results.end());
  return v;
}

class OneSpace {
 public:
  explicit OneSpace(const ir::Module& m) : m_(m) {}
  bool fits(const ir::Type& t) {
    if (t.rank() == 0) return true;
    if (space_ && !(space_->shape() == t.shape())) return false;
    space_ = &t;
    return true;
  }
  bool fits(const ir::Node& n) {
    const bool known = n.op == ir::Op::Broadcast || n.op == ir::Op::Const || n.op == ir::Op::Loop ||
                       ir::is_elementwise(n.op);
    if (!known) return false;
    for (const auto r : n.results)
      if (!fits(m_.type(r))) return false;
    for (const auto& inner : n.regions)
      for (const auto& i : inner.nodes)
        if (!fits(i)) return false;
    return true;
  }

 private:
  const ir::Module& m_;
  const ir::Type* space_ = nullptr;
};

// Gives `body` a parameter for each value from around the loop that it still uses, and these values.
std::vector<ir::ValueId> isolate(ir::Module& m, ir::Region& body) {
  std::unordered_map<ir::ValueId, ir::ValueId> inside;
  for (const auto p : body.params) inside[p] = p;
  for (const auto& n : body.nodes)
    for (const auto r : n.results) inside[r] = r;
  std::vector<ir::ValueId> around;
  const auto use = [&](ir::ValueId& v) {
    const auto [it, from_around] = inside.try_emplace(v, -1);
    if (from_around) {
      around.push_back(v);
      it->second = m.new_value(ir::Type(m.type(v)));
      body.params.push_back(it->second);
    }
    v = it->second;
  };
  for (auto& n : body.nodes)
    for (auto& v : n.operands) use(v);
  for (auto& v : body.yields) use(v);
  return around;
}

}  // namespace

bool is_recurrence(Trace& body, ir::ValueId turn) {
  OneSpace space(body.module());
  Values varying{turn};
  const ir::Type* carried = nullptr;
  for (const Trace::Cell& c : body.cells()) {
    if (c.now < 0) continue;
    const ir::Type& t = c.array->type;
    if (carried && !(carried->shape() == t.shape())) return false;
    carried = &t;
    if (c.param >= 0) varying.insert(c.param);
    if (!space.fits(t)) return false;
  }
  int64_t w = 0;
  for (const auto& n : body.region().nodes) {
    if (!varies(n, varying)) continue;
    if (!space.fits(n)) return false;
    w += weight(n);
  }
  return w <= kMostWeight;
}

std::vector<ir::Node> take_invariants(ir::Module& m, ir::Node& loop, size_t carried) {
  ir::Region& body = loop.regions[0];
  const ir::RegionForm form = ir::region_form(loop.op);
  std::unordered_map<ir::ValueId, ir::ValueId> outside;  // by parameter that is only read
  for (size_t k = carried; k + form.param < body.params.size(); ++k)
    outside[body.params[k + form.param]] = loop.operands[k + form.operand];
  body.params.resize(carried + form.param);
  loop.operands.resize(carried + form.operand);
  const auto replace = [&](std::vector<ir::ValueId>& values) {
    for (auto& v : values)
      if (const auto it = outside.find(v); it != outside.end()) v = it->second;
  };
  Values varying(body.params.begin(), body.params.end());
  std::vector<ir::Node> kept, taken;
  for (auto& n : body.nodes) {
    replace(n.operands);
    (varies(n, varying) ? kept : taken).push_back(std::move(n));
  }
  replace(body.yields);
  body.nodes = std::move(kept);
  const auto around = isolate(m, body);
  loop.operands.insert(loop.operands.end(), around.begin(), around.end());
  return taken;
}

}  // namespace gk::sema
