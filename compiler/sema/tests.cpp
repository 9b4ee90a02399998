// assert, expect_error, and comparison within tolerances.
#include <fmt/format.h>

#include <cmath>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/numbers.h"

namespace gk::sema {

using syntax::BinaryOp;
using syntax::Expr;
using syntax::ExprKind;
using syntax::Stmt;

namespace {

Value close(double p, double q, int64_t i, double rtol, double atol) {
  Value r = Value::of_scalar(Scalar::of_bool(p == q || std::fabs(p - q) <= atol + rtol * std::fabs(q)));
  if (!r.scalar.i)
    r.text = fmt::format("element {}: {} against {}, which differ by {:.3g}", i, p, q, std::fabs(p - q));
  return r;
}

}  // namespace

Result<Value> Evaluator::eval_approx(const Value& a, const Value& b, const Expr& e, double rtol,
                                     double atol) {
  if (a.is_unknown() || b.is_unknown()) return Value::unknown_scalar(DType::Bool);
  if (a.is_aggregate() || b.is_aggregate()) {
    if (!a.is_aggregate() || !b.is_aggregate() || a.items->items.size() != b.items->items.size())
      return fail(ErrorKind::Type, "E0202", fmt::format("cannot compare {} and {}", describe(a), describe(b)),
                  e.span);
    for (size_t i = 0; i < a.items->items.size(); ++i) {
      GK_TRY(auto r, eval_approx(a.items->items[i], b.items->items[i], e, rtol, atol));
      if (r.known && !r.scalar.i) return r;
    }
    return running() ? Value::of_scalar(Scalar::of_bool(true)) : Value::unknown_scalar(DType::Bool);
  }
  GK_TRY(const Meeting met, common_dtype(a, b, "compare", e.op_span));
  if (a.is_scalar() && b.is_scalar()) {
    if (!running() || !a.known || !b.known) return Value::unknown_scalar(DType::Bool);
    return close(a.scalar.as_double(), b.scalar.as_double(), 0, rtol, atol);
  }
  // What has no dtype takes that of the other side.
  const auto side = [&](const Value& v) {
    const bool adopts = !met.host && (v.is_literal() || is_number(v)) && !is_bool(met.dtype);
    return adopts ? as_array(v, met.dtype, e.span) : as_array(v, e.span);
  };
  GK_TRY(auto x, side(a));
  GK_TRY(auto y, side(b));
  auto dims = ir::broadcast(x->type.dims, y->type.dims);
  if (!dims)
    return fail(
        make_error(ErrorKind::Shape, "E0301",
                   fmt::format("cannot compare {} and {}", ir::to_string(x->type), ir::to_string(y->type)),
                   e.op_span.valid() ? e.op_span : e.span));
  if (!running()) return Value::unknown_scalar(DType::Bool);
  GK_CHECK(refuse_in_capture("comparing values", e.span));
  GK_TRY(x, broadcast_to(x, *dims, e.span));
  GK_TRY(y, broadcast_to(y, *dims, e.span));
  GK_TRY(auto left, download(Value::of_array(x), e.span));
  GK_TRY(auto right, download(Value::of_array(y), e.span));
  for (int64_t i = 0; i < left.size(); ++i) {
    Value r = close(left.get(i).as_double(), right.get(i).as_double(), i, rtol, atol);
    if (!r.scalar.i) return r;
  }
  return Value::of_scalar(Scalar::of_bool(true));
}

Result<void> Evaluator::exec_assert(const Stmt& s, const ScopePtr& scope) {
  double rtol = 1e-5, atol = 1e-8;
  for (const auto& a : s.args) {
    if (a.name != "rtol" && a.name != "atol")
      return fail(ErrorKind::Type, "E0206", "`assert` takes rtol= and atol=", a.span);
    GK_TRY(auto v, eval(*a.value, scope));
    if (!v.is_scalar())
      return fail(ErrorKind::Type, "E0212", fmt::format("a tolerance is a host number, not {}", describe(v)),
                  a.span);
    (a.name == "rtol" ? rtol : atol) = v.scalar.as_double();
  }
  const Expr& e = *s.rhs;
  bool comparison = e.kind == ExprKind::Binary && e.binary >= BinaryOp::Eq && e.binary <= BinaryOp::Approx;
  Value v, left, right;
  ++eager_depth_;
  auto evaluate = [&]() -> Result<void> {
    if (!comparison) {
      GK_TRY(v, eval(e, scope));
      return {};
    }
    GK_TRY(left, eval(*e.lhs, scope));
    GK_TRY(right, eval(*e.rhs, scope));
    if (e.binary == BinaryOp::Approx) {
      GK_TRY(v, eval_approx(left, right, e, rtol, atol));
    } else {
      GK_TRY(v, binary(e.binary, left, right, &e, e.op_span.valid() ? e.op_span : e.span));
    }
    return {};
  };
  auto r = evaluate();
  --eager_depth_;
  if (!r) return r;
  if (!s.args.empty() && !(comparison && e.binary == BinaryOp::Approx))
    return fail(ErrorKind::Type, "E0206", "rtol and atol go with `~=`", s.span);
  if (v.is_unknown() && !running()) return {};
  bool scalar_bool = (v.is_scalar() && is_bool(v.scalar.dtype)) ||
                     (v.is_array() && v.array->type.rank() == 0 && is_bool(v.array->type.dtype));
  if (!scalar_bool) return fail(not_a_condition(v, e, "`assert` takes"));
  if (!running()) return {};
  GK_CHECK(refuse_in_capture("an assertion", s.span));
  GK_TRY(auto truth, item(v, e.span));
  GK_CHECK(effects_->synchronize());
  if (truth.i) return {};
  Error err = make_error(ErrorKind::Assertion, "E0803", "assertion failed", e.span);
  if (!v.text.empty()) err.notes.push_back(v.text);
  auto show = [&](const char* side, const Value& x) -> Result<void> {
    bool small = x.is_scalar() || (x.is_array() && x.array->type.rank() == 0);
    if (!small) return {};
    GK_TRY(auto value, item(x, e.span));
    err.notes.push_back(fmt::format("{}: {}", side, effects_->format(value)));
    return {};
  };
  if (comparison) {
    GK_CHECK(show("left", left));
    GK_CHECK(show("right", right));
  }
  return fail(std::move(err));
}

Result<void> Evaluator::exec_expect_error(const Stmt& s, const ScopePtr& scope) {
  if (!running()) {
    auto saved = std::exchange(errors_, {});
    auto keys = error_keys_;
    auto functions = checked_functions_;
    auto flow = exec_block(*s.body, scope, nullptr);
    if (!flow) record(std::move(flow.error()));
    auto found = std::exchange(errors_, std::move(saved));
    error_keys_ = std::move(keys);
    checked_functions_ = std::move(functions);
    if (!found.empty() && found.back().kind == ErrorKind::Interrupted) return fail(std::move(found.back()));
    bool expected = false;
    for (const auto& e : found) expected = expected || e.code == s.text;
    if (expected) {
      if (!unsatisfied_.contains(&s)) satisfied.insert(&s);
      return {};
    }
    // In a function, one call may be right and another wrong: then running decides, for each.
    unsatisfied_.insert(&s);
    satisfied.erase(&s);
    for (auto& e : found) record(std::move(e));
    return {};
  }
  if (satisfied.contains(&s)) return {};
  GK_CHECK(flush(s.span));
  GK_CHECK(effects_->synchronize());  // what was wrong before is not the body's
  auto attempt = [&]() -> Result<void> {
    GK_CHECK(exec_block(*s.body, scope, nullptr));
    GK_CHECK(flush(s.span));
    return effects_->synchronize();
  };
  auto r = attempt();
  if (r)
    return fail(ErrorKind::Assertion, "E0804", fmt::format("expected error {}, but none occurred", s.text),
                s.span);
  drop_trace();
  Error first = came_first(std::move(r.error()));
  if (first.code == s.text) return {};
  return fail(std::move(first));
}

// As run_apart(): what a test does to variables is not there for the next one.
Result<void> Evaluator::check_apart(const syntax::Block& body, const ScopePtr& scope) {
  std::vector<std::pair<std::shared_ptr<Variable>, Value>> kept;
  for (const auto& [name, var] : scope->names)
    if (var->kind == syntax::BindKind::Var) kept.emplace_back(var, var->value);
  auto flow = exec_block(body, scope, nullptr);
  for (auto& [var, value] : kept) var->value = value;
  if (!flow) return fail(std::move(flow.error()));
  return flush(body.span);
}

// What the variables hold is shared before the body runs, so that copies are made only of what it writes.
Result<void> Evaluator::run_apart(const syntax::Block& body, const ScopePtr& scope) {
  struct Kept {
    std::shared_ptr<Variable> var;
    Value value, contents;
  };
  std::vector<Kept> kept;
  for (const auto& [name, var] : scope->names)
    if (var->kind == syntax::BindKind::Var) {
      GK_TRY(auto contents, hold(var->value, body.span));
      kept.push_back({var, var->value, std::move(contents)});
    }
  auto result = run_body(body, scope);
  auto restore = [&]() -> Result<void> {
    for (const Kept& k : kept) {
      k.var->value = k.value;
      std::vector<ArrayPtr> places, before;
      for_each_array(k.value, [&](const ArrayPtr& a) { places.push_back(a); });
      for_each_array(k.contents, [&](const ArrayPtr& a) { before.push_back(a); });
      for (size_t i = 0; i < places.size(); ++i) {
        if (before[i]->storage && before[i]->storage == places[i]->storage) continue;
        Value place = Value::of_array(places[i]);
        GK_CHECK(write_place(place, Value::of_array(before[i]), body.span, body.span));
      }
    }
    return flush(body.span);
  };
  auto restored = restore();
  return result ? restored : result;
}

}  // namespace gk::sema
