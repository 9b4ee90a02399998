// `for`: run on the host step by step, or traced once and kept as a loop inside a kernel.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/sema/evaluator.h"
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
constexpr int64_t kMostTripsInRolled = 64;  // of a loop that is written out inside one that is traced once

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

void declared_names(const syntax::Block& b, std::set<std::string>& names) {
  for (const auto& s : b.stmts) {
    for (const auto& binding : s->bindings) names.insert(binding.name);
    if (s->kind != StmtKind::For) continue;
    names.insert(s->name);
    declared_names(*s->body, names);
  }
}

bool arrays_only(const Value& v) {
  if (v.is_array()) return true;
  if (!v.is_aggregate()) return false;
  for (const auto& i : v.items->items)
    if (!arrays_only(i)) return false;
  return true;
}

std::vector<ArrayPtr> leaves(const Value& v) {
  std::vector<ArrayPtr> out;
  for_each_array(v, [&](const ArrayPtr& a) { out.push_back(a); });
  return out;
}

// Whether a place other than these was written since.
bool wrote_beside(const Trace& trace, const Trace::Written& before, const std::set<const ArrayData*>& known) {
  for (const auto& [s, v] : trace.written_values()) {
    const auto it = before.values.find(s);
    if ((it == before.values.end() || it->second != v) && !known.contains(s->owner)) return true;
  }
  const auto& cells = trace.cells();
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells[i].now != (i < before.cells.size() ? before.cells[i] : -1) &&
        !known.contains(cells[i].array.get()))
      return true;
  return false;
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
    GK_TRY(auto rolled, try_roll(s, scope, lo, hi));
    if (rolled) return Flow::Next;
    if (rolling_ > 0 && hi - lo > kMostTripsInRolled) {
      roll_failed_ = true;
      return fail(ErrorKind::Internal, "E0901", "loop not rolled", s.span);
    }
    GK_TRY(auto looped, try_device_for(s, scope, over, lo, hi));
    if (looped) return Flow::Next;
  } else if (over.kind == VKind::Strings) {
    hi = static_cast<int64_t>(over.strings->size());
  } else {
    hi = over.is_array() ? over.array->type.dims[0].value : static_cast<int64_t>(over.items->items.size());
  }
  GK_TRY(auto held, hold(over, s.rhs->span));  // the loop sees the array or list as it is now
  if (over.is_array()) {
    GK_TRY(auto looped, try_device_for(s, scope, held, lo, hi));
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

Result<bool> Evaluator::try_roll(const Stmt& s, const ScopePtr& scope, int64_t lo, int64_t hi) {
  int64_t trips = hi - lo;
  if (!fuse_ || trips < kMinRolledTrips || !may_roll(*s.body)) return false;
  if (!capturing() && trips > kMaxEagerRolledTrips) return false;
  std::set<std::string> rebound, names, declared;
  rebound_outside(s, rebound);
  assigned_names(*s.body, names);
  declared_names(*s.body, declared);
  struct Carried {
    std::shared_ptr<Variable> var;
    Value before;
    bool rebound;
    std::vector<ArrayPtr> leaves;
  };
  std::vector<Carried> carried;
  for (const auto& n : names) {
    auto v = lookup(n, scope);
    if (declared.contains(n)) {
      if (v) return false;  // one name for two things
      continue;
    }
    if (!v || !arrays_only(v->get())) return false;
    bool re = rebound.contains(n);
    // A rebound name from outside a capture is an error that the ordinary way reports.
    if (re && (v->kind != syntax::BindKind::Var || v->is_param)) return false;
    if (re && v->capture_depth < capture_depth_) return false;
    carried.push_back({v, v->get(), re, leaves(v->get())});
  }
  if (carried.empty()) return false;
  // Written places give up their aliases first, so that no alias sees a value of the loop's inside.
  for (auto& c : carried)
    if (!c.rebound)
      for (auto& a : c.leaves) {
        ArrayPtr owned = a;
        GK_CHECK(own(owned, s.span));
        GK_CHECK(detach_aliases(*owned, s.span));
      }
  auto written = trace_->written();
  ir::Module& m = trace_->module();
  ir::Region inner;
  std::vector<ir::ValueId> initial;
  for (auto& c : carried)
    for (auto& a : c.leaves) {
      GK_TRY(auto id, value_of(a, s.span));
      initial.push_back(id);
    }
  for (const auto& c : carried)
    if (c.rebound) changes_.note(c.var, trace_->root().id());
  // From here on all that changes is noted, so that it can be taken back.
  Changes before = std::exchange(changes_, Changes(true));
  auto first = static_cast<ir::ValueId>(m.value_types.size());
  ir::Type index_type;
  index_type.dtype = DType::I64;
  inner.params.push_back(m.new_value(index_type));
  for (auto& c : carried) {
    Value inside = c.before;
    if (c.rebound) {
      std::function<Value(const Value&)> renew = [&](const Value& v) {
        if (v.is_array()) {
          auto p = m.new_value(v.array->type);
          inner.params.push_back(p);
          auto a = trace_->pending(v.array->type, p);
          a->bound = true;
          return Value::of_array(a);
        }
        Value r = v;
        r.items = std::make_shared<Aggregate>(*v.items);
        for (auto& i : r.items->items) i = renew(i);
        return r;
      };
      inside = renew(c.before);
      note_rebinding(c.var, s.span);
      c.var->get() = inside;
    } else {
      for (auto& a : c.leaves) {
        auto p = m.new_value(a->type);
        inner.params.push_back(p);
        changes_.note(a);
        trace_->write(*a, p);
      }
    }
  }
  ir::Region* outer = trace_->enter(&inner);
  ++rolling_;
  bool failed_before = std::exchange(roll_failed_, false);
  auto index = trace_->pending(index_type, inner.params[0]);
  index->loop_index = true;
  index->number = DeviceNumber{true, 0, static_cast<double>(trips - 1)};
  bool ok = true;
  if (lo != 0) {
    ir::Attrs attrs;
    attrs.value = Scalar::of_int(lo);
    attrs.dtype = DType::I64;
    auto start = emit(ir::Op::Const, {}, attrs, s.span);
    auto shifted = start ? emit(ir::Op::Add, {index, *start}, {}, s.span) : start;
    ok = static_cast<bool>(shifted);
    if (ok) {
      index = *shifted;
      index->loop_index = true;
      index->number = DeviceNumber{true, static_cast<double>(lo), static_cast<double>(hi - 1)};
    }
  }
  if (ok) {
    auto flow = loop_body(s, scope, Value::of_array(index));
    ok = flow && *flow == Flow::Next && !roll_failed_;
  }
  index.reset();
  --rolling_;
  bool interrupted = effects_->interrupted();
  roll_failed_ = failed_before;
  trace_->enter(outer);

  std::vector<ir::Type> types;
  std::vector<ir::Node> invariant;
  std::vector<ArrayPtr> finals;
  std::set<const ArrayData*> known;
  std::set<const Variable*> carriers;
  if (ok) {
    for (auto& c : carried) {
      carriers.insert(c.var.get());
      auto now = leaves(c.var->get());
      ok = ok && now.size() == c.leaves.size();
      for (size_t i = 0; ok && i < now.size(); ++i) {
        ok = now[i]->type.same_as(c.leaves[i]->type) && !now[i]->number;
        inner.yields.push_back(trace_->value_of(*now[i]));
        ok = ok && inner.yields.back() >= 0;
        types.push_back(now[i]->type);
        finals.push_back(now[i]);
        known.insert(now[i].get());
      }
    }
    changes_.forget_gone();
    for (const auto& a : trace_->live_since(first))
      if (!known.contains(a.get())) ok = false;
    ok = ok && !changes_.beside(known, carriers) && !wrote_beside(*trace_, written, known);
    if (ok) invariant = take_invariants(inner);
    ok = ok && is_recurrence(m, inner);
    std::optional<Shape> space;
    for (const auto& t : types) {
      if (space && !(*space == t.shape())) ok = false;
      space = t.shape();
    }
  }
  Changes tried = std::exchange(changes_, std::move(before));
  if (!ok) {
    tried.undo();
    trace_->restore(std::move(written));
    if (interrupted) return fail(ErrorKind::Interrupted, "E0806", "interrupted", s.span);
    return false;
  }
  changes_.add(std::move(tried));
  std::move(invariant.begin(), invariant.end(), std::back_inserter(outer->nodes));
  ir::Node loop;
  loop.op = ir::Op::Loop;
  loop.span = as_called(s.span);
  loop.operands = std::move(initial);
  const auto around = isolate(m, inner);
  loop.operands.insert(loop.operands.end(), around.begin(), around.end());
  loop.attrs.index = trips;
  loop.regions.push_back(std::move(inner));
  auto results = trace_->append_node(std::move(loop), types);
  for (size_t i = 0; i < finals.size(); ++i) {
    // A name that the body gave another's array only shares the storage, which is not its to write.
    const ArrayPtr& a = finals[i];
    if (a->storage && a->storage->owner != a.get())
      trace_->adopt(a, results[i]);
    else
      trace_->write(*a, results[i]);
  }
  return true;
}

}  // namespace gk::sema
