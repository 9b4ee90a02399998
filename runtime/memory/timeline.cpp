#include "runtime/memory/timeline.h"

namespace gk::memory {
namespace {

void raise(std::atomic<uint64_t>& to, uint64_t value) {
  uint64_t now = to.load(std::memory_order_relaxed);
  while (now < value && !to.compare_exchange_weak(now, value, std::memory_order_acq_rel)) {
  }
}

// An event recorded in a stream that is being captured would become part of that capture; a wait breaks it.
Result<void> check_not_captured(const Timeline& t, hal::Stream& s) {
  if (!t.exposed()) return {};
  GK_TRY(const bool capturing, s.is_capturing());
  if (!capturing) return {};
  return fail(ErrorKind::Capture, "E0711",
              "memory was used last on a stream that the host program is capturing now");
}

}  // namespace

Timeline::Ends Timeline::ends() const {
  std::lock_guard lock(mutex_);
  return {stream_, last_};
}

void Timeline::conceal() {
  if (!exposed()) return;
  mark_busy();  // whatever it was, the next wait covers it
  exposed_.store(false, std::memory_order_release);
}

Result<void> Timeline::order_before(Timeline& later) {
  if (&later == this || !busy()) return {};
  const Ends to = later.ends();
  if (to.stream == nullptr) return fail(ErrorKind::Usage, "E0716", "the stream was closed");
  GK_TRY(const std::shared_ptr<hal::Event> e, event());
  if (e == nullptr) return {};
  // From now on the other one stands for this one's work too.
  later.mark_busy();
  return to.stream->wait(*e);
}

Result<std::shared_ptr<hal::Event>> Timeline::event() {
  if (!busy()) return std::shared_ptr<hal::Event>();
  const Ends e = ends();
  if (e.stream == nullptr) return e.last;
  GK_CHECK(check_not_captured(*this, *e.stream));
  GK_TRY(std::unique_ptr<hal::Event> recorded, e.stream->record());
  return std::shared_ptr<hal::Event>(std::move(recorded));
}

Result<void> Timeline::wait() {
  if (!busy()) return {};
  const Ends e = ends();
  if (e.stream != nullptr) GK_CHECK(check_not_captured(*this, *e.stream));
  const Wait w = begin_wait();
  if (e.stream != nullptr) {
    GK_CHECK(e.stream->synchronize());
  } else if (e.last != nullptr) {
    GK_CHECK(e.last->wait());
  }
  end_wait(w);
  return {};
}

// The number of submissions is raised before the work is given. Only the thread that raised it last knows
// that it was given, too; for others the stream stays busy.
Timeline::Wait Timeline::begin_wait() {
  Wait w;
  const bool own = giver_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  if (own || closed()) w.given = given_.load(std::memory_order_acquire);
  w.number = wait_begun_.fetch_add(1, std::memory_order_acq_rel);
  return w;
}

void Timeline::end_wait(const Wait& w) {
  raise(done_, w.given);
  raise(wait_ended_, w.number);
}

Result<void> Timeline::close() {
  const Ends e = ends();
  if (e.stream == nullptr) return {};
  std::shared_ptr<hal::Event> last;
  if (busy()) {
    Result<std::shared_ptr<hal::Event>> recorded = event();
    if (recorded) {
      last = std::move(*recorded);
    } else {
      const bool gave = given_.load(std::memory_order_acquire) != done_.load(std::memory_order_acquire);
      // A stream that is being captured cannot be asked. What we never gave it needs no waiting for; else the
      // stream is kept, and whoever takes that memory waits.
      if (recorded.error().kind == ErrorKind::Capture && gave) return fail(std::move(recorded).error());
      // Then there is nothing to wait for.
      if (recorded.error().kind != ErrorKind::Capture) GK_CHECK(e.stream->synchronize());
    }
  }
  std::lock_guard lock(mutex_);
  conceal();
  if (last == nullptr) raise(done_, given_.load(std::memory_order_acquire));
  stream_ = nullptr;  // `e` keeps it until the lock is gone: its end may wait
  last_ = std::move(last);
  return {};
}

bool Timeline::closed() const {
  std::lock_guard lock(mutex_);
  return stream_ == nullptr;
}

bool Timeline::finished() {
  const Ends e = ends();
  if (e.stream != nullptr) return false;
  if (busy() && e.last != nullptr) {
    const Result<bool> done = e.last->done();
    if (!done || !*done) return false;
  }
  end_wait(begin_wait());  // nothing was given since it was closed
  return true;
}

void Timeline::reopen(std::unique_ptr<hal::Stream> stream) {
  std::lock_guard lock(mutex_);
  last_ = nullptr;
  stream_ = std::move(stream);
}

}  // namespace gk::memory
