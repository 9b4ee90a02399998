#include "compiler/passes/simplify.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "compiler/ir/apply.h"
#include "compiler/passes/lookup.h"

namespace gk::passes {
namespace {

/// What every device computes alike, before it runs. Functions of a library are not among it, nor what
/// faults; the bits of a NaN are the device's business.
std::optional<Scalar> fold(Op op, const Scalar& a, const Scalar* b, const ir::Attrs& attrs) {
  if (op == Op::Cast) return a.cast(attrs.dtype);
  if (ir::is_function(op) || !ir::info(op).pure) return std::nullopt;
  const DType result = ir::gives_bool(op) ? DType::Bool : a.dtype;
  const Scalar r = b ? ir::apply(op, std::array{a, *b}, result) : ir::apply(op, std::array{a}, result);
  if (r.is_float() && std::isnan(r.f)) return std::nullopt;
  return r;
}

bool is_value(const std::optional<Scalar>& s, double f, int64_t i) {
  return s && (s->is_float() ? std::bit_cast<uint64_t>(s->f) == std::bit_cast<uint64_t>(f)
                             : !is_bool(s->dtype) && s->i == i);
}

class Simplifier {
 public:
  explicit Simplifier(Module& m) : m_(m), look_(m), to_(m.value_types.size()) {
    for (size_t i = 0; i < to_.size(); ++i) to_[i] = static_cast<ValueId>(i);
  }

  void run() {
    region(m_.top);
    for (ir::Output& o : m_.outputs) o.value = to_[static_cast<size_t>(o.value)];
  }

 private:
  void region(ir::Region& r) {
    for (Node& n : r.nodes) {
      for (ValueId& v : n.operands) v = to_[static_cast<size_t>(v)];
      for (ir::Region& inner : n.regions) region(inner);
      if (n.results.size() != 1 || ir::info(n.op).cls == ir::OpClass::Structure) continue;
      const ValueId same = node(n);
      if (same >= 0 && m_.type(same).same_as(m_.type(n.results[0])))
        to_[static_cast<size_t>(n.results[0])] = same;
    }
    for (ValueId& v : r.yields) v = to_[static_cast<size_t>(v)];
  }

  // The value that `n` equals, else -1; may rewrite `n` in place.
  ValueId node(Node& n) {
    if (is_view(n.op)) return view(n);
    if (ir::is_elementwise(n.op)) return elementwise(n);
    if (n.op == Op::UpdateSlice) return update(n);
    if (n.op == Op::RngAdvance) return advance(n);
    if (n.op == Op::Concat) return concat(n);
    return -1;
  }

  // Without this, the k-th draw of a program would add k counts in every kernel.
  ValueId advance(Node& n) {
    const Node* in = look_.node(n.operands[0]);
    if (in && in->op == Op::RngAdvance) {
      n.attrs.index =
          static_cast<int64_t>(static_cast<uint64_t>(n.attrs.index) + static_cast<uint64_t>(in->attrs.index));
      n.operands[0] = in->operands[0];
    }
    return -1;
  }

  ValueId concat(Node& n) {
    const auto axis = static_cast<int>(n.attrs.axes[0]);
    const ValueId first = n.operands[0];
    std::erase_if(n.operands, [&](ValueId v) { return look_.shape(v)[axis] == 0; });
    if (n.operands.empty()) n.operands.push_back(first);
    return n.operands.size() == 1 ? n.operands[0] : -1;
  }

  ValueId update(const Node& n) {
    const Shape base = look_.shape(n.operands[0]), value = look_.shape(n.operands[1]);
    if (num_elements(value) == 0) return n.operands[0];
    bool whole = base == value;
    for (int i = 0; i < base.rank() && whole; ++i) whole = base[i] == 1 || n.attrs.steps[i] == 1;
    return whole ? n.operands[1] : -1;
  }

  ValueId view(Node& n) {
    const ValueId x = n.operands[0];
    const Node* in = look_.node(x);
    if (in && in->op == n.op) compose(n, *in);
    const ValueId from = n.operands[0];
    const Shape a = look_.shape(from), b = look_.shape(n.results[0]);
    if (n.op == Op::Transpose) {
      const bool identity = std::is_sorted(n.attrs.axes.begin(), n.attrs.axes.end());
      return identity ? from : -1;
    }
    if (!(a == b)) return -1;
    if (n.op == Op::Slice)
      for (int i = 0; i < a.rank(); ++i)
        if (a[i] > 1 && n.attrs.steps[i] != 1) return -1;
    return from;
  }

  void compose(Node& n, const Node& in) {
    const ir::Attrs& a = in.attrs;
    if (n.op == Op::Transpose)
      for (int64_t& axis : n.attrs.axes) axis = a.axes[static_cast<size_t>(axis)];
    if (n.op == Op::Slice)
      for (int i = 0; i < n.attrs.shape.rank(); ++i) {
        n.attrs.starts[i] = a.starts[i] + n.attrs.starts[i] * a.steps[i];
        n.attrs.steps[i] *= a.steps[i];
      }
    n.operands[0] = in.operands[0];
  }

  void make_const(Node& n, const Scalar& s) {
    n.op = Op::Const;
    n.operands.clear();
    n.attrs = {};
    n.attrs.value = s;
  }

  ValueId elementwise(Node& n) {
    const ValueId x = n.operands[0];
    const DType t = m_.type(x).dtype;
    if (n.op == Op::Cast && t == n.attrs.dtype) return x;
    const Node* in = look_.node(x);
    if (in && in->op == n.op && (n.op == Op::Neg || n.op == Op::Not || n.op == Op::BitNot))
      return in->operands[0];
    if (n.op == Op::Where) return where(n);
    const auto a = constant_of(look_, x);
    const auto b = n.operands.size() == 2 ? constant_of(look_, n.operands[1]) : std::nullopt;
    if (a && m_.type(n.results[0]).rank() == 0 && (n.operands.size() == 1 || b))
      if (const auto s = fold(n.op, *a, b ? &*b : nullptr, n.attrs)) {
        make_const(n, *s);
        return -1;
      }
    return n.operands.size() == 2 ? binary(n, a, b) : -1;
  }

  ValueId where(const Node& n) {
    if (n.operands[1] == n.operands[2]) return n.operands[1];
    const auto c = constant_of(look_, n.operands[0]);
    return c ? n.operands[c->i != 0 ? 1 : 2] : -1;
  }

  ValueId binary(Node& n, const std::optional<Scalar>& a, const std::optional<Scalar>& b) {
    const ValueId x = n.operands[0], y = n.operands[1];
    switch (n.op) {
      case Op::Add:
        if (is_value(b, -0.0, 0)) return x;
        return is_value(a, -0.0, 0) ? y : -1;
      case Op::Sub: return is_value(b, 0.0, 0) ? x : -1;
      case Op::Mul:
        if (is_value(b, 1.0, 1)) return x;
        return is_value(a, 1.0, 1) ? y : -1;
      case Op::Div: return is_value(b, 1.0, 1) ? x : -1;
      case Op::Pow:
        // Of floats what the exponent is must not depend on whether it is known here.
        if (b && b->is_float()) return -1;
        [[fallthrough]];
      case Op::PowInt:
        if (is_value(b, 1.0, 1)) return x;
        if (is_value(b, 2.0, 2)) {
          n.op = Op::Mul;
          n.operands[1] = x;
        }
        return -1;
      case Op::Min:
      case Op::Max:
      case Op::And:
      case Op::Or: return x == y ? x : -1;
      default: return -1;
    }
  }

  Module& m_;
  Lookup look_;
  std::vector<ValueId> to_;
};

}  // namespace

Result<void> simplify(ir::Module& m) {
  Simplifier(m).run();
  return {};
}

}  // namespace gk::passes
