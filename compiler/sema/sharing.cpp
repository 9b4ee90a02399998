// Who holds which storage, and who gets a copy before it is written. See Note [Places] in value.h.
#include <algorithm>
#include <set>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/numbers.h"
#include "runtime/base/options.h"

namespace gk::sema {

namespace {

StoragePtr checked_storage(const ArrayPtr& a) {
  auto s = std::make_shared<Storage>();
  s->type = a->type;
  s->placement = a->wanted;
  s->owner = a.get();
  return s;
}

// A copy made now, outside whatever is being captured.
Result<void> copy_now(Evaluator& ev, const ArrayPtr& alias, Span span) {
  if (!ev.running()) {
    alias->storage = checked_storage(alias);
    return {};
  }
  ev.note_outside();
  Changes change;
  change.note(alias);
  Trace outside(true);
  outside.adopt(alias, [&] {
    ArrayData reader;
    reader.type = alias->type;
    reader.storage = alias->storage;
    return outside.value_of(reader);
  }());
  Unit unit = outside.take();
  unit.span = span;
  auto done = ev.effects()->execute(unit);
  if (!done) change.undo();
  return done;
}

}  // namespace

// A new holder of what `a` holds now.
Result<ArrayPtr> Evaluator::new_holder(const ArrayPtr& a, bool place, Span span) {
  GK_CHECK(settle_outside(a, span));
  auto h = std::make_shared<ArrayData>(*a);
  h->storage = nullptr;
  h->pending = -1;
  h->bound = place;
  h->named = place || a->named;
  h->apart = false;
  if (place) h->name.clear();
  h->capture_depth = capture_depth_;
  const StoragePtr& s = a->storage;
  // In a body on a device condition an array from around it is known by its cell alone.
  if (s && !trace_->in_body() && !trace_->written_values().contains(s.get())) {
    h->storage = s;
    const bool takes_over = place && !capturing() && !a->bound && s->owner == a.get() && !s->captured;
    if (takes_over) {
      changes_.note(a);
      s->owner = h.get();
    }
    add_alias(*s, takes_over ? a : h);
  } else if (running()) {
    trace_->adopt(h, trace_->value_of(*a));
  } else {
    h->storage = checked_storage(h);
  }
  return h;
}

Result<Value> Evaluator::hold(const Value& v, Span span) {
  if (v.is_aggregate()) {
    Value r = v;
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& item : r.items->items) {
      GK_TRY(item, hold(item, span));
    }
    return r;
  }
  if (!v.is_array() || !v.array->bound || v.is_literal()) return v;
  GK_TRY(auto a, new_holder(v.array, false, span));
  return Value::of_array(std::move(a));
}

Result<Value> Evaluator::bind_value(const Value& v, Span span) {
  if (v.is_aggregate()) {
    Value r = v;
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& item : r.items->items) {
      GK_TRY(item, bind_value(item, span));
    }
    return r;
  }
  if (!v.is_array()) {
    Value r = v;
    r.constant = false;  // what has a name may differ from one run of the statement to the next
    return r;
  }
  if (v.is_literal()) return v;  // nobody can write to it
  GK_TRY(auto a, new_holder(v.array, true, span));
  return Value::of_array(std::move(a));
}

Result<void> Evaluator::settle_outside(const ArrayPtr& a, Span span) {
  if (!a->storage || a->capture_depth >= capture_depth_) return {};
  ArrayPtr mine = a;
  return own(mine, span);
}

Result<ir::ValueId> Evaluator::value_of(const ArrayPtr& a, Span span) {
  if (a->literal) {
    GK_TRY(auto made, literal_array(a, a->type.dtype, false, span));
    return trace_->value_of(*made);
  }
  GK_CHECK(settle_outside(a, span));
  return trace_->value_of(*a);
}

Result<void> Evaluator::detach_aliases(ArrayData& a, Span span) {
  if (!a.storage) return {};
  for (auto& alias : live_aliases(*a.storage)) {
    if (alias.get() == &a) continue;
    if (alias->capture_depth < capture_depth_) {
      GK_CHECK(copy_now(*this, alias, span));
    } else if (!running()) {
      alias->storage = checked_storage(alias);
    } else {
      changes_.note(alias);
      trace_->root().adopt(alias, trace_->root().value_of(*alias));
    }
  }
  a.storage->aliases.clear();
  return {};
}

Result<void> Evaluator::detach_for_launch(const std::vector<StoragePtr>& written, Span span) {
  for (const auto& s : written)
    for (auto& alias : live_aliases(*s)) GK_CHECK(copy_now(*this, alias, span));
  return {};
}

Result<void> Evaluator::own(ArrayPtr& a, Span span) {
  const StoragePtr s = a->storage;
  if (!s || s->owner == a.get()) return {};
  const bool outside = a->capture_depth < capture_depth_;
  // What a capture makes never owns what was there before it.
  if (!s->owner && !s->captured && (outside || !capturing())) {
    changes_.note(a);
    s->owner = a.get();
    return {};
  }
  if (outside) return copy_now(*this, a, span);
  if (!running()) {
    a->storage = checked_storage(a);
    return {};
  }
  changes_.note(a);
  trace_->root().adopt(a, trace_->root().value_of(*a));
  return {};
}

Result<void> Evaluator::overwrite(ArrayPtr& a, const ArrayPtr& v, Span span) {
  if (!a->bound && gk::options().stress)
    return fail(ErrorKind::Internal, "E0901", "a write to what is no place", span);
  GK_TRY(auto value, value_of(v, span));
  GK_CHECK(own(a, span));
  GK_CHECK(detach_aliases(*a, span));
  if (running()) {
    changes_.note(a);
    trace_->write(*a, value);
  } else if (a->storage) {
    trace_->set_written(a->storage, value);
  }
  return {};
}

void Evaluator::drop_trace() {
  changes_.undo();
  ++unit_;
  trace_ = std::make_unique<Trace>(running());
}

Result<void> Evaluator::check_places(const ScopePtr& scope, Span span) const {
  if (!gk::options().stress || !running()) return {};
  std::set<const ArrayData*> places;
  const char* wrong = nullptr;
  for (auto sc = scope; sc && !wrong; sc = sc->parent)
    for (const auto& [name, v] : sc->names) {
      if (v->target) continue;  // it stands among the caller's
      for_each_array(v->value, [&](const ArrayPtr& a) {
        if (a->literal) return;  // it has no home, and nobody can write it
        const StoragePtr& s = a->storage;
        if (!v->is_param && a->bound && !places.insert(a.get()).second) wrong = "two places are one";
        if (!s && trace_->id() == trace_->root().id() && !a->loop_index && a->trace != trace_->id() &&
            !capturing())
          wrong = "a value without a home";
        if (!s || s->owner == a.get()) return;
        if (s->owner && s->owner->storage != s) wrong = "a storage of an owner that left it";
        const auto listed = [&](const auto& w) { return w.lock() == a; };
        if (std::none_of(s->aliases.begin(), s->aliases.end(), listed)) wrong = "an alias nobody knows";
        if (trace_->written_values().contains(s.get()) && s->owner && !trace_->in_body())
          wrong = "an alias of what was written";
      });
    }
  if (!wrong) return {};
  return fail(ErrorKind::Internal, "E0901", wrong, span);
}

}  // namespace gk::sema
