// Builtins: random numbers. A generator is a record of one device array, {seed, draws so far}.
#include "compiler/sema/builtin_args.h"
#include "compiler/sema/host_number.h"

namespace gk::sema {

namespace {

// ------------------------------------------------------------------------------------------------------------

Result<Value> rng(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
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
  GK_TRY(auto first, ev.elementwise(ir::Op::Eq, {Value::of_array(i), Value::constant_int(0)}, call.span));
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
  // Extents alone, as others have them, become an array's type.
  const bool of_floats = call.callee != "randint";
  std::string rest, extents;
  bool typed = false;
  for (const auto& a : call.args) {
    std::string text = ev.written(a.span);
    rest += ", " + (a.name.empty() ? "" : a.name + "=") + text;
    typed = typed || a.value.kind == VKind::Type || a.value.kind == VKind::Record;
    if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
    extents += (extents.empty() ? "" : ", ") + text;
  }
  if (!typed && of_floats) rest = fmt::format(", f32[{}]", extents.empty() ? "…" : extents);
  if (!typed && !of_floats && call.args.size() == 2) rest += ", i64[…]";
  if (!typed && !of_floats && call.args.size() != 2) rest = ", lo, hi, i64[…]";
  return fail(make_error(ErrorKind::Type, "E0206", fmt::format("`{}` needs a generator", call.callee),
                         call.args.empty() ? call.span : call.args[0].span)
                  .note("made by `var r = rng(seed=1)`")
                  .help(fmt::format("the first argument is a generator: `{}(mut r{})`", call.callee, rest)));
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
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.value(1).is_unknown()) return Value::unknown();
  GK_TRY(auto t, ev.array_type(a.value(1), a.span(1)));
  if (!gk::is_float(t.dtype))
    return fail(ErrorKind::Type, "E0201",
                fmt::format("`{}` gives floats, not {}", call.callee, name(t.dtype)), a.span(1));
  return draw(ev, call, a[0], a.value(1), a.span(1), op, t.dtype);
}

constexpr __int128 kMostByDouble = __int128{1} << 53;  // what the double that is drawn tells apart

Value u64(uint64_t v) { return Value::of_scalar(Scalar::of_int(static_cast<int64_t>(v), DType::U64)); }

// One draw an element: floor(u * n) for a double u in [0, 1).
Result<Value> drawn_below(Evaluator& ev, Call& call, const BuiltinArgs& a, double n) {
  GK_TRY(auto u, draw(ev, call, a[0], a.value(3), a.span(3), ir::Op::RngUniform, DType::F64));
  if (u.is_unknown()) return u;
  GK_TRY(auto x,
         ev.elementwise(ir::Op::Mul, {u, Value::of_scalar(Scalar::of_float(n, DType::F64))}, call.span));
  GK_TRY(x, ev.elementwise(ir::Op::Floor, {x}, call.span));
  GK_TRY(x, ev.cast(x, DType::I64, call.span));
  return ev.cast(x, DType::U64, call.span);
}

// floor(u * count) for a u of 128 bits, of which each draw gives 32: the product, digit by digit of 32 bits.
// 2**64 is count 0.
Result<Value> drawn_wide(Evaluator& ev, Call& call, const BuiltinArgs& a, uint64_t count) {
  using ir::Op;
  const auto op = [&](Op o, const Value& x, const Value& y) { return ev.elementwise(o, {x, y}, call.span); };
  const auto high = [&](const Value& x) { return op(Op::Shr, x, u64(32)); };
  const auto low = [&](const Value& x) { return op(Op::And, x, u64(0xffffffff)); };
  std::vector<Value> digits;  // the highest first
  for (int i = 0; i < (count == 0 ? 2 : 4); ++i) {
    GK_TRY(auto d, drawn_below(ev, call, a, 0x1p32));
    if (d.is_unknown()) return d;
    digits.push_back(std::move(d));
  }
  if (count == 0) {
    GK_TRY(auto top, op(Op::Shl, digits[0], u64(32)));
    return op(Op::Or, top, digits[1]);
  }
  const Value c0 = u64(count & 0xffffffff), c1 = u64(count >> 32);
  Value carry0 = u64(0), carry1 = u64(0), below = u64(0);
  for (size_t i = digits.size(); i-- > 0;) {
    // Digit `i` times c0, and the one below it times c1, stand at one place.
    GK_TRY(auto t, op(Op::Mul, digits[i], c0));
    GK_TRY(t, op(Op::Add, t, carry0));
    GK_TRY(carry0, high(t));
    GK_TRY(auto rest, low(t));
    GK_TRY(auto s, op(Op::Mul, below, c1));
    GK_TRY(s, op(Op::Add, s, rest));
    GK_TRY(s, op(Op::Add, s, carry1));
    GK_TRY(carry1, high(s));
    below = digits[i];
  }
  GK_TRY(auto r, op(Op::Mul, below, c1));
  GK_TRY(r, op(Op::Add, r, carry0));
  return op(Op::Add, r, carry1);
}

Result<Value> randint(Evaluator& ev, Call& call) {
  GK_CHECK(check_generator(ev, call, 4));
  GK_TRY(auto a, BuiltinArgs::match(call));
  if (a.unknown()) return Value::unknown();
  GK_TRY(auto t, ev.array_type(a.value(3), a.span(3)));
  if (!is_integer(t.dtype))
    return fail(ErrorKind::Type, "E0201", fmt::format("`randint` gives integers, not {}", name(t.dtype)),
                a.span(3));
  const auto bound = [&](size_t i, const char* what) -> Result<std::optional<__int128>> {
    const Value& v = a.value(i);
    if (!v.is_scalar() || !is_integer(v.scalar.dtype))
      return fail(ErrorKind::Type, "E0212", fmt::format("{} is a host integer, not {}", what, describe(v)),
                  a.span(i));
    return v.known ? std::optional(exact(v.scalar)) : std::nullopt;
  };
  GK_TRY(auto lo, bound(1, "the lower bound"));
  GK_TRY(auto hi, bound(2, "the upper bound"));
  if (lo && hi && *hi <= *lo)
    return fail(ErrorKind::Type, "E0203",
                fmt::format("`randint` from {} up to {} has nothing to draw", number_text(a.value(1).scalar),
                            number_text(a.value(2).scalar)),
                call.span);
  const auto in_range = [&](__int128 v, size_t i) -> Result<void> {
    const auto number = host_integer(v);
    auto fits =
        number ? host_fit(*number, t.dtype) : Result<Scalar>(fail(ErrorKind::Type, "E0203", "out of range"));
    if (!fits) return fail(std::move(fits.error()).at(a.span(i)));
    return {};
  };
  if (lo) GK_CHECK(in_range(*lo, 1));
  if (hi) GK_CHECK(in_range(*hi - 1, 2));
  const __int128 count = lo && hi ? *hi - *lo : 1;
  GK_TRY(auto x, count <= kMostByDouble ? drawn_below(ev, call, a, static_cast<double>(count))
                                        : drawn_wide(ev, call, a, static_cast<uint64_t>(count)));
  if (x.is_unknown()) return x;
  // Modulo 2**64, whatever the dtype: the number drawn may be too large for it until the lower bound is
  // added.
  GK_TRY(x, ev.elementwise(ir::Op::Add, {x, u64(static_cast<uint64_t>(lo.value_or(0)))}, call.span));
  return ev.cast(x, t.dtype, call.span);
}

}  // namespace

extern const std::vector<BuiltinInfo> kRandomBuiltins;
const std::vector<BuiltinInfo> kRandomBuiltins = {
    {"rng", "rng(seed?)", "A counter-based random generator (Philox 4x32-10); its counter is device state.",
     rng},
    {"rand", "rand(mut rng, type)", "Uniform in [0, 1).", random<ir::Op::RngUniform>},
    {"randn", "randn(mut rng, type)", "Standard normal.", random<ir::Op::RngNormal>},
    {"randint", "randint(mut rng, lo, hi, type)", "Uniform integers from lo up to but not including hi.",
     randint},
};

}  // namespace gk::sema
