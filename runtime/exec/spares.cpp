#include "runtime/exec/spares.h"

#include <algorithm>
#include <utility>

namespace gk::exec {

namespace {

struct Remains {
  std::shared_ptr<void> used;
  std::unique_ptr<hal::GraphExec> exec;  // the first to go
};

}  // namespace

Result<void> end(const std::shared_ptr<Core>& core, std::unique_ptr<hal::GraphExec> exec,
                 const std::function<std::shared_ptr<void>()>& with) {
  const auto remains = [&] { return std::make_shared<Remains>(Remains{with(), std::move(exec)}); };
  if (core->strict_captures.load(std::memory_order_relaxed) > 0) {
    // Some captures forbid this call to everybody.
    core->retired().publish("destroying a graph",
                            [core = std::weak_ptr<Core>(core), left = remains()]() -> Result<void> {
                              Result<void> outcome = left->exec->destroy();
                              const std::shared_ptr<Core> alive = core.lock();
                              if (!outcome && alive) alive->keep(left);
                              return outcome;
                            });
    return {};
  }
  Result<void> outcome = exec->destroy();
  if (!outcome) core->keep(remains());
  return outcome;
}

void end(const std::shared_ptr<Core>& core, Spare s) {
  auto exec = std::move(s.exec);
  (void)end(core, std::move(exec), [&] { return std::make_shared<Spare>(std::move(s)); });
}

std::optional<Spare> Spares::take(const Loaded::Impl& program) {
  std::lock_guard lock(mutex_);
  const auto it = std::find_if(all_.begin(), all_.end(), [&](const auto& s) { return s.first == &program; });
  if (it == all_.end()) return std::nullopt;
  Spare s = std::move(it->second);
  all_.erase(it);
  return s;
}

void Spares::put(const std::shared_ptr<Core>& core, const Loaded::Impl& program, Spare s) {
  std::optional<Spare> oldest;
  {
    std::lock_guard lock(mutex_);
    all_.emplace_front(&program, std::move(s));
    if (all_.size() > kMost) {
      oldest = std::move(all_.back().second);
      all_.pop_back();
    }
  }
  if (oldest) end(core, std::move(*oldest));
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
