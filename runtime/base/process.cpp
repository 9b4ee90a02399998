#include "runtime/base/process.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>

namespace gk {

uint32_t process_generation() {
  static std::atomic<uint32_t> forks{0};
  static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)watched;
  return forks.load(std::memory_order_relaxed);
}

bool address_space_left(size_t size_bytes) {
  void* p =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  ::munmap(p, size_bytes);
  return true;
}

}  // namespace gk
