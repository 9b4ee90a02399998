// A gate on a context's stream: what is submitted behind it stays in flight until it is opened. Owns nothing
// of the device's. Opens itself after a while, so that a call that waits for the device too early ends as a
// failed test (was_forced()) and not as one that hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "gk/gk.h"

namespace gk::contract_test {

// Waits go by system_clock: the thread sanitizer knows the call that this becomes, and not the other one.
class Gate {
 public:
  /// Closed for what the context is given from now on.
  explicit Gate(const Context& ctx) {
    ctx.host_call([s = state_] {
      std::unique_lock lock(s->mutex);
      s->reached = true;
      s->changed.notify_all();
      if (!s->changed.wait_until(lock, std::chrono::system_clock::now() + kLongest, [&] { return s->open; }))
        s->forced = true;
    });
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() {
    std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }
  /// Waits until the device stands before the gate.
  bool reached() {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_until(lock, std::chrono::system_clock::now() + kLongest,
                                      [&] { return state_->reached; });
  }
  bool was_forced() const {
    std::lock_guard lock(state_->mutex);
    return state_->forced;
  }

 private:
  static constexpr std::chrono::seconds kLongest{20};
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false, reached = false, forced = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// What happens on another thread, soon: asked again until it is so, or until it has taken far too long.
inline bool eventually(const std::function<bool()>& so) {
  for (int i = 0; i < 2000; ++i) {
    if (so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return so();
}

}  // namespace gk::contract_test
