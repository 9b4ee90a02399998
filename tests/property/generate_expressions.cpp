// Expressions of generated programs: each is drawn for a dtype and extents.
#include "tests/property/generator.h"

namespace gk::property {

namespace {

bool is_unsigned(DType t) { return is_integer(t) && !is_signed(t); }

Expr sliced(Expr a, std::vector<Part> parts) {
  Expr e;
  e.kind = Expr::Kind::Index;
  e.args = {std::move(a)};
  e.parts = std::move(parts);
  return e;
}

Part range(std::optional<int64_t> from, std::optional<int64_t> to, std::optional<int64_t> step) {
  Part p;
  p.kind = Part::Kind::Range;
  p.from = from;
  p.to = to;
  p.step = step;
  return p;
}

Expr unary(std::string op, Expr a) {
  Expr e;
  e.kind = Expr::Kind::Unary;
  e.text = std::move(op);
  e.args = {std::move(a)};
  return e;
}

}  // namespace

Dims Generator::any_shape(int most_rank) {
  Dims d;
  if (!shapes_.empty() && chance(0.75)) {
    d = of(shapes_);
    if (static_cast<int>(d.size()) <= most_rank) return d;
    d.clear();
  }
  const int rank = of(std::vector<int>{0, 1, 1, 1, 1, 2, 2, 3});
  for (int k = 0; k < std::min(rank, most_rank); ++k) d.push_back(of(extents_));
  while (elements(d) > 240) d.pop_back();
  return d;
}

std::vector<Visible> Generator::visible(Context& c) {
  std::vector<Visible> out;
  std::set<std::string> seen;
  for (size_t k = c.env.scopes.size(); k-- > 0;)
    for (auto& [name, b] : c.env.scopes[k]) {
      if (!seen.insert(name).second) continue;
      const bool outside = k < c.env.sealed;
      const Value& v = value_of(b);
      const Expr n = name_of(name);
      const auto kept = [&](const Value& part) { return std::shared_ptr<const Value>(b.slot, &part); };
      out.push_back({n, kept(v), b.place, b.variable && !outside, outside});
      if (v.kind == Value::Kind::Record)
        for (size_t f = 0; f < v.names.size(); ++f)
          out.push_back({field(n, v.names[f]), kept(v.parts[f]), b.place, false, outside});
      if (v.kind == Value::Kind::List || v.kind == Value::Kind::Tuple)
        for (size_t i = 0; i < v.parts.size(); ++i) {
          int64_t at = static_cast<int64_t>(i);
          if (v.kind == Value::Kind::List && chance(0.2)) at -= static_cast<int64_t>(v.parts.size());
          out.push_back(
              {element(n, at), kept(v.parts[i]), b.place && v.kind == Value::Kind::List, false, outside});
        }
    }
  return out;
}

std::vector<Visible> Generator::arrays(Context& c, const std::function<bool(const Visible&)>& fits) {
  std::vector<Visible> out;
  for (const Visible& v : visible(c))
    if (v.value->array() && fits(v)) out.push_back(v);
  return out;
}

bool Generator::evaluates(Context& c, const Expr& e, DType t, const Dims& d) {
  try {
    Model m = c.model;
    Environment env = apart(c.env);
    const Value v = m.evaluate(e, env);
    return v.array() && v.a.dtype == t && v.a.shape == d;
  } catch (const Invalid&) {
    return false;
  } catch (const std::out_of_range&) {
    return false;
  }
}

Expr Generator::literal_number(DType t) {
  if (is_float(t))
    return property::number(of(std::vector<double>{0.5, 0.25, 1.5, -0.75, 2, -1, 0.125, 3, 0.1, 0.3}));
  return integer(is_unsigned(t) ? pick(8) : pick(12) - 4);
}

// A literal, or the name of a host number, which takes the dtype of what it
// meets.
Expr Generator::small_number(Context& c, DType t) {
  if (chance(0.35)) {
    std::vector<Expr> fit;
    for (const Visible& v : visible(c)) {
      const Value& x = *v.value;
      if (x.kind == Value::Kind::Int && x.n >= (is_unsigned(t) ? 0 : -100) && x.n < 100)
        fit.push_back(v.expr);
      if (x.kind == Value::Kind::Float && is_float(t) && x.f < 100 && x.f > -100) fit.push_back(v.expr);
      if (x.array() && !x.a.shape.empty() && x.a.shape[0] < 100 && chance(0.1))
        fit.push_back(builtin("len", {v.expr}));
    }
    if (!fit.empty()) {
      const Expr e = of(fit);
      if (is_float(t) && chance(0.2)) return binary("*", property::number(0.5), e);
      return chance(0.2) ? binary("+", e, integer(1)) : e;
    }
  }
  return literal_number(t);
}

Expr Generator::host_int(Context& c, int64_t below) {
  if (chance(0.4)) {
    std::vector<Expr> fit;
    for (const Visible& v : visible(c))
      if (v.value->kind == Value::Kind::Int && v.value->n >= 0 && v.value->n < below) fit.push_back(v.expr);
    if (!fit.empty()) return of(fit);
  }
  return integer(pick(static_cast<int>(std::max<int64_t>(below, 1))));
}

Expr Generator::constant(DType t, const Dims& d) {
  Expr e;
  e.kind = Expr::Kind::Make;
  e.dtype = t;
  e.shape = d;
  if (t == DType::Bool) {
    e.text = pick(2) ? "ones" : "zeros";
    if (d.empty() || chance(0.3)) return e;
    Expr n;
    n.kind = Expr::Kind::Make;
    n.text = "arange";
    n.args = {integer(elements(d))};
    Expr r = builtin("reshape", {n});
    r.shape = d;
    return binary("==", binary("%", r, integer(2 + pick(2))), integer(0));
  }
  // Few kinds, so that one kernel makes many.
  const bool listed = d.size() == 1 && d[0] > 0 && d[0] <= 5 && chance(0.6);
  if (!listed && !d.empty() && elements(d) > 0 && chance(0.85)) {
    // Small numbers, all different or not: exact in every dtype.
    Expr n;
    n.kind = Expr::Kind::Make;
    n.text = "arange";
    n.args = {integer(elements(d))};
    Expr e2 = binary("%", binary("*", n, integer(pick(2) ? 7 : 3)), integer(pick(2) ? 11 : 17));
    if (!is_unsigned(t) && chance(0.6)) e2 = binary("-", e2, integer(5));
    if (d.size() != 1) {
      e2 = builtin("reshape", {e2});
      e2.shape = d;
    }
    if (t != DType::I64 || chance(0.2)) e2 = cast(t, e2);
    if (is_float(t) && chance(0.5)) e2 = binary("*", e2, property::number(0.25));
    return e2;
  }
  if (listed) {
    Expr l;
    l.kind = Expr::Kind::Literal;
    l.shape = d;
    for (int64_t k = 0; k < d[0]; ++k) l.args.push_back(literal_number(t));
    return (t == DType::I64 && chance(0.5)) ? l : cast(t, l);
  }
  e.text = of(std::vector<std::string>{"zeros", "ones", "full", "full"});
  if (e.text == "full") e.args = {literal_number(t)};
  return e;
}

Expr Generator::leaf(Context& c, DType t, const Dims& d) {
  auto fit = arrays(c, [&](const Visible& v) { return v.value->a.dtype == t && v.value->a.shape == d; });
  if (!fit.empty() && chance(0.93)) return of(fit).expr;
  fit = arrays(c, [&](const Visible& v) { return v.value->a.shape == d && v.value->a.dtype != DType::Bool; });
  if (t != DType::Bool && !fit.empty() && chance(0.6)) return cast(t, of(fit).expr);
  return constant(t, d);
}

Dims Generator::narrower(const Dims& d) {
  Dims r = d;
  if (!r.empty() && chance(0.3)) r.erase(r.begin());
  if (!r.empty() && chance(0.15)) r[static_cast<size_t>(pick(static_cast<int>(r.size())))] = 1;
  return r;
}

// The same cells, seen otherwise.
Expr Generator::viewed(Context& c, DType t, const Dims& d, int depth) {
  const int rank = static_cast<int>(d.size());
  switch (pick(9)) {
    case 0:
    case 1: {  // backwards
      if (rank == 0) break;
      if (chance(0.3) &&
          d[0] < 50) {  // a view of a view: what is left of a longer one, backwards or every other
        Dims longer = d;
        const int64_t skip = 1 + pick(2), step = pick(2) ? -1 : 2;
        longer[0] = (d[0] + skip) * (step == 2 ? 2 : 1);
        if (elements(longer) < 300)
          return sliced(sliced(leaf(c, t, longer), {range({}, {}, step)}), {range(skip, {}, {})});
      }
      std::vector<Part> parts(static_cast<size_t>(pick(rank)) + 1);
      parts.back() = range({}, {}, -1);
      return sliced(array(c, t, d, depth - 1), parts);
    }
    case 2: {  // a part of something longer
      auto fit = arrays(c, [&](const Visible& v) {
        const Array& a = v.value->a;
        return a.dtype == t && a.shape.size() == d.size() && rank > 0 && a.shape[0] > d[0] &&
               Dims(a.shape.begin() + 1, a.shape.end()) == Dims(d.begin() + 1, d.end());
      });
      if (fit.empty()) break;
      const Visible v = of(fit);
      const int64_t n = v.value->a.shape[0], more = n - d[0];
      const int64_t from = pick(static_cast<int>(more + 1));
      if (d[0] * 2 - 1 <= n && d[0] > 1 && chance(0.4)) return sliced(v.expr, {range(0, d[0] * 2 - 1, 2)});
      if (chance(0.3) && from > 0) return sliced(v.expr, {range(from + d[0] - 1, from - 1, -1)});
      return sliced(v.expr, {chance(0.3) && from + d[0] < n ? range(from, from + d[0] - n, {})
                                                            : range(from, from + d[0], {})});
    }
    case 3: {  // a row
      auto fit = arrays(c, [&](const Visible& v) {
        const Array& a = v.value->a;
        return a.dtype == t && a.shape.size() == d.size() + 1 && a.shape[0] > 0 &&
               Dims(a.shape.begin() + 1, a.shape.end()) == d;
      });
      if (fit.empty()) break;
      const Visible v = of(fit);
      const int64_t n = v.value->a.shape[0];
      Part p;
      p.kind = Part::Kind::At;
      p.at = {chance(0.3) ? integer(-1 - pick(static_cast<int>(n))) : host_int(c, n)};
      return sliced(v.expr, {p});
    }
    case 4: {  // rows by an array of indices
      if (rank == 0) break;
      auto fit = arrays(c, [&](const Visible& v) {
        const Array& a = v.value->a;
        return a.dtype == t && !a.shape.empty() && a.shape[0] > 0 && a.shape.size() - 1 <= d.size() &&
               Dims(a.shape.begin() + 1, a.shape.end()) ==
                   Dims(d.end() - static_cast<int64_t>(a.shape.size() - 1), d.end());
      });
      if (fit.empty()) break;
      const Visible v = of(fit);
      const Dims of_index(d.begin(), d.end() - static_cast<int64_t>(v.value->a.shape.size() - 1));
      if (of_index.empty()) break;
      Part p;
      p.kind = Part::Kind::Array;
      p.at = {indices(c, of_index, v.value->a.shape[0])};
      if (chance(0.3) && of_index.size() == 1) return builtin("take", {v.expr, p.at[0]});
      return sliced(v.expr, {p});
    }
    case 5: {  // transposed
      if (rank < 2) break;
      Dims back(d.rbegin(), d.rend());
      return builtin("transpose", {array(c, t, back, depth - 1)});
    }
    case 6: {  // the same cells in another shape
      Dims other;
      const int64_t n = elements(d);
      for (const auto& v : arrays(
               c, [&](const Visible& v) { return elements(v.value->a.shape) == n && v.value->a.shape != d; }))
        if (other.empty() || chance(0.5)) other = v.value->a.shape;
      if (other.empty() && rank > 1) other = {n};
      if (n == 0 && chance(0.6)) other = of(std::vector<Dims>{{5, 0, 3}, {0}, {2, 0}, {0, 4}});
      if (other.empty() || elements(other) != n) break;
      Expr e = builtin("reshape", {array(c, t, other, depth - 1)});
      e.shape = d;
      return e;
    }
    case 7: {                       // turned by some places
      if (rank == 0 || d[0] < 2) {  // or with nothing
        if (rank == 0) break;
        Dims none = d;
        none[0] = 0;
        return builtin("concat", {leaf(c, t, d), chance(0.5) ? constant(t, none)
                                                             : sliced(leaf(c, t, d), {range(1, 1, {})})});
      }
      const Expr a = leaf(c, t, d);
      const int64_t k = 1 + pick(static_cast<int>(d[0] - 1));
      Expr e = builtin("concat", {sliced(a, {range(k, {}, {})}), sliced(a, {range({}, k, {})})});
      if (chance(0.3)) e.axis = 0;
      return e;
    }
    case 8: {  // repeated
      const Dims less = narrower(d);
      if (less == d) break;
      Expr e = builtin("broadcast_to", {array(c, t, less, depth - 1)});
      e.shape = d;
      return e;
    }
  }
  return arithmetic(c, t, d, depth);
}

Expr Generator::indices(Context& c, const Dims& d, int64_t below) {
  auto fit = arrays(c, [&](const Visible& v) {
    const Array& a = v.value->a;
    if (!is_integer(a.dtype) || a.shape != d) return false;
    for (const Cell& x : a.cells)
      if (x.i < 0 || x.i >= below) return false;
    return true;
  });
  if (!fit.empty() && chance(0.7)) return of(fit).expr;
  Expr n;
  n.kind = Expr::Kind::Make;
  n.text = "arange";
  n.args = {integer(elements(d))};
  Expr e = binary("%", binary("*", n, integer(pick(2) ? 3 : 7)), integer(below));
  if (d.size() != 1) {
    e = builtin("reshape", {e});
    e.shape = d;
  }
  return chance(0.2) ? cast(of(std::vector<DType>{DType::I32, DType::I16, DType::U8}), e) : e;
}

Expr Generator::reduced(Context& c, DType t, const Dims& d, int depth) {
  // Of an array that is there, where one fits; else of one that is made, over
  // an axis more.
  const auto axis = pick(static_cast<int>(d.size()) + 1);
  Dims from = d;
  from.insert(from.begin() + axis, of(extents_));
  if (d.empty() && chance(0.5)) from = any_shape();
  if (elements(from) > 300) return arithmetic(c, t, d, depth);
  std::string f;
  DType of_what = t;
  if (t == DType::Bool) {
    f = of(std::vector<std::string>{"any", "all", "max", "min"});
  } else if (t == DType::I64 && chance(0.5)) {
    f = of(std::vector<std::string>{"sum", "argmax", "argmin", "count_nonzero", "sum"});
    of_what = f == "sum" ? of(std::vector<DType>{DType::I64, DType::Bool, DType::I64, DType::I32, DType::I8})
                         : any_dtype();
  } else if (is_float(t)) {
    f = of(std::vector<std::string>{"sum", "sum", "max", "min", inexact_ ? "mean" : "sum"});
  } else {
    f = t == DType::U64 && chance(0.3) ? "sum" : of(std::vector<std::string>{"max", "min"});
  }
  Expr e = builtin(f, {array(c, of_what, from, depth - 1)});
  if (f == "count_nonzero") return e;  // of all axes alone
  if (!(d.empty() && (from.size() != 1 || chance(0.5))))
    e.axis = chance(0.5) ? axis : axis - static_cast<int64_t>(from.size());
  return e;
}

Expr Generator::arithmetic(Context& c, DType t, const Dims& d, int depth) {
  const Expr a = array(c, t, d, depth - 1);
  auto other = [&]() -> Expr {
    if (chance(0.35)) return small_number(c, t);
    return array(c, t, narrower(d), depth - 1);
  };
  if (t == DType::Bool) return mask(c, d, depth);
  std::string op = of(std::vector<std::string>{"+", "-", "*", "+", "-"});
  Expr b = other();
  if (is_integer(t) && chance(0.3)) {
    op = of(std::vector<std::string>{"&", "|", "^", "//", "%", "<<", ">>"});
    if (op == "//" || op == "%") b = integer(1 + pick(6));
    if (op == "<<" || op == ">>") b = integer(pick(4));
  }
  if (is_float(t) && chance(0.15)) {
    op = "/";
    b = chance(0.5)
            ? property::number(of(std::vector<double>{2, 3, 0.5, 7}))
            : binary("+",
                     builtin("square", {b.kind == Expr::Kind::Float || b.kind == Expr::Kind::Int ? a : b}),
                     integer(1));
  }
  return chance(0.25) ? binary(op, b.kind == Expr::Kind::Binary && op == "/" ? a : a, b)
         : (op == "+" || op == "*" || op == "-") && chance(0.3) ? binary(op, b, a)
                                                                : binary(op, a, b);
}

Expr Generator::elementwise(Context& c, DType t, const Dims& d, int depth) {
  const Expr a = array(c, t, d, depth - 1);
  if (t == DType::Bool) return mask(c, d, depth);
  switch (pick(7)) {
    case 0:
      return builtin(pick(2) ? "maximum" : "minimum",
                     {a, chance(0.4) ? small_number(c, t) : array(c, t, narrower(d), depth - 1)});
    case 1:
      return builtin(
          "where", {mask(c, d, depth - 1), a, chance(0.4) ? small_number(c, t) : array(c, t, d, depth - 1)});
    case 2: {
      std::vector<DType> from = {DType::F32, DType::I64, DType::I32, DType::F64};
      if (is_float(t)) from = dtypes_;
      const DType s = of(from);
      if (s == DType::Bool) break;
      return cast(t, array(c, s, d, depth - 1));
    }
    case 3:
      if (is_float(t)) return builtin("sqrt", {binary("+", builtin("abs", {a}), integer(1))});
      return is_unsigned(t) ? builtin("square", {a}) : builtin("abs", {a});
    case 4:
      if (is_float(t) && inexact_) {
        Expr x = builtin("clip", {a, property::number(-3), property::number(3)});
        return builtin(of(std::vector<std::string>{"exp", "sin", "cos", "tanh", "erf", "atan", "expm1"}),
                       {x});
      }
      if (is_float(t))
        return builtin(of(std::vector<std::string>{"floor", "ceil", "trunc", "round", "sign"}), {a});
      return unary("~", a);
    case 5: return is_unsigned(t) ? builtin("square", {a}) : unary("-", a);
    case 6: {
      Expr e;
      e.kind = Expr::Kind::Choose;
      e.args = {condition(c, chance(0.5)), a, array(c, t, d, depth - 1)};
      return e;
    }
  }
  return arithmetic(c, t, d, depth);
}

Expr Generator::mask(Context& c, const Dims& d, int depth) {
  auto fit =
      arrays(c, [&](const Visible& v) { return v.value->a.dtype == DType::Bool && v.value->a.shape == d; });
  if (!fit.empty() && chance(0.3)) {
    const Expr m = of(fit).expr;
    if (chance(0.4)) return m;
    if (chance(0.4)) return unary("~", m);
    return binary(of(std::vector<std::string>{"&", "|", "^", "==", "!=", "<", ">="}), m, of(fit).expr);
  }
  if (depth > 0 && chance(0.15))
    return binary(of(std::vector<std::string>{"<", "<=", ">", ">=", "==", "!=", "&", "|", "^"}),
                  mask(c, d, depth - 1), mask(c, d, depth - 1));
  DType t = any_dtype();
  while (t == DType::Bool) t = any_dtype();
  const Expr a = depth > 0 ? array(c, t, d, depth - 1) : leaf(c, t, d);
  const Expr b = chance(0.5) ? small_number(c, t) : leaf(c, t, narrower(d));
  return binary(of(std::vector<std::string>{"<", "<=", ">", ">=", "==", "!="}), a, b);
}

Expr Generator::condition(Context& c, bool device) {
  if (!device) {
    std::vector<Expr> fit;
    for (const Visible& v : visible(c))
      if (v.value->kind == Value::Kind::Int) fit.push_back(v.expr);
    Expr a = fit.empty() ? integer(pick(4)) : of(fit);
    Expr e = binary(of(std::vector<std::string>{"<", ">", "==", "!=", "<=", ">="}), a, integer(pick(5)));
    if (chance(0.1)) e = binary(pick(2) ? "and" : "or", e, binary("<", integer(pick(3)), integer(pick(3))));
    return e;
  }
  const Dims d = of(std::vector<Dims>{{}, {}, any_shape(2)});
  Expr m = mask(c, d, 1);
  if (m.kind == Expr::Kind::Binary && m.args[0].kind != Expr::Kind::Name) m.args[0] = leaf(c, any_dtype(), d);
  return d.empty() ? m : builtin(pick(2) ? "any" : "all", {m});
}

Expr Generator::drawn_array(Context& c, DType t, const Dims& d, int depth) {
  if (depth <= 0 || chance(0.2)) return leaf(c, t, d);
  switch (pick(12)) {
    case 0:
    case 1:
    case 2:
    case 3: return arithmetic(c, t, d, depth);
    case 4:
    case 5: return elementwise(c, t, d, depth);
    case 6:
    case 7:
    case 8: return viewed(c, t, d, depth);
    case 9: return reduced(c, t, d, depth);
    case 10:
      if (d.size() == 2 && t != DType::Bool) {
        const int64_t k = of(extents_);
        return binary("@", array(c, t, {d[0], k}, depth - 1), array(c, t, {k, d[1]}, depth - 1));
      }
      if (d.empty() && t != DType::Bool) {
        const Dims k = {of(extents_)};
        return binary("@", array(c, t, k, depth - 1), array(c, t, k, depth - 1));
      }
      if (d.size() == 1 && t != DType::Bool && chance(0.5)) {
        const int64_t k = of(extents_);
        return binary("@", array(c, t, {d[0], k}, depth - 1), array(c, t, {k}, depth - 1));
      }
      return arithmetic(c, t, d, depth);
    default:
      if (auto e = call(c, t, d)) return *e;
      return leaf(c, t, d);
  }
}

Expr Generator::array(Context& c, DType t, const Dims& d, int depth) {
  for (int k = 0; k < 3; ++k) {
    Expr e = drawn_array(c, t, d, depth);
    if (evaluates(c, e, t, d)) return e;
  }
  return constant(t, d);
}

}  // namespace gk::property
