// Builtins of the model that are not elementwise, and indexing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/property/values.h"

namespace gk::property {

namespace {

int64_t normal_axis(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) throw Invalid("no such axis");
  return axis < 0 ? axis + n : axis;
}

// Whether a sum of these terms is exact in every order: all are multiples of
// one power of two, and their magnitudes together need no more than `bits`
// bits.
bool exact_in_any_order(const std::vector<double>& terms, int bits) {
  int lowest = std::numeric_limits<int>::max();
  double sum = 0;
  for (double v : terms) {
    if (v == 0) continue;
    if (!std::isfinite(v)) return false;
    int e = 0;
    double m = std::fabs(std::frexp(v, &e));
    int digits = 0;
    while (m != std::floor(m)) {
      m *= 2;
      ++digits;
    }
    lowest = std::min(lowest, e - digits);
    sum += std::fabs(v);
  }
  return sum == 0 || (lowest > -120 && std::ldexp(sum, -lowest) <= std::ldexp(1.0, bits));
}

int sum_bits(DType t) { return t == DType::F64 ? 53 : 24; }
double epsilon(DType t) {
  return t == DType::F64 ? 0x1p-52 : t == DType::F16 ? 0x1p-10 : t == DType::BF16 ? 0x1p-7 : 0x1p-23;
}

// The sum of terms that are exact products or cells, with the cells' own
// bounds.
Cell float_sum(DType t, const std::vector<double>& terms, double err) {
  double sum = 0, size = 0;
  for (double v : terms) {
    sum += v;
    size += std::fabs(v);
  }
  Array a{DType::F64, {}, {Cell{0, sum, 0}}};
  if (err == 0 && exact_in_any_order(terms, sum_bits(t))) return converted(a, t).cells[0];
  if (terms.size() == 1 && err == 0) return converted(a, t).cells[0];
  if (!std::isfinite(sum)) throw Invalid("a sum that is not finite");
  a.cells[0].err =
      err + static_cast<double>(terms.size() + 1) * size * (t == DType::F64 ? 0x1p-52 : 0x1p-23) + 1e-300;
  return converted(a, t).cells[0];
}

// One reduction over the cells of one result.
Cell reduced(const std::string& f, DType t, DType result, const std::vector<Cell>& cells) {
  Cell r;
  const bool floats = is_floating(t);
  if (f == "sum" || f == "mean") {
    if (!floats) {
      int64_t total = 0;
      for (const Cell& c : cells)
        total = static_cast<int64_t>(static_cast<uint64_t>(total) + static_cast<uint64_t>(c.i));
      if (f == "sum") return converted(Array{DType::I64, {}, {Cell{total, 0, 0}}}, result).cells[0];
      if (std::abs(total) > (1 << 24)) throw Invalid("a mean of large integers");
      const double m = static_cast<double>(total) / static_cast<double>(cells.size());
      const bool sure = m == static_cast<double>(static_cast<float>(m)) &&
                        std::ldexp(m, 10) == std::trunc(std::ldexp(m, 10));
      return converted(Array{DType::F64, {}, {Cell{0, m, sure ? 0 : std::fabs(m) * 0x1p-21}}}, result)
          .cells[0];
    }
    std::vector<double> terms;
    double err = 0;
    for (const Cell& c : cells) {
      terms.push_back(c.f);
      err += c.err;
    }
    r = float_sum(f == "mean" && t != DType::F64 ? DType::F32 : t, terms, err);
    if (f == "sum") return r;
    const auto n = static_cast<double>(cells.size());
    const double m = r.f / n;
    if (!std::isfinite(m)) throw Invalid("a mean that is not finite");
    return converted(Array{DType::F64, {}, {Cell{0, m, r.err / n + std::fabs(m) * 4 * epsilon(t) + 1e-300}}},
                     result)
        .cells[0];
  }
  if (f == "prod") {
    if (floats) throw Invalid("products of floats");
    uint64_t p = 1;
    for (const Cell& c : cells) p *= static_cast<uint64_t>(c.i);
    return converted(Array{DType::I64, {}, {Cell{static_cast<int64_t>(p), 0, 0}}}, result).cells[0];
  }
  if (f == "any" || f == "all") {
    r.i = f == "all";
    for (const Cell& c : cells) r.i = f == "all" ? (r.i && c.i) : (r.i || c.i);
    return r;
  }
  if (f == "count_nonzero") {
    for (const Cell& c : cells) {
      if (floats && c.err > 0 && std::fabs(c.f) <= c.err) throw Invalid("a decision within the bounds");
      r.i += floats ? c.f != 0 : c.i != 0;
    }
    return r;
  }
  // min max argmin argmax
  if (cells.empty()) throw Invalid("an extreme of nothing");
  const bool greatest = f == "max" || f == "argmax", place = f[0] == 'a';
  size_t best = 0;
  double err = 0;
  for (size_t k = 0; k < cells.size(); ++k) {
    const Cell &c = cells[k], &b = cells[best];
    err = std::max(err, c.err);
    bool better = false;
    if (floats)
      better = !std::isnan(b.f) && (std::isnan(c.f) || (greatest ? c.f > b.f : c.f < b.f));
    else if (t == DType::U64)
      better = greatest ? static_cast<uint64_t>(c.i) > static_cast<uint64_t>(b.i)
                        : static_cast<uint64_t>(c.i) < static_cast<uint64_t>(b.i);
    else
      better = greatest ? c.i > b.i : c.i < b.i;
    if (better) best = k;
  }
  if (place) {
    for (size_t k = 0; k < cells.size(); ++k)
      if (k != best && err > 0 && std::fabs(cells[k].f - cells[best].f) <= 2 * err)
        throw Invalid("a decision within the bounds");
    r.i = static_cast<int64_t>(best);
    return r;
  }
  r = cells[best];
  r.err = err;
  return r;
}

DType reduced_dtype(const std::string& f, DType t) {
  if (f == "any" || f == "all") return DType::Bool;
  if (f == "argmin" || f == "argmax" || f == "count_nonzero") return DType::I64;
  if (f == "mean") return is_floating(t) ? t : DType::F32;
  if ((f == "sum" || f == "prod") && !is_floating(t))
    return t == DType::U8 || t == DType::U16 || t == DType::U32 || t == DType::U64 ? DType::U64 : DType::I64;
  return t;
}

Value reduce(const Expr& call, const Array& a) {
  const std::string& f = call.text;
  if ((f == "any" || f == "all") && a.dtype != DType::Bool) throw Invalid("any of numbers");
  if (f == "mean" && a.cells.empty()) throw Invalid("a mean of nothing");
  const DType t = reduced_dtype(f, a.dtype);
  const int64_t axis = call.axis ? normal_axis(*call.axis, a.shape.size()) : -1;
  Array r{t, {}, {}};
  for (size_t k = 0; k < a.shape.size(); ++k)
    if (axis >= 0 && static_cast<int64_t>(k) != axis)
      r.shape.push_back(a.shape[k]);
    else if (call.keepdims)
      r.shape.push_back(1);
  std::vector<std::vector<Cell>> groups(static_cast<size_t>(elements(r.shape)));
  int64_t inner = 1;
  if (axis >= 0)
    for (size_t k = static_cast<size_t>(axis) + 1; k < a.shape.size(); ++k) inner *= a.shape[k];
  const int64_t along = axis >= 0 ? a.shape[static_cast<size_t>(axis)] : 1;
  for (size_t p = 0; p < a.cells.size(); ++p) {
    const auto at = static_cast<int64_t>(p);
    const int64_t group = axis < 0 ? 0 : at / (inner * along) * inner + at % inner;
    groups[static_cast<size_t>(group)].push_back(a.cells[p]);
  }
  for (const auto& g : groups) r.cells.push_back(reduced(f, a.dtype, t, g));
  return of_array(std::move(r));
}

Value product(const Array& x, const Array& y) {
  const auto t = promote(x.dtype, y.dtype);
  if (!t || x.dtype != y.dtype || *t == DType::Bool) throw Invalid("products of two dtypes");
  if (x.shape.empty() || y.shape.empty() || x.shape.size() > 2 || y.shape.size() > 2) throw Invalid("ranks");
  const int64_t n = x.shape.size() == 2 ? x.shape[0] : 1, k = x.shape.back(),
                m = y.shape.size() == 2 ? y.shape[1] : 1;
  if (y.shape[0] != k) throw Invalid("inner extents");
  Array r{*t, {}, {}};
  if (x.shape.size() == 2) r.shape.push_back(n);
  if (y.shape.size() == 2) r.shape.push_back(m);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) {
      std::vector<double> terms;
      double err = 0;
      uint64_t total = 0;
      bool products_exact = true;
      for (int64_t q = 0; q < k; ++q) {
        const Cell &a = x.cells[static_cast<size_t>(i * k + q)], &b = y.cells[static_cast<size_t>(q * m + j)];
        total += static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i);
        const double p = a.f * b.f;
        if (std::fma(a.f, b.f, -p) != 0) products_exact = false;
        terms.push_back(p);
        err += std::fabs(a.f) * b.err + std::fabs(b.f) * a.err + a.err * b.err;
      }
      if (!is_floating(*t)) {
        r.cells.push_back(
            converted(Array{DType::I64, {}, {Cell{static_cast<int64_t>(total), 0, 0}}}, *t).cells[0]);
        continue;
      }
      if (!products_exact || terms.size() == 1)
        err += std::fabs(terms.empty() ? 0 : terms[0]) * 0x1p-22 + 1e-300;
      if (*t == DType::F16 || *t == DType::BF16)
        if (!exact_in_any_order(terms, 24)) err += epsilon(*t) * 1e-3;
      r.cells.push_back(float_sum(*t, terms, err));
    }
  return of_array(std::move(r));
}

// All arrays in one dtype, as `concat` and `stack` take them.
std::vector<Array> alike(const std::vector<Value>& args) {
  DType t = alone(args.at(0)).dtype;
  for (const Value& v : args)
    if (!v.literal) t = alone(v).dtype;
  std::vector<Array> r;
  for (const Value& v : args) {
    if (!v.array() || (!v.literal && v.a.dtype != t)) throw Invalid("parts of several dtypes");
    r.push_back(as_array(v, t));
  }
  return r;
}

Value concat(const Expr& call, const std::vector<Value>& args) {
  std::vector<Array> as = alike(args);
  const size_t rank = as[0].shape.size();
  if (rank == 0) throw Invalid("parts of rank 0");
  const auto axis = static_cast<size_t>(normal_axis(call.axis.value_or(0), rank));
  Array r{as[0].dtype, as[0].shape, {}};
  r.shape[axis] = 0;
  int64_t outer = 1;
  for (size_t k = 0; k < axis; ++k) outer *= r.shape[k];
  for (const Array& a : as) {
    if (a.shape.size() != rank) throw Invalid("parts of several ranks");
    for (size_t k = 0; k < rank; ++k)
      if (k != axis && a.shape[k] != r.shape[k]) throw Invalid("parts of several extents");
    r.shape[axis] += a.shape[axis];
  }
  for (int64_t o = 0; o < outer; ++o)
    for (const Array& a : as) {
      const int64_t run = outer ? static_cast<int64_t>(a.cells.size()) / outer : 0;
      r.cells.insert(r.cells.end(), a.cells.begin() + o * run, a.cells.begin() + (o + 1) * run);
    }
  return of_array(std::move(r));
}

Value transpose(const Array& a, Dims order) {
  if (order.empty())
    for (size_t k = a.shape.size(); k-- > 0;) order.push_back(static_cast<int64_t>(k));
  Dims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t k = 0; k < sorted.size(); ++k)
    if (sorted[k] != static_cast<int64_t>(k) || sorted.size() != a.shape.size())
      throw Invalid("not an order");
  Array r{a.dtype, {}, {}};
  std::vector<int64_t> strides(a.shape.size(), 1);
  for (size_t k = a.shape.size(); k-- > 1;) strides[k - 1] = strides[k] * a.shape[k];
  for (int64_t k : order) r.shape.push_back(a.shape[static_cast<size_t>(k)]);
  const int64_t n = elements(r.shape);
  for (int64_t p = 0; p < n; ++p) {
    int64_t rest = p, place = 0;
    for (size_t k = order.size(); k-- > 0;) {
      place += rest % r.shape[k] * strides[static_cast<size_t>(order[k])];
      rest /= r.shape[k];
    }
    r.cells.push_back(a.cells[static_cast<size_t>(place)]);
  }
  return of_array(std::move(r));
}

Value where(const std::vector<Value>& args) {
  const Value &yes = args[1], &no = args[2];
  if (args[0].kind == Value::Kind::Bool && yes.number() && no.number()) {
    const Value& v = args[0].n != 0 ? yes : no;
    return yes.kind == no.kind ? v : of_float(v.kind == Value::Kind::Int ? static_cast<double>(v.n) : v.f);
  }
  const Array m = alone(args[0]);
  if (m.dtype != DType::Bool) throw Invalid("a condition of numbers");
  const DType t = joint(args[1], args[2]);
  const Array x = as_array(args[1], t), y = as_array(args[2], t);
  const Dims d = broadcast(broadcast(m.shape, x.shape), y.shape);
  const Array c = broadcast_to(m, d), p = broadcast_to(x, d), q = broadcast_to(y, d);
  Array r{t, d, {}};
  for (size_t k = 0; k < c.cells.size(); ++k) r.cells.push_back(c.cells[k].i ? p.cells[k] : q.cells[k]);
  return of_array(std::move(r));
}

}  // namespace

Value apply_builtin(const Expr& call, const std::vector<Value>& args) {
  const std::string& f = call.text;
  auto array = [&](size_t k) -> const Array& {
    if (!args.at(k).array()) throw Invalid("not an array");
    return args[k].a;
  };
  if (f == "maximum" || f == "minimum") return apply_binary(f, args[0], args[1]);
  if (f == "clip") return apply_binary("minimum", apply_binary("maximum", args[0], args[1]), args[2]);
  if (f == "where") return where(args);
  for (const char* r :
       {"sum", "mean", "prod", "any", "all", "count_nonzero", "min", "max", "argmin", "argmax"})
    if (f == r) return reduce(call, array(0));
  if (f == "matmul") return product(array(0), array(1));
  if (f == "concat") return concat(call, args);
  if (f == "stack") {
    Expr along = call;
    along.axis = 0;
    std::vector<Value> rows = args;
    for (Value& v : rows) {
      if (!v.array()) throw Invalid("not an array");
      if (v.a.shape != rows[0].a.shape && !rows[0].a.shape.empty() && &v != &rows[0]) {
        Dims d = rows[0].a.shape;
        d.erase(d.begin());
        if (v.a.shape != d) throw Invalid("rows of several extents");
      }
      v.a.shape.insert(v.a.shape.begin(), 1);
    }
    return concat(along, rows);
  }
  if (f == "reshape") {
    if (elements(call.shape) != static_cast<int64_t>(array(0).cells.size()))
      throw Invalid("another number of cells");
    Array r = array(0);
    r.shape = call.shape;
    return of_array(std::move(r));
  }
  if (f == "broadcast_to") return of_array(broadcast_to(array(0), call.shape));
  if (f == "transpose") return transpose(array(0), call.shape);
  if (f == "copy") return settled(args[0]);
  if (f == "zeros_like" || f == "ones_like") {
    Value v = settled(args[0]);
    std::function<void(Value&)> fill = [&](Value& x) {
      for (Value& p : x.parts) fill(p);
      for (Cell& c : x.a.cells) c = f[0] == 'z' ? Cell{} : Cell{1, 1, 0};
    };
    if (!v.array() && v.kind != Value::Kind::Record) throw Invalid("not an array");
    fill(v);
    return v;
  }
  if (f == "take") {
    const Array& x = array(0);
    if (x.shape.empty()) throw Invalid("rank 0");
    const auto axis = static_cast<size_t>(normal_axis(call.axis.value_or(0), x.shape.size()));
    std::vector<Part> parts(axis + 1);
    parts[axis].kind = Part::Kind::Array;
    Chosen c = choose(x.shape, parts, {args[1]});
    Array r{x.dtype, c.shape, {}};
    for (int64_t p : c.places) r.cells.push_back(x.cells[static_cast<size_t>(p)]);
    return of_array(std::move(r));
  }
  if (f == "len") {
    if (args[0].kind == Value::Kind::List) return of_int(static_cast<int64_t>(args[0].parts.size()));
    if (array(0).shape.empty()) throw Invalid("rank 0");
    return of_int(array(0).shape[0]);
  }
  if (f == "size") return of_int(static_cast<int64_t>(array(0).cells.size()));
  if (f == "item") {
    const Array& x = array(0);
    if (x.cells.size() != 1 || !x.exact() || x.dtype == DType::Bool) throw Invalid("no item");
    if (is_floating(x.dtype)) return of_float(x.cells[0].f);
    if (x.dtype == DType::U64) return of_int(static_cast<uint64_t>(x.cells[0].i));
    return of_int(x.cells[0].i);
  }
  if (args.size() != 1) throw Invalid("no builtin " + f);
  return apply_unary(f, args[0]);
}

Chosen choose(const Dims& shape, const std::vector<Part>& parts, const std::vector<Value>& at) {
  // Axis by axis: the indices that are taken, and the extents which they leave.
  struct Axis {
    std::vector<int64_t> taken;
    Dims left;
  };
  std::vector<Axis> axes;
  Dims out;
  size_t axis = 0, next = 0;
  auto whole = [&](int64_t n) {
    Axis a;
    for (int64_t k = 0; k < n; ++k) a.taken.push_back(k);
    a.left = {n};
    return a;
  };
  for (const Part& p : parts) {
    if (p.kind == Part::Kind::New) {
      axes.push_back({{0}, {1}});
      continue;
    }
    if (axis >= shape.size()) throw Invalid("too many indices");
    const int64_t n = shape[axis++];
    if (p.kind == Part::Kind::All) {
      axes.push_back(whole(n));
    } else if (p.kind == Part::Kind::Range) {
      const int64_t step = p.step.value_or(1);
      if (step == 0) throw Invalid("a step of 0");
      auto bound = [&](std::optional<int64_t> v, int64_t otherwise) {
        if (!v) return otherwise;
        int64_t b = *v < 0 ? *v + n : *v;
        return step > 0 ? std::clamp<int64_t>(b, 0, n) : std::clamp<int64_t>(b, -1, n - 1);
      };
      const int64_t from = bound(p.from, step > 0 ? 0 : n - 1), to = bound(p.to, step > 0 ? n : -1);
      Axis a;
      for (int64_t k = from; step > 0 ? k < to : k > to; k += step) a.taken.push_back(k);
      a.left = {static_cast<int64_t>(a.taken.size())};
      axes.push_back(a);
    } else {
      const Value& v = at.at(next++);
      Array i = v.kind == Value::Kind::Int ? as_array(v, DType::I64) : alone(v);
      if (is_floating(i.dtype) || i.dtype == DType::Bool || (p.kind == Part::Kind::At && !i.shape.empty()))
        throw Invalid("no index");
      Axis a;
      for (const Cell& c : i.cells) {
        const int64_t k = c.i < 0 ? c.i + n : c.i;
        if (k < 0 || k >= n) throw Invalid("an index out of range");
        a.taken.push_back(k);
      }
      a.left = i.shape;
      axes.push_back(a);
    }
  }
  for (; axis < shape.size(); ++axis) axes.push_back(whole(shape[axis]));

  Chosen r;
  for (const Axis& a : axes) r.shape.insert(r.shape.end(), a.left.begin(), a.left.end());
  if (r.shape.size() > 8 || elements(r.shape) > 4000) throw Invalid("too large");
  r.places = {0};
  axis = 0;
  size_t part = 0;
  for (const Axis& a : axes) {
    const bool fresh = part < parts.size() && parts[part].kind == Part::Kind::New;
    ++part;
    if (fresh) continue;
    const int64_t n = shape[axis++];
    std::vector<int64_t> places;
    for (int64_t p : r.places)
      for (int64_t k : a.taken) places.push_back(p * n + k);
    r.places = std::move(places);
  }
  return r;
}

}  // namespace gk::property
