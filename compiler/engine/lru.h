// Values by key, of which those used last are kept, up to a total weight; the one used now is kept whatever
// it weighs. Owns them. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gk::engine {

template <class T>
class Lru {
 public:
  explicit Lru(int64_t most) : most_(most) {}

  /// Null where it is not there.
  T* find(const std::string& key) {
    const auto it = places_.find(key);
    if (it == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &it->second->value;
  }
  void put(std::string key, T value, int64_t weight) {
    if (const auto it = places_.find(key); it != places_.end()) drop(it->second);
    entries_.push_front({std::move(key), std::move(value), weight});
    places_.emplace(entries_.front().key, entries_.begin());
    weight_ += weight;
    while (weight_ > most_ && entries_.size() > 1) drop(std::prev(entries_.end()));
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    T value;
    int64_t weight;
  };
  using Entries = std::list<Entry>;
  void drop(typename Entries::iterator it) {
    weight_ -= it->weight;
    places_.erase(it->key);
    entries_.erase(it);
  }

  int64_t most_, weight_ = 0;
  Entries entries_;                                                          // the one used last comes first
  std::unordered_map<std::string_view, typename Entries::iterator> places_;  // keys lie in the entries
};

}  // namespace gk::engine
