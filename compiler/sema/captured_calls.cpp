#include "compiler/sema/captured_calls.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "compiler/sema/effects.h"

namespace gk::sema {

namespace {

// Each takes some tens of kilobytes beside its arrays.
constexpr size_t kMostEntries = 2048;
// Of the device's memory, the share that they alone may keep.
constexpr int64_t kMemoryShare = 8;
constexpr int64_t kLeastLimit = int64_t{256} << 20;

std::string values_of(const std::vector<bool>& steering, const std::vector<Value>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!steering[i]) continue;
    const Scalar s = numbers[i].scalar.peek();
    for (int64_t part : {s.i, std::bit_cast<int64_t>(s.f)})
      text.append(reinterpret_cast<const char*>(&part), sizeof part);
  }
  return text;
}

int64_t bytes_of(const ir::Type& t) { return num_elements(t.shape()).value_or(0) * size_bytes(t.dtype); }

}  // namespace

std::vector<std::shared_ptr<CapturedFn>> CapturedCalls::find(const std::string& key,
                                                             const std::vector<Value>& numbers) {
  std::vector<std::shared_ptr<CapturedFn>> found;
  const auto groups = groups_.find(key);
  if (groups == groups_.end()) return found;
  for (const Group& g : groups->second)
    if (auto it = g.by_values.find(values_of(g.steering, numbers)); it != g.by_values.end())
      found.push_back(it->second);
  return found;
}

void CapturedCalls::keep(const std::string& key, const std::vector<Value>& numbers,
                         std::shared_ptr<CapturedFn> f, const Effects& effects) {
  auto& groups = groups_[key];
  const auto& steering = f->prologue->steering();
  auto group =
      std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.steering == steering; });
  if (group == groups.end()) group = groups.insert(groups.end(), Group{steering, {}});
  Entry e;
  e.key = key;
  e.values = values_of(steering, numbers);
  if (auto it = group->by_values.find(e.values); it != group->by_values.end()) {
    const auto place = places_.find(it->second.get());
    most_bytes_ -= place->second->most_bytes;
    entries_.erase(place->second);
    places_.erase(place);
  }
  group->by_values[e.values] = f;
  e.most_bytes = effects.held_bytes(f->handle);
  for (const auto& s : f->module.slots) e.most_bytes += bytes_of(s.type);
  most_bytes_ += e.most_bytes;
  e.f = std::move(f);
  entries_.push_front(std::move(e));
  places_[entries_.front().f.get()] = entries_.begin();
  trim(effects);
}

void CapturedCalls::use(const std::shared_ptr<CapturedFn>& f) {
  const auto it = places_.find(f.get());
  if (it != places_.end()) entries_.splice(entries_.begin(), entries_, it->second);
}

void CapturedCalls::drop(Entries::iterator it) {
  const auto groups = groups_.find(it->key);
  for (Group& g : groups->second)
    if (auto found = g.by_values.find(it->values); found != g.by_values.end() && found->second == it->f)
      g.by_values.erase(found);
  std::erase_if(groups->second, [](const Group& g) { return g.by_values.empty(); });
  if (groups->second.empty()) groups_.erase(groups);
  most_bytes_ -= it->most_bytes;
  places_.erase(it->f.get());
  entries_.erase(it);
}

void CapturedCalls::drop_others(const std::shared_ptr<CapturedFn>& f) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto now = it++;
    if (now->f != f) drop(now);
  }
}

void CapturedCalls::trim(const Effects& effects) {
  while (entries_.size() > kMostEntries) drop(std::prev(entries_.end()));
  const int64_t limit = std::max(kLeastLimit, effects.memory_bytes() / kMemoryShare);
  if (most_bytes_ <= limit) return;
  // More than that only if nobody else has the arrays of their last calls.
  int64_t held = 0;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto now = it++;
    held += effects.held_bytes(now->f->handle);
    for (const auto& s : now->f->last)
      if (s.use_count() == 1) held += bytes_of(s->type);
    if (held > limit && now != entries_.begin()) drop(now);
  }
}

}  // namespace gk::sema
