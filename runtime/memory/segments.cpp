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

// How many free chunks are looked at, from the smallest that fits on.
constexpr int kSearch = 8;
constexpr int kSearchPinned = 32;

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

Chunk* Segments::find(const Free& list, int64_t size_bytes, const Timeline* t, bool choosy) const {
  Chunk wanted;
  Segment lowest;  // at address null: before every chunk of the same size
  wanted.segment = &lowest;
  wanted.size_bytes = size_bytes;
  const auto smallest = list.lower_bound(&wanted);
  if (placement_ == hal::Placement::Pinned) {
    int left = kSearchPinned;
    for (auto it = smallest; it != list.end() && left > 0; ++it, --left) {
      if ((*it)->users.idle()) return *it;
    }
    return nullptr;
  }
  if (smallest == list.end()) return nullptr;
  int left = choosy ? kSearch : 0;
  for (auto it = smallest; it != list.end() && left > 0; ++it, --left) {
    // Order costs two driver calls; cutting up what a big block could use costs more.
    if (size_bytes > kSmallLimit && (*it)->size_bytes / 2 > size_bytes) break;
    if ((*it)->users.ordered_for(t)) return *it;
  }
  return *smallest;
}

Chunk* Segments::take(int64_t size_bytes, const Timeline* t, bool choosy) {
  const bool small = size_bytes <= kSmallLimit;
  Chunk* chunk = find(small ? free_small_ : free_big_, size_bytes, t, choosy);
  if (chunk == nullptr) chunk = find(small ? retired_small_ : retired_big_, size_bytes, t, choosy);
  return chunk == nullptr ? nullptr : hand_out(chunk, size_bytes);
}

Chunk* Segments::hand_out(Chunk* chunk, int64_t size_bytes) {
  Segment& s = *chunk->segment;
  free_of(s).erase(chunk);
  s.retired = 0;
  const int64_t rest = chunk->size_bytes - size_bytes;
  if (rest >= (s.small ? kAlignment : kSplitRest)) split(chunk, size_bytes);
  chunk->free = false;
  in_use_bytes_ += chunk->size_bytes;
  return chunk;
}

Chunk* Segments::add(const hal::Allocation& memory, bool small, int64_t size_bytes) {
  auto owned = std::make_unique<Segment>();
  Segment& s = *owned;
  segments_.emplace(&s, std::move(owned));
  s.memory = memory;
  s.small = small;
  s.first = new Chunk;
  Chunk* chunk = s.first;
  chunk->segment = &s;
  chunk->size_bytes = memory.size_bytes / kAlignment * kAlignment;
  reserved_bytes_ += memory.size_bytes;
  free_of(s).insert(chunk);
  return hand_out(chunk, size_bytes);
}

// Merges `chunk` with its free neighbour behind it, which must be in no list.
void Segments::absorb_next(Chunk* chunk) {
  Chunk* next = chunk->after;
  chunk->size_bytes += next->size_bytes;
  chunk->users.add(next->users);
  chunk->after = next->after;
  if (next->after != nullptr) next->after->before = chunk;
  delete next;
}

void Segments::give_back(Chunk* chunk, Timeline* last) {
  in_use_bytes_ -= chunk->size_bytes;
  chunk->free = true;
  if (last != nullptr) chunk->users.add(*last);
  Free& list = free_of(*chunk->segment);
  if (chunk->after != nullptr && chunk->after->free) {
    if (may_merge(*chunk, *chunk->after)) {
      list.erase(chunk->after);
      absorb_next(chunk);
    } else {
      apart_ = true;
    }
  }
  if (chunk->before != nullptr && chunk->before->free) {
    if (may_merge(*chunk->before, *chunk)) {
      chunk = chunk->before;
      list.erase(chunk);
      absorb_next(chunk);
    } else {
      apart_ = true;
    }
  }
  list.insert(chunk);
}

// Pinned memory is of no use while anybody is not done with it: there, a part that is in use would spoil the
// rest.
bool Segments::may_merge(const Chunk& a, const Chunk& b) const {
  bool several = false;
  const Timeline* of_a = a.users.only(several);
  const Timeline* of_b = b.users.only(several);
  if (several) return false;
  if (of_a == of_b) return true;
  return placement_ == hal::Placement::Device && (of_a == nullptr || of_b == nullptr);
}

bool Segments::merge(bool all) {
  if (!apart_) return false;
  apart_ = false;
  bool merged = false;
  all = all || placement_ == hal::Placement::Device;
  for (const auto& [segment, owned] : segments_) {
    for (Chunk* c = segment->first; c != nullptr;) {
      Chunk* next = c->after;
      if (next == nullptr || !c->free || !next->free) {
        c = next;
      } else if (!all && !may_merge(*c, *next)) {
        apart_ = true;
        c = next;
      } else {
        Free& list = free_of(*segment);
        list.erase(c);
        list.erase(next);
        absorb_next(c);
        list.insert(c);
        merged = true;
      }
    }
  }
  return merged;
}

std::vector<Segment*> Segments::idle() {
  merge(true);
  std::vector<Segment*> found;
  for (const auto& [segment, owned] : segments_) {
    if (segment->retired == 0 && segment->whole() != nullptr) found.push_back(segment);
  }
  return found;
}

void Segments::retire(Segment& s, uint64_t number) {
  free_of(s).erase(s.first);
  s.retired = number;
  free_of(s).insert(s.first);
}

std::optional<hal::Allocation> Segments::remove(Segment* s, uint64_t number) {
  const auto it = segments_.find(s);
  if (it == segments_.end() || s->retired != number) return std::nullopt;
  free_of(*s).erase(s->first);
  const hal::Allocation memory = s->memory;
  segments_.erase(it);
  return memory;
}

std::vector<hal::Allocation> Segments::remove_all() {
  std::vector<hal::Allocation> removed;
  for (const auto& [segment, owned] : segments_) removed.push_back(segment->memory);
  for (Free* list : {&free_small_, &free_big_, &retired_small_, &retired_big_}) list->clear();
  segments_.clear();
  reserved_bytes_ = in_use_bytes_ = 0;
  return removed;
}

}  // namespace gk::memory
