// What the library in gk (stdlib/) needs of the compiler and programs do not see: names that begin with `_`.
#include "compiler/sema/axes.h"
#include "compiler/sema/builtin_args.h"

namespace gk::sema {

namespace {

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
    {"_accumulator", "_accumulator(x)", "The dtype in which a mean of x's elements is summed.",
     accumulator_of},
    {"_mean_dtype", "_mean_dtype(x)", "The dtype of a mean of x's elements.", mean_dtype},
    {"_count", "_count(x, axis)", "How many elements of x lie along the axes.", count},
};

}  // namespace gk::sema
