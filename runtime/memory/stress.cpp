#include "runtime/memory/stress.h"

#include <algorithm>
#include <cstring>

namespace gk::memory {

constexpr int64_t kPatternBytes = int64_t{1} << 20;

Stress::~Stress() {
  if (pattern_.address != nullptr) (void)device_.release(pattern_);
}

bool Stress::prepare() {
  std::lock_guard lock(mutex_);
  if (own_ != nullptr) return true;
  if (pattern_.address == nullptr) {
    const Result<hal::Allocation> memory = device_.allocate(kPatternBytes, hal::Placement::Pinned);
    if (!memory) return false;
    pattern_ = *memory;
    std::memset(pattern_.host_address, kPoison, static_cast<size_t>(kPatternBytes));
  }
  const Result<Timeline*> own = make_own_();
  if (own) own_ = *own;
  return own.has_value();
}

bool Stress::fill(const Piece& p, hal::Stream& s) {
  for (int64_t at = 0; at < p.size_bytes; at += kPatternBytes) {
    const hal::CopyOp op{static_cast<std::byte*>(p.address) + at, pattern_.address,
                         std::min(kPatternBytes, p.size_bytes - at)};
    if (!s.copy(op, {})) return false;
  }
  return true;
}

Timeline* Stress::given_back(const Piece& p, Timeline* last) {
  if (p.host_address != nullptr && (last == nullptr || !last->busy())) {
    std::memset(p.host_address, kPoison, static_cast<size_t>(p.size_bytes));
    return last;
  }
  if (!prepare()) return last;
  Timeline& t = last != nullptr ? *last : *own_;
  if (t.closed()) return last;
  if (t.exposed()) {
    const Result<bool> capturing = t.stream().is_capturing();
    if (!capturing || *capturing) return last;
  }
  (void)fill(p, t.stream());
  t.mark_given();
  return &t;
}

void Stress::handed_out(const Piece& p, Timeline* t, bool idle) {
  if (p.host_address != nullptr && idle) {
    std::memset(p.host_address, kPoison, static_cast<size_t>(p.size_bytes));
    return;
  }
  if (!prepare()) return;
  if (t != nullptr) {
    t->mark_busy();
    (void)fill(p, t->stream());
    return;
  }
  // Another thread's fill on this stream comes before or after: either is waited for.
  if (fill(p, own_->stream())) own_->mark_given();
  (void)own_->stream().synchronize();
}

}  // namespace gk::memory
