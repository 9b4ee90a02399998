// Builtins: making arrays, changing their shape, lists, random numbers.
#include <algorithm>
#include <cmath>

#include "compiler/sema/builtin_args.h"

namespace gk::sema {

namespace {

Result<Value> filled(Evaluator& ev, const Value& type, const Value& v, Span at, Span span) {
  if (type.kind == VKind::Type && (type.type_def || type.type_syntax)) {
    const syntax::TypeExpr& t = type.type_def ? *type.type_def->body : *type.type_syntax;
    GK_TRY(auto r, ev.default_of(t, type.type_def ? type.type_def->scope : ev.root(), at));
    if (r.is_aggregate() && type.type_def) r.items->type = type.type_def;
    if (v.is_scalar() && v.scalar.as_double() == 0) return r;
    return ev.elementwise(ir::Op::Add, {r, v}, span);
  }
  GK_TRY(auto t, ev.array_type(type, at));
  Value x = v;
  if (v.is_scalar() && (!v.weak || is_bool(t.dtype))) {
    GK_TRY(x, ev.cast(v, t.dtype, span));
  }
  GK_TRY(auto a, ev.full(t, x, span));
  return Value::of_array(a);
}

template <int n>
Result<Value> constant(Evaluator& ev, Call& call) {
  GK_CHECK(ev.refuse_extents(call, nullptr));
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  return filled(ev, a.value(0), Value::constant_int(n), a.span(0), call.span);
}

Result<Value> full(Evaluator& ev, Call& call) {
  GK_CHECK(ev.refuse_extents(call, call.args.empty() ? nullptr : &call.args.back().value));
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  if (!a.value(1).is_scalar() && !(a.value(1).is_array() && a.value(1).array->type.rank() == 0))
    return fail(ErrorKind::Type, "E0202", fmt::format("`full` takes a scalar, not {}", describe(a.value(1))),
                a.span(1));
  return filled(ev, a.value(0), a.value(1), a.span(0), call.span);
}

Result<Value> like(Evaluator& ev, const Value& x, const Value& v, Span span) {
  if (x.is_unknown()) return x;
  if (x.is_aggregate()) {
    Value r = x;
    r.items = std::make_shared<Aggregate>(*x.items);
    for (auto& i : r.items->items) {
      GK_TRY(i, like(ev, i, v, span));
    }
    return r;
  }
  GK_TRY(auto a, ev.as_array(x, span));
  Value fill = v;
  if (fill.is_scalar() && (!fill.weak || is_bool(a->type.dtype))) {
    GK_TRY(fill, ev.cast(fill, a->type.dtype, span));
  }
  GK_TRY(auto r, ev.full(a->type, fill, span));
  return Value::of_array(r);
}

template <int n>
Result<Value> constant_like(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  return like(ev, a.value(0), Value::constant_int(n), call.span);
}

Result<Value> full_like(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  return like(ev, a.value(0), a.value(1), call.span);
}

Result<Value> copy_value(Evaluator& ev, const Value& v, Span span) {
  if (v.is_aggregate()) {
    Value r = v;
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& i : r.items->items) {
      GK_TRY(i, copy_value(ev, i, span));
    }
    return r;
  }
  if (!v.is_array()) return v;
  // A new pending array with the value of now: it gets a storage of its own.
  GK_TRY(auto value, ev.value_of(v.array, span));
  auto a = ev.trace().pending(v.array->type, value);
  return Value::of_array(a);
}

Result<Value> copy(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  return copy_value(ev, a.value(0), call.span);
}

Result<ArrayPtr> iota(Evaluator& ev, const ir::Dims& dims, int axis, Span span) {
  ir::Type t{DType::I64, dims};
  ir::Attrs attrs;
  attrs.axes = {axis};
  if (ev.running()) attrs.shape = t.shape();
  return ev.emit(ir::Op::Iota, {}, attrs, span, &t);
}

Result<Value> arange(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  Value start = Value::constant_int(0), stop = a.value(0), step = Value::constant_int(1);
  if (a.has(1)) {
    start = a.value(0);
    stop = a.value(1);
  }
  if (a.has(2)) step = a.value(2);
  bool floating = false, known = true;
  for (const auto* v : {&start, &stop, &step}) {
    if (!v->is_scalar() || is_bool(v->scalar.dtype))
      return fail(ErrorKind::Type, "E0212", fmt::format("`arange` takes host numbers, not {}", describe(*v)),
                  call.span);
    floating = floating || v->scalar.is_float();
    known = known && v->known;
  }
  DType t = floating ? ev.default_float() : DType::I64;
  if (a.has(3)) {
    GK_TRY(t, dtype_arg(a[3]));
  }
  ir::Dim n = ev.fresh_dim();
  if (known) {
    double count;
    if (floating) {
      double s = step.scalar.as_double();
      count = std::ceil((stop.scalar.as_double() - start.scalar.as_double()) / s);
      if (s == 0 || std::isnan(count))
        return fail(ErrorKind::Shape, "E0309", "`arange` needs a step other than 0", call.span);
      if (count > 9e18)
        return fail(ErrorKind::Shape, "E0307", "`arange` has more elements than can be counted", call.span);
      n = ir::Dim::known(std::max<int64_t>(0, static_cast<int64_t>(count)));
    } else {
      int64_t s = step.scalar.i, lo = start.scalar.i, hi = stop.scalar.i;
      if (s == 0) return fail(ErrorKind::Shape, "E0309", "`arange` needs a step other than 0", call.span);
      __int128 span128 = static_cast<__int128>(hi) - lo;
      __int128 steps = s > 0 ? (span128 + s - 1) / s : (span128 + s + 1) / s;
      if (steps > INT64_MAX)
        return fail(ErrorKind::Shape, "E0307", "`arange` has more elements than can be counted", call.span);
      n = ir::Dim::known(steps < 0 ? 0 : static_cast<int64_t>(steps));
      if (lo == 0 && s == 1 && !stop.text.empty() && n.value == hi) n.name = stop.text;
    }
  }
  GK_TRY(auto i, iota(ev, {n}, 0, call.span));
  DType wide = floating ? DType::F64 : DType::I64;
  GK_TRY(auto x, ev.cast(Value::of_array(i), wide, call.span));
  auto typed = [&](const Value& v) {
    Value r = v;
    r.weak = false;
    r.scalar = v.scalar.cast(wide);
    return r;
  };
  GK_TRY(x, ev.elementwise(ir::Op::Mul, {x, typed(step)}, call.span));
  GK_TRY(x, ev.elementwise(ir::Op::Add, {x, typed(start)}, call.span));
  return ev.cast(x, t, call.span);
}

Result<Value> linspace(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  for (size_t k = 0; k < 2; ++k)
    if (!a.value(k).is_scalar() || is_bool(a.value(k).scalar.dtype))
      return fail(ErrorKind::Type, "E0212",
                  fmt::format("`linspace` takes host numbers, not {}", describe(a.value(k))), a.span(k));
  DType t = ev.default_float();
  for (size_t k = 0; k < 2; ++k)
    if (!a.value(k).weak && a.value(k).scalar.is_float()) t = a.value(k).scalar.dtype;
  if (a.has(3)) {
    GK_TRY(t, dtype_arg(a[3]));
  }
  GK_TRY(auto n, host_int(a[2], "the number of points"));
  if (n && *n < 0) return fail(ErrorKind::Shape, "E0303", "an extent cannot be negative", a.span(2));
  ir::Dim d = n ? ir::Dim::known(*n, a.value(2).text) : ev.fresh_dim();
  if (!n && a.value(2).symbol) d.symbol = a.value(2).symbol;
  GK_TRY(auto i, iota(ev, {d}, 0, call.span));
  // In f64 and rounded once, as NumPy does; the last point is `stop` itself.
  auto f64 = [](double v) { return Value::of_scalar(Scalar::of_float(v, DType::F64)); };
  double lo = a.value(0).scalar.as_double(), hi = a.value(1).scalar.as_double();
  double steps = n && *n > 1 ? static_cast<double>(*n - 1) : 1;
  GK_TRY(auto x, ev.cast(Value::of_array(i), DType::F64, call.span));
  GK_TRY(x, ev.elementwise(ir::Op::Mul, {x, f64((hi - lo) / steps)}, call.span));
  GK_TRY(x, ev.elementwise(ir::Op::Add, {x, f64(lo)}, call.span));
  if (n && *n > 1) {
    GK_TRY(auto last,
           ev.elementwise(ir::Op::Eq, {Value::of_array(i), Value::of_scalar(Scalar::of_int(*n - 1))},
                          call.span));
    GK_TRY(x, ev.elementwise(ir::Op::Where, {last, f64(hi), x}, call.span));
  }
  return ev.cast(x, t, call.span);
}

Result<Value> eye(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  DType t = ev.default_float();
  if (a.has(2)) {
    GK_TRY(t, dtype_arg(a[2]));
  }
  ir::Dims dims;
  for (size_t k = 0; k < 2; ++k) {
    if (k == 1 && !a.has(1)) {
      dims.push_back(dims[0]);
      break;
    }
    GK_TRY(auto n, host_int(a[k], "an extent"));
    if (n && *n < 0) return fail(ErrorKind::Shape, "E0303", "an extent cannot be negative", a.span(k));
    dims.push_back(n ? ir::Dim::known(*n, a.value(k).text) : ev.fresh_dim());
  }
  GK_TRY(auto i, iota(ev, dims, 0, call.span));
  GK_TRY(auto j, iota(ev, dims, 1, call.span));
  GK_TRY(auto d, ev.elementwise(ir::Op::Eq, {Value::of_array(i), Value::of_array(j)}, call.span));
  return ev.cast(d, t, call.span);
}

Result<Value> reshape(Evaluator& ev, Call& call) {
  if (call.args.size() < 2)
    return fail(ErrorKind::Type, "E0206", "`reshape` takes an array and its new extents", call.span);
  if (call.args[0].value.is_unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(call.args[0].value, call.args[0].span));
  std::vector<ir::Dim> dims;
  GK_TRY(auto extents, extents_of(ev, call, 1, &dims));
  int64_t product = 1, hole = -1;
  bool known = x->type.fully_known();
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!extents[i]) {
      known = false;
      if (dims[i].symbol == 0) dims[i] = ev.fresh_dim();
      continue;
    }
    if (*extents[i] == -1 && hole < 0) {
      hole = static_cast<int64_t>(i);
      continue;
    }
    if (*extents[i] < 0)
      return fail(
          ErrorKind::Shape, "E0305",
          *extents[i] == -1 ? "only one extent can be left open with -1" : "an extent cannot be negative",
          call.span);
    if (__builtin_mul_overflow(product, *extents[i], &product))
      return fail(ErrorKind::Shape, "E0307", "the new shape has more elements than can be counted",
                  call.span);
  }
  if (hole >= 0) {
    dims[static_cast<size_t>(hole)] = ev.fresh_dim();
    if (known) {
      int64_t n = num_elements(x->type.shape()).value_or(0);
      if (product == 0 || n % product != 0)
        return fail(make_error(ErrorKind::Shape, "E0305",
                               fmt::format("cannot reshape {} of {} elements: {} does not divide them",
                                           ir::to_string(x->type), n, product),
                               call.span));
      dims[static_cast<size_t>(hole)] = ir::Dim::known(n / product);
    }
  }
  ir::Type t{x->type.dtype, dims};
  ir::Attrs attrs;
  if (known) {
    attrs.shape = t.shape();
    GK_TRY(auto checked, [&]() -> Result<ir::Type> {
      std::vector<ir::Type> operand{x->type};
      auto r = ir::infer(ir::Op::Reshape, operand, attrs);
      if (!r) return fail(std::move(r.error()).at(call.span));
      return r;
    }());
    (void)checked;
  }
  GK_TRY(auto r, ev.emit(ir::Op::Reshape, {x}, attrs, call.span, &t));
  return Value::of_array(r);
}

Result<Value> transpose(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), a.span(0)));
  ir::Attrs attrs;
  int rank = x->type.rank();
  if (!a.has(1)) {
    for (int i = rank; i-- > 0;) attrs.axes.push_back(i);
  } else {
    Call rest = call;
    rest.args.erase(rest.args.begin());
    rest.args[0].name.clear();
    GK_TRY(auto axes, extents_of(ev, rest, 0, nullptr));
    for (auto k : axes) {
      if (!k)
        return fail(ErrorKind::Type, "E0212", "an axis is a host integer known at compile time", a.span(1));
      int64_t axis = *k < 0 ? *k + rank : *k;
      if (axis < 0 || axis >= rank)
        return fail(ErrorKind::Shape, "E0304", fmt::format("axis {} is out of range for rank {}", *k, rank),
                    a.span(1));
      attrs.axes.push_back(axis);
    }
  }
  if (rank < 2 && static_cast<int>(attrs.axes.size()) == rank) return Value::of_array(x);
  GK_TRY(auto r, ev.emit(ir::Op::Transpose, {x}, attrs, call.span));
  return Value::of_array(r);
}

Result<Value> broadcast_to(Evaluator& ev, Call& call) {
  if (call.args.size() < 2)
    return fail(ErrorKind::Type, "E0206", "`broadcast_to` takes an array and extents", call.span);
  if (call.args[0].value.is_unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(call.args[0].value, call.args[0].span));
  std::vector<ir::Dim> dims;
  GK_TRY(auto extents, extents_of(ev, call, 1, &dims));
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] && *extents[i] < 0)
      return fail(ErrorKind::Shape, "E0303", "an extent cannot be negative", call.span);
  auto joint = ir::broadcast(x->type.dims, dims);
  bool fits = joint && joint->size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = ir::equal((*joint)[i], dims[i]) != ir::Tri::No;
  if (!fits)
    return fail(ErrorKind::Shape, "E0301",
                fmt::format("cannot broadcast {} to {}", ir::to_string(x->type),
                            ir::to_string(ir::Type{x->type.dtype, dims})),
                call.span);
  GK_TRY(auto r, ev.broadcast_to(x, dims, call.span));
  return Value::of_array(r);
}

Result<Value> join_arrays(Evaluator& ev, Call& call, bool stack) {
  if (!call.args.empty() && call.args[0].name.empty() && call.args[0].value.is_array())
    return fail(ev.not_a_list(call));
  GK_TRY(auto a, BuiltinArgs::match(call));
  std::vector<Value> items;
  if (a.value(0).is_aggregate()) {
    items = a.value(0).items->items;
  } else if (a.value(0).is_unknown()) {
    return Value::unknown();
  } else {
    return fail(ErrorKind::Type, "E0202",
                fmt::format("`{}` takes a list of arrays, not {}", call.callee, describe(a.value(0))),
                a.span(0));
  }
  if (items.empty()) return fail(ErrorKind::Type, "E0202", "nothing to join", call.span);
  // What has no dtype of its own takes that of the others.
  Value common = items[0];
  for (const auto& v : items) {
    if (v.is_unknown()) return v;
    if (!v.is_array() && !v.is_scalar())
      return fail(ErrorKind::Type, "E0202", fmt::format("an array is needed here, not {}", describe(v)),
                  call.span);
    if (&v == items.data()) continue;
    GK_TRY(auto met, ev.common_dtype(common, v, "join", call.span));
    const bool adopts = (is_number(common) || common.is_literal()) && (is_number(v) || v.is_literal());
    if (adopts && common.is_literal() == v.is_literal())
      common = gk::is_float(met.dtype) == gk::is_float(dtype_of(common)->dtype) ? common : v;
    else
      common = Value::unknown_scalar(met.dtype);
  }
  const DType t = ev.alone(common);
  int rank = (items[0].is_array() ? items[0].array->type.rank() : 0) + (stack ? 1 : 0);
  int64_t axis = 0;
  if (a.has(1)) {
    GK_TRY(auto k, host_int(a[1], "an axis"));
    if (!k)
      return fail(ErrorKind::Type, "E0212", "an axis is a host integer known at compile time", a.span(1));
    axis = *k < 0 ? *k + rank : *k;
  }
  if (axis < 0 || axis >= rank)
    return fail(ErrorKind::Shape, "E0304", fmt::format("axis {} is out of range for rank {}", axis, rank),
                call.span);
  std::vector<ArrayPtr> parts;
  for (auto& v : items) {
    GK_TRY(auto x, ev.as_array(v, t, call.span));
    if (stack) {
      ir::Type row{t, x->type.dims};
      row.dims.insert(row.dims.begin() + axis, ir::Dim::known(1));
      if (row.rank() > kMaxRank) return fail(ErrorKind::Shape, "E0306", "the rank would exceed 8", call.span);
      ir::Attrs attrs;
      if (ev.running()) attrs.shape = row.shape();
      GK_TRY(x, ev.emit(ir::Op::Reshape, {x}, attrs, call.span, &row));
    }
    parts.push_back(x);
  }
  if (parts.size() == 1) return Value::of_array(parts[0]);
  ir::Attrs attrs;
  attrs.axes = {axis};
  GK_TRY(auto r, ev.emit(ir::Op::Concat, parts, attrs, call.span));
  return Value::of_array(r);
}

Result<Value> concat(Evaluator& ev, Call& call) { return join_arrays(ev, call, false); }
Result<Value> stack(Evaluator& ev, Call& call) { return join_arrays(ev, call, true); }

Result<Value> take(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto x, ev.as_array(a.value(0), a.span(0)));
  int64_t axis = 0;
  if (a.has(2)) {
    GK_TRY(auto k, host_int(a[2], "an axis"));
    if (!k)
      return fail(ErrorKind::Type, "E0212", "an axis is a host integer known at compile time", a.span(2));
    axis = *k < 0 ? *k + x->type.rank() : *k;
  }
  if (axis < 0 || axis >= x->type.rank())
    return fail(ErrorKind::Shape, "E0304",
                fmt::format("axis {} is out of range for {}", axis, ir::to_string(x->type)), call.span);
  GK_TRY(auto i, ev.as_array(a.value(1), a.span(1)));
  if (!is_integer(i->type.dtype))
    return fail(ErrorKind::Type, "E0201",
                fmt::format("an index is an integer, not {}", ir::to_string(i->type)), a.span(1));
  GK_TRY(i, ev.as_array(Value::of_array(i), DType::I64, a.span(1)));
  ir::Attrs attrs;
  attrs.axes = {axis};
  GK_TRY(auto r, ev.emit(ir::Op::Take, {x, i}, attrs, call.span));
  return Value::of_array(r);
}

Result<Value> list(Evaluator& ev, Call& call) {
  Value r;
  r.kind = VKind::List;
  r.items = std::make_shared<Aggregate>();
  if (call.args.size() == 2 && call.args[1].value.kind == VKind::Function) {
    GK_TRY(auto n, host_int(call.args[0], "the length of a list"));
    if (n && *n < 0)
      return fail(ErrorKind::Shape, "E0303", "the length of a list cannot be negative", call.span);
    if (n && *n > 1'000'000)
      return fail(ErrorKind::Shape, "E0307", "a list of over a million elements", call.span);
    if (!n && ev.running())
      return fail(ErrorKind::Type, "E0212", "the length of a list must be known", call.span);
    for (int64_t i = 0; i < n.value_or(1); ++i) {
      GK_CHECK(ev.poll(call.span));
      GK_TRY(auto v, ev.call_lambda(call.args[1].value,
                                    {n ? Value::host(i) : Value::unknown_host(DType::I64)}, call.span));
      GK_TRY(v, ev.settled(v, call.span));
      GK_TRY(auto held, ev.hold(v, call.span));
      r.items->items.push_back(std::move(held));
    }
    if (!n) return Value::unknown();
    return r;
  }
  for (auto& a : call.args) {
    if (!a.name.empty())
      return fail(ErrorKind::Type, "E0206", "a list takes its elements by position", a.span);
    GK_TRY(auto element, ev.settled(a.value, a.span));
    r.items->items.push_back(std::move(element));
  }
  return r;
}

}  // namespace

extern const std::vector<BuiltinInfo> kArrayBuiltins;
const std::vector<BuiltinInfo> kArrayBuiltins = {
    {"zeros", "zeros(type)", "An array (or a record type's arrays) of zeros.", constant<0>},
    {"ones", "ones(type)", "An array of ones.", constant<1>},
    {"full", "full(type, value)", "An array of one value.", full},
    {"zeros_like", "zeros_like(x)", "Zeros of x's shape and dtype; records field by field.",
     constant_like<0>},
    {"ones_like", "ones_like(x)", "Ones of x's shape and dtype.", constant_like<1>},
    {"full_like", "full_like(x, value)", "One value in x's shape and dtype.", full_like},
    {"copy", "copy(x)", "The same values in storage of their own.", copy},
    {"arange", "arange(start, stop?, step?, dtype?)",
     "start, start + step, … below stop; i64, or the default float.", arange},
    {"linspace", "linspace(start, stop, n, dtype?)", "n points from start to stop, both included.", linspace},
    {"eye", "eye(n, m?, dtype?)", "Ones on the diagonal, zeros elsewhere.", eye},
    {"reshape", "reshape(x, (2, 3))",
     "The same elements in row-major order in another shape; one extent may be -1.", reshape},
    {"transpose", "transpose(x, axes?)", "Axes in another order; reversed by default.", transpose},
    {"broadcast_to", "broadcast_to(x, (2, 3))", "x repeated along new and unit axes.", broadcast_to},
    {"concat", "concat(arrays, axis? = 0)", "Arrays one after the other along an axis.", concat},
    {"stack", "stack(arrays, axis? = 0)", "Arrays of one shape along a new axis.", stack},
    {"take", "take(x, index, axis? = 0)", "Elements of x by integer index along an axis.", take},
    {"list", "list(n, i => …) or list(a, b, …)", "A fixed list.", list},
};

}  // namespace gk::sema
