#include "compiler/sema/shared_calls.h"

#include <algorithm>
#include <bit>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

namespace {

constexpr size_t kMostKnown = 4096;

// What is the same however it is made: host values and values of this trace.
bool plain(const Value& v, uint64_t trace) {
  if (v.is_aggregate())
    return std::all_of(v.items->items.begin(), v.items->items.end(),
                       [&](const Value& i) { return plain(i, trace); });
  if (v.is_array()) return !v.array->storage && v.array->trace == trace && v.array->pending >= 0;
  return v.is_scalar() || v.kind == VKind::String;
}

// `make` gives each array a handle of its own on the same value.
template <class F>
Value with_arrays(const Value& v, F&& make) {
  Value r = v;
  if (v.is_array()) r.array = make(v.array);
  if (v.is_aggregate()) {
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& i : r.items->items) i = with_arrays(i, make);
  }
  return r;
}

int64_t address(const void* p) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p)); }

}  // namespace

void SharedCalls::renew(uint64_t trace, int64_t definitions) {
  if (trace_ == trace && definitions_ == definitions && known_.size() < kMostKnown) return;
  known_.clear();
  trace_ = trace;
  definitions_ = definitions;
}

SharedCalls::Now::Now(Evaluator& ev, const Callable& c)
    : ev_(ev),
      usable_(ev.running() && !ev.rolling() && !ev.trace().in_body() && c.fn && c.scope && !c.scope->parent),
      trace_(ev.trace().id()),
      outside_(ev.num_outside()),
      fn_(c.fn) {
  if (!usable_) return;
  key_.number(address(c.fn.get()));
  key_.number(address(c.scope.get()));
}

void SharedCalls::Now::argument(const Value& v, bool is_mut) {
  usable_ = usable_ && !is_mut;
  if (usable_) add(v);
}

void SharedCalls::Now::add(const Value& v) {
  key_.flag(static_cast<int>(v.kind));
  switch (v.kind) {
    case VKind::Scalar: {
      const Scalar s = v.scalar.peek();
      key_.scalar(s);
      key_.flag(v.weak);
      key_.number(ev_.comes_from_call(v) ? v.scalar.origin()->at : -1);
      break;
    }
    case VKind::String: key_.word(v.text); break;
    case VKind::Array: {
      if (v.is_literal()) {
        usable_ = usable_ && v.array->literal->origins.empty();
        const LiteralValues& values = v.array->literal->values;
        if (values.identity()) {  // of a tree, which lives longer than the unit
          key_.number(address(values.identity()));
          key_.number(values.is_negated());
        }
        for (size_t i = 0; !values.identity() && i < values.size(); ++i) {
          const Scalar s = values[i];
          key_.flag(static_cast<int>(s.dtype));
          key_.number(s.i);
          key_.number(std::bit_cast<int64_t>(s.f));
        }
        key_.named_type(v.array->type);
        break;
      }
      const auto value = ev_.trace().known_value(*v.array);
      usable_ = usable_ && (value >= 0 || v.array->storage);
      key_.number(value);
      key_.number(value >= 0 ? 0 : address(v.array->storage.get()));
      key_.named_type(v.array->type);
      break;
    }
    case VKind::Record:
    case VKind::List:
    case VKind::Tuple:
      key_.number(static_cast<int64_t>(v.items->items.size()));
      key_.number(address(v.items->type.get()));
      for (const auto& n : v.items->names) {
        key_.word(n);
      }
      for (const auto& i : v.items->items) add(i);
      break;
    case VKind::Builtin: key_.word(v.text); break;
    default: usable_ = false;
  }
}

std::optional<Value> SharedCalls::Now::find() const {
  if (!usable_) return std::nullopt;
  SharedCalls& all = ev_.shared_calls();
  all.renew(trace_, ev_.num_definitions());
  const auto it = all.known_.find(key_.bytes);
  if (it == all.known_.end()) return std::nullopt;
  return with_arrays(it->second.result, [&](const ArrayPtr& a) {
    auto mine = ev_.trace().pending(a->type, a->pending);
    mine->wanted = a->wanted;
    return mine;
  });
}

void SharedCalls::Now::keep(const Value& r) {
  SharedCalls& all = ev_.shared_calls();
  if (!usable_ || ev_.trace().id() != trace_ || ev_.num_outside() != outside_ || !plain(r, trace_)) return;
  all.renew(trace_, ev_.num_definitions());
  // Not a name of the value: it is not alive because of this.
  all.known_[std::move(key_.bytes)] = {with_arrays(r,
                                                   [&](const ArrayPtr& a) {
                                                     auto held = std::make_shared<ArrayData>();
                                                     held->type = a->type;
                                                     held->pending = a->pending;
                                                     held->trace = a->trace;
                                                     held->wanted = a->wanted;
                                                     return held;
                                                   }),
                                       fn_};
}

}  // namespace gk::sema
