// Builtins: choices, reductions and linear algebra.
#include <algorithm>

#include "compiler/sema/axes.h"

namespace gk::sema {

bool names_axes(const BuiltinArgs& a, size_t i) {
  return a.has(i) && !(a.value(i).kind == VKind::Builtin && a.value(i).text == "all");
}

Result<std::vector<int64_t>> axes_of(const BuiltinArgs& a, size_t i, int rank) {
  std::vector<int64_t> axes;
  if (!names_axes(a, i)) {
    for (int k = 0; k < rank; ++k) axes.push_back(k);
    return axes;
  }
  std::vector<Value> values{a.value(i)};
  if (a.value(i).kind == VKind::Tuple) values = a.value(i).items->items;
  for (const auto& v : values) {
    if (!v.is_scalar() || !is_integer(v.scalar.dtype) || !v.known)
      return fail(ErrorKind::Type, "E0212", "an axis is a host integer known at compile time", a.span(i));
    GK_TRY(const int64_t given, small_integer(v, "an axis", a.span(i)));
    int64_t k = given < 0 ? given + rank : given;
    if (k < 0 || k >= rank)
      return fail(ErrorKind::Shape, "E0304",
                  fmt::format("axis {} is out of range for rank {}", v.scalar.i, rank), a.span(i));
    if (std::find(axes.begin(), axes.end(), k) != axes.end())
      return fail(ErrorKind::Shape, "E0304", fmt::format("axis {} is given twice", v.scalar.i), a.span(i));
    axes.push_back(k);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

DType summed_dtype(DType t) {
  if (gk::is_float(t)) return t;
  return is_bool(t) || is_signed(t) ? DType::I64 : DType::U64;
}

Error adds_no_bools(std::string_view builtin, Span span) {
  return make_error(ErrorKind::Type, "E0201", fmt::format("`{}` adds up no bools", builtin), span)
      .help("`any(…)` and `all(…)` are of bools");
}

namespace {

Result<Value> where(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  return ev.elementwise(ir::Op::Where, {a.value(0), a.value(1), a.value(2)}, call.span);
}

Result<Value> matmul(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  return ev.matmul(a.value(0), a.value(1), call.span);
}

Result<bool> flag(const BuiltinArgs& a, size_t i) {
  if (!a.has(i)) return false;
  const Value& v = a.value(i);
  if (!v.is_scalar() || !is_bool(v.scalar.dtype) || !v.known)
    return fail(ErrorKind::Type, "E0202", fmt::format("a host bool is needed, not {}", describe(v)),
                a.span(i));
  return v.scalar.i != 0;
}

template <ir::Op op>
Result<Value> reduction(Evaluator& ev, Call& call) {
  constexpr bool kAdds = op == ir::Op::Sum || op == ir::Op::Prod;
  auto matched = BuiltinArgs::match(call);
  if (!matched) return fail(std::move(matched.error()));
  const BuiltinArgs& a = *matched;
  if (a.unknown()) return Value::unknown();
  if (a.value(0).is_aggregate())
    return fail(ErrorKind::Type, "E0202",
                fmt::format("`{}` takes one array, not {}", call.callee, describe(a.value(0))), a.span(0));
  GK_TRY(auto x, ev.as_array(a.value(0), call.span));
  const bool of_two = (op == ir::Op::ReduceMax || op == ir::Op::ReduceMin) && a.has(1) && a[1].name.empty();
  const std::string help =
      !of_two ? ""
              : fmt::format("of two it is `{}({}, {})`", op == ir::Op::ReduceMax ? "maximum" : "minimum",
                            ev.written(a.span(0)), ev.written(a.span(1)));
  const auto integer = [](const Value& v) { return v.is_scalar() && is_integer(v.scalar.dtype); };
  if (of_two && !a.value(1).is_aggregate() && (x->type.rank() == 0 || !integer(a.value(1))))
    return fail(
        make_error(ErrorKind::Type, "E0206", fmt::format("`{}` reduces one array", call.callee), a.span(1))
            .help(help));
  auto found = axes_of(a, 1, x->type.rank());
  if (!found) return fail(of_two ? std::move(found.error()).help(help) : std::move(found.error()));
  auto axes = std::move(*found);
  GK_TRY(auto keep, flag(a, 2));
  if ((op == ir::Op::ArgMax || op == ir::Op::ArgMin) && names_axes(a, 1) && axes.size() != 1)
    return fail(ErrorKind::Shape, "E0304", fmt::format("`{}` takes one axis, or none for all", call.callee),
                a.span(1));
  std::optional<DType> dtype;
  if (kAdds && a.has(3)) {
    GK_TRY(dtype, dtype_arg(a[3]));
    if (is_bool(*dtype)) return fail(adds_no_bools(call.callee, a.span(3)));
  }
  return ev.reduce(op, Value::of_array(x), std::move(axes), keep, call.span, dtype);
}

}  // namespace

extern const std::vector<BuiltinInfo> kMathBuiltins;
const std::vector<BuiltinInfo> kMathBuiltins = {
    {"where", "where(condition, x, y)", "x where the condition holds, else y; all three broadcast.", where},
    {"sum", "sum(x, axis? = all, keepdims? = false, dtype?)",
     "Sum over axes (all by default); bools and integers below 64 bits count in i64 or u64.",
     reduction<ir::Op::Sum>},
    {"prod", "prod(x, axis? = all, keepdims? = false, dtype?)", "Product over axes, in the dtypes of `sum`.",
     reduction<ir::Op::Prod>},
    {"min", "min(x, axis? = all, keepdims? = false)", "Smallest over axes; NaN if any is NaN.",
     reduction<ir::Op::ReduceMin>},
    {"max", "max(x, axis? = all, keepdims? = false)", "Largest over axes; NaN if any is NaN.",
     reduction<ir::Op::ReduceMax>},
    {"any", "any(x, axis? = all, keepdims? = false)", "True where any is; x is bool.",
     reduction<ir::Op::Any>},
    {"all", "all(x, axis? = all, keepdims? = false)", "True where all are; x is bool.",
     reduction<ir::Op::All>},
    {"argmin", "argmin(x, axis? = all, keepdims? = false)", "Index of the first smallest, i64.",
     reduction<ir::Op::ArgMin>},
    {"argmax", "argmax(x, axis? = all, keepdims? = false)", "Index of the first largest, i64.",
     reduction<ir::Op::ArgMax>},
    {"matmul", "matmul(a, b)", "Matrix product, as `@`.", matmul},
};

}  // namespace gk::sema
