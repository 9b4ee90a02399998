// Names: what they stand for, and what is said of one that stands for nothing here.
#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

std::shared_ptr<Variable> Evaluator::lookup(std::string_view name, const ScopePtr& scope,
                                            std::shared_ptr<Variable>* hidden) const {
  bool beyond_function = false;
  for (auto s = scope; s; s = s->parent) {
    if (auto it = s->names.find(name); it != s->names.end()) {
      if (!beyond_function || it->second->kind == BindKind::Const) return it->second;
      if (hidden) *hidden = it->second;
      return nullptr;
    }
    beyond_function = beyond_function || s->function_boundary;
  }
  return nullptr;
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
    for (const auto* b : all_builtins()) candidates.push_back(b->name);
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
  if (find_builtin(e.text)) {
    Value v;
    v.kind = VKind::Builtin;
    v.text = e.text;
    return v;
  }
  return fail(unknown_name(e.text, scope, e.span, meant));
}

// `f(a)` for `a.f`, where there is such a function.
std::optional<std::string> Evaluator::as_call(std::string_view f, const std::string& first,
                                              const std::vector<syntax::Arg>* args,
                                              const ScopePtr& scope) const {
  const auto v = lookup(f, scope);
  const bool known = v ? suits(v->get(), Meant::Call) && !v->get().is_unknown() : find_builtin(f) != nullptr;
  if (!known) return std::nullopt;
  std::string text = fmt::format("{}({}", f, first);
  if (args)
    for (const auto& a : *args) text += (first.empty() && &a == args->data() ? "" : ", ") + written(a.span);
  return text + ")";
}

Error Evaluator::unknown_callee(Error e, const Expr& call, const ScopePtr& scope) const {
  std::vector<WrittenArg> args;
  for (const auto& a : call.args) args.push_back({a.name, written(a.value->span)});
  const Expr& f = *call.lhs;
  if (f.kind == ExprKind::Name && e.code == "E0401" && e.span.begin == f.span.begin) {
    Error found = e;
    found.helps.clear();
    return advise_call(found, f.text, args, false) ? found : e;
  }
  if (f.kind != ExprKind::Field || (e.code != "E0209" && e.code != "E0401")) return e;
  const Expr* base = f.lhs.get();
  while (base->kind == ExprKind::Field) base = base->lhs.get();
  if (base->kind == ExprKind::Name && is_foreign_module(base->text) && e.span.begin == base->span.begin) {
    // np.sin(x), np.linalg.norm(x)
    Error found = e;
    found.helps.clear();
    if (auto here = as_call(f.field, "", &call.args, scope))
      return std::move(found).help(fmt::format("write `{}`: gk has its functions without a module", *here));
    return advise_call(found, f.field, args, false) ? found : e;
  }
  if (e.code != "E0209" || e.span.begin != f.field_span.begin) return e;
  // x.sum(axis=1)
  const std::string first = written(f.lhs->span);
  Error found = e;
  found.helps.clear();
  if (auto here = as_call(f.field, first, &call.args, scope))
    return std::move(found).help(fmt::format("write `{}`", *here));
  args.insert(args.begin(), WrittenArg{"", first});
  return advise_call(found, f.field, args, false) ? found : e;
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
  const bool known = named_constant(field.field) || parse_dtype(field.field) || find_builtin(field.field);
  if (known)
    return std::move(*e).help(fmt::format("write `{}`: gk has its names without a module", field.field));
  advise_name(*e, field.field);
  return *e;
}

Error Evaluator::unknown_field(const Value& base, const Expr& e, const ScopePtr& scope) const {
  Error error = make_error(ErrorKind::Type, "E0209",
                           fmt::format("{} has no field `{}`", describe(base), e.field), e.field_span);
  const std::string first = written(e.lhs->span);
  if (base.kind == VKind::Record) {
    error = std::move(error).note(fmt::format("its fields are {}", fmt::join(base.items->names, ", ")));
    std::vector<std::string_view> names(base.items->names.begin(), base.items->names.end());
    if (const auto best = nearest(e.field, names); !best.empty())
      return std::move(error).help(fmt::format("did you mean `{}.{}`?", first, best));
  }
  if (auto here = as_call(e.field, first, nullptr, scope))
    return std::move(error).help(fmt::format("write `{}`", *here));
  if (base.kind != VKind::Record) advise_call(error, e.field, {{"", first}}, false);
  return error;
}

}  // namespace gk::sema
