// The pool's stress mode: fills memory with kPoison bytes. Owns the pattern, in page-locked memory. Promises
// that a fill comes after the work given to the timeline named and before what is given later; that one which
// fails is left out. Thread-safe.
#pragma once

#include <functional>
#include <mutex>

#include "runtime/memory/timeline.h"

namespace gk::memory {

class Stress {
 public:
  /// `own`: makes a timeline for memory that no other has used.
  Stress(hal::Device& device, std::function<Result<Timeline*>()> own)
      : device_(device), make_own_(std::move(own)) {}
  ~Stress();  // the device must be idle
  static constexpr int kPoison = 0xCB;
  struct Piece {
    void* address = nullptr;
    void* host_address = nullptr;  // null unless the CPU may touch it
    int64_t size_bytes = 0;
  };
  /// The memory is given back; `last` used it last (null: nobody). Returns who has used it last now.
  Timeline* given_back(const Piece& p, Timeline* last);
  /// The memory is handed out to be used on `t` by this thread (null: to anybody; it must be idle). `idle`:
  /// nothing in any stream uses it.
  void handed_out(const Piece& p, Timeline* t, bool idle);

 private:
  bool prepare();
  bool fill(const Piece& p, hal::Stream& s);

  hal::Device& device_;
  std::function<Result<Timeline*>()> make_own_;
  std::mutex mutex_;  // making what follows
  hal::Allocation pattern_;
  Timeline* own_ = nullptr;
};

}  // namespace gk::memory
