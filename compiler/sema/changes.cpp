#include "compiler/sema/changes.h"

namespace gk::sema {

void Changes::note(const ArrayPtr& a) {
  if (!a->storage) return;
  arrays_.push_back({a, a->storage, a->pending, a->trace, a->storage->owner == a.get()});
}

void Changes::note(const std::shared_ptr<Variable>& v, uint64_t unit) {
  if (v->unit == unit) return;
  // The first value is what is asked for; keeping others would keep arrays that nobody sees any more.
  v->unit = unit;
  names_.emplace_back(v, v->value);
}

void Changes::undo() {
  for (auto it = arrays_.rbegin(); it != arrays_.rend(); ++it) {
    const auto a = it->array.lock();
    if (!a) continue;
    if (a->storage && a->storage != it->storage && a->storage->owner == a.get()) a->storage->owner = nullptr;
    a->storage = it->storage;
    a->pending = it->pending;
    a->trace = it->trace;
    if (it->owner)
      a->storage->owner = a.get();
    else
      add_alias(*a->storage, a);
  }
  for (auto& [w, value] : names_)
    if (const auto v = w.lock()) v->value = std::move(value);
  arrays_.clear();
  names_.clear();
}

}  // namespace gk::sema
