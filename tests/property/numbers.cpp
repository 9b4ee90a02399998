// Arithmetic on single cells, and elementwise operations.
#include <cmath>
#include <limits>

#include "tests/property/values.h"

namespace gk::property {

namespace {

using Wide = __int128;

int precision(DType t) {
  switch (t) {
    case DType::F64: return 53;
    case DType::F32: return 24;
    case DType::F16: return 11;
    default: return 8;
  }
}

double ulp(DType t, double v) {
  if (!std::isfinite(v)) return 0;
  int e = 0;
  std::frexp(v, &e);
  const int least = t == DType::F64 ? -1074 : t == DType::F16 ? -24 : t == DType::BF16 ? -133 : -149;
  return std::ldexp(1.0, std::max(e - precision(t), least));
}

double rounded(DType t, double v) {
  switch (t) {
    case DType::F64: return v;
    case DType::F32: return static_cast<float>(v);
    case DType::F16: return f16_to_f32(f64_to_f16(v));
    default: return bf16_to_f32(f64_to_bf16(v));
  }
}

int64_t wrapped(DType t, Wide v) {
  switch (t) {
    case DType::I8: return static_cast<int8_t>(v);
    case DType::I16: return static_cast<int16_t>(v);
    case DType::I32: return static_cast<int32_t>(v);
    case DType::U8: return static_cast<uint8_t>(v);
    case DType::U16: return static_cast<uint16_t>(v);
    case DType::U32: return static_cast<uint32_t>(v);
    case DType::Bool: return v != 0;
    default: return static_cast<int64_t>(v);
  }
}

Wide wide(DType t, int64_t i) { return t == DType::U64 ? static_cast<Wide>(static_cast<uint64_t>(i)) : i; }

Wide least(DType t) { return is_signed(t) ? -(static_cast<Wide>(1) << (bits(t) - 1)) : 0; }
Wide greatest(DType t) { return (static_cast<Wide>(1) << (is_signed(t) ? bits(t) - 1 : bits(t))) - 1; }

Cell float_cell(DType t, double v, double err) {
  Cell c;
  c.f = rounded(t, v);
  if (std::isnan(c.f)) c.f = std::numeric_limits<double>::quiet_NaN();
  c.err = err;
  if (err > 0 && (!std::isfinite(c.f) || !std::isfinite(err) || err > 1e-3 + std::fabs(c.f) * 0.05))
    throw Invalid("too inexact");
  return c;
}

Wide floor_div(Wide a, Wide b) {
  Wide q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

void unsure_if(bool unsure) {
  if (unsure) throw Invalid("a decision within the bounds");
}

bool comparison(const std::string& op) {
  return op == "<" || op == "<=" || op == ">" || op == ">=" || op == "==" || op == "!=";
}

template <class T>
bool compare(const std::string& op, T a, T b) {
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  return (op == "==") == (a == b);
}

Cell binary_float(const std::string& op, DType t, const Cell& a, const Cell& b) {
  const double x = a.f, y = b.f, e = a.err + b.err;
  if (comparison(op)) {
    unsure_if(e > 0 && std::fabs(x - y) <= e);
    Cell c;
    c.i = compare(op, x, y);
    return c;
  }
  auto result = [&](double v, double err) { return float_cell(t, v, e > 0 ? err + ulp(t, v) : 0); };
  if (op == "+") return result(x + y, e);
  if (op == "-") return result(x - y, e);
  if (op == "*") return result(x * y, std::fabs(x) * b.err + std::fabs(y) * a.err + a.err * b.err);
  if (op == "/") {
    unsure_if(e > 0 && std::fabs(y) <= 4 * b.err);
    return result(x / y, (a.err + std::fabs(x / y) * b.err) / (std::fabs(y) - b.err));
  }
  if (op == "maximum" || op == "minimum") {
    if (std::isnan(x) || std::isnan(y)) return float_cell(t, x + y, 0);
    return float_cell(t, (op == "maximum") == (x > y) ? x : y, e);
  }
  throw Invalid("floats have no " + op);
}

Cell binary_integer(const std::string& op, DType t, const Cell& a, const Cell& b) {
  const Wide x = wide(t, a.i), y = wide(t, b.i);
  Cell c;
  auto result = [&](Wide v) { c.i = wrapped(t, v); };
  if (comparison(op)) {
    c.i = compare(op, x, y);
  } else if (op == "+") {
    result(x + y);
  } else if (op == "-") {
    result(x - y);
  } else if (op == "*") {  // of the low halves, which is all that is kept
    c.i = wrapped(t, static_cast<Wide>(static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i)));
  } else if (op == "&") {
    c.i = wrapped(t, a.i & b.i);
  } else if (op == "|") {
    c.i = wrapped(t, a.i | b.i);
  } else if (op == "^") {
    c.i = wrapped(t, a.i ^ b.i);
  } else if (op == "maximum") {
    result(x > y ? x : y);
  } else if (op == "minimum") {
    result(x < y ? x : y);
  } else if (op == "//" || op == "%") {
    if (y == 0) throw Invalid("a division by zero");
    const Wide q = floor_div(x, y);
    result(op == "//" ? q : x - q * y);
  } else if (op == "<<") {
    if (y < 0) throw Invalid("a negative shift");
    result(y >= bits(t) ? 0 : static_cast<Wide>(static_cast<uint64_t>(a.i) << static_cast<int>(y)));
  } else if (op == ">>") {
    if (y < 0) throw Invalid("a negative shift");
    result(y >= bits(t) ? (x < 0 ? -1 : 0) : x >> static_cast<int>(y));
  } else {
    throw Invalid("integers have no " + op);
  }
  return c;
}

Cell binary_bool(const std::string& op, const Cell& a, const Cell& b) {
  Cell c;
  if (comparison(op))
    c.i = compare(op, a.i, b.i);
  else if (op == "&")
    c.i = a.i & b.i;
  else if (op == "|")
    c.i = a.i | b.i;
  else if (op == "^")
    c.i = a.i ^ b.i;
  else
    throw Invalid("bools have no " + op);
  return c;
}

Value host_binary(const std::string& op, const Value& a, const Value& b) {
  const bool ints = a.kind == Value::Kind::Int && b.kind == Value::Kind::Int;
  const double x = a.kind == Value::Kind::Int ? static_cast<double>(a.n) : a.f;
  const double y = b.kind == Value::Kind::Int ? static_cast<double>(b.n) : b.f;
  if (comparison(op)) return of_bool(ints ? compare(op, a.n, b.n) : compare(op, x, y));
  if (op == "/") {
    if (y == 0) throw Invalid("a division by zero");
    return of_float(x / y);
  }
  if (ints) {
    if (op == "+") return of_int(a.n + b.n);
    if (op == "-") return of_int(a.n - b.n);
    if (op == "*") return of_int(a.n * b.n);
    if (op == "//" || op == "%") {
      if (b.n == 0) throw Invalid("a division by zero");
      const Wide q = floor_div(a.n, b.n);
      return of_int(op == "//" ? q : a.n - q * b.n);
    }
    if (op == "maximum") return of_int(a.n > b.n ? a.n : b.n);
    if (op == "minimum") return of_int(a.n < b.n ? a.n : b.n);
  }
  if (op == "+") return of_float(x + y);
  if (op == "-") return of_float(x - y);
  if (op == "*") return of_float(x * y);
  if (op == "maximum" && !std::isnan(x) && !std::isnan(y)) return of_float(x > y ? x : y);
  if (op == "minimum" && !std::isnan(x) && !std::isnan(y)) return of_float(x < y ? x : y);
  throw Invalid("host numbers have no " + op);
}

Cell converted(const Cell& c, DType from, DType to) {
  if (from == to) return c;
  Cell r;
  if (is_floating(to)) {
    if (is_floating(from)) return float_cell(to, c.f, c.err > 0 ? c.err + ulp(to, c.f) : 0);
    const Wide v = wide(from, c.i);
    if (to == DType::F32) {
      r.f = static_cast<float>(v);
    } else {
      if (v > (Wide{1} << 53) || v < -(Wide{1} << 53)) throw Invalid("an integer that is rounded twice");
      r.f = rounded(to, static_cast<double>(v));
    }
    return r;
  }
  if (!is_floating(from)) {
    r.i = wrapped(to, wide(from, c.i));
    return r;
  }
  if (to == DType::Bool) {
    unsure_if(c.err > 0 && std::fabs(c.f) <= c.err);
    r.i = std::isnan(c.f) || c.f != 0;
    return r;
  }
  unsure_if(c.err > 0 && std::trunc(c.f - c.err) != std::trunc(c.f + c.err));
  if (std::isnan(c.f)) return r;
  const double v = std::trunc(c.f);
  if (v <= static_cast<double>(least(to)))
    r.i = wrapped(to, least(to));
  else if (v >= static_cast<double>(greatest(to)))
    r.i = wrapped(to, greatest(to));
  else
    r.i = wrapped(to, static_cast<Wide>(v));
  return r;
}

Array bool_array(const Value& v) {
  if (v.kind == Value::Kind::Bool) return {DType::Bool, {}, {Cell{v.n != 0 ? 1 : 0, 0, 0}}};
  if (!v.array()) throw Invalid("not a bool");
  return v.a;
}

double exactly(const std::string& f, double x) {
  if (f == "floor") return std::floor(x);
  if (f == "ceil") return std::ceil(x);
  if (f == "trunc") return std::trunc(x);
  if (f == "round") return std::nearbyint(x);
  return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;  // sign
}

double inexactly(const std::string& f, double x) {
  if (f == "exp") return std::exp(x);
  if (f == "sin") return std::sin(x);
  if (f == "cos") return std::cos(x);
  if (f == "tanh") return std::tanh(x);
  if (f == "erf") return std::erf(x);
  if (f == "atan") return std::atan(x);
  if (f == "log1p") return std::log1p(x);
  if (f == "expm1") return std::expm1(x);
  throw Invalid("no function " + f);
}

Cell unary_float(const std::string& f, DType t, const Cell& c) {
  if (f == "-") return float_cell(t, -c.f, c.err);
  if (f == "abs") return float_cell(t, std::fabs(c.f), c.err);
  if (f == "sqrt") {
    unsure_if(c.err > 0 && c.f <= 4 * c.err);
    const double r = std::sqrt(c.f);
    return float_cell(t, r, c.err > 0 ? c.err / r + ulp(t, r) : 0);
  }
  if (f == "square") return binary_float("*", t, c, c);
  if (f == "floor" || f == "ceil" || f == "trunc" || f == "round" || f == "sign") {
    unsure_if(c.err > 0 && exactly(f, c.f - c.err) != exactly(f, c.f + c.err));
    return float_cell(t, exactly(f, c.f), 0);
  }
  if (!std::isfinite(c.f) || std::fabs(c.f) > 30) throw Invalid("an argument far out");
  const double r = inexactly(f, c.f);
  const double e = c.err > 0 ? 2 * std::max(std::fabs(inexactly(f, c.f + c.err) - r),
                                            std::fabs(inexactly(f, c.f - c.err) - r))
                             : 0;
  return float_cell(t, r, e + 8 * ulp(t, r) + 1e-300);
}

}  // namespace

bool Array::exact() const {
  for (const Cell& c : cells)
    if (c.err > 0) return false;
  return true;
}

Value of_int(__int128 v) {
  if (v > (static_cast<Wide>(1) << 64) - 1 || v < -(static_cast<Wide>(1) << 63))
    throw Invalid("a number too large");
  Value r;
  r.kind = Value::Kind::Int;
  r.n = v;
  return r;
}
Value of_float(double v) {
  if (!std::isfinite(v)) throw Invalid("a number that is not finite");
  Value r;
  r.kind = Value::Kind::Float;
  r.f = v;
  return r;
}
Value of_bool(bool v) {
  Value r;
  r.kind = Value::Kind::Bool;
  r.n = v ? 1 : 0;
  return r;
}
Value of_array(Array a) {
  Value r;
  r.kind = Value::Kind::Array;
  r.a = std::move(a);
  return r;
}

Value settled(Value v) {
  v.literal = false;
  if (v.array()) v.parts.clear();
  return v;
}

int64_t elements(const Dims& d) {
  int64_t n = 1;
  for (int64_t e : d) n *= e;
  return n;
}

bool is_floating(DType t) { return is_float(t); }

Array converted(const Array& a, DType t) {
  Array r{t, a.shape, {}};
  r.cells.reserve(a.cells.size());
  for (const Cell& c : a.cells) r.cells.push_back(converted(c, a.dtype, t));
  return r;
}

Array as_array(const Value& v, DType t) {
  Array r{t, {}, {Cell{}}};
  if (v.literal) {
    r = {t, v.a.shape, {}};
    for (const Value& n : v.parts) r.cells.push_back(as_array(n, t).cells[0]);
    return r;
  }
  if (v.kind == Value::Kind::Int) {
    if (t == DType::Bool) throw Invalid("a number that meets bools");
    if (is_floating(t)) {
      if (v.n > (Wide{1} << 53) || v.n < -(Wide{1} << 53)) throw Invalid("an integer that is rounded twice");
      r.cells[0].f = rounded(t, static_cast<double>(v.n));
      if (!std::isfinite(r.cells[0].f)) throw Invalid("out of range");
    } else {
      if (v.n < least(t) || v.n > greatest(t)) throw Invalid("out of range");
      r.cells[0].i = wrapped(t, v.n);
    }
    return r;
  }
  if (v.kind == Value::Kind::Float) {
    if (!is_floating(t)) throw Invalid("a float that meets integers");
    r.cells[0].f = rounded(t, v.f);
    if (!std::isfinite(r.cells[0].f)) throw Invalid("out of range");
    return r;
  }
  if (v.kind == Value::Kind::Bool) return converted(bool_array(v), t);
  if (!v.array()) throw Invalid("not an array");
  return converted(v.a, t);
}

Array alone(const Value& v) {
  if (v.kind == Value::Kind::Int) return as_array(v, DType::I64);
  if (v.kind == Value::Kind::Float) return as_array(v, DType::F32);
  return v.array() ? v.a : bool_array(v);
}

DType joint(const Value& a, const Value& b) {
  auto weak = [](const Value& number, const Value& other) {
    const DType t = alone(other).dtype;
    if (number.kind == Value::Kind::Float && !is_floating(t) && t != DType::Bool) return DType::F32;
    return t;
  };
  if (a.number() && b.number())
    return a.kind == Value::Kind::Int && b.kind == Value::Kind::Int ? DType::I64 : DType::F32;
  if (a.number()) return weak(a, b);
  if (b.number()) return weak(b, a);
  // Literals of numbers alone take the dtype of what they meet, as numbers do.
  auto adopting = [](const Value& literal, const Value& other) {
    const DType t = alone(other).dtype;
    if (t == DType::Bool) throw Invalid("bools with numbers");
    return literal.a.dtype == DType::F32 && !is_floating(t) ? DType::F32 : t;
  };
  if (a.literal != b.literal) return a.literal ? adopting(a, b) : adopting(b, a);
  const Array x = alone(a), y = alone(b);
  if ((x.dtype == DType::Bool) != (y.dtype == DType::Bool)) throw Invalid("bools with numbers");
  const auto t = promote(x.dtype, y.dtype);
  if (!t) throw Invalid("no common dtype");
  return *t;
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims r(std::max(a.size(), b.size()));
  for (size_t k = 0; k < r.size(); ++k) {
    const int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1, y = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (x != y && x != 1 && y != 1) throw Invalid("extents that do not broadcast");
    r[r.size() - 1 - k] = x == 1 ? y : x;
  }
  if (elements(r) > 4000) throw Invalid("too large");
  return r;
}

Array broadcast_to(const Array& a, const Dims& d) {
  if (a.shape == d) return a;
  if (a.shape.size() > d.size() || broadcast(a.shape, d) != d) throw Invalid("extents that do not broadcast");
  Array r{a.dtype, d, {}};
  const int64_t n = elements(d);
  const size_t more = d.size() - a.shape.size();
  for (int64_t p = 0; p < n; ++p) {
    int64_t rest = p, place = 0, stride = 1;
    for (size_t k = d.size(); k-- > 0;) {
      const int64_t at = rest % d[k];
      rest /= d[k];
      if (k < more) continue;
      const int64_t extent = a.shape[k - more];
      if (extent != 1) place += at * stride;
      stride *= extent;
    }
    r.cells.push_back(a.cells[static_cast<size_t>(place)]);
  }
  return r;
}

Value apply_binary(const std::string& op, const Value& a, const Value& b) {
  using K = Value::Kind;
  if (a.kind == K::Record || b.kind == K::Record) {
    const Value& r = a.kind == K::Record ? a : b;
    Value out = r;
    if (a.kind == b.kind && a.names != b.names) throw Invalid("records of other fields");
    if (comparison(op)) throw Invalid("records are not compared");
    for (size_t k = 0; k < r.parts.size(); ++k)
      out.parts[k] =
          apply_binary(op, a.kind == K::Record ? a.parts[k] : a, b.kind == K::Record ? b.parts[k] : b);
    return out;
  }
  if (a.kind == K::Bool && b.kind == K::Bool) {
    if (op == "and") return of_bool(a.n != 0 && b.n != 0);
    if (op == "or") return of_bool(a.n != 0 || b.n != 0);
    throw Invalid("host bools");
  }
  if (a.number() && b.number()) return host_binary(op, a, b);
  DType t = joint(a, b);
  if (op == "/" && !is_floating(t)) {
    if (t == DType::Bool) throw Invalid("bools have no /");
    t = DType::F32;
  }
  Array x = as_array(a, t), y = as_array(b, t);
  const Dims d = broadcast(x.shape, y.shape);
  x = broadcast_to(x, d);
  y = broadcast_to(y, d);
  Array r{comparison(op) ? DType::Bool : t, d, {}};
  for (size_t k = 0; k < x.cells.size(); ++k)
    r.cells.push_back(t == DType::Bool ? binary_bool(op, x.cells[k], y.cells[k])
                      : is_floating(t) ? binary_float(op, t, x.cells[k], y.cells[k])
                                       : binary_integer(op, t, x.cells[k], y.cells[k]));
  if (t == DType::Bool && x.cells.empty()) binary_bool(op, {}, {});
  if (t != DType::Bool && x.cells.empty() && op != "//" && op != "%")
    is_floating(t) ? binary_float(op, t, {}, Cell{0, 1, 0}) : binary_integer(op, t, {}, Cell{1, 0, 0});
  return of_array(std::move(r));
}

Value apply_unary(const std::string& op, const Value& v) {
  if (v.literal && op == "-") {
    Value r = v;
    for (Value& n : r.parts) n = apply_unary("-", n);
    for (size_t k = 0; k < r.a.cells.size(); ++k) r.a.cells[k] = as_array(r.parts[k], r.a.dtype).cells[0];
    return r;
  }
  if (v.kind == Value::Kind::Record) {
    Value out = v;
    for (Value& p : out.parts) p = apply_unary(op, p);
    return out;
  }
  if (v.kind == Value::Kind::Int && op == "-") return of_int(-v.n);
  if (v.kind == Value::Kind::Float && op == "-") return of_float(-v.f);
  if (v.kind == Value::Kind::Bool && op == "not") return of_bool(v.n == 0);
  if (!v.array()) throw Invalid("a function of a host number");
  Array r = v.a;
  const DType t = r.dtype;
  if (op == "isnan") {
    if (!is_floating(t)) throw Invalid("isnan of integers");
    for (Cell& c : r.cells) c = Cell{std::isnan(c.f), 0, 0};
    r.dtype = DType::Bool;
    return of_array(std::move(r));
  }
  if (op == "~") {
    if (is_floating(t)) throw Invalid("floats have no ~");
    for (Cell& c : r.cells) c.i = t == DType::Bool ? 1 - c.i : wrapped(t, ~c.i);
    return of_array(std::move(r));
  }
  if (t == DType::Bool) throw Invalid("bools have no " + op);
  if (is_floating(t)) {
    if (r.cells.empty()) unary_float(op, t, {});
    for (Cell& c : r.cells) c = unary_float(op, t, c);
    return of_array(std::move(r));
  }
  for (Cell& c : r.cells) {
    const Wide x = wide(t, c.i);
    if (op == "-")
      c.i = wrapped(t, -x);
    else if (op == "abs")
      c.i = wrapped(t, x < 0 ? -x : x);
    else if (op == "square")
      c = binary_integer("*", t, c, c);
    else if (op == "sign")
      c.i = x > 0 ? 1 : x < 0 ? -1 : 0;
    else
      throw Invalid("integers have no " + op);
  }
  if (r.cells.empty() && op != "-" && op != "abs" && op != "square" && op != "sign")
    throw Invalid("integers have no " + op);
  return of_array(std::move(r));
}

}  // namespace gk::property
