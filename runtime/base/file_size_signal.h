// A write beyond the limit on the size of files (RLIMIT_FSIZE) sends SIGXFSZ, which ends a process that does
// not expect it. While an object of this class lives, this thread's writes fail with EFBIG instead. Leaves
// the host program's handlers alone. Not for reading, nor for other threads.
#pragma once

#include <signal.h>
#include <time.h>

#include <cerrno>

namespace gk {

class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeSignalHeld() {
    const int saved = errno;
    // What the writes here have sent is taken, and nothing else.
    const timespec now{};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;

 private:
  sigset_t signal_, before_;
  bool was_pending_ = false;
};

}  // namespace gk
