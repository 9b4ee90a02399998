// The timelines that used a piece of memory last, each with the number of the first wait that proves it done
// with it. Owns nothing. Promises an order by address, no allocation for up to one, and that what is known to
// be done is forgotten where sets meet. Not thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "runtime/memory/timeline.h"

namespace gk::memory {

struct User {
  Timeline* timeline = nullptr;
  uint64_t wait = 0;  // Timeline::over() of it: done with the memory
  bool idle() const { return !timeline->busy() || timeline->over(wait); }
};

class Users {
 public:
  bool empty() const { return first_.timeline == nullptr; }
  size_t size() const { return empty() ? 0 : 1 + rest_.size(); }
  const User& operator[](size_t i) const { return i == 0 ? first_ : rest_[i - 1]; }
  void clear() {
    first_ = {};
    rest_.clear();
  }
  /// The timeline has used it until now.
  void add(Timeline& t) {
    const User u{&t, t.next_wait()};
    if (!u.idle()) insert(u);
  }
  void add(const Users& o) {
    forget_idle();
    for (size_t i = 0; i < o.size(); ++i) {
      if (!o[i].idle()) insert(o[i]);
    }
  }
  /// Work on `t` needs no order after them.
  bool ordered_for(const Timeline* t) const {
    for (size_t i = 0; i < size(); ++i) {
      const User& u = (*this)[i];
      if (u.timeline != t && !u.idle()) return false;
    }
    return true;
  }
  bool idle() const { return ordered_for(nullptr); }
  /// The one timeline that is not done with it; null: there is none, or more than one (`several`).
  Timeline* only(bool& several) const {
    Timeline* found = nullptr;
    for (size_t i = 0; i < size(); ++i) {
      if ((*this)[i].idle()) continue;
      if (found != nullptr) return several = true, nullptr;
      found = (*this)[i].timeline;
    }
    return found;
  }

 private:
  void insert(const User& u) {
    if (empty()) {
      first_ = u;
    } else if (u.timeline == first_.timeline) {
      first_.wait = std::max(first_.wait, u.wait);
    } else {
      User other = u;
      if (std::less<>{}(other.timeline, first_.timeline)) std::swap(other, first_);
      auto at = std::lower_bound(rest_.begin(), rest_.end(), other, [](const User& a, const User& b) {
        return std::less<>{}(a.timeline, b.timeline);
      });
      if (at != rest_.end() && at->timeline == other.timeline) {
        at->wait = std::max(at->wait, other.wait);
      } else {
        rest_.insert(at, other);
      }
    }
  }
  void forget_idle() {
    std::erase_if(rest_, [](const User& u) { return u.idle(); });
    if (empty() || !first_.idle()) return;
    first_ = {};
    if (rest_.empty()) return;
    first_ = rest_.front();
    rest_.erase(rest_.begin());
  }

  User first_;  // timeline null: there are none
  std::vector<User> rest_;
};

}  // namespace gk::memory
