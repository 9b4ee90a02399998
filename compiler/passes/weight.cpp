#include "compiler/passes/weight.h"

#include <algorithm>

namespace gk::passes {
namespace {

using program::TargetKind;

constexpr int64_t kHeaviest = INT64_MAX / 4;

// The host's functions of f64 and its sines are calls, whose code stands in a kernel once; the others are
// written out. Those of libdevice are linked in, twice as long for f64.
int64_t function_weight(Op op, DType t, TargetKind target) {
  const ir::CodeSize size = ir::info(op).size;
  if (target == TargetKind::Cuda) return size.cuda * (t == DType::F64 ? 2 : 1);
  return t == DType::F64 ? 4 : size.host;
}

int64_t own_weight(const Lookup& l, const Node& n, TargetKind target) {
  if (n.results.empty()) return 1;
  const DType t = l.module().type(n.results[0]).dtype;
  // 16-bit floats are widened and rounded around every operation.
  const int64_t narrow = t == DType::F16 || t == DType::BF16 ? 8 : 0;
  if (ir::is_function(n.op) && !is_integer(t)) return function_weight(n.op, t, target) + narrow;
  if (n.op == Op::Pow) return 8;
  if (n.op == Op::Concat) return 8 * static_cast<int64_t>(n.operands.size());
  const int64_t size = target == TargetKind::Cuda ? ir::info(n.op).size.cuda : ir::info(n.op).size.host;
  const ir::OpClass cls = ir::info(n.op).cls;
  return size + (cls == ir::OpClass::Movement || cls == ir::OpClass::Random ? 0 : narrow);
}

int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kHeaviest ? kHeaviest : product;
}

}  // namespace

int cost_of(const Node& n) { return ir::is_elementwise(n.op) ? ir::info(n.op).cost : 100; }

int64_t weight(const Lookup& l, const Node& n, TargetKind target) {
  if (n.op != Op::Loop) return own_weight(l, n, target);
  int64_t w = 1;
  for (const Node& i : n.regions[0].nodes) w += weight(l, i, target);
  return w;
}

int64_t unrolled_weight(const Lookup& l, const Node& n, TargetKind target) {
  if (n.op != Op::Loop) return is_leaf(n.op) || is_view(n.op) ? 0 : own_weight(l, n, target);
  int64_t turn = 1;
  for (const Node& i : n.regions[0].nodes) turn = std::min(kHeaviest, turn + unrolled_weight(l, i, target));
  return times(turn, n.attrs.index);
}

}  // namespace gk::passes
