#include "compiler/codegen/apart.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "runtime/base/process.h"
#include "runtime/base/thrown.h"

namespace gk::codegen {

namespace {

constexpr std::chrono::milliseconds kAskEvery{10};
constexpr int kStopSignal = SIGURG;  // ignored unless somebody asks for it

struct Apart {
  explicit Apart(Work w) : work(std::move(w)) {}

  void run() {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, kStopSignal);
    ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    std::optional<Result<std::string>> made;
    try {
      made = work([this] { return unwanted.load(std::memory_order_relaxed); });
    } catch (const std::exception& e) {
      made = fail(thrown(e));
    }
    work = nullptr;  // what it holds goes here, not on whichever thread comes last
    const std::lock_guard lock(mutex);
    result = std::move(made);
    done.notify_all();
  }

  Work work;
  std::atomic<bool> unwanted{false};
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Result<std::string>> result;
};

// Note [Threads that nobody waits for]
// LLVM cannot be stopped inside a pass, which over a giant kernel takes seconds, and a thread inside of it
// must not see the process destroy LLVM's statics. So threads with unwanted work are kept here, and a handler
// of exit(), which runs before those destructors because it is registered after them, ends each or stops it
// for good: a signal whose handler does not return. Other destructors run after that and must not wait for a
// lock that a stopped thread holds, malloc's for one; so the handler stops a thread only where it is in
// LLVM's own code, which holds no lock that others take, and returns where it is in any other; then it is
// asked again.
struct Range {
  uintptr_t begin = 0, end = 0;
};
std::atomic<uintptr_t> stoppable_begin, stoppable_end;  // NOLINT: a signal handler has nothing else
std::atomic<int> stopped_threads;                       // NOLINT

void stop_here(int, siginfo_t*, void* context) {
#ifdef __x86_64__
  const auto at = static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  if (at < stoppable_begin || at >= stoppable_end) return;
  ++stopped_threads;
  for (;;) ::pause();
#else
  static_cast<void>(context);
#endif
}

/// The code of the shared object, or program, that holds the address.
Range code_around(const void* address) {
  struct Search {
    uintptr_t at;
    Range found;
  } search{reinterpret_cast<uintptr_t>(address), {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          if (part.p_type == PT_LOAD && (part.p_flags & PF_X) && s.at >= begin && s.at < begin + part.p_memsz)
            s.found = {begin, begin + part.p_memsz};
        }
        return 0;
      },
      &search);
  return search.found;
}

class Unwanted {
 public:
  static Unwanted& all() {
    static auto* const threads = [] {
      auto* made = new Unwanted;  // never destroyed: the handler uses it
      std::atexit([] { all().end_all(); });
      return made;
    }();
    return *threads;
  }

  void keep(std::thread thread, std::shared_ptr<Apart> work, const void* code) {
    const std::lock_guard lock(mutex_);
    code_ = code;
    threads_.push_back({std::move(thread), std::move(work), {}});
  }
  /// Takes leave of those that have ended.
  void join_ended() {
    std::list<One> ended;
    const std::lock_guard lock(mutex_);
    for (auto it = threads_.begin(); it != threads_.end();) {
      const auto next = std::next(it);
      if (!it->home.left() && it->ended()) ended.splice(ended.end(), threads_, it);
      it = next;
    }
    for (One& one : ended) one.thread.join();
  }

 private:
  struct One {
    std::thread thread;
    std::shared_ptr<Apart> work;
    Home home;  // in a child of fork() the thread is not there
    bool ended() const {
      const std::lock_guard lock(work->mutex);
      return work->result.has_value();
    }
  };

  void end_all() {
    for (One& one : threads_)
      if (!one.home.left()) end(one);
  }

  void end(One& one) {
    constexpr std::chrono::milliseconds kSoon{20}, kAgain{1};
    std::unique_lock lock(one.work->mutex);
    const auto ended = [&] { return one.work->result.has_value(); };
    const bool alone = one.work->done.wait_for(lock, kSoon, ended);
    if (!alone) {
      const Range code = code_around(code_);
      stoppable_begin = code.begin;
      stoppable_end = code.end;
      struct sigaction action {};
      action.sa_sigaction = stop_here;
      action.sa_flags = SA_SIGINFO;
      sigfillset(&action.sa_mask);
      ::sigaction(kStopSignal, &action, nullptr);
      for (const int before = stopped_threads; !ended();) {
        ::pthread_kill(one.thread.native_handle(), kStopSignal);
        one.work->done.wait_for(lock, kAgain, ended);
        if (stopped_threads != before) return one.thread.detach();
      }
    }
    lock.unlock();
    one.thread.join();
  }

  std::mutex mutex_;
  std::list<One> threads_;
  const void* code_ = nullptr;
};

}  // namespace

Result<std::string> run_apart(Work work, const Interrupted& interrupted, const void* code) {
  Unwanted& unwanted = Unwanted::all();
  unwanted.join_ended();
  const auto apart = std::make_shared<Apart>(std::move(work));
  std::thread thread;
  try {
    thread = std::thread([apart] { apart->run(); });
  } catch (const std::system_error&) {
    return apart->work(interrupted);  // no thread is to be had: it is waited for
  }
  {
    std::unique_lock lock(apart->mutex);
    while (!apart->done.wait_for(lock, kAskEvery, [&] { return apart->result.has_value(); })) {
      lock.unlock();
      const bool stop = interrupted();
      lock.lock();
      if (stop && !apart->result) {
        apart->unwanted = true;
        lock.unlock();
        unwanted.keep(std::move(thread), apart, code);
        return fail(ErrorKind::Interrupted, "E0806", "interrupted");
      }
    }
  }
  thread.join();
  return std::move(*apart->result);
}

}  // namespace gk::codegen
