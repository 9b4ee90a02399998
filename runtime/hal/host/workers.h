// The host device's worker threads, a fixed number: a oneTBB arena, or plain threads in builds for the thread
// sanitizer. Promises that for_each() runs every index exactly once, that all of it is visible to the caller
// on return, and that one index or one thread costs nothing but the call. Not for ordering between pieces of
// work: streams do that.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace gk::hal::host {

class Workers {
 public:
  /// 0: as many threads as the process may use, which with oneTBB are also the most.
  explicit Workers(int threads);
  ~Workers();
  int threads() const { return threads_; }
  /// body(context, i) for every i of [0, count), in any order, on any of the threads.
  void for_each(int64_t count, void (*body)(void* context, int64_t i), void* context);
  template <class F>
  void for_each(int64_t count, F&& f) {
    using Body = std::remove_reference_t<F>;
    for_each(
        count, [](void* context, int64_t i) { (*static_cast<Body*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(std::addressof(f))));
  }

 private:
  struct Impl;
  int threads_ = 1;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gk::hal::host
