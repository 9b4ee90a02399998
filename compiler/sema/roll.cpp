#include "compiler/sema/roll.h"

#include <unordered_map>
#include <unordered_set>

namespace gk::sema {

namespace {

// A body is one kernel's and cannot be cut: a heavier one is traced turn by turn, whose kernels can.
constexpr int64_t kMostWeight = 1500;
constexpr int64_t kFunctionWeight = 50;

int64_t weight(const ir::Region& r) {
  int64_t w = 0;
  for (const auto& n : r.nodes) {
    for (const auto& inner : n.regions) w += weight(inner);
    w += ir::is_heavy(n.op) ? kFunctionWeight : 1;
  }
  return w;
}

bool one_space(const ir::Module& m, const ir::Region& region, const ir::Type*& space) {
  const auto fits = [&](ir::ValueId v) {
    const ir::Type& t = m.type(v);
    if (t.rank() == 0) return true;
    if (space && !(space->shape() == t.shape())) return false;
    space = &t;
    return true;
  };
  for (const auto& n : region.nodes) {
    const bool known = n.op == ir::Op::Broadcast || n.op == ir::Op::Const || n.op == ir::Op::Loop ||
                       ir::is_elementwise(n.op);
    if (!known) return false;
    for (const auto r : n.results)
      if (!fits(r)) return false;
    for (const auto& inner : n.regions)
      if (!one_space(m, inner, space)) return false;
  }
  return true;
}

}  // namespace

std::vector<ir::Node> take_invariants(ir::Region& body) {
  std::unordered_set<ir::ValueId> inside(body.params.begin(), body.params.end());
  std::vector<ir::Node> kept, taken;
  for (auto& n : body.nodes) {
    bool varies = ir::has_regions(n.op) || n.op == ir::Op::KernelCall;
    for (const auto v : n.operands) varies = varies || inside.contains(v);
    if (!varies) {
      taken.push_back(std::move(n));
      continue;
    }
    inside.insert(n.results.begin(), n.results.end());
    kept.push_back(std::move(n));
  }
  body.nodes = std::move(kept);
  return taken;
}

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

bool is_recurrence(const ir::Module& m, const ir::Region& body) {
  const ir::Type* space = nullptr;
  return weight(body) <= kMostWeight && one_space(m, body, space);
}

}  // namespace gk::sema
