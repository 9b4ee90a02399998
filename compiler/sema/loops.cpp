// `for`: run on the host turn by turn, but for the turns that a loop on the device takes (device_loops.cpp).
#include <fmt/format.h>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

using syntax::Stmt;
using syntax::StmtKind;

namespace {

/// "write `0..n`" for `range(n)`, which counts for a loop and is no array there.
std::optional<std::string> python_range(const Evaluator& ev, const syntax::Expr& e) {
  using syntax::ExprKind;
  if (e.kind != ExprKind::Call || e.lhs->kind != ExprKind::Name || e.lhs->text != "range" || e.args.empty() ||
      e.args.size() > 2)
    return std::nullopt;
  const std::string first = ev.written(e.args[0].span);
  return e.args.size() == 1 ? fmt::format("write `0..{}`", first)
                            : fmt::format("write `{}..{}`", first, ev.written(e.args[1].span));
}

}  // namespace

Result<Flow> Evaluator::loop_body(const Stmt& s, const ScopePtr& scope, Value index) {
  GK_CHECK(poll(s.span));
  auto inner = std::make_shared<Scope>();
  inner->parent = scope;
  if (s.name != "_") {
    auto v = std::make_shared<Variable>();
    v->span = s.name_span;
    v->is_index = true;
    v->value = std::move(index);
    inner->names[s.name] = v;
  }
  return exec_in(*s.body, inner, nullptr);
}

Result<Flow> Evaluator::exec_for(const Stmt& s, const ScopePtr& scope) {
  ++eager_depth_;
  auto evaluated = eval(*s.rhs, scope);
  --eager_depth_;
  if (!evaluated) {
    Error e = std::move(evaluated.error());
    if (const auto range = python_range(*this, *s.rhs); range && e.code == "E0401") e.helps = {*range};
    return fail(std::move(e));
  }
  GK_TRY(Value over, settled(*evaluated, s.rhs->span));
  bool iterable = over.is_unknown() || over.kind == VKind::Range || over.kind == VKind::List ||
                  over.kind == VKind::Tuple || over.kind == VKind::Strings ||
                  (over.is_array() && over.array->type.rank() > 0);
  if (!iterable)
    return fail(
        make_error(ErrorKind::Type, "E0202", fmt::format("cannot loop over {}", describe(over)), s.rhs->span)
            .help(over.is_scalar() || over.is_array()
                      ? fmt::format("loop over a range: `0..{}`", as_host_integer(over, written(s.rhs->span)))
                      : "loop over a range, a list, or the first axis of an array"));
  if (!running()) {
    Value index = Value::unknown();
    if (over.kind == VKind::Range) index = Value::unknown_host(DType::I64);
    if ((over.kind == VKind::List || over.kind == VKind::Tuple)) {
      if (over.items->items.empty()) return Flow::Next;
      index = over.items->items[0];
      for (const auto& i : over.items->items) index = join(index, i);
      // The element as it was when the loop began, whatever is written to the list.
      GK_TRY(index, hold(index, s.rhs->span));
    }
    if (over.is_array()) {
      GK_TRY(index, index_first(over, 0, s.rhs->span));
      GK_TRY(index, bind_value(index, s.rhs->span));
    }
    std::set<std::string> names;
    assigned_names(*s.body, names);
    auto before = snapshot(names, scope);
    forget_scalars(names, scope);
    GK_CHECK(loop_body(s, scope, index));
    // A name that changes type from one turn to the next is followed at run time.
    for (auto& [var, old] : before) var->get() = join(old, var->get());
    return Flow::Next;
  }
  if (over.is_unknown()) return fail(ErrorKind::Type, "E0202", "cannot loop over this value", s.rhs->span);
  int64_t lo = 0, hi = 0;
  if (over.kind == VKind::Range) {
    for (const auto& end : over.items->items)
      if (end.is_unknown() || !end.known)
        return fail(ErrorKind::Type, "E0212", "the ends of a range are host integers", s.rhs->span);
    lo = over.items->items[0].scalar.i;
    hi = over.items->items[1].scalar.i;
    GK_TRY(const int64_t done, loop_on_device(s, scope, over, lo, hi));
    lo += done;
  } else if (over.kind == VKind::Strings) {
    hi = static_cast<int64_t>(over.strings->size());
  } else {
    hi = over.is_array() ? over.array->type.dims[0].value : static_cast<int64_t>(over.items->items.size());
  }
  GK_TRY(auto held, hold(over, s.rhs->span));  // the loop sees the array or list as it is now
  if (over.is_array()) {
    GK_TRY(lo, loop_on_device(s, scope, held, lo, hi));
  }
  for (int64_t i = lo; i < hi; ++i) {
    Value index;
    if (over.kind == VKind::Range) {
      index = Value::host(i);
    } else if (over.kind == VKind::Strings) {
      index = Value::of_string((*over.strings)[static_cast<size_t>(i)]);
    } else {
      GK_TRY(index, index_first(held, i, s.rhs->span));
    }
    GK_TRY(auto flow, loop_body(s, scope, std::move(index)));
    if (flow == Flow::Break) break;
    if (flow == Flow::Return) return flow;
  }
  return Flow::Next;
}

}  // namespace gk::sema
