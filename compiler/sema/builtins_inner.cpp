// What the library in gk (stdlib/) needs of the compiler and programs do not see: names that begin with `_`.
#include <algorithm>

#include "compiler/sema/axes.h"
#include "compiler/sema/builtin_args.h"

namespace gk::sema {

namespace {

// What stands for an argument that is left out.
bool is_inner(const Value& v, std::string_view name) { return v.kind == VKind::Builtin && v.text == name; }

Value type_value(DType t) {
  Value v;
  v.kind = VKind::Type;
  v.dtype = t;
  return v;
}

// The dtype of one number, array or literal; unknown where that is not known.
Result<std::optional<DType>> dtype_of_one(Evaluator& ev, const BuiltinArgs& a) {
  if (a.value(0).is_unknown()) return std::optional<DType>{};
  if (a.value(0).is_aggregate())
    return fail(ErrorKind::Type, "E0202", fmt::format("one array is needed, not {}", describe(a.value(0))),
                a.span(0));
  GK_TRY(auto x, ev.as_array(a.value(0), a.span(0)));
  return std::optional(x->type.dtype);
}

template <class F>
Result<Value> of_dtype(Evaluator& ev, Call& call, F&& f) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  GK_TRY(const auto t, dtype_of_one(ev, a));
  return t ? type_value(f(*t)) : Value::unknown();
}

Result<Value> accumulator_of(Evaluator& ev, Call& call) {
  return of_dtype(ev, call, [](DType t) { return gk::is_float(t) ? accumulator(t) : DType::F64; });
}

Result<Value> mean_dtype(Evaluator& ev, Call& call) {
  return of_dtype(ev, call, [&](DType t) { return gk::is_float(t) ? t : ev.default_float(); });
}

Result<Value> array(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  GK_CHECK(dtype_of_one(ev, a));
  return a.value(0);
}

Result<Value> sum_dtype(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  const bool chosen = a.has(1) && !is_inner(a.value(1), "_sum_dtype");
  if (chosen) {
    GK_TRY(const DType t, dtype_arg(a[1]));
    if (is_bool(t)) return fail(adds_no_bools("sum", a.span(1)));
    return type_value(t);
  }
  return of_dtype(ev, call, summed_dtype);
}

Result<Value> axis(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), call.span));
  const int rank = x->type.rank();
  const bool chosen = !is_inner(a.value(1), "_axis");
  if (!chosen && rank == 1) return Value::host(0);
  if (!chosen)
    return fail(make_error(ErrorKind::Shape, "E0304",
                           fmt::format("along which axis? {} has {}", ir::to_string(x->type), rank),
                           call.span)
                    .help("name it: `axis=0`"));
  GK_TRY(const auto axes, axes_of(a, 1, rank));
  if (axes.size() != 1) return fail(ErrorKind::Shape, "E0304", "one axis is needed", a.span(1));
  return Value::host(axes[0]);
}

Result<Value> axes(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), call.span));
  GK_TRY(const auto chosen, axes_of(a, 1, x->type.rank()));
  Value v;
  v.kind = VKind::List;
  v.items = std::make_shared<Aggregate>();
  for (const int64_t k : chosen) v.items->items.push_back(Value::host(k));
  return v;
}

// "a matrix", "an array of rank 2 or more".
std::string ranks_text(int64_t least, int64_t most) {
  if (least == most)
    return least == 1 ? "a vector" : least == 2 ? "a matrix" : fmt::format("an array of rank {}", least);
  return fmt::format("an array of rank {} or more", least);
}

Result<Value> of_rank(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), a.span(0)));
  const int64_t least = a.value(1).scalar.i, most = a.value(2).scalar.i, rank = x->type.rank();
  if (rank < least || rank > most)
    return fail(ErrorKind::Shape, "E0303",
                fmt::format("{} is needed, not {}", ranks_text(least, most), describe(a.value(0))),
                call.span);
  return a.value(0);
}

Result<Value> place_of_axis(Evaluator&, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown() || !a.value(1).is_scalar() || !a.value(1).known) return Value::unknown_host(DType::I64);
  GK_TRY(const auto axes, axes_of(a, 0, static_cast<int>(a.value(1).scalar.i)));
  if (axes.size() != 1) return fail(ErrorKind::Shape, "E0304", "one axis is needed", a.span(0));
  return Value::host(axes[0]);
}

Result<Value> of_last(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), a.span(0)));
  const int64_t n = a.value(1).scalar.i;
  const auto& dims = x->type.dims;
  if (dims.empty() || (dims.back().is_known() && dims.back().value != n))
    return fail(ErrorKind::Shape, "E0303",
                fmt::format("vectors of {} are needed along the last axis, not {}", n, describe(a.value(0))),
                call.span);
  return a.value(0);
}

// A host integer, of at least so much where that is said.
Result<Value> integer(Evaluator&, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  const Value& v = a.value(0);
  if (v.is_unknown()) return v;
  const std::string what = fmt::format("`{}`", a.value(1).text);
  if (!v.is_scalar() || !is_integer(v.scalar.dtype))
    return fail(ErrorKind::Type, "E0212", fmt::format("{} is a host integer, not {}", what, describe(v)),
                call.span);
  if (a.has(2) && v.known && v.scalar.i < a.value(2).scalar.i)
    return fail(ErrorKind::Shape, "E0303",
                fmt::format("{} is {}; {} is the least", what, v.scalar.i, a.value(2).scalar.i), call.span);
  return v;
}

// The extents without the axes that are named, or without all of one element.
Result<Value> squeezed(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), call.span));
  const auto& dims = x->type.dims;
  std::vector<int64_t> gone;
  if (names_axes(a, 1)) {
    GK_TRY(gone, axes_of(a, 1, x->type.rank()));
  }
  Value v;
  v.kind = VKind::Tuple;
  v.items = std::make_shared<Aggregate>();
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool named = std::find(gone.begin(), gone.end(), static_cast<int64_t>(i)) != gone.end();
    if (!dims[i].is_known() && (named || !names_axes(a, 1))) return Value::unknown();
    if (named && dims[i].value != 1)
      return fail(
          ErrorKind::Shape, "E0304",
          fmt::format("axis {} of {} has {} elements, not one", i, ir::to_string(x->type), dims[i].value),
          a.span(1));
    const bool stays = names_axes(a, 1) ? !named : dims[i].value != 1;
    if (stays)
      v.items->items.push_back(dims[i].is_known() ? Value::host(dims[i].value)
                                                  : Value::unknown_host(DType::I64));
  }
  return v;
}

Result<Value> is_integer_array(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  GK_TRY(const auto t, dtype_of_one(ev, a));
  return t ? Value::of_scalar(Scalar::of_bool(!gk::is_float(*t))) : Value::unknown_host(DType::Bool);
}

Result<Value> same_shape(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), a.span(0)));
  GK_TRY(auto y, ev.as_array(a.value(1), a.span(1)));
  if (x->type.rank() != y->type.rank()) return Value::of_scalar(Scalar::of_bool(false));
  if (!x->type.fully_known() || !y->type.fully_known()) return Value::unknown_host(DType::Bool);
  return Value::of_scalar(Scalar::of_bool(x->type.shape() == y->type.shape()));
}

Result<Value> count(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), call.span));
  GK_TRY(const auto axes, axes_of(a, 1, x->type.rank()));
  int64_t n = 1;
  for (const int64_t k : axes) {
    const ir::Dim& d = x->type.dims[static_cast<size_t>(k)];
    if (!d.is_known()) return Value::unknown_host(DType::I64);
    n *= d.value;
  }
  return Value::host(n);
}

}  // namespace

extern const std::vector<BuiltinInfo> kInnerBuiltins;
const std::vector<BuiltinInfo> kInnerBuiltins = {
    {"_array", "_array(x)", "x, which must be one array or number.", array},
    {"_accumulator", "_accumulator(x)", "The dtype in which a mean of x's elements is summed.",
     accumulator_of},
    {"_mean_dtype", "_mean_dtype(x)", "The dtype of a mean of x's elements.", mean_dtype},
    {"_sum_dtype", "_sum_dtype(x, dtype?)", "The dtype of a sum of x's elements, or the one asked for.",
     sum_dtype},
    {"_axis", "_axis(x, axis)", "One axis of x, counted from 0; for `_axis` itself the only one.", axis},
    {"_axes", "_axes(x, axis)", "The axes of x, counted from 0, as a list.", axes},
    {"_of_rank", "_of_rank(x, least, most)", "x, which must be an array of such a rank.", of_rank},
    {"_place", "_place(axis, rank)", "An axis of an array of that rank, counted from 0.", place_of_axis},
    {"_of_last", "_of_last(x, n)", "x, whose last axis must have n elements.", of_last},
    {"_integer", "_integer(n, what, least?)", "n, which must be a host integer of at least `least`.",
     integer},
    {"_squeezed", "_squeezed(x, axis)", "The extents of x without axes of one element.", squeezed},
    {"_is_integer", "_is_integer(x)", "Whether x's elements are integers or bools.", is_integer_array},
    {"_same_shape", "_same_shape(x, y)", "Whether the extents are the same.", same_shape},
    {"_count", "_count(x, axis)", "How many elements of x lie along the axes.", count},
};

}  // namespace gk::sema
