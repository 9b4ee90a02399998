#include "runtime/exec/core.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/exec/spares.h"

namespace gk::exec {

Result<std::shared_ptr<Core>> Core::create(std::shared_ptr<hal::Device> device, int64_t memory_limit_bytes) {
  std::shared_ptr<Core> core(new Core);
  core->device_ = std::move(device);
  core->pool_ = memory::Pool::create(core->device_, memory_limit_bytes);
  core->spares_ = std::make_shared<Spares>();
  return core;
}

Core::~Core() {
  // Nobody is left to tell a failure to; what follows is safe once the device is idle.
  for (memory::Timeline* t : timelines_) {
    if (t->busy()) (void)t->wait();
  }
  adopted_.clear();
  if (pool_ != nullptr) (void)pool_->retired().drain();
}

Result<memory::Timeline*> Core::join(std::optional<void*> native) {
  std::lock_guard lock(mutex_);
  memory::Timeline* t = nullptr;
  if (native) {
    GK_TRY(t, pool_->timeline_of(*native));
    Native& known = natives_[*native];
    known.timeline = t;
    ++known.runtimes;
  } else {
    GK_TRY(t, pool_->timeline());
  }
  if (std::find(timelines_.begin(), timelines_.end(), t) == timelines_.end()) timelines_.push_back(t);
  return t;
}

void Core::leave(memory::Timeline* t, bool foreign) {
  if (!foreign) {
    pool_->give_back(t);
    return;
  }
  std::lock_guard lock(mutex_);
  const auto it = std::find_if(natives_.begin(), natives_.end(),
                               [&](const auto& known) { return known.second.timeline == t; });
  if (it == natives_.end() || --it->second.runtimes > 0) return;
  natives_.erase(it);
  // Whoever has to wait for it later learns of a failure; here nobody is left to tell.
  (void)t->close();
}

memory::Timeline* Core::known(void* native, bool& foreign) {
  std::lock_guard lock(mutex_);
  const auto it = natives_.find(native);
  foreign = it != natives_.end();
  if (foreign) return it->second.timeline;
  for (memory::Timeline* t : timelines_) {
    if (native != nullptr && !t->closed() && t->stream().native() == native) return t;
  }
  return nullptr;
}

void Core::set_recorded(memory::Timeline* t, bool recorded) {
  std::lock_guard lock(mutex_);
  std::erase(recorded_, t);
  if (recorded) recorded_.push_back(t);
}

memory::Timeline* Core::orderly(memory::Timeline* t) {
  std::lock_guard lock(mutex_);
  return std::find(recorded_.begin(), recorded_.end(), t) == recorded_.end() ? t : nullptr;
}

Result<std::shared_ptr<hal::Module>> Core::module(const program::Code& code) {
  {
    std::lock_guard lock(mutex_);
    if (std::shared_ptr<hal::Module> m = modules_[code.key].lock()) return m;
  }
  // Others may go on while the driver loads; where two load the same, the first one's stays.
  GK_TRY(std::shared_ptr<hal::Module> loaded, device_->load(code));
  std::lock_guard lock(mutex_);
  std::weak_ptr<hal::Module>& known = modules_[code.key];
  if (std::shared_ptr<hal::Module> m = known.lock()) return m;
  known = loaded;
  return loaded;
}

bool Core::busy_events(std::vector<std::shared_ptr<hal::Event>>& events) {
  std::vector<memory::Timeline*> timelines;
  {
    std::lock_guard lock(mutex_);
    timelines = timelines_;
  }
  for (memory::Timeline* t : timelines) {
    // Refused while the host program captures the stream: an event would become part of that.
    Result<std::shared_ptr<hal::Event>> event = t->event();
    if (!event) return false;
    if (*event != nullptr) events.push_back(std::move(*event));
  }
  return true;
}

void Core::retire(std::vector<std::shared_ptr<hal::Module>> code) {
  {
    // What others have loaded too is theirs to end; the lock makes one of two the last.
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<hal::Module>> last;
    for (std::shared_ptr<hal::Module>& m : code) {
      if (m.use_count() == 1) {
        last.push_back(std::move(m));
      } else {
        m.reset();
      }
    }
    code.swap(last);
  }
  if (code.empty()) return;
  std::vector<std::shared_ptr<hal::Event>> events;
  if (!busy_events(events)) {
    std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), std::make_move_iterator(code.begin()),
                    std::make_move_iterator(code.end()));
    return;
  }
  auto kept = std::make_shared<std::vector<std::shared_ptr<hal::Module>>>(std::move(code));
  pool_->retired().publish(
      "unloading code",
      [kept]() -> Result<void> {
        kept->clear();
        return {};
      },
      std::move(events));
}

void Core::tidy() {
  std::vector<std::shared_ptr<hal::Module>> code;
  {
    std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    code.swap(waiting_);
  }
  retire(std::move(code));
}

int64_t Core::enlist(std::shared_ptr<const program::Program> p) {
  std::lock_guard lock(mutex_);
  const int64_t first = next_step_;
  next_step_ += static_cast<int64_t>(p->steps.size()) + 1;
  if (p->uses_faults) programs_[first] = std::move(p);
  return first;
}

void Core::dismiss(int64_t first_step) {
  std::vector<std::shared_ptr<Faults>> records;
  std::shared_ptr<const program::Program> p;
  {
    std::lock_guard lock(mutex_);
    const auto it = programs_.find(first_step);
    if (it == programs_.end()) return;
    p = std::move(it->second);
    programs_.erase(it);
    std::erase_if(faults_, [](const auto& f) { return f.expired(); });
    for (const auto& f : faults_) {
      if (std::shared_ptr<Faults> record = f.lock()) records.push_back(std::move(record));
    }
  }
  for (const auto& record : records) record->remember(first_step, p);
}

std::shared_ptr<const program::Program> Core::find(int64_t step, int64_t& first_step) const {
  std::lock_guard lock(mutex_);
  auto it = programs_.upper_bound(step);
  if (it == programs_.begin()) return nullptr;
  --it;
  first_step = it->first;
  return it->second;
}

void Core::enlist(const std::shared_ptr<Faults>& f) {
  std::lock_guard lock(mutex_);
  std::erase_if(faults_, [](const auto& other) { return other.expired(); });
  faults_.push_back(f);
}

void Core::adopt(const std::shared_ptr<Faults>& f, memory::Timeline& t) {
  if (!f->pending()) return;
  Adopted a{f, nullptr};
  // Where the stream cannot be asked now, the next wait is the only one that looks.
  if (Result<std::shared_ptr<hal::Event>> event = t.event()) a.after = std::move(*event);
  std::lock_guard lock(mutex_);
  adopted_.push_back(std::move(a));
}

template <class F>
void Core::sift_adopted(F is_over) {
  std::vector<Adopted> all;
  {
    std::lock_guard lock(mutex_);
    if (adopted_.empty()) return;
    all.swap(adopted_);
  }
  // Events are asked without the lock.
  std::erase_if(all, [&](const Adopted& a) {
    const Result<bool> done = a.after == nullptr ? Result<bool>(true) : a.after->done();
    return is_over(*a.faults, !done || *done);
  });
  std::lock_guard lock(mutex_);
  adopted_.insert(adopted_.end(), std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
}

void Core::tidy_adopted() {
  sift_adopted([](const Faults& f, bool done) { return done && !f.there(); });
}

Result<void> Core::raise_adopted() {
  Result<void> outcome;
  sift_adopted([&](Faults& f, bool done) {
    if (!outcome) return false;
    outcome = f.raise(*this);
    return !outcome || done;
  });
  return outcome;
}

void Core::keep(std::shared_ptr<void> kept) {
  num_kept_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  kept_.push_back(std::move(kept));
}

}  // namespace gk::exec
