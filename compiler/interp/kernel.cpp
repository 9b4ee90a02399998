// User kernels, point by point in row-major order. A bad load gives 0, a bad store is skipped; both, and an
// integer division by zero, are faults unless the instruction is unchecked.
#include <algorithm>
#include <array>

#include "compiler/interp/eval.h"

namespace gk::interp {
namespace {

using ir::KInst;
using ir::KKind;

class KernelRun {
 public:
  KernelRun(const ir::Kernel& k, std::span<Array> arrays, std::span<const Scalar> scalars, Faults& faults)
      : k_(k),
        arrays_(arrays),
        scalars_(scalars),
        faults_(faults),
        values_(static_cast<size_t>(k.num_values)) {}

  void point(const Shape& at) {
    at_ = at;
    locals_.clear();
    for (const ir::KLocal& l : k_.locals) locals_.push_back(Scalar::of_int(0, l.dtype));
    block(k_.body);
  }

 private:
  enum class Flow : uint8_t { Next, Break, Continue };

  Scalar& value(int v) { return values_[static_cast<size_t>(v)]; }
  int64_t size(const ir::KSize& s) const {
    return s.param < 0 ? s.value : scalars_[static_cast<size_t>(s.param)].i;
  }
  const ir::KParam& param(int p) const { return k_.params[static_cast<size_t>(p)]; }

  Flow block(const ir::KBlock& b) {
    for (const KInst& i : b.insts)
      if (const Flow f = inst(i); f != Flow::Next) return f;
    return Flow::Next;
  }

  Flow inst(const KInst& i) {
    switch (i.kind) {
      case KKind::If:
        if (value(i.args[0]).i) return block(*i.blocks[0]);
        return i.blocks.size() > 1 ? block(*i.blocks[1]) : Flow::Next;
      case KKind::For: return for_loop(i);
      case KKind::While:
        while (true) {
          block(*i.blocks[0]);
          if (!value(i.blocks[0]->result).i || block(*i.blocks[1]) == Flow::Break) return Flow::Next;
        }
      case KKind::Break: return Flow::Break;
      case KKind::Continue: return Flow::Continue;
      case KKind::VarSet: locals_[static_cast<size_t>(i.local)] = value(i.args[0]); return Flow::Next;
      case KKind::Store:
        if (const auto at = element(i))
          arrays_[static_cast<size_t>(i.access.param)].set(*at, value(i.args[0]));
        return Flow::Next;
      case KKind::StoreIndexed:
        if (const auto at = indexed(i, i.args.size() - 1))
          arrays_[static_cast<size_t>(i.param)].set(*at, value(i.args.back()));
        return Flow::Next;
      default: break;
    }
    const Scalar v = compute(i);
    if (i.result >= 0) value(i.result) = v;
    return Flow::Next;
  }

  // The bounds are read once. A step that would overflow i64 ends the loop.
  Flow for_loop(const KInst& i) {
    const int64_t end = value(i.args[1]).i, step = value(i.args[2]).i;
    int64_t n = value(i.args[0]).i;
    while (step > 0 ? n < end : step < 0 && n > end) {
      locals_[static_cast<size_t>(i.local)] = Scalar::of_int(n);
      if (block(*i.blocks[0]) == Flow::Break) break;
      if (__builtin_add_overflow(n, step, &n)) break;
    }
    return Flow::Next;
  }

  Scalar compute(const KInst& i) {
    switch (i.kind) {
      case KKind::Const: return i.value;
      case KKind::ScalarParam: return scalars_[static_cast<size_t>(i.param)];
      case KKind::AxisIndex: return Scalar::of_int(at_[i.axis]);
      case KKind::Extent: return Scalar::of_int(size(param(i.param).extents[static_cast<size_t>(i.axis)]));
      case KKind::Cast: return value(i.args[0]).cast(i.dtype);
      case KKind::VarGet: return locals_[static_cast<size_t>(i.local)];
      case KKind::Load: {
        const auto at = element(i);
        return at ? arrays_[static_cast<size_t>(i.access.param)].get(*at) : Scalar::of_int(0, i.dtype);
      }
      case KKind::LoadIndexed: {
        const auto at = indexed(i, i.args.size());
        return at ? arrays_[static_cast<size_t>(i.param)].get(*at) : Scalar::of_int(0, i.dtype);
      }
      case KKind::Gather: return gather(i);
      case KKind::Atomic: return atomic(i);
      case KKind::RngUniform:
      case KKind::RngNormal: {
        const auto seed = static_cast<uint64_t>(value(i.args[0]).i),
                   position = static_cast<uint64_t>(value(i.args[1]).i);
        const bool uniform = i.kind == KKind::RngUniform;
        return Scalar::of_float(
            uniform ? rng_uniform(seed, position, i.dtype) : rng_normal(seed, position, i.dtype), i.dtype);
      }
      default: break;
    }
    std::array<Scalar, 3> args;
    for (size_t a = 0; a < i.args.size(); ++a) args[a] = value(i.args[a]);
    const std::span<const Scalar> used(args.data(), i.args.size());
    if (ir::divides_by_zero(i.op, used)) faults_.division(i.span);
    return ir::apply(i.op, used, i.dtype);
  }

  std::optional<int64_t> in_array(int p, int64_t at) const {
    if (at < 0 || at >= arrays_[static_cast<size_t>(p)].size()) return std::nullopt;
    return at;
  }
  std::optional<int64_t> element(const KInst& i) const {
    int64_t at = size(i.access.offset);
    for (size_t a = 0; a < i.access.strides.size(); ++a)
      at += size(i.access.strides[a]) * at_[static_cast<int>(a)];
    return in_array(i.access.param, at);
  }

  // Row-major position of the first `n` arguments as indices; nullopt, and a fault, when one is out of range.
  std::optional<int64_t> indexed(const KInst& i, size_t n) {
    const ir::KParam& p = param(i.param);
    if (n != p.extents.size()) return in_array(i.param, value(i.args[0]).i);  // one linear index
    int64_t at = 0;
    for (size_t a = 0; a < n; ++a) {
      const int64_t index = value(i.args[a]).i, extent = size(p.extents[a]);
      if (index < 0 || index >= extent) {
        if (i.checked) faults_.index(static_cast<int64_t>(a), index, extent, i.span);
        return std::nullopt;
      }
      at = at * extent + index;
    }
    return in_array(i.param, at);
  }

  Scalar gather(const KInst& i) {
    const int64_t index = value(i.args[0]).i, extent = size(i.size);
    if (index < 0 || index >= extent) {
      if (i.checked) faults_.index(std::max(i.axis, 0), index, extent, i.span);
      return Scalar::of_int(0, i.dtype);
    }
    int64_t at = size(i.access.offset) + index * size(i.stride);
    for (size_t a = 0; a < i.access.strides.size(); ++a)
      at += size(i.access.strides[a]) * at_[static_cast<int>(a)];
    const auto inside = in_array(i.access.param, at);
    return inside ? arrays_[static_cast<size_t>(i.access.param)].get(*inside) : Scalar::of_int(0, i.dtype);
  }

  static ir::Op op_of(ir::AtomicOp op) {
    switch (op) {
      case ir::AtomicOp::Min: return ir::Op::Min;
      case ir::AtomicOp::Max: return ir::Op::Max;
      case ir::AtomicOp::And: return ir::Op::And;
      case ir::AtomicOp::Or: return ir::Op::Or;
      case ir::AtomicOp::Xor: return ir::Op::Xor;
      default: return ir::Op::Add;
    }
  }
  Scalar atomic(const KInst& i) {
    const DType t = param(i.param).dtype;
    const auto at = indexed(i, i.args.size() - 1);
    if (!at) return Scalar::of_int(0, t);
    Array& a = arrays_[static_cast<size_t>(i.param)];
    const Scalar args[] = {a.get(*at), value(i.args.back())};
    a.set(*at, i.atomic == ir::AtomicOp::Exchange ? args[1] : ir::apply(op_of(i.atomic), args, t));
    return args[0];
  }

  const ir::Kernel& k_;
  std::span<Array> arrays_;
  std::span<const Scalar> scalars_;
  Faults& faults_;
  std::vector<Scalar> values_, locals_;
  Shape at_;
};

}  // namespace

void run_kernel(const ir::Kernel& k, const Shape& axes, std::span<Array> arrays,
                std::span<const Scalar> scalars, Faults& faults) {
  KernelRun run(k, arrays, scalars, faults);
  for_each_index(axes, [&](const Shape& at, int64_t) { run.point(at); });
}

}  // namespace gk::interp
