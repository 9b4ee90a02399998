#include "tests/property/model.h"

#include <cmath>

namespace gk::property {

namespace {

const Function* function_of(const Program& p, const std::string& name) {
  for (const Function& f : p.functions)
    if (f.name == name) return &f;
  return nullptr;
}

const Kernel* kernel_of(const Program& p, const std::string& name) {
  for (const Kernel& k : p.kernels)
    if (k.name == name) return &k;
  return nullptr;
}

using SlotMap = std::map<const Slot*, std::shared_ptr<Slot>>;

Environment apart(const Environment& e, SlotMap& seen);

void part_graphs(Value& v, SlotMap& seen) {
  if (v.graph) {
    auto g = std::make_shared<GraphData>();
    for (const auto& n : v.graph->nodes) g->nodes.push_back({n.name, n.body, apart(n.around, seen)});
    v.graph = g;
  }
  if (v.around) v.around = std::make_shared<Environment>(apart(*v.around, seen));
}

Environment apart(const Environment& e, SlotMap& seen) {
  Environment r = e;
  for (auto& scope : r.scopes)
    for (auto& [name, b] : scope) {
      auto& slot = seen[b.slot.get()];
      if (!slot) {
        slot = std::make_shared<Slot>(*b.slot);
        part_graphs(slot->value, seen);
      }
      b.slot = slot;
    }
  return r;
}

// Array literals of numbers alone take the dtype that they are given to.
Value adopted(const Value& v, DType t) { return v.literal ? of_array(as_array(v, t)) : v; }

}  // namespace

Environment apart(const Environment& e) {
  SlotMap seen;
  return apart(e, seen);
}

Value& value_of(const Binding& b) {
  Value* v = &b.slot->value;
  for (size_t k : b.path) v = &v->parts.at(k);
  return *v;
}

Binding* Model::find(Environment& env, const std::string& name) {
  for (size_t k = env.scopes.size(); k-- > 0;)
    if (auto it = env.scopes[k].find(name); it != env.scopes[k].end()) return &it->second;
  return nullptr;
}

void Model::bind(Environment& env, const std::string& name, Value v, bool variable) {
  env.scopes.back()[name] = {std::make_shared<Slot>(Slot{std::move(v)}), {}, variable, variable};
}

void Model::spend(const Value& v) {
  budget -= 4 + static_cast<int64_t>(v.a.cells.size());
  if (budget < 0) throw Invalid("too much work");
}

bool Model::decide(const Value& v) {
  if (v.kind == Value::Kind::Bool) return v.n != 0;
  if (!v.array() || !v.a.shape.empty() || v.a.dtype != DType::Bool) throw Invalid("no condition");
  return v.a.cells[0].i != 0;
}

Value Model::evaluate(const Expr& e, Environment& env) {
  using K = Expr::Kind;
  auto args = [&] {
    std::vector<Value> r;
    for (const Expr& a : e.args) r.push_back(evaluate(a, env));
    return r;
  };
  Value r;
  switch (e.kind) {
    case K::Int: return of_int(e.integer);
    case K::Float: return of_float(e.number);
    case K::Bool: return of_bool(e.integer != 0);
    case K::Name:
      if (const Binding* b = find(env, e.text)) {
        r = value_of(*b);
        break;
      }
      r.kind = Value::Kind::Function;
      r.text = e.text;
      return r;
    case K::Unary: r = apply_unary(e.text, evaluate(e.args[0], env)); break;
    case K::Binary: {
      auto v = args();
      r = e.text == "@" ? apply_builtin(property::builtin("matmul", {}), v)
                        : apply_binary(e.text, v[0], v[1]);
      break;
    }
    case K::Builtin:
      if (e.text == "item" && recording) throw Invalid("item in a capture");
      r = apply_builtin(e, args());
      break;
    case K::Call: r = call(e, env); break;
    case K::Cast: {
      const Value v = adopted(evaluate(e.args[0], env), e.dtype);
      if (v.kind == Value::Kind::Float && !is_floating(e.dtype)) throw Invalid("a float is not truncated");
      if (v.kind != Value::Kind::Int && v.kind != Value::Kind::Float && !v.array()) throw Invalid("no array");
      r = of_array(as_array(v, e.dtype));
      break;
    }
    case K::Literal: {
      const auto v = args();
      bool ints = true, numbers = true;
      for (const Value& x : v) {
        ints = ints && x.kind == Value::Kind::Int;
        numbers = numbers && x.number();
      }
      if (!numbers || elements(e.shape) != static_cast<int64_t>(v.size()))
        throw Invalid("no literal of numbers");
      r.kind = Value::Kind::Array;
      r.parts = v;
      r.literal = true;
      r.a.dtype = ints ? DType::I64 : DType::F32;
      r.a.shape = e.shape;
      for (const Value& x : v) r.a.cells.push_back(as_array(x, r.a.dtype).cells[0]);
      break;
    }
    case K::Make: {
      Array a{e.dtype, e.shape, {}};
      if (e.text == "arange") {
        const Value n = evaluate(e.args[0], env);
        if (n.kind != Value::Kind::Int || n.n < 0 || n.n > 4000) throw Invalid("no extent");
        a = {DType::I64, {static_cast<int64_t>(n.n)}, {}};
        for (int64_t k = 0; k < a.shape[0]; ++k) a.cells.push_back({k, 0, 0});
      } else {
        const Value v = e.text == "full" ? evaluate(e.args[0], env) : of_int(e.text == "ones" ? 1 : 0);
        const Array cell = e.dtype == DType::Bool && v.number()
                               ? Array{DType::Bool, {}, {Cell{v.n != 0, 0, 0}}}
                               : as_array(v, e.dtype);
        if (!cell.shape.empty()) throw Invalid("no number");
        a.cells.assign(static_cast<size_t>(elements(e.shape)), cell.cells[0]);
      }
      r = of_array(std::move(a));
      break;
    }
    case K::Index: r = index(e, env); break;
    case K::Field: {
      const Value v = evaluate(e.args[0], env);
      for (size_t k = 0; k < v.names.size(); ++k)
        if (v.names[k] == e.text) {
          r = v.parts[k];
          spend(r);
          return r;
        }
      throw Invalid("no field");
    }
    case K::Record: {
      const RecordType* type = nullptr;
      for (const RecordType& t : program_->types)
        if (t.name == e.text) type = &t;
      if (!type) throw Invalid("no type");
      r.kind = Value::Kind::Record;
      r.text = e.text;
      r.names = type->fields;
      r.parts.resize(type->fields.size());
      if (e.names.size() != type->fields.size()) throw Invalid("fields");
      for (size_t k = 0; k < e.args.size(); ++k)
        for (size_t f = 0; f < type->fields.size(); ++f)
          if (type->fields[f] == e.names[k]) {
            const Value v = adopted(evaluate(e.args[k], env), type->dtypes[f]);
            if (!v.array() || v.a.dtype != type->dtypes[f] || v.a.shape != type->shapes[f])
              throw Invalid("a field");
            r.parts[f] = v;
          }
      break;
    }
    case K::Tuple:
    case K::List:
      r.kind = e.kind == K::Tuple ? Value::Kind::Tuple : Value::Kind::List;
      for (Value& v : args()) r.parts.push_back(settled(std::move(v)));
      break;
    case K::Lambda:
      r.kind = Value::Kind::Function;
      r.lambda = &e;
      r.around = std::make_shared<Environment>(env);
      return r;
    case K::Choose: {
      const Value c = evaluate(e.args[0], env);
      const bool first = decide(c);
      Environment elsewhere = apart(env);  // of the arm that is not taken, which is looked at all the same
      const Value a = evaluate(e.args[1], first ? env : elsewhere);
      const Value b = evaluate(e.args[2], first ? elsewhere : env);
      if (!a.array() || !b.array() || a.a.dtype != b.a.dtype || a.a.shape != b.a.shape)
        throw Invalid("branches");
      r = settled(first ? a : b);
      break;
    }
    case K::Load: {
      if (recording) throw Invalid("load in a capture");
      const auto it = files_.find(e.integer);
      if (it == files_.end()) throw Invalid("no file");
      r = it->second;
      r.text.clear();
      break;
    }
  }
  spend(r);
  return r;
}

Value Model::index(const Expr& e, Environment& env) {
  Value v = evaluate(e.args[0], env);
  std::vector<Value> at;
  for (const Part& p : e.parts)
    if (p.kind == Part::Kind::At || p.kind == Part::Kind::Array) at.push_back(evaluate(p.at[0], env));
  if (v.kind == Value::Kind::List || v.kind == Value::Kind::Tuple) {
    if (e.parts.size() != 1 || e.parts[0].kind != Part::Kind::At || at[0].kind != Value::Kind::Int)
      throw Invalid("an index");
    const auto n = static_cast<int64_t>(v.parts.size());
    auto k = static_cast<int64_t>(at[0].n);
    if (k < -n || k >= n || (k < 0 && v.kind == Value::Kind::Tuple)) throw Invalid("an index out of range");
    return v.parts[static_cast<size_t>(k < 0 ? k + n : k)];
  }
  if (!v.array()) throw Invalid("not an array");
  const Chosen c = choose(v.a.shape, e.parts, at);
  Array r{v.a.dtype, c.shape, {}};
  for (int64_t p : c.places) r.cells.push_back(v.a.cells[static_cast<size_t>(p)]);
  return of_array(std::move(r));
}

// ---- calls

Binding Model::place_of(const Expr& e, Environment& env) {
  if (e.kind == Expr::Kind::Name) {
    const Binding* b = find(env, e.text);
    if (!b || !b->place) throw Invalid("no place");
    return *b;
  }
  if (e.kind != Expr::Kind::Field && e.kind != Expr::Kind::Index) throw Invalid("no place");
  Binding b = place_of(e.args[0], env);
  Value& v = value_of(b);
  if (e.kind == Expr::Kind::Field) {
    for (size_t k = 0; k < v.names.size(); ++k)
      if (v.names[k] == e.text) {
        b.path.push_back(k);
        return b;
      }
    throw Invalid("no field");
  }
  if (v.kind != Value::Kind::List || e.parts.size() != 1 || e.parts[0].kind != Part::Kind::At)
    throw Invalid("no place");
  const Value at = evaluate(e.parts[0].at[0], env);
  const auto n = static_cast<int64_t>(v.parts.size());
  const auto k = static_cast<int64_t>(at.n);
  if (at.kind != Value::Kind::Int || k < -n || k >= n) throw Invalid("an index out of range");
  b.path.push_back(static_cast<size_t>(k < 0 ? k + n : k));
  return b;
}

// A `mut` argument may not overlap another one. What is computed from its array
// is another array; what could be a view of it, or may come out of a function
// as it went in, is taken to overlap.
void Model::refuse_overlap(const Expr& e, Environment& env) {
  for (size_t m = 0; m < e.is_mut.size(); ++m) {
    if (!e.is_mut[m]) continue;
    const Slot* slot = place_of(e.args[m], env).slot.get();
    for (size_t k = 0; k < e.args.size(); ++k) {
      if (k == m || e.args[k].kind == Expr::Kind::Binary || e.args[k].kind == Expr::Kind::Lambda) {
        if (k == m || e.args[k].kind == Expr::Kind::Binary) continue;
      }
      std::set<std::string> names;
      names_in(e.args[k], names);
      for (const std::string& n : names)
        if (const Binding* b = find(env, n); b && b->slot.get() == slot) throw Invalid("an overlap");
    }
  }
}

Value Model::call(const Expr& e, Environment& env) {
  if (const Binding* b = find(env, e.text)) {
    const Value f = value_of(*b);
    std::vector<Value> args;
    for (const Expr& a : e.args) args.push_back(evaluate(a, env));
    return call_value(f, args);
  }
  if (++calls_ > 40) throw Invalid("calls too deep");
  refuse_overlap(e, env);
  Value r;
  if (const Function* f = function_of(*program_, e.text))
    r = call_function(*f, e, env);
  else if (const Kernel* k = kernel_of(*program_, e.text))
    r = call_kernel(*k, e, env);
  else
    throw Invalid("no function " + e.text);
  --calls_;
  return r;
}

Value Model::call_value(const Value& f, const std::vector<Value>& args) {
  if (f.kind != Value::Kind::Function) throw Invalid("no function");
  if (f.lambda) {
    if (f.lambda->names.size() != args.size()) throw Invalid("arguments");
    Environment env = *f.around;
    env.scopes.emplace_back();
    for (size_t k = 0; k < args.size(); ++k) bind(env, f.lambda->names[k], args[k], false);
    return evaluate(f.lambda->args[0], env);
  }
  if (const Function* g = function_of(*program_, f.text)) {
    // The arguments are values by now: they are bound to names of their own.
    Environment env;
    env.scopes.emplace_back();
    Expr e;
    e.kind = Expr::Kind::Call;
    e.text = f.text;
    for (size_t k = 0; k < args.size(); ++k) {
      const std::string n = "argument" + std::to_string(k);
      bind(env, n, args[k], false);
      e.args.push_back(name_of(n));
    }
    if (++calls_ > 40) throw Invalid("calls too deep");
    Value r = call_function(*g, e, env);
    --calls_;
    return r;
  }
  return apply_builtin(property::builtin(f.text, {}), args);
}

Value Model::call_function(const Function& f, const Expr& e, Environment& env) {
  Environment inner;
  inner.scopes.emplace_back();
  auto& scope = inner.scopes.back();
  auto param_of = [&](size_t k) {
    if (k >= e.names.size() || e.names[k].empty()) return k;
    for (size_t p = 0; p < f.params.size(); ++p)
      if (f.params[p].name == e.names[k]) return p;
    throw Invalid("no such parameter");
  };
  std::vector<std::pair<size_t, Value>> values;
  std::vector<std::pair<size_t, Binding>> places;
  for (size_t k = 0; k < e.args.size(); ++k) {
    const size_t p = param_of(k);
    if (p >= f.params.size()) throw Invalid("too many arguments");
    const bool is_mut = k < e.is_mut.size() && e.is_mut[k];
    if (is_mut != f.params[p].is_mut) throw Invalid("mut");
    if (is_mut)
      places.emplace_back(p, place_of(e.args[k], env));
    else
      values.emplace_back(p, evaluate(e.args[k], env));
  }
  for (size_t k = 0; k < places.size(); ++k)
    for (size_t j = 0; j < k; ++j)
      if (places[k].second.slot == places[j].second.slot) throw Invalid("an overlap");
  std::set<size_t> given;
  for (auto& [p, b] : places) {
    b.place = true;
    b.variable = false;
    scope[f.params[p].name] = b;
    given.insert(p);
  }
  for (auto& [p, v] : values) {
    if (!given.insert(p).second) throw Invalid("given twice");
    bind(inner, f.params[p].name,
         adopted(v, f.params[p].note.kind == Note::Kind::Array ? f.params[p].note.dtype : v.a.dtype), false);
  }
  for (size_t p = 0; p < f.params.size(); ++p)
    if (!given.count(p)) {
      if (!f.params[p].otherwise) throw Invalid("an argument is missing");
      bind(inner, f.params[p].name, evaluate(*f.params[p].otherwise, inner), false);
    }
  for (const Param& p : f.params) {
    Value& v = value_of(scope.at(p.name));
    if (p.note.kind == Note::Kind::Scalar) {
      if (v.number())
        v = of_array(as_array(v, p.note.dtype));
      else if (!v.array() || v.a.dtype != p.note.dtype || !v.a.shape.empty())
        throw Invalid("a parameter's type");
    } else if (p.note.kind == Note::Kind::Array) {
      if (!v.array() || v.a.dtype != p.note.dtype || v.a.shape.size() != p.note.extents.size())
        throw Invalid("a parameter's type");
      for (size_t k = 0; k < p.note.extents.size(); ++k) {
        const std::string& x = p.note.extents[k];
        if (x == "_") continue;
        if (std::isdigit(static_cast<unsigned char>(x[0]))) {
          if (std::stoll(x) != v.a.shape[k]) throw Invalid("an extent");
        } else if (scope.count(x)) {
          if (value_of(scope.at(x)).n != v.a.shape[k]) throw Invalid("an extent");
        } else {
          bind(inner, x, of_int(v.a.shape[k]), false);
        }
      }
    } else if (p.note.kind == Note::Kind::Named) {
      if (v.kind != Value::Kind::Record || v.text != p.note.name) throw Invalid("a parameter's type");
    }
  }
  if (!active_.insert(f.name).second) throw Invalid("recursion");
  recording += f.captured;
  inner.scopes.emplace_back();
  run(f.body, inner);
  Value r;
  if (f.result) r = evaluate(*f.result, inner);
  recording -= f.captured;
  active_.erase(f.name);
  return settled(std::move(r));
}

Value Model::call_kernel(const Kernel& k, const Expr& e, Environment& env) {
  if (e.args.size() != 3 || e.is_mut.size() != 3 || !e.is_mut[0]) throw Invalid("a kernel's arguments");
  const Binding place = place_of(e.args[0], env);
  const Value x = adopted(evaluate(e.args[1], env), k.dtype), by = evaluate(e.args[2], env);
  Value& z = value_of(place);
  if (!z.array() || !x.array() || z.a.dtype != k.dtype || x.a.dtype != k.dtype || z.a.shape != x.a.shape ||
      z.a.shape.size() != 1)
    throw Invalid("a kernel's arguments");
  if (by.array() && (by.a.dtype != k.dtype || !by.a.shape.empty())) throw Invalid("a kernel's arguments");
  const Value a = of_array(as_array(by, k.dtype));
  const Value given = k.untyped && !by.array() ? by : a;
  auto scalar = [&](const Cell& c) { return of_array({k.dtype, {}, {c}}); };
  const auto chooses = [&] {
    const Value more = apply_binary(">", given, of_int(1));
    return k.form == Kernel::Form::Choice && (more.array() ? more.a.cells[0].i : more.n) == 0;
  };
  const Expr& body = chooses() ? k.other : k.value;
  auto value = [&](const Cell& v, const Cell& w, const Value& s, int64_t t) {
    Environment inner;
    inner.scopes.emplace_back();
    bind(inner, "v", scalar(v), false);
    bind(inner, "w", scalar(w), false);
    bind(inner, "a", given, false);
    bind(inner, "s", s, false);
    bind(inner, "t", of_int(t), false);
    const Value r = evaluate(body, inner);
    if (!r.array() || r.a.dtype != k.dtype) throw Invalid("a kernel's value");
    return r;
  };
  // Numbers are computed, and may be out of range, whether or not there are points.
  const bool computes = k.form != Kernel::Form::Copy && k.form != Kernel::Form::Prefix;
  if (k.untyped && computes) value({}, {}, a, 0);
  Value sum = a;
  for (size_t i = 0; i < z.a.cells.size(); ++i) {
    switch (k.form) {
      case Kernel::Form::Map:
      case Kernel::Form::Choice: z.a.cells[i] = value(x.a.cells[i], z.a.cells[i], a, 0).a.cells[0]; break;
      case Kernel::Form::Copy: z.a.cells[i] = x.a.cells[i]; break;
      case Kernel::Form::Prefix:
        sum = apply_binary("+", sum, scalar(x.a.cells[i]));
        z.a.cells[i] = sum.a.cells[0];
        break;
      case Kernel::Form::Steps: {
        Value s = a;
        for (int64_t t = 0; t < 5; ++t) s = value(x.a.cells[i], z.a.cells[i], s, t);
        z.a.cells[i] = s.a.cells[0];
        break;
      }
    }
  }
  spend(z);
  return {};
}

Outcome run_model(const Program& p) {
  Model m(p);
  Environment env;
  env.scopes.emplace_back();
  m.run(p.body, env);
  Outcome o;
  for (const Expr& e : p.results) {
    Value v = m.evaluate(e, env);
    if (!v.array()) throw Invalid("a result that is no array");
    if (v.a.dtype == DType::BF16) v.a = converted(v.a, DType::F32);
    o.results.push_back(v.a);
  }
  o.observed = m.observed();
  return o;
}

}  // namespace gk::property
