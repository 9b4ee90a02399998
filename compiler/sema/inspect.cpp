#include "compiler/sema/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "compiler/sema/builtins.h"
#include "compiler/sema/printing.h"

namespace gk::sema {

namespace {

struct Keyword {
  std::string_view word, doc;
};

constexpr auto kKeywords = std::to_array<Keyword>({
    {"and", "a and b: true where both are. Of arrays use `&`."},
    {"assert", "assert x == y, assert x ~= y: an error where it does not hold."},
    {"bench", "bench \"title\" { … }: timed by `gkrun --bench`."},
    {"break", "Ends the loop around it."},
    {"capture", "capture { … }: the work as a graph, which has not run. See `instantiate` and `launch`."},
    {"captured", "captured fn f(x) { … }: each call is the launch of a graph that was captured once."},
    {"const", "const N = 1024: known before the program runs; `gkrun -D N=2048` overrides it."},
    {"continue", "Goes on with the loop's next turn."},
    {"else", "if c { … } else { … }"},
    {"expect_error", "expect_error E0301 { … }: holds where the block gives that error."},
    {"false", "The bool."},
    {"fn", "fn f(x, n = 1) = x * n, or fn f(mut x) { … }: a function."},
    {"for", "for i in 0..n { … }: over a range, an array's first axis or a list."},
    {"graph", "graph g { node a { … } node b after(a) { … } }: a graph with named nodes."},
    {"if",
     "if c { … } else { … }: as a statement or a value. On a device condition both are part of the work."},
    {"import", "import \"file.gk\" as m: its definitions, as m.name."},
    {"in", "for i in 0..n { … }"},
    {"kernel", "kernel k(mut z: f32[n], x: f32[n]) over i in n { z[i] = x[i] }: what each point does."},
    {"launch", "launch e, launch(times=10) e: runs a graph or a kernel."},
    {"let", "let x = …: a name for a value."},
    {"mut", "fn f(mut x) and f(mut y): x is written."},
    {"node", "graph g { node a { … } }"},
    {"not", "not a"},
    {"or", "a or b: true where one is. Of arrays use `|`."},
    {"pragma", "pragma default_float f64, fuse off, matmul tf32, fast_math"},
    {"return", "return x: ends the function."},
    {"test", "test \"title\" { … }: run by `gkrun --test`."},
    {"true", "The bool."},
    {"type", "type State = { x: f32[n], v: f32[n] }: a record."},
    {"update", "update e.node { … }, update e { x -> x2 }: other work or arrays in an executable."},
    {"var", "var x = …: a name that may be given another value."},
    {"while", "while c { … }"},
});

constexpr auto kConstants = std::to_array<Keyword>({
    {"args", "What follows the file on gkrun's command line, as texts."},
    {"euler", "2.718281828459045, the base of `exp`."},
    {"inf", "Infinity; -inf is the other one."},
    {"nan", "Not a number: what 0 / 0 gives, and equal to nothing."},
    {"pi", "3.141592653589793."},
});

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}

std::string_view text_between(const syntax::SourceMap& sources, int32_t file, uint32_t begin, uint32_t end) {
  if (file < 0 || file >= sources.size()) return {};
  const std::string& text = sources.text(file);
  end = std::min<uint32_t>(end, static_cast<uint32_t>(text.size()));
  return begin < end ? std::string_view(text).substr(begin, end - begin) : std::string_view();
}

std::string trimmed(std::string_view t) {
  while (!t.empty() && std::isspace(static_cast<unsigned char>(t.back()))) t.remove_suffix(1);
  while (!t.empty() && std::isspace(static_cast<unsigned char>(t.front()))) t.remove_prefix(1);
  return std::string(t);
}

// Line breaks and what is between brackets' ends and them as one space.
std::string on_one_line(std::string_view t) {
  std::string out;
  for (const char c : t) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  return trimmed(out);
}

struct Definition {
  Span name;          // of the name, or the whole of a lambda
  uint32_t head_end;  // where the body begins
  uint32_t end;
  std::string_view doc, keyword;
};

std::optional<Definition> definition(const Callable& c) {
  if (c.fn) {
    const auto& f = *c.fn;
    const Span body = f.expr ? f.expr->span : f.body ? f.body->span : f.name_span;
    return Definition{f.name_span, body.begin, body.end, f.doc, f.captured ? "captured fn" : "fn"};
  }
  if (c.kernel && c.kernel->body)
    return Definition{c.kernel->name_span, c.kernel->body->span.begin, c.kernel->body->span.end,
                      c.kernel->doc, "kernel"};
  if (c.lambda) return Definition{c.lambda->span, c.lambda->span.end, c.lambda->span.end, {}, ""};
  return std::nullopt;
}

// The lines of a definition, from the one that its name stands in.
std::string whole_text(const syntax::SourceMap& sources, const Definition& d) {
  const std::string& text = sources.text(d.name.file);
  const size_t line = text.rfind('\n', d.name.begin);
  return trimmed(text_between(sources, d.name.file,
                              line == std::string::npos ? 0 : static_cast<uint32_t>(line + 1), d.end));
}

std::string with_doc(std::string head, std::string_view doc) {
  std::string out = std::move(head) + "\n";
  if (doc.empty()) return out;
  out += "  ";
  for (const char c : trimmed(doc)) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out + "\n";
}

std::string fields_of(const TypeDef& t, const syntax::SourceMap& sources) {
  return t.body ? std::string(text_between(sources, t.body->span.file, t.body->span.begin, t.body->span.end))
                : "";
}

void add_fields(const Value& v, std::vector<std::string>& out) {
  if (v.kind == VKind::Record) out.insert(out.end(), v.items->names.begin(), v.items->names.end());
  if (v.kind == VKind::Module && v.module)
    for (const auto& [name, unused] : v.module->names) out.push_back(name);
  if (v.graph)
    for (const auto& n : v.graph->nodes)
      if (!n.name.empty()) out.push_back(n.name);
}

// What the names before the dot stand for: "s" of "s.x", "a.b" of "a.b.c".
const Value* value_of_path(Evaluator& ev, std::string_view path) {
  const Value* v = nullptr;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (v == nullptr) {
      const Variable* var = Evaluator::find(name, *ev.root());
      if (var == nullptr) return nullptr;
      v = &var->value;
    } else if (v->kind == VKind::Record) {
      const auto& names = v->items->names;
      const auto it = std::find(names.begin(), names.end(), name);
      if (it == names.end()) return nullptr;
      v = &v->items->items[static_cast<size_t>(it - names.begin())];
    } else if (v->kind == VKind::Module && v->module) {
      const auto it = v->module->names.find(name);
      if (it == v->module->names.end()) return nullptr;
      v = &it->second->value;
    } else {
      return nullptr;
    }
  }
  return v;
}

// The name of what is called in the innermost bracket that `text` leaves open; "" where that is no call.
std::string_view open_call(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = text.size(); i-- > 0;) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '\n' && depth == 0) return {};
    if (c == ')' || c == ']' || c == '}') ++depth;
    if (c != '(' && c != '[' && c != '{') continue;
    if (depth-- > 0) continue;
    if (c != '(') return {};
    const std::string_view before = text.substr(0, i);
    return before.substr(word_begin(before));
  }
  return {};
}

void add_arguments(Evaluator& ev, std::string_view name, std::vector<std::string>& out) {
  const Variable* v = Evaluator::find(name, *ev.root());
  if (v != nullptr && v->value.callable) {
    const Callable& c = *v->value.callable;
    if (c.fn || c.kernel)
      for (const auto& p : c.fn ? c.fn->params : c.kernel->params) out.push_back(p.name + "=");
    return;
  }
  if (v != nullptr && v->value.type_def) {
    for (const auto& f : v->value.type_def->field_names) out.push_back(f + "=");
    return;
  }
  if (const Builtin* b = find_builtin(name); b != nullptr && v == nullptr)
    for (const auto& p : b->parsed.params) out.push_back(std::string(p.name) + "=");
}

std::string about_value(Evaluator& ev, std::string_view name, const Variable& var, bool whole) {
  const Value& v = var.value;
  const auto where = [&] {
    const std::string at = ev.sources().where(var.span);
    return at.empty() ? std::string() : fmt::format("  defined at {}\n", at);
  };
  if (v.callable)
    if (const auto d = definition(*v.callable)) {
      std::string out = with_doc(fmt::format("{}{}{}", d->keyword, d->keyword.empty() ? "" : " ",
                                             signature(ev.sources(), *v.callable)),
                                 d->doc);
      out += where();
      if (whole) out += "\n" + whole_text(ev.sources(), *d) + "\n";
      return out;
    }
  if (v.kind == VKind::Type && v.type_def)
    return fmt::format("type {} = {}\n", name,
                       whole ? fields_of(*v.type_def, ev.sources())
                             : on_one_line(fields_of(*v.type_def, ev.sources()))) +
           where();
  const char* bound = var.kind == syntax::BindKind::Var     ? "var"
                      : var.kind == syntax::BindKind::Const ? "const"
                                                            : "let";
  std::string out = v.graph && v.kind != VKind::NodeRef ? fmt::format("{} {}\n", kind_of(v), name)
                                                        : fmt::format("{} {}: {}\n", bound, name, kind_of(v));
  if (v.is_scalar()) out += fmt::format("  {}\n", ev.effects()->format(v.scalar));
  if (v.kind == VKind::Module && v.module) {
    std::string members;
    for (const auto& [member, unused] : v.module->names) members += (members.empty() ? "  " : ", ") + member;
    out += members + "\n";
  }
  if (v.kind == VKind::Record)
    for (size_t i = 0; i < v.items->items.size(); ++i)
      out += fmt::format("  {}: {}\n", v.items->names[i], kind_of(v.items->items[i]));
  if (v.graph) {
    for (const auto& n : v.graph->nodes)
      out += fmt::format("  {}{}\n", n.name.empty() ? "one node without a name" : "node " + n.name,
                         n.span.valid() ? ", from " + ev.sources().where(n.span) : "");
  }
  out += where();
  if (whole && v.is_array()) {
    if (const auto n = num_elements(v.array->type.shape()); n)
      out += fmt::format("  {} bytes\n", *n * size_bytes(v.array->type.dtype));
  }
  return out;
}

}  // namespace

std::string kind_of(const Value& v) {
  std::string text = describe(v);
  for (const std::string_view article : {"a ", "an ", "the "})
    if (text.starts_with(article)) return text.substr(article.size());
  return text;
}

std::string header(const Value& v, std::string_view device) {
  if (!v.is_array()) return {};
  const Placement at = v.array->storage ? v.array->storage->placement : v.array->wanted;
  const std::string_view where = at == Placement::Host     ? "host memory"
                                 : at == Placement::Pinned ? "pinned"
                                                           : device;
  return fmt::format("{} {}", ir::to_string(v.array->type), where);
}

std::string signature(const syntax::SourceMap& sources, const Callable& c) {
  const auto d = definition(c);
  if (!d) return c.builtin;
  std::string head = on_one_line(text_between(sources, d->name.file, d->name.begin, d->head_end));
  if (c.fn && c.fn->expr && head.ends_with("="))
    head = trimmed(std::string_view(head).substr(0, head.size() - 1));
  return head;
}

Result<std::string> shown(Evaluator& ev, const Value& v, Span span) {
  if (v.callable) {
    const auto d = definition(*v.callable);
    const std::string keyword = d && !d->keyword.empty() ? std::string(d->keyword) + " " : "";
    return keyword + signature(ev.sources(), *v.callable);
  }
  if (v.kind == VKind::Builtin) {
    const Builtin* b = find_builtin(v.text);
    return b == nullptr ? "builtin " + v.text : fmt::format("builtin {}", b->signature);
  }
  if (v.graph && v.kind != VKind::NodeRef) {
    const size_t n = v.graph->nodes.size();
    return fmt::format("{} of {} node{}", v.kind == VKind::Graph ? "graph" : "executable", n,
                       n == 1 ? "" : "s");
  }
  if (v.kind == VKind::Type && v.type_def)
    return fmt::format("type {} = {}", v.type_def->name, on_one_line(fields_of(*v.type_def, ev.sources())));
  if (v.kind == VKind::Type && v.dims) {
    ir::Type t;
    t.dtype = v.dtype;
    t.dims = *v.dims;
    return "type " + ir::to_string(t);
  }
  if (v.kind == VKind::Type) return fmt::format("type {}", name(v.dtype));
  if (v.kind == VKind::Module) return std::string("module");
  return text_of(ev, v, span, true);
}

std::string about(Evaluator& ev, std::string_view name, bool whole) {
  const size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) {
    const Value* v = value_of_path(ev, name);
    if (v == nullptr) return {};
    Variable part;
    part.value = *v;
    return about_value(ev, name, part, whole);
  }
  if (const Variable* v = Evaluator::find(name, *ev.root())) return about_value(ev, name, *v, whole);
  if (const Builtin* b = find_builtin(name); b != nullptr && !name.starts_with('_')) {
    std::string out = with_doc(fmt::format("builtin {}", b->signature), b->doc);
    if (!whole) return out;
    const auto written = ev.library_definition(name);
    const auto d = written ? definition(*written) : std::nullopt;
    return out +
           (d ? "\n" + whole_text(ev.sources(), *d) + "\n" : "  made by the compiler, not written in gk\n");
  }
  const auto* k =
      std::find_if(kKeywords.begin(), kKeywords.end(), [&](const Keyword& w) { return w.word == name; });
  if (k != kKeywords.end()) return with_doc(fmt::format("keyword {}", name), k->doc);
  const auto* c =
      std::find_if(kConstants.begin(), kConstants.end(), [&](const Keyword& w) { return w.word == name; });
  if (c != kConstants.end()) return with_doc(fmt::format("constant {}", name), c->doc);
  if (const auto t = parse_dtype(name))
    return fmt::format("type {}: {} bytes an element\n", name, size_bytes(*t));
  return {};
}

size_t word_begin(std::string_view text) {
  size_t at = text.size();
  while (at > 0 && in_word(text[at - 1])) --at;
  return at;
}

std::vector<std::string> completions(Evaluator& ev, std::string_view text) {
  const size_t begin = word_begin(text);
  const std::string_view word = text.substr(begin);
  std::vector<std::string> all;
  if (begin > 0 && text[begin - 1] == '.' && (begin < 2 || text[begin - 2] != '.')) {
    size_t path = begin - 1;
    while (path > 0 && (in_word(text[path - 1]) || text[path - 1] == '.')) --path;
    if (const Value* v = value_of_path(ev, text.substr(path, begin - 1 - path))) add_fields(*v, all);
  } else {
    if (const std::string_view called = open_call(text.substr(0, begin)); !called.empty())
      add_arguments(ev, called, all);
    for (const auto& [name, v] : ev.root()->names) all.push_back(name);
    for (const Builtin& b : public_builtins()) all.emplace_back(b.name);
    for (const Keyword& k : kKeywords) all.emplace_back(k.word);
    for (const Keyword& c : kConstants) all.emplace_back(c.word);
    for (int t = 0; t < kDTypeCount; ++t) all.emplace_back(name(static_cast<DType>(t)));
  }
  std::erase_if(all, [&](const std::string& w) { return !w.starts_with(word); });
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace gk::sema
