// Graphs on the host: recorded lists, replayed as one queue item.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/hal/host/host_stream.h"

namespace gk::hal::host {
namespace {

/// What a graph and the recorders of its bodies share.
struct Recorded {
  explicit Recorded(std::shared_ptr<Shared> s) : shared(std::move(s)) {}
  std::shared_ptr<Shared> shared;
  Ops ops;
  Topology topology;
  Keepers kept;
  int64_t edges = 0;

  Result<void> check_deps(int32_t sequence, std::span<const NodeId> deps) const {
    for (const NodeId d : deps) {
      if (d < 0 || static_cast<size_t>(d) >= ops.size()) {
        return fail(ErrorKind::Device, "E0508", fmt::format("the graph has no node {} to come after", d));
      }
      if (topology.nodes[static_cast<size_t>(d)].sequence != sequence) {
        return fail(ErrorKind::Device, "E0508", fmt::format("node {} is in another body", d));
      }
    }
    return {};
  }
  Result<NodeId> add(int32_t sequence, Op op, std::span<const NodeId> deps) {
    shared->count();
    GK_CHECK(check_deps(sequence, deps));
    const auto id = static_cast<NodeId>(ops.size());
    ops.push_back(std::make_shared<const Op>(std::move(op)));
    topology.nodes.push_back({sequence, {deps.begin(), deps.end()}});
    topology.sequences[static_cast<size_t>(sequence)].nodes.push_back(id);
    edges += static_cast<int64_t>(deps.size());
    return id;
  }
  void rollback(int64_t mark) {
    const auto size = static_cast<size_t>(mark);
    for (size_t i = size; i < ops.size(); ++i) edges -= static_cast<int64_t>(topology.nodes[i].deps.size());
    ops.resize(size);
    topology.nodes.resize(size);
    while (topology.sequences.back().owner >= mark) topology.sequences.pop_back();
    for (Topology::Sequence& s : topology.sequences) {
      while (!s.nodes.empty() && s.nodes.back() >= mark) s.nodes.pop_back();
    }
  }
};

/// What a graph and a body have in common: Base is Graph or Recorder.
template <class Base>
class HostRecorder : public Base {
 public:
  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override {
    GK_TRY(KernelOp op, make_kernel(launch));
    return recorded_->add(sequence_, Op{std::move(op)}, deps);
  }
  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override {
    return recorded_->add(sequence_, Op{op}, deps);
  }
  Result<NodeId> library(const LibraryOp& op, std::span<const NodeId> deps) override {
    GK_TRY(LibraryWork work, make_library(op));
    return recorded_->add(sequence_, Op{work}, deps);
  }
  Result<NodeId> host_call(std::function<void()> f, std::span<const NodeId> deps) override {
    if (sequence_ != 0) {
      return fail(ErrorKind::Unsupported, "E0405", "a conditional node's body cannot call the host program");
    }
    GK_TRY(HostCall call, make_host_call(std::move(f)));
    return recorded_->add(sequence_, Op{std::move(call)}, deps);
  }
  Result<NodeId> conditional(const ConditionalOp& op, std::span<const NodeId> deps) override;

 protected:
  HostRecorder(Recorded* recorded, int32_t sequence) : recorded_(recorded), sequence_(sequence) {}
  Recorded* recorded_;
  int32_t sequence_;
};

class HostBody : public HostRecorder<Recorder> {
 public:
  HostBody(Recorded* recorded, int32_t sequence) : HostRecorder(recorded, sequence) {}
};

template <class Base>
Result<NodeId> HostRecorder<Base>::conditional(const ConditionalOp& op, std::span<const NodeId> deps) {
  GK_CHECK(check(op));
  Recorded& r = *recorded_;
  GK_CHECK(r.check_deps(sequence_, deps));
  const int bodies = op.has_else ? 2 : 1;
  Conditional c{op.kind, op.condition, {-1, -1}};
  const auto first = static_cast<int32_t>(r.topology.sequences.size());
  for (int i = 0; i < bodies; ++i) c.bodies[i] = first + i;
  GK_TRY(const NodeId id, r.add(sequence_, Op{c}, deps));
  for (int i = 0; i < bodies; ++i) r.topology.sequences.push_back({id, {}});
  for (int i = 0; i < bodies; ++i) {
    HostBody body(&r, c.bodies[i]);
    if (Result<void> recorded = op.record(body, i); !recorded) {
      r.rollback(id);
      return fail(std::move(recorded).error());
    }
  }
  return id;
}

class HostGraph;

class HostGraphExec : public GraphExec {
 public:
  HostGraphExec(std::shared_ptr<Shared> shared, std::shared_ptr<OpList> list)
      : shared_(std::move(shared)), list_(std::move(list)) {}

  Result<void> launch(Stream& s) override {
    GK_TRY(HostStream* const stream, stream_of(s));
    stream->launch(list_);
    return {};
  }
  Result<void> set_kernel(NodeId node, const KernelLaunch& launch) override {
    shared_->count();
    GK_CHECK(check<KernelOp>(node));
    GK_TRY(KernelOp op, make_kernel(launch));
    replace(node, Op{std::move(op)});
    return {};
  }
  Result<void> set_copy(NodeId node, const CopyOp& op) override {
    shared_->count();
    GK_CHECK(check<CopyOp>(node));
    replace(node, Op{op});
    return {};
  }
  Result<void> set_library(NodeId node, const LibraryOp& op) override {
    shared_->count();
    GK_CHECK(check<LibraryWork>(node));
    GK_TRY(LibraryWork work, make_library(op));
    replace(node, Op{work});
    return {};
  }
  bool can_set_library() const override { return true; }
  Result<void> update(Graph& g) override;
  Result<void> upload(Stream& s) override {
    shared_->count();
    GK_CHECK(stream_of(s));
    return {};
  }
  Result<void> destroy() override {
    if (list_ != nullptr) shared_->count();
    list_.reset();
    return {};
  }

 private:
  Result<void> alive() const {
    if (list_ != nullptr) return {};
    return fail(ErrorKind::Capture, "E0716", "this executable was destroyed");
  }
  Result<HostStream*> stream_of(Stream& s) const {
    GK_CHECK(alive());
    auto* stream = dynamic_cast<HostStream*>(&s);
    if (stream != nullptr) return stream;
    return fail(ErrorKind::Device, "E0506", "this stream is not one of the host device");
  }
  template <class T>
  Result<void> check(NodeId node) const {
    GK_CHECK(alive());
    if (node < 0 || static_cast<size_t>(node) >= list_->ops.size()) {
      return fail(ErrorKind::Device, "E0508", fmt::format("the graph has no node {}", node));
    }
    const Op& op = *list_->ops[static_cast<size_t>(node)];
    if (!std::holds_alternative<T>(op)) {
      return fail(ErrorKind::Device, "E0508", fmt::format("node {} is a {}", node, name_of(op)));
    }
    return {};
  }

  // Launches that were submitted keep the list they were given: while there are some, a copy is changed.
  void replace(NodeId node, Op op) {
    if (list_->running.load(std::memory_order_acquire) != 0) {
      auto copy = std::make_shared<OpList>();
      copy->ops = list_->ops;
      copy->topology = list_->topology;
      copy->kept = list_->kept;
      copy->work = list_->work;
      copy->unbounded = list_->unbounded;
      copy->host_calls = list_->host_calls;
      list_ = std::move(copy);
    }
    std::shared_ptr<const Op>& place = list_->ops[static_cast<size_t>(node)];
    list_->count(*place, -1);
    place = std::make_shared<const Op>(std::move(op));
    list_->count(*place, 1);
  }

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<OpList> list_;  // null: destroyed
};

/// What of two graphs differs; empty where nothing does that an update could not take over.
std::string difference(const OpList& a, const Recorded& b) {
  if (a.ops.size() != b.ops.size()) {
    return fmt::format("the executable has {} nodes, the graph {}", a.ops.size(), b.ops.size());
  }
  for (size_t i = 0; i < a.ops.size(); ++i) {
    const Op &x = *a.ops[i], &y = *b.ops[i];
    if (x.index() != y.index()) {
      return fmt::format("node {} is a {}, in the graph a {}", i, name_of(x), name_of(y));
    }
    const Topology::Node &p = a.topology->nodes[i], &q = b.topology.nodes[i];
    if (p.sequence != q.sequence) return fmt::format("node {} is in another body", i);
    if (p.deps != q.deps) return fmt::format("node {} comes after other nodes", i);
    if (const auto* c = std::get_if<Conditional>(&x)) {
      const auto& d = std::get<Conditional>(y);
      if (c->kind != d.kind || !std::ranges::equal(c->bodies, d.bodies)) {
        return fmt::format("node {} is another kind of conditional", i);
      }
    }
  }
  return {};
}

class HostGraph : public HostRecorder<Graph> {
 public:
  explicit HostGraph(std::shared_ptr<Shared> shared)
      : HostRecorder(&storage_, 0), storage_(std::move(shared)) {}
  ~HostGraph() override {
    if (captured_ != nullptr) captured_->store(false, std::memory_order_release);
  }

  Result<std::unique_ptr<GraphExec>> instantiate() override {
    storage_.shared->count();
    if (captured_ != nullptr) {
      return fail(ErrorKind::Capture, "E0712", "a graph cannot be instantiated while it captures a stream");
    }
    return std::make_unique<HostGraphExec>(storage_.shared, list());
  }
  int64_t num_nodes() const override { return static_cast<int64_t>(storage_.ops.size()); }
  int64_t num_edges() const override { return storage_.edges; }

  Result<void> begin_capture(Stream& s, CaptureMode, std::span<const NodeId> after) override {
    storage_.shared->count();
    auto* stream = dynamic_cast<HostStream*>(&s);
    if (stream == nullptr) {
      return fail(ErrorKind::Device, "E0506", "this stream is not one of the host device");
    }
    GK_CHECK(storage_.check_deps(0, after));
    if (captured_ != nullptr) {
      return fail(ErrorKind::Capture, "E0712", "this graph captures a stream already");
    }
    if (!stream->idle()) return fail(ErrorKind::Capture, "E0712", "the stream to capture is not idle");
    bool taken = false;
    if (!stream->captured()->compare_exchange_strong(taken, true)) {
      return fail(ErrorKind::Capture, "E0712", "the stream is being captured already");
    }
    captured_ = stream->captured();
    return {};
  }
  Result<NodeId> captured() override {
    storage_.shared->count();
    GK_CHECK(check_open());
    return -1;
  }
  Result<void> resume_capture(NodeId node) override {
    storage_.shared->count();
    GK_CHECK(check_open());
    return storage_.check_deps(0, {&node, 1});
  }
  Result<void> end_capture() override {
    storage_.shared->count();
    GK_CHECK(check_open());
    captured_->store(false, std::memory_order_release);
    captured_.reset();
    return {};
  }

  int64_t mark() const override { return num_nodes(); }
  Result<void> rollback(int64_t mark) override {
    storage_.shared->count();
    if (mark < 0 || mark > num_nodes()) {
      return fail(ErrorKind::Device, "E0508", fmt::format("the graph was never at mark {}", mark));
    }
    storage_.rollback(mark);
    return {};
  }
  Result<void> retain(std::function<void()> f) override {
    storage_.shared->count();
    storage_.kept.push_back(std::make_shared<const Keeper>(std::move(f)));
    return {};
  }
  std::vector<void*> native_nodes(NodeId) const override { return {}; }

  std::shared_ptr<OpList> list() const {
    auto list = std::make_shared<OpList>();
    list->ops = storage_.ops;
    list->topology = std::make_shared<const Topology>(storage_.topology);
    list->kept = storage_.kept;
    for (const auto& op : list->ops) list->count(*op, 1);
    return list;
  }
  const Recorded& recorded() const { return storage_; }
  bool captures() const { return captured_ != nullptr; }

 private:
  Result<void> check_open() const {
    if (captured_ != nullptr) return {};
    return fail(ErrorKind::Capture, "E0713", "this graph captures no stream");
  }
  Recorded storage_;
  std::shared_ptr<std::atomic<bool>> captured_;  // the captured stream's mark
};

Result<void> HostGraphExec::update(Graph& g) {
  shared_->count();
  GK_CHECK(alive());
  auto* graph = dynamic_cast<HostGraph*>(&g);
  if (graph == nullptr) return fail(ErrorKind::Device, "E0506", "this graph is not one of the host device");
  if (graph->captures()) {
    return fail(ErrorKind::Capture, "E0712", "no update from a graph that captures a stream");
  }
  if (std::string what = difference(*list_, graph->recorded()); !what.empty()) {
    return fail(ErrorKind::Capture, "E0709", fmt::format("the graphs differ: {}", what));
  }
  list_ = graph->list();
  return {};
}

}  // namespace

std::unique_ptr<Graph> create_graph(std::shared_ptr<Shared> shared) {
  return std::make_unique<HostGraph>(std::move(shared));
}

}  // namespace gk::hal::host
