#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>

#include "compiler/interp/eval.h"

namespace gk::interp {

void Faults::index(int64_t axis, int64_t index, int64_t extent, Span span) {
  if (first_) return;
  first_ = make_error(ErrorKind::Runtime, "E0801",
                      fmt::format("index {} is out of range for axis {} with extent {}", index, axis, extent),
                      span);
}

void Faults::division(Span span) {
  if (!first_) first_ = make_error(ErrorKind::Runtime, "E0802", "division by zero", span);
}

namespace {

using ir::Node;
using ir::Op;

// Beyond this an allocation may seem to succeed and the process be killed when it is used.
constexpr int64_t kMaxElements = int64_t{1} << 36;

Failure too_large() { return fail(ErrorKind::OutOfMemory, "E0601", "not enough memory to interpret this"); }

ArrayPtr share(Array a) { return std::make_shared<const Array>(std::move(a)); }

class Runner {
 public:
  Runner(const ir::Module& m, std::span<const Scalar> params, std::vector<Array>& slots, Faults& faults,
         const std::function<bool()>& interrupted)
      : m_(m),
        params_(params),
        slots_(slots),
        values_(m.value_types.size()),
        faults_(faults),
        interrupted_(interrupted) {}

  Result<void> run() {
    if (slots_.size() < m_.slots.size()) slots_.resize(m_.slots.size());
    for (const Node& n : m_.top.nodes) GK_CHECK(node(n));
    // An output overwrites its slot after every read, and a value may go to several slots.
    for (const ir::Output& o : m_.outputs) slots_[static_cast<size_t>(o.slot)] = *value(o.value);
    return {};
  }

 private:
  const ArrayPtr& value(ir::ValueId v) const { return values_[static_cast<size_t>(v)]; }
  void set(ir::ValueId v, ArrayPtr a) { values_[static_cast<size_t>(v)] = std::move(a); }

  Result<void> node(const Node& n) {
    if (n.op == Op::KernelCall) return kernel_call(n);
    if (ir::has_regions(n.op)) return regions(n);
    if (n.op == Op::Input) return input(n);
    const ir::Type& type = m_.type(n.results[0]);
    if (num_elements(type.shape()).value_or(kMaxElements) >= kMaxElements) return too_large();
    if (ir::info(n.op).cls == ir::OpClass::Reduction) {
      set(n.results[0], share(reduce(n.op, *value(n.operands[0]), n.attrs, type)));
      return {};
    }
    if (n.op == Op::MatMul) {
      set(n.results[0], share(matmul(*value(n.operands[0]), *value(n.operands[1]), type)));
      return {};
    }
    set(n.results[0], share(compute(n, type)));
    return {};
  }

  Result<void> input(const Node& n) {
    const Array& a = slots_[static_cast<size_t>(n.attrs.index)];
    const ir::Type& t = m_.type(n.results[0]);
    const auto size = static_cast<size_t>(a.size() * size_bytes(a.dtype));
    if (a.dtype != t.dtype || !(a.shape == t.shape()) || a.bytes.size() != size)
      return fail(ErrorKind::Internal, "E0901",
                  fmt::format("slot {} holds {}, not {}", n.attrs.index,
                              to_string(ir::Type::of(a.dtype, a.shape)), to_string(t)),
                  n.span);
    set(n.results[0], share(a));
    return {};
  }

  Array compute(const Node& n, const ir::Type& type) {
    Array out = Array::zeros(type.dtype, type.shape());
    if (ir::is_elementwise(n.op)) {
      elementwise(n, out);
      return out;
    }
    switch (n.op) {
      case Op::Const: out.set(0, n.attrs.value); break;
      case Op::Param: {
        const auto i = static_cast<size_t>(n.attrs.index);
        out.set(0, (i < params_.size() ? params_[i] : m_.params[i]).cast(type.dtype));
        break;
      }
      case Op::Iota:
        for_each_index(out.shape, [&](const Shape& at, int64_t p) {
          out.set(p, Scalar::of_int(at[static_cast<int>(n.attrs.axes[0])]));
        });
        break;
      case Op::RngUniform:
      case Op::RngNormal:
      case Op::RngAdvance: random(n, out); break;
      case Op::Reshape: out.bytes = value(n.operands[0])->bytes; break;
      case Op::UpdateSlice: update_slice(n, out); break;
      case Op::Take: take(n, out); break;
      case Op::Concat: concat(n, out); break;
      default: view(n, out);
    }
    return out;
  }

  void elementwise(const Node& n, Array& out) {
    std::array<Scalar, 3> args;
    const std::span<const Scalar> used(args.data(), n.operands.size());
    for (int64_t p = 0, count = out.size(); p < count; ++p) {
      for (size_t a = 0; a < n.operands.size(); ++a) args[a] = value(n.operands[a])->get(p);
      if (ir::divides_by_zero(n.op, used)) faults_.division(n.span);
      out.set(p, ir::apply(n.op, used, out.dtype));
    }
  }

  void random(const Node& n, Array& out) {
    const Array& state = *value(n.operands[0]);
    const auto seed = static_cast<uint64_t>(state.get(0).i), draws = static_cast<uint64_t>(state.get(1).i);
    if (n.op == Op::RngAdvance) {
      out.set(0, state.get(0));
      out.set(1,
              Scalar::of_int(static_cast<int64_t>(draws + static_cast<uint64_t>(n.attrs.index)), DType::U64));
      return;
    }
    for (int64_t p = 0, count = out.size(); p < count; ++p) {
      const uint64_t position = draws + static_cast<uint64_t>(p);
      out.set(p, Scalar::of_float(n.op == Op::RngUniform ? rng_uniform(seed, position, out.dtype)
                                                         : rng_normal(seed, position, out.dtype),
                                  out.dtype));
    }
  }

  // Broadcast, Transpose and Slice: each result index names one element of the operand.
  void view(const Node& n, Array& out) {
    const Array& x = *value(n.operands[0]);
    const Shape strides = row_major_strides(x.shape);
    const int lead = out.shape.rank() - x.shape.rank();
    for_each_index(out.shape, [&](const Shape& at, int64_t p) {
      int64_t from = 0;
      for (int i = 0; i < x.shape.rank(); ++i) {
        if (n.op == Op::Slice)
          from += (n.attrs.starts[i] + at[i] * n.attrs.steps[i]) * strides[i];
        else if (n.op == Op::Transpose)
          from += at[i] * strides[static_cast<int>(n.attrs.axes[static_cast<size_t>(i)])];
        else if (x.shape[i] != 1)
          from += at[lead + i] * strides[i];
      }
      out.set(p, x.get(from));
    });
  }

  void update_slice(const Node& n, Array& out) {
    const Array& update = *value(n.operands[1]);
    out.bytes = value(n.operands[0])->bytes;
    const Shape strides = row_major_strides(out.shape);
    for_each_index(update.shape, [&](const Shape& at, int64_t p) {
      int64_t to = 0;
      for (int i = 0; i < at.rank(); ++i) to += (n.attrs.starts[i] + at[i] * n.attrs.steps[i]) * strides[i];
      out.set(to, update.get(p));
    });
  }

  void take(const Node& n, Array& out) {
    const Array &x = *value(n.operands[0]), &index = *value(n.operands[1]);
    const int axis = static_cast<int>(n.attrs.axes[0]), index_rank = index.shape.rank();
    const int64_t extent = x.shape[axis];
    const Shape strides = row_major_strides(x.shape), index_strides = row_major_strides(index.shape);
    for_each_index(out.shape, [&](const Shape& at, int64_t p) {
      int64_t which = 0, from = 0;
      for (int i = 0; i < index_rank; ++i) which += at[axis + i] * index_strides[i];
      for (int i = 0; i < x.shape.rank(); ++i)
        if (i != axis) from += at[i < axis ? i : i - 1 + index_rank] * strides[i];
      const int64_t written = index.get(which).i;
      const bool is_signed_index = is_signed(index.dtype);
      const int64_t at_axis = is_signed_index && written < 0 ? written + extent : written;
      // A u64 past the largest i64 reads as negative here, and so is out of range as well.
      if (at_axis < 0 || at_axis >= extent) {
        faults_.index(axis, written, extent, n.span);
        return;  // out is zero already
      }
      out.set(p, x.get(from + at_axis * strides[axis]));
    });
  }

  void concat(const Node& n, Array& out) {
    const int axis = static_cast<int>(n.attrs.axes[0]);
    const Shape strides = row_major_strides(out.shape);
    int64_t start = 0;
    for (const ir::ValueId v : n.operands) {
      const Array& x = *value(v);
      for_each_index(x.shape, [&](const Shape& at, int64_t p) {
        int64_t to = start * strides[axis];
        for (int i = 0; i < at.rank(); ++i) to += at[i] * strides[i];
        out.set(to, x.get(p));
      });
      start += x.shape[axis];
    }
  }

  // See Note [Regions] in module.h.
  Result<void> regions(const Node& n) {
    const ir::RegionForm form = ir::region_form(n.op);
    std::vector<ArrayPtr> inputs;
    for (size_t i = form.operand; i < n.operands.size(); ++i) inputs.push_back(value(n.operands[i]));
    const auto turn = [&](const ir::Region& r) -> Result<void> {
      for (size_t i = form.param; i < r.params.size(); ++i) set(r.params[i], inputs[i - form.param]);
      for (const Node& inner : r.nodes) GK_CHECK(node(inner));
      std::vector<ArrayPtr> yields;
      for (size_t k = form.yield; k < r.yields.size(); ++k) yields.push_back(value(r.yields[k]));
      std::move(yields.begin(), yields.end(), inputs.begin());
      return {};
    };
    const auto holds = [&](ir::ValueId v) { return value(v)->get(0).i != 0; };
    if (form.param == 1) {
      for (int64_t i = 0; i < n.attrs.index; ++i) {
        if (interrupted_ && interrupted_())
          return fail(ErrorKind::Interrupted, "E0806", "interrupted", n.span);
        Array index = Array::zeros(DType::I64, {});
        index.set(0, Scalar::of_int(i));
        set(n.regions[0].params[0], share(std::move(index)));
        GK_CHECK(turn(n.regions[0]));
      }
    } else if (n.op == Op::If) {
      inputs.resize(std::max(inputs.size(), n.results.size()));
      GK_CHECK(turn(n.regions[holds(n.operands[0]) ? 0 : 1]));
    } else {
      for (ir::ValueId go = n.operands[0]; holds(go); go = n.regions[0].yields[0]) {
        if (interrupted_ && interrupted_())
          return fail(ErrorKind::Interrupted, "E0806", "interrupted", n.span);
        GK_CHECK(turn(n.regions[0]));
      }
    }
    for (size_t k = 0; k < n.results.size(); ++k) set(n.results[k], inputs[k]);
    return {};
  }

  Result<void> kernel_call(const Node& n) {
    const ir::Kernel& k = *n.attrs.kernel;
    if (k.kind != ir::Kernel::Kind::User && k.kind != ir::Kernel::Kind::Map)
      return fail(ErrorKind::Internal, "E0901", fmt::format("kernel {} is not a user's", k.name), n.span);
    std::vector<Array> arrays(k.params.size());
    std::vector<Scalar> scalars(k.params.size());
    for (size_t p = 0; p < k.params.size(); ++p) {
      const Array& a = *value(n.operands[p]);
      if (k.params[p].kind == ir::KParam::Kind::Buffer)
        arrays[p] = a;
      else
        scalars[p] = a.get(0);
    }
    GK_CHECK(check_sizes(n, k, arrays, scalars));
    run_kernel(k, n.attrs.shape, arrays, scalars, faults_);
    size_t result = 0;
    for (size_t p = 0; p < k.params.size(); ++p)
      if (k.params[p].kind == ir::KParam::Kind::Buffer && k.params[p].written)
        set(n.results[result++], share(std::move(arrays[p])));
    return {};
  }

  // The extents that come as scalars must be those of the arrays, or indexing would go astray.
  static Result<void> check_sizes(const Node& n, const ir::Kernel& k, const std::vector<Array>& arrays,
                                  const std::vector<Scalar>& scalars) {
    const auto is = [&](const ir::KSize& s, int64_t want) {
      return (s.param < 0 ? s.value : scalars[static_cast<size_t>(s.param)].i) == want;
    };
    bool good = true;
    for (size_t a = 0; a < k.axes.size(); ++a)
      good = good && is(k.axes[a], n.attrs.shape[static_cast<int>(a)]);
    for (size_t p = 0; p < k.params.size(); ++p)
      for (size_t a = 0; a < k.params[p].extents.size(); ++a)
        good = good && is(k.params[p].extents[a], arrays[p].shape[static_cast<int>(a)]);
    if (good) return {};
    return fail(ErrorKind::Internal, "E0901",
                fmt::format("kernel {} is called with extents that are not its arrays'", k.name), n.span);
  }

  const ir::Module& m_;
  std::span<const Scalar> params_;
  std::vector<Array>& slots_;
  std::vector<ArrayPtr> values_;
  Faults& faults_;
  const std::function<bool()>& interrupted_;
};

}  // namespace

Result<void> run(const ir::Module& m, std::span<const Scalar> params, std::vector<Array>& slots,
                 const std::function<bool()>& interrupted) {
  try {
    Faults faults;
    GK_CHECK(Runner(m, params, slots, faults, interrupted).run());
    if (faults.first()) return fail(*faults.first());
    return {};
  } catch (const std::bad_alloc&) {
    return too_large();
  }
}

}  // namespace gk::interp
