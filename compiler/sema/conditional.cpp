// Bodies that stay bodies: `if` and `while` on device values inside a capture, and `for` as a loop on the
// device (device_loops.cpp). They become the regions of If, While, Loop and Repeat nodes. See Note [Regions]
// in ir/module.h and Note [Cells] in trace.h. Checking goes the same way without a trace of its own for the
// body: forms are compared, nothing is built.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/sema/body.h"
#include "compiler/sema/rebound.h"
#include "compiler/sema/roll.h"

namespace gk::sema {

using syntax::Stmt;

namespace {

ir::Type scalar_type(DType t) { return ir::Type{t, {}}; }

// A copy whose leaves can be replaced one by one.
Value unshared(const Value& v) {
  if (!v.is_aggregate()) return v;
  Value r = v;
  r.items = std::make_shared<Aggregate>(*v.items);
  for (auto& i : r.items->items) i = unshared(i);
  return r;
}

bool same_form(const ir::Type& a, const ir::Type& b) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.dims.size(); ++i)
    if (ir::equal(a.dims[i], b.dims[i]) == ir::Tri::No) return false;
  return true;
}

bool same_structure(const Value& a, const Value& b) {
  return a.kind == b.kind && a.items->items.size() == b.items->items.size() &&
         a.items->names == b.items->names;
}

std::optional<ir::Type> form_of(const Value& v) {
  if (v.is_array()) return v.array->type;
  if (v.is_scalar()) return scalar_type(v.scalar.dtype);
  return std::nullopt;
}

// Whether two branches can give one value on the device.
bool agree(const Value& a, const Value& b) {
  if (a.is_unknown() || b.is_unknown()) return true;
  if (a.is_aggregate() && b.is_aggregate()) {
    if (!same_structure(a, b)) return false;
    for (size_t i = 0; i < a.items->items.size(); ++i)
      if (!agree(a.items->items[i], b.items->items[i])) return false;
    return true;
  }
  const auto x = form_of(a), y = form_of(b);
  return x && y && same_form(*x, *y);
}

bool has_leaf(const Value& v, bool scalars) {
  if (v.is_aggregate())
    return std::any_of(v.items->items.begin(), v.items->items.end(),
                       [&](const Value& i) { return has_leaf(i, scalars); });
  return v.is_array() || (scalars && v.is_scalar());
}

Error cannot_change(const Value& before, const Value& now, Span span) {
  return make_error(ErrorKind::Capture, "E0719",
                    fmt::format("a body on a device condition cannot turn {} into {}", describe(before),
                                describe(now)),
                    span)
      .note("in a capture the body becomes part of the graph; what it changes keeps its dtype and shape");
}

}  // namespace

void Evaluator::note_rebinding(const std::shared_ptr<Variable>& var, Span span) {
  if (running()) changes_.note(var, unit_);
  if (bodies_.empty() || var->depth >= bodies_.size()) return;
  for (auto& r : bodies_.back())
    if (r.var == var) {
      r.span = span;
      return;
    }
  bodies_.back().push_back({var, var->value, span});
}

Result<void> Evaluator::stay(const Result<Flow>& flow, const Stmt& s) {
  if (!flow) return fail(flow.error());
  if (*flow == Flow::Next) return {};
  const Stmt* jump = find_jump(s);
  const char* what = *flow == Flow::Break ? "break" : *flow == Flow::Continue ? "continue" : "return";
  return fail(make_error(ErrorKind::Capture, "E0719",
                         fmt::format("`{}` cannot leave a body on a device condition inside a capture", what),
                         jump ? jump->span : s.span)
                  .note("the body becomes part of the graph, which has no jumps")
                  .help(*flow == Flow::Return ? "give the value with an `if … else …`"
                        : *flow == Flow::Continue
                            ? "put the rest of the body into an `if`"
                            : "put it into the loop's condition: `while … and not done`"));
}

// ---- Names that a body rebinds

Result<Value> Evaluator::renew(const Value& v, bool scalars, Span span) {
  if (v.is_aggregate()) {
    Value r = unshared(v);
    for (auto& i : r.items->items) {
      GK_TRY(i, renew(i, scalars, span));
    }
    return r;
  }
  ArrayPtr a;
  if (v.is_array()) {
    if (!running()) return v;
    GK_TRY(auto id, value_of(v.array, span));
    a = trace_->pending(v.array->type, id);
    a->wanted = v.array->wanted;
    a->named = v.array->named;
    a->name = v.array->name;
  } else if (v.is_scalar() && scalars) {
    GK_TRY(a, as_array(strengthen(v), span));
  } else {
    return v;
  }
  a->bound = true;
  a->capture_depth = capture_depth_;
  return Value::of_array(a);
}

// Gives each of the names an array that is nobody else's, so that what it becomes is the name's alone.
Result<void> Evaluator::freshen(const std::set<std::string>& names, const ScopePtr& scope, bool scalars,
                                Span span) {
  for (const auto& n : names) {
    auto var = lookup(n, scope);
    if (!var || var->kind != syntax::BindKind::Var || var->is_param || !has_leaf(var->value, scalars))
      continue;
    // Rebinding a name from outside the capture is an error of its own.
    if (var->capture_depth < capture_depth_) continue;
    GK_TRY(auto fresh, renew(var->value, scalars, span));
    note_rebinding(var, span);
    var->value = std::move(fresh);
  }
  return {};
}

Result<void> Evaluator::settle(const Value& before, Value& after, const Value& now, bool loop, Trace* around,
                               Span span) {
  if (before.is_unknown() || now.is_unknown()) {
    after = Value::unknown();
    return {};
  }
  if (before.is_aggregate()) {
    if (!now.is_aggregate() || !same_structure(before, now)) return fail(cannot_change(before, now, span));
    for (size_t i = 0; i < before.items->items.size(); ++i)
      GK_CHECK(
          settle(before.items->items[i], after.items->items[i], now.items->items[i], loop, around, span));
    return {};
  }
  const auto from = form_of(before);
  if (from && from->rank() == 0 && !is_bool(from->dtype) && now.is_scalar() && now.weak) {
    GK_TRY(auto typed, cast_weak(now, from->dtype, span));
    return settle(before, after, typed, loop, around, span);
  }
  const auto to = form_of(now);
  if (!from || !to || !same_form(*from, *to)) return fail(cannot_change(before, now, span));
  if (before.is_array() && now.is_array() && before.array == now.array) return {};
  if (before.is_scalar()) {
    if (now.is_scalar() && before.known && now.known && before.scalar == now.scalar) return {};
    if (loop)
      return fail(
          make_error(ErrorKind::Capture, "E0719", "a loop on the device rebinds this name out of sight", span)
              .help("assign to it in the loop's own body"));
    if (after.is_scalar()) {
      auto held =
          running() ? around->pending(*from, around->param(before.scalar, span)) : trace_->pending(*from, -1);
      held->bound = true;
      held->capture_depth = capture_depth_;
      after = Value::of_array(held);
    }
  }
  if (!running()) return {};
  ArrayPtr home = after.array;
  GK_CHECK(own(home, span));
  GK_CHECK(detach_aliases(*home, span));
  GK_TRY(auto a, as_array(now, span));
  GK_TRY(auto id, value_of(a, span));
  trace_->write(*home, id);
  return {};
}

// ---- Bodies

Result<Evaluator::Body> Evaluator::trace_body(Settled& settled, bool loop,
                                              const std::function<Result<void>(Body&)>& run) {
  Body body;
  std::unique_ptr<Trace> around;
  if (running()) {
    auto inside = std::make_unique<Trace>(trace_.get());
    around = std::exchange(trace_, std::move(inside));
  }
  bodies_.emplace_back();
  auto done = run(body);
  const std::vector<Rebound> rebound = std::move(bodies_.back());
  for (const auto& r : rebound) {
    if (!done) break;
    auto it = std::find_if(settled.begin(), settled.end(), [&](const auto& s) { return s.var == r.var; });
    if (it == settled.end()) it = settled.insert(settled.end(), {r.var, unshared(r.before), r.span});
    done = settle(r.before, it->before, r.var->value, loop, around.get(), r.span);
  }
  bodies_.pop_back();
  for (const auto& r : rebound) r.var->value = r.before;
  if (around) body.trace = std::exchange(trace_, std::move(around));
  if (!done) return fail(std::move(done.error()));
  return body;
}

void Evaluator::apply(const Settled& settled) {
  for (const auto& s : settled) {
    note_rebinding(s.var, s.span);
    s.var->value = s.before;
  }
}

std::vector<ir::ValueId> Evaluator::close_bodies(ir::Op op, ir::ValueId first, std::vector<Body>& bodies,
                                                 Span span) {
  // The cells of all bodies in the order of their first use, what bodies write before what they only read.
  struct Shared {
    const Trace::Cell* cell;
    bool written = false, read = false;
    std::vector<const Trace::Cell*> in;  // by body; null: not used there
  };
  std::vector<Shared> cells;
  std::unordered_map<const ArrayData*, size_t> known;
  for (size_t b = 0; b < bodies.size(); ++b)
    for (const Trace::Cell& c : bodies[b].trace->cells()) {
      const auto [it, fresh] = known.try_emplace(c.array.get(), cells.size());
      if (fresh) cells.push_back({&c, false, false, std::vector<const Trace::Cell*>(bodies.size())});
      Shared& s = cells[it->second];
      s.in[b] = &c;
      s.written = s.written || c.now >= 0;
      s.read = s.read || c.param >= 0;
    }
  std::stable_partition(cells.begin(), cells.end(), [](const Shared& s) { return s.written; });

  const ir::RegionForm form = ir::region_form(op);
  ir::Node node;
  node.op = op;
  node.span = as_called(span);
  if (form.operand == 1) node.operands = {first};
  std::vector<ArrayPtr> written;
  for (size_t b = 0; b < bodies.size(); ++b) {
    ir::Region r = bodies[b].trace->take_region();
    if (form.param == 1) r.params = {first};
    if (op == ir::Op::While) r.yields = bodies[b].extra;
    for (const Shared& s : cells) {
      const Trace::Cell* c = s.in[b];
      const bool everywhere =
          std::all_of(s.in.begin(), s.in.end(), [](const auto* i) { return i && i->now >= 0; });
      const bool needed = s.read || (s.written && (form.carries || !everywhere));
      if (needed) {
        r.params.push_back(c && c->param >= 0 ? c->param : trace_->module().new_value(s.cell->array->type));
        if (b == 0) node.operands.push_back(s.cell->outside);
      }
      if (!s.written) continue;
      r.yields.push_back(c && c->now >= 0 ? c->now : r.params.back());
      if (b == 0) written.push_back(s.cell->array);
    }
    if (op == ir::Op::If) r.yields.insert(r.yields.end(), bodies[b].extra.begin(), bodies[b].extra.end());
    node.regions.push_back(std::move(r));
  }
  node.attrs.index = bodies[0].turns;
  if (op == ir::Op::Loop) {
    trace_->append_nodes(take_invariants(trace_->module(), node, written.size()));
  }
  const std::vector<ir::Type> types = ir::result_types(trace_->module(), node);
  auto results = trace_->append_node(std::move(node), types);
  for (size_t k = 0; k < written.size(); ++k) trace_->write(*written[k], results[k]);
  results.erase(results.begin(), results.begin() + static_cast<long>(written.size()));
  return results;
}

// ---- Statements

Result<Value> Evaluator::branch(const ArrayPtr& condition, const Branches& b, const ScopePtr& scope,
                                bool wanted) {
  GK_CHECK(refuse_in_roll(b.span));
  // The host would have chosen.
  if (condition->number) needs_host_ = true;
  GK_CHECK(freshen(b.rebound, scope, false, b.span));
  Settled settled;
  std::vector<Body> bodies;
  std::vector<ir::Type> types[2];
  for (size_t arm = 0; arm < 2; ++arm) {
    auto body = trace_body(settled, false, [&](Body& out) -> Result<void> {
      GK_CHECK(b.arms[arm](&out.value));
      if (!wanted) return {};
      std::function<Result<void>(Value&)> keep = [&](Value& v) -> Result<void> {
        if (v.is_aggregate()) {
          v = unshared(v);
          for (auto& i : v.items->items) GK_CHECK(keep(i));
        } else if (v.is_scalar() || v.is_array()) {
          if (v.is_array()) {
            GK_TRY(auto a, as_array(v, b.span));
            v = Value::of_array(a);
          }
          v = strengthen(v);
          types[arm].push_back(*form_of(v));
          if (!running()) return {};
          GK_TRY(auto a, as_array(v, b.span));
          GK_TRY(auto id, value_of(a, b.span));
          out.extra.push_back(id);
        }
        return {};
      };
      return keep(out.value);
    });
    if (!body) return fail(std::move(body.error()));
    bodies.push_back(std::move(*body));
  }
  const Value &x = bodies[0].value, &y = bodies[1].value;
  const bool both = x.kind != VKind::None && y.kind != VKind::None;
  const bool give = wanted && both && agree(x, y);
  const bool unknown = give && (x.is_unknown() || y.is_unknown());
  if (wanted && both && !give && b.must_agree)
    return fail(
        make_error(ErrorKind::Capture, "E0719",
                   fmt::format("the branches of a device condition give {} and {}", describe(x), describe(y)),
                   b.span)
            .note("in a capture the condition becomes part of the graph; both branches give one form"));
  std::vector<ArrayPtr> results;
  if (running()) {
    if (!give)
      for (Body& body : bodies) body.extra.clear();
    GK_TRY(auto id, value_of(condition, b.span));
    const auto fresh = close_bodies(ir::Op::If, id, bodies, b.span);
    for (size_t i = 0; i < fresh.size(); ++i) results.push_back(trace_->pending(types[0][i], fresh[i]));
  }
  apply(settled);
  if (unknown) return Value::unknown();
  if (!give) return Value::none();
  size_t next = 0;
  std::function<Value(const Value&)> fill = [&](const Value& v) {
    if (v.is_aggregate()) {
      Value r = unshared(v);
      for (auto& i : r.items->items) i = fill(i);
      return r;
    }
    if (!running()) return Value::of_array(trace_->pending(*form_of(v), -1));
    return Value::of_array(results[next++]);
  };
  return fill(x);
}

Result<void> Evaluator::device_while(const Stmt& s, const ScopePtr& scope, const ArrayPtr& condition) {
  GK_CHECK(refuse_in_roll(s.span));
  std::set<std::string> names;
  rebound_outside(s, names);
  GK_CHECK(freshen(names, scope, true, s.span));
  Settled settled;
  auto body = trace_body(settled, true, [&](Body& out) -> Result<void> {
    GK_CHECK(stay(exec_block(*s.body, scope, nullptr), s));
    GK_TRY(auto c, eval(*s.rhs, scope));
    if (c.is_unknown() && !running()) return {};
    const auto form = form_of(c);
    if (!form || !same_form(*form, scalar_type(DType::Bool)))
      return fail(ErrorKind::Type, "E0208", fmt::format("a condition is a scalar bool, not {}", describe(c)),
                  s.rhs->span);
    GK_TRY(auto a, as_array(c, s.rhs->span));
    GK_TRY(auto id, value_of(a, s.rhs->span));
    out.extra.push_back(id);
    return {};
  });
  if (!body) return fail(std::move(body.error()));
  if (running()) {
    GK_TRY(auto id, value_of(condition, s.rhs->span));
    std::vector<Body> bodies;
    bodies.push_back(std::move(*body));
    close_bodies(ir::Op::While, id, bodies, s.span);
  }
  apply(settled);
  return {};
}

}  // namespace gk::sema
