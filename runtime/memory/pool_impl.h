// The insides of the pool, its blocks and its stress mode. Owns nothing beyond what Pool and Block own. Lives
// as long as the pool or any block. Not for other folders.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/memory/memory.h"
#include "runtime/memory/segments.h"
#include "runtime/memory/stress.h"

namespace gk::memory {

/// How many endings an allocation carries out at most.
inline constexpr int64_t kDrainedAtOnce = 256;

struct Pool::Impl {
  Impl(std::shared_ptr<hal::Device> d, int64_t limit, bool stressed)
      : device(std::move(d)), limit_bytes(limit) {
    if (stressed) stress = std::make_unique<Stress>(*device, [this] { return timeline(); });
  }
  ~Impl();

  Result<Timeline*> timeline();
  Segments& of(hal::Placement p) { return p == hal::Placement::Pinned ? pinned : local; }
  int64_t reserved() const { return local.reserved_bytes() + pinned.reserved_bytes() + growing_bytes; }
  int64_t in_use() const { return local.in_use_bytes() + pinned.in_use_bytes(); }
  /// Bytes that may still be asked of the driver under the limit.
  int64_t room() const {
    return limit_bytes > 0 ? std::max<int64_t>(limit_bytes - reserved(), 0) : INT64_MAX;
  }
  /// A chunk whose users are still to be ordered; null: there is no memory.
  Result<Chunk*> obtain(int64_t size_bytes, hal::Placement p, Timeline* t);
  Result<Chunk*> obtain_or_recover(int64_t size_bytes, hal::Placement p, Timeline* t);
  Chunk* take(int64_t size_bytes, hal::Placement p, Timeline* t);  // under mutex
  Result<Chunk*> grow(int64_t size_bytes, hal::Placement p);
  /// Makes work on `t` come after the chunk's users; null: waits for them.
  Result<void> order(Chunk& chunk, Timeline* t);
  /// `last` (null: nobody) used it since it was handed out.
  void give_back(Chunk* chunk, hal::Placement p, Timeline* last);
  void put_back(Chunk* chunk, hal::Placement p);  // not used, with the users it had
  void retire(Segments& from, Segment& s);        // under mutex
  void trim();
  Result<void> wait_device();
  /// What may be ended now is. `waited`: all the device's work is done.
  void end_kept(bool waited);
  Result<void> end_pending();  // within a blocking release

  std::shared_ptr<hal::Device> device;
  const int64_t limit_bytes;
  std::atomic<int64_t> leases{0};

  std::mutex timelines_mutex;  // the next three
  std::vector<std::unique_ptr<Timeline>> timelines;
  std::vector<Timeline*> spare;
  std::map<void*, Timeline*> foreign;

  std::mutex mutex;  // all below; never held across a call of the driver
  Segments local{hal::Placement::Device}, pinned{hal::Placement::Pinned};
  int64_t growing_bytes = 0;  // being asked of the driver
  int64_t peak_bytes = 0;
  int64_t driver_allocations = 0;
  uint64_t retirements = 0;
  std::function<void()> reclaim;

  std::unique_ptr<Stress> stress;  // null: no stress
  std::unique_ptr<RetireList> retired = std::make_unique<RetireList>();
};

// A block's life in one number: twice its leases, plus one once its owner has given it up. The step to
// exactly "given up, no leases" is taken by one thread, which returns the memory.
struct Block::State {
  std::shared_ptr<Pool::Impl> pool;
  Chunk* chunk = nullptr;      // null: an empty block, or memory of the host program's
  std::function<void()> gone;  // of memory of the host program's
  hal::Placement placement{};
  void* address = nullptr;
  void* host_address = nullptr;
  int64_t size_bytes = 0;
  std::atomic<int64_t> life{0};
  std::atomic<Timeline*> last{nullptr};  // who used it last; null: nobody
  std::mutex handover;                   // from one last user to another

  void give_back();
  void release() {
    if (life.fetch_or(1, std::memory_order_acq_rel) == 0) give_back();
  }
  bool lease();
  void end_lease() {
    pool->leases.fetch_sub(1, std::memory_order_relaxed);
    if (life.fetch_sub(2, std::memory_order_acq_rel) == 3) give_back();
  }
};

/// Done when the timeline is done with what it was given until now. Asks the driver only when asked itself.
class AfterUser : public hal::Event {
 public:
  explicit AfterUser(const User& u) : user_(u) {}
  Result<bool> done() override;
  Result<void> wait() override;

 private:
  User user_;
  std::shared_ptr<hal::Event> event_;
};

}  // namespace gk::memory
