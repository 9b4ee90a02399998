#include "runtime/memory/retire.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

namespace gk::memory {
namespace {

// A bounded drain asks the driver about so many endings that turn out not to be ready, then leaves: an
// allocation should not pay for everything that waits.
constexpr int64_t kMissesOfBounded = 4;

// Whether this thread is running an ending, of whichever list.
thread_local bool inside_ending = false;

struct Ending {
  std::string what;
  std::function<Result<void>()> run;
  std::vector<std::shared_ptr<hal::Event>> after;
};

// An event that cannot be asked counts as not done: better kept too long than ended too early.
bool ready(const Ending& e) {
  return std::all_of(e.after.begin(), e.after.end(), [](const auto& event) {
    const Result<bool> done = event->done();
    return done && *done;
  });
}

}  // namespace

struct RetireList::State {
  mutable std::mutex mutex;         // all but `pending`; never held while an ending or an event is asked
  std::condition_variable changed;  // of running
  std::list<Ending> endings;        // oldest first, but that bounded drains move what was not ready back
  int64_t running = 0;              // drains at work
  int64_t blocking = 0;             // blocking releases in progress
  int64_t capturing = 0;            // captures, and threads that joined one
  std::vector<std::string> failures;
  std::atomic<int64_t> pending{0};

  void run(Ending e) {
    const bool outer = std::exchange(inside_ending, true);  // true only where a list ends inside an ending
    Result<void> outcome = e.run();
    e.run = nullptr;  // what it holds may end now and publish more
    e.after.clear();
    inside_ending = outer;
    if (outcome) return;
    std::lock_guard lock(mutex);
    if (failures.size() < kFailuresKept) {
      failures.push_back(fmt::format("{}: {} {}", e.what, outcome.error().code, outcome.error().message));
    }
  }
};

RetireList::RetireList() : state_(std::make_shared<State>()) {}

RetireList::~RetireList() {
  // Endings may publish others.
  while (true) {
    std::unique_lock lock(state_->mutex);
    if (state_->endings.empty()) return;
    Ending e = std::move(state_->endings.front());
    state_->endings.pop_front();
    state_->pending.fetch_sub(1, std::memory_order_relaxed);
    lock.unlock();
    for (const auto& event : e.after) (void)event->wait();
    state_->run(std::move(e));
  }
}

void RetireList::publish(std::string what, std::function<Result<void>()> ending,
                         std::vector<std::shared_ptr<hal::Event>> after) {
  std::lock_guard lock(state_->mutex);
  state_->endings.push_back({std::move(what), std::move(ending), std::move(after)});
  state_->pending.fetch_add(1, std::memory_order_release);
}

int64_t RetireList::drain(int64_t limit) {
  State& s = *state_;
  if (inside_ending || s.pending.load(std::memory_order_acquire) == 0) return 0;
  std::unique_lock lock(s.mutex);
  int64_t ran = 0, misses = 0;
  // What is published meanwhile is for the next drain, unless this one has no bound.
  int64_t left = limit < 0 ? INT64_MAX : static_cast<int64_t>(s.endings.size());
  ++s.running;
  std::list<Ending> taken, kept;
  while (!s.endings.empty() && s.capturing == 0 && left-- > 0 && (limit < 0 || ran < limit) &&
         (limit < 0 || misses < kMissesOfBounded)) {
    taken.splice(taken.begin(), s.endings, s.endings.begin());
    lock.unlock();
    if (ready(taken.front())) {
      s.pending.fetch_sub(1, std::memory_order_relaxed);
      s.run(std::move(taken.front()));
      taken.clear();
      ++ran;
    } else {
      ++misses;
    }
    lock.lock();
    if (!taken.empty()) kept.splice(kept.end(), taken);
  }
  s.endings.splice(limit < 0 ? s.endings.begin() : s.endings.end(), kept);
  --s.running;
  s.changed.notify_all();
  return ran;
}

void RetireList::settle() {
  if (inside_ending) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->running == 0; });
}

int64_t RetireList::pending() const { return state_->pending.load(std::memory_order_acquire); }

std::vector<std::string> RetireList::failures() const {
  std::lock_guard lock(state_->mutex);
  return state_->failures;
}

Result<void> RetireList::begin_capture() {
  if (inside_ending) return fail(ErrorKind::Capture, "E0708", "a capture cannot begin inside an ending");
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  if (s.blocking > 0) {
    return fail(ErrorKind::Capture, "E0708",
                "a capture cannot begin while memory is being released that waits for the device");
  }
  ++s.capturing;  // no other ending starts from here on
  s.changed.wait(lock, [&] { return s.running == 0; });
  return {};
}

void RetireList::end_capture() {
  State& s = *state_;
  {
    std::lock_guard lock(s.mutex);
    if (s.capturing == 0 || --s.capturing > 0) return;
  }
  drain();
}

int64_t RetireList::captures() const {
  std::lock_guard lock(state_->mutex);
  return state_->capturing;
}

Result<std::unique_ptr<RetireList::Blocking>> RetireList::begin_blocking() {
  State& s = *state_;
  std::lock_guard lock(s.mutex);
  if (inside_ending || s.capturing > 0) {
    return fail(ErrorKind::Capture, "E0708",
                inside_ending ? "a release that waits for the device cannot begin inside an ending"
                              : "memory is not given back to the driver while a graph is being made");
  }
  ++s.blocking;
  return std::make_unique<Blocking>(state_);
}

std::unique_ptr<RetireList::Blocking> RetireList::try_blocking() {
  std::lock_guard lock(state_->mutex);
  if (state_->capturing > 0) return nullptr;
  ++state_->blocking;
  return std::make_unique<Blocking>(state_);
}

RetireList::Blocking::~Blocking() {
  std::lock_guard lock(state_->mutex);
  --state_->blocking;
}

}  // namespace gk::memory
