// The invariants of kernel IR, so that code generation may trust what it reads. Failures are compiler bugs.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/kernel.h"
#include "compiler/ir/text.h"

namespace gk::ir {
namespace {

constexpr int kMaxValues = 1 << 24;

class KernelVerifier {
 public:
  explicit KernelVerifier(const Kernel& k)
      : k_(k), types_(static_cast<size_t>(std::clamp(k.num_values, 0, kMaxValues))) {}

  Result<void> run() {
    if (k_.num_values < 0 || k_.num_values > kMaxValues) return bad(fmt::format("{} values", k_.num_values));
    for (const KParam& p : k_.params)
      for (const KSize& s : p.extents) GK_CHECK(size(s));
    for (const KSize& s : k_.axes) GK_CHECK(size(s));
    for (const KSize& s : k_.reduce_axes) GK_CHECK(size(s));
    const bool reduces = k_.kind == Kernel::Kind::Reduce || k_.kind == Kernel::Kind::MatMul;
    if (reduces == k_.reduce_axes.empty())
      return bad("only reduce and matmul kernels have reduce_axes, and they must");
    indices_ = k_.axes.size() + (k_.kind == Kernel::Kind::Reduce ? k_.reduce_axes.size() : 0);
    GK_CHECK(block(k_.body, false));
    GK_CHECK(reductions());
    if (k_.kind == Kernel::Kind::MatMul) GK_CHECK(matmul());
    leave(0);
    indices_ = k_.axes.size();
    epilogue_ = true;
    if (!reduces && !k_.epilogue.insts.empty()) return bad("a kernel without reductions has an epilogue");
    GK_CHECK(block(k_.epilogue, false));
    if (!k_.uses_faults && !fault_sites(k_).empty()) return bad("it has fault sites but does not use faults");
    return {};
  }

 private:
  struct Value {
    DType dtype = DType::Bool;
    bool defined = false, live = false;
  };

  Failure bad(std::string what, Span span = {}) const {
    return fail(ErrorKind::Internal, "E0901", fmt::format("invalid kernel {}: {}", k_.name, what), span);
  }
  Failure bad_inst(const KInst& i, std::string_view what) const {
    return bad(fmt::format("{}: {}", i.kind == KKind::Compute ? info(i.op).name : text::name(i.kind), what),
               i.span);
  }

  Result<void> size(const KSize& s) const {
    if (s.param < 0) return {};
    if (s.param >= static_cast<int>(k_.params.size()))
      return bad(fmt::format("no parameter {} for a size", s.param));
    const KParam& p = k_.params[static_cast<size_t>(s.param)];
    if (p.kind != KParam::Kind::Scalar || p.dtype != DType::I64)
      return bad(fmt::format("size parameter {} is not a scalar i64", s.param));
    return {};
  }
  const KParam* buffer(int p) const {
    if (p < 0 || p >= static_cast<int>(k_.params.size())) return nullptr;
    const KParam& param = k_.params[static_cast<size_t>(p)];
    return param.kind == KParam::Kind::Buffer ? &param : nullptr;
  }
  Result<const KParam*> access(const KInst& i, const Access& a, size_t axes) const {
    const KParam* p = buffer(a.param);
    if (!p) return bad_inst(i, fmt::format("parameter {} is not a buffer", a.param));
    if (a.strides.size() != axes)
      return bad_inst(i, fmt::format("{} strides over {} axes", a.strides.size(), axes));
    for (const KSize& s : a.strides) GK_CHECK(size(s));
    GK_CHECK(size(a.offset));
    return p;
  }

  Result<void> reductions() const {
    if ((k_.kind == Kernel::Kind::Reduce) == k_.reductions.empty())
      return bad("only reduce kernels have reductions, and they must");
    for (const KReduction& r : k_.reductions) {
      if (r.value < 0 || r.value >= k_.num_values || !types_[static_cast<size_t>(r.value)].live)
        return bad(fmt::format("reduced value %{} is not of the body", r.value));
      if (types_[static_cast<size_t>(r.value)].dtype != r.value_dtype)
        return bad(fmt::format("reduced value %{} is not {}", r.value, gk::name(r.value_dtype)));
    }
    return {};
  }
  Result<void> matmul() const {
    if (k_.reduce_axes.size() != 1 || k_.axes.size() < 2)
      return bad("a matmul runs over batch.., m, n and one k");
    KInst at;
    at.kind = KKind::Load;
    for (const Access* a : {&k_.matmul.a, &k_.matmul.b}) {
      GK_TRY(const KParam* p, access(at, *a, k_.axes.size() + 1));
      if (p->dtype != k_.matmul.dtype || !p->read)
        return bad("a matmul operand has another dtype or is not read");
    }
    return {};
  }

  Result<void> define(const KInst& i) {
    if (i.result >= k_.num_values) return bad_inst(i, fmt::format("%{} is past num_values", i.result));
    Value& v = types_[static_cast<size_t>(i.result)];
    if (v.defined) return bad_inst(i, fmt::format("%{} is defined twice", i.result));
    v = {i.dtype, true, true};
    live_.push_back(i.result);
    return {};
  }
  void leave(size_t mark) {
    for (; live_.size() > mark; live_.pop_back()) types_[static_cast<size_t>(live_.back())].live = false;
  }
  Result<DType> use(const KInst& i, int v) const {
    if (v < 0 || v >= k_.num_values || !types_[static_cast<size_t>(v)].live)
      return bad_inst(i, fmt::format("%{} is not defined here", v));
    return types_[static_cast<size_t>(v)].dtype;
  }

  Result<void> block(const KBlock& b, bool condition) {
    const size_t mark = live_.size();
    for (const KInst& i : b.insts) {
      GK_CHECK(inst(i));
      if (i.result >= 0) GK_CHECK(define(i));
    }
    if (condition) {
      if (b.result < 0 || b.result >= k_.num_values || !types_[static_cast<size_t>(b.result)].live ||
          types_[static_cast<size_t>(b.result)].dtype != DType::Bool)
        return bad("a while's condition is not a bool of its block");
    } else if (b.result >= 0) {
      return bad("a block other than a condition has a result");
    }
    if (depth_ > 0) leave(mark);  // the body's own values stay, for the reductions; run() leaves them
    return {};
  }

  Result<void> nested(const KInst& i, size_t least, size_t most) {
    if (i.blocks.size() < least || i.blocks.size() > most)
      return bad_inst(i, fmt::format("{} blocks", i.blocks.size()));
    const bool loop = i.kind != KKind::If;
    for (size_t n = 0; n < i.blocks.size(); ++n) {
      if (!i.blocks[n]) return bad_inst(i, "a block is missing");
      const bool condition = i.kind == KKind::While && n == 0;
      ++depth_;
      loops_ += loop && !condition;
      GK_CHECK(block(*i.blocks[n], condition));
      loops_ -= loop && !condition;
      --depth_;
    }
    return {};
  }

  Result<void> expect(const KInst& i, const std::vector<DType>& have, const std::vector<DType>& want) const {
    if (have != want) return bad_inst(i, "operands of wrong number or dtype");
    return {};
  }
  Result<void> result(const KInst& i, DType want) const {
    if (i.result < 0 || i.dtype != want)
      return bad_inst(i, fmt::format("the result must be {}", gk::name(want)));
    return {};
  }

  Result<void> indexed(const KInst& i, const std::vector<DType>& args, bool has_value) {
    const KParam* p = buffer(i.param);
    if (!p) return bad_inst(i, fmt::format("parameter {} is not a buffer", i.param));
    if (has_value ? !p->written : !p->read)
      return bad_inst(i, fmt::format("parameter {} is not declared so", i.param));
    const size_t n = args.size() - (has_value && !args.empty());
    if (n != p->extents.size() && !(n == 1 && k_.kind != Kernel::Kind::User))
      return bad_inst(i, fmt::format("{} indices", n));
    for (size_t a = 0; a < n; ++a)
      if (args[a] != DType::I64) return bad_inst(i, "an index is not i64");
    if (has_value && (args.empty() || args.back() != p->dtype))
      return bad_inst(i, "the value is not of the buffer's dtype");
    if (!has_value || (i.kind == KKind::Atomic && i.result >= 0)) GK_CHECK(result(i, p->dtype));
    return {};
  }

  Result<void> compute(const KInst& i, const std::vector<DType>& args) const {
    if (i.op >= Op::kCount || !is_elementwise(i.op) || i.op == Op::Cast)
      return bad_inst(i, "not an elementwise op");
    std::vector<Type> types;
    for (DType t : args) types.push_back({t, {}});
    auto want = infer(i.op, types, {});
    if (!want) return bad_inst(i, want.error().message);
    return result(i, want->dtype);
  }

  Result<void> inst(const KInst& i) {
    std::vector<DType> args;
    for (int v : i.args) {
      GK_TRY(const DType t, use(i, v));
      args.push_back(t);
    }
    if (!i.blocks.empty() && i.kind != KKind::If && i.kind != KKind::For && i.kind != KKind::While)
      return bad_inst(i, "it has blocks");
    const bool user_like = k_.kind == Kernel::Kind::User;
    switch (i.kind) {
      case KKind::Const: GK_CHECK(expect(i, args, {})); return result(i, i.value.dtype);
      case KKind::ScalarParam:
        GK_CHECK(expect(i, args, {}));
        if (i.param < 0 || i.param >= static_cast<int>(k_.params.size()) ||
            k_.params[static_cast<size_t>(i.param)].kind != KParam::Kind::Scalar)
          return bad_inst(i, fmt::format("parameter {} is not a scalar", i.param));
        return result(i, k_.params[static_cast<size_t>(i.param)].dtype);
      case KKind::AxisIndex:
        GK_CHECK(expect(i, args, {}));
        if (i.axis < 0 || i.axis >= static_cast<int>(indices_))
          return bad_inst(i, fmt::format("no axis {}", i.axis));
        return result(i, DType::I64);
      case KKind::Extent: {
        GK_CHECK(expect(i, args, {}));
        const KParam* p = buffer(i.param);
        if (!p || i.axis < 0 || i.axis >= static_cast<int>(p->extents.size()))
          return bad_inst(i, "no such extent");
        return result(i, DType::I64);
      }
      case KKind::Compute: return compute(i, args);
      case KKind::Cast:
        if (args.size() != 1 || i.result < 0) return bad_inst(i, "it takes one operand and gives a result");
        return {};
      case KKind::Load: {
        GK_CHECK(expect(i, args, {}));
        GK_TRY(const KParam* p, access(i, i.access, indices_));
        if (!p->read) return bad_inst(i, fmt::format("parameter {} is not read", i.access.param));
        return result(i, p->dtype);
      }
      case KKind::Store: {
        GK_TRY(const KParam* p, access(i, i.access, indices_));
        if (!p->written) return bad_inst(i, fmt::format("parameter {} is not written", i.access.param));
        return expect(i, args, {p->dtype});
      }
      case KKind::LoadIndexed: return indexed(i, args, false);
      case KKind::StoreIndexed: return indexed(i, args, true);
      case KKind::Atomic:
        if (!user_like) return bad_inst(i, "atomics belong to user kernels");
        return indexed(i, args, true);
      case KKind::Gather: {
        GK_CHECK(expect(i, args, {DType::I64}));
        GK_TRY(const KParam* p, access(i, i.access, indices_));
        GK_CHECK(size(i.size));
        GK_CHECK(size(i.stride));
        return result(i, p->dtype);
      }
      case KKind::RngUniform:
      case KKind::RngNormal:
        GK_CHECK(expect(i, args, {DType::U64, DType::U64}));
        if (i.result < 0 || !is_float(i.dtype)) return bad_inst(i, "the result must be a float");
        return {};
      case KKind::ReduceResult: return reduce_result(i, args);
      case KKind::VarGet:
      case KKind::VarSet: {
        if (i.local < 0 || i.local >= static_cast<int>(k_.locals.size()))
          return bad_inst(i, fmt::format("no local {}", i.local));
        const DType t = k_.locals[static_cast<size_t>(i.local)].dtype;
        if (i.kind == KKind::VarSet) return expect(i, args, {t});
        GK_CHECK(expect(i, args, {}));
        return result(i, t);
      }
      case KKind::If: GK_CHECK(expect(i, args, {DType::Bool})); return nested(i, 1, 2);
      case KKind::For:
        GK_CHECK(expect(i, args, {DType::I64, DType::I64, DType::I64}));
        if (i.local < 0 || i.local >= static_cast<int>(k_.locals.size()) ||
            k_.locals[static_cast<size_t>(i.local)].dtype != DType::I64)
          return bad_inst(i, fmt::format("no i64 local {}", i.local));
        return nested(i, 1, 1);
      case KKind::While: GK_CHECK(expect(i, args, {})); return nested(i, 2, 2);
      case KKind::Break:
      case KKind::Continue:
        if (loops_ == 0) return bad_inst(i, "outside a loop");
        return expect(i, args, {});
    }
    return bad_inst(i, "no such instruction");
  }

  Result<void> reduce_result(const KInst& i, const std::vector<DType>& args) const {
    GK_CHECK(expect(i, args, {}));
    if (!epilogue_) return bad_inst(i, "outside the epilogue");
    if (k_.kind == Kernel::Kind::MatMul) {
      if (i.reduction != 0) return bad_inst(i, fmt::format("no reduction {}", i.reduction));
      return result(i, k_.matmul.accumulator);
    }
    if (i.reduction < 0 || i.reduction >= static_cast<int>(k_.reductions.size()))
      return bad_inst(i, fmt::format("no reduction {}", i.reduction));
    const KReduction& r = k_.reductions[static_cast<size_t>(i.reduction)];
    return result(i, r.op == ReduceOp::ArgMin || r.op == ReduceOp::ArgMax ? DType::I64 : r.accumulator);
  }

  const Kernel& k_;
  std::vector<Value> types_;
  std::vector<int> live_;
  size_t indices_ = 0;  // axes that AxisIndex and accesses see
  int depth_ = 0, loops_ = 0;
  bool epilogue_ = false;
};

}  // namespace

Result<void> verify(const Kernel& k) { return KernelVerifier(k).run(); }

}  // namespace gk::ir
