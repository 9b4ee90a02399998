#include "compiler/sema/changes.h"

namespace gk::sema {

void Changes::note(const ArrayPtr& a) {
  if (!all_ && !a->storage) return;
  arrays_.push_back({a, a->storage, a->pending, a->trace, a->storage && a->storage->owner == a.get()});
}

void Changes::note(const std::shared_ptr<Variable>& v, uint64_t unit) {
  if (!all_ && v->unit == unit) return;
  names_.emplace_back(v, v->value);
  if (!all_) v->unit = unit;
}

bool Changes::beside(const std::set<const ArrayData*>& arrays, const std::set<const Variable*>& names) const {
  for (const OfArray& was : arrays_) {
    const auto a = was.array.lock();
    if (!a || arrays.contains(a.get())) continue;
    if (a->storage != was.storage || (!a->storage && a->pending != was.pending)) return true;
  }
  for (const auto& [v, value] : names_)
    if (!names.contains(v.get())) return true;
  return false;
}

void Changes::add(Changes inner) {
  for (auto& was : inner.arrays_)
    if (was.storage || all_) arrays_.push_back(std::move(was));
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
  for (auto it = names_.rbegin(); it != names_.rend(); ++it) it->first->value = std::move(it->second);
  clear();
}

void Changes::clear() {
  arrays_.clear();
  names_.clear();
}

}  // namespace gk::sema
