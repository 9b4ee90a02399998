#include "runtime/memory/segments.h"

#include <algorithm>
#include <functional>

namespace gk::memory {

Segment::~Segment() {
  while (first != nullptr) {
    Chunk* next = first->after;
    delete first;
    first = next;
  }
}

bool Segments::Smaller::operator()(const Chunk* a, const Chunk* b) const {
  if (a->size_bytes != b->size_bytes) return a->size_bytes < b->size_bytes;
  if (a->segment != b->segment) return std::less<>{}(a->segment->memory.address, b->segment->memory.address);
  return a->offset_bytes < b->offset_bytes;
}

void Segments::split(Chunk* chunk, int64_t size_bytes) {
  Segment& s = *chunk->segment;
  Chunk* rest = new Chunk(*chunk);
  rest->offset_bytes += size_bytes;
  rest->size_bytes -= size_bytes;
  rest->before = chunk;
  if (chunk->after != nullptr) chunk->after->before = rest;
  chunk->after = rest;
  chunk->size_bytes = size_bytes;
  free_of(s).insert(rest);
}

Chunk* Segments::take(int64_t size_bytes, uint64_t before) {
  const bool small = size_bytes <= kSmallLimit;
  Free& list = small ? free_small_ : free_big_;
  Chunk wanted;
  Segment lowest;  // at address null: before every chunk of the same size
  wanted.segment = &lowest;
  wanted.size_bytes = size_bytes;
  auto found = list.lower_bound(&wanted);
  while (found != list.end() && before != 0 && (*found)->released_at >= before) ++found;
  if (found == list.end()) return nullptr;
  Chunk* chunk = *found;
  list.erase(found);
  const int64_t rest = chunk->size_bytes - size_bytes;
  if (rest >= (small ? kAlignment : kSplitRest)) split(chunk, size_bytes);
  chunk->free = false;
  in_use_bytes_ += chunk->size_bytes;
  return chunk;
}

void Segments::add(const hal::Allocation& memory, bool small) {
  segments_.push_back(std::make_unique<Segment>());
  Segment& s = *segments_.back();
  s.memory = memory;
  s.small = small;
  s.first = new Chunk;
  Chunk* chunk = s.first;
  chunk->segment = &s;
  chunk->size_bytes = memory.size_bytes / kAlignment * kAlignment;
  reserved_bytes_ += memory.size_bytes;
  free_of(s).insert(chunk);
}

// Merges `chunk` with its free neighbour behind it, which must be in no list.
void Segments::absorb_next(Chunk* chunk) {
  Chunk* next = chunk->after;
  chunk->size_bytes += next->size_bytes;
  chunk->released_at = std::max(chunk->released_at, next->released_at);
  chunk->after = next->after;
  if (next->after != nullptr) next->after->before = chunk;
  delete next;
}

void Segments::give_back(Chunk* chunk, uint64_t now) {
  in_use_bytes_ -= chunk->size_bytes;
  chunk->free = true;
  chunk->released_at = now;
  Free& list = free_of(*chunk->segment);
  if (chunk->after != nullptr && chunk->after->free) {
    list.erase(chunk->after);
    absorb_next(chunk);
  }
  if (chunk->before != nullptr && chunk->before->free) {
    chunk = chunk->before;
    list.erase(chunk);
    absorb_next(chunk);
  }
  list.insert(chunk);
}

std::vector<hal::Allocation> Segments::remove_free() {
  std::vector<hal::Allocation> removed;
  for (auto it = segments_.begin(); it != segments_.end();) {
    Segment& s = **it;
    Chunk* whole = s.whole();
    if (whole == nullptr) {
      ++it;
      continue;
    }
    free_of(s).erase(whole);
    reserved_bytes_ -= s.memory.size_bytes;
    removed.push_back(s.memory);
    it = segments_.erase(it);
  }
  return removed;
}

std::vector<hal::Allocation> Segments::remove_all() {
  std::vector<hal::Allocation> removed;
  for (const auto& s : segments_) removed.push_back(s->memory);
  free_small_.clear();
  free_big_.clear();
  segments_.clear();
  reserved_bytes_ = in_use_bytes_ = 0;
  return removed;
}

}  // namespace gk::memory
