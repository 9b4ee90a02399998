#include "runtime/exec/spares.h"

#include <algorithm>
#include <utility>

namespace gk::exec {

void end(const std::shared_ptr<Core>& core, Spare s) {
  auto remains = std::make_shared<Spare>(std::move(s));
  if (core->strict_captures.load(std::memory_order_relaxed) > 0) {
    // Some captures forbid this call to everybody.
    core->retired().publish("destroying a graph",
                            [core = std::weak_ptr<Core>(core), remains]() -> Result<void> {
                              Result<void> outcome = remains->exec->destroy();
                              const std::shared_ptr<Core> alive = core.lock();
                              if (!outcome && alive) alive->keep(remains);
                              return outcome;
                            });
    return;
  }
  if (!remains->exec->destroy()) core->keep(remains);
}

std::optional<Spare> Spares::take(const Loaded::Impl& program) {
  std::lock_guard lock(mutex_);
  const auto it = std::find_if(all_.begin(), all_.end(), [&](const auto& s) { return s.first == &program; });
  if (it == all_.end()) return std::nullopt;
  Spare s = std::move(it->second);
  all_.erase(it);
  return s;
}

std::optional<Spare> Spares::put(const Loaded::Impl& program, Spare s) {
  std::lock_guard lock(mutex_);
  all_.emplace_front(&program, std::move(s));
  if (all_.size() <= kMost) return std::nullopt;
  Spare oldest = std::move(all_.back().second);
  all_.pop_back();
  return oldest;
}

std::vector<Spare> Spares::remove(const Loaded::Impl* program) {
  std::lock_guard lock(mutex_);
  std::vector<Spare> removed;
  for (auto it = all_.begin(); it != all_.end();) {
    const auto now = it++;
    if (program != nullptr && now->first != program) continue;
    removed.push_back(std::move(now->second));
    all_.erase(now);
  }
  return removed;
}

}  // namespace gk::exec
