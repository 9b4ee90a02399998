#include "tests/unit/passes_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "compiler/ir/apply.h"
#include "compiler/ir/kernel.h"

namespace gk::passes_test {

using interp::Array;
using ir::KInst;
using ir::KKind;

ValueId Builder::input(DType t, const Shape& s, const std::string& name) {
  ir::SlotInfo slot;
  slot.type = ir::Type::of(t, s);
  slot.is_input = true;
  slot.name = name;
  m.slots.push_back(slot);
  ir::Attrs a;
  a.index = static_cast<int64_t>(m.slots.size()) - 1;
  a.name = name;
  return op(Op::Input, {}, a);
}

ValueId Builder::op(Op o, std::vector<ValueId> operands, ir::Attrs attrs) {
  auto r = ir::append(m, here(), o, std::move(operands), std::move(attrs));
  if (!r) throw std::runtime_error(r.error().message);
  return *r;
}

ValueId Builder::constant(double v, DType t) {
  ir::Attrs a;
  a.value = is_float(t) ? Scalar::of_float(v, t) : Scalar::of_int(static_cast<int64_t>(v)).cast(t);
  return op(Op::Const, {}, a);
}
ValueId Builder::param(double v, DType t) {
  ir::Attrs a;
  a.value = Scalar::of_float(v, DType::F64).cast(t);
  m.params.push_back(a.value);
  a.index = static_cast<int64_t>(m.params.size()) - 1;
  return op(Op::Param, {}, a);
}
ValueId Builder::broadcast(ValueId v, const Shape& s) {
  ir::Attrs a;
  a.shape = s;
  return op(Op::Broadcast, {v}, a);
}
ValueId Builder::reshape(ValueId v, const Shape& s) {
  ir::Attrs a;
  a.shape = s;
  return op(Op::Reshape, {v}, a);
}
ValueId Builder::transpose(ValueId v, std::vector<int64_t> axes) {
  ir::Attrs a;
  a.axes = std::move(axes);
  return op(Op::Transpose, {v}, a);
}
ValueId Builder::slice(ValueId v, const Shape& starts, const Shape& extents, const Shape& steps) {
  ir::Attrs a;
  a.starts = starts, a.shape = extents, a.steps = steps;
  return op(Op::Slice, {v}, a);
}
ValueId Builder::update(ValueId base, ValueId value, const Shape& starts, const Shape& steps) {
  ir::Attrs a;
  a.starts = starts, a.steps = steps;
  return op(Op::UpdateSlice, {base, value}, a);
}
ValueId Builder::reduce(Op o, ValueId v, std::vector<int64_t> axes, bool keepdims) {
  ir::Attrs a;
  a.axes = std::move(axes);
  a.keepdims = keepdims;
  return op(o, {v}, a);
}
ValueId Builder::cast(ValueId v, DType t) {
  ir::Attrs a;
  a.dtype = t;
  return op(Op::Cast, {v}, a);
}
int Builder::out(ValueId v) {
  ir::SlotInfo slot;
  slot.type = m.type(v);
  slot.is_output = slot.fresh = true;
  slot.name = "out";
  m.slots.push_back(slot);
  m.outputs.push_back({v, static_cast<int>(m.slots.size()) - 1});
  return static_cast<int>(m.slots.size()) - 1;
}
void Builder::into(ValueId v, int slot) {
  m.slots[static_cast<size_t>(slot)].is_output = true;
  m.outputs.push_back({v, slot});
}
int Builder::slot_of(ValueId input) const {
  for (const ir::Node& n : m.top.nodes)
    if (n.op == Op::Input && n.results[0] == input) return static_cast<int>(n.attrs.index);
  return -1;
}

std::vector<Array> make_slots(const ir::Module& m, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<Array> out;
  for (const ir::SlotInfo& s : m.slots) {
    Array a = Array::zeros(s.type.dtype, s.type.shape());
    for (int64_t i = 0; i < a.size(); ++i) {
      if (is_float(a.dtype))
        a.set(i, Scalar::of_float(static_cast<double>(rng() % 4001) / 1000.0 - 2.0, a.dtype));
      else
        a.set(i, Scalar::of_int(1 + static_cast<int64_t>(rng() % 8)).cast(a.dtype));
    }
    out.push_back(std::move(a));
  }
  return out;
}

namespace {

struct Memory {
  std::byte* at = nullptr;
  int64_t size_bytes = 0;  // declared, from `at`
};

class Machine {
 public:
  Machine(const passes::Schedule& s, const std::vector<Scalar>& scalars, std::vector<Memory> slots,
          Memory arena, Execution& e)
      : s_(s), scalars_(scalars), slots_(std::move(slots)), e_(e), arena_(arena) {}

  void run() {
    // What an earlier turn, or another branch, left in the arena must not matter.
    if (arena_.size_bytes > 0) std::memset(arena_.at, 0xA5, static_cast<size_t>(arena_.size_bytes));
    for (size_t i = 0; i < s_.program.steps.size(); ++i) {
      const program::Step& step = s_.program.steps[i];
      if (step.kind == program::Step::Kind::Copy) {
        const Memory from = memory(step.reads[0]), to = memory(step.writes[0]);
        std::memmove(to.at, from.at, static_cast<size_t>(from.size_bytes));
      } else if (step.kind == program::Step::Kind::Library) {
        matmul(step);
      } else if (step.kind == program::Step::Kind::Launch) {
        launch(step, s_.uses[i]);
      } else {
        step.kind == program::Step::Kind::Repeat ? repeat(step, s_.bodies[i])
                                                 : conditional(step, s_.bodies[i]);
      }
    }
  }

 private:
  void error(std::string what) {
    if (e_.errors.size() < 8) e_.errors.push_back(std::move(what));
  }
  Memory memory(const program::Ref& r) {
    const bool slot = r.kind == program::Ref::Kind::Slot;
    const Memory& base = slot ? slots_[static_cast<size_t>(r.index)] : arena_;
    if (r.offset_bytes < 0 || r.size_bytes < 0 || r.offset_bytes + r.size_bytes > base.size_bytes)
      error(fmt::format("ref {}+{} outside {}", r.offset_bytes, r.size_bytes, base.size_bytes));
    return {base.at + r.offset_bytes, r.size_bytes};
  }

  static bool overlap(const Memory& a, const Memory& b) {
    return a.size_bytes > 0 && b.size_bytes > 0 && a.at < b.at + b.size_bytes && b.at < a.at + a.size_bytes;
  }
  bool declared(const std::vector<program::Ref>& refs, const Memory& m) {
    return m.size_bytes == 0 || std::any_of(refs.begin(), refs.end(), [&](const program::Ref& r) {
             const Memory in = memory(r);
             return in.at <= m.at && m.at + m.size_bytes <= in.at + in.size_bytes;
           });
  }

  // ---- Bodies
  void repeat(const program::Step& step, const std::vector<passes::Schedule>& bodies) {
    if (bodies.size() != 1 || step.bodies.size() != 1) return error("a repetition has one body");
    for (int64_t turn = 0; turn < step.times; ++turn) body(step, step.bodies[0], bodies[0], turn);
  }
  void conditional(const program::Step& step, const std::vector<passes::Schedule>& bodies) {
    const Memory condition = memory(step.reads[0]);
    const bool loop = step.kind == program::Step::Kind::While;
    if (condition.size_bytes != 1) error("a condition is one byte");
    if (bodies.size() != step.bodies.size()) error("a step and its bodies do not match");
    if (!loop) {
      const size_t which = std::to_integer<int>(*condition.at) != 0 ? 0 : 1;
      if (which < bodies.size()) body(step, step.bodies[which], bodies[which]);
      return;
    }
    for (int turn = 0; std::to_integer<int>(*condition.at) != 0; ++turn) {
      if (turn == 10000) return error("a loop without end");
      body(step, step.bodies[0], bodies[0]);
    }
  }
  void body(const program::Step& step, const program::Body& b, const passes::Schedule& inner,
            int64_t turn = 0) {
    std::vector<Memory> slots;
    if (b.slots.size() != inner.program.slots.size()) return error("a body has other slots than are given");
    for (const program::Ref& r : b.slots) slots.push_back(memory(r));
    for (size_t i = 0; i < slots.size(); ++i) {
      const program::Slot& s = inner.program.slots[i];
      if ((s.read || s.written) && slots[i].size_bytes != s.size_bytes)
        error(fmt::format("slot {} of a body is {} bytes, not {}", i, slots[i].size_bytes, s.size_bytes));
      if (s.read && !declared(step.reads, slots[i]) && !declared(step.writes, slots[i]))
        error("a body reads what its step does not declare");
      if (s.written && !declared(step.writes, slots[i]))
        error("a body writes what its step does not declare");
      for (size_t j = 0; j < slots.size(); ++j)
        if (i != j && s.written && (inner.program.slots[j].read || inner.program.slots[j].written) &&
            overlap(slots[i], slots[j]))
          error(fmt::format("slots {} and {} of a body overlap", i, j));
    }
    Memory arena;
    if (inner.program.arena_bytes > 0) {
      arena = {arena_.at + b.arena_offset_bytes, inner.program.arena_bytes};
      if (b.arena_offset_bytes % 256 != 0) error("a body's arena is not aligned");
      if (b.arena_offset_bytes + inner.program.arena_bytes > arena_.size_bytes)
        return error("a body's arena is outside");
      if (!declared(step.writes, arena)) error("a body's arena is not declared");
    }
    std::vector<Scalar> scalars;
    for (const int32_t s : b.scalars)
      scalars.push_back(s == program::Body::kTurn ? Scalar::of_int(turn) : scalars_[static_cast<size_t>(s)]);
    Machine(inner, scalars, std::move(slots), arena, e_).run();
  }
  Scalar get(const Memory& m, DType t, int64_t element) {
    const int64_t b = size_bytes(t);
    if (element < 0 || (element + 1) * b > m.size_bytes) {
      error(fmt::format("{}: load of element {} of {} bytes", label_, element, m.size_bytes));
      return Scalar::of_int(0).cast(t);
    }
    return Scalar::load(t, m.at + element * b);
  }
  void put(const Memory& m, const Scalar& v, int64_t element) {
    const int64_t b = size_bytes(v.dtype);
    if (element < 0 || (element + 1) * b > m.size_bytes)
      return error(fmt::format("{}: store of element {} of {} bytes", label_, element, m.size_bytes));
    v.store(m.at + element * b);
  }

  void matmul(const program::Step& step) {
    const auto& c = std::get<program::MatMulCall>(step.library);
    label_ = step.label;
    const Memory a = memory(step.reads[0]), b = memory(step.reads[1]), to = memory(step.writes[0]);
    for (int64_t p = 0; p < c.batch; ++p)
      for (int64_t i = 0; i < c.m; ++i)
        for (int64_t j = 0; j < c.n; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < c.k; ++k)
            sum += get(a, c.dtype, p * c.stride_a + (c.trans_a ? k * c.lda + i : i * c.lda + k)).f *
                   get(b, c.dtype, p * c.stride_b + (c.trans_b ? j * c.ldb + k : k * c.ldb + j)).f;
          if (c.has_bias) sum += get(memory(step.reads[2]), c.dtype, j).f;
          if (c.activation == program::MatMulCall::Activation::Relu && !(sum > 0) && !std::isnan(sum))
            sum = 0;
          put(to, Scalar::of_float(sum, c.dtype), p * c.stride_c + i * c.ldc + j);
        }
  }

  // ---- Kernels
  int64_t size(const ir::KSize& s) const {
    return s.param < 0 ? s.value : values_[static_cast<size_t>(s.param)].i;
  }
  int64_t offset(const ir::Access& a, const std::vector<int64_t>& at) const {
    int64_t o = size(a.offset);
    for (size_t k = 0; k < a.strides.size(); ++k) o += size(a.strides[k]) * at[k];
    return o;
  }

  void launch(const program::Step& step, const passes::KernelUse& use) {
    const ir::Kernel& k = *s_.kernels[static_cast<size_t>(use.kernel)];
    label_ = step.label;
    k_ = &k;
    memory_.assign(k.params.size(), {});
    values_.assign(k.params.size(), {});
    if (k.params.size() != step.args.size()) return error("arguments do not match parameters");
    for (size_t i = 0; i < step.args.size(); ++i) {
      const program::Arg& a = step.args[i];
      switch (a.kind) {
        case program::Arg::Kind::Pointer: memory_[i] = memory(a.ref); break;
        case program::Arg::Kind::Value: values_[i] = a.value; break;
        case program::Arg::Kind::ScalarSlot:
          values_[i] = scalars_[static_cast<size_t>(a.slot)].cast(a.dtype);
          break;
        default: error("an argument that only codegen makes");
      }
      if (a.kind != program::Arg::Kind::Pointer && values_[i].dtype != k.params[i].dtype)
        error("an argument has the wrong dtype");
    }
    for (size_t i = 0; i < step.args.size(); ++i)
      for (size_t j = 0; j < step.args.size(); ++j) {
        if (i == j || !memory_[i].at || !memory_[j].at || !k.params[i].written ||
            k.kind == ir::Kernel::Kind::User)
          continue;
        if (overlap(memory_[i], memory_[j]))
          error(fmt::format("{}: parameters {} and {} overlap", step.label, i, j));
      }
    if (use.axes.size() != k.axes.size() || use.reduce_axes.size() != k.reduce_axes.size())
      return error("axes do not match");
    for (size_t a = 0; a < k.axes.size(); ++a)
      if (size(k.axes[a]) != use.axes[a]) error("an extent does not match");
    int64_t points = 1;
    for (int64_t e : use.axes) points *= e;
    for (int64_t p = 0; p < points; ++p) {
      std::vector<int64_t> at(use.axes.size() + use.reduce_axes.size(), 0);
      digits(e_.reverse ? points - 1 - p : p, use.axes, at, 0);
      vars_.assign(k.locals.size(), {});
      ssa_.assign(static_cast<size_t>(k.num_values), {});
      if (k.kind == ir::Kernel::Kind::Map) block(k.body, at);
      if (k.kind == ir::Kernel::Kind::Reduce) reduce(k, use, at);
      if (k.kind == ir::Kernel::Kind::MatMul) product(k, use, at);
      if (k.kind == ir::Kernel::Kind::User) error("user kernels are not run here");
      if (k.kind != ir::Kernel::Kind::Map) block(k.epilogue, at);
    }
  }
  static void digits(int64_t linear, const std::vector<int64_t>& extents, std::vector<int64_t>& at,
                     size_t first) {
    for (size_t k = extents.size(); k-- > 0;) {
      at[first + k] = linear % extents[k];
      linear /= extents[k];
    }
  }

  void reduce(const ir::Kernel& k, const passes::KernelUse& use, std::vector<int64_t> at) {
    int64_t count = 1;
    for (int64_t e : use.reduce_axes) count *= e;
    reduced_.clear();
    for (const ir::KReduction& r : k.reductions) {
      const bool prod = r.op == ir::ReduceOp::Prod || r.op == ir::ReduceOp::All;
      reduced_.push_back(Scalar::of_int(prod ? 1 : 0).cast(r.accumulator));
    }
    std::vector<Scalar> best(k.reductions.size());
    for (int64_t i = 0; i < count; ++i) {
      digits(i, use.reduce_axes, at, use.axes.size());
      block(k.body, at);
      for (size_t n = 0; n < k.reductions.size(); ++n) combine(k.reductions[n], i, reduced_[n], best[n]);
    }
  }
  void combine(const ir::KReduction& r, int64_t i, Scalar& into, Scalar& best) {
    const Scalar raw = ssa_[static_cast<size_t>(r.value)];
    if (raw.dtype != r.value_dtype) error("a reduced value has another dtype");
    const auto both = [&](Op op) {
      const Scalar args[] = {into, raw.cast(r.accumulator)};
      return ir::apply(op, args, r.accumulator);
    };
    switch (r.op) {
      case ir::ReduceOp::Sum: into = both(Op::Add); return;
      case ir::ReduceOp::Prod: into = both(Op::Mul); return;
      case ir::ReduceOp::Any: into = both(Op::Or); return;
      case ir::ReduceOp::All: into = both(Op::And); return;
      case ir::ReduceOp::Min: into = i == 0 ? raw : both(Op::Min); return;
      case ir::ReduceOp::Max: into = i == 0 ? raw : both(Op::Max); return;
      default: break;
    }
    const Scalar args[] = {raw, best};
    const bool wins =
        i == 0 || ir::apply(r.op == ir::ReduceOp::ArgMin ? Op::Lt : Op::Gt, args, DType::Bool).i != 0;
    if (!wins) return;
    best = raw;
    into = Scalar::of_int(i);
  }

  void product(const ir::Kernel& k, const passes::KernelUse& use, std::vector<int64_t> at) {
    const ir::KMatMul& mm = k.matmul;
    Scalar sum = Scalar::of_int(0).cast(mm.accumulator);
    for (int64_t i = 0; i < use.reduce_axes[0]; ++i) {
      at.back() = i;
      const auto load = [&](const ir::Access& a) {
        return get(memory_[static_cast<size_t>(a.param)], mm.dtype, offset(a, at)).cast(mm.accumulator);
      };
      const Scalar pair[] = {load(mm.a), load(mm.b)};
      const Scalar terms[] = {sum, ir::apply(Op::Mul, pair, mm.accumulator)};
      sum = ir::apply(Op::Add, terms, mm.accumulator);
    }
    reduced_ = {sum};
  }

  void block(const ir::KBlock& b, const std::vector<int64_t>& at) {
    for (const KInst& i : b.insts) inst(i, at);
  }
  const Scalar& arg(const KInst& i, size_t k) const { return ssa_[static_cast<size_t>(i.args[k])]; }

  void inst(const KInst& i, const std::vector<int64_t>& at) {
    Scalar r{};
    switch (i.kind) {
      case KKind::Const: r = i.value; break;
      case KKind::ScalarParam: r = values_[static_cast<size_t>(i.param)]; break;
      case KKind::AxisIndex: r = Scalar::of_int(at[static_cast<size_t>(i.axis)]); break;
      case KKind::Cast: r = arg(i, 0).cast(i.dtype); break;
      case KKind::ReduceResult: r = reduced_[static_cast<size_t>(i.reduction)]; break;
      case KKind::VarGet: r = vars_[static_cast<size_t>(i.local)]; break;
      case KKind::VarSet: vars_[static_cast<size_t>(i.local)] = arg(i, 0); return;
      case KKind::Compute: {
        std::vector<Scalar> args;
        for (size_t k = 0; k < i.args.size(); ++k) args.push_back(arg(i, k));
        r = ir::apply(i.op, args, i.dtype);
        break;
      }
      case KKind::Load:
        r = get(memory_[static_cast<size_t>(i.access.param)], i.dtype, offset(i.access, at));
        break;
      case KKind::Store:
        return put(memory_[static_cast<size_t>(i.access.param)], arg(i, 0), offset(i.access, at));
      case KKind::Gather: {
        const int64_t x = arg(i, 0).i;
        r = Scalar::of_int(0).cast(i.dtype);
        if (x >= 0 && x < size(i.size))
          r = get(memory_[static_cast<size_t>(i.access.param)], i.dtype,
                  offset(i.access, at) + x * size(i.stride));
        break;
      }
      case KKind::LoadIndexed: r = indexed(i); break;
      case KKind::RngUniform:
      case KKind::RngNormal: {
        const auto seed = static_cast<uint64_t>(arg(i, 0).i), position = static_cast<uint64_t>(arg(i, 1).i);
        r = Scalar::of_float(i.kind == KKind::RngUniform ? interp::rng_uniform(seed, position, i.dtype)
                                                         : interp::rng_normal(seed, position, i.dtype),
                             i.dtype);
        break;
      }
      case KKind::For:
        for (int64_t v = arg(i, 0).i; v < arg(i, 1).i; v += arg(i, 2).i) {
          vars_[static_cast<size_t>(i.local)] = Scalar::of_int(v);
          block(*i.blocks[0], at);
        }
        return;
      default: return error("an instruction that no pass makes");
    }
    if (r.dtype != i.dtype)
      error(fmt::format("{}: %{} is {}, not {}", label_, i.result, name(r.dtype), name(i.dtype)));
    ssa_[static_cast<size_t>(i.result)] = r;
  }

  Scalar indexed(const KInst& i) {
    const ir::KParam& p = k_->params[static_cast<size_t>(i.param)];
    int64_t linear = 0;
    for (size_t k = 0; k < i.args.size(); ++k) {
      const int64_t x = arg(i, k).i;
      if (i.args.size() == p.extents.size()) {
        const int64_t n = size(p.extents[k]);
        if (x < 0 || x >= n) return Scalar::of_int(0).cast(i.dtype);
        linear = linear * n + x;
      } else {
        linear = x;
      }
    }
    return get(memory_[static_cast<size_t>(i.param)], i.dtype, linear);
  }

  const passes::Schedule& s_;
  const std::vector<Scalar>& scalars_;
  std::vector<Memory> slots_;
  Execution& e_;
  Memory arena_;
  const ir::Kernel* k_ = nullptr;
  std::string label_;
  std::vector<Memory> memory_;
  std::vector<Scalar> values_, ssa_, vars_, reduced_;
};

}  // namespace

std::string difference(const Array& want, const Array& have, size_t slot) {
  for (int64_t i = 0; i < want.size(); ++i) {
    const Scalar a = want.get(i), b = have.get(i);
    bool same = a.i == b.i;
    if (a.is_float()) {
      const double scale = want.dtype == DType::F16 || want.dtype == DType::BF16 ? 1e-2
                           : want.dtype == DType::F32                            ? 1e-4
                                                                                 : 1e-9;
      same = (std::isnan(a.f) && std::isnan(b.f)) || a.f == b.f ||
             std::abs(a.f - b.f) <= scale * (1 + std::abs(a.f));
    }
    if (!same)
      return fmt::format("slot {} element {}: {} {} wanted, {} {} found", slot, i, a.f, a.i, b.f, b.i);
  }
  return {};
}

void execute(const passes::Schedule& s, const std::vector<Scalar>& scalars, std::vector<Array>& slots,
             Execution& e) {
  std::vector<Memory> memory;
  for (Array& a : slots) memory.push_back({a.bytes.data(), static_cast<int64_t>(a.bytes.size())});
  std::vector<std::byte> arena(static_cast<size_t>(s.program.arena_bytes));
  Machine(s, scalars, std::move(memory), {arena.data(), s.program.arena_bytes}, e).run();
}

std::string check(const Builder& b, const passes::Options& options, uint32_t seed) {
  const std::vector<Array> start = make_slots(b.m, seed);
  std::vector<Array> want = start;
  if (auto r = interp::run(b.m, b.m.params, want); !r) return "interpreter: " + r.error().message;
  auto read = ir::parse(ir::print(b.m));
  if (!read) return "a printed module does not parse: " + read.error().message;
  auto schedule = passes::run_pipeline(std::move(*read), options);
  if (!schedule) return "pipeline: " + schedule.error().message;
  for (const bool reverse : {false, true}) {
    Execution e;
    e.reverse = reverse;
    std::vector<Array> have = start;
    execute(*schedule, b.m.params, have, e);
    if (!e.errors.empty()) return e.errors[0];
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string d = difference(want[i], have[i], i);
      if (!d.empty()) return (reverse ? "in reverse: " : "") + d;
    }
  }
  return {};
}

}  // namespace gk::passes_test
