#include "runtime/exec/leases.h"

#include <algorithm>

namespace gk::exec {
namespace {

bool keeps(const Bindings* kept, const Bindings& b, size_t slot) {
  return kept != nullptr && slot < kept->slots.size() && kept->slots[slot].block == b.slots[slot].block;
}

}  // namespace

bool LeaseSet::share_bytes(const memory::Block* a, const memory::Block* b) {
  const auto* a0 = static_cast<const std::byte*>(a->address());
  const auto* b0 = static_cast<const std::byte*>(b->address());
  return a->size_bytes() > 0 && b->size_bytes() > 0 && a0 < b0 + b->size_bytes() && b0 < a0 + a->size_bytes();
}

LeaseSet::Held& LeaseSet::insert(const memory::Block* b) {
  const auto [it, inserted] = held_.try_emplace(b);
  if (!inserted) return it->second;
  if (b->wrapped()) {
    overlaps_ = overlaps_ || std::any_of(held_.begin(), held_.end(), [&](const auto& other) {
                  return other.first != b && share_bytes(other.first, b);
                });
    wrapped_.push_back(b);
  } else {
    overlaps_ = overlaps_ || std::any_of(wrapped_.begin(), wrapped_.end(),
                                         [&](const memory::Block* other) { return share_bytes(other, b); });
  }
  return it->second;
}

void LeaseSet::erase(const memory::Block* b) {
  if (!wrapped_.empty()) std::erase(wrapped_, b);
  held_.erase(b);
}

Result<void> LeaseSet::add(const memory::BlockPtr& b, int32_t node, int32_t slot, Span span) {
  Held& held = insert(b.get());
  if (held.lease.block() == nullptr) held.lease = memory::Lease(b);
  if (held.lease.block() == nullptr) {
    erase(b.get());
    return fail(ErrorKind::Lease, "E0602", "memory that the graph uses was given back already", span);
  }
  held.uses.add({node, slot, held.epoch});
  return {};
}

Result<void> LeaseSet::add(int32_t node, const Bindings& b, Span span, const Bindings* kept) {
  for (size_t i = 0; i < b.slots.size(); ++i) {
    if (keeps(kept, b, i)) continue;
    Result<void> added = add(b.slots[i].block, node, static_cast<int32_t>(i), span);
    if (added) continue;
    while (i-- > 0) {
      if (!keeps(kept, b, i)) remove(b.slots[i].block.get(), node, static_cast<int32_t>(i));
    }
    return fail(std::move(added).error());
  }
  return {};
}

void LeaseSet::remove(const memory::Block* b, int32_t node, int32_t slot) {
  const auto it = held_.find(b);
  if (it == held_.end()) return;
  // The newest of equal ones, which an update that is taken back has added.
  it->second.uses.remove(node, slot);
  if (it->second.uses.empty()) erase(b);
}

void LeaseSet::remove(int32_t node, const Bindings& b, const Bindings* kept) {
  for (size_t i = 0; i < b.slots.size(); ++i) {
    if (!keeps(kept, b, i)) remove(b.slots[i].block.get(), node, static_cast<int32_t>(i));
  }
}

void LeaseSet::renew(const memory::Block* b) {
  if (const auto it = held_.find(b); it != held_.end()) ++it->second.epoch;
}

const LeaseSet::Held* LeaseSet::find(const memory::Block* b) const {
  const auto it = held_.find(b);
  return it == held_.end() ? nullptr : &it->second;
}

Result<void> LeaseSet::acquire(memory::Timeline& t) const {
  for (const auto& [b, held] : held_) GK_CHECK(held.lease.block()->acquire(t));
  return {};
}

Result<LeaseSet> LeaseSet::clone(const Instead& instead) const {
  LeaseSet copy;
  copy.overlaps_ = overlaps_;
  copy.wrapped_ = wrapped_;  // which are never among `instead`
  copy.held_.reserve(held_.size());
  for (const auto& [b, held] : held_) {
    const auto other = instead.find(b);
    memory::Lease lease(other == instead.end() ? held.lease.block() : other->second);
    if (lease.block() == nullptr) {
      return fail(ErrorKind::Lease, "E0602", "memory that the graph uses was given back already");
    }
    const memory::Block* its = lease.block().get();
    copy.held_.emplace(its, Held{std::move(lease), held.epoch, held.uses});
  }
  return copy;
}

}  // namespace gk::exec
