// Captures, graphs and their updates in generated programs, and whole programs.
#include "tests/property/generator.h"

namespace gk::property {

namespace {

Stmt make(Stmt::Kind k, std::string name, Expr value = {}) {
  Stmt s;
  s.kind = k;
  s.name = std::move(name);
  s.value = std::move(value);
  return s;
}

// Names that a body writes as a whole, one statement each, at its top.
std::set<std::string> written_whole(const Block& b) {
  std::set<std::string> out;
  for (const Stmt& s : b)
    if (s.kind == Stmt::Kind::Write && s.place.kind == Expr::Kind::Name) out.insert(s.place.text);
  return out;
}

}  // namespace

void Generator::inline_block(Context& c, Block& out) {
  Stmt s = make(Stmt::Kind::Inline, fresh("q"));
  Context in = inside(c, true);
  body(in, s.body, 1 + pick(3));
  bool writes = false;
  for (const Stmt& x : s.body) writes = writes || x.kind != Stmt::Kind::Let;
  if (!writes) write(in, s.body);
  if (!s.body.empty()) add(c, out, s);
}

void Generator::capture(Context& c, Block& out) {
  if (chance(0.4)) alias(c, out);
  Stmt s = make(Stmt::Kind::Capture, fresh("g"));
  Context in = inside(c, true);
  if (chance(0.5)) alias(in, s.body);
  body(in, s.body, pick(3));
  write(in, s.body);
  if (s.body.empty() || s.body.back().kind != Stmt::Kind::Write || !add(c, out, s)) return;
  Stmt l = make(Stmt::Kind::Launch, s.name);
  l.times = of(std::vector<int64_t>{1, 1, 2, 3});
  add(c, out, l);
  if (chance(0.4)) {
    // What happens to the names in between.
    switch (pick(4)) {
      case 0: write(c, out); break;
      case 1: rebind(c, out); break;
      case 2: alias(c, out); break;
      default: number(c, out); break;
    }
    add(c, out, l);
  }
  if (chance(0.35)) swap(c, out, s.name, s.body);
}

void Generator::swap(Context& c, Block& out, const std::string& graph, const Block& body) {
  for (const std::string& x : written_whole(body)) {
    const auto fit = arrays(
        c, [&](const Visible& v) { return v.expr.kind == Expr::Kind::Name && v.expr.text == x && v.place; });
    if (fit.empty()) continue;
    const DType t = fit[0].value->a.dtype;
    const Dims d = fit[0].value->a.shape;
    std::string to;
    for (const Visible& v : arrays(c, [&](const Visible& v) {
           return v.expr.kind == Expr::Kind::Name && v.variable && v.value->a.dtype == t &&
                  v.value->a.shape == d && v.expr.text != x;
         }))
      if (chance(0.4)) to = v.expr.text;
    if (to.empty()) {
      to = fresh("v");
      if (!add(c, out, make(Stmt::Kind::Var, to, constant(t, d)))) return;
    }
    Stmt s = make(Stmt::Kind::Swap, graph, name_of(to));
    s.place = name_of(x);
    if (!add(c, out, s)) return;
    Stmt l = make(Stmt::Kind::Launch, graph);
    l.times = 1 + pick(2);
    add(c, out, l);
    if (chance(0.3)) write(c, out), add(c, out, l);
    return;
  }
}

// Nodes of one statement each, on places of their own or not; some are
// retargeted afterwards.
void Generator::graph(Context& c, Block& out) {
  auto places = arrays(c, [](const Visible& v) {
    return v.expr.kind == Expr::Kind::Name && v.place && v.variable && v.value->a.dtype != DType::Bool;
  });
  if (places.empty()) return bind(c, out);
  Stmt s = make(Stmt::Kind::Graph, fresh("g"));
  const bool simple = chance(0.5);  // of what an update can retarget
  const int count = 1 + pick(3);
  std::set<std::string> written;
  std::vector<std::pair<std::string, std::string>> targets;
  for (int k = 0; k < count; ++k) {
    Node n;
    n.name = fresh("n");
    if (simple) {
      const Visible v = of(places);
      if (!written.insert(v.expr.text).second) continue;
      Stmt w = make(
          Stmt::Kind::Write, "",
          binary(of(std::vector<std::string>{"+", "*", "-"}), v.expr, small_number(c, v.value->a.dtype)));
      w.place = v.expr;
      w.op = ".=";
      n.body = {w};
      targets.emplace_back(n.name, v.expr.text);
    } else {
      Context in = inside(c, true);
      if (chance(0.4)) alias(in, n.body);
      write(in, n.body);
      if (n.body.empty() || n.body.back().kind != Stmt::Kind::Write) continue;
    }
    s.nodes.push_back(n);
  }
  if (s.nodes.empty() || !add(c, out, s)) return;
  Stmt l = make(Stmt::Kind::Launch, s.name);
  l.times = of(std::vector<int64_t>{1, 2});
  add(c, out, l);
  if (!simple && chance(0.5)) {
    Block all;
    for (const Node& n : s.nodes) all.insert(all.end(), n.body.begin(), n.body.end());
    swap(c, out, s.name, all);
  }
  if (!simple || targets.empty()) return;
  for (int k = 1 + pick(2); k > 0; --k) {
    const auto& [node, place] = of(targets);
    const auto now = arrays(
        c, [&, p = place](const Visible& v) { return v.expr.kind == Expr::Kind::Name && v.expr.text == p; });
    if (now.empty()) return;
    const DType t = now[0].value->a.dtype;
    Expr other = literal_number(t);
    for (const Visible& v : arrays(c, [&](const Visible& v) {
           return v.value->a.dtype == t && v.value->a.shape == now[0].value->a.shape &&
                  v.expr.kind == Expr::Kind::Name && !written.count(v.expr.text);
         }))
      if (chance(0.4)) other = v.expr;
    Stmt w =
        make(Stmt::Kind::Write, "", binary(of(std::vector<std::string>{"+", "*", "-"}), now[0].expr, other));
    w.place = now[0].expr;
    w.op = ".=";
    Stmt u = make(Stmt::Kind::UpdateNode, s.name);
    u.op = node;
    u.body = {w};
    add(c, out, u);
    add(c, out, l);
    if (chance(0.3)) alias(c, out);
  }
}

Generator::Generator(uint64_t seed) : rng_(seed) {
  program_.seed = seed;
  for (int k = 0; k < 3; ++k) extents_.push_back(of(std::vector<int64_t>{1, 2, 2, 3, 3, 4, 5, 5, 7, 13}));
  if (chance(0.12)) extents_.push_back(0), extents_.push_back(of(std::vector<int64_t>{2, 3, 4}));
  if (chance(0.1)) extents_.push_back(of(std::vector<int64_t>{31, 64, 100}));
  inexact_ = chance(0.33);
  const std::vector<DType> all = {DType::Bool, DType::I8,  DType::I16, DType::I32, DType::I64,
                                  DType::U8,   DType::U16, DType::U32, DType::U64, DType::F16,
                                  DType::BF16, DType::F32, DType::F64};
  const DType most = of(std::vector<DType>{DType::F32, DType::F32, DType::I64, DType::F64, DType::I32,
                                           DType::F16, DType::BF16, DType::U8});
  dtypes_ = {most, most, most, chance(0.5) ? DType::F32 : DType::I64, of(all), of(all)};
  for (int k = 0; k < 2; ++k) shapes_.push_back(any_shape());
  shapes_.push_back({of(extents_)});
}

// What no call reaches is not a part of the program.
void remove_unused(Program& p) {
  std::set<std::string> used;
  names_in(p.body, used);
  for (bool more = true; more;) {
    const size_t before = used.size();
    for (const Function& f : p.functions)
      if (used.count(f.name)) {
        names_in(f.body, used);
        if (f.result) names_in(*f.result, used);
      }
    more = used.size() != before;
  }
  std::erase_if(p.functions, [&](const Function& f) { return !used.count(f.name); });
  std::erase_if(p.kernels, [&](const Kernel& k) { return !used.count(k.name); });
}

void Generator::finish(Context& c) {
  std::vector<Visible> all = arrays(c, [](const Visible&) { return true; });
  while (all.size() > 14) all.erase(all.begin() + pick(static_cast<int>(all.size())));
  for (const Visible& v : all) program_.results.push_back(v.expr);
  remove_unused(program_);
}

Program Generator::run() {
  Context c{{}, Model(program_), false, 0};
  c.env.scopes.emplace_back();
  declare_types();
  const int inputs = 2 + pick(2);
  for (int k = 0; k < inputs; ++k) {
    const std::string n = fresh("v");
    Stmt s = make(chance(0.7) ? Stmt::Kind::Var : Stmt::Kind::Let, n, constant(any_dtype(), any_shape()));
    add(c, program_.body, s);
  }
  const int count = 2 + pick(6);
  for (int k = 0; k < count; ++k) statement(c, program_.body);
  finish(c);
  return std::move(program_);
}

Program generate(uint64_t seed) {
  // A draw of which the model, from the beginning, thinks otherwise than piece
  // by piece is drawn again.
  for (uint64_t again = 0;; ++again) {
    try {
      Program p = Generator(seed + (again << 40)).run();
      p.seed = seed;
      run_model(p);
      return p;
    } catch (const Invalid&) {
      if (again > 50) throw;
    }
  }
}

}  // namespace gk::property
