#include "runtime/exec/core.h"

#include <fmt/format.h>

#include <atomic>
#include <new>

namespace gk::exec {
namespace {

// Arenas up to this are one block that all eager runs share: the stream orders them.
constexpr int64_t kSharedArenaLimit = int64_t{1} << 20;
// The values of ir::FaultSite::Kind, which this side cannot see.
constexpr uint8_t kDivideByZero = 2;

Error describe(const program::FaultRecord& r, const program::Step* step) {
  const program::FaultSite* site = nullptr;
  if (step != nullptr && r.site < step->fault_sites.size()) site = &step->fault_sites[r.site];
  Error e;
  if (site != nullptr && site->kind == kDivideByZero) {
    e = make_error(ErrorKind::Runtime, "E0802", "division by zero");
  } else {
    e = make_error(
        ErrorKind::Runtime, "E0801",
        fmt::format("index {} is out of range for axis {} with extent {}", r.index, r.axis, r.extent));
  }
  if (site != nullptr) e.span = site->span;
  if (step != nullptr && !e.span.valid()) e.span = step->span;
  if (step != nullptr && !e.span.valid()) e.notes.push_back(fmt::format("in the step '{}'", step->label));
  return e;
}

}  // namespace

Result<std::shared_ptr<Core>> Core::create(std::shared_ptr<hal::Device> device, int64_t memory_limit_bytes) {
  std::shared_ptr<Core> core(new Core);
  core->device_ = std::move(device);
  core->pool_ = memory::Pool::create(core->device_, memory_limit_bytes);
  GK_TRY(core->timeline_, core->pool_->timeline());
  // The record lies in memory that the CPU reads without a driver call.
  const auto size = static_cast<int64_t>(sizeof(program::FaultRecord));
  GK_TRY(core->faults_, core->pool_->allocate(size, hal::Placement::Pinned));
  if (core->faults_->host_address() == nullptr) {
    return fail(ErrorKind::Internal, "E0901", "pinned memory that the CPU cannot read");
  }
  GK_CHECK(core->faults_->acquire(*core->timeline_));
  new (core->faults_->host_address()) program::FaultRecord{};
  core->pool_->set_reclaim([weak = std::weak_ptr<Core>(core)] {
    if (const std::shared_ptr<Core> self = weak.lock()) self->drain();
  });
  return core;
}

Core::~Core() {
  if (pool_ != nullptr) pool_->set_reclaim(nullptr);
  // Nobody is left to tell a failure to; what follows is safe once the stream is idle.
  if (busy_) (void)timeline_->wait();
  retired_.clear();
}

void Core::close() {
  closed_ = true;
  // What is retired may hold this object: it must go while somebody else does. After a failed wait, too: the
  // device is lost then.
  if (busy_) (void)synchronize();
  std::deque<Retired> rest;
  std::lock_guard lock(mutex_);
  rest.swap(retired_);
}

Result<void> Core::synchronize() {
  GK_CHECK(timeline_->wait());
  busy_ = false;
  std::deque<Retired> done;
  std::unique_lock lock(mutex_);
  done.swap(retired_);
  Result<void> fault = raise_fault();
  std::erase_if(programs_, [](const auto& entry) { return entry.second.dismissed; });
  lock.unlock();  // what ends now may come back to this object
  return fault;
}

Result<void> Core::raise_fault() {
  auto* record = static_cast<program::FaultRecord*>(faults_->host_address());
  if (std::atomic_ref(record->state).load(std::memory_order_acquire) == 0) return {};
  const program::FaultRecord r = *record;
  *record = {};
  const program::Step* step = nullptr;
  auto it = programs_.upper_bound(r.step);
  if (it != programs_.begin()) {
    --it;
    const auto index = static_cast<size_t>(r.step - it->first);
    if (index < it->second.program->steps.size()) step = &it->second.program->steps[index];
  }
  return fail(describe(r, step));
}

void Core::retire(Kept kept) {
  if (closed_ && busy_) {
    (void)timeline_->wait();
    return;
  }
  if (!busy_) return;  // `kept` goes now
  Retired entry;
  entry.kept = std::move(kept);
  if (Result<std::unique_ptr<hal::Event>> event = stream().record()) entry.event = std::move(*event);
  std::lock_guard lock(mutex_);
  retired_.push_back(std::move(entry));
}

void Core::drain() {
  std::deque<Retired> done;
  std::lock_guard lock(mutex_);
  while (!retired_.empty() && retired_.front().event != nullptr) {
    const Result<bool> finished = retired_.front().event->done();
    if (!finished || !*finished) break;
    done.push_back(std::move(retired_.front()));
    retired_.pop_front();
  }
}

Result<memory::BlockPtr> Core::arena(int64_t size_bytes) {
  if (size_bytes > kSharedArenaLimit) {
    return pool_->allocate(size_bytes, hal::Placement::Device, timeline_);
  }
  if (shared_arena_ == nullptr || shared_arena_->size_bytes() < size_bytes) {
    GK_TRY(shared_arena_, pool_->allocate(size_bytes, hal::Placement::Device, timeline_));
  }
  return shared_arena_;
}

Result<std::shared_ptr<hal::Module>> Core::module(const program::Code& code) {
  std::weak_ptr<hal::Module>& known = modules_[code.key];
  if (std::shared_ptr<hal::Module> m = known.lock()) return m;
  GK_TRY(std::shared_ptr<hal::Module> m, device_->load(code));
  known = m;
  return m;
}

int64_t Core::enlist(std::shared_ptr<const program::Program> p) {
  const int64_t first = next_step_;
  next_step_ += static_cast<int64_t>(p->steps.size()) + 1;
  std::lock_guard lock(mutex_);
  if (p->uses_faults) programs_[first] = {std::move(p), false};
  return first;
}

void Core::dismiss(int64_t base) {
  std::lock_guard lock(mutex_);
  const auto it = programs_.find(base);
  if (it == programs_.end()) return;
  if (busy_) {
    it->second.dismissed = true;
  } else {
    programs_.erase(it);
  }
}

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() { impl_->core->close(); }

Result<std::shared_ptr<Runtime>> Runtime::create(std::shared_ptr<hal::Device> device,
                                                 int64_t memory_limit_bytes) {
  auto impl = std::make_unique<Impl>();
  GK_TRY(impl->core, Core::create(std::move(device), memory_limit_bytes));
  return std::shared_ptr<Runtime>(new Runtime(std::move(impl)));
}

hal::Device& Runtime::device() { return impl_->core->device(); }
hal::Stream& Runtime::stream() { return impl_->core->stream(); }
memory::Pool& Runtime::pool() { return impl_->core->pool(); }
Result<void> Runtime::synchronize() { return impl_->core->synchronize(); }

static Result<std::byte*> place(const memory::BlockPtr& b, int64_t offset_bytes, int64_t size_bytes) {
  if (b == nullptr) return fail(ErrorKind::Internal, "E0902", "no memory to copy to or from");
  if (b->released()) return fail(ErrorKind::Lease, "E0602", "this memory was given back already");
  if (offset_bytes < 0 || size_bytes < 0 || offset_bytes > b->size_bytes() ||
      size_bytes > b->size_bytes() - offset_bytes) {
    return fail(ErrorKind::Internal, "E0902",
                fmt::format("{} bytes at {} do not fit {} bytes", size_bytes, offset_bytes, b->size_bytes()));
  }
  return static_cast<std::byte*>(b->address()) + offset_bytes;
}

Result<void> Runtime::upload(const memory::BlockPtr& dst, const void* src, int64_t size_bytes,
                             int64_t offset_bytes) {
  GK_TRY(std::byte* const to, place(dst, offset_bytes, size_bytes));
  GK_CHECK(dst->acquire(impl_->core->timeline()));
  return size_bytes == 0 ? Result<void>{} : device().write(to, src, size_bytes, stream());
}

Result<void> Runtime::download(void* dst, const memory::BlockPtr& src, int64_t size_bytes,
                               int64_t offset_bytes) {
  GK_TRY(const std::byte* const from, place(src, offset_bytes, size_bytes));
  GK_CHECK(src->acquire(impl_->core->timeline()));
  return size_bytes == 0 ? Result<void>{} : device().read(dst, from, size_bytes, stream());
}

}  // namespace gk::exec
