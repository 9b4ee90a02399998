// Driver memory cut into chunks: best fit, split and merged again. Owns the segments (pieces that the driver
// gave). Promises that a chunk is handed out once, that free neighbours merge and then know the users of
// both, and constant-time sizes. Not thread-safe and never waits: Pool locks around it and decides when to
// ask the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "runtime/hal/device.h"
#include "runtime/memory/users.h"

namespace gk::memory {

struct Segment;

/// A piece of a segment: handed out or free.
struct Chunk {
  Segment* segment = nullptr;
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  bool free = true;
  Users users;              // of the memory until it came back; whoever is handed it comes after them
  Chunk* before = nullptr;  // neighbours in the segment
  Chunk* after = nullptr;
};

struct Segment {
  hal::Allocation memory;
  bool small = false;      // cut for small blocks only, which keeps big segments from being pinned by them
  uint64_t retired = 0;    // not 0: to be given back to the driver, unless it is needed before
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
  /// A free chunk that fits, marked as handed out; its users are still to be ordered before the new one. Of
  /// the smallest few, one that `t` needs no order for (where `choosy`), else the smallest. Pinned memory,
  /// which the CPU may write at once: only one whose users are done. A retired segment is taken back when no
  /// other has one. Null: none. `size_bytes` is a multiple of kAlignment.
  Chunk* take(int64_t size_bytes, const Timeline* t, bool choosy = true);
  /// Takes a piece of driver memory over and hands out its beginning.
  Chunk* add(const hal::Allocation& memory, bool small, int64_t size_bytes);
  /// `last` (null: nobody) used it since it was handed out.
  void give_back(Chunk* chunk, Timeline* last);
  // Note [Neighbours of several timelines]: merged, they could be used again only by work that comes after
  // the users of both: two threads with runtimes of their own would order their streams after one another at
  // every allocation. They stay apart until memory is wanted that would have to come from the driver.
  /// Merges free neighbours that give_back() left apart (`all`: pinned ones in use, too); false: there are
  /// none.
  bool merge(bool all);
  /// The segments that are wholly free and not retired yet, after a merge of all.
  std::vector<Segment*> idle();
  /// Marks one as on its way to the driver, under a number that is not 0.
  void retire(Segment& s, uint64_t number);
  /// Takes the segment retired under that number out, unless it was taken back into use. Its bytes count as
  /// reserved until freed().
  std::optional<hal::Allocation> remove(Segment* s, uint64_t number);
  void freed(int64_t size_bytes) { reserved_bytes_ -= size_bytes; }
  /// Removes every segment, free or not.
  std::vector<hal::Allocation> remove_all();
  int64_t reserved_bytes() const { return reserved_bytes_; }
  int64_t in_use_bytes() const { return in_use_bytes_; }

 private:
  struct Smaller {
    bool operator()(const Chunk* a, const Chunk* b) const;
  };
  using Free = std::set<Chunk*, Smaller>;
  Free& free_of(const Segment& s) {
    if (s.retired != 0) return s.small ? retired_small_ : retired_big_;
    return s.small ? free_small_ : free_big_;
  }
  Chunk* find(const Free& list, int64_t size_bytes, const Timeline* t, bool choosy) const;
  Chunk* hand_out(Chunk* chunk, int64_t size_bytes);  // takes it from its list, cuts off the rest
  void split(Chunk* chunk, int64_t size_bytes);
  bool may_merge(const Chunk& a, const Chunk& b) const;
  void absorb_next(Chunk* chunk);

  hal::Placement placement_;
  std::unordered_map<Segment*, std::unique_ptr<Segment>> segments_;
  Free free_small_, free_big_;
  Free retired_small_, retired_big_;
  bool apart_ = false;  // some free neighbours are not merged
  int64_t reserved_bytes_ = 0;
  int64_t in_use_bytes_ = 0;
};

}  // namespace gk::memory
