#include "compiler/sema/changes.h"

namespace gk::sema {

void Changes::note(const ArrayPtr& a) {
  if (!all_ && !a->storage) return;
  arrays_.push_back({a, a->storage, a->pending, a->trace, a->storage && a->storage->owner == a.get()});
}

void Changes::note(const std::shared_ptr<Variable>& v, uint64_t unit) {
  if (!all_) {
    if (v->unit == unit) return;
    v->unit = unit;
  }
  // The first value is what is asked for; keeping others would keep arrays that nobody sees any more.
  if (noted_.insert(v.get()).second) names_.emplace_back(v, v->value);
}

bool Changes::beside(const std::set<const ArrayData*>& arrays, const std::set<const Variable*>& names) const {
  for (const OfArray& was : arrays_) {
    const auto a = was.array.lock();
    if (!a || arrays.contains(a.get())) continue;
    if (a->storage != was.storage || (!a->storage && a->pending != was.pending)) return true;
  }
  for (const auto& [w, value] : names_)
    if (const auto v = w.lock(); v && !names.contains(v.get())) return true;
  return false;
}

void Changes::forget_gone() {
  std::erase_if(names_, [](const auto& n) { return n.first.expired(); });
}

void Changes::add(Changes inner) {
  for (auto& was : inner.arrays_)
    if (all_ || was.storage) arrays_.push_back(std::move(was));
  if (!all_) return;
  for (auto& [w, value] : inner.names_)
    if (const auto v = w.lock(); v && noted_.insert(v.get()).second) names_.emplace_back(v, std::move(value));
}

void Changes::undo() {
  for (auto it = arrays_.rbegin(); it != arrays_.rend(); ++it) {
    const auto a = it->array.lock();
    if (!a) continue;
    if (a->storage && a->storage != it->storage && a->storage->owner == a.get()) a->storage->owner = nullptr;
    a->storage = it->storage;
    a->pending = it->pending;
    a->trace = it->trace;
    if (!a->storage) continue;
    if (it->owner)
      a->storage->owner = a.get();
    else
      add_alias(*a->storage, a);
  }
  for (auto& [w, value] : names_)
    if (const auto v = w.lock()) v->value = std::move(value);
  clear();
}

void Changes::clear() {
  arrays_.clear();
  names_.clear();
  noted_.clear();
}

}  // namespace gk::sema
