// Statements: conditions and loops, and what stands where no statement was meant to begin.
#include <fmt/format.h>

#include "compiler/sema/body.h"
#include "compiler/sema/rebound.h"

namespace gk::sema {

using syntax::Stmt;

std::string Evaluator::written(Span span) const {
  if (!span.valid()) return "…";
  const std::string& text = sources_.text(span.file);
  return span.begin <= span.end && span.end <= text.size() ? text.substr(span.begin, span.end - span.begin)
                                                           : "…";
}

// A value that nobody asked for, begun with a sign that was meant to go on with the line before.
Result<void> Evaluator::refuse_continuation(const Stmt& s) const {
  const std::string_view text = sources_.text(s.span.file);
  const auto begin = static_cast<size_t>(s.span.begin);
  if (begin >= text.size() || (text[begin] != '-' && text[begin] != '+')) return {};
  if (s.rhs->kind != syntax::ExprKind::Unary && s.rhs->kind != syntax::ExprKind::Binary) return {};
  const size_t before = text.substr(0, begin).find_last_not_of(" \t\r\n");
  if (before == std::string_view::npos || text[before] == '{' || text[before] == ';') return {};
  return fail(make_error(ErrorKind::Type, "E0412",
                         fmt::format("this line begins with `{}`, and its value is not used", text[begin]),
                         s.span)
                  .note("the statement before it ended with its line")
                  .help(fmt::format("to go on with that line, put the `{}` at its end", text[begin])));
}

Result<Flow> Evaluator::exec_if(const Stmt& s, const ScopePtr& scope, Value* value) {
  GK_TRY(auto c, eval(*s.rhs, scope));
  bool known = c.is_scalar() && c.known;
  if (!c.is_unknown()) {
    bool scalar_bool = (c.is_scalar() && is_bool(c.scalar.dtype)) ||
                       (c.is_array() && c.array->type.rank() == 0 && is_bool(c.array->type.dtype));
    if (!scalar_bool) return fail(not_a_condition(c, *s.rhs, "a condition is"));
  }
  HeldNumbers held;
  if (c.is_array() && rolling_ == 0) {
    std::set<std::string> names;
    rebound_outside(s, names);
    const auto arm = [&](bool then) {
      return [&, then](const ScopePtr& in) -> Result<void> {
        if (then) {
          GK_CHECK(exec_block(*s.body, in, nullptr));
        } else if (s.else_body) {
          GK_CHECK(exec_block(*s.else_body, in, nullptr));
        } else if (s.else_if) {
          GK_CHECK(exec(*s.else_if, in, nullptr));
        }
        return {};
      };
    };
    GK_TRY(held, hold_numbers(names, scope, {arm(true), arm(false)}, &s, s.span));
  }
  if (c.is_array() && running() && !capturing()) {
    GK_CHECK(refuse_in_capture("reading a condition back", s.rhs->span));
    GK_TRY(auto b, item(c, s.rhs->span));
    c = Value::of_scalar(b);
    known = true;
  }
  auto other = [&](Value* v) -> Result<Flow> {
    if (s.else_body) return exec_block(*s.else_body, scope, v);
    if (s.else_if) return exec(*s.else_if, scope, v);
    return Flow::Next;
  };
  if (known) return c.scalar.i ? exec_block(*s.body, scope, value) : other(value);
  if (c.is_array() && capturing()) {
    Branches b;
    b.span = s.span;
    rebound_outside(s, b.rebound);
    b.arms[0] = [&](Value* v) { return stay(exec_block(*s.body, scope, v), s); };
    b.arms[1] = [&](Value* v) { return stay(other(v), s); };
    GK_TRY(auto v, branch(c.array, b, scope, value != nullptr));
    if (value) *value = std::move(v);
    return Flow::Next;
  }
  std::set<std::string> names;
  assigned_names(s, names);
  auto before = snapshot(names, scope);
  Value then_value = Value::none(), else_value = Value::none();
  GK_CHECK(exec_block(*s.body, scope, &then_value));
  std::vector<Value> after;
  for (auto& [var, old] : before) {
    after.push_back(var->get());
    var->get() = old;
  }
  GK_CHECK(other(&else_value));
  for (size_t i = 0; i < before.size(); ++i) before[i].first->get() = join(after[i], before[i].first->get());
  if (value) *value = join(then_value, else_value);
  return Flow::Next;
}

Result<Flow> Evaluator::exec_while(const Stmt& s, const ScopePtr& scope) {
  HeldNumbers held;
  // The condition, as it is once the numbers that the body rebinds have their dtypes.
  auto condition = [&, typed = false](const std::function<void()>& forget,
                                      const std::function<void()>& restore) mutable -> Result<Value> {
    forget();
    GK_TRY(auto c, eval(*s.rhs, scope));
    if (typed || !c.is_array() || rolling_ > 0) return c;
    typed = true;
    restore();
    std::set<std::string> names;
    rebound_outside(s, names);
    const auto body = [&](const ScopePtr& in) -> Result<void> {
      GK_CHECK(exec_block(*s.body, in, nullptr));
      return {};
    };
    GK_TRY(held, hold_numbers(names, scope, {body}, &s, s.span));
    forget();
    if (!held.changed() || may_write(*s.rhs, scope)) return c;
    return eval(*s.rhs, scope);
  };
  if (!running()) {
    std::set<std::string> names;
    assigned_names(s, names);
    std::vector<std::pair<Variable*, Value>> before;
    const auto forget = [&] {
      before = snapshot(names, scope);
      forget_scalars(names, scope);
    };
    const auto restore = [&] {
      for (auto& [var, old] : before) var->get() = old;
    };
    GK_TRY(auto c, condition(forget, restore));
    bool ok = c.is_unknown() || (c.is_scalar() && is_bool(c.scalar.dtype)) ||
              (c.is_array() && c.array->type.rank() == 0 && is_bool(c.array->type.dtype));
    if (!ok) return fail(not_a_condition(c, *s.rhs, "a condition is"));
    if (c.is_array() && capturing()) {
      restore();
      GK_CHECK(device_while(s, scope, c.array));
      return Flow::Next;
    }
    GK_CHECK(exec_block(*s.body, scope, nullptr));
    for (auto& [var, old] : before) var->get() = join(old, var->get());
    return Flow::Next;
  }
  while (true) {
    GK_CHECK(poll(s.span));
    GK_TRY(auto c, condition([] {}, [] {}));
    const bool of_device = c.is_array() && c.array->type.rank() == 0 && is_bool(c.array->type.dtype);
    if (of_device && capturing()) {
      GK_CHECK(device_while(s, scope, c.array));
      return Flow::Next;
    }
    if (c.is_array()) {
      GK_CHECK(refuse_in_capture("reading a condition back", s.rhs->span));
      if (of_device) {
        GK_TRY(auto b, item(c, s.rhs->span));
        c = Value::of_scalar(b);
      }
    }
    if (!c.is_scalar() || !is_bool(c.scalar.dtype)) return fail(not_a_condition(c, *s.rhs, "a condition is"));
    if (!c.scalar.i) return Flow::Next;
    GK_TRY(auto flow, exec_block(*s.body, scope, nullptr));
    if (flow == Flow::Break) return Flow::Next;
    if (flow == Flow::Return) return flow;
  }
}

}  // namespace gk::sema
