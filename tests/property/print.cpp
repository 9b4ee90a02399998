#include <fmt/format.h>

#include <cmath>

#include "tests/property/tree.h"

namespace gk::property {

Expr integer(int64_t v) {
  Expr e;
  e.integer = v;
  return e;
}
Expr number(double v) {
  Expr e;
  e.kind = Expr::Kind::Float;
  e.number = v;
  return e;
}
Expr name_of(std::string name) {
  Expr e;
  e.kind = Expr::Kind::Name;
  e.text = std::move(name);
  return e;
}
Expr binary(std::string op, Expr a, Expr b) {
  Expr e;
  e.kind = Expr::Kind::Binary;
  e.text = std::move(op);
  e.args = {std::move(a), std::move(b)};
  return e;
}
Expr builtin(std::string name, std::vector<Expr> args) {
  Expr e;
  e.kind = Expr::Kind::Builtin;
  e.text = std::move(name);
  e.args = std::move(args);
  return e;
}
Expr cast(DType t, Expr a) {
  Expr e;
  e.kind = Expr::Kind::Cast;
  e.dtype = t;
  e.args = {std::move(a)};
  return e;
}
Expr field(Expr a, std::string name) {
  Expr e;
  e.kind = Expr::Kind::Field;
  e.text = std::move(name);
  e.args = {std::move(a)};
  return e;
}
Expr element(Expr a, int64_t i) {
  Expr e;
  e.kind = Expr::Kind::Index;
  e.args = {std::move(a)};
  Part p;
  p.kind = Part::Kind::At;
  p.at = {integer(i)};
  e.parts = {p};
  return e;
}

namespace {

std::string dims_text(const Dims& d) { return fmt::format("{}", fmt::join(d, ", ")); }

std::string float_text(double v) {
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".einf") == std::string::npos ? s + ".0" : s;
}

class Printer {
 public:
  explicit Printer(const Style& style) : style_(style) {}

  std::string expr(const Expr& e) {
    using K = Expr::Kind;
    switch (e.kind) {
      case K::Int: return e.integer < 0 ? fmt::format("({})", e.integer) : std::to_string(e.integer);
      case K::Float: return e.number < 0 ? "(" + float_text(e.number) + ")" : float_text(e.number);
      case K::Bool: return e.integer ? "true" : "false";
      case K::Name: return e.text;
      case K::Unary: return fmt::format("({}{}{})", e.text, e.text == "not" ? " " : "", expr(e.args[0]));
      case K::Binary: return fmt::format("({} {} {})", expr(e.args[0]), e.text, expr(e.args[1]));
      case K::Builtin: return builtin(e);
      case K::Call: return (e.launched ? "launch " : "") + e.text + arguments(e);
      case K::Cast: return fmt::format("{}({})", name(e.dtype), expr(e.args[0]));
      case K::Literal: return literal(e);
      case K::Make:
        if (e.text == "arange") return fmt::format("arange({})", expr(e.args[0]));
        return fmt::format("{}({}[{}]{})", e.text, name(e.dtype), dims_text(e.shape),
                           e.text == "full" ? ", " + expr(e.args[0]) : "");
      case K::Index: return expr(e.args[0]) + parts(e.parts);
      case K::Field: return expr(e.args[0]) + "." + e.text;
      case K::Record: {
        std::string s;
        for (size_t k = 0; k < e.args.size(); ++k)
          s += fmt::format("{}{}={}", k ? ", " : "", e.names[k], expr(e.args[k]));
        return fmt::format("{}({})", e.text, s);
      }
      case K::Tuple: return fmt::format("({})", list(e.args));
      case K::List: return fmt::format("list({})", list(e.args));
      case K::Lambda:
        return e.names.size() == 1 ? fmt::format("{} => {}", e.names[0], expr(e.args[0]))
                                   : fmt::format("({}) => {}", fmt::join(e.names, ", "), expr(e.args[0]));
      case K::Choose:
        return fmt::format("(if {} {{ {} }} else {{ {} }})", expr(e.args[0]), expr(e.args[1]),
                           expr(e.args[2]));
      case K::Load: return fmt::format("load(\"{}/in{}.{}\")", style_.folder, e.integer, e.text);
    }
    return "";
  }

  std::string block(const Block& b, int depth) {
    std::string s;
    for (const Stmt& st : b) s += stmt(st, depth);
    return s;
  }

  std::string stmt(const Stmt& s, int depth) {
    using K = Stmt::Kind;
    const std::string in(static_cast<size_t>(depth) * 2, ' ');
    auto braces = [&](const Block& b) { return "{\n" + block(b, depth + 1) + in + "}"; };
    switch (s.kind) {
      case K::Let: return fmt::format("{}let {} = {}\n", in, s.name, expr(s.value));
      case K::Var: return fmt::format("{}var {} = {}\n", in, s.name, expr(s.value));
      case K::Rebind: return fmt::format("{}{} {} {}\n", in, s.name, s.op, expr(s.value));
      case K::Write: return fmt::format("{}{} {} {}\n", in, expr(s.place), s.op, expr(s.value));
      case K::Eval: return in + expr(s.value) + "\n";
      case K::For: return fmt::format("{}for {} in 0..{} {}\n", in, s.name, expr(s.value), braces(s.body));
      case K::Each: return fmt::format("{}for {} in {} {}\n", in, s.name, expr(s.value), braces(s.body));
      case K::While: return fmt::format("{}while {} {}\n", in, expr(s.value), braces(s.body));
      case K::If:
        return fmt::format("{}if {} {}{}\n", in, expr(s.value), braces(s.body),
                           s.other.empty() ? "" : " else " + braces(s.other));
      case K::Break: return fmt::format("{}if {} {{ break }}\n", in, expr(s.value));
      case K::Inline:
        if (!style_.inline_captured) return fmt::format("{}if 1 < 2 {}\n", in, braces(s.body));
        return fmt::format("{}let {} = capture {} |> instantiate\n{}launch {}\n", in, s.name, braces(s.body),
                           in, s.name);
      case K::Capture:
        return fmt::format("{}let {} = capture {} |> instantiate\n", in, s.name, braces(s.body));
      case K::Graph: {
        std::string nodes;
        for (const Node& n : s.nodes)
          nodes += fmt::format("{}  node {} {{\n{}{}  }}\n", in, n.name, block(n.body, depth + 2), in);
        return fmt::format("{0}graph {1}_g {{\n{2}{0}}}\n{0}let {1} = instantiate({1}_g)\n", in, s.name,
                           nodes);
      }
      case K::Launch:
        return s.times == 1 ? fmt::format("{}launch {}\n", in, s.name)
                            : fmt::format("{}launch(times={}) {}\n", in, s.times, s.name);
      case K::UpdateNode: return fmt::format("{}update {}.{} {}\n", in, s.name, s.op, braces(s.body));
      case K::Swap:
        return fmt::format("{}update {} {{ {} -> {} }}\n", in, s.name, expr(s.place), expr(s.value));
      case K::Print: return fmt::format("{}print(\"@{}\", {})\n", in, s.times, expr(s.value));
      case K::Save:
        return fmt::format("{}save(\"{}/in{}.{}\", {})\n", in, style_.folder, s.times, s.op, expr(s.value));
    }
    return "";
  }

  std::string function(const Function& f) {
    std::string params;
    for (const Param& p : f.params) {
      params +=
          fmt::format("{}{}{}{}", params.empty() ? "" : ", ", p.is_mut ? "mut " : "", p.name, note(p.note));
      if (p.otherwise) params += " = " + expr(*p.otherwise);
    }
    std::string s = fmt::format("{}fn {}({})", f.captured ? "captured " : "", f.name, params);
    if (!f.block && f.body.empty() && f.result) return s + " = " + expr(*f.result) + "\n";
    s += " {\n" + block(f.body, 1);
    if (f.result) s += "  " + expr(*f.result) + "\n";
    return s + "}\n";
  }

  std::string kernel(const Kernel& k) {
    const std::string t(name(k.dtype)), a = k.untyped ? "" : ": " + t;
    switch (k.form) {
      case Kernel::Form::Map:
        return fmt::format(
            "kernel {0}(mut z: {1}[n], x: {1}[n], a{3}) over i "
            "in n {{\n  let v = x[i]\n  let w = z[i]\n  "
            "z[i] = {2}\n}}\n",
            k.name, t, expr(k.value), a);
      case Kernel::Form::Choice:
        return fmt::format(
            "kernel {0}(mut z: {1}[n], x: {1}[n], a{4}) over i "
            "in n {{\n  let v = x[i]\n  let w = z[i]\n  z[i] = v + a\n  "
            "if a > 1 {{ z[i] = {2} }} else {{ z[i] = {3} }}\n}}\n",
            k.name, t, expr(k.value), expr(k.other), a);
      case Kernel::Form::Copy:
        return fmt::format(
            "kernel {0}(mut z: {1}[n], x: {1}[n], a{3}) over i "
            "in 1 {{\n  for t in 0..n {{ z[t] = x[t] "
            "}}\n}}\n",
            k.name, t, "", a);
      case Kernel::Form::Prefix:
        return fmt::format(
            "kernel {0}(mut z: {1}[n], x: {1}[n], a{3}) over i in n {{\n  var "
            "s = a\n"
            "  for t in 0..i + 1 {{ s = s + x[t] }}\n  z[i] = s\n}}\n",
            k.name, t, "", a);
      case Kernel::Form::Steps:
        return fmt::format(
            "kernel {0}(mut z: {1}[n], x: {1}[n], a{3}) over i in n {{\n  let "
            "v = x[i]\n"
            "  var s = a\n  for t in 0..5 {{ s = {2} }}\n  z[i] = s\n}}\n",
            k.name, t, expr(k.value), a);
    }
    return "";
  }

 private:
  const Style& style_;

  std::string list(const std::vector<Expr>& es) {
    std::string s;
    for (const Expr& e : es) s += (s.empty() ? "" : ", ") + expr(e);
    return s;
  }

  std::string arguments(const Expr& e) {
    std::string s;
    for (size_t k = 0; k < e.args.size(); ++k) {
      if (k) s += ", ";
      if (k < e.names.size() && !e.names[k].empty()) s += e.names[k] + " = ";
      if (k < e.is_mut.size() && e.is_mut[k]) s += "mut ";
      s += expr(e.args[k]);
    }
    return "(" + s + ")";
  }

  std::string builtin(const Expr& e) {
    std::string s = list(e.args);
    if (e.text == "concat" || e.text == "stack") s = "[" + s + "]";
    if (e.text == "reshape" || e.text == "broadcast_to") s += fmt::format(", [{}]", dims_text(e.shape));
    if (e.text == "transpose" && !e.shape.empty()) s += fmt::format(", ({},)", dims_text(e.shape));
    if (e.axis) s += fmt::format(", axis={}", *e.axis);
    if (e.keepdims) s += ", keepdims=true";
    return fmt::format("{}({})", e.text, s);
  }

  std::string literal(const Expr& e) {
    if (e.shape.size() < 2) return "[" + list(e.args) + "]";
    std::string s;
    const auto columns = static_cast<size_t>(e.shape[1]);
    for (size_t r = 0; r < static_cast<size_t>(e.shape[0]); ++r) {
      std::vector<Expr> row(e.args.begin() + static_cast<int64_t>(r * columns),
                            e.args.begin() + static_cast<int64_t>((r + 1) * columns));
      s += (r ? ", [" : "[") + list(row) + "]";
    }
    return "[" + s + "]";
  }

  std::string parts(const std::vector<Part>& ps) {
    std::string s;
    for (const Part& p : ps) {
      if (!s.empty()) s += ", ";
      switch (p.kind) {
        case Part::Kind::All: s += ":"; break;
        case Part::Kind::New: s += "new"; break;
        case Part::Kind::At:
        case Part::Kind::Array: s += expr(p.at[0]); break;
        case Part::Kind::Range:
          s += fmt::format("{}:{}{}", p.from ? std::to_string(*p.from) : "",
                           p.to ? std::to_string(*p.to) : "", p.step ? fmt::format(":{}", *p.step) : "");
          break;
      }
    }
    return "[" + s + "]";
  }

  static std::string note(const Note& n) {
    switch (n.kind) {
      case Note::Kind::None: return "";
      case Note::Kind::Scalar: return fmt::format(": {}", name(n.dtype));
      case Note::Kind::Array: return fmt::format(": {}[{}]", name(n.dtype), fmt::join(n.extents, ", "));
      case Note::Kind::Named: return ": " + n.name;
    }
    return "";
  }
};

}  // namespace

std::string to_text(const Expr& e, const Style& style) { return Printer(style).expr(e); }

std::string to_text(const Program& p, const Style& style) {
  Printer w(style);
  std::string s = style.fuse_off ? "pragma fuse off\n" : "";
  for (const RecordType& t : p.types) {
    std::string fields;
    for (size_t k = 0; k < t.fields.size(); ++k)
      fields +=
          fmt::format("{}{}: {}[{}]", k ? ", " : "", t.fields[k], name(t.dtypes[k]), dims_text(t.shapes[k]));
    s += fmt::format("type {} = {{ {} }}\n", t.name, fields);
  }
  for (const Kernel& k : p.kernels) s += w.kernel(k);
  for (const Function& f : p.functions) s += w.function(f);
  s += w.block(p.body, 0);
  std::string saves;
  for (size_t k = 0; k < p.results.size(); ++k) saves += fmt::format(", r{}={}", k, w.expr(p.results[k]));
  if (!saves.empty()) s += fmt::format("save(\"{}/out.npz\"{})\n", style.folder, saves);
  return s;
}

}  // namespace gk::property
