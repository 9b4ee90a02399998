// The host device with what only a GPU has: streams and graphs that the host program knows by native handles
// and gives work to on its own, and captures of such streams. Owns nothing of the wrapped device. For tests
// of what a recording does with work that is not gk's, where there is no GPU.
#pragma once

#include <memory>
#include <vector>

#include "runtime/hal/device.h"

namespace gk::test {

class NativeGraph;

/// A stream; its native handle is its address. Work given to it while it is captured becomes nodes.
class NativeStream : public hal::Stream {
 public:
  NativeStream(std::shared_ptr<hal::Stream> inner, bool blocking)
      : inner(std::move(inner)), blocking(blocking) {}
  Result<hal::NodeId> kernel(const hal::KernelLaunch& l, std::span<const hal::NodeId>) override;
  Result<hal::NodeId> copy(const hal::CopyOp& op, std::span<const hal::NodeId>) override;
  Result<hal::NodeId> library(const hal::LibraryOp& op, std::span<const hal::NodeId>) override;
  Result<hal::NodeId> host_call(std::function<void()> f, std::span<const hal::NodeId>) override;
  Result<hal::NodeId> conditional(const hal::ConditionalOp& op, std::span<const hal::NodeId>) override;
  void* native() const override { return const_cast<NativeStream*>(target()); }
  Result<bool> is_capturing() override { return target()->graph != nullptr || target()->captured_by_host; }
  Result<void> synchronize() override;
  Result<std::unique_ptr<hal::Event>> record() override;
  Result<void> wait(hal::Event& e) override;

  const NativeStream* target() const { return of != nullptr ? of : this; }
  NativeStream* target() { return of != nullptr ? of : this; }
  std::shared_ptr<hal::Stream> inner;
  bool blocking = false;
  NativeStream* of = nullptr;    // of a wrapped one: the host program's
  NativeGraph* graph = nullptr;  // what it is captured into
  bool captured_by_host = false;
  int in_capture = 0;  // events and waits that would have become part of a capture
};

class NativeGraph : public hal::Graph {
 public:
  explicit NativeGraph(std::shared_ptr<hal::Graph> inner) : inner(std::move(inner)) {}
  ~NativeGraph() override;
  Result<hal::NodeId> kernel(const hal::KernelLaunch& l, std::span<const hal::NodeId> d) override {
    return inner->kernel(l, d);
  }
  Result<hal::NodeId> copy(const hal::CopyOp& op, std::span<const hal::NodeId> d) override {
    return inner->copy(op, d);
  }
  Result<hal::NodeId> library(const hal::LibraryOp& op, std::span<const hal::NodeId> d) override {
    return inner->library(op, d);
  }
  Result<hal::NodeId> host_call(std::function<void()> f, std::span<const hal::NodeId> d) override {
    return inner->host_call(std::move(f), d);
  }
  Result<hal::NodeId> conditional(const hal::ConditionalOp& op, std::span<const hal::NodeId> d) override {
    return inner->conditional(op, d);
  }
  Result<std::unique_ptr<hal::GraphExec>> instantiate() override;
  int64_t num_nodes() const override { return inner->num_nodes(); }
  int64_t num_edges() const override { return inner->num_edges(); }
  Result<void> begin_capture(hal::Stream& s, hal::CaptureMode, std::span<const hal::NodeId> after) override;
  Result<hal::NodeId> captured() override;
  Result<void> resume_capture(hal::NodeId node) override;
  Result<void> end_capture() override;
  int64_t mark() const override { return inner->mark(); }
  Result<void> rollback(int64_t mark) override { return inner->rollback(mark); }
  Result<void> retain(std::function<void()> f) override { return inner->retain(std::move(f)); }
  std::vector<void*> native_nodes(hal::NodeId n) const override {
    return {reinterpret_cast<void*>(static_cast<uintptr_t>(n) + 1)};
  }

  std::shared_ptr<hal::Graph> inner;
  NativeStream* stream = nullptr;  // captured
  hal::NodeId at = -1;             // what work given to it comes after
  bool fresh = false;              // some was given
  bool broken = false;             // by somebody outside
};

/// A CUgraph of the host program's.
struct HostsGraph {
  std::shared_ptr<hal::Graph> graph;
};

class NativeDevice : public hal::Device {
 public:
  explicit NativeDevice(std::shared_ptr<hal::Device> inner) : inner_(std::move(inner)) {}
  /// A stream of the host program's.
  std::unique_ptr<NativeStream> hosts_stream(bool blocking = false);
  HostsGraph hosts_graph();

  const hal::DeviceInfo& info() const override { return inner_->info(); }
  Result<hal::Allocation> allocate(int64_t n, hal::Placement p) override { return inner_->allocate(n, p); }
  Result<void> release(const hal::Allocation& a) override { return inner_->release(a); }
  Result<std::shared_ptr<hal::Module>> load(const program::Code& c) override { return inner_->load(c); }
  Result<std::unique_ptr<hal::Stream>> create_stream() override;
  Result<std::unique_ptr<hal::Graph>> create_graph() override;
  Result<std::unique_ptr<hal::Stream>> wrap_stream(void* native) override;
  Result<std::unique_ptr<hal::Event>> wrap_event(void* e) override { return inner_->wrap_event(e); }
  Result<std::unique_ptr<hal::Graph>> wrap_graph(void* native, std::span<void* const> after,
                                                 hal::NodeId& frontier) override;
  Result<void> trim_graph_memory() override { return inner_->trim_graph_memory(); }
  Result<void> read(void* d, const void* s, int64_t n, hal::Stream& t) override;
  Result<void> write(void* d, const void* s, int64_t n, hal::Stream& t) override;
  Result<void> synchronize() override { return inner_->synchronize(); }
  bool supports(const program::LibraryCall& c) const override { return inner_->supports(c); }
  int64_t driver_calls() const override { return inner_->driver_calls(); }

 private:
  std::shared_ptr<hal::Device> inner_;
};

}  // namespace gk::test
