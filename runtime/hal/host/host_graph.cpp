// Graphs on the host: a recorded list, replayed as one queue item.
#include <fmt/format.h>

#include "runtime/hal/host/host_stream.h"

namespace gk::hal::host {
namespace {

using Ops = std::vector<std::shared_ptr<const Op>>;

class HostGraphExec : public GraphExec {
 public:
  HostGraphExec(std::shared_ptr<Shared> shared, const Ops& ops)
      : shared_(std::move(shared)), list_(std::make_shared<OpList>()) {
    list_->ops = ops;
  }

  Result<void> launch(Stream& s) override {
    auto* stream = dynamic_cast<HostStream*>(&s);
    if (stream == nullptr) {
      return fail(ErrorKind::Device, "E0506", "this stream is not one of the host device");
    }
    stream->launch(list_);
    return {};
  }

  Result<void> set_kernel(NodeId node, const KernelLaunch& launch) override {
    shared_->count();
    GK_CHECK(check<KernelOp>(node, "kernel"));
    GK_TRY(KernelOp op, make_kernel(launch));
    replace(node, Op{std::move(op)});
    return {};
  }

  Result<void> set_copy(NodeId node, const CopyOp& op) override {
    shared_->count();
    GK_CHECK(check<CopyOp>(node, "copy"));
    replace(node, Op{op});
    return {};
  }

  bool can_set_matmul() const override { return false; }

 private:
  template <class T>
  Result<void> check(NodeId node, std::string_view kind) const {
    if (node < 0 || static_cast<size_t>(node) >= list_->ops.size()) {
      return fail(ErrorKind::Device, "E0508", fmt::format("the graph has no node {}", node));
    }
    if (!std::holds_alternative<T>(*list_->ops[static_cast<size_t>(node)])) {
      return fail(ErrorKind::Device, "E0508", fmt::format("node {} is not a {}", node, kind));
    }
    return {};
  }

  // Launches that were submitted keep the list they were given: while there are some, a copy is changed.
  void replace(NodeId node, Op op) {
    if (list_->running.load(std::memory_order_acquire) != 0) {
      auto copy = std::make_shared<OpList>();
      copy->ops = list_->ops;
      list_ = std::move(copy);
    }
    list_->ops[static_cast<size_t>(node)] = std::make_shared<const Op>(std::move(op));
  }

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<OpList> list_;
};

class HostGraph : public Graph {
 public:
  explicit HostGraph(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) override {
    GK_TRY(KernelOp op, make_kernel(launch));
    return add(Op{std::move(op)}, deps);
  }
  Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) override { return add(Op{op}, deps); }
  Result<NodeId> matmul(const MatMulOp& op, std::span<const NodeId> deps) override {
    GK_TRY(MatMulWork work, make_matmul(op));
    return add(Op{work}, deps);
  }

  Result<std::unique_ptr<GraphExec>> instantiate() override {
    shared_->count();
    return std::make_unique<HostGraphExec>(shared_, ops_);
  }
  int64_t num_nodes() const override { return static_cast<int64_t>(ops_.size()); }
  int64_t num_edges() const override { return edges_; }

 private:
  Result<NodeId> add(Op op, std::span<const NodeId> deps) {
    shared_->count();
    for (NodeId d : deps) {
      if (d < 0 || static_cast<size_t>(d) >= ops_.size()) {
        return fail(ErrorKind::Device, "E0508", fmt::format("the graph has no node {} to come after", d));
      }
    }
    ops_.push_back(std::make_shared<const Op>(std::move(op)));
    edges_ += static_cast<int64_t>(deps.size());
    return static_cast<NodeId>(ops_.size() - 1);
  }

  std::shared_ptr<Shared> shared_;
  Ops ops_;
  int64_t edges_ = 0;
};

}  // namespace

std::unique_ptr<Graph> create_graph(std::shared_ptr<Shared> shared) {
  return std::make_unique<HostGraph>(std::move(shared));
}

}  // namespace gk::hal::host
