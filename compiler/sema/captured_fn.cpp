// Captured functions: traced and compiled at the first call of a kind; later calls patch arrays and numbers.
// Inside a capture they are ordinary functions.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compiler/sema/call_key.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/guards.h"

namespace gk::sema {

namespace {

// Calls `f` on the name of each parameter that has one, in order.
template <class F>
void each_parameter(const syntax::FnDef& fn, const Evaluator::ScopePtr& bound, F&& f) {
  for (const auto& p : fn.params)
    if (auto it = bound->names.find(p.name); it != bound->names.end()) f(p, *it->second);
}

// What was computed from the arguments' numbers, and arrays of this call.
Value result_of(const CapturedFn& f, const Value& v, const std::vector<ArrayPtr>& arrays, size_t& next,
                const std::vector<Value>& numbers) {
  if (v.is_array()) return Value::of_array(arrays[next++]);
  if (const Origin* from = v.is_scalar() ? v.scalar.origin() : nullptr)
    return from->prologue == f.prologue ? numbers[static_cast<size_t>(from->at)] : without_origin(v);
  if (!v.is_aggregate() && v.kind != VKind::Range) return v;
  Value r = v;
  r.items = std::make_shared<Aggregate>(*v.items);
  for (auto& i : r.items->items) i = result_of(f, i, arrays, next, numbers);
  return r;
}

std::vector<Scalar> scalars_of(const CapturedFn& f, const std::vector<Value>& numbers) {
  std::vector<Scalar> scalars = f.module.params;
  for (size_t i = 0; i < scalars.size(); ++i)
    if (f.scalars[i] >= 0) scalars[i] = numbers[static_cast<size_t>(f.scalars[i])].scalar.peek();
  return scalars;
}

}  // namespace

Result<void> Evaluator::check_captured_result(const syntax::FnDef& fn, const Value& v) const {
  if (v.is_aggregate())
    for (const auto& i : v.items->items) GK_CHECK(check_captured_result(fn, i));
  if (v.kind != VKind::Function || (!v.callable->lambda && !v.callable->scope->parent)) return {};
  return fail(make_error(ErrorKind::Capture, "E0703",
                         fmt::format("the captured function `{}` gives a function made in it", fn.name),
                         fn.name_span)
                  .note("its names would hold the work of the capture, which is over")
                  .help("make it an ordinary `fn`, or give the function as an argument"));
}

Result<Value> Evaluator::call_captured(const Callable& c, Call& call, const ScopePtr& bound) {
  // What the call may write belongs to its places alone from here on, as it does once it is written. Then all
  // work that is waiting is done, so that every array has its storage.
  const auto owned = [&](const Value& v) -> Result<void> {
    Result<void> r;
    for_each_array(v, [&](const ArrayPtr& a) {
      ArrayPtr mine = a;
      if (r) r = own(mine, call.span);
      if (r) r = detach_aliases(*mine, call.span);
      if (!mine->storage) mine->apart = true;  // it gets a home that no equal value shares
    });
    return r;
  };
  Result<void> ready;
  each_parameter(*c.fn, bound, [&](const syntax::Param& p, Variable& v) {
    if (ready && p.is_mut) ready = owned(v.get());
    for_each_written_around(v.get(), [&](ArrayPtr& a) {
      if (ready) ready = owned(Value::of_array(a));
    });
  });
  GK_CHECK(std::move(ready));
  GK_CHECK(flush(call.span));

  CallKey key(*this);
  key.key.flag(fuse_ | fast_math_ << 1 | tf32_ << 2);
  key.function(c);
  each_parameter(*c.fn, bound, [&](const syntax::Param& p, Variable& v) { key.argument(p.name, v.get()); });
  for (Value& n : key.numbers) n = without_origin(n);

  // The arguments' numbers, and after them what the steps give.
  std::vector<Value> numbers = key.numbers, computed;
  std::vector<const Value*> arguments;
  for (const Value& n : key.numbers) arguments.push_back(&n);
  const auto replay = [&](const CapturedFn& f) {
    if (!f.prologue->replay(*this, arguments, computed)) return false;
    numbers.insert(numbers.end(), std::make_move_iterator(computed.begin()),
                   std::make_move_iterator(computed.end()));
    return true;
  };
  const auto known = captured_.find(key.key.bytes, key.numbers);
  for (const auto& f : known)
    if (replay(*f)) {
      captured_.use(f);
      return launch_captured(f, key, numbers, call.span);
    }
  GK_TRY(auto f, trace_captured(c, call, bound, key));
  // Something is different about these numbers that their kinds do not tell.
  if (!known.empty()) f->prologue->steer_all();
  if (!replay(*f))
    return fail(ErrorKind::Internal, "E0901", "a prologue that differs from its trace", call.span);
  GK_TRY(auto result, launch_captured(f, key, numbers, call.span));
  captured_.keep(key.key.bytes, key.numbers, f, *effects_);
  return result;
}

Result<std::shared_ptr<CapturedFn>> Evaluator::trace_captured(const Callable& c, Call& call,
                                                              const ScopePtr& bound, const CallKey& key) {
  auto made = std::make_shared<CapturedFn>();
  made->prologue = std::make_shared<Prologue>();
  made->keepers = key.keepers;
  std::vector<std::pair<Value*, Value>> originals;
  const InsideGuard inside(*this, key.arrays);
  const Instead following(following_, made->prologue.get());
  const auto evaluate = [&]() -> Result<Value> {
    each_parameter(*c.fn, bound, [&](const syntax::Param&, Variable& v) {
      if (!has_numbers(v.get())) return;
      originals.emplace_back(&v.get(), v.get());
      v.get() = with_numbers(v.get(), [&](const Value& n) { return made->prologue->argument(n); });
    });
    auto r = run_fn_body(*c.fn, bound);
    for (auto& [place, value] : originals) *place = std::move(value);
    if (!r) return r;
    GK_CHECK(check_captured_result(*c.fn, *r));
    return r;
  };
  auto traced = trace_function(evaluate, true, call.span);
  if (!traced) return fail(std::move(traced.error()).label(call.span, "in this call"));
  std::vector<ArrayPtr>& leaves = made->result_leaves = std::move(traced->results);
  made->result = std::move(traced->result);
  made->scalars = std::move(traced->sources);
  Unit& unit = traced->unit;
  for (const StoragePtr& s : unit.slots) {
    CapturedFn::SlotSource source;
    for (size_t k = 0; k < key.arrays.size() && source.argument < 0; ++k)
      if (key.arrays[k]->storage == s) source.argument = static_cast<int>(k);
    for (size_t k = 0; k < leaves.size(); ++k)
      if (leaves[k]->storage == s) source.result = static_cast<int>(k);
    if (source.argument < 0 && source.result < 0) source.fixed = s;
    made->slots.push_back(std::move(source));
  }
  made->last.resize(leaves.size());
  made->module = std::move(unit.module);
  return made;
}

Result<Value> Evaluator::launch_captured(const std::shared_ptr<CapturedFn>& f, const CallKey& key,
                                         const std::vector<Value>& numbers, Span span) {
  note_outside();
  // Where memory is short, what other calls left behind goes first.
  const auto or_with_less = [&](const std::function<Result<void>()>& work) -> Result<void> {
    auto r = work();
    if (r || r.error().kind != ErrorKind::OutOfMemory) return r;
    captured_.drop_others(f);
    return work();
  };
  std::vector<ArrayPtr> fresh;
  for (size_t k = 0; k < f->result_leaves.size(); ++k) {
    const ArrayData& leaf = *f->result_leaves[k];
    auto a = std::make_shared<ArrayData>();
    a->type = leaf.type;
    a->wanted = leaf.wanted;
    StoragePtr& last = f->last[k];
    if (last && last.use_count() == 1 && !effects_->is_given_up(*last)) {
      last->aliases.clear();
      last->name.clear();
      last->captured = false;
    } else {
      auto s = std::make_shared<Storage>();
      s->type = leaf.type;
      s->placement = leaf.wanted;
      GK_CHECK(or_with_less([&] { return effects_->allocate(*s); }));
      last = std::move(s);
    }
    a->storage = last;
    last->owner = a.get();
    fresh.push_back(std::move(a));
  }
  std::vector<StoragePtr> slots;
  for (const auto& s : f->slots)
    slots.push_back(s.argument >= 0 ? key.arrays[static_cast<size_t>(s.argument)]->storage
                    : s.result >= 0 ? fresh[static_cast<size_t>(s.result)]->storage
                                    : s.fixed);
  const auto scalars = scalars_of(*f, numbers);
  Result<void> r;
  if (!f->module.outputs.empty())
    r = or_with_less([&] { return effects_->launch_captured(f->handle, f->module, slots, scalars, span); });
  if (!r) return fail(std::move(r.error()).at(span));
  if (effects_->sync_every_statement()) {
    if (auto s = effects_->synchronize(); !s) return fail(std::move(s.error()).at(span));
  }
  size_t next = 0;
  return result_of(*f, f->result, fresh, next, numbers);
}

}  // namespace gk::sema
