// Statements of generated programs that make or use values of a kind: numbers,
// records, lists, files, kernels.
#include "tests/property/generator.h"

namespace gk::property {

namespace {

Stmt make(Stmt::Kind k, std::string name, Expr value) {
  Stmt s;
  s.kind = k;
  s.name = std::move(name);
  s.value = std::move(value);
  return s;
}

Stmt written(Expr place, std::string op, Expr value) {
  Stmt s = make(Stmt::Kind::Write, "", std::move(value));
  s.place = std::move(place);
  s.op = std::move(op);
  return s;
}

}  // namespace

void Generator::number(Context& c, Block& out) {
  std::vector<Visible> fit;
  for (const Visible& v : visible(c))
    if (v.variable && v.value->number()) fit.push_back(v);
  if (!fit.empty() && chance(0.5)) {
    const Visible v = of(fit);
    Stmt s = make(Stmt::Kind::Rebind, v.expr.text, binary(pick(2) ? "+" : "*", v.expr, integer(1 + pick(3))));
    s.op = "=";
    add(c, out, s);
    return;
  }
  Expr e = chance(0.7) ? integer(pick(6)) : literal_number(DType::F32);
  const auto with = arrays(c, [](const Visible& v) { return !v.value->a.shape.empty(); });
  if (!with.empty() && chance(0.3)) e = builtin("len", {of(with).expr});
  if (!c.captured && chance(0.15)) {
    const auto zero = arrays(
        c, [](const Visible& v) { return v.value->a.shape.empty() && v.value->a.dtype != DType::Bool; });
    if (!zero.empty()) e = builtin("item", {of(zero).expr});
  }
  add(c, out, make(chance(0.5) ? Stmt::Kind::Let : Stmt::Kind::Var, fresh("n"), e));
}

void Generator::declare_types() {
  const int count = pick(3);
  for (int k = 0; k < count; ++k) {
    RecordType t;
    t.name = fresh("R");
    const int fields = 1 + pick(3);
    for (int f = 0; f < fields; ++f) {
      t.fields.push_back(std::string(1, static_cast<char>('a' + (f * 7 + 3 * k) % 20)));
      DType d = any_dtype();
      t.dtypes.push_back(d == DType::Bool ? DType::F32 : d);
      t.shapes.push_back(any_shape(2));
    }
    program_.types.push_back(t);
  }
}

void Generator::composite(Context& c, Block& out) {
  const bool var = chance(0.7);
  const auto kind = var ? Stmt::Kind::Var : Stmt::Kind::Let;
  if (!program_.types.empty() && chance(0.5)) {
    const RecordType& t = of(program_.types);
    Expr e;
    e.kind = Expr::Kind::Record;
    e.text = t.name;
    e.names = t.fields;
    for (size_t k = 0; k < t.fields.size(); ++k)
      e.args.push_back(chance(0.5) ? leaf(c, t.dtypes[k], t.shapes[k])
                                   : array(c, t.dtypes[k], t.shapes[k], 1));
    add(c, out, make(kind, fresh("s"), e));
    return;
  }
  Expr e;
  e.kind = chance(0.7) ? Expr::Kind::List : Expr::Kind::Tuple;
  const DType t = any_dtype();
  const Dims d = any_shape(2);
  const int count = 1 + pick(3);
  for (int k = 0; k < count + (e.kind == Expr::Kind::Tuple); ++k)
    e.args.push_back(chance(0.6)
                         ? leaf(c, t, d)
                         : array(c, chance(0.7) ? t : any_dtype(), chance(0.7) ? d : any_shape(2), 1));
  if (e.kind == Expr::Kind::Tuple && chance(0.4)) e.args[0] = integer(pick(5));
  add(c, out, make(e.kind == Expr::Kind::List ? kind : Stmt::Kind::Let, fresh("l"), e));
}

void Generator::kernel_statement(Context& c, Block& out) {
  auto places = arrays(c, [](const Visible& v) {
    return v.place && v.value->a.shape.size() == 1 && v.value->a.dtype != DType::Bool &&
           v.value->a.dtype != DType::F16 && v.value->a.dtype != DType::BF16;
  });
  if (places.empty()) return write(c, out);
  const Visible v = of(places);
  const DType t = v.value->a.dtype;
  std::string k;
  for (const Kernel& x : program_.kernels)
    if (x.dtype == t && chance(0.5)) k = x.name;
  if (k.empty()) k = new_kernel(t);
  Expr e;
  e.kind = Expr::Kind::Call;
  e.text = k;
  e.launched = chance(0.5);
  e.is_mut = {1, 0, 0};
  e.args = {v.expr, chance(0.5) ? leaf(c, t, v.value->a.shape) : array(c, t, v.value->a.shape, 1),
            small_number(c, t)};
  if (chance(0.2)) {  // a number that a call gives, whose `mut` argument is read
                      // before it
    const Dims zero;
    const auto known = signatures_;  // drawing arguments may add to them
    for (const Signature& s : known)
      if (s.returns && s.dtype == t && s.shape.empty())
        if (const auto a = call_again(c, s)) e.args[2] = *a;
  }
  add(c, out, make(Stmt::Kind::Eval, "", e));
}

void Generator::print(Context& c, Block& out) {
  std::vector<Visible> fit;
  for (const Visible& v : visible(c))
    if (v.value->array() || v.value->number()) fit.push_back(v);
  if (fit.empty()) return;
  Stmt s = make(Stmt::Kind::Print, "", of(fit).expr);
  s.times = prints_++;
  add(c, out, s);
}

void Generator::file(Context& c, Block& out) {
  std::vector<Visible> fit;
  for (const Visible& v : visible(c))
    if (v.value->array() || v.value->kind == Value::Kind::Record) fit.push_back(v);
  if (fit.empty()) return;
  const Visible v = of(fit);
  Stmt s = make(Stmt::Kind::Save, "", v.expr);
  s.times = files_++;
  s.op = v.value->array() ? "npy" : "npz";
  if (!add(c, out, s)) return;
  Expr e;
  e.kind = Expr::Kind::Load;
  e.integer = s.times;
  e.text = s.op;
  const std::string m = fresh("m");
  if (!add(c, out, make(v.value->array() && chance(0.5) ? Stmt::Kind::Var : Stmt::Kind::Let, m, e))) return;
  // As indices, where the numbers allow it; of what is loaded nothing is known
  // before running.
  for (const Visible& x : arrays(c, [&](const Visible& x) {
         return is_integer(x.value->a.dtype) &&
                (x.expr.text == m || (!x.expr.args.empty() && x.expr.args[0].text == m));
       })) {
    Expr n;
    n.kind = Expr::Kind::Make;
    n.text = "arange";
    n.args = {integer(24)};
    Expr taken;
    taken.kind = Expr::Kind::Index;
    taken.args = {n};
    Part p;
    p.kind = Part::Kind::Array;
    p.at = {x.expr};
    taken.parts = {p};
    if (chance(0.6)) {
      Part rest;
      rest.kind = Part::Kind::Range;
      rest.from = 1;
      Expr later;
      later.kind = Expr::Kind::Index;
      later.args = {taken};
      later.parts = {rest};
      taken = later;
    }
    add(c, out, make(Stmt::Kind::Let, fresh("v"), taken));
  }
}

// Arguments are evaluated from left to right: what was read keeps its value
// when a call further right writes it.
void Generator::ordered(Context& c, Block& out) {
  auto places = arrays(c, [](const Visible& v) {
    return v.place && v.variable && v.value->a.shape.size() == 1 && v.value->a.dtype != DType::Bool &&
           is_integer(v.value->a.dtype);
  });
  if (places.empty()) {
    const std::string n = fresh("v");
    if (!add(c, out, make(Stmt::Kind::Var, n, constant(pick(2) ? DType::I64 : DType::I32, {of(extents_)}))))
      return;
    return ordered(c, out);
  }
  const Visible x = of(places);
  const DType t = x.value->a.dtype;
  const Dims d = x.value->a.shape;
  Function f;
  f.name = fresh("h");
  f.params.resize(1);
  f.params[0].name = "x";
  f.params[0].is_mut = true;
  f.body = {written(name_of("x"), chance(0.5) ? ".+=" : ".=", integer(pick(9)))};
  f.result = builtin("max", {name_of("x")});
  program_.functions.push_back(f);
  Expr h;
  h.kind = Expr::Kind::Call;
  h.text = f.name;
  h.args = {x.expr};
  h.is_mut = {1};
  if (chance(0.4)) {
    add(c, out,
        make(Stmt::Kind::Let, fresh("v"), chance(0.5) ? binary("-", x.expr, h) : binary("-", h, x.expr)));
    return;
  }
  const std::string z = fresh("v");
  if (!add(c, out, make(Stmt::Kind::Var, z, constant(t, d)))) return;
  Expr k;
  k.kind = Expr::Kind::Call;
  k.text = new_kernel(t);
  k.launched = chance(0.7);
  k.is_mut = {1, 0, 0};
  k.args = {name_of(z), chance(0.5) ? x.expr : array(c, t, d, 1), h};
  add(c, out, make(Stmt::Kind::Eval, "", k));
}

// Many readings through views in one expression.
void Generator::gathers(Context& c, Block& out) {
  auto fit = arrays(c, [](const Visible& v) {
    return v.value->a.shape.size() == 1 && v.value->a.shape[0] > 1 && v.value->a.dtype != DType::Bool;
  });
  if (fit.empty()) return bind(c, out);
  const Visible v = of(fit);
  Expr sum;
  const int count = of(std::vector<int>{3, 8, 8, 26});
  for (int k = 0; k < count; ++k) {
    Part back;
    back.kind = Part::Kind::Range;
    back.step = -1;
    Expr turned;
    turned.kind = Expr::Kind::Index;
    turned.args = {builtin(
        "take",
        {v.expr, binary("%", binary("+", indices(c, v.value->a.shape, v.value->a.shape[0]), integer(k)),
                        integer(v.value->a.shape[0]))})};
    turned.parts = {back};
    sum = k ? binary(pick(2) ? "+" : "-", sum, turned) : turned;
  }
  add(c, out, make(Stmt::Kind::Let, fresh("v"), sum));
}

// Arrays without elements, and what is computed from them.
void Generator::nothing(Context& c, Block& out) {
  DType t = any_dtype();
  if (t == DType::Bool) t = DType::I32;
  const int64_t n = 1 + pick(5);
  auto zeros = [&](Dims d) {
    Expr e;
    e.kind = Expr::Kind::Make;
    e.text = "zeros";
    e.dtype = t;
    e.shape = std::move(d);
    return e;
  };
  // By a name half of the time: a constant is folded, what has a name is not.
  auto named = [&](const Expr& e) {
    const std::string v = fresh("v");
    return chance(0.6) && add(c, out, make(Stmt::Kind::Var, v, e)) ? name_of(v) : e;
  };
  Expr e;
  switch (pick(4)) {
    case 0: e = builtin("concat", {named(zeros({0})), named(zeros({0}))}); break;
    case 1: {
      Expr r = builtin("reshape", {named(zeros({n, 0, 3}))});
      r.shape = {n, 0};
      e = builtin(is_float(t) || t == DType::I64 || t == DType::U64 ? "sum" : "count_nonzero", {r});
      if (e.text == "sum") e.axis = 1;
      break;
    }
    case 2: {
      Expr r = builtin("concat", {named(zeros({n, 0})), named(zeros({n, 2}))});
      r.axis = 1;
      e = r;
      break;
    }
    default: e = binary("@", named(zeros({n, 0})), named(zeros({0, 2}))); break;
  }
  add(c, out, make(Stmt::Kind::Let, fresh("v"), e));
}

}  // namespace gk::property
