#include "compiler/sema/checked_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

namespace {

// How many calls of one function by others are followed.
constexpr int kMostFollowed = 256;

// Results that are the same whenever they are made: no graphs, no lambdas, which hold a scope, and no array
// that has a name already, since who it is matters.
bool plain(const Value& v) {
  if (v.is_aggregate()) return std::all_of(v.items->items.begin(), v.items->items.end(), plain);
  if (v.is_array()) return v.array->storage == nullptr;
  return v.is_unknown() || v.kind == VKind::None || v.is_scalar() || v.kind == VKind::String;
}

// The result of a call is an array of its own.
Value renewed(const Value& v, Trace& trace) {
  Value r = v;
  if (v.is_aggregate()) {
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& item : r.items->items) item = renewed(item, trace);
  } else if (v.is_array()) {
    r.array = trace.pending(v.array->type, -1);
    r.array->wanted = v.array->wanted;
    r.array->loose = v.array->loose;
  }
  return r;
}

bool contains(const std::vector<StoragePtr>& all, const StoragePtr& s) {
  return s && std::find(all.begin(), all.end(), s) != all.end();
}

}  // namespace

// Functions of a file see what their file defines. Those inside a body may see what differs from one turn to
// the next, or be hidden from it by what follows.
CheckedCall::CheckedCall(Evaluator& ev, const Callable& c)
    : ev_(ev),
      fn_(c.fn.get()),
      usable_(!ev.running() && c.scope && !c.scope->parent),
      mistakes_(ev.num_mistakes()) {
  if (!usable_) return;
  key_ = fmt::format("{}|", static_cast<const void*>(c.fn.get()));
  // In a capture, what is read and written is noted: only the same call on the same arrays adds nothing.
  if (ev.capturing()) key_ += fmt::format("{}|", ev.trace().id());
}

void CheckedCall::add(const Value& v) {
  switch (v.kind) {
    case VKind::Unknown: key_ += "?"; break;
    case VKind::Scalar:
      key_ += fmt::format("s{}{}{}:{}:{};", static_cast<int>(v.scalar.dtype), v.weak ? "w" : "",
                          v.known ? "k" : "u", v.known ? v.scalar.i : v.symbol, v.known ? v.scalar.f : 0.0);
      break;
    case VKind::Array: {
      if (v.array->literal) add_literal(*v.array->literal);
      key_ += fmt::format("a{}{}{}[", name(v.array->type.dtype), static_cast<int>(v.array->wanted),
                          v.array->loose ? "l" : "");
      for (const auto& d : v.array->type.dims) key_ += fmt::format("{}/{}/{},", d.value, d.symbol, d.name);
      key_ += "];";
      if (ev_.capturing() && v.array->storage)
        key_ += fmt::format("{};", static_cast<const void*>(v.array->storage.get()));
      break;
    }
    case VKind::Record:
    case VKind::List:
    case VKind::Tuple:
      key_ += fmt::format("{}{}(", static_cast<int>(v.kind), static_cast<const void*>(v.items->type.get()));
      for (const auto& n : v.items->names) key_ += n + ",";
      for (const auto& i : v.items->items) add(i);
      key_ += ");";
      break;
    case VKind::String: key_ += fmt::format("\"{}:{}", v.text.size(), v.text); break;
    case VKind::Builtin: key_ += fmt::format("b{};", v.text); break;
    case VKind::Function:
    case VKind::Kernel:
      if (v.callable->lambda || !v.callable->scope || v.callable->scope->parent) usable_ = false;
      key_ += fmt::format("f{}/{};", static_cast<const void*>(v.callable->fn.get()),
                          static_cast<const void*>(v.callable->kernel.get()));
      break;
    default: usable_ = false;
  }
}

// Whether its numbers fit where they go depends on each of them.
void CheckedCall::add_literal(const HostLiteral& l) {
  uint64_t mixed = l.known;
  for (size_t i = 0; i < l.values.size(); ++i) {
    const Scalar s = l.values[i];
    for (uint64_t part :
         {static_cast<uint64_t>(s.dtype), static_cast<uint64_t>(s.i), std::bit_cast<uint64_t>(s.f)})
      mixed = (mixed ^ (part + 0x9e3779b97f4a7c15)) * 0xff51afd7ed558ccd + (mixed >> 29);
  }
  key_ += fmt::format("l{}:", mixed);
}

void CheckedCall::argument(const Value& v, Value* place) {
  if (!usable_) return;
  add(v);
  if (!place) return;
  // The parts of other places may change in ways that a later call would have to repeat.
  if (!v.is_array() && !v.is_unknown()) usable_ = false;
  places_.push_back(place);
}

std::optional<Result<Value>> CheckedCall::find(Span span) {
  if (!usable_) return std::nullopt;
  const auto& memo = ev_.checked_calls();
  const auto it = memo.find(key_);
  if (it == memo.end()) {
    // What a place becomes must be followed. What stands outside of functions is as much as there is text.
    if (!places_.empty() || !ev_.inside_call()) return std::nullopt;
    if (++ev_.followed_calls(*fn_) > kMostFollowed) return Result<Value>(Value::unknown());
    return std::nullopt;
  }
  const CheckedResult& known = it->second;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!known.written[i] || !places_[i]->is_array()) continue;
    ArrayPtr& a = places_[i]->array;
    const ir::Type type = a->type;
    if (auto r = ev_.overwrite(a, ev_.trace().pending(type, -1), span); !r) return fail(std::move(r.error()));
  }
  return Result<Value>(renewed(known.result, ev_.trace()));
}

void CheckedCall::keep(const Value& r) {
  // A body with a mistake is followed each time: what is wrong with it may change with what is defined later.
  if (!usable_ || ev_.num_mistakes() != mistakes_ || !plain(r)) return;
  CheckedResult known;
  for (const Value* p : places_)
    known.written.push_back(p->is_array() && contains(ev_.trace().writes(), p->array->storage));
  known.result = r;
  ev_.checked_calls().insert_or_assign(std::move(key_), std::move(known));
}

}  // namespace gk::sema
