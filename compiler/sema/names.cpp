// Names: what they stand for, and what is said of one that stands for nothing here.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/sema/builtins.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/habits.h"
#include "compiler/sema/host_number.h"

namespace gk::sema {

using syntax::BindKind;
using syntax::Expr;
using syntax::ExprKind;

namespace {

constexpr std::string_view kConstants[] = {"pi", "inf", "nan", "euler", "args"};

// Whether a value of this kind is what a name is expected to be.
bool suits(const Value& v, Meant meant) {
  const bool called = v.kind == VKind::Function || v.kind == VKind::Kernel || v.kind == VKind::Builtin;
  switch (meant) {
    case Meant::Call: return called || v.is_unknown() || (v.kind == VKind::Type && !v.type_syntax);
    case Meant::Type: return v.kind == VKind::Type;
    case Meant::Place: return !called && v.kind != VKind::Type && v.kind != VKind::Module;
    case Meant::Value: return v.kind != VKind::Builtin;
  }
  return true;
}

std::optional<int> rank_of(const Value& v) {
  if (v.is_scalar()) return 0;
  return v.is_array() ? std::optional(v.array->type.rank()) : std::nullopt;
}

}  // namespace

namespace {

// What `name` stands for; null: nothing, or `*hidden`, which a function does not see.
const std::shared_ptr<Variable>* search(std::string_view name, const Scope& scope,
                                        std::shared_ptr<Variable>* hidden) {
  bool beyond_function = false;
  for (const Scope* s = &scope; s; s = s->parent.get()) {
    if (auto it = s->names.empty() ? s->names.end() : s->names.find(name); it != s->names.end()) {
      if (!beyond_function || it->second->kind == BindKind::Const) return &it->second;
      if (hidden) *hidden = it->second;
      return nullptr;
    }
    beyond_function = beyond_function || s->function_boundary;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<Variable> Evaluator::lookup(std::string_view name, const ScopePtr& scope,
                                            std::shared_ptr<Variable>* hidden) const {
  const auto* found = scope ? search(name, *scope, hidden) : nullptr;
  return found ? *found : nullptr;
}

Variable* Evaluator::find(std::string_view name, const Scope& scope) {
  const auto* found = search(name, scope, nullptr);
  return found ? found->get() : nullptr;
}

Error Evaluator::hidden_name(std::string_view name, const Variable& v, Span span, Meant meant) const {
  Error e =
      make_error(ErrorKind::Type, "E0407", fmt::format("`{}` is not visible inside a function", name), span)
          .label(v.span, "declared here")
          .note("a function sees its parameters, consts, functions, kernels and types");
  const std::string of = call_stack_.empty() ? "the function" : fmt::format("`{}`", call_stack_.back()->name);
  const bool number = v.value.is_scalar() && v.kind == BindKind::Let;
  if (meant == Meant::Place)
    return std::move(e).help(
        fmt::format("give {0} a parameter `mut {1}` and pass `mut {1}` at the call", of, name));
  return std::move(e).help(fmt::format("give {} a parameter `{}` and pass it at the call{}", of, name,
                                       number ? fmt::format(", or declare `const {}`", name) : ""));
}

Error Evaluator::unknown_name(std::string_view name, const ScopePtr& scope, Span span, Meant meant) const {
  if (std::shared_ptr<Variable> hidden; !lookup(name, scope, &hidden) && hidden)
    return hidden_name(name, *hidden, span, meant);
  Error e = make_error(ErrorKind::Type, "E0401", fmt::format("unknown name `{}`", name), span);
  if (meant != Meant::Call && meant != Meant::Place && advise_name(e, name)) return e;
  std::vector<std::string_view> candidates;
  bool beyond_function = false;
  for (auto s = scope; s; s = s->parent) {
    for (const auto& [n, v] : s->names)
      if ((!beyond_function || v->kind == BindKind::Const) && suits(v->get(), meant)) candidates.push_back(n);
    beyond_function = beyond_function || s->function_boundary;
  }
  if (meant == Meant::Call)
    for (const Builtin& b : public_builtins()) candidates.push_back(b.name);
  if (meant == Meant::Value)
    candidates.insert(candidates.end(), std::begin(kConstants), std::end(kConstants));
  if (meant != Meant::Place)
    for (int t = 0; t < kDTypeCount; ++t) candidates.push_back(gk::name(static_cast<DType>(t)));
  if (const auto best = nearest(name, candidates); !best.empty())
    e = std::move(e).help(fmt::format("did you mean `{}`?", best));
  return e;
}

Result<Value> Evaluator::eval_name(const Expr& e, const ScopePtr& scope, Meant meant) {
  std::shared_ptr<Variable> hidden;
  if (auto v = lookup(e.text, scope, &hidden)) {
    note_seen(e.text, v);
    return v->get();
  }
  if (hidden) return fail(hidden_name(e.text, *hidden, e.span, meant));
  if (auto t = parse_dtype(e.text)) {
    Value v;
    v.kind = VKind::Type;
    v.dtype = *t;
    return v;
  }
  if (auto c = named_constant(e.text)) return Value::host(*c, true);
  if (e.text == "args") {
    used_args = true;
    Value v;
    v.kind = VKind::Strings;
    v.strings = std::make_shared<std::vector<std::string>>(options_.args);
    return v;
  }
  if (find_builtin(e.text) && (e.text[0] != '_' || file_of(*scope).library)) {
    Value v;
    v.kind = VKind::Builtin;
    v.text = e.text;
    return v;
  }
  return fail(unknown_name(e.text, scope, e.span, meant));
}

/// Whether there is a function `f`. Then `e` gets `help`, which says to call it with `args`, or what is said
/// of such a call where it is wrong.
bool Evaluator::advise_function(Error& e, std::string_view f, std::string help, std::vector<CallArg> args,
                                const ScopePtr& scope) {
  const auto v = lookup(f, scope);
  const bool known = v ? suits(v->get(), Meant::Call) && !v->get().is_unknown() : find_builtin(f) != nullptr;
  if (!known) return false;
  Value callee = v ? v->get() : Value::unknown();
  if (!v) {
    callee.kind = VKind::Builtin;
    callee.text = f;
  }
  const auto understood = [](const CallArg& a) { return !a.value.is_unknown() && !a.is_mut; };
  if (!running() && std::all_of(args.begin(), args.end(), understood)) {
    Call call;
    call.callee = f;
    call.args = std::move(args);
    const bool of_record = !call.args.empty() && call.args[0].value.kind == VKind::Record;
    if (auto tried = call_value(callee, call, scope); !tried) {
      e.helps.clear();
      if (!of_record) e.helps = std::move(tried.error().helps);
      return true;
    }
  }
  e.helps = {std::move(help)};
  return true;
}

Error Evaluator::unknown_callee(Error e, const Expr& call, const ScopePtr& scope) {
  const Expr& f = *call.lhs;
  std::string all;
  std::vector<WrittenArg> args;
  std::vector<CallArg> values;
  // What the arguments are, which is not looked at while the program runs.
  const auto add = [&](const std::string& name, const Expr& x, bool is_mut) {
    const std::string text = written(x.span);
    Value v = Value::unknown();
    if (!running() && !is_mut)
      if (auto found = eval(x, scope)) v = std::move(*found);
    args.push_back({name, text, rank_of(v)});
    CallArg a;
    a.name = name;
    a.value = std::move(v);
    a.span = x.span;
    a.is_mut = is_mut;
    values.push_back(std::move(a));
    all += (all.empty() ? "" : ", ") + (is_mut ? "mut " : name.empty() ? "" : name + "=") + text;
  };
  const bool named = f.kind == ExprKind::Name && e.code == "E0401" && e.span.begin == f.span.begin;
  const Expr* base = f.kind == ExprKind::Field ? f.lhs.get() : nullptr;
  while (base && base->kind == ExprKind::Field) base = base->lhs.get();
  const bool of_module = base && e.code == "E0401" && base->kind == ExprKind::Name &&
                         is_foreign_module(base->text) && e.span.begin == base->span.begin;
  const bool method = base && e.code == "E0209" && e.span.begin == f.field_span.begin;
  if (!named && !of_module && !method) return e;
  if (method) add("", *f.lhs, false);
  for (const auto& a : call.args) add(a.name, *a.value, a.is_mut);
  Error found = e;
  found.helps.clear();
  const std::string& name = named ? f.text : f.field;
  // np.sin(x), np.linalg.norm(x), x.sum(axis=1)
  std::string help =
      fmt::format("write `{}({})`{}", name, all, of_module ? ": gk has its functions without a module" : "");
  if (!named && advise_function(found, name, std::move(help), std::move(values), scope)) return found;
  return advise_call(found, name, args, false) ? found : e;
}

/// For `np.pi` and `m.nme`: `e` is the error of what is in front of the dot, if there is one.
Error Evaluator::unknown_member(std::optional<Error> e, const Expr& field, const Scope* module) const {
  if (module) {
    std::vector<std::string_view> names;
    for (const auto& [n, v] : module->names) names.push_back(n);
    Error error = make_error(ErrorKind::Type, "E0401",
                             fmt::format("the module has no name `{}`", field.field), field.field_span);
    const auto best = nearest(field.field, names);
    return best.empty()
               ? error
               : std::move(error).help(fmt::format("did you mean `{}.{}`?", written(field.lhs->span), best));
  }
  const Expr& base = *field.lhs;
  if (e->code != "E0401" || base.kind != ExprKind::Name || !is_foreign_module(base.text)) return *e;
  if (field.field == "e") return std::move(*e).help("write `euler`");
  const bool known = named_constant(field.field) || parse_dtype(field.field) || find_builtin(field.field);
  if (known)
    return std::move(*e).help(fmt::format("write `{}`: gk has its names without a module", field.field));
  advise_name(*e, field.field);
  return *e;
}

Error Evaluator::unknown_field(const Value& base, const Expr& e, const ScopePtr& scope) {
  Error error = make_error(ErrorKind::Type, "E0209",
                           fmt::format("{} has no field `{}`", describe(base), e.field), e.field_span);
  const std::string first = written(e.lhs->span);
  if (base.kind == VKind::Record) {
    error = std::move(error).note(fmt::format("its fields are {}", fmt::join(base.items->names, ", ")));
    std::vector<std::string_view> names(base.items->names.begin(), base.items->names.end());
    if (const auto best = nearest(e.field, names); !best.empty())
      return std::move(error).help(fmt::format("did you mean `{}.{}`?", first, best));
  }
  CallArg self;
  self.value = base;
  self.span = e.lhs->span;
  if (advise_function(error, e.field, fmt::format("write `{}({})`", e.field, first), {std::move(self)},
                      scope))
    return error;
  if (base.kind != VKind::Record) advise_call(error, e.field, {{"", first, rank_of(base)}}, false);
  return error;
}

}  // namespace gk::sema
