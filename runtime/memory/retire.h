// Endings carried out later: what the driver must not be asked at any moment, such as freeing memory or
// unloading code. Owns the endings published to it. Promises that each runs once, never while a capture is
// active and never inside another ending; that one that fails is noted and not tried again. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/hal/device.h"

namespace gk::memory {

class RetireList {
 public:
  RetireList();
  ~RetireList();  // waits for what is left and runs it, captures or not
  RetireList(const RetireList&) = delete;
  RetireList& operator=(const RetireList&) = delete;
  /// Runs `ending` once all of `after` are done. `what` names it in a failure's note.
  void publish(std::string what, std::function<Result<void>()> ending,
               std::vector<std::shared_ptr<hal::Event>> after = {});
  /// Runs endings that are ready, at most `limit` of them (-1: all); returns how many ran. Does nothing while
  /// a capture is active or from inside an ending. Never waits.
  int64_t drain(int64_t limit = -1);
  /// Waits until endings that other threads run at this moment are over. Nothing from inside an ending.
  void settle();
  int64_t pending() const;
  std::vector<std::string> failures() const;  // the first kFailuresKept
  static constexpr size_t kFailuresKept = 1000;

  /// A capture begins, or a thread joins one: waits for an ending in progress, but fails fast (Capture E0708)
  /// while a blocking release is. The last end_capture() drains.
  Result<void> begin_capture();
  void end_capture();
  int64_t captures() const;
  /// Brackets a release that waits for the device (reclaim, out of memory). Errors: Capture E0708 while a
  /// capture is active, whoever began it (who waits for the other here would wait for ever where the capture
  /// waits for this thread), and inside an ending.
  class Blocking;
  Result<std::unique_ptr<Blocking>> begin_blocking();
  /// The same, null while a capture is active.
  std::unique_ptr<Blocking> try_blocking();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// In progress until it goes.
class RetireList::Blocking {
 public:
  explicit Blocking(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Blocking();
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace gk::memory
