#include "compiler/engine/api/owner.h"

#include <fmt/format.h>

#include "compiler/engine/inherited.h"

namespace gk::engine {

Result<Owner::Entry> Owner::enter(std::string_view what) {
  if (home_.left()) return fail(used_after_fork());
  const auto me = std::this_thread::get_id();
  auto seen = holder_.load(std::memory_order_acquire);
  if (seen != me) {
    std::thread::id nobody{};
    if (!holder_.compare_exchange_strong(nobody, me, std::memory_order_acq_rel))
      return fail(make_error(ErrorKind::Capture, "E0710", fmt::format("another thread is using {}", what))
                      .note("it is used by one thread at a time; nothing has changed")
                      .help("give each thread a context of its own, or lock around the calls"));
  }
  ++depth_;
  return Entry(this);
}

void Owner::leave() {
  if (--depth_ == 0) holder_.store(std::thread::id{}, std::memory_order_release);
}

}  // namespace gk::engine
