#include "compiler/passes/weight.h"

#include <algorithm>

namespace gk::passes {
namespace {

using program::TargetKind;

constexpr int64_t kHeaviest = INT64_MAX / 4;

// The host's functions of f64 and its sines are calls, whose code stands in a kernel once; the others are
// written out. Those of libdevice are linked in.
int64_t function_weight(Op op, DType t, TargetKind target) {
  const bool wide = t == DType::F64;
  if (target == TargetKind::Host && wide) return 4;
  const int64_t scale = target == TargetKind::Cuda && wide ? 2 : 1;
  switch (op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Expm1: return scale * 30;
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Tanh:
    case Op::Sinh:
    case Op::Cosh: return scale * 50;
    case Op::Sin:
    case Op::Cos:
    case Op::Tan: return scale * (target == TargetKind::Cuda ? 120 : 12);
    default: return scale * 80;
  }
}

bool is_function(Op op) {
  switch (op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Expm1:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Sinh:
    case Op::Cosh:
    case Op::Tanh:
    case Op::Asinh:
    case Op::Acosh:
    case Op::Atanh:
    case Op::Erf:
    case Op::Atan2: return true;
    default: return false;
  }
}

int64_t own_weight(const Lookup& l, const Node& n, TargetKind target) {
  if (n.results.empty()) return 1;
  const DType t = l.module().type(n.results[0]).dtype;
  // 16-bit floats are widened and rounded around every operation.
  const int64_t narrow = t == DType::F16 || t == DType::BF16 ? 8 : 0;
  if (is_function(n.op)) return function_weight(n.op, t, target) + narrow;
  switch (n.op) {
    case Op::Pow: return is_integer(t) ? 8 : function_weight(n.op, t, target) + narrow;
    case Op::PowInt:
    case Op::FloorDiv:
    case Op::Mod: return 20 + narrow;
    case Op::Take: return 15;
    case Op::RngUniform: return 120;
    case Op::RngNormal: return 300;
    case Op::Concat: return 8 * static_cast<int64_t>(n.operands.size());
    case Op::UpdateSlice: return 10;
    default: return 1 + narrow;
  }
}

int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kHeaviest ? kHeaviest : product;
}

}  // namespace

int cost_of(const Node& n) {
  switch (n.op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Expm1:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Tanh:
    case Op::Sinh:
    case Op::Cosh:
    case Op::Sqrt:
    case Op::Erf: return 4;
    case Op::Pow:
    case Op::PowInt:
    case Op::Atan2:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Asinh:
    case Op::Acosh:
    case Op::Atanh:
    case Op::FloorDiv:
    case Op::Mod: return 8;
    case Op::Div: return 2;
    default: return ir::is_elementwise(n.op) ? 1 : 100;
  }
}

int64_t weight(const Lookup& l, const Node& n, TargetKind target) {
  if (!n.body) return own_weight(l, n, target);
  int64_t w = 1;
  for (const Node& i : n.body->nodes) w += weight(l, i, target);
  return w;
}

int64_t unrolled_weight(const Lookup& l, const Node& n, TargetKind target) {
  if (!n.body) return is_leaf(n.op) || is_view(n.op) ? 0 : own_weight(l, n, target);
  int64_t turn = 1;
  for (const Node& i : n.body->nodes) turn = std::min(kHeaviest, turn + unrolled_weight(l, i, target));
  return times(turn, n.attrs.index);
}

}  // namespace gk::passes
