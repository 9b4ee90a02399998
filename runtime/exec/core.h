// What the runtimes over one device share, and what each has of its own. Owns the pool, the loaded modules by
// key, the numbers of programs' steps, and the rule for ending code: after an event on every busy timeline.
// Promises to outlive every loaded program, graph and executable. Thread-safe, but for Runtime::Impl, which
// is one thread's.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/exec/exec.h"
#include "runtime/exec/loaded.h"

namespace gk::exec {

class Spares;
struct RunRoom;

/// Where the kernels of one runtime report the first fault. Kept alive by everything recorded for it.
class Faults {
 public:
  static Result<std::shared_ptr<Faults>> create(memory::Pool& pool);
  void* address() const { return record_->address(); }
  /// Work that may report is about to be given to the device: from another runtime, this record's own cannot
  /// tell when it is done.
  void expect(bool by_another) {
    pending_.store(true, std::memory_order_relaxed);
    if (by_another) shared_.store(true, std::memory_order_relaxed);
  }
  /// The program is unloaded; a fault that is pending may name it.
  void remember(int64_t first_step, std::shared_ptr<const program::Program> p);
  bool pending() const { return pending_.load(std::memory_order_relaxed); }
  /// Whether work done by now has left a fault.
  bool there() const;
  /// Raises the fault that work done by now has left. Errors: Runtime E0801, E0802, E0805; Usage E0512 where
  /// a function of the host program threw.
  Result<void> raise(const class Core& core);
  /// `f`, whose exceptions are kept in `faults` while these are there: it is called on a thread of the
  /// device's, which nothing thrown may leave.
  static std::function<void()> guard(const std::shared_ptr<Faults>& faults, std::function<void()> f);

 private:
  memory::BlockPtr record_;
  std::atomic<bool> pending_{false}, shared_{false};
  void threw(std::string what);
  std::atomic<bool> has_thrown_{false};
  std::mutex mutex_;
  std::string thrown_;                                               // under mutex_
  std::map<int64_t, std::shared_ptr<const program::Program>> late_;  // under mutex_
};

class Core : public std::enable_shared_from_this<Core> {
 public:
  static Result<std::shared_ptr<Core>> create(std::shared_ptr<hal::Device> device,
                                              int64_t memory_limit_bytes);
  ~Core();

  hal::Device& device() { return *device_; }
  memory::Pool& pool() { return *pool_; }
  memory::RetireList& retired() { return pool_->retired(); }
  Spares& spares() { return *spares_; }

  /// A timeline for one more runtime, and its end: a stream of our own goes to the next runtime as it is.
  Result<memory::Timeline*> join(std::optional<void*> native);
  void leave(memory::Timeline* t, bool foreign);
  /// The timeline that a stream belongs to, if a runtime has or had it; else null.
  memory::Timeline* known(void* native, bool& foreign);
  /// The timeline's stream is recorded, or no longer: nothing may be ordered on it meanwhile.
  void set_recorded(memory::Timeline* t, bool recorded);
  /// `t`, or null where nothing may be ordered on it now.
  memory::Timeline* orderly(memory::Timeline* t);

  /// The module of a code blob: the one already loaded, if any.
  Result<std::shared_ptr<hal::Module>> module(const program::Code& code);
  /// Unloads code once everything given to the device so far is done.
  void retire(std::vector<std::shared_ptr<hal::Module>> code);
  /// Retires what could not be retired before.
  void tidy();

  /// Gives a program its range of step numbers; returns the first.
  int64_t enlist(std::shared_ptr<const program::Program> p);
  void dismiss(int64_t first_step);
  /// The program that a step number belongs to, with the number of its first step.
  std::shared_ptr<const program::Program> find(int64_t step, int64_t& first_step) const;
  void enlist(const std::shared_ptr<Faults>& f);
  /// A runtime goes that has not waited for its work: whoever waits next hears of a fault in it.
  void adopt(const std::shared_ptr<Faults>& f, memory::Timeline& t);
  /// Forgets those whose work is done without a fault.
  void tidy_adopted();
  /// Raises one fault of work whose runtime is gone. Errors: Runtime E0801, E0802.
  Result<void> raise_adopted();

  /// The driver failed to destroy what uses `kept`: it is held as long as the device is.
  void keep(std::shared_ptr<void> kept);
  int64_t kept() const { return num_kept_.load(std::memory_order_relaxed); }
  /// Captures open in a mode that forbids other calls.
  std::atomic<int64_t> strict_captures{0};

 private:
  Core() = default;
  /// Events after all work given so far. False where a stream could not be asked now.
  bool busy_events(std::vector<std::shared_ptr<hal::Event>>& events);

  struct Native {
    memory::Timeline* timeline = nullptr;
    int64_t runtimes = 0;
  };
  std::shared_ptr<hal::Device> device_;
  std::shared_ptr<memory::Pool> pool_;
  std::shared_ptr<Spares> spares_;
  std::atomic<int64_t> num_kept_{0};
  mutable std::mutex mutex_;                  // all below
  std::vector<memory::Timeline*> timelines_;  // all that ever had a runtime: they live as long as the pool
  std::map<void*, Native> natives_;
  std::vector<memory::Timeline*> recorded_;
  std::unordered_map<std::string, std::weak_ptr<hal::Module>> modules_;
  std::vector<std::shared_ptr<hal::Module>> waiting_;
  std::map<int64_t, std::shared_ptr<const program::Program>> programs_;
  int64_t next_step_ = 0;
  std::vector<std::weak_ptr<Faults>> faults_;
  struct Adopted {
    std::shared_ptr<Faults> faults;
    std::shared_ptr<hal::Event> after;  // null: its work is done
  };
  std::vector<Adopted> adopted_;
  /// Removes those of which `is_over(faults, whether its work is done)`.
  template <class F>
  void sift_adopted(F is_over);
  std::vector<std::shared_ptr<void>> kept_;
};

class RecordingState;

struct Runtime::Impl {
  std::shared_ptr<Core> core;
  memory::Timeline* timeline = nullptr;
  bool foreign = false;  // the stream is the host program's
  std::shared_ptr<Faults> faults;
  std::vector<std::shared_ptr<Faults>>
      launched;            // of other runtimes' graphs, launched here since the last wait
  memory::BlockPtr arena;  // shared by small eager runs: the stream orders them
  std::unique_ptr<hal::Stream> capture_stream;  // for recordings; never given work outside of one
  std::shared_ptr<RecordingState> recording;
  std::shared_ptr<RunRoom> room;  // made at the first run

  hal::Stream& stream() { return timeline->stream(); }
  /// Errors: Capture E0711.
  Result<void> ready();
  Result<memory::BlockPtr> arena_for(int64_t size_bytes);
  /// To be called before work is given to the stream; `f` is where it reports, if it may.
  void submitting(const std::shared_ptr<Faults>& f, bool may_report) {
    timeline->mark_busy();
    if (!may_report) return;
    f->expect(f != faults);
    if (f != faults && std::find(launched.begin(), launched.end(), f) == launched.end())
      launched.push_back(f);
  }
};

}  // namespace gk::exec
