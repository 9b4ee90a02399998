// Memory: pool, blocks, leases, release gate. Owns every byte that programs use on one device. Promises: a
// block with a lease is never handed on; a release goes through one gate and runs exactly once; a block is
// handed on only to work ordered after its last use; the limit is hard. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/options.h"
#include "runtime/hal/device.h"
#include "runtime/memory/retire.h"
#include "runtime/memory/timeline.h"

namespace gk::memory {

class Pool;

/// A piece of memory with one owner side (handles) and any number of leases. Made by Pool only.
class Block {
 public:
  void* address() const;
  /// Null unless the CPU may touch it.
  void* host_address() const;
  int64_t size_bytes() const;
  hal::Placement placement() const;
  int64_t leases() const;
  bool released() const;
  /// Somebody else's memory, which may be part of another block. All others are apart.
  bool wrapped() const;
  /// Work given to `t` from now on comes after whatever used this memory last, and is what used it last
  /// itself. No driver call where that was `t` already. After an error nothing has changed. The block must
  /// be held against release (by a lease, or by its owner) until the work is given: then its last user is
  /// known whenever it goes back.
  Result<void> acquire(Timeline& t);
  /// The CPU may touch it: waits for the last user. No driver call where that is idle.
  Result<void> acquire_host();

  struct State;
  explicit Block(std::unique_ptr<State> s);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};
using BlockPtr = std::shared_ptr<Block>;  // the last handle releases it through the gate

/// Keeps a block's memory from being handed on, whatever its owner does. Move-only.
class Lease {
 public:
  Lease() = default;
  /// Empty (block() is null) where the memory was given up and no other lease holds it: too late.
  explicit Lease(BlockPtr b);
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();
  const BlockPtr& block() const { return block_; }

 private:
  BlockPtr block_;
};

struct PoolStats {
  int64_t in_use_bytes = 0;  // handed out
  int64_t cached_bytes = 0;  // kept for reuse
  int64_t peak_bytes = 0;    // of in_use
  int64_t limit_bytes = 0;   // 0: none
  int64_t leases = 0;
  int64_t driver_allocations = 0;
  int64_t retired = 0;  // endings published and not carried out
};

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// limit_bytes 0: the device's own. `stress`: see Options::stress.
  static std::shared_ptr<Pool> create(std::shared_ptr<hal::Device> device, int64_t limit_bytes,
                                      bool stress = options().stress);
  /// At least size_bytes (0 gives a valid empty block), 256-byte aligned, contents undefined. Ordered for use
  /// on `t` (null: by anybody, waiting for what used it last). Errors: OutOfMemory E0601, with what was
  /// asked, in use, and the limit.
  Result<BlockPtr> allocate(int64_t size_bytes, hal::Placement placement = hal::Placement::Device,
                            Timeline* t = nullptr);
  /// Memory of the host program's own; `gone` is called once, on any thread, when the last handle and the
  /// last lease have ended and, unless the device could run no work with it, the last work that used it is
  /// done.
  BlockPtr wrap(void* address, int64_t size_bytes, hal::Placement placement, std::function<void()> gone);

  /// A timeline with a stream of its own, one given back before where there is one.
  Result<Timeline*> timeline();
  /// Nothing more is given to it by the one who had it. What was given may still run.
  void give_back(Timeline* t);
  /// The timeline of a stream of the host program's (a CUstream): the same one for the same handle, until it
  /// is closed. It counts as busy always.
  Result<Timeline*> timeline_of(void* native);
  RetireList& retired();
  /// The owner gives the memory up now, though handles remain; a second call does nothing.
  void release(const BlockPtr& b);
  /// Gives cached memory back to the driver, once its last users are done and no capture is active. What was
  /// not given back yet may be handed out again. Never waits.
  Result<void> trim();
  /// Waits for all the device's work. Not to be called while a capture is active.
  Result<void> synchronize();
  /// Waits for the device, ends what was kept for launches and gives all that is free back to the driver.
  /// Waits until no capture is active; Errors: Capture E0708 where the calling thread itself captures.
  Result<void> reclaim();
  PoolStats stats() const;
  void reset_peak();
  /// What to do when memory is short, after waiting for the device and before trying again: drop what is held
  /// only until launches are done. Called without locks held, on the allocating thread. Null: nothing.
  void set_reclaim(std::function<void()> reclaim);
  hal::Device& device();
  ~Pool();

 private:
  friend class Block;
  struct Impl;
  explicit Pool(std::unique_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace gk::memory
