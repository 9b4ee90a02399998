// "Used by one thread at a time", checked. An Owner notes which thread is inside; a call of a second thread
// meanwhile is an error that changes nothing, instead of a race. Calls within calls of the same thread are
// fine. Not a lock: nobody ever waits.
#pragma once

#include <atomic>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/process.h"

namespace gk::engine {

class Owner {
 public:
  class Entry {
   public:
    Entry() = default;
    Entry(Entry&& o) noexcept : owner_(std::exchange(o.owner_, nullptr)) {}
    Entry& operator=(Entry&& o) noexcept {
      std::swap(owner_, o.owner_);
      return *this;
    }
    ~Entry() {
      if (owner_) owner_->leave();
    }

   private:
    friend class Owner;
    explicit Entry(Owner* o) : owner_(o) {}
    Owner* owner_ = nullptr;
  };
  /// `what` is what is entered: "the context". Errors: Capture E0710; Usage E0514 in a child by fork().
  Result<Entry> enter(std::string_view what);

 private:
  void leave();
  Home home_;
  std::atomic<std::thread::id> holder_{};
  int depth_ = 0;  // of the holder's
};

}  // namespace gk::engine
