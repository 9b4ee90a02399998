// S-expressions of everything in the tree but spans.
#include <nlohmann/json.hpp>

#include "compiler/syntax/ast.h"
#include "fmt/format.h"

namespace gk::syntax {
namespace {

std::string quote(const std::string& s) {
  return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Dumper {
 public:
  std::string take() { return std::move(out_); }

  void module(const Module& m) {
    out_ += "(module";
    ++indent_;
    for (const StmtPtr& s : m.stmts) line(*s);
    --indent_;
    out_ += ")\n";
  }

 private:
  void line(const Stmt& s) {
    out_ += '\n';
    out_.append(static_cast<size_t>(2 * indent_), ' ');
    stmt(s);
  }

  void block(const char* label, const Block* b) {
    if (b == nullptr) return;
    out_ += fmt::format(" ({}", label);
    ++indent_;
    for (const StmtPtr& s : b->stmts) line(*s);
    --indent_;
    out_ += ')';
  }

  // ---- types ----
  void type(const TypeExpr* t) {
    if (t == nullptr) return;
    out_ += ' ';
    if (!t->placement.empty()) out_ += fmt::format("({} ", t->placement);
    switch (t->kind) {
      case TypeExpr::Kind::Named:
        if (!t->has_dims) {
          out_ += fmt::format("(type {})", t->name);
          break;
        }
        out_ += fmt::format("(type {} (dims", t->name);
        for (const ExprPtr& d : t->dims) child(d.get());
        out_ += "))";
        break;
      case TypeExpr::Kind::List:
        out_ += "(list-type";
        type(t->element.get());
        child(t->count.get());
        out_ += ')';
        break;
      case TypeExpr::Kind::Record:
        out_ += "(record-type";
        for (size_t i = 0; i < t->fields.size(); ++i) {
          out_ += fmt::format(" ({}", t->field_names[i]);
          type(t->fields[i].get());
          out_ += ')';
        }
        out_ += ')';
        break;
      case TypeExpr::Kind::Tuple:
        out_ += "(tuple-type";
        for (const TypePtr& f : t->fields) type(f.get());
        out_ += ')';
        break;
    }
    if (!t->placement.empty()) out_ += ')';
  }

  void params(const std::vector<Param>& ps) {
    out_ += " (params";
    for (const Param& p : ps) {
      out_ += fmt::format(" ({}{}", p.is_mut ? "mut " : "", p.name);
      type(p.type.get());
      if (p.fallback != nullptr) {
        out_ += " (default";
        child(p.fallback.get());
        out_ += ')';
      }
      out_ += ')';
    }
    out_ += ')';
  }

  // ---- expressions ----
  void child(const Expr* e) {
    if (e == nullptr) return;
    out_ += ' ';
    expr(*e);
  }

  void arg(const Arg& a) {
    if (a.is_mut)
      out_ += " (mut";
    else if (!a.name.empty())
      out_ += fmt::format(" (= {}", a.name);
    child(a.value.get());
    if (a.is_mut || !a.name.empty()) out_ += ')';
  }

  void index(const Index& i) {
    switch (i.kind) {
      case Index::Kind::Expr: child(i.expr.get()); break;
      case Index::Kind::Ellipsis: out_ += " ..."; break;
      case Index::Kind::New: out_ += " new"; break;
      case Index::Kind::Slice:
        out_ += " (slice";
        for (const ExprPtr* part : {&i.start, &i.stop, &i.step}) {
          if (*part != nullptr)
            child(part->get());
          else
            out_ += " -";
        }
        out_ += ')';
        break;
    }
  }

  void expr(const Expr& e) {
    switch (e.kind) {
      case ExprKind::Int: out_ += fmt::format("{}{}", e.uint_value, e.suffix); return;
      case ExprKind::Float: {
        std::string s = fmt::format("{}", e.float_value);
        if (s.find_first_of(".en") == std::string::npos) s += ".0";
        out_ += s + e.suffix;
        return;
      }
      case ExprKind::Bool: out_ += e.bool_value ? "true" : "false"; return;
      case ExprKind::String: out_ += quote(e.text); return;
      case ExprKind::Name: out_ += e.text; return;
      case ExprKind::Wildcard: out_ += '_'; return;
      case ExprKind::FString:
        out_ += "(f " + quote(e.parts[0]);
        for (size_t i = 0; i < e.elements.size(); ++i) {
          out_ += " (";
          expr(*e.elements[i]);
          if (!e.formats[i].empty()) out_ += " : " + quote(e.formats[i]);
          out_ += ") " + quote(e.parts[i + 1]);
        }
        break;
      case ExprKind::Unary:
        out_ += fmt::format("({}", spelling(e.unary));
        child(e.lhs.get());
        break;
      case ExprKind::Binary: binary(e); return;
      case ExprKind::Call:
        out_ += e.piped ? "(pipe" : "(call";
        child(e.lhs.get());
        for (const Arg& a : e.args) arg(a);
        break;
      case ExprKind::IndexOp:
        out_ += "(index";
        child(e.lhs.get());
        for (const Index& i : e.indices) index(i);
        break;
      case ExprKind::Field:
        out_ += "(field";
        child(e.lhs.get());
        out_ += ' ' + e.field;
        break;
      case ExprKind::Lambda:
        out_ += "(lambda";
        params(e.params);
        child(e.rhs.get());
        block("body", e.body.get());
        break;
      case ExprKind::If:
        out_ += "(if";
        child(e.lhs.get());
        block("then", e.body.get());
        block("else", e.else_body.get());
        child(e.else_if.get());
        break;
      case ExprKind::BlockExpr:
        out_ += "(do";
        block("body", e.body.get());
        break;
      case ExprKind::Capture:
        out_ += "(capture";
        block("body", e.body.get());
        break;
      case ExprKind::Launch:
        out_ += "(launch";
        if (!e.args.empty()) {
          out_ += " (options";
          for (const Arg& a : e.args) arg(a);
          out_ += ')';
        }
        child(e.rhs.get());
        break;
      case ExprKind::ArrayLit:
      case ExprKind::TupleLit:
        out_ += e.kind == ExprKind::ArrayLit ? "(array" : "(tuple";
        for (const ExprPtr& x : e.elements) child(x.get());
        if (e.numbers) out_ += fmt::format(" {} numbers", e.numbers->size());
        break;
      case ExprKind::Range:
        out_ += "(..";
        child(e.lhs.get());
        child(e.rhs.get());
        break;
      case ExprKind::Type:
        out_ += "(type-value";
        type(e.type.get());
        break;
    }
    out_ += ')';
  }

  /// Long chains lean left: opens all of them first.
  void binary(const Expr& e) {
    std::vector<const Expr*> spine;
    const Expr* at = &e;
    for (; at->kind == ExprKind::Binary; at = at->lhs.get()) {
      out_ += fmt::format("({} ", spelling(at->binary));
      spine.push_back(at);
    }
    expr(*at);
    for (auto it = spine.rbegin(); it != spine.rend(); ++it) {
      child((*it)->rhs.get());
      out_ += ')';
    }
  }

  // ---- statements ----
  void doc(const std::string& text) {
    if (!text.empty()) out_ += " (doc " + quote(text) + ")";
  }

  void stmt(const Stmt& s) {
    out_ += s.muted ? "(; " : "";
    body(s);
    out_ += s.muted ? ")" : "";
  }

  void body(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::Let: let(s); return;
      case StmtKind::Assign: {
        static constexpr const char* kOps[] = {"", "+", "-", "*", "/"};
        out_ += fmt::format("({}{}=", s.elementwise ? "." : "", kOps[static_cast<size_t>(s.assign_op)]);
        child(s.lhs.get());
        child(s.rhs.get());
        break;
      }
      case StmtKind::ExprStmt: expr(*s.rhs); return;
      case StmtKind::For:
        out_ += "(for " + s.name;
        child(s.rhs.get());
        block("body", s.body.get());
        break;
      case StmtKind::While:
        out_ += "(while";
        child(s.rhs.get());
        block("body", s.body.get());
        break;
      case StmtKind::Break: out_ += "(break"; break;
      case StmtKind::Continue: out_ += "(continue"; break;
      case StmtKind::Return:
        out_ += "(return";
        child(s.rhs.get());
        break;
      case StmtKind::IfStmt:
        out_ += "(if";
        child(s.rhs.get());
        block("then", s.body.get());
        block("else", s.else_body.get());
        if (s.else_if != nullptr) {
          out_ += ' ';
          stmt(*s.else_if);
        }
        break;
      case StmtKind::Fn: fn(*s.fn); return;
      case StmtKind::Kernel: kernel(*s.kernel); return;
      case StmtKind::TypeDef:
        out_ += "(typedef " + s.name;
        doc(s.doc);
        type(s.type.get());
        break;
      case StmtKind::Graph: graph(s); return;
      case StmtKind::Update:
        out_ += "(update";
        child(s.target.get());
        for (const Rebind& r : s.rebinds) {
          out_ += " (->";
          child(r.from.get());
          child(r.to.get());
          out_ += ')';
        }
        block("body", s.body.get());
        break;
      case StmtKind::Import:
        out_ += "(import " + quote(s.text);
        if (!s.name.empty()) out_ += ' ' + s.name;
        break;
      case StmtKind::Pragma:
        out_ += "(pragma " + s.name;
        if (!s.text.empty()) out_ += ' ' + s.text;
        break;
      case StmtKind::Assert:
        out_ += "(assert";
        child(s.rhs.get());
        for (const Arg& a : s.args) arg(a);
        break;
      case StmtKind::Test:
      case StmtKind::Bench:
        out_ += (s.kind == StmtKind::Test ? "(test " : "(bench ") + quote(s.text);
        doc(s.doc);
        block("body", s.body.get());
        break;
      case StmtKind::ExpectError:
        out_ += "(expect_error " + s.text;
        block("body", s.body.get());
        break;
    }
    out_ += ')';
  }

  void let(const Stmt& s) {
    static constexpr const char* kBinds[] = {"let", "var", "const"};
    out_ += fmt::format("({}", kBinds[static_cast<size_t>(s.bind)]);
    for (const Binding& b : s.bindings) {
      out_ += " (" + b.name;
      type(b.type.get());
      child(b.init.get());
      out_ += ')';
    }
    out_ += ')';
  }

  void fn(const FnDef& f) {
    out_ += fmt::format("({} {}", f.captured ? "captured-fn" : "fn", f.name);
    doc(f.doc);
    params(f.params);
    if (f.result != nullptr) {
      out_ += " (result";
      type(f.result.get());
      out_ += ')';
    }
    child(f.expr.get());
    block("body", f.body.get());
    out_ += ')';
  }

  void kernel(const KernelDef& k) {
    out_ += "(kernel " + k.name;
    doc(k.doc);
    params(k.params);
    out_ += " (over";
    for (size_t i = 0; i < k.index_names.size(); ++i) {
      out_ += " (" + k.index_names[i];
      if (i < k.extents.size()) child(k.extents[i].get());
      out_ += ')';
    }
    out_ += ')';
    block("body", k.body.get());
    out_ += ')';
  }

  void graph(const Stmt& s) {
    out_ += "(graph " + s.name;
    doc(s.doc);
    ++indent_;
    for (const GraphNodeDef& n : s.nodes) {
      out_ += '\n';
      out_.append(static_cast<size_t>(2 * indent_), ' ');
      out_ += "(node " + n.name;
      if (n.has_after) {
        out_ += " (after";
        for (const std::string& a : n.after) out_ += ' ' + a;
        out_ += ')';
      }
      block("body", n.body.get());
      out_ += ')';
    }
    --indent_;
    out_ += ')';
  }

  std::string out_;
  int indent_ = 0;
};

}  // namespace

std::string dump(const Module& m) {
  Dumper d;
  d.module(m);
  return d.take();
}

}  // namespace gk::syntax
