// What somebody types at a session, entry by entry, and what they ask of its names. An entry is checked as a
// whole and then run; whatever becomes of it, checking goes on from the names that running has.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "compiler/engine/session_impl.h"
#include "compiler/sema/inspect.h"
#include "compiler/sema/known_names.h"
#include "runtime/base/options.h"

namespace gk {

using sema::Value;
using sema::VKind;
using syntax::StmtKind;

namespace {

constexpr std::string_view kAnswer = "ans";
constexpr size_t kShortText = 40;

// The value of an `if` with all its arms, as an expression.
syntax::ExprPtr choice_of(syntax::Stmt& s) {
  auto e = std::make_unique<syntax::Expr>();
  e->kind = syntax::ExprKind::If;
  e->span = s.span;
  e->lhs = std::move(s.rhs);
  e->body = std::move(s.body);
  e->else_body = std::move(s.else_body);
  if (s.else_if) e->else_if = choice_of(*s.else_if);
  return e;
}

bool has_all_arms(const syntax::Stmt& s) {
  return s.kind == StmtKind::IfStmt && (s.else_body || (s.else_if && has_all_arms(*s.else_if)));
}

// `let ans = e`, of a statement that gives a value.
syntax::StmtPtr answer_of(syntax::StmtPtr e) {
  auto let = std::make_unique<syntax::Stmt>();
  let->kind = StmtKind::Let;
  let->span = e->span;
  let->bind = syntax::BindKind::Let;
  let->bindings.resize(1);
  let->bindings[0].span = let->bindings[0].name_span = e->span;
  let->bindings[0].name = kAnswer;
  let->bindings[0].init = e->kind == StmtKind::IfStmt ? choice_of(*e) : std::move(e->rhs);
  return let;
}

std::string_view kind_name(const sema::Variable& v) {
  switch (v.value.kind) {
    case VKind::Function: return v.kind == syntax::BindKind::Const ? "fn" : "let";
    case VKind::Kernel: return "kernel";
    case VKind::Type: return "type";
    case VKind::Graph: return "graph";
    case VKind::Exec: return "executable";
    case VKind::Module: return "module";
    default: break;
  }
  switch (v.kind) {
    case syntax::BindKind::Var: return "var";
    case syntax::BindKind::Const: return "const";
    default: return "let";
  }
}

std::string in_one_line(sema::Effects& effects, const Value& v) {
  if (v.is_scalar()) return fmt::format("{} {}", sema::kind_of(v), effects.format(v.scalar));
  if (v.kind == VKind::String && v.text.size() <= kShortText && v.text.find('\n') == std::string::npos)
    return fmt::format("string \"{}\"", v.text);
  return sema::kind_of(v);
}

int64_t bytes_of(const ir::Type& t) { return num_elements(t.shape()).value_or(0) * size_bytes(t.dtype); }

int64_t bytes_of(const Value& v) {
  int64_t bytes = 0;
  sema::for_each_array(v, [&](const sema::ArrayPtr& a) { bytes += bytes_of(a->type); });
  return bytes;
}

}  // namespace

void Session::Impl::tell_users(const std::vector<std::pair<std::string, Value>>& replaced, int32_t file) {
  for (const auto& [name, earlier] : replaced) {
    const auto users = sema::users_of(*runner->root(), made_by, name, earlier, file);
    if (users.empty()) continue;
    std::string list;
    for (const auto& u : users) list += fmt::format("{}`{}`", list.empty() ? "" : ", ", u);
    warn(make_error(
             ErrorKind::Usage, "",
             fmt::format("{} {} on with the `{}` from before", list, users.size() == 1 ? "goes" : "go", name))
             .help(users.size() == 1 ? "make it again to use the new one"
                                     : "make them again to use the new one"));
  }
}

std::string Session::Impl::device_id() const {
  return effects ? nlohmann::json::parse(effects->device_json()).value("id", "") : std::string();
}

Status Session::Impl::show_answer(const syntax::Stmt& s) {
  const auto it = runner->root()->names.find(kAnswer);
  if (it == runner->root()->names.end()) return Status::Ok;
  const Value& v = it->second->value;
  auto text = sema::shown(*runner, v, s.span);
  if (!text) return report(text.error(), false);
  const std::string header = sema::header(v, device_id());
  out(header.empty() ? *text + "\n" : fmt::format("{}\n{}\n", header, *text));
  return Status::Ok;
}

Status Session::Impl::keep_answer(const Value& v, Span span) {
  const auto bind = [&]() -> Result<void> {
    GK_TRY(auto value, runner->settled(v, span));
    GK_TRY(value, runner->bind_value(value, span));
    auto var = std::make_shared<sema::Variable>();
    var->value = std::move(value);
    var->span = span;
    sema::name_arrays(var->value, std::string(kAnswer));
    runner->root()->names[std::string(kAnswer)] = std::move(var);
    return runner->flush(span);
  };
  const auto bound = bind();
  return bound ? settle() : report(bound.error(), false);
}

// Statement by statement, each waited for: a fault of the device is that of its statement, and what this gave
// to names is taken back where it was told at its end. `last`, where it is not null, is given the value of
// the last one.
Status Session::Impl::run_statements(syntax::Module& module, Value* last) {
  runner->satisfied.insert(checker->satisfied.begin(), checker->satisfied.end());
  runner->declare_functions(module, runner->root());
  syntax::Module one;
  one.span = module.span;
  for (auto& s : module.stmts) {
    sema::NamesBefore before(*runner, sema::names_of_work(*runner->root(), *s));
    one.stmts.clear();
    one.stmts.push_back(std::move(s));
    const auto errors = runner->run(one, runner->root(), &s == &module.stmts.back() ? last : nullptr);
    s = std::move(one.stmts.back());
    // What was done up to there stays, as the turns of a loop before it was interrupted.
    if (!errors.empty()) return report_all(errors, false);
    if (const Status status = settle(); status != Status::Ok) {
      if (status != Status::Interrupted) before.restore();
      return status;
    }
  }
  return Status::Ok;
}

Status Session::Impl::run_entry(syntax::Module& module, bool shows) {
  sema::NameSet names = {std::string(kAnswer)};
  for (const auto& s : module.stmts) names.merge(sema::names_of_work(*runner->root(), *s));
  const sema::NamesBefore known(*checker, names);
  const bool is_choice = !module.stmts.empty() && has_all_arms(*module.stmts.back());
  const bool may_answer =
      is_choice || (!module.stmts.empty() && module.stmts.back()->kind == StmtKind::ExprStmt);
  const bool muted = may_answer && std::exchange(module.stmts.back()->muted, false);
  Value last = Value::none();
  auto errors = checker->run(module, checker->root(), may_answer ? &last : nullptr);
  if (!errors.empty()) {
    known.restore();
    return report_all(errors, true);
  }
  // What is unknown before it has run may turn out to be nothing.
  const bool asks = may_answer && last.is_unknown();
  bool answers = may_answer && last.kind != VKind::None && !asks;
  if (answers) module.stmts.back() = answer_of(std::move(module.stmts.back()));
  std::vector<std::pair<std::string, Value>> replaced;
  for (const auto& s : module.stmts)
    for (const std::string& name : sema::declared_by(*s))
      if (const auto v = runner->root()->names.find(name);
          name != kAnswer && v != runner->root()->names.end())
        replaced.emplace_back(name, v->second->value);
  Value made = Value::none();
  Status status = run_statements(module, asks ? &made : nullptr);
  if (status == Status::Ok && made.kind != VKind::None) {
    status = keep_answer(made, module.stmts.back()->span);
    answers = status == Status::Ok;
  }
  sema::learn(*checker, known, *runner, names);
  for (const auto& s : module.stmts) sema::note_made(*s, made_by);
  tell_users(replaced, module.span.file);
  if (status == Status::Ok && answers && shows && !muted) status = show_answer(*module.stmts.back());
  return status;
}

bool Session::forget(std::string_view name) {
  if (impl_->opened != Status::Ok) return false;
  const std::string word(name);
  impl_->checker->root()->names.erase(word);
  const bool there = impl_->runner->root()->names.erase(word) > 0;
  impl_->checker->note_definitions();
  impl_->runner->note_definitions();
  return there;
}

Status Session::Impl::enter(std::string_view name, std::string_view text, bool shows) {
  if (opened != Status::Ok) return opened;
  return guarded([&] {
    interrupt_flag = false;
    const int32_t file = sources.add(std::string(name), std::string(text));
    auto parsed =
        syntax::parse(sources, file, [this] { return interrupt_flag.load(std::memory_order_relaxed); });
    if (!parsed.errors.empty()) return report_all(parsed.errors, true);
    modules.push_back(std::make_shared<syntax::Module>(std::move(parsed.module)));
    return run_entry(*modules.back(), shows);
  });
}

Status Session::enter(std::string_view name, std::string_view text, bool shows) {
  return impl_->enter(name, text, shows);
}

Status Session::enter(Emit what, std::string_view name, std::string_view text, std::string& result) {
  if (what < Emit::Ast || what > Emit::Dot)
    return impl_->report(make_error(ErrorKind::Type, "E0512", "what to emit is no gk::Emit"), false);
  if (what == Emit::Ast) return impl_->emit_tree(name, text, result);
  if (impl_->opened != Status::Ok) return impl_->opened;
  return impl_->emitted(what, result, [&] { return impl_->enter(name, text, false); });
}

Status Session::type_of(std::string_view name, std::string_view text, std::string& type, bool tells) {
  if (impl_->opened != Status::Ok) return impl_->opened;
  const auto told = [&](const std::vector<Error>& errors) {
    return tells ? impl_->report_all(errors, true) : Status::CompileError;
  };
  return impl_->guarded([&] {
    impl_->interrupt_flag = false;
    const int32_t file = impl_->sources.add(std::string(name), std::string(text));
    auto parsed = syntax::parse(impl_->sources, file);
    if (!parsed.errors.empty()) return told(parsed.errors);
    auto& stmts = parsed.module.stmts;
    if (stmts.size() != 1 || stmts[0]->kind != StmtKind::ExprStmt)
      return told({make_error(ErrorKind::Usage, "E1101", "one expression is needed, whose type is asked for",
                              parsed.module.span)});
    impl_->modules.push_back(std::make_shared<syntax::Module>(std::move(parsed.module)));
    auto& module = *impl_->modules.back();
    module.stmts[0]->muted = false;
    sema::NamesBefore known(*impl_->checker, sema::names_of_work(*impl_->runner->root(), *module.stmts[0]));
    Value v = Value::none();
    auto errors = impl_->checker->run(module, impl_->checker->root(), &v);
    known.restore();
    if (!errors.empty()) return told(errors);
    type = sema::kind_of(v);
    return Status::Ok;
  });
}

std::vector<NameInfo> Session::names() const {
  std::vector<NameInfo> names;
  if (impl_->opened != Status::Ok) return names;
  const std::string device = impl_->device_id();
  for (const auto& [name, v] : impl_->runner->root()->names) {
    const std::string header = sema::header(v->value, device);
    const bool function = v->value.callable != nullptr;
    names.push_back({name, std::string(kind_name(*v)),
                     function         ? sema::signature(impl_->sources, *v->value.callable)
                     : header.empty() ? in_one_line(*impl_->effects, v->value)
                                      : header,
                     bytes_of(v->value)});
  }
  return names;
}

std::string Session::about(std::string_view name, bool whole) const {
  return impl_->opened == Status::Ok ? sema::about(*impl_->runner, name, whole) : std::string();
}

std::vector<std::string> Session::completions(std::string_view text) const {
  if (impl_->opened != Status::Ok) return {};
  return sema::completions(*impl_->runner, text);
}

Status Session::graph(std::string_view name, std::vector<NodeInfo>& nodes) {
  nodes.clear();
  if (impl_->opened != Status::Ok) return impl_->opened;
  const sema::Variable* v = sema::Evaluator::find(name, *impl_->runner->root());
  if (v == nullptr)
    return impl_->report(make_error(ErrorKind::Type, "E0401", fmt::format("unknown name `{}`", name)), true);
  const bool executable = v->value.kind == VKind::Exec;
  if (v->value.kind != VKind::Graph && !executable)
    return impl_->report(make_error(ErrorKind::Type, "E0202",
                                    fmt::format("`{}` is {}, not a graph", name, sema::describe(v->value))),
                         true);
  const auto steps = impl_->effects->node_steps(*v->value.graph, executable);
  for (size_t i = 0; i < v->value.graph->nodes.size(); ++i) {
    const auto& n = v->value.graph->nodes[i];
    NodeInfo info{n.name, impl_->sources.where(n.span), {}, n.after, 0};
    if (i < steps.size()) info.steps = steps[i];
    for (const auto* list : {&n.reads, &n.writes})
      for (const auto& s : *list) info.bytes += bytes_of(s->type);
    nodes.push_back(std::move(info));
  }
  return Status::Ok;
}

bool Session::set(std::string_view option, bool on) {
  if (!impl_->effects) return false;
  auto& effects = *impl_->effects;
  if (option == "sync")
    effects.sync = on;
  else if (option == "eager")
    effects.eager = on;
  else
    return false;
  return true;
}

std::string Session::device() const { return impl_->device_id(); }

std::string state_folder() { return options().state_dir; }
bool unfinished(std::string_view text) { return syntax::is_incomplete(text); }
size_t word_begin(std::string_view text) { return sema::word_begin(text); }

}  // namespace gk
