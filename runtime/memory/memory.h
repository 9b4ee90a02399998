// Memory: pool, blocks, leases, release gate. Owns every byte that programs use on one device. Promises: a
// block with a lease is never handed on; a release goes through one gate and runs exactly once; a block is
// handed on only to work ordered after its last use; the limit is hard. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/hal/device.h"

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
};

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  /// limit_bytes 0: the device's own.
  static std::shared_ptr<Pool> create(std::shared_ptr<hal::Device> device, int64_t limit_bytes);
  /// At least size_bytes (0 gives a valid empty block), 256-byte aligned, contents undefined. Ordered for use
  /// on the session's stream. Errors: OutOfMemory E0601, with what was asked, in use, and the limit.
  Result<BlockPtr> allocate(int64_t size_bytes, hal::Placement placement = hal::Placement::Device);
  /// The owner gives the memory up now, though handles remain; a second call does nothing.
  void release(const BlockPtr& b);
  /// Gives cached memory back to the driver.
  Result<void> trim();
  PoolStats stats() const;
  void reset_peak();
  /// What to do when memory is short, after waiting for the device and before trying again: drop what is held
  /// only until launches are done. Called without locks held, on the allocating thread. Null: nothing.
  void set_reclaim(std::function<void()> reclaim);
  /// Brackets a wait for all the device's work. Pinned memory, which the CPU may write at once, is handed on
  /// only after a wait that began after its release.
  uint64_t begin_wait();
  void end_wait(uint64_t begun);
  hal::Device& device();
  ~Pool();

 private:
  struct Impl;
  explicit Pool(std::unique_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
  friend class Block;
};

}  // namespace gk::memory
