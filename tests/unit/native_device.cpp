#include "tests/unit/native_device.h"

namespace gk::test {
namespace {

NativeStream* of(hal::Stream& s) { return static_cast<NativeStream&>(s).target(); }

class NativeExec : public hal::GraphExec {
 public:
  explicit NativeExec(std::unique_ptr<hal::GraphExec> inner) : inner_(std::move(inner)) {}
  Result<void> launch(hal::Stream& s) override { return inner_->launch(*of(s)->inner); }
  Result<void> set_kernel(hal::NodeId n, const hal::KernelLaunch& l) override {
    return inner_->set_kernel(n, l);
  }
  Result<void> set_copy(hal::NodeId n, const hal::CopyOp& op) override { return inner_->set_copy(n, op); }
  Result<void> set_library(hal::NodeId n, const hal::LibraryOp& op) override {
    return inner_->set_library(n, op);
  }
  bool can_set_library() const override { return inner_->can_set_library(); }
  Result<void> update(hal::Graph& g) override { return inner_->update(*static_cast<NativeGraph&>(g).inner); }
  Result<void> upload(hal::Stream& s) override { return inner_->upload(*of(s)->inner); }
  Result<void> destroy() override { return inner_->destroy(); }

 private:
  std::unique_ptr<hal::GraphExec> inner_;
};

/// Gives to the stream, or where that is captured adds a node.
template <class Give>
Result<hal::NodeId> give(NativeStream* s, const Give& to) {
  NativeGraph* g = s->graph;
  if (g == nullptr) return to(static_cast<hal::Recorder&>(*s->inner), std::span<const hal::NodeId>{});
  const std::span<const hal::NodeId> after =
      g->at < 0 ? std::span<const hal::NodeId>{} : std::span<const hal::NodeId>(&g->at, 1);
  GK_TRY(g->at, to(static_cast<hal::Recorder&>(*g->inner), after));
  g->fresh = true;
  return g->at;
}

Failure rule(const char* what) { return fail(ErrorKind::Capture, "E0712", what); }

}  // namespace

Result<hal::NodeId> NativeStream::kernel(const hal::KernelLaunch& l, std::span<const hal::NodeId>) {
  return give(target(), [&](hal::Recorder& r, auto deps) { return r.kernel(l, deps); });
}
Result<hal::NodeId> NativeStream::copy(const hal::CopyOp& op, std::span<const hal::NodeId>) {
  return give(target(), [&](hal::Recorder& r, auto deps) { return r.copy(op, deps); });
}
Result<hal::NodeId> NativeStream::library(const hal::LibraryOp& op, std::span<const hal::NodeId>) {
  return give(target(), [&](hal::Recorder& r, auto deps) { return r.library(op, deps); });
}
Result<hal::NodeId> NativeStream::host_call(std::function<void()> f, std::span<const hal::NodeId>) {
  return give(target(), [&](hal::Recorder& r, auto deps) { return r.host_call(f, deps); });
}
Result<hal::NodeId> NativeStream::conditional(const hal::ConditionalOp& op, std::span<const hal::NodeId>) {
  return give(target(), [&](hal::Recorder& r, auto deps) { return r.conditional(op, deps); });
}
Result<void> NativeStream::synchronize() {
  if (target()->graph != nullptr) target()->graph->broken = true;
  return target()->inner->synchronize();
}
Result<std::unique_ptr<hal::Event>> NativeStream::record() {
  if (target()->graph != nullptr) ++target()->in_capture;
  return target()->inner->record();
}
Result<void> NativeStream::wait(hal::Event& e) {
  if (target()->graph != nullptr) ++target()->in_capture;
  return target()->inner->wait(e);
}

NativeGraph::~NativeGraph() {
  if (stream != nullptr) stream->graph = nullptr;
}
Result<std::unique_ptr<hal::GraphExec>> NativeGraph::instantiate() {
  GK_TRY(std::unique_ptr<hal::GraphExec> exec, inner->instantiate());
  return std::make_unique<NativeExec>(std::move(exec));
}
Result<void> NativeGraph::begin_capture(hal::Stream& s, hal::CaptureMode,
                                        std::span<const hal::NodeId> after) {
  NativeStream* const t = of(s);
  if (t->blocking) return rule("the stream orders itself with the default stream");
  if (t->graph != nullptr || stream != nullptr) return rule("captured already");
  GK_TRY(const std::unique_ptr<hal::Event> last, t->inner->record());
  GK_TRY(const bool idle, last->done());
  if (!idle) {
    // The host's worker needs a moment for the event itself.
    GK_CHECK(last->wait());
  }
  stream = t;
  t->graph = this;
  at = after.empty() ? -1 : after[0];
  fresh = false;
  return {};
}
Result<hal::NodeId> NativeGraph::captured() {
  if (broken) return fail(ErrorKind::Capture, "E0715", "cudaMalloc, or such, broke the capture");
  if (!fresh) return -1;
  fresh = false;
  return at;
}
Result<void> NativeGraph::resume_capture(hal::NodeId node) {
  if (broken) return fail(ErrorKind::Capture, "E0715", "cudaMalloc, or such, broke the capture");
  at = node;
  return {};
}
Result<void> NativeGraph::end_capture() {
  if (stream != nullptr) stream->graph = nullptr;
  stream = nullptr;
  if (broken) return fail(ErrorKind::Capture, "E0715", "cudaMalloc, or such, broke the capture");
  return {};
}

std::unique_ptr<NativeStream> NativeDevice::hosts_stream(bool blocking) {
  auto made = inner_->create_stream();
  return std::make_unique<NativeStream>(std::shared_ptr<hal::Stream>(std::move(*made)), blocking);
}
HostsGraph NativeDevice::hosts_graph() {
  auto made = inner_->create_graph();
  return {std::shared_ptr<hal::Graph>(std::move(*made))};
}
Result<std::unique_ptr<hal::Stream>> NativeDevice::create_stream() { return hosts_stream(); }
Result<std::unique_ptr<hal::Graph>> NativeDevice::create_graph() {
  GK_TRY(std::unique_ptr<hal::Graph> made, inner_->create_graph());
  return std::make_unique<NativeGraph>(std::shared_ptr<hal::Graph>(std::move(made)));
}
Result<std::unique_ptr<hal::Stream>> NativeDevice::wrap_stream(void* native) {
  if (native == nullptr) return fail(ErrorKind::Device, "E0510", "a stream of another context");
  auto* const theirs = static_cast<NativeStream*>(native);
  auto wrapped = std::make_unique<NativeStream>(theirs->inner, theirs->blocking);
  wrapped->of = theirs;
  return wrapped;
}
Result<std::unique_ptr<hal::Graph>> NativeDevice::wrap_graph(void* native, std::span<void* const> after,
                                                             hal::NodeId& frontier) {
  if (native == nullptr) return fail(ErrorKind::Device, "E0510", "a graph of another context");
  frontier = after.empty() ? -1 : static_cast<hal::NodeId>(reinterpret_cast<uintptr_t>(after.back()) - 1);
  return std::make_unique<NativeGraph>(static_cast<HostsGraph*>(native)->graph);
}
Result<void> NativeDevice::read(void* d, const void* s, int64_t n, hal::Stream& t) {
  return inner_->read(d, s, n, *of(t)->inner);
}
Result<void> NativeDevice::write(void* d, const void* s, int64_t n, hal::Stream& t) {
  return inner_->write(d, s, n, *of(t)->inner);
}

}  // namespace gk::test
