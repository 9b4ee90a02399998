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

int64_t Generator::turns() { return of(std::vector<int64_t>{0, 1, 2, 3, 4, 4, 5, 5, 8, 70, 71}); }

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
  switch (pick(top ? 28 : 14)) {
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
    case 26: return nothing(c, out);
    default: return chance(0.5) ? gathers(c, out) : loop(c, out);
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

// The names that a turn finds changed by the one before are tried by running
// the whole loop.
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

}  // namespace gk::property
