// Functions, kernels and calls of generated programs.
#include "tests/property/generator.h"

namespace gk::property {

namespace {

using Wanted = Signature::Wanted;

Expr called(std::string name, std::vector<Expr> args) {
  Expr e;
  e.kind = Expr::Kind::Call;
  e.text = std::move(name);
  e.args = std::move(args);
  return e;
}

Expr lambda(std::vector<std::string> names, Expr body) {
  Expr e;
  e.kind = Expr::Kind::Lambda;
  e.names = std::move(names);
  e.args = {std::move(body)};
  return e;
}

}  // namespace

// A call of a function that is there already, with other arguments of the same
// kinds.
std::optional<Expr> Generator::call_again(Context& c, const Signature& s) {
  std::vector<Expr> args;
  std::vector<char> is_mut;
  std::set<std::string> places;
  for (const Wanted& w : s.params) {
    is_mut.push_back(w.is_mut);
    if (w.is_mut) {
      std::vector<Visible> fit;
      for (const Visible& v : visible(c)) {
        if (!v.place) continue;
        std::set<std::string> names;
        names_in(v.expr, names);
        if (places.count(*names.begin())) continue;
        if (w.kind == Wanted::Kind::Record
                ? v.value->kind == Value::Kind::Record && v.value->text == w.record
                : v.value->array() && v.value->a.dtype == w.dtype && v.value->a.shape == w.shape)
          fit.push_back(v);
      }
      if (fit.empty()) return {};
      args.push_back(of(fit).expr);
      names_in(args.back(), places);
      continue;
    }
    switch (w.kind) {
      case Wanted::Kind::Array:
        args.push_back(chance(0.5) ? leaf(c, w.dtype, w.shape) : array(c, w.dtype, w.shape, 1));
        break;
      case Wanted::Kind::Int: args.push_back(host_int(c, 7)); break;
      case Wanted::Kind::Float:
        args.push_back(chance(0.8) ? literal_number(DType::F32) : small_number(c, DType::F32));
        break;
      case Wanted::Kind::Index: args.push_back(indices(c, w.shape, w.below)); break;
      case Wanted::Kind::Record: {
        std::vector<Expr> fit;
        for (const Visible& v : visible(c))
          if (v.value->kind == Value::Kind::Record && v.value->text == w.record) fit.push_back(v.expr);
        if (fit.empty()) return {};
        args.push_back(chance(0.3) ? binary("+", of(fit), of(fit)) : of(fit));
        break;
      }
    }
  }
  Expr e = called(s.name, args);
  e.is_mut = is_mut;
  if (chance(0.15) && e.args.size() > 1 && !e.is_mut.back())
    for (const Function& f : program_.functions)
      if (f.name == s.name) {  // the last one by its name
        e.names.assign(e.args.size(), "");
        e.names.back() = f.params[e.args.size() - 1].name;
      }
  return e;
}

std::optional<Signature> Generator::new_function(Context& c, bool returns, DType t, const Dims& d) {
  if (functions_left_ <= 0 || c.depth > 3) return {};
  --functions_left_;
  Signature s;
  s.name = fresh("fn");
  s.returns = returns;
  s.dtype = t;
  s.shape = d;
  Function f;
  f.name = s.name;
  f.captured = chance(0.4);
  // Parameters with sample values, among which the body is drawn.
  Context in{{}, c.model, c.captured || f.captured, c.depth + 1};
  in.env.scopes.resize(1);
  in.model.recording += f.captured;
  const int count = 1 + pick(3);
  for (int k = 0; k < count; ++k) {
    Wanted w;
    Value v;
    const int kind = k == 0 && !returns ? 0 : pick(10);
    std::vector<std::shared_ptr<const Value>> records;
    for (const Visible& x : visible(c))
      if (x.value->kind == Value::Kind::Record && !x.value->text.empty()) records.push_back(x.value);
    if (kind < 6) {
      w.dtype = k == 0 || chance(0.5) ? t : any_dtype();
      w.shape = k == 0 || chance(0.5) ? d : any_shape(2);
      v = c.model.evaluate(constant(w.dtype, w.shape), c.env);
    } else if (kind == 6 && !records.empty()) {
      v = *of(records);
      w.kind = Wanted::Kind::Record;
      w.record = v.text;
    } else if (kind == 7) {
      w.kind = Wanted::Kind::Index;
      w.shape = {of(extents_)};
      if (chance(0.5)) w.shape.push_back(of(extents_));
      if (elements(w.shape) > 240) w.shape.pop_back();
      w.below = std::max<int64_t>(1, d.empty() ? 3 : d[0]);
      Context nothing{{}, c.model, true, 9};
      nothing.env.scopes.resize(1);
      v = c.model.evaluate(indices(nothing, w.shape, w.below), c.env);
    } else if (kind == 8) {
      w.kind = Wanted::Kind::Float;
      v = of_float(0.5);
    } else {
      w.kind = Wanted::Kind::Int;
      v = of_int(pick(5));
    }
    w.is_mut = (k == 0 && !returns) ||
               ((w.kind == Wanted::Kind::Array || w.kind == Wanted::Kind::Record) && chance(0.2));
    v.literal = false;
    if (v.array()) v.parts.clear();
    Param p;
    p.name = fresh("p");
    p.is_mut = w.is_mut;
    if (w.kind == Wanted::Kind::Array && chance(0.5)) {
      p.note.kind = Note::Kind::Array;
      p.note.dtype = w.dtype;
      for (int64_t n : w.shape)
        p.note.extents.push_back(chance(0.5)   ? "N" + std::to_string(n)
                                 : chance(0.3) ? "_"
                                               : std::to_string(n));
    }
    if (w.kind == Wanted::Kind::Record && chance(0.5)) {
      p.note.kind = Note::Kind::Named;
      p.note.name = w.record;
    }
    if (p.note.kind == Note::Kind::Array)
      for (size_t a = 0; a < w.shape.size(); ++a)
        if (p.note.extents[a][0] == 'N')
          in.env.scopes[0][p.note.extents[a]] = {
              std::make_shared<Slot>(Slot{of_int(w.shape[a])}), {}, false, false};
    if (w.kind == Wanted::Kind::Float && !w.is_mut && chance(0.3)) p.otherwise = property::number(0.5);
    in.env.scopes[0][p.name] = {std::make_shared<Slot>(Slot{v}), {}, w.is_mut, false};
    s.params.push_back(w);
    f.params.push_back(p);
  }
  for (size_t k = f.params.size(), all = 1; k-- > 0;) {  // defaults stand at the end
    all = all && f.params[k].otherwise.has_value();
    if (!all) f.params[k].otherwise.reset();
  }
  in.env.scopes.emplace_back();
  // A name of the argument's value, a part of it written, and both used: what
  // is shared shows.
  if (chance(0.45)) alias(in, f.body);
  body(in, f.body, pick(returns ? 3 : 2) + (returns ? 0 : 1));
  if (!returns && f.body.empty()) write(in, f.body);
  if (returns) f.result = array(in, t, d, 2);
  f.block = !f.body.empty() || chance(0.3);
  if (!returns && f.body.empty()) return {};
  program_.functions.push_back(f);
  signatures_.push_back(s);
  return s;
}

std::optional<Expr> Generator::call(Context& c, DType t, const Dims& d) {
  std::vector<Signature> fit;
  for (const Signature& s : signatures_)
    if (s.returns && s.dtype == t && s.shape == d) fit.push_back(s);
  if (!fit.empty() && chance(0.7)) return call_again(c, of(fit));
  if (chance(0.25) && t != DType::Bool) {  // a lambda, given to a function that applies it
    const std::string name = "apply";
    bool there = false;
    for (const Function& f : program_.functions) there = there || f.name == name;
    if (!there) {
      Function f;
      f.name = name;
      f.block = false;
      f.params.resize(2);
      f.params[0].name = "f";
      f.params[1].name = "x";
      f.result = called("f", {name_of("x")});
      program_.functions.insert(program_.functions.begin(), f);
    }
    Context in = c;
    in.env = apart(c.env);
    in.depth = c.depth + 1;
    in.env.scopes.emplace_back();
    const std::string x = fresh("x");
    in.env.scopes.back()[x] = {
        std::make_shared<Slot>(Slot{c.model.evaluate(constant(t, d), c.env)}), {}, false, false};
    return called(name, {lambda({x}, array(in, t, d, 2)), leaf(c, t, d)});
  }
  if (const auto s = new_function(c, true, t, d)) return call_again(c, *s);
  return {};
}

std::string Generator::new_kernel(DType t) {
  Kernel k;
  k.name = fresh("k");
  k.dtype = t;
  k.untyped = chance(0.4);
  k.form = of(std::vector<Kernel::Form>{Kernel::Form::Map, Kernel::Form::Map, Kernel::Form::Copy,
                                        Kernel::Form::Prefix, Kernel::Form::Steps, Kernel::Form::Choice});
  const std::vector<std::string> ops = {"+", "-", "*"};
  auto v = [&] {
    return name_of(of(std::vector<std::string>{"v", "v", "a", k.form == Kernel::Form::Steps ? "s" : "w"}));
  };
  k.value = binary(of(ops), binary(of(ops), v(), chance(0.3) ? literal_number(t) : v()), name_of("v"));
  k.other = binary(of(ops), v(), binary(of(ops), name_of("a"), name_of("v")));
  if (chance(0.4)) k.value = builtin(pick(2) ? "maximum" : "minimum", {k.value, v()});
  program_.kernels.push_back(k);
  return k.name;
}

// A function that suits arguments of every kind, called several times with
// arguments that differ in one thing: order, dtype, nesting, a number's kind,
// what a lambda closes over. Nothing that a call leaves behind may answer the
// next.
void Generator::generic(Context& c, Block& out) {
  if (chance(0.12)) return indexed(c, out);
  Function f;
  f.name = fresh("g");
  f.captured = chance(0.7);
  f.block = chance(0.5);
  const int form = pick(6);
  auto param = [&](const char* n) {
    Param p;
    p.name = n;
    f.params.push_back(p);
  };
  param("a");
  if (form != 1) param("b");
  const std::string op = of(std::vector<std::string>{"-", "-", "*", "+"}),
                    op2 = of(std::vector<std::string>{"-", "+", "*"});
  Expr a = name_of("a"), b = name_of("b");
  switch (form) {
    case 0: f.result = binary(op, a, b); break;
    case 1: f.result = binary(op, element(a, 0), element(a, 1)); break;
    case 2: f.result = binary(op, called("a", {b}), b); break;
    case 3: {  // a number that steers
      Stmt v;
      v.kind = Stmt::Kind::Var;
      v.name = "y";
      v.value = a;
      Stmt turn;
      turn.kind = Stmt::Kind::Rebind;
      turn.name = "y";
      turn.op = "=";
      turn.value = binary(op, name_of("y"), chance(0.5) ? a : integer(1));
      Stmt l;
      l.kind = chance(0.5) ? Stmt::Kind::For : Stmt::Kind::If;
      l.name = l.kind == Stmt::Kind::For ? "i" : "";
      l.value = l.kind == Stmt::Kind::For ? b : binary(">", b, integer(2));
      l.body = {turn};
      f.body = {v, l};
      f.result = name_of("y");
      break;
    }
    case 4: f.result = binary(op, binary("*", a, b), binary(op2, b, integer(1))); break;
    default: f.result = binary(op, a, builtin("where", {binary(">", a, integer(1)), a, b})); break;
  }
  if (chance(0.3) && form != 3) {  // what is not used, and what is named on the way
    Stmt l;
    l.kind = Stmt::Kind::Let;
    l.name = "dead";
    l.value = form == 1   ? binary("+", element(a, 0), element(a, 1))
              : form == 2 ? binary("*", b, integer(2))
                          : binary("*", a, integer(2));
    f.body.push_back(l);
  }
  f.block = f.block || !f.body.empty();
  program_.functions.push_back(f);
  const DType t = any_dtype() == DType::Bool ? DType::I64 : any_dtype();
  if (t == DType::Bool) return;
  const Dims d = any_shape(2);
  const int calls = 2 + pick(3);
  for (int k = 0; k < calls; ++k) {
    DType u = chance(0.3) ? any_dtype() : t;
    if (u == DType::Bool) u = t;
    Expr x = chance(0.6) ? leaf(c, u, d) : array(c, u, d, 1),
         n = literal_number(chance(0.5) ? DType::F32 : t);

    if (chance(0.5)) n = integer(1 + pick(5));
    std::vector<Expr> args;
    switch (form) {
      case 1: {
        Expr pair;
        pair.kind = Expr::Kind::Tuple;
        pair.args = {x, n};
        if (chance(0.5)) std::swap(pair.args[0], pair.args[1]);
        if (chance(0.3)) pair.args = {x, leaf(c, u, d)};
        args = {pair};
        break;
      }
      case 2:
        args = {lambda({"x"},
                       binary(of(std::vector<std::string>{"+", "-", "*"}), name_of("x"), small_number(c, t))),
                x};
        break;
      case 3: args = {x, integer(pick(5))}; break;
      default:
        args = {x, n};
        if (chance(0.5)) std::swap(args[0], args[1]);
        if (chance(0.2)) args = {leaf(c, u, d), x};
        break;
    }
    Stmt s;
    s.kind = chance(0.5) ? Stmt::Kind::Let : Stmt::Kind::Var;
    s.name = fresh("r");
    s.value = called(f.name, args);
    add(c, out, s);
  }
  if (form != 2 || chance(0.4)) return;
  // One function value that closes over another number in each turn.
  Stmt var;
  var.kind = Stmt::Kind::Var;
  var.name = fresh("r");
  var.value = constant(t, d);
  if (!add(c, out, var)) return;
  Stmt turn;
  turn.kind = Stmt::Kind::Write;
  turn.place = name_of(var.name);
  turn.op = ".=";
  const std::string j = fresh("j");
  turn.value = called(
      f.name, {lambda({"x"}, binary(pick(2) ? "+" : "*", name_of("x"), name_of(j))), name_of(var.name)});
  Stmt loop;
  loop.kind = Stmt::Kind::For;
  loop.name = j;
  loop.value = integer(2 + pick(3));
  loop.body = {turn};
  add(c, out, loop);
}

// A function of an array and of indices of which it says nothing: a number, one row or a table of them.
void Generator::indexed(Context& c, Block& out) {
  const DType t = of(std::vector<DType>{DType::I64, DType::F32, DType::F64, DType::I32});
  const int64_t n = 2 + pick(5);
  Function f;
  f.name = fresh("g");
  f.captured = chance(0.3);
  f.block = chance(0.3);
  f.params.resize(2);
  f.params[0].name = "x";
  f.params[1].name = "i";
  if (chance(0.7)) {
    f.params[0].note.kind = Note::Kind::Array;
    f.params[0].note.dtype = t;
    f.params[0].note.extents = {"n"};
  }
  Expr taken;
  taken.kind = Expr::Kind::Index;
  taken.args = {name_of("x")};
  Part p;
  p.kind = Part::Kind::Array;
  p.at = {name_of("i")};
  taken.parts = {p};
  const int form = pick(4);
  Expr r = taken;
  if (form == 0 || form == 1) {
    r = builtin(is_float(t) || pick(2) ? "max" : "sum", {taken});
    r.axis = form == 0 ? 1 : -1;
  } else if (form == 2) {
    Part rest;
    rest.kind = Part::Kind::Range;
    rest.from = 1;
    r.args = {taken};
    r.parts = {rest};
  } else {
    r = binary("-", taken, builtin("max", {name_of("x")}));
  }
  f.result = r;
  program_.functions.push_back(f);
  const int calls = 1 + pick(3);
  for (int k = 0; k < calls; ++k) {
    const int64_t rows = 1 + pick(3), columns = 1 + pick(4);
    const Dims d = form == 0 || chance(0.6) ? Dims{rows, columns} : Dims{columns};
    Stmt s;
    s.kind = Stmt::Kind::Let;
    s.name = fresh("r");
    s.value = called(f.name, {leaf(c, t, {n}), indices(c, d, n)});
    add(c, out, s);
  }
}

}  // namespace gk::property
