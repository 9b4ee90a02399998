// A thread's way to a device: its stream, what it gives to it, and waiting for it.
#include <fmt/format.h>

#include "runtime/exec/core.h"
#include "runtime/exec/recording.h"
#include "runtime/exec/spares.h"

namespace gk::exec {
namespace {

// Arenas up to this are one block that all eager runs of a runtime share: the stream orders them.
constexpr int64_t kSharedArenaLimit = int64_t{1} << 20;

Result<std::byte*> place(const memory::BlockPtr& b, int64_t offset_bytes, int64_t size_bytes) {
  if (b == nullptr) return fail(ErrorKind::Internal, "E0902", "no memory to copy to or from");
  if (b->released() && b->leases() == 0) {
    return fail(ErrorKind::Lease, "E0602", "this memory was given back already");
  }
  if (offset_bytes < 0 || size_bytes < 0 || offset_bytes > b->size_bytes() ||
      size_bytes > b->size_bytes() - offset_bytes) {
    return fail(ErrorKind::Internal, "E0902",
                fmt::format("{} bytes at {} do not fit {} bytes", size_bytes, offset_bytes, b->size_bytes()));
  }
  return static_cast<std::byte*>(b->address()) + offset_bytes;
}

Result<std::unique_ptr<Runtime::Impl>> attach(std::shared_ptr<Core> core, std::optional<void*> native) {
  auto impl = std::make_unique<Runtime::Impl>();
  GK_TRY(impl->faults, Faults::create(core->pool()));
  GK_TRY(impl->timeline, core->join(native));
  impl->foreign = native.has_value();
  core->enlist(impl->faults);
  impl->core = std::move(core);
  return impl;
}

}  // namespace

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Runtime::~Runtime() {
  if (impl_->recording != nullptr) impl_->recording->abandon(*impl_);
  impl_->arena.reset();
  impl_->core->adopt(impl_->faults, *impl_->timeline);
  for (const auto& f : impl_->launched) impl_->core->adopt(f, *impl_->timeline);
  impl_->core->leave(impl_->timeline, impl_->foreign);
}

Result<std::shared_ptr<Runtime>> Runtime::create(std::shared_ptr<hal::Device> device,
                                                 int64_t memory_limit_bytes) {
  GK_TRY(std::shared_ptr<Core> core, Core::create(std::move(device), memory_limit_bytes));
  GK_TRY(std::unique_ptr<Impl> impl, attach(std::move(core), {}));
  return std::shared_ptr<Runtime>(new Runtime(std::move(impl)));
}

Result<std::shared_ptr<Runtime>> Runtime::fork(std::optional<void*> native_stream) {
  GK_TRY(std::unique_ptr<Impl> impl, attach(impl_->core, native_stream));
  return std::shared_ptr<Runtime>(new Runtime(std::move(impl)));
}

hal::Device& Runtime::device() { return impl_->core->device(); }
hal::Stream& Runtime::stream() { return impl_->stream(); }
memory::Timeline& Runtime::timeline() { return *impl_->timeline; }
memory::Pool& Runtime::pool() { return impl_->core->pool(); }

Result<void> Runtime::Impl::ready() {
  // Only a stream that the host program knows can be captured by it.
  if (!foreign && !timeline->exposed()) return {};
  GK_TRY(const bool capturing, stream().is_capturing());
  if (!capturing) return {};
  return fail(ErrorKind::Capture, "E0711",
              "the stream is being captured by the host program; record through gk to add to a graph");
}

Result<memory::BlockPtr> Runtime::Impl::arena_for(int64_t size_bytes) {
  if (size_bytes > kSharedArenaLimit) {
    return core->pool().allocate(size_bytes, hal::Placement::Device, timeline);
  }
  if (arena == nullptr || arena->size_bytes() < size_bytes) {
    GK_TRY(arena, core->pool().allocate(size_bytes, hal::Placement::Device, timeline));
  }
  return arena;
}

Result<memory::BlockPtr> Runtime::allocate(int64_t size_bytes, hal::Placement placement) {
  Impl& r = *impl_;
  if (r.recording != nullptr) return r.recording->allocate(r, size_bytes, placement);
  GK_CHECK(r.ready());
  return r.core->pool().allocate(size_bytes, placement, r.timeline);
}

Result<void> Runtime::synchronize() {
  Impl& r = *impl_;
  if (r.recording != nullptr) return r.recording->refuse("waiting for the device");
  GK_CHECK(r.timeline->wait());
  r.core->tidy();
  r.core->retired().drain();
  GK_CHECK(r.faults->raise(*r.core));
  for (const auto& f : r.launched) GK_CHECK(f->raise(*r.core));
  r.launched.clear();
  return r.core->raise_adopted();
}

Result<void> Runtime::upload(const memory::BlockPtr& dst, const void* src, int64_t size_bytes,
                             int64_t offset_bytes) {
  Impl& r = *impl_;
  GK_TRY(std::byte* const to, place(dst, offset_bytes, size_bytes));
  if (r.recording != nullptr) return r.recording->upload(*this, dst, src, size_bytes, offset_bytes);
  if (size_bytes == 0) return {};
  GK_CHECK(r.ready());
  GK_CHECK(dst->acquire(*r.timeline));
  r.timeline->mark_busy();
  return device().write(to, src, size_bytes, stream());
}

Result<void> Runtime::download(void* dst, const memory::BlockPtr& src, int64_t size_bytes,
                               int64_t offset_bytes) {
  Impl& r = *impl_;
  if (r.recording != nullptr) return r.recording->refuse("reading memory back");
  GK_TRY(const std::byte* const from, place(src, offset_bytes, size_bytes));
  if (size_bytes == 0) return {};
  GK_CHECK(r.ready());
  GK_CHECK(src->acquire(*r.timeline));
  // Reading waits for the stream.
  r.timeline->mark_busy();
  const memory::Timeline::Wait wait = r.timeline->begin_wait();
  GK_CHECK(device().read(dst, from, size_bytes, stream()));
  r.timeline->end_wait(wait);
  return r.core->raise_adopted();  // it came after whoever wrote this memory
}

Result<void> Runtime::host_call(std::function<void()> f) {
  Impl& r = *impl_;
  if (f == nullptr) return fail(ErrorKind::Internal, "E0902", "no function to call");
  if (r.recording != nullptr) return r.recording->host_call(std::move(f));
  GK_CHECK(r.ready());
  r.submitting(r.faults, true);
  GK_CHECK(r.stream().host_call(Faults::guard(r.faults, std::move(f)), {}));
  return {};
}

Recording* Runtime::recording() { return impl_->recording == nullptr ? nullptr : impl_->recording->handle(); }

Result<void> Runtime::reclaim() {
  Impl& r = *impl_;
  if (r.recording != nullptr) {
    return fail(ErrorKind::Capture, "E0708", "memory cannot be reclaimed while a graph is recorded");
  }
  r.arena.reset();
  for (Spare& s : r.core->spares().remove(nullptr)) end(r.core, std::move(s));
  r.core->tidy();
  GK_CHECK(r.core->pool().reclaim());
  r.core->tidy_adopted();
  return r.core->device().trim_graph_memory();
}

}  // namespace gk::exec
