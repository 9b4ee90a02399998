// The type and shape rules of every op. An extent may be unknown; only what is provably wrong is an error.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/messages.h"
#include "compiler/ir/op_table.h"
#include "compiler/ir/ops.h"

namespace gk::ir {
namespace {

using Operands = std::span<const Type>;
constexpr int64_t kMaxBytes = int64_t{1} << 62;

Failure shape_error(std::string_view code, std::string message) {
  return fail(ErrorKind::Shape, code, std::move(message));
}
Failure type_error(std::string_view code, std::string message) {
  return fail(ErrorKind::Type, code, std::move(message));
}

std::string axes_text(int n) { return fmt::format("{} {}", n, n == 1 ? "axis" : "axes"); }

Result<void> check_rank_and_size(const Type& t) {
  if (t.rank() > kMaxRank)
    return shape_error(
        "E0306", fmt::format("{} has {} axes; at most {} are allowed", to_string(t), t.rank(), kMaxRank));
  if (!t.fully_known()) return {};
  const auto n = num_elements(t.shape());
  int64_t bytes = 0;
  if (!n || __builtin_mul_overflow(*n, size_bytes(t.dtype), &bytes) || bytes > kMaxBytes)
    return shape_error("E0307", fmt::format("{} has more elements than can be counted", to_string(t)));
  return {};
}

Result<void> check_arity(Op op, Operands operands) {
  const OpInfo& i = info(op);
  if (i.arity >= 0 && static_cast<int>(operands.size()) != i.arity)
    return type_error("E0203", fmt::format("{} takes {} operand{}, not {}", i.name, i.arity,
                                           i.arity == 1 ? "" : "s", operands.size()));
  if (op == Op::Concat && operands.empty()) return type_error("E0203", "concat takes at least one operand");
  return {};
}

Result<void> check_class(Op op, Operands operands) {
  const OpInfo& i = info(op);
  for (const Type& t : operands) {
    if (in_class(i.operands, t.dtype)) continue;
    auto e = make_error(ErrorKind::Type, "E0202", "cannot " + phrase(op, operands));
    e.notes.push_back(fmt::format("{} takes {}, not {}", i.name, plural(i.operands), name(t.dtype)));
    if (is_bool(t.dtype) && i.operands == OperandClass::Number && i.cls == OpClass::Elementwise)
      e.helps.emplace_back("convert it first, as with `i64(x)`, or use `&`, `|`, `^` and `~`");
    return fail(std::move(e));
  }
  return {};
}

Result<void> check_same_dtype(Op op, Operands operands, size_t from = 0) {
  for (size_t i = from + 1; i < operands.size(); ++i) {
    if (operands[i].dtype == operands[from].dtype) continue;
    const DType a = operands[from].dtype, b = operands[i].dtype;
    auto e = make_error(ErrorKind::Type, "E0201", "cannot " + phrase(op, operands));
    e.notes.push_back(fmt::format("the element types differ: {} against {}", name(a), name(b)));
    if (!promote(a, b))
      e.helps.push_back(fmt::format("no type holds both {} and {}: convert one of them", name(a), name(b)));
    return fail(std::move(e));
  }
  return {};
}

Result<void> check_axes(Op op, const Type& t, const std::vector<int64_t>& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= t.rank())
      return shape_error("E0304", fmt::format("{} has no axis {}: {} has {}", info(op).name, axes[i],
                                              to_string(t), axes_text(t.rank())));
    if (i > 0 && axes[i] == axes[i - 1])
      return shape_error("E0304", fmt::format("{} names axis {} twice", info(op).name, axes[i]));
    if (i > 0 && axes[i] < axes[i - 1])
      return shape_error("E0304", fmt::format("the axes of {} are not in order", info(op).name));
  }
  return {};
}

Result<int64_t> one_axis(Op op, const Type& t, const Attrs& attrs) {
  if (attrs.axes.size() != 1)
    return shape_error("E0304", fmt::format("{} takes one axis, not {}", info(op).name, attrs.axes.size()));
  GK_CHECK(check_axes(op, t, attrs.axes));
  return attrs.axes[0];
}

Result<Type> of_shape(Op op, DType t, const Shape& s) {
  for (int64_t d : s)
    if (d < 0)
      return shape_error("E0303",
                         fmt::format("{} of shape {}: an extent is negative", info(op).name, to_string(s)));
  return Type::of(t, s);
}

// Takes the name of `from` where the extents agree, so that later messages speak as the user wrote.
Dim named_like(Dim d, const Dim& from) {
  if (d.name.empty() && d.value == from.value) d.name = from.name;
  return d;
}

Result<Type> infer_elementwise(Op op, Operands operands, const Attrs& attrs) {
  const size_t first = op == Op::Where ? 1 : 0;
  if (op == Op::Where && !is_bool(operands[0].dtype)) {
    auto e = make_error(ErrorKind::Type, "E0202", "cannot " + phrase(op, operands));
    e.notes.push_back(fmt::format("the condition of where is bool, not {}", name(operands[0].dtype)));
    return fail(std::move(e));
  }
  GK_CHECK(check_class(op, operands.subspan(first)));
  if (op == Op::PowInt) {
    const DType n = operands[1].dtype;
    if (!is_float(operands[0].dtype) || (n != DType::I64 && n != DType::U64)) {
      auto e = make_error(ErrorKind::Type, "E0202", "cannot " + phrase(op, operands));
      e.notes.emplace_back("it takes a float and an exponent of i64 or u64");
      return fail(std::move(e));
    }
  } else {
    GK_CHECK(check_same_dtype(op, operands, first));
  }
  for (size_t i = 1; i < operands.size(); ++i) {
    const Type &a = operands[0], &b = operands[i];
    bool same = a.rank() == b.rank();
    for (size_t k = 0; same && k < a.dims.size(); ++k) same = equal(a.dims[k], b.dims[k]) != Tri::No;
    if (same) continue;
    if (!broadcast(a.dims, b.dims)) return fail(broadcast_error(op, a, b));
    auto e = make_error(ErrorKind::Shape, "E0301", "cannot " + phrase(op, operands));
    e.notes.emplace_back("the shapes differ; the operands are to be broadcast first");
    return fail(std::move(e));
  }
  Type out = operands[first];
  for (const Type& t : operands)
    for (size_t k = 0; k < out.dims.size(); ++k) {
      if (!out.dims[k].is_known() && t.dims[k].is_known()) out.dims[k] = t.dims[k];
      out.dims[k] = named_like(out.dims[k], t.dims[k]);
    }
  if (op == Op::Cast) out.dtype = attrs.dtype;
  if (gives_bool(op)) out.dtype = DType::Bool;
  return out;
}

Result<Type> infer_rng(Op op, const Type& state, const Attrs& attrs) {
  if (state.dtype != DType::U64 || state.rank() != 1 || equal(state.dims[0], Dim::known(2)) == Tri::No)
    return type_error(
        "E0202", fmt::format("{} takes a generator's state u64[2], not {}", info(op).name, to_string(state)));
  if (op == Op::RngAdvance) return state;
  if (!is_float(attrs.dtype))
    return type_error("E0202", fmt::format("{} gives floats, not {}", info(op).name, name(attrs.dtype)));
  return of_shape(op, attrs.dtype, attrs.shape);
}

Result<Type> infer_broadcast(const Type& t, const Attrs& attrs) {
  GK_TRY(Type out, of_shape(Op::Broadcast, t.dtype, attrs.shape));
  const auto mismatch = [&](std::string note) {
    auto e = make_error(ErrorKind::Shape, "E0301",
                        fmt::format("cannot broadcast {} to {}", to_string(t), to_string(attrs.shape)));
    e.notes.push_back(std::move(note));
    return fail(std::move(e));
  };
  if (t.rank() > out.rank())
    return mismatch(fmt::format("it has {}, the shape {}", axes_text(t.rank()), out.rank()));
  const size_t lead = out.dims.size() - t.dims.size();
  for (size_t i = t.dims.size(); i-- > 0;) {
    const Dim &from = t.dims[i], &to = out.dims[lead + i];
    if (from.value != 1 && equal(from, to) == Tri::No)
      return mismatch(
          fmt::format("broadcasting aligns trailing axes: {} against {}", to_string(from), to_string(to)));
    out.dims[lead + i] = named_like(to, from);
  }
  return out;
}

Result<Type> infer_reshape(const Type& t, const Attrs& attrs) {
  GK_TRY(Type out, of_shape(Op::Reshape, t.dtype, attrs.shape));
  const auto want = num_elements(attrs.shape);
  int64_t have = 1;
  bool complete = true;
  for (const Dim& d : t.dims) {
    if (d.is_known() ? __builtin_mul_overflow(have, d.value, &have) : false)
      return out;  // an operand E0307 forbids
    complete = complete && d.is_known();
  }
  const bool fits = !want || (complete ? *want == have : have == 0 ? *want == 0 : *want % have == 0);
  if (fits) return out;
  auto e = make_error(ErrorKind::Shape, "E0305",
                      fmt::format("cannot reshape {} to {}", to_string(t), to_string(attrs.shape)));
  e.notes.push_back(complete ? fmt::format("{} elements against {}", have, *want)
                             : fmt::format("{} elements is not a multiple of {}", *want, have));
  return fail(std::move(e));
}

Result<Type> infer_transpose(const Type& t, const Attrs& attrs) {
  if (static_cast<int>(attrs.axes.size()) != t.rank())
    return shape_error("E0304", fmt::format("permute_dims of {} needs {}, not {}", to_string(t),
                                            axes_text(t.rank()), attrs.axes.size()));
  std::vector<int64_t> sorted = attrs.axes;
  std::sort(sorted.begin(), sorted.end());
  GK_CHECK(check_axes(Op::Transpose, t, sorted));
  Type out = t;
  for (size_t i = 0; i < out.dims.size(); ++i) out.dims[i] = t.dims[static_cast<size_t>(attrs.axes[i])];
  return out;
}

// A region of `t` that starts at attrs.starts with attrs.steps and takes `counts` elements an axis.
Result<void> check_region(Op op, const Type& t, const Attrs& attrs, const Dims& counts) {
  const int rank = t.rank();
  if (attrs.starts.rank() != rank || attrs.steps.rank() != rank || static_cast<int>(counts.size()) != rank)
    return shape_error("E0303", fmt::format("{} of {} needs a start, a count and a step for each axis",
                                            info(op).name, to_string(t)));
  for (int i = 0; i < rank; ++i) {
    const int64_t start = attrs.starts[i], step = attrs.steps[i],
                  count = counts[static_cast<size_t>(i)].value;
    const Dim& extent = t.dims[static_cast<size_t>(i)];
    const bool counted = counts[static_cast<size_t>(i)].is_known();
    if (step == 0) return shape_error("E0303", fmt::format("a step of {} is 0 on axis {}", info(op).name, i));
    if (!counted && op == Op::Slice)
      return shape_error("E0303", fmt::format("the count of {} is negative on axis {}", info(op).name, i));
    if (!counted || count == 0) continue;
    int64_t last = 0;
    const bool overflow =
        __builtin_mul_overflow(count - 1, step, &last) || __builtin_add_overflow(last, start, &last);
    const bool outside = overflow || start < 0 || last < 0 ||
                         (extent.is_known() && (start >= extent.value || last >= extent.value));
    if (outside) {
      auto e =
          make_error(ErrorKind::Shape, "E0303",
                     fmt::format("the region of {} leaves {} on axis {}", info(op).name, to_string(t), i));
      e.notes.push_back(fmt::format("{} elements from {} by {}, of an extent of {}", count, start, step,
                                    to_string(extent)));
      return fail(std::move(e));
    }
  }
  return {};
}

Result<Type> infer_slice(const Type& t, const Attrs& attrs) {
  Dims counts;
  for (int64_t n : attrs.shape) counts.push_back({n, 0, {}});
  GK_CHECK(check_region(Op::Slice, t, attrs, counts));
  Type out = t;
  for (size_t i = 0; i < counts.size(); ++i) out.dims[i] = named_like(counts[i], t.dims[i]);
  return out;
}

Result<Type> infer_update_slice(Operands operands, const Attrs& attrs) {
  GK_CHECK(check_same_dtype(Op::UpdateSlice, operands));
  if (operands[0].rank() != operands[1].rank())
    return shape_error("E0303", "cannot " + phrase(Op::UpdateSlice, operands) + ": the ranks differ");
  GK_CHECK(check_region(Op::UpdateSlice, operands[0], attrs, operands[1].dims));
  return operands[0];
}

Result<Type> infer_take(Operands operands, const Attrs& attrs) {
  const Type &x = operands[0], &index = operands[1];
  if (!is_integer(index.dtype)) {
    auto e = make_error(ErrorKind::Type, "E0202", "cannot " + phrase(Op::Take, operands));
    e.notes.push_back(fmt::format("an index array holds integers, not {}", name(index.dtype)));
    return fail(std::move(e));
  }
  GK_TRY(const int64_t axis, one_axis(Op::Take, x, attrs));
  Type out;
  out.dtype = x.dtype;
  out.dims.assign(x.dims.begin(), x.dims.begin() + axis);
  out.dims.insert(out.dims.end(), index.dims.begin(), index.dims.end());
  out.dims.insert(out.dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  return out;
}

Result<Type> infer_concat(Operands operands, const Attrs& attrs) {
  GK_CHECK(check_same_dtype(Op::Concat, operands));
  Type out = operands[0];
  GK_TRY(const int64_t axis, one_axis(Op::Concat, out, attrs));
  for (size_t n = 1; n < operands.size(); ++n) {
    const Type& t = operands[n];
    if (t.rank() != out.rank())
      return shape_error("E0308", "cannot " + phrase(Op::Concat, operands) + ": the ranks differ");
    for (size_t i = 0; i < out.dims.size(); ++i) {
      Dim& d = out.dims[i];
      if (static_cast<int64_t>(i) == axis) {
        if (!d.is_known() || !t.dims[i].is_known())
          d = Dim{};
        else if (__builtin_add_overflow(d.value, t.dims[i].value, &d.value))
          return shape_error("E0307", "cannot " + phrase(Op::Concat, operands) + ": the extent overflows");
        d.name.clear();
        continue;
      }
      if (equal(d, t.dims[i]) == Tri::No) {
        auto e = make_error(ErrorKind::Shape, "E0308", "cannot " + phrase(Op::Concat, operands));
        e.notes.push_back(fmt::format("extents other than axis {} must be equal: {} against {}", axis,
                                      to_string(d), to_string(t.dims[i])));
        return fail(std::move(e));
      }
      if (!d.is_known()) d = t.dims[i];
    }
  }
  return out;
}

Result<Type> infer_reduction(Op op, const Type& t, const Attrs& attrs) {
  const bool arg = op == Op::ArgMin || op == Op::ArgMax;
  GK_CHECK(check_axes(op, t, attrs.axes));
  if (arg && attrs.axes.size() != 1 && static_cast<int>(attrs.axes.size()) != t.rank())
    return shape_error("E0304", fmt::format("{} of {} takes one axis or all, not {}", info(op).name,
                                            to_string(t), attrs.axes.size()));
  Type out;
  out.dtype = t.dtype;
  if (arg) out.dtype = DType::I64;
  if (op == Op::Sum || op == Op::Prod) out.dtype = is_bool(t.dtype) ? DType::I64 : t.dtype;
  int64_t empty_axis = -1;
  bool surely_nonempty = true;
  for (int64_t i = 0; i < t.rank(); ++i) {
    const Dim& d = t.dims[static_cast<size_t>(i)];
    if (std::find(attrs.axes.begin(), attrs.axes.end(), i) != attrs.axes.end()) {
      if (d.value == 0) empty_axis = i;
      if (attrs.keepdims) out.dims.push_back(Dim::known(1));
    } else {
      if (d.value <= 0) surely_nonempty = false;
      out.dims.push_back(d);
    }
  }
  const bool needs_one = arg || op == Op::ReduceMin || op == Op::ReduceMax;
  if (needs_one && empty_axis >= 0 && surely_nonempty)
    return shape_error("E0304", fmt::format("{} of {} over axis {}, which is empty", info(op).name,
                                            to_string(t), empty_axis));
  return out;
}

Result<Type> infer_matmul(Operands operands) {
  GK_CHECK(check_same_dtype(Op::MatMul, operands));
  const Type &a = operands[0], &b = operands[1];
  const auto wrong = [&](std::string note) {
    auto e = make_error(ErrorKind::Shape, "E0302", "cannot " + phrase(Op::MatMul, operands));
    e.notes.push_back(std::move(note));
    return e;
  };
  if (a.rank() == 0 || b.rank() == 0) {
    auto e = wrong("a matrix product needs at least one axis on each side");
    e.helps.emplace_back("scale with `*`");
    return fail(std::move(e));
  }
  const Dim& ka = a.dims.back();
  const Dim& kb = b.rank() == 1 ? b.dims[0] : b.dims[b.dims.size() - 2];
  if (equal(ka, kb) == Tri::No) {
    auto e =
        wrong(fmt::format("the inner extents must be equal: {} against {}", to_string(ka), to_string(kb)));
    if (b.rank() >= 2 && equal(ka, b.dims.back()) != Tri::No)
      e.helps.emplace_back("transpose the second operand");
    else if (a.rank() >= 2 && equal(a.dims[a.dims.size() - 2], kb) != Tri::No)
      e.helps.emplace_back("transpose the first operand");
    return fail(std::move(e));
  }
  const Dims batch_a(a.dims.begin(), a.dims.end() - std::min(2, a.rank()));
  const Dims batch_b(b.dims.begin(), b.dims.end() - std::min(2, b.rank()));
  auto batch = broadcast(batch_a, batch_b);
  if (!batch) return fail(wrong("the batch axes do not broadcast"));
  Type out;
  out.dtype = a.dtype;
  out.dims = std::move(*batch);
  if (a.rank() > 1) out.dims.push_back(a.dims[a.dims.size() - 2]);
  if (b.rank() > 1) out.dims.push_back(b.dims.back());
  return out;
}

Result<Type> infer_unchecked(Op op, Operands operands, const Attrs& attrs) {
  switch (op) {
    case Op::Input: return type_error("E0203", "the type of an input is that of its slot");
    case Op::Const:
    case Op::Param: return Type::of(attrs.value.dtype, {});
    case Op::Iota: {
      GK_TRY(Type out, of_shape(op, DType::I64, attrs.shape));
      GK_CHECK(one_axis(op, out, attrs));
      return out;
    }
    case Op::RngUniform:
    case Op::RngNormal:
    case Op::RngAdvance: return infer_rng(op, operands[0], attrs);
    case Op::Broadcast: return infer_broadcast(operands[0], attrs);
    case Op::Reshape: return infer_reshape(operands[0], attrs);
    case Op::Transpose: return infer_transpose(operands[0], attrs);
    case Op::Slice: return infer_slice(operands[0], attrs);
    case Op::UpdateSlice: return infer_update_slice(operands, attrs);
    case Op::Take: return infer_take(operands, attrs);
    case Op::Concat: return infer_concat(operands, attrs);
    case Op::MatMul: return infer_matmul(operands);
    case Op::Loop:
    case Op::KernelCall:
    case Op::If:
    case Op::While:
    case Op::Repeat:
      return type_error("E0203", fmt::format("{} is typed by its body (see result_types)", info(op).name));
    default: break;
  }
  if (info(op).cls == OpClass::Reduction) return infer_reduction(op, operands[0], attrs);
  return infer_elementwise(op, operands, attrs);
}

}  // namespace

Result<Type> infer(Op op, Operands operands, const Attrs& attrs) {
  if (op >= Op::kCount) return type_error("E0203", "no such operation");
  GK_CHECK(check_arity(op, operands));
  for (const Type& t : operands) GK_CHECK(check_rank_and_size(t));
  if (info(op).cls != OpClass::Elementwise && info(op).cls != OpClass::Random)
    GK_CHECK(check_class(op, operands));
  GK_TRY(Type out, infer_unchecked(op, operands, attrs));
  GK_CHECK(check_rank_and_size(out));
  return out;
}

Result<Dims> broadcast(const Dims& a, const Dims& b) {
  const Dims& large = a.size() >= b.size() ? a : b;
  const Dims& small = a.size() >= b.size() ? b : a;
  Dims out = large;
  for (size_t i = 1; i <= small.size(); ++i) {
    const Dim& x = a[a.size() - i];
    const Dim& y = b[b.size() - i];
    Dim& d = out[out.size() - i];
    switch (equal(x, y)) {
      case Tri::Yes: d = x.name.empty() ? y : x; break;
      case Tri::No:
        if (x.value == 1)
          d = y;
        else if (y.value == 1)
          d = x;
        else {
          Type ta, tb;
          ta.dims = a, tb.dims = b;
          auto e = make_error(
              ErrorKind::Shape, "E0301",
              fmt::format("cannot broadcast {} and {}", to_string(ta).substr(3), to_string(tb).substr(3)));
          e.notes.push_back(
              fmt::format("broadcasting aligns trailing axes: {} against {}", to_string(x), to_string(y)));
          return fail(std::move(e));
        }
        break;
      case Tri::Maybe:
        // Known and not 1: the unknown is that or 1, else running reports it. Known 1: the unknown decides.
        if (x.is_known())
          d = x.value == 1 ? y : x;
        else if (y.is_known())
          d = y.value == 1 ? x : y;
        else
          d = Dim{};  // either may be the one that is repeated
        break;
    }
  }
  return out;
}

}  // namespace gk::ir
