// Captured functions: compiled at the first call of a signature; later calls patch arrays and scalars.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/sema/capture_guard.h"
#include "compiler/sema/evaluator.h"

namespace gk::sema {

// ---- captured functions
// ----------------------------------------------------------------------------------------------

namespace {

void scalar_leaves(Value& v, std::vector<Value*>& out) {
  if (v.is_scalar() && !is_bool(v.scalar.dtype)) out.push_back(&v);
  if (v.is_aggregate())
    for (auto& i : v.items->items) scalar_leaves(i, out);
}

// Copies the structure, with each array leaf replaced in order.
Value with_leaves(const Value& v, const std::vector<ArrayPtr>& arrays, size_t& next) {
  if (v.is_array()) return Value::of_array(arrays[next++]);
  if (!v.is_aggregate()) return v;
  Value r = v;
  r.items = std::make_shared<Aggregate>(*v.items);
  for (auto& i : r.items->items) i = with_leaves(i, arrays, next);
  return r;
}

}  // namespace

Result<Value> Evaluator::call_captured(const Callable& c, Call& call, const ScopePtr& bound) {
  const syntax::FnDef& fn = *c.fn;
  // What the call may write belongs to its places alone before anything else is decided.
  for (const auto& p : fn.params)
    if (auto it = bound->names.find(p.name); p.is_mut && it != bound->names.end()) {
      Result<void> ready;
      for_each_array(it->second->get(), [&](const ArrayPtr& a) {
        ArrayPtr mine = a;
        if (ready) ready = own(mine, call.span);
        if (ready) ready = detach_aliases(*mine, call.span);
      });
      GK_CHECK(std::move(ready));
    }
  GK_CHECK(flush(call.span));
  // Arguments by leaf: arrays must have storage; scalars are parameters, or part of the key once they steer
  // the host.
  std::vector<ArrayPtr> arrays;
  std::vector<Value*> scalars;
  std::string key = fmt::format("{}|", static_cast<const void*>(&fn));
  bool frozen = frozen_scalars_.contains(&fn);
  std::vector<Value> copies(fn.params.size());
  for (size_t i = 0; i < fn.params.size(); ++i) {
    auto it = bound->names.find(fn.params[i].name);
    if (it == bound->names.end()) continue;
    Value& v = it->second->get();
    for_each_array(v, [&](const ArrayPtr& a) { arrays.push_back(a); });
    scalar_leaves(v, scalars);
  }
  for (const auto& a : arrays) GK_CHECK(materialise(a, call.span));
  for (size_t i = 0; i < arrays.size(); ++i) {
    size_t same = i;
    for (size_t j = 0; j < i; ++j)
      if (arrays[j]->storage == arrays[i]->storage) same = std::min(same, j);
    key += fmt::format("{}@{}/{};", ir::to_string(arrays[i]->type), same,
                       static_cast<int>(arrays[i]->storage->placement));
  }
  for (auto* s : scalars)
    key += frozen ? fmt::format("{}={}:{};", name(s->scalar.dtype), s->scalar.i, s->scalar.f)
                  : fmt::format("{}{};", name(s->scalar.dtype), s->weak ? "w" : "");
  for (size_t i = 0; i < fn.params.size(); ++i)
    if (auto it = bound->names.find(fn.params[i].name); it != bound->names.end()) {
      const Value& v = it->second->get();
      if (v.is_scalar() && is_bool(v.scalar.dtype)) key += v.scalar.i ? "T" : "F";
      if (v.kind == VKind::String) key += "\"" + v.text + "\"";
    }
  std::vector<Scalar> values;
  if (!frozen)
    for (auto* s : scalars) values.push_back(strengthen(*s).scalar);

  auto& entry = captured_[key];
  if (!entry) {
    auto made = std::make_shared<CapturedFn>();
    CaptureGuard guard(*this);
    InsideGuard inside(*this, arrays);
    bool failed_before = std::exchange(roll_failed_, false);
    std::vector<Value> host;
    if (!frozen)
      for (auto* s : scalars) {
        host.push_back(*s);
        Scalar x = strengthen(*s).scalar;
        ir::Type t;
        t.dtype = x.dtype;
        auto a = trace_->pending(t, trace_->param(x, call.span));
        a->loop_index = true;
        *s = Value::of_array(a);
      }
    auto r = run_fn_body(fn, bound);
    bool steers = std::exchange(roll_failed_, failed_before);
    for (size_t i = 0; i < host.size(); ++i) *scalars[i] = host[i];
    if (!frozen && (steers || (!r && !scalars.empty()))) {
      // A scalar is needed on the host: freeze them all into the key and capture again.
      frozen_scalars_.insert(&fn);
      captured_.erase(key);
      return call_captured(c, call, bound);
    }
    if (!r) {
      captured_.erase(key);
      return fail(std::move(r.error()).label(call.span, "in this call"));
    }
    // What the body's own names hold needs no home.
    std::erase_if(bound->names, [&](const auto& n) {
      return std::none_of(fn.params.begin(), fn.params.end(),
                          [&](const auto& p) { return p.name == n.first; });
    });
    std::vector<ArrayPtr> results;
    for_each_array(*r, [&](const ArrayPtr& a) { results.push_back(a); });
    for (size_t i = 0; i < trace_->writes().size(); ++i)
      for (size_t k = 0; k < arrays.size(); ++k)
        if (arrays[k]->storage == trace_->writes()[i]) made->written_arguments.push_back(static_cast<int>(k));
    // Results that are arguments, or the same array twice, become arrays of their own.
    for (auto& a : results)
      if (a->storage || std::count(results.begin(), results.end(), a) > 1) {
        auto fresh = std::make_shared<ArrayData>();
        fresh->type = a->type;
        trace_->adopt(fresh, trace_->value_of(*a));
        a = fresh;
      }
    for (auto& a : results) a->apart = true;
    size_t next = 0;
    made->result = with_leaves(*r, results, next);
    Unit unit = trace_->take();
    for (size_t s = 0; s < unit.slots.size(); ++s) {
      CapturedFn::SlotSource source;
      for (size_t k = 0; k < arrays.size() && source.argument < 0; ++k)
        if (arrays[k]->storage == unit.slots[s]) source.argument = static_cast<int>(k);
      for (size_t k = 0; k < results.size(); ++k)
        if (results[k]->storage == unit.slots[s]) source.result = static_cast<int>(k);
      if (source.argument < 0 && source.result < 0) source.fixed = unit.slots[s];
      made->slots.push_back(source);
    }
    made->results.resize(results.size());
    made->module = std::move(unit.module);
    entry = made;
  }
  auto fn_entry = entry;
  std::vector<ArrayPtr> fresh;
  std::vector<ir::Type> types;
  for_each_array(fn_entry->result, [&](const ArrayPtr& a) { types.push_back(a->type); });
  for (size_t k = 0; k < types.size(); ++k) {
    auto a = std::make_shared<ArrayData>();
    a->type = types[k];
    auto& last = fn_entry->results[k];
    if (last && last.use_count() == 1) {
      a->storage = last;  // nobody sees the earlier result any more
      last->captured = false;
    } else {
      a->storage = std::make_shared<Storage>();
      a->storage->type = types[k];
      GK_CHECK(effects_->allocate(*a->storage));
      last = a->storage;
    }
    a->storage->owner = a.get();
    fresh.push_back(a);
  }
  std::vector<StoragePtr> slots;
  std::vector<StoragePtr> written;
  for (const auto& s : fn_entry->slots)
    slots.push_back(s.argument >= 0 ? arrays[static_cast<size_t>(s.argument)]->storage
                    : s.result >= 0 ? fresh[static_cast<size_t>(s.result)]->storage
                                    : s.fixed);
  for (int k : fn_entry->written_arguments) written.push_back(arrays[static_cast<size_t>(k)]->storage);
  GK_CHECK(detach_for_launch(written, call.span));
  auto r = effects_->launch_captured(fn_entry->handle, fn_entry->module, slots, values, call.span);
  if (!r) return fail(std::move(r.error()).at(call.span));
  size_t next = 0;
  return with_leaves(fn_entry->result, fresh, next);
}

}  // namespace gk::sema
