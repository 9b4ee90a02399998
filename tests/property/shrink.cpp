// Makes failing programs smaller. Each candidate is the tree with one thing
// less; it is kept where the model still accepts it and the failure stays of
// its kind.
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "tests/property/generator.h"
#include "tests/property/runner.h"

namespace gk::property {

namespace {

using Change = std::function<void(Program&)>;

void walk(Block& b, const std::function<void(Block&)>& f) {
  f(b);
  for (Stmt& s : b) {
    walk(s.body, f);
    walk(s.other, f);
    for (Node& n : s.nodes) walk(n.body, f);
  }
}

void each_block(Program& p, const std::function<void(Block&)>& f) {
  for (Function& x : p.functions) walk(x.body, f);
  walk(p.body, f);
}

void walk(Expr& e, const std::function<void(Expr&)>& f) {
  f(e);
  for (Expr& a : e.args) walk(a, f);
  for (Part& x : e.parts)
    for (Expr& a : x.at) walk(a, f);
}

void each_expr(Program& p, const std::function<void(Expr&)>& f) {
  each_block(p, [&](Block& b) {
    for (Stmt& s : b) {
      walk(s.value, f);
      if (s.kind == Stmt::Kind::Write)
        for (Expr& a : s.place.args) walk(a, f);
    }
  });
  for (Function& x : p.functions)
    if (x.result) walk(*x.result, f);
  for (Kernel& k : p.kernels) {
    walk(k.value, f);
    walk(k.other, f);
  }
}

// The n-th of what `each` visits.
template <class T, class Each>
T* nth(Program& p, int64_t n, Each each) {
  T* found = nullptr;
  each(p, [&](T& x) {
    if (n-- == 0) found = &x;
  });
  return found;
}

int64_t size_of(Program& p) {
  int64_t n = 0;
  each_expr(p, [&](Expr&) { ++n; });
  each_block(p, [&](Block& b) { n += 3 * static_cast<int64_t>(b.size()); });
  return n + static_cast<int64_t>(p.results.size());
}

void substitute(Expr& e, const std::string& name, const Expr& by) {
  if (e.kind == Expr::Kind::Name && e.text == name) {
    e = by;
    return;
  }
  for (Expr& a : e.args) substitute(a, name, by);
  for (Part& x : e.parts)
    for (Expr& a : x.at) substitute(a, name, by);
}

class Shrinker {
 public:
  Shrinker(Program p, Failure f, std::string device, int seconds)
      : p_(std::move(p)), f_(std::move(f)), device_(std::move(device)), seconds_(seconds) {}

  Program run() {
    for (int64_t before = -1; before != size_of(p_) && !over();) {
      before = size_of(p_);
      results();
      statements();
      blocks();
      expressions();
      functions();
      numbers();
    }
    return p_;
  }

 private:
  Program p_;
  Failure f_;
  std::string device_;
  int seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  bool over() const { return std::chrono::steady_clock::now() - start_ > std::chrono::seconds(150); }

  // Keeps the changed program where it still fails in this way.
  bool keep(Program q) {
    if (over()) return false;
    remove_unused(q);
    try {
      run_model(q);
    } catch (const std::exception&) {
      return false;
    }
    const auto f = check_apart(q, device_, seconds_);
    if (!f || f->kind != f_.kind) return false;
    p_ = std::move(q);
    return true;
  }
  bool change(const Change& c) {
    Program q = p_;
    try {
      c(q);
    } catch (const std::out_of_range&) {  // what it would change is gone
      return false;
    }
    return keep(std::move(q));
  }

  void results() {
    for (size_t half = p_.results.size() / 2; half >= 1; half /= 2)
      for (size_t k = 0; k + half <= p_.results.size();) {
        const auto from = static_cast<int64_t>(k), to = static_cast<int64_t>(k + half);
        if (!change([&](Program& q) { q.results.erase(q.results.begin() + from, q.results.begin() + to); }))
          k += half;
      }
  }

  // From the end, several at a time first: what comes later is needed by
  // nothing before it.
  void statements() {
    int64_t blocks = 0;
    each_block(p_, [&](Block&) { ++blocks; });
    for (int64_t b = blocks; b-- > 0;) {
      Block* here = nth<Block>(p_, b, each_block);
      if (!here) continue;
      for (size_t many = std::max<size_t>(1, here->size() / 2); many >= 1; many /= 2)
        for (size_t k = here->size(); k >= many && k > 0;) {
          k -= std::min(k, many);
          const bool gone = change([&](Program& q) {
            Block* x = nth<Block>(q, b, each_block);
            x->erase(x->begin() + static_cast<int64_t>(k),
                     x->begin() + static_cast<int64_t>(std::min(k + many, x->size())));
          });
          here = nth<Block>(p_, b, each_block);
          if (!here) break;
          if (gone) k = std::min(k, here->size());
        }
    }
  }

  // Blocks become what is in them.
  void blocks() {
    int64_t blocks = 0;
    each_block(p_, [&](Block&) { ++blocks; });
    for (int64_t b = 0; b < blocks; ++b)
      for (size_t k = 0;; ++k) {
        const Block* here = nth<Block>(p_, b, each_block);
        if (!here || k >= here->size()) break;
        const Stmt s = (*here)[k];
        if (!s.other.empty()) {
          change([&](Program& q) { (*nth<Block>(q, b, each_block))[k].other.clear(); });
          continue;
        }
        if (s.body.empty() || s.kind == Stmt::Kind::UpdateNode) continue;
        change([&](Program& q) {
          Block& x = *nth<Block>(q, b, each_block);
          const Block inner = x[k].body;
          x.erase(x.begin() + static_cast<int64_t>(k));
          x.insert(x.begin() + static_cast<int64_t>(k), inner.begin(), inner.end());
        });
      }
  }

  // An expression becomes one of its own parts, a plain array, or what a call's
  // function says.
  void expressions() {
    for (int64_t n = 0;; ++n) {
      const Expr* e = nth<Expr>(p_, n, each_expr);
      if (!e || over()) break;
      const Expr here = *e;
      auto become = [&](const Expr& by) {
        return change([&](Program& q) { *nth<Expr>(q, n, each_expr) = by; });
      };
      if (here.kind == Expr::Kind::Name || here.kind == Expr::Kind::Int || here.kind == Expr::Kind::Float)
        continue;
      bool smaller = false;
      for (const Expr& a : here.args)
        if (a.kind != Expr::Kind::Lambda && (smaller = become(a))) break;
      if (smaller) {
        --n;
        continue;
      }
      if (here.kind == Expr::Kind::Call) {
        for (const Function& f : p_.functions)
          if (f.name == here.text && f.body.empty() && f.result && here.names.empty() &&
              here.args.size() == f.params.size()) {
            Expr inner = *f.result;
            for (size_t k = 0; k < f.params.size(); ++k) substitute(inner, f.params[k].name, here.args[k]);
            if (become(inner)) --n;
            break;
          }
      }
      if (here.kind == Expr::Kind::Literal || here.kind == Expr::Kind::Make) continue;
      try {  // what it is, as an array of its own: for what stands at the
             // program's top
        Model m(p_);
        Environment env;
        env.scopes.emplace_back();
        const Value v = m.evaluate(here, env);
        if (!v.array() || v.a.dtype == DType::Bool || v.a.shape.size() != 1 || v.a.cells.size() > 5 ||
            v.a.cells.empty())
          continue;
        Expr l;
        l.kind = Expr::Kind::Literal;
        l.shape = v.a.shape;
        for (const Cell& c : v.a.cells) l.args.push_back(is_floating(v.a.dtype) ? number(c.f) : integer(c.i));
        if (here.kind == Expr::Kind::Cast && here.args[0].kind == Expr::Kind::Literal) continue;
        become(v.a.dtype == DType::I64 || v.a.dtype == DType::F32 ? l : cast(v.a.dtype, l));
      } catch (const std::exception&) {
      }
    }
  }

  void functions() {
    for (size_t k = 0; k < p_.functions.size(); ++k) {
      change([&](Program& q) { q.functions.at(k).captured = false; });
      for (size_t a = 0; k < p_.functions.size() && a < p_.functions[k].params.size(); ++a) {
        if (p_.functions[k].params[a].note.kind != Note::Kind::None)
          change([&](Program& q) { q.functions[k].params[a].note = {}; });
        const std::string name = p_.functions[k].name;
        change([&](Program& q) {  // a parameter less
          q.functions[k].params.erase(q.functions[k].params.begin() + static_cast<int64_t>(a));
          each_expr(q, [&](Expr& e) {
            if (e.kind != Expr::Kind::Call || e.text != name || e.args.size() <= a) return;
            e.args.erase(e.args.begin() + static_cast<int64_t>(a));
            if (e.is_mut.size() > a) e.is_mut.erase(e.is_mut.begin() + static_cast<int64_t>(a));
            if (e.names.size() > a) e.names.erase(e.names.begin() + static_cast<int64_t>(a));
          });
        });
      }
    }
    for (size_t k = 0; k < p_.types.size(); ++k)
      change([&](Program& q) { q.types.erase(q.types.begin() + static_cast<int64_t>(k)); });
  }

  // Fewer turns, smaller extents: each number of the program at once, and each
  // by itself.
  void numbers() {
    std::set<int64_t> extents;
    each_expr(p_, [&](Expr& e) {
      for (int64_t d : e.shape)
        if (d > 2) extents.insert(d);
    });
    for (int64_t d : extents)
      for (int64_t less : {int64_t{2}, int64_t{3}, d / 2})
        if (less < d && change([&](Program& q) {
              each_expr(q, [&](Expr& e) {
                for (int64_t& x : e.shape)
                  if (x == d) x = less;
                if (e.kind == Expr::Kind::Int && e.integer == d) e.integer = less;
              });
            }))
          break;
    for (int64_t n = 0;; ++n) {
      const Expr* e = nth<Expr>(p_, n, each_expr);
      if (!e || over()) break;
      if (e->kind != Expr::Kind::Int || e->integer <= 1) continue;
      const int64_t was = e->integer;
      for (int64_t less : {int64_t{1}, int64_t{2}, was / 2, was - 1})
        if (less < was && change([&](Program& q) { nth<Expr>(q, n, each_expr)->integer = less; })) break;
    }
  }
};

std::string literal_text(const Array& a) {
  std::function<std::string(size_t, size_t&)> text = [&](size_t axis, size_t& at) -> std::string {
    if (axis == a.shape.size()) {
      const Cell& c = a.cells[at++];
      if (a.dtype == DType::Bool) return c.i ? "true" : "false";
      if (a.dtype == DType::U64) return fmt::format("{}", static_cast<uint64_t>(c.i));
      if (!is_floating(a.dtype)) return fmt::format("{}", c.i);
      const std::string s = fmt::format("{}", c.f);
      return s.find_first_of(".ein") == std::string::npos ? s + ".0" : s;
    }
    std::string s;
    for (int64_t k = 0; k < a.shape[axis]; ++k) s += (k ? ", " : "") + text(axis + 1, at);
    return "[" + s + "]";
  };
  size_t at = 0;
  return text(0, at);
}

}  // namespace

Program shrink(const Program& p, const Failure& f, const std::string& device, int seconds) {
  return Shrinker(p, f, device, seconds).run();
}

std::string as_script(const Program& p, const std::string& about) {
  const Outcome o = run_model(p);
  Program q = p;
  q.results.clear();
  Style style;
  style.folder = ".";
  std::string s = fmt::format("# Generated and made smaller; found because: {}.\n", about);
  s += to_text(q, style);
  for (size_t k = 0; k < p.results.size(); ++k) {
    const Array& a = o.results[k];
    const std::string e = to_text(p.results[k]);
    if (a.cells.empty() || a.cells.size() > 64) continue;
    bool finite = true;
    for (const Cell& c : a.cells) finite = finite && std::isfinite(c.f);
    if (!finite) continue;
    std::string want = literal_text(a);
    if (a.dtype != DType::Bool) want = fmt::format("{}({})", name(a.dtype), want);
    if (a.shape.empty() && a.dtype == DType::Bool)
      s += fmt::format("assert {}{}\n", a.cells[0].i ? "" : "not ", e);
    else if (a.exact())
      s += fmt::format("assert all({} == {})\n", e, want);
    else
      s += fmt::format("assert {} ~= {}, rtol=1e-3, atol=1e-3\n", e, want);
  }
  return s;
}

}  // namespace gk::property
