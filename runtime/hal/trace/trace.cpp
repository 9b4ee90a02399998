#include "runtime/hal/trace/trace.h"

#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>

namespace gk::hal::trace {
namespace {

/// What the device shares with everything made from it.
class Log {
 public:
  Result<void> call(std::string_view name, int64_t size_bytes = 0, std::string detail = {}) {
    std::lock_guard lock(mutex_);
    ++calls_;
    if (calls_log_.size() == TraceDevice::kLogLimit) calls_log_.pop_front();
    calls_log_.push_back({std::string(name), size_bytes, std::move(detail)});
    if (const auto next = fail_next_.find(name); next != fail_next_.end()) {
      const ErrorKind kind = next->second;
      fail_next_.erase(next);
      return give(kind, name);
    }
    if (fail_in_ < 0 || fail_in_-- > 0) return {};
    return give(kind_, name);
  }
  void fail_next(std::string_view name, ErrorKind kind) {
    std::lock_guard lock(mutex_);
    fail_next_.insert_or_assign(std::string(name), kind);
    failed_ = false;
  }
  std::string failed_call() const {
    std::lock_guard lock(mutex_);
    return failed_call_;
  }
  /// Keeps an executable that could not be destroyed.
  void keep(std::unique_ptr<GraphExec> exec) {
    std::lock_guard lock(mutex_);
    kept_.push_back(std::move(exec));
  }
  void fail_at(int64_t k, ErrorKind kind) {
    std::lock_guard lock(mutex_);
    fail_in_ = k, kind_ = kind, failed_ = false;
    if (k < 0) fail_next_.clear();
  }
  bool failed() const {
    std::lock_guard lock(mutex_);
    return failed_;
  }
  std::vector<Call> calls() const {
    std::lock_guard lock(mutex_);
    return {calls_log_.begin(), calls_log_.end()};
  }
  void clear() {
    std::lock_guard lock(mutex_);
    calls_log_.clear();
  }
  int64_t count() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }

  std::atomic<int64_t> allocations{0}, bytes{0}, modules{0}, streams{0}, events{0}, graphs{0}, execs{0};

 private:
  Failure give(ErrorKind kind, std::string_view name) {
    failed_ = true;
    failed_call_ = name;
    return fail(kind, kind == ErrorKind::OutOfMemory ? "E0601" : "E0503",
                fmt::format("{} failed: a failure was asked for", name));
  }

  mutable std::mutex mutex_;
  std::deque<Call> calls_log_;
  std::map<std::string, ErrorKind, std::less<>> fail_next_;
  std::string failed_call_;
  std::vector<std::unique_ptr<GraphExec>> kept_;
  int64_t calls_ = 0;
  int64_t fail_in_ = -1;
  ErrorKind kind_ = ErrorKind::Device;
  bool failed_ = false;
};
using LogPtr = std::shared_ptr<Log>;

std::string text(const KernelLaunch& l) {
  const auto& d = l.dims;
  return fmt::format("grid={}x{}x{} block={}x{}x{} items={} params={}", d.grid[0], d.grid[1], d.grid[2],
                     d.block[0], d.block[1], d.block[2], d.items, l.params.size());
}

class TraceModule : public Module {
 public:
  TraceModule(LogPtr log, std::shared_ptr<Module> inner) : log_(std::move(log)), inner_(std::move(inner)) {
    ++log_->modules;
  }
  ~TraceModule() override { --log_->modules; }
  Result<Function*> function(std::string_view name) override {
    GK_CHECK(log_->call("get function", 0, std::string(name)));
    return inner_->function(name);
  }

 private:
  LogPtr log_;
  std::shared_ptr<Module> inner_;
};

class TraceEvent : public Event {
 public:
  TraceEvent(LogPtr log, std::unique_ptr<Event> inner) : log_(std::move(log)), inner_(std::move(inner)) {
    ++log_->events;
  }
  ~TraceEvent() override { --log_->events; }
  Result<bool> done() override {
    GK_CHECK(log_->call("query event"));
    return inner_->done();
  }
  Result<void> wait() override {
    GK_CHECK(log_->call("wait for event"));
    return inner_->wait();
  }
  Event& inner() { return *inner_; }

 private:
  LogPtr log_;
  std::unique_ptr<Event> inner_;
};

std::string text(const ConditionalOp& op) {
  return op.kind == ConditionalOp::Kind::While ? "while" : op.has_else ? "if else" : "if";
}
Failure foreign(std::string_view what) {
  return fail(ErrorKind::Device, "E0506", fmt::format("this {} is not one of the trace device", what));
}

/// What stream, graph and body have in common: Base is Stream, Graph or Recorder.
template <class Base>
class TraceRecorder : public Base {
 public:
  TraceRecorder(LogPtr log, Base& inner, std::string verb)
      : log_(std::move(log)), target_(&inner), verb_(std::move(verb)) {}
  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override {
    GK_CHECK(log_->call(verb_ + " kernel", 0, text(launch)));
    return target_->kernel(launch, deps);
  }
  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override {
    GK_CHECK(log_->call(verb_ + " copy", op.size_bytes));
    return target_->copy(op, deps);
  }
  Result<NodeId> library(const LibraryOp& op, std::span<const NodeId> deps) override {
    GK_CHECK(log_->call(fmt::format("{} {}", verb_, program::name(*op.call)), 0, text(*op.call)));
    return target_->library(op, deps);
  }
  Result<NodeId> host_call(std::function<void()> f, std::span<const NodeId> deps) override {
    GK_CHECK(log_->call(verb_ + " host call"));
    return target_->host_call(std::move(f), deps);
  }
  Result<NodeId> conditional(const ConditionalOp& op, std::span<const NodeId> deps) override;
  Base& inner() { return *target_; }

 protected:
  LogPtr log_;
  Base* target_;
  std::string verb_;
};

class TraceBody : public TraceRecorder<Recorder> {
 public:
  using TraceRecorder::TraceRecorder;
};

template <class Base>
Result<NodeId> TraceRecorder<Base>::conditional(const ConditionalOp& op, std::span<const NodeId> deps) {
  GK_CHECK(log_->call(verb_ + " conditional", 0, text(op)));
  ConditionalOp wrapped = op;
  if (op.record) {
    wrapped.record = [this, &op](Recorder& r, int body) {
      TraceBody traced(log_, r, verb_);
      return op.record(traced, body);
    };
  }
  return target_->conditional(wrapped, deps);
}

class TraceStream : public TraceRecorder<Stream> {
 public:
  TraceStream(LogPtr log, std::unique_ptr<Stream> inner)
      : TraceRecorder(std::move(log), *inner, "launch"), inner_(std::move(inner)) {
    ++log_->streams;
  }
  ~TraceStream() override { --log_->streams; }
  void* native() const override { return inner_->native(); }
  Result<bool> is_capturing() override {
    GK_CHECK(log_->call("query capture"));
    return inner_->is_capturing();
  }
  Result<void> synchronize() override {
    // The wait happens even when it is to fail: what was promised to be idle afterwards must be.
    const Result<void> asked = log_->call("synchronize stream");
    GK_CHECK(inner_->synchronize());
    return asked;
  }
  Result<std::unique_ptr<Event>> record() override {
    GK_CHECK(log_->call("record event"));
    GK_TRY(std::unique_ptr<Event> event, inner_->record());
    return std::make_unique<TraceEvent>(log_, std::move(event));
  }
  Result<void> wait(Event& e) override {
    GK_CHECK(log_->call("stream waits for event"));
    auto* event = dynamic_cast<TraceEvent*>(&e);
    if (event == nullptr) return foreign("event");
    return inner_->wait(event->inner());
  }

 private:
  std::unique_ptr<Stream> inner_;
};

class TraceExec : public GraphExec {
 public:
  TraceExec(LogPtr log, std::unique_ptr<GraphExec> inner) : log_(std::move(log)), inner_(std::move(inner)) {
    ++log_->execs;
  }
  ~TraceExec() override { (void)TraceExec::destroy(); }
  Result<void> launch(Stream& s) override {
    GK_CHECK(call("launch graph"));
    auto* stream = dynamic_cast<TraceStream*>(&s);
    if (stream == nullptr) return foreign("stream");
    return inner_->launch(stream->inner());
  }
  Result<void> set_kernel(NodeId node, const KernelLaunch& launch) override {
    GK_CHECK(call("set kernel", 0, text(launch)));
    return inner_->set_kernel(node, launch);
  }
  Result<void> set_copy(NodeId node, const CopyOp& op) override {
    GK_CHECK(call("set copy", op.size_bytes));
    return inner_->set_copy(node, op);
  }
  Result<void> set_library(NodeId node, const LibraryOp& op) override {
    GK_CHECK(call(fmt::format("set {}", program::name(*op.call)), 0, text(*op.call)));
    return inner_->set_library(node, op);
  }
  bool can_set_library() const override { return inner_ != nullptr && inner_->can_set_library(); }
  Result<void> update(Graph& g) override;
  Result<void> upload(Stream& s) override {
    GK_CHECK(call("upload graph"));
    auto* stream = dynamic_cast<TraceStream*>(&s);
    if (stream == nullptr) return foreign("stream");
    return inner_->upload(stream->inner());
  }
  Result<void> destroy() override {
    if (inner_ == nullptr) return {};
    Result<void> gone = log_->call("destroy executable");
    if (gone) gone = inner_->destroy();
    if (gone) {
      --log_->execs;
      inner_.reset();
    } else {
      log_->keep(std::move(inner_));
    }
    return gone;
  }

 private:
  Result<void> call(std::string_view name, int64_t size_bytes = 0, std::string detail = {}) {
    if (inner_ == nullptr) return fail(ErrorKind::Capture, "E0716", "this executable was destroyed");
    return log_->call(name, size_bytes, std::move(detail));
  }
  LogPtr log_;
  std::unique_ptr<GraphExec> inner_;  // null: destroyed, or that was tried
};

class TraceGraph : public TraceRecorder<Graph> {
 public:
  TraceGraph(LogPtr log, std::unique_ptr<Graph> inner)
      : TraceRecorder(std::move(log), *inner, "add"), inner_(std::move(inner)) {
    ++log_->graphs;
  }
  ~TraceGraph() override { --log_->graphs; }
  Result<std::unique_ptr<GraphExec>> instantiate() override {
    GK_CHECK(log_->call("instantiate graph"));
    GK_TRY(std::unique_ptr<GraphExec> exec, inner_->instantiate());
    return std::make_unique<TraceExec>(log_, std::move(exec));
  }
  int64_t num_nodes() const override { return inner_->num_nodes(); }
  int64_t num_edges() const override { return inner_->num_edges(); }
  Result<void> begin_capture(Stream& s, CaptureMode mode, std::span<const NodeId> after) override {
    GK_CHECK(log_->call("begin capture"));
    auto* stream = dynamic_cast<TraceStream*>(&s);
    if (stream == nullptr) return foreign("stream");
    return inner_->begin_capture(stream->inner(), mode, after);
  }
  Result<NodeId> captured() override {
    GK_CHECK(log_->call("read capture"));
    return inner_->captured();
  }
  Result<void> resume_capture(NodeId node) override {
    GK_CHECK(log_->call("resume capture"));
    return inner_->resume_capture(node);
  }
  Result<void> end_capture() override {
    // The stream is restored even when the call is to fail.
    Result<void> asked = log_->call("end capture");
    GK_CHECK(inner_->end_capture());
    return asked;
  }
  int64_t mark() const override { return inner_->mark(); }
  Result<void> rollback(int64_t mark) override {
    GK_CHECK(log_->call("remove nodes"));
    return inner_->rollback(mark);
  }
  Result<void> retain(std::function<void()> f) override {
    GK_CHECK(log_->call("retain object"));
    return inner_->retain(std::move(f));
  }
  std::vector<void*> native_nodes(NodeId node) const override { return inner_->native_nodes(node); }

 private:
  std::unique_ptr<Graph> inner_;
};

Result<void> TraceExec::update(Graph& g) {
  GK_CHECK(call("update graph"));
  auto* graph = dynamic_cast<TraceGraph*>(&g);
  if (graph == nullptr) return foreign("graph");
  return inner_->update(graph->inner());
}

class Tracer : public TraceDevice {
 public:
  explicit Tracer(std::shared_ptr<Device> inner)
      : log_(std::make_shared<Log>()), inner_(std::move(inner)), info_(inner_->info()) {
    info_.id = fmt::format("trace({})", info_.id);
  }

  const DeviceInfo& info() const override { return info_; }
  Result<Allocation> allocate(int64_t size_bytes, Placement placement) override {
    GK_CHECK(log_->call(placement == Placement::Pinned ? "allocate pinned" : "allocate", size_bytes));
    GK_TRY(const Allocation a, inner_->allocate(size_bytes, placement));
    ++log_->allocations;
    log_->bytes += a.size_bytes;
    return a;
  }
  Result<void> release(const Allocation& a) override {
    const Result<void> asked = log_->call("release", a.size_bytes);
    --log_->allocations;
    log_->bytes -= a.size_bytes;
    GK_CHECK(inner_->release(a));
    return asked;
  }
  Result<std::shared_ptr<Module>> load(const program::Code& code) override {
    GK_CHECK(log_->call("load module", static_cast<int64_t>(code.bytes.size())));
    GK_TRY(std::shared_ptr<Module> module, inner_->load(code));
    return std::make_shared<TraceModule>(log_, std::move(module));
  }
  Result<std::unique_ptr<Stream>> create_stream() override {
    GK_CHECK(log_->call("create stream"));
    GK_TRY(std::unique_ptr<Stream> stream, inner_->create_stream());
    return std::make_unique<TraceStream>(log_, std::move(stream));
  }
  Result<std::unique_ptr<Graph>> create_graph() override {
    GK_CHECK(log_->call("create graph"));
    GK_TRY(std::unique_ptr<Graph> graph, inner_->create_graph());
    return std::make_unique<TraceGraph>(log_, std::move(graph));
  }
  Result<std::unique_ptr<Stream>> wrap_stream(void* native) override {
    GK_CHECK(log_->call("wrap stream"));
    GK_TRY(std::unique_ptr<Stream> stream, inner_->wrap_stream(native));
    return std::make_unique<TraceStream>(log_, std::move(stream));
  }
  Result<std::unique_ptr<Event>> wrap_event(void* native) override {
    GK_CHECK(log_->call("wrap event"));
    GK_TRY(std::unique_ptr<Event> event, inner_->wrap_event(native));
    return std::make_unique<TraceEvent>(log_, std::move(event));
  }
  Result<std::unique_ptr<Graph>> wrap_graph(void* native, std::span<void* const> after,
                                            NodeId& frontier) override {
    frontier = -1;
    GK_CHECK(log_->call("wrap graph"));
    GK_TRY(std::unique_ptr<Graph> graph, inner_->wrap_graph(native, after, frontier));
    return std::make_unique<TraceGraph>(log_, std::move(graph));
  }
  Result<void> trim_graph_memory() override {
    GK_CHECK(log_->call("trim graph memory"));
    return inner_->trim_graph_memory();
  }
  Result<void> read(void* dst, const void* src, int64_t size_bytes, Stream& s) override {
    GK_CHECK(log_->call("read", size_bytes));
    GK_TRY(Stream* const stream, unwrap(s));
    return inner_->read(dst, src, size_bytes, *stream);
  }
  Result<void> write(void* dst, const void* src, int64_t size_bytes, Stream& s) override {
    GK_CHECK(log_->call("write", size_bytes));
    GK_TRY(Stream* const stream, unwrap(s));
    return inner_->write(dst, src, size_bytes, *stream);
  }
  Result<void> synchronize() override {
    const Result<void> asked = log_->call("synchronize device");
    GK_CHECK(inner_->synchronize());
    return asked;
  }
  bool supports(const program::LibraryCall& call) const override { return inner_->supports(call); }
  Result<std::string> assemble(std::string_view ptx) override { return inner_->assemble(ptx); }
  int64_t driver_calls() const override { return log_->count(); }

  std::vector<Call> log() const override { return log_->calls(); }
  void clear_log() override { log_->clear(); }
  Alive alive() const override {
    return {log_->allocations, log_->bytes,  log_->modules, log_->streams,
            log_->events,      log_->graphs, log_->execs};
  }
  void fail_at(int64_t k, ErrorKind kind) override { log_->fail_at(k, kind); }
  void fail_next(std::string_view name, ErrorKind kind) override { log_->fail_next(name, kind); }
  bool failed() const override { return log_->failed(); }
  std::string failed_call() const override { return log_->failed_call(); }
  Device& inner() override { return *inner_; }

 private:
  static Result<Stream*> unwrap(Stream& s) {
    auto* stream = dynamic_cast<TraceStream*>(&s);
    if (stream == nullptr) return foreign("stream");
    return &stream->inner();
  }

  LogPtr log_;
  std::shared_ptr<Device> inner_;
  DeviceInfo info_;
};

}  // namespace

std::shared_ptr<TraceDevice> wrap(std::shared_ptr<Device> inner) {
  return std::make_shared<Tracer>(std::move(inner));
}

}  // namespace gk::hal::trace
