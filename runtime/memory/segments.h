// Driver memory cut into chunks: best fit, split and merged again. Owns the segments (pieces that the driver
// gave). Promises that a chunk is handed out once, that neighbours merge on return, and constant-time sizes.
// Not thread-safe and never waits: Pool locks around it and decides when to ask the driver.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <vector>

#include "runtime/hal/device.h"

namespace gk::memory {

struct Segment;

/// A piece of a segment: handed out or free.
struct Chunk {
  Segment* segment = nullptr;
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  bool free = true;
  uint64_t released_at = 0;  // the pool's wait counter when it came back
  Chunk* before = nullptr;   // neighbours in the segment
  Chunk* after = nullptr;
};

struct Segment {
  hal::Allocation memory;
  bool small = false;      // cut for small blocks only, which keeps big segments from being pinned by them
  Chunk* first = nullptr;  // of a chain that covers the segment; owned
  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();
  /// The chunk that is all of the segment, if there is one and it is free.
  Chunk* whole() const { return first->free && first->after == nullptr ? first : nullptr; }
};

inline constexpr int64_t kAlignment = 256;
inline constexpr int64_t kSmallLimit = int64_t{1} << 20;    // blocks up to this come from small segments
inline constexpr int64_t kSmallSegment = int64_t{2} << 20;  // size of those
inline constexpr int64_t kSplitRest = int64_t{1} << 20;     // big chunks are split when this much is left

class Segments {
 public:
  explicit Segments(hal::Placement placement) : placement_(placement) {}
  /// The smallest free chunk that fits, marked as handed out; null: none. Only chunks that came back before
  /// wait `before` when that is not 0. `size_bytes` is a multiple of kAlignment.
  Chunk* take(int64_t size_bytes, uint64_t before);
  /// Takes a piece of driver memory over; then take() finds it.
  void add(const hal::Allocation& memory, bool small);
  void give_back(Chunk* chunk, uint64_t now);
  /// Removes the segments that are wholly free; the caller returns them to the driver.
  std::vector<hal::Allocation> remove_free();
  /// Removes every segment, free or not.
  std::vector<hal::Allocation> remove_all();
  int64_t reserved_bytes() const { return reserved_bytes_; }
  int64_t in_use_bytes() const { return in_use_bytes_; }

 private:
  struct Smaller {
    bool operator()(const Chunk* a, const Chunk* b) const;
  };
  using Free = std::set<Chunk*, Smaller>;
  Free& free_of(const Segment& s) { return s.small ? free_small_ : free_big_; }
  void split(Chunk* chunk, int64_t size_bytes);
  void absorb_next(Chunk* chunk);

  hal::Placement placement_;
  std::list<std::unique_ptr<Segment>> segments_;
  Free free_small_, free_big_;
  int64_t reserved_bytes_ = 0;
  int64_t in_use_bytes_ = 0;
};

}  // namespace gk::memory
