// A stream with the order of what is given to it. Owns the stream. Promises that work ordered after a
// timeline sees everything given to it before; that nothing is asked of the driver when order is already
// there. Lives as long as the pool. Thread-safe, but that work is given to a stream by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/hal/device.h"

namespace gk::memory {

class Timeline {
 public:
  explicit Timeline(std::unique_ptr<hal::Stream> stream) : stream_(std::move(stream)) {}
  hal::Stream& stream() { return *stream_; }
  /// To be called before work is given to the stream, by the thread that gives it.
  void mark_busy() {
    giver_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    given_.fetch_add(1, std::memory_order_release);
  }
  /// For a thread that gives work to a stream which another may be giving work to: to be called afterwards.
  void mark_given() { given_.fetch_add(1, std::memory_order_release); }
  /// Whether work may be in the stream. False again once a wait by the thread that gave the last of it is
  /// over.
  bool busy() const {
    return exposed() || given_.load(std::memory_order_acquire) != done_.load(std::memory_order_acquire);
  }
  /// The host program knows the stream and may give work to it unseen: it counts as busy from now on.
  void expose() { exposed_.store(true, std::memory_order_release); }
  /// The host program gives nothing more to it: busy until a wait by this thread is over.
  void conceal();
  bool exposed() const { return exposed_.load(std::memory_order_acquire); }

  /// Later work on `later` comes after what was given to this one so far: an event, and a wait for it.
  /// Nothing where this one is idle. A closed timeline waits for its last event. Errors: Capture E0711 where
  /// the host program captures the stream, Usage E0716 where `later` is closed; Device.
  Result<void> order_before(Timeline& later);
  /// An event after what was given so far; null where that is done already.
  Result<std::shared_ptr<hal::Event>> event();
  /// Blocks the calling thread until what was given so far is done. Errors: Capture E0711 as above; Device.
  Result<void> wait();

  /// How many blocks other timelines have taken over from this one. While the number stands, whatever was
  /// acquired for this timeline is still its own: a launch has nothing to order.
  // Note [Launches and departures]: a launch reads the number, acquires its blocks, gives its work, and reads
  // it again; where it moved, it acquires once more (and launches nothing again). A block is taken over in
  // the order "departure, event on this stream", so that either the event comes after the launch, or the
  // second reading sees the departure.
  uint64_t departures() const { return departures_.load(std::memory_order_acquire); }
  void depart() { departures_.fetch_add(1, std::memory_order_acq_rel); }

  // Waits are counted, so that whoever lets go of something can tell later whether one began after that.
  /// The number of the next wait; over() of it becomes true when that one, or a later one, has ended.
  uint64_t next_wait() const { return wait_begun_.load(std::memory_order_acquire); }
  bool over(uint64_t number) const { return wait_ended_.load(std::memory_order_acquire) >= number; }
  /// Brackets a wait that somebody else carries out (for the whole device). Not ended: it failed.
  struct Wait {
    uint64_t number = 0;
    uint64_t given = 0;
  };
  Wait begin_wait();
  void end_wait(const Wait& w);

  /// The stream is about to go (a host program's own): what others must wait for is kept as an event. Errors:
  /// Capture E0711 as above; it stays open.
  Result<void> close();
  bool closed() const;
  /// Closed, and nothing is left to wait for. Asks the driver.
  bool finished();
  /// Takes another stream in the place of the closed one; only when finished().
  void reopen(std::unique_ptr<hal::Stream> stream);

 private:
  struct Ends {
    std::shared_ptr<hal::Stream> stream;
    std::shared_ptr<hal::Event> last;
  };
  Ends ends() const;

  mutable std::mutex mutex_;             // the next two against close()
  std::shared_ptr<hal::Stream> stream_;  // null once closed
  std::shared_ptr<hal::Event> last_;     // once closed; null where nothing was left to wait for
  std::atomic<uint64_t> given_{0};       // submissions
  std::atomic<uint64_t> done_{0};        // of those
  std::atomic<std::thread::id> giver_{};
  std::atomic<bool> exposed_{false};
  std::atomic<uint64_t> departures_{0};
  std::atomic<uint64_t> wait_begun_{1}, wait_ended_{0};
};

}  // namespace gk::memory
