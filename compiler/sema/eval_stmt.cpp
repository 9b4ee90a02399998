// Statements: bindings, assignment, definitions.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cstdint>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/guards.h"
#include "compiler/sema/operators.h"
#include "compiler/sema/rebound.h"
#include "compiler/sema/sites.h"
#include "compiler/syntax/parse.h"

namespace gk::sema {

using syntax::AssignOp;
using syntax::BindKind;
using syntax::ExprKind;
using syntax::Stmt;
using syntax::StmtKind;

static constexpr int64_t kMostMistakes = 200;

Evaluator::Evaluator(syntax::SourceMap& sources, Effects* effects, EvalOptions options)
    : sources_(sources),
      effects_(effects),
      options_(std::move(options)),
      root_(std::make_shared<Scope>()),
      sites_(std::make_unique<Sites>(*this)) {
  trace_ = std::make_unique<Trace>(running());
}

Evaluator::~Evaluator() {
  for (const auto& weak : closures_)
    if (auto scope = weak.lock()) scope->names.clear();
}

void Evaluator::remember(const ScopePtr& scope) {
  if (!closures_.empty() && closures_.back().lock() == scope) return;
  if (closures_.size() >= 4096) std::erase_if(closures_, [](const auto& w) { return w.expired(); });
  closures_.push_back(scope);
}

void Evaluator::record(Error e) {
  ++mistakes_;
  std::string key = fmt::format("{}:{}:{}:{}", e.code, e.span.file, e.span.begin, e.message);
  if (error_keys_.insert(key).second) errors_.push_back(std::move(e));
}

namespace {

// The lowest address that evaluation may reach on this thread.
uintptr_t stack_floor() {
  static thread_local const uintptr_t floor = [] {
    constexpr uintptr_t kReserve = 768 * 1024;
    pthread_attr_t attributes;
    void* address = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return uintptr_t{0};
    pthread_attr_getstack(&attributes, &address, &size);
    pthread_attr_destroy(&attributes);
    return reinterpret_cast<uintptr_t>(address) + std::min<uintptr_t>(kReserve, size / 2);
  }();
  return floor;
}

}  // namespace

Result<void> Evaluator::check_stack(Span span) const {
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) > stack_floor()) return {};
  return fail(make_error(ErrorKind::Unsupported, "E0105", "calls and blocks are nested too deeply here", span)
                  .note("the limit is the stack of the running thread: some hundreds of calls within calls"));
}

Result<void> Evaluator::poll(Span span) {
  const bool stop = running() ? effects_->interrupted() : options_.interrupted && options_.interrupted();
  if (stop) return fail(ErrorKind::Interrupted, "E0806", "interrupted", span);
  return {};
}

std::vector<Error> Evaluator::run(const syntax::Module& module, const ScopePtr& scope, Value* last) {
  errors_.clear();
  followed_calls_.clear();
  declare_functions(module, scope);
  defined_.clear();
  scope->begun = false;
  later_.clear();
  bool over = false;
  for (const auto& s : module.stmts) {
    auto flow = exec(*s, scope, s == module.stmts.back() ? last : nullptr);
    if (flow && *flow != Flow::Next)
      flow = fail(ErrorKind::Type, "E0409",
                  fmt::format("`{}` outside a loop", *flow == Flow::Break ? "break" : "continue"), s->span);
    if (!flow) {
      // What was found so far in a program that was not checked to its end is beside the point.
      if (flow.error().kind == ErrorKind::Interrupted) errors_.clear();
      over = running() || flow.error().kind == ErrorKind::Interrupted;
      record(came_first(std::move(flow.error())));
    }
    // A statement may have told its mistakes itself.
    over = over || errors_.size() >= kMostErrors;
    if (over) {
      // What was piled up for the failed statement is dropped; names keep what they had.
      drop_trace();
      break;
    }
  }
  for (size_t i = 0; i < later_.size() && !over; ++i) {
    const auto [test, its_scope] = later_[i];
    if (auto r = check_apart(*test->body, its_scope); !r) {
      if (r.error().kind == ErrorKind::Interrupted) errors_.clear();
      over = r.error().kind == ErrorKind::Interrupted;
      record(std::move(r.error()));
    }
  }
  return std::move(errors_);
}

// Functions and kernels of a file see each other whatever their order.
void Evaluator::declare_functions(const syntax::Module& module, const ScopePtr& scope) {
  for (const auto& s : module.stmts)
    if (s->kind == StmtKind::Fn || s->kind == StmtKind::Kernel) define(*s, scope);
}

void Evaluator::define(const Stmt& s, const ScopePtr& scope) {
  auto v = std::make_shared<Variable>();
  v->kind = BindKind::Const;
  v->span = s.fn ? s.fn->name_span : s.kernel ? s.kernel->name_span : s.name_span;
  if (s.kind == StmtKind::TypeDef) {
    v->value.kind = VKind::Type;
    v->value.type_def = std::make_shared<TypeDef>();
    v->value.type_def->name = s.name;
    v->value.type_def->body = s.type.get();
    v->value.type_def->scope = scope;
    if (s.type->kind == syntax::TypeExpr::Kind::Record) v->value.type_def->field_names = s.type->field_names;
  } else {
    v->value = function_of(s, scope);
  }
  remember(scope);
  ++definitions_;
  scope->names[s.fn ? s.fn->name : s.kernel ? s.kernel->name : s.name] = std::move(v);
}

// A const, function, kernel, type or graph is defined once in a file; `let` and `var` may come again.
Result<void> Evaluator::define_once(const std::string& name, Span span, bool again) {
  if (running() || eager_depth_ > 0) return {};
  auto [it, fresh] = defined_.emplace(name, Defined{span, again});
  if (fresh || (again && it->second.again)) return {};
  return fail(make_error(ErrorKind::Type, "E0408", fmt::format("`{}` is defined already", name), span)
                  .label(it->second.span, "the first definition")
                  .help("give one of them another name"));
}

Result<void> Evaluator::run_body(const syntax::Block& body, const ScopePtr& scope) {
  auto r = exec_block(body, scope, nullptr);
  if (!r) {
    drop_trace();
    return fail(came_first(std::move(r.error())));
  }
  return flush(body.span);
}

Error Evaluator::came_first(Error e) {
  if (!running() || e.kind == ErrorKind::Interrupted) return e;
  auto waited = effects_->synchronize();
  return waited ? std::move(e) : std::move(waited.error());
}

Result<void> Evaluator::run_bench(const syntax::Block& body, const ScopePtr& scope) {
  const Instead benching(benching_, true);
  return run_body(body, scope);
}

Result<Flow> Evaluator::exec_block(const syntax::Block& b, const ScopePtr& scope, Value* value) {
  auto inner = std::make_shared<Scope>();
  inner->parent = scope;
  return exec_in(b, inner, value);
}

Result<Flow> Evaluator::exec_in(const syntax::Block& b, const ScopePtr& scope, Value* value) {
  for (size_t i = 0; i < b.stmts.size(); ++i) {
    bool last = i + 1 == b.stmts.size();
    auto flow = exec(*b.stmts[i], scope, last ? value : nullptr);
    if (!flow) {
      // Checking goes on with the next statement, so that several mistakes are reported; where there are a
      // great many, each function gives up at its first.
      const bool enough = capture_depth_ > 1000 || mistakes_ > kMostMistakes;
      if (running() || flow.error().kind == ErrorKind::Interrupted || enough) return flow;
      record(std::move(flow.error()));
      if (last && value) *value = Value::unknown();
      continue;
    }
    if (*flow != Flow::Next) return flow;
  }
  return Flow::Next;
}

Result<Flow> Evaluator::exec(const Stmt& s, const ScopePtr& scope, Value* value) {
  GK_CHECK(poll(s.span));
  GK_CHECK(check_stack(s.span));
  GK_CHECK(bound_trace(s.span));
  // Note [Sites]
  const bool unit = eager_depth_ == 0 && !capturing();
  if (!unit || value || !running() || rolling_ > 0 || !Sites::may_repeat(s))
    return exec_anew(s, scope, value);
  scope->begun = true;
  GK_CHECK(sites_->run(s, scope));
  GK_CHECK(check_places(scope, s.span));
  return Flow::Next;
}

Result<Flow> Evaluator::exec_anew(const Stmt& s, const ScopePtr& scope, Value* value) {
  const bool unit = eager_depth_ == 0 && !capturing();
  Value measured;  // alive until the unit is flushed, which gives it a home
  if (s.kind != StmtKind::Pragma) scope->begun = true;
  switch (s.kind) {
    case StmtKind::Let: GK_CHECK(exec_let(s, scope)); break;
    case StmtKind::Assign: GK_CHECK(exec_assign(s, scope)); break;
    case StmtKind::ExprStmt: {
      if (!running() && !value) GK_CHECK(refuse_continuation(s));
      GK_TRY(auto v, eval(*s.rhs, scope));
      if (value && !s.muted)
        *value = std::move(v);
      else if (benching_ && call_depth_ == 0)
        measured = std::move(v);
      break;
    }
    case StmtKind::For: return exec_for(s, scope);
    case StmtKind::While: return exec_while(s, scope);
    case StmtKind::IfStmt: return exec_if(s, scope, value);
    case StmtKind::Break: return Flow::Break;
    case StmtKind::Continue: return Flow::Continue;
    case StmtKind::Return: {
      if (call_depth_ == 0) return fail(ErrorKind::Type, "E0409", "`return` outside a function", s.span);
      return_value_ = Value::none();
      if (s.rhs) {
        GK_TRY(return_value_, eval(*s.rhs, scope));
      }
      return Flow::Return;
    }
    case StmtKind::Fn: {
      if (!scope->parent) GK_CHECK(define_once(s.fn->name, s.fn->name_span, false));
      define(s, scope);
      // Once, however often the body around it is followed.
      if (!running() && checked_functions_.insert(s.fn.get()).second) GK_CHECK(check_function(*s.fn, scope));
      break;
    }
    case StmtKind::Kernel: {
      if (!scope->parent) GK_CHECK(define_once(s.kernel->name, s.kernel->name_span, false));
      define(s, scope);
      if (!running()) GK_CHECK(check_kernel(*s.kernel, scope));
      break;
    }
    case StmtKind::TypeDef: {
      if (!scope->parent) GK_CHECK(define_once(s.name, s.name_span, false));
      for (size_t i = 0; i < s.type->field_names.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (s.type->field_names[i] == s.type->field_names[j])
            return fail(ErrorKind::Type, "E0408",
                        fmt::format("two fields are called `{}`", s.type->field_names[i]),
                        s.type->field_spans[i]);
      define(s, scope);
      break;
    }
    case StmtKind::Graph: GK_CHECK(exec_graph(s, scope)); break;
    case StmtKind::Update: GK_CHECK(exec_update(s, scope)); break;
    case StmtKind::Import: GK_CHECK(exec_import(s, scope)); break;
    case StmtKind::Pragma: GK_CHECK(exec_pragma(s, *scope)); break;
    case StmtKind::Assert: GK_CHECK(exec_assert(s, scope)); break;
    case StmtKind::Test:
    case StmtKind::Bench:
      // Bodies run on request, after the program; checking sees them all, then.
      if (!running()) later_.emplace_back(&s, scope);
      break;
    case StmtKind::ExpectError: GK_CHECK(exec_expect_error(s, scope)); break;
  }
  if (unit) GK_CHECK(flush(s.span, true));
  GK_CHECK(check_places(scope, s.span));
  return Flow::Next;
}

Result<void> Evaluator::exec_let(const Stmt& s, const ScopePtr& scope) {
  for (const auto& b : s.bindings) {
    for (const auto& other : s.bindings)
      if (&other < &b && other.name == b.name && b.name != "_")
        return fail(
            make_error(ErrorKind::Type, "E0408", fmt::format("`{}` is bound twice here", b.name), b.name_span)
                .label(other.name_span, "the first"));
    if (!scope->parent && b.name != "_")
      GK_CHECK(define_once(b.name, b.name_span, s.bind != BindKind::Const));
    auto var = declare(s, b);
    if (s.bind == BindKind::Const) ++definitions_;
    auto bind = [&]() -> Result<void> {
      Value v;
      if (auto d = options_.defines.find(b.name);
          s.bind == BindKind::Const && d != options_.defines.end() && scope->parent == nullptr) {
        used_defines.insert(b.name);
        int32_t file = sources_.add("-D " + b.name, d->second);
        auto parsed = syntax::parse(sources_, file);
        if (!parsed.errors.empty()) return fail(std::move(parsed.errors[0]));
        if (parsed.module.stmts.size() != 1 || parsed.module.stmts[0]->kind != StmtKind::ExprStmt)
          return fail(ErrorKind::Usage, "E1101", fmt::format("-D {}: not an expression", b.name),
                      parsed.module.span);
        GK_TRY(v, eval(*parsed.module.stmts[0]->rhs, scope));
      } else if (b.init) {
        const Instead eager(eager_depth_, eager_depth_ + 1);
        GK_TRY(v, eval(*b.init, scope));
      } else if (b.type) {
        GK_TRY(v, default_of(*b.type, scope, b.span));
      } else {
        return fail(ErrorKind::Type, "E0211", fmt::format("`{}` needs a value or a type", b.name), b.span);
      }
      Span at = b.init ? b.init->span : b.span;
      if (v.kind == VKind::None)
        return fail(ErrorKind::Type, "E0202",
                    fmt::format("`{}` would hold nothing: this gives no value", b.name), at);
      if (b.type) {
        GK_TRY(v, conform(v, *b.type, scope, false, at, fmt::format("`{}`", b.name)));
      }
      GK_TRY(v, settled(v, at));
      bool stays = b.type && b.type->placement == "host";
      if (running() && !stays) {
        GK_TRY(v, to_device(v, at));
      }
      if (s.bind == BindKind::Const) {
        if (!v.is_scalar() && v.kind != VKind::String && v.kind != VKind::Type && !v.is_unknown()) {
          // As what it should be, for what is said of its uses.
          var->kind = BindKind::Let;
          var->value = v;
          return fail(
              make_error(ErrorKind::Type, "E0212",
                         fmt::format("a const is a host value known at compile time, not {}", describe(v)),
                         at)
                  .help(fmt::format("declare it `let {}`; functions and kernels are given it as an argument",
                                    b.name)));
        }
        if (v.is_scalar() && !v.known && !running())
          return fail(
              make_error(ErrorKind::Type, "E0212", "the value of a const must be known at compile time", at)
                  .help(fmt::format("declare it `let {}`; functions and kernels are given it as an argument",
                                    b.name)));
        if (!v.is_scalar() || !is_integer(v.scalar.dtype)) v.text = v.kind == VKind::String ? v.text : "";
        if (v.is_scalar()) v.text = b.name;
        var->value = v;
      } else {
        bool immutable_scalar = s.bind == BindKind::Let;
        GK_TRY(var->value, bind_value(v, at));
        if (var->value.is_scalar() && immutable_scalar && is_integer(var->value.scalar.dtype))
          var->value.text = b.name;
        else if (var->value.is_scalar())
          var->value.text.clear();
        name_arrays(var->value, b.name);
      }
      return {};
    };
    auto r = bind();
    std::shared_ptr<Variable> before;
    if (b.name != "_") before = std::exchange(scope->names[b.name], var);
    // What functions saw under this name is hidden from them now.
    if (before && before->kind == BindKind::Const && s.bind != BindKind::Const) ++definitions_;
    const auto take_back = [&] {
      if (before)
        scope->names[b.name] = before;
      else
        scope->names.erase(b.name);
    };
    if (!r && running()) take_back();
    if (!r) {
      // The names that follow are bound all the same: that they were not would be said as a mistake of its
      // own.
      const bool last = &b == &s.bindings.back();
      if (last || running() || r.error().kind == ErrorKind::Interrupted || mistakes_ > kMostMistakes)
        return r;
      record(std::move(r.error()));
      continue;
    }
    if (running() && eager_depth_ == 0 && !capturing()) {
      if (auto done = flush(s.span, &b == &s.bindings.back()); !done) {
        take_back();
        return done;
      }
      name_arrays(var->value, b.name);
    }
  }
  return {};
}

std::shared_ptr<Variable> Evaluator::declare(const Stmt& let, const syntax::Binding& b) const {
  auto var = std::make_shared<Variable>();
  var->kind = let.bind;
  var->span = b.name_span;
  var->depth = bodies_.size();
  var->capture_depth = capture_depth_;
  var->unit = unit_;
  return var;
}

void Evaluator::rebind(Variable& var, Value v, const Stmt& assignment) {
  var.value = std::move(v);
  ++var.changes;
  if (var.captured) ++captured_changes_;
  var.changed = assignment.span;
}

Result<void> Evaluator::exec_assign(const Stmt& s, const ScopePtr& scope) {
  GK_TRY(const bool appended, append_text(s, scope));
  if (appended) return {};
  ++eager_depth_;
  auto r = eval(*s.rhs, scope);
  --eager_depth_;
  if (auto none = undeclared(s, scope)) return fail(r ? std::move(*none) : std::move(r.error()));
  if (!r) return fail(std::move(r.error()));
  Value v = std::move(*r);
  if (v.kind == VKind::None)
    return fail(ErrorKind::Type, "E0202", "this gives no value to assign", s.rhs->span);
  const bool combines = s.assign_op != AssignOp::Set;
  if (!s.elementwise) {
    if (combines) {
      GK_TRY(auto old, eval(*s.lhs, scope));
      GK_TRY(v, binary(combining(s.assign_op), old, v, nullptr, s.op_span));
    }
    if (s.lhs->kind != ExprKind::Name) {
      if (s.lhs->kind != ExprKind::Field && s.lhs->kind != ExprKind::IndexOp) return fail(no_place(*s.lhs));
      if (auto target = place(*s.lhs, scope); target && *target && (*target)->is_scalar())
        return fail(no_storage(s, **target, scope));
      return fail(
          make_error(ErrorKind::Type, "E0403",
                     fmt::format("`{}` rebinds names; a field or an element is a place", written(s.op_span)),
                     s.lhs->span)
              .help(fmt::format("write to it with `.{}`", written(s.op_span))));
    }
    if (s.lhs->text == "_") return {};
    auto var = lookup(s.lhs->text, scope);
    if (var->kind != BindKind::Var || var->is_param) return fail(not_rebindable(*s.lhs, *var));
    // Rebinding a name from outside a capture would not happen at launch.
    if (var->capture_depth < capture_depth_ && !var->value.is_unknown()) return fail(frozen(s, *var));
    GK_TRY(v, settled(v, s.rhs->span));
    if (var->assigned) var->assigned->push_back(v);
    GK_TRY(v, held_value(*var, std::move(v), s.rhs->span));
    GK_TRY(auto bound, bind_value(v, s.rhs->span));
    if (bound.is_scalar()) bound.text.clear();
    note_rebinding(var, s.lhs->span);
    rebind(*var, std::move(bound), s);
    name_arrays(var->value, s.lhs->text);
    return {};
  }
  // The right side is as if first, whatever the indices on the left do and whichever part is written first.
  if (v.is_aggregate() || may_write(*s.lhs, scope)) {
    GK_TRY(v, hold(v, s.rhs->span));
  }
  GK_TRY(auto target, find_place(*s.lhs, scope));
  if (target.part_of) return write_indexed(*target.part_of, s, std::move(v), scope);
  if (target.value->kind != VKind::Unknown && !target.value->is_array() && !target.value->is_aggregate())
    return fail(no_storage(s, *target.value, scope));
  const Value by = v;
  if (combines) {
    GK_TRY(v, binary(combining(s.assign_op), *target.value, v, nullptr, s.op_span));
  }
  auto done = write_place(*target.value, v, s.lhs->span, s.rhs->span);
  if (!done && target.value->is_array())
    return fail(combined(std::move(done.error()), s, by, target.value->array->type.dtype, false));
  return done;
}

}  // namespace gk::sema
