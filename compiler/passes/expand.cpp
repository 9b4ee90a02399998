#include "compiler/passes/expand.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/passes/lookup.h"
#include "compiler/passes/weight.h"

namespace gk::passes {
namespace {

constexpr size_t kConcatWidth = 8;

class Unroller {
 public:
  Unroller(Module& m, const Options& options)
      : m_(m), look_(m), target_(options.target), most_(options.max_unrolled_ops) {}

  Result<void> run() {
    bool any = false;
    for (const Node& n : m_.top.nodes) any = any || (to_unroll(n));
    if (!any) return {};
    std::vector<Node> nodes = std::move(m_.top.nodes);
    m_.top.nodes.clear();
    // The lookup points into `nodes`, whose elements did not move.
    for (Node& n : nodes) {
      if (to_unroll(n))
        GK_CHECK(unroll(n));
      else
        m_.top.nodes.push_back(clone(n));
    }
    for (ir::Output& o : m_.outputs) o.value = now(o.value);
    return {};
  }

 private:
  // Straight code vectorises on the host and schedules better on a GPU; a long loop stays one inside its
  // kernel.
  bool to_unroll(const Node& n) const {
    if (n.op != Op::Loop) return false;
    return !is_elementwise_loop(look_, n) || unrolled_weight(look_, n, target_) <= most_;
  }

  ValueId now(ValueId v) const {
    const auto it = to_.find(v);
    return it == to_.end() ? v : it->second;
  }

  Node clone(const Node& n) {
    Node c;
    c.op = n.op;
    c.attrs = n.attrs;
    c.span = n.span;
    for (ValueId v : n.operands) c.operands.push_back(now(v));
    if (n.body) {
      c.body = std::make_unique<ir::Block>();
      for (ValueId p : n.body->params) c.body->params.push_back(fresh(p));
      for (const Node& i : n.body->nodes) c.body->nodes.push_back(clone(i));
      for (ValueId y : n.body->yields) c.body->yields.push_back(now(y));
    }
    for (const ir::Region& r : n.regions)
      c.regions.push_back({std::make_unique<Module>(ir::clone(*r.module)), r.scalars});
    for (ValueId r : n.results) c.results.push_back(fresh(r));
    return c;
  }
  ValueId fresh(ValueId v) { return to_[v] = m_.new_value(ir::Type(m_.type(v))); }

  Result<void> unroll(const Node& loop) {
    std::vector<ValueId> carried;
    for (ValueId v : loop.operands) carried.push_back(now(v));
    for (int64_t trip = 0; trip < loop.attrs.index; ++trip) {
      ir::Attrs i;
      i.value = Scalar::of_int(trip);
      GK_TRY(to_[loop.body->params[0]], ir::append(m_, m_.top, Op::Const, {}, i, loop.span));
      for (size_t k = 0; k < carried.size(); ++k) to_[loop.body->params[k + 1]] = carried[k];
      for (const Node& n : loop.body->nodes) {
        if (to_unroll(n))
          GK_CHECK(unroll(n));
        else
          m_.top.nodes.push_back(clone(n));
      }
      for (size_t k = 0; k < carried.size(); ++k) carried[k] = now(loop.body->yields[k]);
    }
    for (size_t k = 0; k < carried.size(); ++k) to_[loop.results[k]] = carried[k];
    return {};
  }

  Module& m_;
  Lookup look_;
  program::TargetKind target_;
  int64_t most_;
  std::unordered_map<ValueId, ValueId> to_;
};

// Rebuilds the top block node by node; `rewrite` may append a replacement and gives the value that stands for
// the node's result, or -1 to keep the node.
template <class F>
Result<void> rebuild(Module& m, F rewrite) {
  std::vector<Node> nodes = std::move(m.top.nodes);
  m.top.nodes.clear();
  std::unordered_map<ValueId, ValueId> to;
  const auto rename = [&](auto& self, Node& n) -> void {
    for (ValueId& v : n.operands)
      if (const auto it = to.find(v); it != to.end()) v = it->second;
    if (!n.body) return;
    for (Node& i : n.body->nodes) self(self, i);
    for (ValueId& v : n.body->yields)
      if (const auto it = to.find(v); it != to.end()) v = it->second;
  };
  for (Node& n : nodes) {
    if (!to.empty()) rename(rename, n);
    GK_TRY(const ValueId v, rewrite(n));
    if (v < 0)
      m.top.nodes.push_back(std::move(n));
    else
      to[n.results[0]] = v;
  }
  for (ir::Output& o : m.outputs)
    if (const auto it = to.find(o.value); it != to.end()) o.value = it->second;
  return {};
}

}  // namespace

Result<void> unroll_loops(ir::Module& m, const Options& options) { return Unroller(m, options).run(); }

Result<void> expand_products(ir::Module& m) {
  if (!m.fuse) return {};
  return rebuild(m, [&](const Node& n) -> Result<ValueId> {
    if (n.op != Op::MatMul) return -1;
    const ir::Type ta = m.type(n.operands[0]), tb = m.type(n.operands[1]);
    if (ta.rank() > 1 && tb.rank() > 1) return -1;
    const DType t = ta.dtype, wide = is_float(t) ? accumulator(t) : t;
    const auto append = [&](Op op, std::vector<ValueId> v, const ir::Attrs& a) {
      return ir::append(m, m.top, op, std::move(v), a, n.span);
    };
    ir::Attrs cast, view, sum;
    cast.dtype = wide;
    ValueId a = n.operands[0], b = n.operands[1];
    if (wide != t) {
      GK_TRY(a, append(Op::Cast, {a}, cast));
      GK_TRY(b, append(Op::Cast, {b}, cast));
    }
    if (ta.rank() > 1) {  // [.., M, K] @ [K]
      view.shape = ta.shape();
      sum.axes = {ta.rank() - 1};
      GK_TRY(b, append(Op::Broadcast, {b}, view));
    } else if (tb.rank() > 1) {  // [K] @ [.., K, N]
      view.shape = Shape{ta.shape()[0], 1};
      GK_TRY(a, append(Op::Reshape, {a}, view));
      view.shape = tb.shape();
      sum.axes = {tb.rank() - 2};
      GK_TRY(a, append(Op::Broadcast, {a}, view));
    } else {
      sum.axes = {0};
    }
    GK_TRY(const ValueId product, append(Op::Mul, {a, b}, {}));
    GK_TRY(ValueId out, append(Op::Sum, {product}, sum));
    cast.dtype = t;
    if (m.type(out).dtype != t) {
      GK_TRY(out, append(Op::Cast, {out}, cast));
    }
    return out;
  });
}

Result<void> expand_concats(ir::Module& m) {
  return rebuild(m, [&](const Node& n) -> Result<ValueId> {
    if (n.op != Op::Concat || n.operands.size() <= kConcatWidth) return -1;
    std::vector<ValueId> parts = n.operands;
    while (parts.size() > 1) {
      std::vector<ValueId> next;
      for (size_t i = 0; i < parts.size(); i += kConcatWidth) {
        std::vector<ValueId> some(
            parts.begin() + static_cast<long>(i),
            parts.begin() + static_cast<long>(std::min(parts.size(), i + kConcatWidth)));
        if (some.size() == 1) {
          next.push_back(some[0]);
          continue;
        }
        GK_TRY(const ValueId v, ir::append(m, m.top, Op::Concat, std::move(some), n.attrs, n.span));
        next.push_back(v);
      }
      parts = std::move(next);
    }
    return parts[0];
  });
}

}  // namespace gk::passes
