// Statements of the model.
#include "tests/property/model.h"

namespace gk::property {

void names_in(const Expr& e, std::set<std::string>& out) {
  if (e.kind == Expr::Kind::Name || e.kind == Expr::Kind::Call) out.insert(e.text);
  for (const Expr& a : e.args) names_in(a, out);
  for (const Part& p : e.parts)
    for (const Expr& a : p.at) names_in(a, out);
}

void names_in(const Block& b, std::set<std::string>& out) {
  for (const Stmt& s : b) {
    if (!s.name.empty()) out.insert(s.name);
    names_in(s.place, out);
    names_in(s.value, out);
    names_in(s.body, out);
    names_in(s.other, out);
    for (const Node& n : s.nodes) names_in(n.body, out);
  }
}

void Model::run(const Block& b, Environment& env) {
  for (const Stmt& s : b) {
    run(s, env);
    if (broken_) return;
  }
}

void Model::try_out(const Block& b, const Environment& env) {
  if (++trying_ > 3) {
    --trying_;
    return;
  }
  Environment other = apart(env);
  other.scopes.emplace_back();
  const size_t seen = observed_.size();
  const bool broken = broken_;
  run(b, other);
  keeps_form(env, other);
  broken_ = broken;
  observed_.resize(seen);
  --trying_;
}

void Model::run(const Stmt& s, Environment& env) {
  using K = Stmt::Kind;
  if (--budget < 0) throw Invalid("too much work");
  switch (s.kind) {
    case K::Let:
    case K::Var: {
      Value v = evaluate(s.value, env);
      if (v.kind == Value::Kind::None || v.kind == Value::Kind::Function) throw Invalid("nothing to bind");
      bind(env, s.name, settled(std::move(v)), s.kind == K::Var);
      return;
    }
    case K::Rebind: {
      Value v = evaluate(s.value, env);
      for (size_t k = env.scopes.size(); k-- > env.sealed;)
        if (auto it = env.scopes[k].find(s.name); it != env.scopes[k].end()) {
          if (!it->second.variable) throw Invalid("not rebound");
          // From there on it has a dtype, which the model does not follow.
          if (device_ > 0 && value_of(it->second).number())
            throw Invalid("a number that a device body rebinds");
          if (s.op != "=") v = apply_binary(s.op.substr(0, 1), value_of(it->second), v);
          it->second.slot = std::make_shared<Slot>(Slot{settled(std::move(v))});
          return;
        }
      throw Invalid("not rebound");
    }
    case K::Write: return write(s, env);
    case K::Eval: evaluate(s.value, env); return;
    case K::For:
    case K::Each:
    case K::While: return loop(s, env);
    case K::If: return branch(s, env);
    case K::Break: {
      const Value c = evaluate(s.value, env);
      if (c.kind != Value::Kind::Bool) throw Invalid("a break that the device decides");
      if (c.n != 0) broken_ = true;
      return;
    }
    case K::Inline: {
      if (recording) throw Invalid("a capture in a capture");
      Environment inner = env;
      inner.sealed = inner.scopes.size();
      inner.scopes.emplace_back();
      ++recording;
      run(s.body, inner);
      --recording;
      return;
    }
    case K::Capture:
    case K::Graph: {
      if (recording) throw Invalid("a capture in a capture");
      Value v;
      v.kind = Value::Kind::Graph;
      v.graph = std::make_shared<GraphData>();
      Environment around = env;
      around.sealed = around.scopes.size();
      if (s.kind == K::Capture)
        v.graph->nodes.push_back({"", s.body, around});
      else
        for (const Node& n : s.nodes) v.graph->nodes.push_back({n.name, n.body, around});
      ++recording;
      for (const auto& n : v.graph->nodes) try_out(n.body, n.around);
      --recording;
      bind(env, s.name, std::move(v), false);
      return;
    }
    case K::Launch: {
      const Binding* b = find(env, s.name);
      if (!b || value_of(*b).kind != Value::Kind::Graph || recording) throw Invalid("nothing to launch");
      const auto graph = value_of(*b).graph;
      ++recording;
      for (int64_t t = 0; t < s.times; ++t)
        for (auto& n : graph->nodes) {
          Environment inner = n.around;
          inner.scopes.emplace_back();
          run(n.body, inner);
        }
      --recording;
      return;
    }
    case K::UpdateNode: {
      Binding* b = find(env, s.name);
      if (!b || value_of(*b).kind != Value::Kind::Graph || recording) throw Invalid("nothing to update");
      for (auto& n : value_of(*b).graph->nodes)
        if (n.name == s.op) {
          n.body = s.body;
          n.around = env;
          n.around.sealed = env.scopes.size();
          ++recording;
          try_out(n.body, n.around);
          --recording;
          return;
        }
      throw Invalid("no such node");
    }
    case K::Swap: return rebind_arrays(s, env);
    case K::Print: {
      if (recording) throw Invalid("a print in a capture");
      Value v = evaluate(s.value, env);
      observed_.push_back({s.times, std::move(v)});
      return;
    }
    case K::Save: {
      if (recording) throw Invalid("a save in a capture");
      Value v = evaluate(s.value, env);
      auto file = [](Value& x) {
        if (!x.array()) throw Invalid("nothing to save");
        if (x.a.dtype == DType::BF16) x.a = converted(x.a, DType::F32);
        x.literal = false;
      };
      if (v.kind == Value::Kind::Record)
        for (Value& p : v.parts) file(p);
      else
        file(v);
      files_[s.times] = std::move(v);
      return;
    }
  }
}

void Model::write(const Stmt& s, Environment& env) {
  Value v = evaluate(s.value, env);
  // A part of an array: the parts of the outermost index. An index into a list
  // is a part of the place.
  const Expr* base = &s.place;
  const std::vector<Part>* parts = nullptr;
  if (s.place.kind == Expr::Kind::Index) {
    const Binding b = place_of(s.place.args[0], env);
    if (value_of(b).array()) {
      base = &s.place.args[0];
      parts = &s.place.parts;
    }
  }
  std::vector<Value> at;
  if (parts)
    for (const Part& p : *parts)
      if (p.kind == Part::Kind::At || p.kind == Part::Kind::Array) at.push_back(evaluate(p.at[0], env));
  const Binding b = place_of(*base, env);
  Value& target = value_of(b);
  const std::string op = s.op.substr(1, s.op.size() - 2);  // of ".+="; "" of ".="

  std::function<void(Array&, const Value&)> into = [&](Array& a, const Value& value) {
    Chosen c;
    if (!parts) {
      c.shape = a.shape;
      for (size_t k = 0; k < a.cells.size(); ++k) c.places.push_back(static_cast<int64_t>(k));
    } else if (parts->size() == 1 && (*parts)[0].kind == Part::Kind::Array) {
      const Array mask = alone(at[0]);
      if (mask.dtype != DType::Bool || mask.shape != a.shape ||
          !(value.number() || alone(value).shape.empty()))
        throw Invalid("no mask");
      for (size_t k = 0; k < a.cells.size(); ++k)
        if (mask.cells[k].i) c.places.push_back(static_cast<int64_t>(k));
      c.shape = {static_cast<int64_t>(c.places.size())};
    } else {
      for (const Part& p : *parts)
        if (p.kind == Part::Kind::Array || p.kind == Part::Kind::New) throw Invalid("no part");
      c = choose(a.shape, *parts, at);
    }
    Array old{a.dtype, c.shape, {}};
    for (int64_t p : c.places) old.cells.push_back(a.cells[static_cast<size_t>(p)]);
    Value fresh = value;
    if (value.literal && op.empty()) fresh = of_array(as_array(value, a.dtype));
    if (!op.empty()) fresh = apply_binary(op, of_array(old), value);
    if (!fresh.number()) {
      if (!fresh.array()) throw Invalid("no array");
      if ((fresh.a.dtype == DType::Bool) != (a.dtype == DType::Bool)) throw Invalid("bools with numbers");
      const auto t = promote(fresh.a.dtype, a.dtype);
      if (!t || *t != a.dtype) throw Invalid("a place of another dtype");
    }
    const Array cells = broadcast_to(as_array(fresh, a.dtype), c.shape);
    for (size_t k = 0; k < c.places.size(); ++k) a.cells[static_cast<size_t>(c.places[k])] = cells.cells[k];
  };
  spend(target);
  if (target.array()) return into(target.a, v);
  if (target.kind != Value::Kind::Record || parts) throw Invalid("no place");
  if (v.kind == Value::Kind::Record && v.names != target.names) throw Invalid("records of other fields");
  for (size_t k = 0; k < target.parts.size(); ++k)
    into(target.parts[k].a, v.kind == Value::Kind::Record ? v.parts[k] : v);
}

// What a body that the device decides about rebinds keeps its form, and is no
// number.
void Model::keeps_form(const Environment& before, const Environment& after) {
  for (size_t k = 0; k < before.scopes.size(); ++k)
    for (const auto& [name, b] : before.scopes[k]) {
      const Value &x = value_of(b), &y = value_of(after.scopes[k].at(name));
      if (x.kind != y.kind) throw Invalid("another kind");
      if (x.array() && (x.a.dtype != y.a.dtype || x.a.shape != y.a.shape)) throw Invalid("another form");
    }
}

void Model::branch(const Stmt& s, Environment& env) {
  const Value c = evaluate(s.value, env);
  const bool yes = decide(c), device = c.array();
  const Environment before = device ? apart(env) : Environment{};
  device_ += device;
  if (trying_ < 2) {
    try_out(yes ? s.other : s.body, env);
  }
  env.scopes.emplace_back();
  run(yes ? s.body : s.other, env);
  env.scopes.pop_back();
  device_ -= device;
  if (!device) return;
  if (broken_) throw Invalid("a break that the device decides");
  keeps_form(before, env);
  for (size_t k = 0; k < before.scopes.size(); ++k)
    for (const auto& [name, b] : before.scopes[k])
      if (const Value& x = value_of(b), &y = value_of(env.scopes[k].at(name));
          x.number() && (x.n != y.n || x.f != y.f))
        throw Invalid("a number that the device decides about");
}

void Model::loop(const Stmt& s, Environment& env) {
  auto turn = [&](const std::function<void(Environment&)>& name) {
    env.scopes.emplace_back();
    name(env);
    run(s.body, env);
    env.scopes.pop_back();
    const bool done = broken_;
    broken_ = false;
    return !done;
  };
  auto untaken = [&](const Value& v) {
    if (trying_ >= 2) return;
    Environment other = env;
    other.scopes.emplace_back();
    if (!s.name.empty()) bind(other, s.name, v, false);
    try_out(s.body, other);
  };
  if (s.kind == Stmt::Kind::For) {
    const Value n = evaluate(s.value, env);
    if (n.kind != Value::Kind::Int || n.n > 200) throw Invalid("no number of turns");
    if (n.n <= 0) untaken(of_int(0));
    for (int64_t k = 0; k < n.n; ++k)
      if (!turn([&](Environment& e) { bind(e, s.name, of_int(k), false); })) break;
    return;
  }
  if (s.kind == Stmt::Kind::Each) {
    const Value v = evaluate(s.value, env);
    std::vector<Value> rows;
    if (v.kind == Value::Kind::List) {
      rows = v.parts;
    } else {
      if (!v.array() || v.a.shape.empty() || v.a.shape[0] > 100) throw Invalid("nothing to go through");
      for (int64_t k = 0; k < v.a.shape[0]; ++k) {
        std::vector<Part> at(1);
        at[0].kind = Part::Kind::At;
        const Chosen c = choose(v.a.shape, at, {of_int(k)});
        Array r{v.a.dtype, c.shape, {}};
        for (int64_t p : c.places) r.cells.push_back(v.a.cells[static_cast<size_t>(p)]);
        rows.push_back(of_array(std::move(r)));
      }
    }
    if (rows.empty()) throw Invalid("a loop over nothing");
    for (const Value& r : rows)
      if (!turn([&](Environment& e) { bind(e, s.name, r, false); })) break;
    return;
  }
  const Value first = evaluate(s.value, env);
  if (!decide(first)) untaken({});
  const Environment before = first.array() ? apart(env) : Environment{};
  int turns = 0;
  while (decide(evaluate(s.value, env))) {
    if (++turns > 200) throw Invalid("too many turns");
    if (!turn([](Environment&) {})) {
      if (first.array()) throw Invalid("a break that the device decides");
      break;
    }
    if (first.array()) {
      keeps_form(before, env);
      for (size_t k = 0; k < before.scopes.size(); ++k)
        for (const auto& [name, b] : before.scopes[k])
          if (const Value& x = value_of(b), &y = value_of(env.scopes[k].at(name));
              x.number() && (x.n != y.n || x.f != y.f))
            throw Invalid("a number that the device decides about");
    }
  }
}

void Model::rebind_arrays(const Stmt& s, Environment& env) {
  const Binding* g = find(env, s.name);
  if (!g || value_of(*g).kind != Value::Kind::Graph || recording) throw Invalid("nothing to update");
  const Binding* from = s.place.kind == Expr::Kind::Name ? find(env, s.place.text) : nullptr;
  const Binding* to = s.value.kind == Expr::Kind::Name ? find(env, s.value.text) : nullptr;
  if (!from || !to || !to->place || !to->path.empty() || !from->path.empty())
    throw Invalid("nothing to rebind");
  const Value &x = value_of(*from), &y = value_of(*to);
  if (!x.array() || !y.array() || x.a.dtype != y.a.dtype || x.a.shape != y.a.shape)
    throw Invalid("another form");
  bool used = false;
  for (auto& n : value_of(*g).graph->nodes) {
    std::set<std::string> names;
    names_in(n.body, names);
    for (const std::string& name : names)
      if (const Binding* b = find(n.around, name)) {
        if (b->slot == to->slot) throw Invalid("used already");
        used = used || b->slot == from->slot;
      }
  }
  if (!used) throw Invalid("not used");
  const auto old = from->slot, fresh = to->slot;
  for (auto& n : value_of(*g).graph->nodes)
    for (auto& scope : n.around.scopes)
      for (auto& [name, b] : scope)
        if (b.slot == old) b.slot = fresh;
}

}  // namespace gk::property
