// Threads of tests, joined properly: what a thread throws is thrown where it is joined, and whoever waits for
// another one gives up after a while with an exception instead of hanging. Owns nothing of gk's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace gk::contract_test {

// Waits go by system_clock: the thread sanitizer knows the call that this becomes, and not the other one.
/// How long anybody waits for what must come.
constexpr std::chrono::seconds kPatience{30};

/// Set once; then everybody who waits goes on.
class Signal {
 public:
  void set() {
    std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  bool is_set() const {
    std::lock_guard lock(mutex_);
    return is_set_;
  }
  /// False where it was not set in time.
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, std::chrono::system_clock::now() + time, [&] { return is_set_; });
  }
  void wait() {
    if (!wait_for(kPatience)) throw std::runtime_error("the signal never came");
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

/// `n` threads wait until all are there, as often as they like.
class Meeting {
 public:
  explicit Meeting(int n) : n_(n) {}
  void wait() {
    std::unique_lock lock(mutex_);
    const long mine = turn_;
    if (++here_ == n_) {
      here_ = 0;
      ++turn_;
      changed_.notify_all();
      return;
    }
    if (!changed_.wait_until(lock, std::chrono::system_clock::now() + kPatience,
                             [&] { return turn_ != mine; }))
      throw std::runtime_error("not everybody came to the meeting");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  const int n_;
  int here_ = 0;
  long turn_ = 0;
};

/// A thread; join() throws what it threw. Joined by the end of its scope at the latest.
class Thread {
 public:
  explicit Thread(std::function<void()> f)
      : thread_([this, f = std::move(f)] {
          try {
            f();
          } catch (...) {
            thrown_ = std::current_exception();
          }
        }) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() {
    if (thread_.joinable()) thread_.join();
  }
  void join() {
    thread_.join();
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  std::exception_ptr thrown_;
  std::thread thread_;  // the last member: it uses the others
};

/// Runs `f` on a thread of its own and waits for it.
inline void on_thread(std::function<void()> f) { Thread(std::move(f)).join(); }

/// Runs f(0) … f(n - 1), each on a thread of its own.
inline void on_threads(int n, const std::function<void(int)>& f) {
  std::vector<std::unique_ptr<Thread>> all;
  for (int i = 0; i < n; ++i) all.push_back(std::make_unique<Thread>([&f, i] { f(i); }));
  std::exception_ptr first;
  for (auto& t : all) {
    try {
      t->join();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace gk::contract_test
