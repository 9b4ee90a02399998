#include "cli/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace gk::cli {
namespace {

std::atomic<Session*> g_session{nullptr};
std::atomic<int64_t> g_first_ns{0};
std::atomic<bool> g_stays{false};
static_assert(std::atomic<Session*>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);
constexpr unsigned kPatienceSeconds = 2;
constexpr int64_t kPatienceNs = int64_t{kPatienceSeconds} * 1'000'000'000;

// Async-signal-safe: atomics, clock_gettime and _exit alone.
void on_interrupt(int) {
  const int saved = errno;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  Session* session = g_session.load();
  int64_t first = 0;
  if (session == nullptr) _exit(static_cast<int>(Status::Interrupted));
  const bool again = !g_first_ns.compare_exchange_strong(first, now_ns) && now_ns - first >= kPatienceNs;
  session->interrupt();
  if (g_stays) {
    constexpr char kMessage[] = "what runs has been asked to stop and is waited for; Ctrl-\\ ends gkrun\n";
    if (again) [[maybe_unused]]
      auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  } else {
    if (again) _exit(static_cast<int>(Status::Interrupted));
    ::alarm(kPatienceSeconds);  // a kernel that runs on is not waited for
  }
  errno = saved;
}

// A kernel or product that runs too long to be heard of: the program ends around it.
void on_alarm(int) {
  constexpr char kMessage[] = "error[E0806]: interrupted; what was running was not waited for\n";
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(static_cast<int>(Status::Interrupted));
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  // Who starts a program with it ignored, as a shell does for one in the background, means that.
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, nullptr);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  // A parent may have left SIGPIPE ignored (Python does): then a closed pipe would be a write error instead.
  signal(SIGPIPE, SIG_DFL);
  // A write beyond the limit on the size of files is an error like a full disk.
  signal(SIGXFSZ, SIG_IGN);
}

void watch(Session* session, WhenInterrupted then) {
  g_stays = then == WhenInterrupted::Stays;
  g_session.store(session);
}

void interruption_over() { g_first_ns = 0; }

}  // namespace gk::cli
