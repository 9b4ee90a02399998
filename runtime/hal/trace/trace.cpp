#include "runtime/hal/trace/trace.h"

#include <fmt/format.h>

#include <atomic>
#include <deque>
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
    if (fail_in_ < 0 || fail_in_-- > 0) return {};
    failed_ = true;
    return fail(kind_, kind_ == ErrorKind::OutOfMemory ? "E0601" : "E0503",
                fmt::format("{} failed: a failure was asked for", name));
  }
  void fail_at(int64_t k, ErrorKind kind) {
    std::lock_guard lock(mutex_);
    fail_in_ = k, kind_ = kind, failed_ = false;
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
  mutable std::mutex mutex_;
  std::deque<Call> calls_log_;
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
std::string text(const program::MatMulCall& c) {
  return fmt::format("{} {}x{}x{} batch={}", gk::name(c.dtype), c.m, c.n, c.k, c.batch);
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

/// What stream and graph have in common.
template <class Base>
class TraceRecorder : public Base {
 public:
  TraceRecorder(LogPtr log, std::unique_ptr<Base> inner, std::string verb)
      : log_(std::move(log)), inner_(std::move(inner)), verb_(std::move(verb)) {}
  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override {
    GK_CHECK(log_->call(verb_ + " kernel", 0, text(launch)));
    return inner_->kernel(launch, deps);
  }
  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override {
    GK_CHECK(log_->call(verb_ + " copy", op.size_bytes));
    return inner_->copy(op, deps);
  }
  Result<NodeId> matmul(const MatMulOp& op, std::span<const NodeId> deps) override {
    GK_CHECK(log_->call(verb_ + " matmul", 0, text(*op.call)));
    return inner_->matmul(op, deps);
  }
  Base& inner() { return *inner_; }

 protected:
  LogPtr log_;
  std::unique_ptr<Base> inner_;
  std::string verb_;
};

class TraceStream : public TraceRecorder<Stream> {
 public:
  TraceStream(LogPtr log, std::unique_ptr<Stream> inner)
      : TraceRecorder(std::move(log), std::move(inner), "launch") {
    ++log_->streams;
  }
  ~TraceStream() override { --log_->streams; }
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
    if (event == nullptr)
      return fail(ErrorKind::Device, "E0506", "this event is not one of the trace device");
    return inner_->wait(event->inner());
  }
};

class TraceExec : public GraphExec {
 public:
  TraceExec(LogPtr log, std::unique_ptr<GraphExec> inner) : log_(std::move(log)), inner_(std::move(inner)) {
    ++log_->execs;
  }
  ~TraceExec() override { --log_->execs; }
  Result<void> launch(Stream& s) override {
    GK_CHECK(log_->call("launch graph"));
    auto* stream = dynamic_cast<TraceStream*>(&s);
    if (stream == nullptr)
      return fail(ErrorKind::Device, "E0506", "this stream is not one of the trace device");
    return inner_->launch(stream->inner());
  }
  Result<void> set_kernel(NodeId node, const KernelLaunch& launch) override {
    GK_CHECK(log_->call("set kernel", 0, text(launch)));
    return inner_->set_kernel(node, launch);
  }
  Result<void> set_copy(NodeId node, const CopyOp& op) override {
    GK_CHECK(log_->call("set copy", op.size_bytes));
    return inner_->set_copy(node, op);
  }
  bool can_set_matmul() const override { return inner_->can_set_matmul(); }

 private:
  LogPtr log_;
  std::unique_ptr<GraphExec> inner_;
};

class TraceGraph : public TraceRecorder<Graph> {
 public:
  TraceGraph(LogPtr log, std::unique_ptr<Graph> inner)
      : TraceRecorder(std::move(log), std::move(inner), "add") {
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
};

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
  bool supports(const program::MatMulCall& call) const override { return inner_->supports(call); }
  Result<std::string> assemble(std::string_view ptx) override { return inner_->assemble(ptx); }
  int64_t driver_calls() const override { return log_->count(); }

  std::vector<Call> log() const override { return log_->calls(); }
  void clear_log() override { log_->clear(); }
  Alive alive() const override {
    return {log_->allocations, log_->bytes,  log_->modules, log_->streams,
            log_->events,      log_->graphs, log_->execs};
  }
  void fail_at(int64_t k, ErrorKind kind) override { log_->fail_at(k, kind); }
  bool failed() const override { return log_->failed(); }
  Device& inner() override { return *inner_; }

 private:
  static Result<Stream*> unwrap(Stream& s) {
    auto* stream = dynamic_cast<TraceStream*>(&s);
    if (stream == nullptr)
      return fail(ErrorKind::Device, "E0506", "this stream is not one of the trace device");
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
