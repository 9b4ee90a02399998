// Faults that kernels report: where the first one lies until somebody waits, and how it reads.
#include <cxxabi.h>
#include <fmt/format.h>

#include <new>

#include "runtime/base/nan_found.h"
#include "runtime/exec/core.h"

namespace gk::exec {
namespace {

// The values of ir::FaultSite::Kind, which this side cannot see.
constexpr uint8_t kDivideByZero = 2, kLoadFromEnd = 3;
// FaultRecord::state: all of it is written.
constexpr uint32_t kComplete = 2;
// Unloaded programs kept for faults of work whose end this record cannot know.
constexpr size_t kLateMost = 64;

Error describe(const program::FaultRecord& r, const program::Step* step) {
  const program::FaultSite* site = nullptr;
  if (step != nullptr && r.site < step->fault_sites.size()) site = &step->fault_sites[r.site];
  if (site != nullptr && site->kind == program::FaultSite::kNotANumber) {
    return nan_found(site->name, site->shape, r.index - r.extent).at(site->span);
  }
  Error e;
  // As it was written.
  const bool from_end = site != nullptr && site->kind == kLoadFromEnd && r.index < 0;
  const int64_t index = from_end ? r.index - r.extent : r.index;
  if (site != nullptr && site->kind == kDivideByZero) {
    e = make_error(ErrorKind::Runtime, "E0802", "division by zero");
  } else {
    e = make_error(
        ErrorKind::Runtime, "E0801",
        fmt::format("index {} is out of range for axis {} with extent {}", index, r.axis, r.extent));
  }
  if (site != nullptr) e.span = site->span;
  if (step != nullptr && !e.span.valid()) e.span = step->span;
  if (step != nullptr && !e.span.valid()) e.notes.push_back(fmt::format("in the step '{}'", step->label));
  return e;
}

const program::Step* step_of(const program::Program& p, int64_t first_step, int64_t step) {
  const auto index = static_cast<size_t>(step - first_step);
  return index < p.steps.size() ? &p.steps[index] : nullptr;
}

}  // namespace

Result<std::shared_ptr<Faults>> Faults::create(memory::Pool& pool) {
  auto f = std::make_shared<Faults>();
  // The record lies in memory that the CPU reads without a driver call.
  const auto size = static_cast<int64_t>(sizeof(program::FaultRecord));
  GK_TRY(f->record_, pool.allocate(size, hal::Placement::Pinned));
  if (f->record_->host_address() == nullptr) {
    return fail(ErrorKind::Internal, "E0901", "pinned memory that the CPU cannot read");
  }
  new (f->record_->host_address()) program::FaultRecord{};
  return f;
}

void Faults::remember(int64_t first_step, std::shared_ptr<const program::Program> p) {
  if (!pending_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  late_[first_step] = std::move(p);
}

void Faults::threw(std::string what) {
  std::lock_guard lock(mutex_);
  if (has_thrown_.load(std::memory_order_relaxed)) return;  // of several the first is told
  thrown_ = std::move(what);
  has_thrown_.store(true, std::memory_order_release);
}

std::function<void()> Faults::guard(const std::shared_ptr<Faults>& faults, std::function<void()> f) {
  // The driver may keep the function for good, and that must not keep memory.
  return [told = std::weak_ptr<Faults>(faults), f = std::move(f)] {
    const auto tell = [&](const char* what) {
      if (const std::shared_ptr<Faults> there = told.lock()) there->threw(what);
    };
    try {
      f();
    } catch (const abi::__forced_unwind&) {
      throw;  // the thread is being ended
    } catch (const std::exception& e) {
      tell(e.what());
    } catch (...) {
      tell("what is no std::exception");
    }
  };
}

bool Faults::there() const {
  if (has_thrown_.load(std::memory_order_acquire)) return true;
  auto* record = static_cast<program::FaultRecord*>(record_->host_address());
  // Claimed and not complete: written by work of another runtime, which is still running.
  return std::atomic_ref(record->state).load(std::memory_order_acquire) == kComplete;
}

Result<void> Faults::raise(const Core& core) {
  if (!shared_.load(std::memory_order_relaxed)) pending_.store(false, std::memory_order_relaxed);
  if (has_thrown_.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex_);
    has_thrown_.store(false, std::memory_order_relaxed);
    return fail(
        make_error(ErrorKind::Usage, "E0512", "a function of the host program threw: " + thrown_)
            .note("it was called in its turn on a thread of the device's; what came after it has run"));
  }
  auto* record = static_cast<program::FaultRecord*>(record_->host_address());
  const bool found = there();
  std::lock_guard lock(mutex_);
  if (!found) {
    if (!shared_.load(std::memory_order_relaxed)) late_.clear();
    while (late_.size() > kLateMost) late_.erase(late_.begin());
    return {};
  }
  program::FaultRecord r = *record;
  *record = {.state = kComplete};
  std::atomic_ref(record->state).store(0, std::memory_order_release);
  Error e;
  int64_t first_step = 0;
  if (const auto p = core.find(r.step, first_step); p != nullptr && step_of(*p, first_step, r.step)) {
    e = describe(r, step_of(*p, first_step, r.step));
  } else {
    auto it = late_.upper_bound(r.step);
    const program::Step* step =
        it == late_.begin() ? nullptr : (--it, step_of(*it->second, it->first, r.step));
    e = describe(r, step);
  }
  late_.clear();
  return fail(std::move(e));
}

}  // namespace gk::exec
