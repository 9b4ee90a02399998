// `for`: run on the host step by step, or traced once and kept as a loop inside a kernel.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/sema/body.h"
#include "compiler/sema/rebound.h"
#include "compiler/sema/roll.h"

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

constexpr int64_t kMinRolledTrips = 4;
constexpr int64_t kMaxEagerRolledTrips = 1'000'000;
// From more turns than this on, a `for` inside a capture, or inside a loop, is not written out turn by turn.
constexpr int64_t kMostUnrolledTrips = 64;

// Statements that may become the body of a loop in a kernel. What they do to the host stops that while the
// body is traced.
bool may_roll(const syntax::Block& b) {
  for (const auto& s : b.stmts) {
    const bool plain =
        s->kind == StmtKind::Let || s->kind == StmtKind::Assign || s->kind == StmtKind::ExprStmt;
    if (!plain && !(s->kind == StmtKind::For && may_roll(*s->body))) return false;
  }
  return true;
}

bool arrays_only(const Value& v) {
  if (v.is_array()) return true;
  if (!v.is_aggregate()) return false;
  for (const auto& i : v.items->items)
    if (!arrays_only(i)) return false;
  return true;
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
    GK_TRY(auto looped, loop_on_device(s, scope, over, lo, hi));
    if (looped) return Flow::Next;
    if (hi - lo > kMostUnrolledTrips) GK_CHECK(refuse_in_roll(s.span));
  } else if (over.kind == VKind::Strings) {
    hi = static_cast<int64_t>(over.strings->size());
  } else {
    hi = over.is_array() ? over.array->type.dims[0].value : static_cast<int64_t>(over.items->items.size());
  }
  GK_TRY(auto held, hold(over, s.rhs->span));  // the loop sees the array or list as it is now
  if (over.is_array()) {
    GK_TRY(auto looped, loop_on_device(s, scope, held, lo, hi));
    if (looped) return Flow::Next;
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

// Index of a loop that goes on from `lo` to `hi`, in whose turns `turn` counts from 0.
Result<ArrayPtr> Evaluator::loop_index(ir::ValueId turn, int64_t lo, int64_t hi, Span span) {
  ArrayPtr index = trace_->pending(ir::Type{DType::I64, {}}, turn);
  if (lo != 0) {
    GK_TRY(auto first, number_on_device(lo, span));
    GK_TRY(index, emit(ir::Op::Add, {index, first}, {}, span));
  }
  index->loop_index = true;
  index->number = DeviceNumber{true, static_cast<double>(lo), static_cast<double>(hi - 1)};
  return index;
}

Result<ArrayPtr> Evaluator::number_on_device(int64_t i, Span span) {
  ir::Attrs attrs;
  attrs.value = Scalar::of_int(i);
  attrs.dtype = DType::I64;
  return emit(ir::Op::Const, {}, attrs, span);
}

Result<bool> Evaluator::loop_on_device(const Stmt& s, const ScopePtr& scope, const Value& over, int64_t lo,
                                       int64_t hi) {
  const int64_t turns = hi - lo;
  const bool in_kernel = fuse_ && over.kind == VKind::Range && turns >= kMinRolledTrips &&
                         (capturing() || turns <= kMaxEagerRolledTrips) && may_roll(*s.body);
  const bool in_host_memory =
      over.is_array() && over.array->storage && over.array->storage->placement == Placement::Host;
  const bool in_graph = capturing() && rolling_ == 0 && turns > kMostUnrolledTrips && !in_host_memory &&
                        (over.kind == VKind::Range || over.is_array());
  if (!in_kernel && !in_graph) return false;
  std::set<std::string> rebound, written;
  rebound_outside(s, rebound);
  assigned_names(*s.body, written);
  // Host values that change from turn to turn stay host values: such a loop is run here, step by step.
  std::vector<std::pair<std::shared_ptr<Variable>, Value>> before;
  for (const auto& n : rebound) {
    auto v = lookup(n, scope);
    if (!v || !arrays_only(v->get())) return false;
    before.emplace_back(v, v->value);
  }
  if (!in_graph && written.empty()) return false;
  const int num_scalars = trace_->num_scalars();
  GK_CHECK(freshen(rebound, scope, false, s.span));
  const bool asked_before = std::exchange(needs_host_, false);
  if (!in_graph) ++rolling_;
  const ir::ValueId turn = trace_->module().new_value(ir::Type{DType::I64, {}});
  Settled settled;
  auto body = trace_body(settled, true, [&](Body&) -> Result<void> {
    GK_TRY(auto index, loop_index(turn, lo, hi, s.span));
    Value item = Value::of_array(index);
    if (over.is_array()) {
      ir::Attrs attrs;
      attrs.axes = {0};
      GK_TRY(auto row, emit(ir::Op::Take, {over.array, index}, attrs, s.rhs->span));
      item = Value::of_array(row);
    }
    GK_CHECK(stay(loop_body(s, scope, std::move(item)), s));
    // In the turns of the host it would be a host number.
    for (const Rebound& r : bodies_.back())
      for_each_array(r.var->value, [&](const ArrayPtr& a) { needs_host_ = needs_host_ || a->number; });
    return {};
  });
  if (!in_graph) --rolling_;
  const bool asks = std::exchange(needs_host_, asked_before);
  const bool fits = body && !asks && !body->trace->somebody_waits();
  const bool rolls = fits && in_kernel && is_recurrence(*body->trace, turn);
  const bool works = fits && std::any_of(body->trace->cells().begin(), body->trace->cells().end(),
                                         [](const Trace::Cell& c) { return c.now >= 0; });
  if (!works || !(rolls || in_graph)) {
    for (auto& [var, value] : before) var->value = value;
    trace_->forget_scalars(num_scalars);
    GK_CHECK(poll(s.span));
    return false;
  }
  std::vector<Body> bodies;
  ir::ValueId first = turn;
  if (!rolls) {
    GK_TRY(first, count_turns(*body, turn, turns, s.span));
  }
  body->turns = turns;
  bodies.push_back(std::move(*body));
  close_bodies(rolls ? ir::Op::Loop : ir::Op::While, first, bodies, s.span);
  apply(settled);
  return true;
}

// Makes the turn one of the values that a While carries. Gives its first condition.
Result<ir::ValueId> Evaluator::count_turns(Body& body, ir::ValueId turn, int64_t turns, Span span) {
  GK_TRY(auto count, number_on_device(0, span));
  ir::Attrs always;
  always.value = Scalar::of_bool(true);
  always.dtype = DType::Bool;
  GK_TRY(auto first, emit(ir::Op::Const, {}, always, span));
  Trace& inside = *body.trace;
  const auto number = [&](int64_t i) {
    ir::Attrs attrs;
    attrs.value = Scalar::of_int(i);
    attrs.dtype = DType::I64;
    return inside.append(ir::Op::Const, {}, attrs, count->type, span);
  };
  GK_TRY(const auto one, number(1));
  GK_TRY(const auto next, inside.append(ir::Op::Add, {turn, one}, {}, count->type, span));
  GK_TRY(const auto end, number(turns));
  GK_TRY(const auto more, inside.append(ir::Op::Lt, {next, end}, {}, ir::Type{DType::Bool, {}}, span));
  inside.add_cell({count, count->pending, turn, next});
  body.extra.push_back(more);
  return first->pending;
}

}  // namespace gk::sema
