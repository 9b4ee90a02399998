// Statements of generated programs.
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

int64_t Generator::turns() { return of(std::vector<int64_t>{0, 1, 2, 3, 4, 4, 5, 5, 8, 70}); }

// Tried on copies of the names and of the model; kept where it is valid.
bool Generator::add(Context& c, Block& out, Stmt s) {
  try {
    Model m = c.model;
    Environment env = apart(c.env);
    m.run(s, env);
    c.model = std::move(m);
    c.env = std::move(env);
    out.push_back(std::move(s));
    return true;
  } catch (const Invalid&) {
    return false;
  } catch (const std::out_of_range&) {
    return false;
  }
}

void Generator::body(Context& c, Block& out, int count) {
  for (int k = 0; k < count; ++k) statement(c, out);
}

void Generator::statement(Context& c, Block& out) {
  const bool top = c.depth == 0;
  switch (pick(top ? 27 : 14)) {
    case 0:
    case 1: return bind(c, out);
    case 2:
    case 3: return alias(c, out);
    case 4:
    case 5: return write(c, out);
    case 6:
    case 7: return write_part(c, out);
    case 8: return rebind(c, out);
    case 9: return c.depth < 3 ? loop(c, out) : write(c, out);
    case 10: return c.depth < 3 ? branch(c, out) : write_part(c, out);
    case 11: return call_statement(c, out);
    case 12: return c.depth < 2 && chance(0.5) ? device_loop(c, out) : number(c, out);
    case 13: return chance(0.5) ? kernel_statement(c, out) : each(c, out);
    case 14:
    case 15: return composite(c, out);
    case 16:
    case 17: return inline_block(c, out);
    case 18:
    case 19: return capture(c, out);
    case 20: return graph(c, out);
    case 21: return print(c, out);
    case 22: return file(c, out);
    case 23:
    case 24: return generic(c, out);
    case 25: return ordered(c, out);
    default: return chance(0.2) ? gathers(c, out) : loop(c, out);
  }
}

void Generator::bind(Context& c, Block& out) {
  const DType t = any_dtype();
  const Dims d = any_shape();
  add(c, out, make(chance(0.5) ? Stmt::Kind::Let : Stmt::Kind::Var, fresh("v"), array(c, t, d, 3)));
}

// Another name of a value that has a name, and a write through one of the two.
void Generator::alias(Context& c, Block& out) {
  std::vector<Visible> fit;
  for (const Visible& v : visible(c))
    if (v.value->array() || v.value->kind == Value::Kind::Record || v.value->kind == Value::Kind::List)
      fit.push_back(v);
  if (fit.empty()) return bind(c, out);
  const Visible v = of(fit);
  const std::string n = fresh("v");
  Expr value = v.expr;
  if (v.value->array() && chance(0.15)) {
    value.kind = Expr::Kind::Index;
    value = Expr{};
    value.kind = Expr::Kind::Index;
    value.args = {v.expr};
    Part p;
    p.kind = v.value->a.shape.empty() ? Part::Kind::New : Part::Kind::Range;
    value.parts = {p};
  }
  const bool var = chance(0.6);
  if (!add(c, out, make(var ? Stmt::Kind::Var : Stmt::Kind::Let, n, value))) return;
  if (var && chance(0.6)) write_part(c, out);
}

void Generator::write(Context& c, Block& out) {
  auto fit = arrays(c, [](const Visible& v) { return v.place; });
  std::vector<Visible> records;
  for (const Visible& v : visible(c))
    if (v.place && v.value->kind == Value::Kind::Record && !v.value->text.empty()) records.push_back(v);
  if (!records.empty() && chance(0.15)) {
    const Visible r = of(records);
    std::vector<Expr> same;
    for (const Visible& v : visible(c))
      if (v.value->kind == Value::Kind::Record && v.value->text == r.value->text) same.push_back(v.expr);
    add(c, out,
        written(r.expr, ".=",
                binary(of(std::vector<std::string>{"+", "-", "*"}), r.expr,
                       chance(0.5) ? integer(2) : of(same))));
    return;
  }
  if (fit.empty()) return bind(c, out);
  const Visible v = of(fit);
  const DType t = v.value->a.dtype;
  const std::string op =
      t == DType::Bool || chance(0.6) ? ".=" : of(std::vector<std::string>{".+=", ".-=", ".*="});
  Expr value = chance(0.15) && t != DType::Bool ? small_number(c, t)
               : chance(0.2)                    ? leaf(c, t, v.value->a.shape)
                             : array(c, t, chance(0.2) ? narrower(v.value->a.shape) : v.value->a.shape, 2);
  add(c, out, written(v.expr, op, value));
}

void Generator::write_part(Context& c, Block& out) {
  auto fit = arrays(
      c, [](const Visible& v) { return v.place && !v.value->a.shape.empty() && v.value->a.shape[0] > 0; });
  if (fit.empty()) return write(c, out);
  const Visible v = of(fit);
  const DType t = v.value->a.dtype;
  const Dims d = v.value->a.shape;
  Expr place;
  place.kind = Expr::Kind::Index;
  place.args = {v.expr};
  const std::string op =
      t == DType::Bool || chance(0.6) ? ".=" : of(std::vector<std::string>{".+=", ".-=", ".*="});
  if (chance(0.3)) {  // a mask
    Part p;
    p.kind = Part::Kind::Array;
    p.at = {mask(c, d, 1)};
    place.parts = {p};
    Expr value = t == DType::Bool ? Expr{} : small_number(c, t);
    if (t == DType::Bool) {
      value.kind = Expr::Kind::Bool;
      value.integer = pick(2);
    }
    add(c, out, written(place, op, value));
    return;
  }
  const int64_t n = d[0];
  Part p;
  Dims left = d;
  if (chance(0.35)) {
    p.kind = Part::Kind::At;
    p.at = {chance(0.3) ? integer(-1 - pick(static_cast<int>(n))) : host_int(c, n)};
    left.erase(left.begin());
  } else {
    p.kind = Part::Kind::Range;
    const int form = pick(4);
    if (form == 0) p.from = pick(static_cast<int>(n));
    if (form == 1) p.to = pick(static_cast<int>(n)) + 1;
    if (form == 2) p.step = of(std::vector<int64_t>{-1, 2, -2, 3});
    if (form == 3) p.from = -1 - pick(static_cast<int>(n));
    left[0] = choose(d, {p}, {}).shape[0];
  }
  place.parts = {p};
  Expr value = chance(0.3) && t != DType::Bool ? small_number(c, t) : array(c, t, left, 2);
  if (chance(0.35) && p.kind == Part::Kind::Range) {  // of the array itself, shifted or backwards
    Expr source;
    source.kind = Expr::Kind::Index;
    source.args = {v.expr};
    Part q = p;
    if (p.step)
      q.step = p.step;
    else if (p.from && *p.from > 0)
      q = Part{Part::Kind::Range, {}, n - *p.from, {}, {}};
    else
      q = Part{Part::Kind::Range, n - left[0], {}, {}, {}};
    source.parts = {q};
    value = source;
  }
  add(c, out, written(place, op, value));
}

void Generator::rebind(Context& c, Block& out) {
  auto fit = arrays(c, [](const Visible& v) { return v.variable && v.expr.kind == Expr::Kind::Name; });
  if (fit.empty()) return write(c, out);
  const Visible v = of(fit);
  Stmt s = make(Stmt::Kind::Rebind, v.expr.text, {});
  const DType t = v.value->a.dtype;
  s.op = t != DType::Bool && chance(0.25) ? of(std::vector<std::string>{"+=", "-=", "*="}) : "=";
  s.value = s.op == "=" ? array(c, t, v.value->a.shape, 2) : small_number(c, t);
  if (s.op == "=" && chance(0.3)) s.value = leaf(c, t, v.value->a.shape);
  add(c, out, s);
}

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

Context Generator::inside(const Context& c, bool capture) {
  Context in = c;
  in.env = apart(c.env);
  in.depth = c.depth + 1;
  if (capture) {
    in.captured = true;
    in.env.sealed = in.env.scopes.size();
    ++in.model.recording;
  }
  in.env.scopes.emplace_back();
  return in;
}

// The names that a turn finds changed by the one before are tried by running the whole loop.
void Generator::loop(Context& c, Block& out) {
  Stmt s = make(Stmt::Kind::For, fresh("j"), integer(turns()));
  Context in = inside(c, false);
  const int64_t n = s.value.integer;
  in.env.scopes.back()[s.name] = {std::make_shared<Slot>(Slot{of_int(0)}), {}, false, false};
  // Names that share storage from before the loop.
  if (chance(0.5)) alias(c, out);
  in.env = inside(c, false).env;
  in.model = c.model;
  in.env.scopes.back()[s.name] = {std::make_shared<Slot>(Slot{of_int(0)}), {}, false, false};
  const int count = 1 + pick(2);
  for (int k = 0; k < count; ++k) switch (pick(5)) {
      case 0:
      case 1: write(in, s.body); break;
      case 2: write_part(in, s.body); break;
      case 3: rebind(in, s.body); break;
      default: statement(in, s.body); break;
    }
  if (s.body.empty()) return;
  if (chance(0.1))
    s.body.insert(s.body.begin() + pick(static_cast<int>(s.body.size())),
                  make(Stmt::Kind::Break, "", binary("==", name_of(s.name), integer(pick(6)))));
  if (n < 8 && chance(0.3)) {  // turns that a name says
    std::vector<Expr> fit;
    for (const Visible& v : visible(c))
      if (v.value->kind == Value::Kind::Int && v.value->n >= 0 && v.value->n < 9) fit.push_back(v.expr);
    if (!fit.empty()) s.value = of(fit);
  }
  if (!add(c, out, s)) {
    s.value = integer(1 + pick(2));
    add(c, out, s);
  }
}

void Generator::each(Context& c, Block& out) {
  std::vector<Visible> fit;
  for (const Visible& v : visible(c)) {
    const Value& x = *v.value;
    if (x.kind == Value::Kind::List ||
        (x.array() && !x.a.shape.empty() && x.a.shape[0] > 0 && x.a.shape[0] <= 8))
      fit.push_back(v);
  }
  if (fit.empty()) return loop(c, out);
  const Visible v = of(fit);
  Stmt s = make(Stmt::Kind::Each, fresh("e"), v.expr);
  Context in = inside(c, false);
  Value first;
  if (v.value->kind == Value::Kind::List) {
    first = v.value->parts[0];
  } else {
    Part p;
    p.kind = Part::Kind::At;
    p.at = {integer(0)};
    Expr e;
    e.kind = Expr::Kind::Index;
    e.args = {v.expr};
    e.parts = {p};
    first = in.model.evaluate(e, in.env);
  }
  in.env.scopes.back()[s.name] = {std::make_shared<Slot>(Slot{first}), {}, false, false};
  body(in, s.body, 1 + pick(2));
  if (!s.body.empty()) add(c, out, s);
}

// A loop that the device counts.
void Generator::device_loop(Context& c, Block& out) {
  const std::string k = fresh("k");
  Expr zero;
  zero.kind = Expr::Kind::Make;
  zero.text = "zeros";
  zero.dtype = DType::I64;
  if (!add(c, out, make(Stmt::Kind::Var, k, zero))) return;
  Stmt s = make(Stmt::Kind::While, "", binary("<", name_of(k), integer(pick(6))));
  Context in = inside(c, false);
  for (int n = 1 + pick(2); n > 0; --n)
    chance(0.5) ? write(in, s.body) : chance(0.5) ? write_part(in, s.body) : rebind(in, s.body);
  s.body.push_back(written(name_of(k), ".+=", integer(1)));
  add(c, out, s);
}

void Generator::branch(Context& c, Block& out) {
  Stmt s = make(Stmt::Kind::If, "", condition(c, chance(0.5)));
  Context yes = inside(c, false), no = inside(c, false);
  body(yes, s.body, 1 + pick(2));
  if (chance(0.5)) body(no, s.other, 1);
  if (!s.body.empty()) add(c, out, s);
}

void Generator::call_statement(Context& c, Block& out) {
  std::optional<Expr> e;
  std::vector<Signature> fit;
  for (const Signature& s : signatures_)
    if (!s.returns) fit.push_back(s);
  if (!fit.empty() && chance(0.6)) {
    e = call_again(c, of(fit));
  } else {
    auto places = arrays(c, [](const Visible& v) { return v.place; });
    if (places.empty()) return bind(c, out);
    const Visible v = of(places);
    const DType t = v.value->a.dtype;
    const Dims d = v.value->a.shape;
    if (const auto s = new_function(c, chance(0.5), t, d)) {
      e = call_again(c, *s);
      if (e && s->returns) {
        add(c, out, make(chance(0.5) ? Stmt::Kind::Let : Stmt::Kind::Var, fresh("v"), *e));
        return;
      }
    }
  }
  if (e) add(c, out, make(Stmt::Kind::Eval, "", *e));
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
  if (chance(0.2)) {  // a number that a call gives, whose `mut` argument is read before it
    const Dims zero;
    for (const Signature& s : signatures_)
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
  // As indices, where the numbers allow it; of what is loaded nothing is known before running.
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

// Arguments are evaluated from left to right: what was read keeps its value when a call further right writes
// it.
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
  const int count = of(std::vector<int>{3, 8, 26});
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

}  // namespace gk::property
