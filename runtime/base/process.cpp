#include "runtime/base/process.h"

#include <pthread.h>

#include <atomic>

namespace gk {

uint32_t process_generation() {
  static std::atomic<uint32_t> forks{0};
  static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)watched;
  return forks.load(std::memory_order_relaxed);
}

}  // namespace gk
