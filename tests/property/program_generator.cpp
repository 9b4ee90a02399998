#include "tests/property/program_generator.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

namespace gk::agreement {

namespace {

struct Var {
  std::string name;
  std::string dtype;
  std::vector<int> shape;
  bool exact = true;
};

// The interpreter walks elements one by one, and broadcasts multiply: what is
// larger shows nothing more.
constexpr int64_t kMostElements = 1 << 15;
constexpr int64_t kMostProducts = 1 << 21;  // of a matrix product

int64_t elements(const std::vector<int>& shape) {
  int64_t n = 1;
  for (int d : shape) n *= d;
  return n;
}

bool is_float(const std::string& t) { return t[0] == 'f'; }
bool is_int(const std::string& t) { return t[0] == 'i' || t[0] == 'u'; }

std::string type_text(const std::string& dtype, const std::vector<int>& shape) {
  return fmt::format("{}[{}]", dtype, fmt::join(shape, ", "));
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  Program run() {
    // A few extents that many arrays share, so that broadcasting and matmul
    // find partners.
    for (int i = 0; i < 3; ++i)
      extents_.push_back(pick(std::vector<int>{1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 64, 100}));
    if (chance(0.05)) extents_.push_back(0);
    if (chance(0.1)) extents_.push_back(pick(std::vector<int>{257, 1000, 1023}));
    int inputs = 2 + pick(3);
    for (int i = 0; i < inputs; ++i) input();
    int statements = 2 + pick(8);
    for (int i = 0; i < statements; ++i) statement();

    Program p;
    std::string outputs, stores, saves;
    // The last few values, and one from the middle.
    std::vector<Var> kept;
    for (size_t k = vars_.size(); k-- > 0 && kept.size() < 3;) kept.push_back(vars_[k]);
    kept.push_back(vars_[vars_.size() / 2]);
    for (size_t k = 0; k < kept.size(); ++k) {
      std::string o = fmt::format("out{}", k);
      outputs += fmt::format("var {} = zeros({})\n", o, type_text(kept[k].dtype, kept[k].shape));
      stores += fmt::format("{} .= {}\n", o, kept[k].name);
      saves += fmt::format(", {0}={0}", o);
      p.results.push_back({o, kept[k].exact});
    }
    std::string pragma = chance(0.3) ? "pragma fuse off\n" : "";
    std::string save = fmt::format("save(\"PATH\"{})\n", saves);
    p.eager = pragma + inputs_ + functions_ + outputs + body_ + stores + save;
    std::string indented;
    p.graph = pragma + inputs_ + functions_ + outputs + "let g = capture {\n" + body_ + stores + "}\n" +
              "let e = instantiate(g)\nlaunch e\n" + (chance(0.3) ? "launch(times=2) e\n" : "") + save;
    return p;
  }

 private:
  std::mt19937_64 rng_;
  std::vector<int> extents_;
  std::vector<Var> vars_;
  std::string inputs_, functions_, body_;
  int next_ = 0;

  int pick(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }
  bool chance(double p) { return static_cast<double>(rng_() >> 11) * 0x1p-53 < p; }
  template <class T>
  T pick(const std::vector<T>& v) {
    return v[static_cast<size_t>(pick(static_cast<int>(v.size())))];
  }
  std::string fresh() { return fmt::format("t{}", next_++); }

  void input() {
    Var v;
    v.name = fresh();
    int rank = pick(4);
    for (int i = 0; i < rank; ++i) v.shape.push_back(pick(extents_));
    while (elements(v.shape) > kMostElements) v.shape.pop_back();
    v.dtype = pick(std::vector<std::string>{"f32", "f32", "f32", "f64", "i32", "i64", "i16", "u8", "u32",
                                            "f16", "bf16"});
    int64_t n = elements(v.shape);
    std::string extents = v.shape.empty() ? "()" : fmt::format("({},)", fmt::join(v.shape, ", "));
    if (v.shape.size() > 1) extents = fmt::format("({})", fmt::join(v.shape, ", "));
    std::string e;
    if (v.shape.empty()) {
      e = fmt::format("full({}, {})", type_text(v.dtype, v.shape),
                      is_float(v.dtype) || v.dtype == "bf16" ? "0.75" : "3");
    } else if (is_int(v.dtype)) {
      e = fmt::format("{}(reshape(arange({}), {}) * {} % 23 {})", v.dtype, n, extents, 1 + 2 * pick(7),
                      v.dtype[0] == 'u' ? "" : "- 11");
    } else if (chance(0.5)) {
      e = fmt::format("{}(reshape(arange({}), {}) * {} % 17 - 8) / 4", v.dtype, n, extents, 1 + 2 * pick(7));
    } else {
      e = fmt::format("{}(reshape(linspace(-1.5, 1.5, {}), {}))", v.dtype, n, extents);
    }
    inputs_ += fmt::format("var {} = {}\n", v.name, e);
    vars_.push_back(v);
  }

  // Another array that broadcasts with `a`; itself where there is none.
  Var partner(const Var& a) {
    std::vector<Var> fit;
    for (const auto& b : vars_) {
      bool ok = b.dtype != "bool" && a.dtype != "bool";
      for (size_t i = 0; ok && i < std::min(a.shape.size(), b.shape.size()); ++i) {
        int x = a.shape[a.shape.size() - 1 - i], y = b.shape[b.shape.size() - 1 - i];
        ok = x == y || x == 1 || y == 1;
      }
      bool mixed = (a.dtype == "u64") != (b.dtype == "u64");
      if (ok && !mixed && elements(joint(a.shape, b.shape)) <= kMostElements) fit.push_back(b);
    }
    return fit.empty() ? a : pick(fit);
  }

  static std::vector<int> joint(const std::vector<int>& a, const std::vector<int>& b) {
    std::vector<int> r;
    size_t n = std::max(a.size(), b.size());
    for (size_t i = n; i-- > 0;) {
      int x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
      r.push_back(x == 1 ? y : x);
    }
    return r;
  }

  static std::string promoted(const std::string& a, const std::string& b) {
    if (a == b) return a;
    auto flt = [](const std::string& t) { return is_float(t) || t == "bf16"; };
    if (flt(a) != flt(b)) return flt(a) ? a : b;
    if (flt(a)) {
      if (a == "f64" || b == "f64") return "f64";
      return "f32";
    }
    int x = std::stoi(a.substr(1)), y = std::stoi(b.substr(1));
    if (a[0] == b[0]) return x > y ? a : b;
    int u = a[0] == 'u' ? x : y, s = a[0] == 'u' ? y : x;
    return fmt::format("i{}", s > u ? s : 2 * u);
  }

  Var numeric() {
    std::vector<Var> fit;
    for (const auto& v : vars_)
      if (v.dtype != "bool") fit.push_back(v);
    return pick(fit);
  }

  void define(Var v, const std::string& e) {
    v.name = fresh();
    body_ += fmt::format("  let {} = {}\n", v.name, e);
    vars_.push_back(v);
  }

  void statement() {
    switch (pick(16)) {
      case 13: branch(); break;
      case 14: turns(); break;
      case 15: long_loop(); break;
      case 0:
      case 1:
      case 2: binary(); break;
      case 3: unary(); break;
      case 4: compare_and_choose(); break;
      case 5: reduction(); break;
      case 6: slice(); break;
      case 7: shape_change(); break;
      case 8: matmul(); break;
      case 9: cast(); break;
      case 10: loop(); break;
      case 11: write(); break;
      case 12: take(); break;
    }
  }

  void binary() {
    Var a = numeric(), b = partner(a);
    Var r{"", promoted(a.dtype, b.dtype), joint(a.shape, b.shape), a.exact && b.exact};
    bool floating = is_float(r.dtype) || r.dtype == "bf16";
    std::string op;
    switch (pick(floating ? 6 : 9)) {
      case 0: op = "+"; break;
      case 1: op = "-"; break;
      case 2: op = "*"; break;
      case 3:
        if (floating) {
          define(r, fmt::format("{} / ({} * {} + 2)", a.name, b.name, b.name));
          return;
        }
        op = "+";
        break;
      case 4: define(r, fmt::format("maximum({}, {})", a.name, b.name)); return;
      case 5: define(r, fmt::format("minimum({}, {})", a.name, b.name)); return;
      case 6: op = "&"; break;
      case 7: define(r, fmt::format("{} // ({} % 5 + 6)", a.name, b.name)); return;
      case 8: define(r, fmt::format("{} % ({} % 5 + 6)", a.name, b.name)); return;
    }
    define(r, fmt::format("{} {} {}", a.name, op, b.name));
  }

  void unary() {
    Var a = numeric();
    bool floating = is_float(a.dtype) || a.dtype == "bf16";
    Var r = a;
    if (!floating) {
      define(r, fmt::format(fmt::runtime(pick(2) ? "abs({})" : "-{}"), a.name));
      return;
    }
    // Transcendentals differ between back ends within their stated bound; their
    // arguments are kept moderate.
    if (chance(0.5)) {
      std::string f = pick(std::vector<std::string>{"exp", "sin", "cos", "tanh", "erf", "atan", "expm1"});
      r.exact = false;
      if (!a.exact) return unary_exact(a);
      define(r, fmt::format("{}(clip({}, -3, 3))", f, a.name));
      return;
    }
    unary_exact(a);
  }

  void unary_exact(const Var& a) {
    if (a.exact && chance(0.3)) {
      define(a,
             fmt::format("{}({})", pick(std::vector<std::string>{"floor", "ceil", "round", "trunc", "sign"}),
                         a.name));
      return;
    }
    define(a, fmt::format(fmt::runtime(pick(2) ? "sqrt(abs({0}) + 1)" : "-{0} * 0.5"), a.name));
  }

  void compare_and_choose() {
    Var a = numeric(), b = partner(a);
    if (!a.exact || !b.exact) return binary();
    Var m{"", "bool", joint(a.shape, b.shape), true};
    define(m, fmt::format("{} {} {}", a.name, pick(std::vector<std::string>{"<", "<=", ">", "==", "!="}),
                          b.name));
    std::string mask = vars_.back().name;
    if (chance(0.3)) {
      Var inverted = m;
      define(inverted, fmt::format("~{}", mask));
      mask = vars_.back().name;
    }
    Var r{"", promoted(a.dtype, b.dtype), m.shape, true};
    define(r, fmt::format("where({}, {}, {})", mask, a.name, b.name));
  }

  void reduction() {
    Var a = numeric();
    if (a.shape.empty()) return unary();
    for (int d : a.shape)
      if (d == 0) return unary();
    int axis = pick(static_cast<int>(a.shape.size()));
    bool all = chance(0.25), keep = chance(0.3);
    Var r = a;
    std::string args;
    if (all) {
      r.shape.assign(keep ? a.shape.size() : 0, 1);
    } else {
      if (keep)
        r.shape[static_cast<size_t>(axis)] = 1;
      else
        r.shape.erase(r.shape.begin() + axis);
      args += fmt::format(", axis={}", chance(0.5) ? axis : axis - static_cast<int>(a.shape.size()));
    }
    if (keep) args += ", keepdims=true";
    std::string f = pick(std::vector<std::string>{"sum", "sum", "max", "min", "mean", "argmax"});
    // Terms that cancel leave the rounding of all of them: too much for one
    // bound.
    if (f == "sum" && elements(a.shape) > 4096) f = "max";
    if (f == "argmax" && (!a.exact || a.shape.size() != 1)) f = "max";
    if (f == "argmax") r.dtype = "i64";
    if (f == "sum" && is_int(a.dtype)) r.dtype = a.dtype[0] == 'u' ? "u64" : "i64";
    bool floating = is_float(a.dtype) || a.dtype == "bf16";
    if ((f == "sum" || f == "mean") && floating) r.exact = false;
    if (f == "mean" && !floating) {
      r.dtype = "f32";
      r.exact = false;
    }
    define(r, fmt::format("{}({}{})", f, a.name, args));
  }

  void slice() {
    Var a = pick(vars_);
    if (a.shape.empty()) return unary();
    Var r = a;
    r.shape.clear();
    std::string index;
    for (size_t i = 0; i < a.shape.size(); ++i) {
      if (i) index += ", ";
      int n = a.shape[i];
      switch (n > 1 ? pick(5) : 0) {
        case 0:
          index += ":";
          r.shape.push_back(n);
          break;
        case 1:
          index += "::-1";
          r.shape.push_back(n);
          break;
        case 2:
          index += "::2";
          r.shape.push_back((n + 1) / 2);
          break;
        case 3: {
          int k = pick(n);
          index += std::to_string(chance(0.5) ? k : k - n);
          break;
        }
        case 4:
          index += fmt::format("{}:", n / 2);
          r.shape.push_back(n - n / 2);
          break;
      }
    }
    if (chance(0.2) && r.shape.size() < 6) {
      index += ", new";
      r.shape.push_back(1);
    }
    define(r, fmt::format("{}[{}]", a.name, index));
  }

  void shape_change() {
    Var a = pick(vars_);
    if (a.shape.size() < 2) return binary();
    Var r = a;
    if (chance(0.5)) {
      std::reverse(r.shape.begin(), r.shape.end());
      define(r, fmt::format("transpose({})", a.name));
      return;
    }
    r.shape = {static_cast<int>(elements(a.shape))};
    define(r, fmt::format("reshape({}, {})", a.name, r.shape[0]));
  }

  void matmul() {
    std::vector<std::pair<Var, Var>> fit;
    for (const auto& a : vars_)
      for (const auto& b : vars_)
        if (a.shape.size() == 2 && b.shape.size() == 2 && a.shape[1] == b.shape[0] && a.dtype == b.dtype &&
            a.dtype != "bool" && a.dtype != "f16" && a.dtype != "bf16" &&
            elements({a.shape[0], b.shape[1]}) <= kMostElements &&
            elements({a.shape[0], a.shape[1], b.shape[1]}) <= kMostProducts)
          fit.emplace_back(a, b);
    if (fit.empty()) return binary();
    auto [a, b] = pick(fit);
    bool floating = is_float(a.dtype);
    Var r{"", a.dtype, {a.shape[0], b.shape[1]}, a.exact && b.exact && !floating};
    define(r, fmt::format("{} @ {}", a.name, b.name));
    if (floating && chance(0.5)) {
      Var act = r;
      define(act, fmt::format("maximum({}, 0)", vars_.back().name));
    }
  }

  void cast() {
    Var a = pick(vars_);
    Var r = a;
    r.dtype = pick(std::vector<std::string>{"f32", "f64", "i32", "i64", "u8"});
    if (is_int(r.dtype) && !a.exact) r.dtype = "f32";
    define(r, fmt::format("{}({})", r.dtype, a.name));
  }

  // A function with a loop of elementwise work: rolled into a kernel, or
  // unrolled.
  void loop() {
    Var a = numeric();
    if (!is_float(a.dtype)) return binary();
    std::string f = fmt::format("fn_{}", next_++);
    functions_ +=
        fmt::format("fn {}(x) {{ var y = x; for i in 0..{} {{ y = y * 0.5 + {} }}; y }}\n", f, 1 + pick(12),
                    pick(std::vector<std::string>{"0.25", "x", "maximum(y, x) * 0.125", "i"}));
    define(a, fmt::format("{}({})", f, a.name));
  }

  // Writing parts of a place.
  void write() {
    Var a = numeric();
    if (a.shape.empty() || a.shape[0] < 2) return unary();
    std::string n = fresh();
    body_ += fmt::format("  var {} = copy({})\n", n, a.name);
    std::string value = a.dtype[0] == 'u' ? "3" : fmt::format("-{}[0:{}]", a.name, a.shape[0] - 1);
    switch (pick(3)) {
      case 0: body_ += fmt::format("  {}[1:] .= {}\n", n, value); break;
      case 1: body_ += fmt::format("  {0}[1:] .= {0}[:-1]\n", n); break;
      case 2:
        if (a.exact)
          body_ += fmt::format("  {0}[{0} > 0] .= 1\n", n);
        else
          body_ += fmt::format("  {}[::2] .= 1\n", n);
        break;
    }
    Var r = a;
    r.name = n;
    vars_.push_back(r);
  }

  // A condition on the device that is exact, so that every back end decides
  // alike.
  std::string condition() {
    std::vector<Var> fit;
    for (const auto& v : vars_)
      if (v.exact && elements(v.shape) > 0) fit.push_back(v);
    if (fit.empty()) return "all(zeros(f32[2]) == 0)";
    const Var v = pick(fit);
    const std::string any = pick(2) ? "any" : "all";
    if (v.dtype == "bool") return fmt::format("{}({})", any, v.name);
    return fmt::format("{}({} {} {})", any, v.name, pick(std::vector<std::string>{">", "<=", "!="}), pick(4));
  }

  // Changes of `n`, which has the form of `a`, of the same form; as rebindings
  // or as writes to its place.
  std::string change(const std::string& n, const Var& a, bool rebind) {
    const bool floating = is_float(a.dtype) || a.dtype == "bf16";
    std::vector<std::string> e =
        floating ? std::vector<std::string>{"{0} * 0.5 + 0.25", "-{0}", "maximum({0}, {1}) - 1"}
                 : std::vector<std::string>{"{0} + 1", "{0} * 3", "{0} ^ {1}"};
    if (!a.shape.empty()) e.insert(e.end(), {"{0}[::-1] + {1}", "{0} - {1}[::-1]"});
    std::string out =
        fmt::format("{} {} {}\n", n, rebind ? "=" : ".=", fmt::format(fmt::runtime(pick(e)), n, a.name));
    if (!rebind && !a.shape.empty() && a.shape[0] > 1 && chance(0.3))
      out += fmt::format("{0}[1:] .= {0}[:-1]\n", n);
    return out;
  }

  // `var n`, which a body may change.
  std::string variable(const Var& a, bool rebind) {
    const std::string n = fresh();
    body_ += fmt::format("  var {} = {}\n", n, rebind ? a.name : fmt::format("copy({})", a.name));
    return n;
  }
  void keep(Var a, const std::string& n) {
    a.name = n;
    vars_.push_back(a);
  }

  void branch() {
    const Var a = numeric();
    if (chance(0.25))
      return define(a, fmt::format("if {} {{ {} }} else {{ -{} }}", condition(), a.name, a.name));
    const bool rebind = pick(2) == 0;
    const std::string n = variable(a, rebind);
    body_ += fmt::format("  if {} {{\n{}}}", condition(), change(n, a, rebind));
    if (chance(0.3)) body_ += fmt::format(" else if {} {{\n{}}}", condition(), change(n, a, rebind));
    if (chance(0.6)) body_ += fmt::format(" else {{\n{}}}", change(n, a, rebind));
    body_ += "\n";
    keep(a, n);
  }

  // A loop of a few turns, counted on the device; exact counters come out of it
  // too.
  void turns() {
    const Var a = numeric();
    const bool rebind = pick(2) == 0;
    const std::string n = variable(a, rebind), k = fresh();
    const bool host = pick(2) == 0;
    body_ += fmt::format("  var {} = {}\n", k, host ? "0" : "zeros(i64[])");
    const std::string more = host || chance(0.3) ? " and " + condition() : "";
    body_ += fmt::format("  while {} < {}{} {{\n", k, pick(5), more);
    body_ += change(n, a, rebind);
    if (chance(0.4)) body_ += fmt::format("if {} {{\n{}}}\n", condition(), change(n, a, rebind));
    if (chance(0.2)) {
      const std::string j = fresh();
      body_ += fmt::format("var {0} = zeros(i64[])\nwhile {0} < {1} {{\n{0} .+= 1\n{2}}}\n", j, k,
                           change(n, a, rebind));
    }
    body_ += fmt::format("{0} {1} {0} + {2}\n}}\n", k, host ? "=" : ".=", 1 + pick(2));
    keep(a, n);
    define({"", "i64", {}, true}, fmt::format("zeros(i64[]) + {}", k));
  }

  // Over the threshold from which a capture keeps a loop.
  void long_loop() {
    const Var a = numeric();
    if (a.shape.empty() || elements(a.shape) > 500) return write();
    const bool rebind = pick(2) == 0;
    const std::string n = variable(a, rebind), i = fresh();
    body_ += fmt::format("  for {} in 0..{} {{\n{}", i, 65 + pick(5), change(n, a, rebind));
    if (a.dtype == "i64" || is_float(a.dtype))
      body_ += fmt::format("{0} {1} {0}[::-1] + {2}(({3} * 7) % 5)\n", n, rebind ? "=" : ".=", a.dtype, i);
    if (chance(0.3)) body_ += fmt::format("if {} {{\n{}}}\n", condition(), change(n, a, rebind));
    body_ += "}\n";
    keep(a, n);
  }

  void take() {
    Var a = pick(vars_);
    if (a.shape.empty() || a.shape[0] == 0) return unary();
    int axis = pick(static_cast<int>(a.shape.size()));
    int n = a.shape[static_cast<size_t>(axis)];
    if (n == 0) return unary();
    int count = 1 + pick(6);
    Var r = a;
    r.shape[static_cast<size_t>(axis)] = count;
    if (elements(r.shape) > kMostElements) return unary();
    define(r, fmt::format("take({}, arange({}) * 7 % {}, axis={})", a.name, count, n, axis));
  }
};

}  // namespace

Program generate(uint64_t seed) { return Generator(seed).run(); }

}  // namespace gk::agreement
