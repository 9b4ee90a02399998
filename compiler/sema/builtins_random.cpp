// Builtins: random numbers. A generator is a record of one device array, {seed, draws so far}.
#include "compiler/sema/builtin_args.h"

namespace gk::sema {

namespace {

Value weak_int(int64_t v) { return Value::of_scalar(Scalar::of_int(v), true); }

// ------------------------------------------------------------------------------------------------------------

Result<Value> rng(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call, {"seed?"}));
  Value seed = Value::of_scalar(Scalar::of_int(static_cast<int64_t>(ev.options().seed), DType::U64));
  if (a.has(0)) {
    if (a.unknown()) return Value::unknown();
    if (!a.value(0).is_scalar() || !is_integer(a.value(0).scalar.dtype))
      return fail(ErrorKind::Type, "E0212",
                  fmt::format("a seed is a host integer, not {}", describe(a.value(0))), a.span(0));
    GK_TRY(seed, ev.cast(a.value(0), DType::U64, a.span(0)));
  }
  ir::Type state_type{DType::I64, {ir::Dim::known(2)}};
  ir::Attrs state_attrs;
  state_attrs.axes = {0};
  state_attrs.shape = Shape{2};
  GK_TRY(auto i, ev.emit(ir::Op::Iota, {}, state_attrs, call.span, &state_type));
  GK_TRY(auto first, ev.elementwise(ir::Op::Eq, {Value::of_array(i), weak_int(0)}, call.span));
  GK_TRY(auto state,
         ev.elementwise(ir::Op::Where, {first, seed, Value::of_scalar(Scalar::of_int(0, DType::U64))},
                        call.span));
  static const auto type = [] {
    auto t = std::make_shared<TypeDef>();
    t->name = "rng";
    return t;
  }();
  Value r;
  r.kind = VKind::Record;
  r.items = std::make_shared<Aggregate>();
  r.items->names = {"state"};
  r.items->items = {state};
  r.items->type = type;
  return r;
}

// The generator is what is forgotten first.
Result<void> check_generator(Evaluator& ev, const Call& call, size_t num_args) {
  const bool missing =
      call.args.empty() || (call.args[0].name.empty() && !call.args[0].is_mut && call.args.size() < num_args);
  if (!missing) return {};
  std::string rest;
  for (const auto& a : call.args) rest += ", " + (a.name.empty() ? "" : a.name + "=") + ev.written(a.span);
  return fail(make_error(ErrorKind::Type, "E0206", fmt::format("`{}` needs a generator", call.callee),
                         call.args.empty() ? call.span : call.args[0].span)
                  .note("made by `var r = rng(seed=1)`")
                  .help(fmt::format("the first argument is a generator: `{}(mut r{})`", call.callee,
                                    rest.empty() ? ", …" : rest)));
}

Result<Value> draw(Evaluator& ev, Call& call, CallArg& state, const Value& type, Span type_span, ir::Op op,
                   DType t) {
  if (!state.is_mut || !state.place)
    return fail(
        make_error(ErrorKind::Type, "E0206", fmt::format("`{}` advances the generator", call.callee),
                   state.span)
            .help(fmt::format("pass it `mut`: `{}(mut {}, …)`", call.callee, ev.written(state.span))));
  if (state.place->is_unknown()) return Value::unknown();
  if (state.place->kind != VKind::Record || state.place->items->names != std::vector<std::string>{"state"})
    return fail(ErrorKind::Type, "E0202",
                fmt::format("a generator made by `rng` is needed, not {}", describe(*state.place)),
                state.span);
  GK_TRY(auto shape, ev.array_type(type, type_span));
  ArrayPtr& s = state.place->items->items[0].array;
  ir::Type result{t, shape.dims};
  ir::Attrs attrs;
  attrs.dtype = t;
  if (ev.running()) attrs.shape = shape.shape();
  GK_TRY(auto r, ev.emit(op, {s}, attrs, call.span, &result));
  ir::Attrs advance;
  if (ev.running()) advance.index = num_elements(attrs.shape).value_or(0);
  GK_TRY(auto next, ev.emit(ir::Op::RngAdvance, {s}, advance, call.span));
  GK_CHECK(ev.overwrite(s, next, call.span));
  return Value::of_array(r);
}

template <ir::Op op>
Result<Value> random(Evaluator& ev, Call& call) {
  GK_CHECK(check_generator(ev, call, 2));
  GK_TRY(auto a, BuiltinArgs::match(call, {"rng", "type"}));
  if (a.value(1).is_unknown()) return Value::unknown();
  GK_TRY(auto t, ev.array_type(a.value(1), a.span(1)));
  if (!gk::is_float(t.dtype))
    return fail(ErrorKind::Type, "E0201",
                fmt::format("`{}` gives floats, not {}", call.callee, name(t.dtype)), a.span(1));
  return draw(ev, call, a[0], a.value(1), a.span(1), op, t.dtype);
}

constexpr int64_t kMostDrawn = int64_t{1} << 53;  // what the double that is drawn tells apart

Result<Value> randint(Evaluator& ev, Call& call) {
  GK_CHECK(check_generator(ev, call, 4));
  GK_TRY(auto a, BuiltinArgs::match(call, {"rng", "lo", "hi", "type"}));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto t, ev.array_type(a.value(3), a.span(3)));
  if (!is_integer(t.dtype))
    return fail(ErrorKind::Type, "E0201", fmt::format("`randint` gives integers, not {}", name(t.dtype)),
                a.span(3));
  GK_TRY(auto lo, host_int(a[1], "the lower bound"));
  GK_TRY(auto hi, host_int(a[2], "the upper bound"));
  if (lo && hi && *hi <= *lo)
    return fail(ErrorKind::Type, "E0203",
                fmt::format("`randint` from {} up to {} has nothing to draw", *lo, *hi), call.span);
  int64_t count = 1;
  if (lo && hi && (__builtin_sub_overflow(*hi, *lo, &count) || count > kMostDrawn))
    return fail(ErrorKind::Type, "E0203", "`randint` draws from 2**53 integers at most", call.span);
  if (lo) GK_CHECK(ev.cast_weak(weak_int(*lo), t.dtype, a.span(1)));
  if (hi) GK_CHECK(ev.cast_weak(weak_int(*hi - 1), t.dtype, a.span(2)));
  GK_TRY(auto u, draw(ev, call, a[0], a.value(3), a.span(3), ir::Op::RngUniform, DType::F64));
  if (u.is_unknown()) return u;
  const auto range = static_cast<double>(count);
  GK_TRY(auto x,
         ev.elementwise(ir::Op::Mul, {u, Value::of_scalar(Scalar::of_float(range, DType::F64))}, call.span));
  GK_TRY(x, ev.elementwise(ir::Op::Floor, {x}, call.span));
  // The number drawn may be too large for the dtype, until the lower bound is added.
  GK_TRY(x, ev.cast(x, DType::I64, call.span));
  GK_TRY(x, ev.elementwise(ir::Op::Add, {x, Value::of_scalar(Scalar::of_int(lo.value_or(0), DType::I64))},
                           call.span));
  return ev.cast(x, t.dtype, call.span);
}

}  // namespace

extern const std::vector<BuiltinInfo> kRandomBuiltins;
const std::vector<BuiltinInfo> kRandomBuiltins = {
    {"rng", "rng(seed=)", "A counter-based random generator (Philox 4x32-10); its counter is device state.",
     rng},
    {"rand", "rand(mut r, f32[N])", "Uniform in [0, 1).", random<ir::Op::RngUniform>},
    {"randn", "randn(mut r, f32[N])", "Standard normal.", random<ir::Op::RngNormal>},
    {"randint", "randint(mut r, lo, hi, i64[N])", "Uniform integers from lo up to but not including hi.",
     randint},
};

}  // namespace gk::sema
