// `for` as a loop on the device: in a kernel, or in a graph as steps that are repeated.
//
// Note [Loops on the device]. The body is traced apart, with its turn as a parameter. In a kernel (Loop) it
// must be a recurrence (roll.h). In a capture a long loop is steps that are repeated (Repeat): a graph has
// them as often as there are turns, the turn being a number of their kernels, so that a turn costs no
// condition. Two turns make one body, so that what they hand on goes to and fro between two places and is not
// copied. A loop too long for that is a While over such a Repeat. What is left over is run by the host, turn
// by turn.
#include <algorithm>

#include "compiler/sema/body.h"
#include "compiler/sema/guards.h"
#include "compiler/sema/rebound.h"
#include "compiler/sema/roll.h"

namespace gk::sema {

using syntax::Stmt;
using syntax::StmtKind;

namespace {

constexpr int64_t kMinRolledTrips = 4;
constexpr int64_t kMaxEagerRolledTrips = 1'000'000;
// From more turns than this on, a `for` inside a capture, or inside a loop, is not written out turn by turn.
constexpr int64_t kMostUnrolledTrips = 64;
constexpr int64_t kMostRepeated = 256;  // turns of a Repeat that is no part of a While
constexpr int64_t kTurnsOfBody = 2;

// How many turns a round of a While takes: a condition costs as much as a few kernels, and nodes are memory.
int64_t turns_of_round(int64_t turns) {
  int64_t best = 32;
  for (int64_t n = best; n >= 16; n -= kTurnsOfBody)
    if (turns % n < turns % best) best = n;
  return best;
}

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

const ir::Type kNumber{DType::I64, {}};

}  // namespace

Result<ArrayPtr> Evaluator::number_on_device(int64_t i, Span span) {
  ir::Attrs attrs;
  attrs.value = Scalar::of_int(i);
  attrs.dtype = DType::I64;
  return emit(ir::Op::Const, {}, attrs, span);
}

// `x` * factor + offset
Result<ArrayPtr> Evaluator::scaled_index(ArrayPtr x, int64_t factor, int64_t offset, Span span) {
  for (const auto& [op, by] : {std::pair{ir::Op::Mul, factor}, std::pair{ir::Op::Add, offset}}) {
    if (by == (op == ir::Op::Mul ? 1 : 0)) continue;
    GK_TRY(auto number, number_on_device(by, span));
    GK_TRY(x, emit(op, {x, number}, {}, span));
  }
  return x;
}

Result<int64_t> Evaluator::loop_on_device(const Stmt& s, const ScopePtr& scope, const Value& over, int64_t lo,
                                          int64_t hi) {
  int64_t turns = 0;
  if (__builtin_sub_overflow(hi, lo, &turns)) return 0;
  const bool in_kernel = fuse_ && over.kind == VKind::Range && turns >= kMinRolledTrips &&
                         (capturing() || turns <= kMaxEagerRolledTrips) && may_roll(*s.body);
  const bool in_host_memory =
      over.is_array() && over.array->storage && over.array->storage->placement == Placement::Host;
  const bool in_graph = capturing() && rolling_ == 0 && turns > kMostUnrolledTrips && !in_host_memory &&
                        (over.kind == VKind::Range || over.is_array());
  DeviceLoop loop{s, scope, over, lo, hi, {}};
  std::set<std::string> written;
  rebound_outside(s, loop.rebound);
  assigned_names(*s.body, written);
  // Host values that change from turn to turn stay host values: such a loop is run here, step by step.
  const bool host_values = std::any_of(loop.rebound.begin(), loop.rebound.end(), [&](const auto& n) {
    const auto v = lookup(n, scope);
    return !v || !arrays_only(v->get());
  });
  int64_t done = 0;
  if (in_kernel && !host_values && !written.empty()) {
    GK_TRY(done, given_up_or(loop, [&] { return loop_in_kernel(loop); }));
  }
  if (in_graph && !host_values && done == 0) {
    GK_TRY(done, given_up_or(loop, [&] { return loop_in_graph(loop); }));
  }
  if (done == 0 && turns > kMostUnrolledTrips && over.kind == VKind::Range) GK_CHECK(refuse_in_roll(s.span));
  return done;
}

// How many turns `attempt` took on; where it could not, names are as they were.
Result<int64_t> Evaluator::given_up_or(const DeviceLoop& loop,
                                       const std::function<Result<int64_t>()>& attempt) {
  std::vector<std::pair<std::shared_ptr<Variable>, Value>> before;
  for (const auto& n : loop.rebound) {
    const auto v = lookup(n, loop.scope);
    before.emplace_back(v, v->value);
  }
  const int num_scalars = trace_->num_scalars();
  const Instead asks(needs_host_, false);
  Result<int64_t> done = attempt();
  if (done && *done > 0) return done;
  for (auto& [var, value] : before) var->value = value;
  trace_->forget_scalars(num_scalars);
  GK_CHECK(poll(loop.s.span));
  return 0;
}

// `count` turns as one body; index(j) makes the index of each. Nothing: it needs the host.
Result<std::optional<Evaluator::Body>> Evaluator::trace_turns(
    const DeviceLoop& loop, Settled& settled, int64_t count,
    const std::function<Result<ArrayPtr>(int64_t)>& index) {
  GK_CHECK(freshen(loop.rebound, loop.scope, false, loop.s.span));
  auto body = trace_body(settled, true, [&](Body&) -> Result<void> {
    for (int64_t j = 0; j < count; ++j) {
      GK_TRY(ArrayPtr at, index(j));
      Value item;
      if (loop.over.is_array()) {
        ir::Attrs attrs;
        attrs.axes = {0};
        GK_TRY(at, emit(ir::Op::Take, {loop.over.array, at}, attrs, loop.s.rhs->span));
      } else {
        at->loop_index = true;
        at->number = DeviceNumber{true, static_cast<double>(loop.lo), static_cast<double>(loop.hi - 1)};
      }
      item = Value::of_array(std::move(at));
      GK_CHECK(stay(loop_body(loop.s, loop.scope, std::move(item)), loop.s));
      // In the turns of the host it would be a host number.
      for (const Rebound& r : bodies_.back())
        for_each_array(r.var->value, [&](const ArrayPtr& a) { needs_host_ = needs_host_ || a->number; });
    }
    return {};
  });
  if (!body) return fail(std::move(body.error()));
  const auto& cells = body->trace->cells();
  const bool works = std::any_of(cells.begin(), cells.end(), [](const Trace::Cell& c) { return c.now >= 0; });
  if (!works || needs_host_ || body->trace->somebody_waits()) return std::optional<Body>();
  return std::optional<Body>(std::move(*body));
}

Result<int64_t> Evaluator::loop_in_kernel(const DeviceLoop& loop) {
  const Instead rolling(rolling_, rolling_ + 1);
  const ir::ValueId turn = trace_->module().new_value(ir::Type(kNumber));
  Settled settled;
  GK_TRY(auto body, trace_turns(loop, settled, 1, [&](int64_t) {
           return scaled_index(trace_->pending(kNumber, turn), 1, loop.lo, loop.s.span);
         }));
  if (!body || !is_recurrence(*body->trace, turn)) return 0;
  body->turns = loop.hi - loop.lo;
  close_loop(ir::Op::Loop, turn, std::move(*body), settled, loop.s.span);
  return loop.hi - loop.lo;
}

Result<int64_t> Evaluator::loop_in_graph(const DeviceLoop& loop) {
  const int64_t turns = loop.hi - loop.lo;
  const Span span = loop.s.span;
  // From the turn `first` on; null: from the beginning.
  const auto repeat = [&](const ArrayPtr& first, int64_t times) -> Result<bool> {
    const ir::ValueId turn = trace_->module().new_value(ir::Type(kNumber));
    Settled settled;
    GK_TRY(auto body, trace_turns(loop, settled, kTurnsOfBody, [&](int64_t j) -> Result<ArrayPtr> {
             const int64_t offset = loop.lo + j;
             GK_TRY(auto at,
                    scaled_index(trace_->pending(kNumber, turn), kTurnsOfBody, first ? 0 : offset, span));
             if (!first) return at;
             GK_TRY(at, emit(ir::Op::Add, {at, first}, {}, span));
             return scaled_index(at, 1, offset, span);
           }));
    if (!body) return false;
    body->turns = times;
    close_loop(ir::Op::Repeat, turn, std::move(*body), settled, span);
    return true;
  };
  if (turns <= kMostRepeated) {
    GK_TRY(const bool done, repeat(nullptr, turns / kTurnsOfBody));
    return done ? turns / kTurnsOfBody * kTurnsOfBody : 0;
  }
  const int64_t of_round = turns_of_round(turns), rounds = turns / of_round;
  GK_CHECK(freshen(loop.rebound, loop.scope, false, span));
  const ir::ValueId round = trace_->module().new_value(ir::Type(kNumber));
  Settled settled;
  bool done = false;
  GK_TRY(auto body, trace_body(settled, true, [&](Body&) -> Result<void> {
           GK_TRY(auto first, scaled_index(trace_->pending(kNumber, round), of_round, 0, span));
           GK_TRY(done, repeat(first, of_round / kTurnsOfBody));
           return {};
         }));
  if (!done || body.trace->somebody_waits()) return 0;
  GK_TRY(const ir::ValueId first, count_turns(body, round, rounds, span));
  close_loop(ir::Op::While, first, std::move(body), settled, span);
  return rounds * of_round;
}

void Evaluator::close_loop(ir::Op op, ir::ValueId first, Body body, const Settled& settled, Span span) {
  std::vector<Body> bodies;
  bodies.push_back(std::move(body));
  close_bodies(op, first, bodies, span);
  apply(settled);
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
