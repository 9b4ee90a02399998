#include "compiler/passes/expand.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/passes/copier.h"
#include "compiler/passes/lookup.h"
#include "compiler/passes/weight.h"

namespace gk::passes {
namespace {

constexpr size_t kConcatWidth = 8;

class Unroller {
 public:
  Unroller(Module& m, const Options& options)
      : m_(m), look_(m), copy_(m, m), target_(options.target), most_(options.max_unrolled_ops) {}

  Result<void> run() {
    if (!any(m_.top)) return {};
    // The lookup points into `nodes`, whose elements did not move.
    const std::vector<Node> nodes = std::exchange(m_.top.nodes, {});
    for (const Node& n : nodes) GK_CHECK(node(n, m_.top));
    for (ir::Output& o : m_.outputs) o.value = copy_.now(o.value);
    return {};
  }

 private:
  // Straight code vectorises on the host and schedules better on a GPU; a long loop stays one inside its
  // kernel.
  bool to_unroll(const Node& n) const {
    if (n.op != Op::Loop) return false;
    return !is_elementwise_loop(look_, n) || unrolled_weight(look_, n, target_) <= most_;
  }
  bool any(const ir::Region& r) const {
    return std::any_of(r.nodes.begin(), r.nodes.end(), [&](const Node& n) {
      return n.op == Op::Loop ? to_unroll(n)
                              : std::any_of(n.regions.begin(), n.regions.end(),
                                            [&](const ir::Region& i) { return any(i); });
    });
  }

  Result<void> node(const Node& n, ir::Region& out) {
    if (to_unroll(n)) return unroll(n, out);
    if (n.op == Op::Loop) {  // with the loops inside
      out.nodes.push_back(copy_.node(n));
      return {};
    }
    Result<void> done;
    out.nodes.push_back(copy_.node(n, [&](const Node& inner, ir::Region& r) {
      if (done) done = node(inner, r);
    }));
    return done;
  }

  Result<void> unroll(const Node& loop, ir::Region& out) {
    const ir::Region& body = loop.regions[0];
    std::vector<ValueId> inputs;
    for (ValueId v : loop.operands) inputs.push_back(copy_.now(v));
    for (int64_t trip = 0; trip < loop.attrs.index; ++trip) {
      ir::Attrs i;
      i.value = Scalar::of_int(trip);
      GK_TRY(const ValueId turn, ir::append(m_, out, Op::Const, {}, i, loop.span));
      copy_.set(body.params[0], turn);
      for (size_t k = 0; k < inputs.size(); ++k) copy_.set(body.params[k + 1], inputs[k]);
      for (const Node& n : body.nodes) GK_CHECK(node(n, out));
      for (size_t k = 0; k < body.yields.size(); ++k) inputs[k] = copy_.now(body.yields[k]);
    }
    for (size_t k = 0; k < loop.results.size(); ++k) copy_.set(loop.results[k], inputs[k]);
    return {};
  }

  Module& m_;
  Lookup look_;
  Copier copy_;
  program::TargetKind target_;
  int64_t most_;
};

// Rebuilds regions node by node; `rewrite` may append a replacement and gives the value that stands for the
// node's result, or -1 to keep the node.
template <class F>
class Rebuilder {
 public:
  explicit Rebuilder(F rewrite) : rewrite_(std::move(rewrite)) {}
  Result<void> run(Module& m) {
    GK_CHECK(region(m.top));
    for (ir::Output& o : m.outputs) rename(o.value);
    return {};
  }

 private:
  void rename(ValueId& v) const {
    if (const auto it = to_.find(v); it != to_.end()) v = it->second;
  }
  Result<void> region(ir::Region& r) {
    std::vector<Node> nodes = std::exchange(r.nodes, {});
    for (Node& n : nodes) {
      for (ValueId& v : n.operands) rename(v);
      for (ir::Region& inner : n.regions) GK_CHECK(region(inner));
      GK_TRY(const ValueId v, rewrite_(n, r));
      if (v < 0)
        r.nodes.push_back(std::move(n));
      else
        to_[n.results[0]] = v;
    }
    for (ValueId& v : r.yields) rename(v);
    return {};
  }

  F rewrite_;
  std::unordered_map<ValueId, ValueId> to_;
};

}  // namespace

Result<void> unroll_loops(ir::Module& m, const Options& options) { return Unroller(m, options).run(); }

Result<void> expand_products(ir::Module& m) {
  if (!m.fuse) return {};
  return Rebuilder([&](const Node& n, ir::Region& r) -> Result<ValueId> {
           if (n.op != Op::MatMul) return -1;
           const ir::Type ta = m.type(n.operands[0]), tb = m.type(n.operands[1]);
           if (ta.rank() > 1 && tb.rank() > 1) return -1;
           const DType t = ta.dtype, wide = is_float(t) ? accumulator(t) : t;
           const auto append = [&](Op op, std::vector<ValueId> v, const ir::Attrs& a) {
             return ir::append(m, r, op, std::move(v), a, n.span);
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
         })
      .run(m);
}

Result<void> expand_concats(ir::Module& m) {
  return Rebuilder([&](const Node& n, ir::Region& r) -> Result<ValueId> {
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
               GK_TRY(const ValueId v, ir::append(m, r, Op::Concat, std::move(some), n.attrs, n.span));
               next.push_back(v);
             }
             parts = std::move(next);
           }
           return parts[0];
         })
      .run(m);
}

}  // namespace gk::passes
