// Graphs: work recorded once and launched many times. A Graph is what was recorded; an Exec is an executable
// made from it. Both lease all arrays and code they use, so these live as long as they do, whatever becomes
// of the handles. Graphs and executables are used by one thread at a time (checked, E0710); different ones on
// different threads. docs/graphs.md is the guide.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gk/function.h"

GK_API_BEGIN

namespace detail {
struct GraphImpl;
struct ExecImpl;
}  // namespace detail

class Exec;
class Graph;

/// An operation of a graph, or several that were recorded as one named node. It stays good when the graph
/// grows, and names the same operation in executables of the graph.
class Node {
 public:
  Node() = default;
  /// Empty for an operation recorded outside named nodes.
  const std::string& name() const { return name_; }

 private:
  friend struct detail::Access;
  std::weak_ptr<detail::GraphImpl> graph_;
  std::string name_;
  int64_t index_ = -1;
};

struct NodeOptions {
  /// The nodes that come before; checked against what is read and written. Not given: all so far.
  std::optional<std::vector<Node>> after{};
};

class Graph {
 public:
  Graph() = default;
  /// False for no graph: default-made, or a quiet capture that could not be.
  explicit operator bool() const noexcept { return impl_ != nullptr; }
  const std::string& name() const;

  /// Records `f` as one more node, of this name, after the nodes given. Whatever goes wrong, the graph is as
  /// it was. Executables made before do not change. Errors: E0408 (the name is taken), E0701 (an order that
  /// reads and writes need is missing), E0704, E0717 (a node of another graph), and what f() raises.
  Node add(std::string name, NodeOptions options, const std::function<void()>& f);
  Node add(std::string name, const std::function<void()>& f) { return add(std::move(name), {}, f); }
  /// Errors of gk's, also those that f() throws, are returned; other exceptions go through.
  Result<Node> try_add(std::string name, NodeOptions options, const std::function<void()>& f);

  std::vector<Node> nodes() const;
  int64_t num_nodes() const { return static_cast<int64_t>(nodes().size()); }
  /// Errors: E0704.
  Node node(std::string_view name) const { return try_node(name).value(); }
  Result<Node> try_node(std::string_view name) const;
  int64_t num_leases() const;
  /// Nodes, edges, leases and arena, as stable text; the same for Graphviz.
  std::string print() const;
  std::string dot() const;

  Exec instantiate() const;
  Result<Exec> try_instantiate() const;
  /// Gives the leases up now; executables keep theirs. Later use: E0716. Not while it is being added to.
  void close();

 private:
  friend class Context;
  friend struct detail::Access;
  explicit Graph(std::shared_ptr<detail::GraphImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<detail::GraphImpl> impl_;
};

/// How far an update had to go: parameters patched in place, the whole graph handed to the driver, or the
/// executable made again. It means the same; it costs more from step to step.
enum class UpdateRung : uint8_t { None, Patched, GraphUpdated, Reinstantiated };
struct UpdateReport {
  UpdateRung rung = UpdateRung::None;
  std::string reason{};  // why it could not be a lower rung
};

/// A node of an executable, to be retargeted.
class ExecNode {
 public:
  /// From now on the node calls this function or kernel with these arguments; launches in flight keep what
  /// they have. Arrays that only the old call used are released once those are done. All or nothing. Errors:
  /// E0705 (not one operation, another kind, an order the graph does not have), and the errors of a call.
  void update(const Callable& f, std::vector<Value> args, LaunchShape shape = {}) const {
    try_update(f, std::move(args), shape).value();
  }
  Result<void> try_update(const Callable& f, std::vector<Value> args, LaunchShape shape = {}) const;
  /// The same with what `f` calls: exactly one function or kernel.
  void update(Context& ctx, const std::function<void()>& f) const;
  Result<void> try_update(Context& ctx, const std::function<void()>& f) const;

 private:
  friend class Exec;
  ExecNode(std::shared_ptr<detail::ExecImpl> exec, int64_t first, int64_t count, std::string name)
      : exec_(std::move(exec)), first_(first), count_(count), name_(std::move(name)) {}
  std::shared_ptr<detail::ExecImpl> exec_;
  int64_t first_, count_;
  std::string name_;
};

class Exec {
 public:
  Exec() = default;
  explicit operator bool() const noexcept { return impl_ != nullptr; }

  /// Runs it `times` times, after all that used its arrays before, on the context's stream or on one of the
  /// host program's (a CUstream). Returns when submitted. Later work on the arrays, on whatever stream, comes
  /// after it. Errors: E0703 (a graph is being made), E0716 (closed), E0717 (a context of another engine).
  void launch(Context& ctx, int64_t times = 1) const { try_launch(ctx, times).value(); }
  Result<void> try_launch(Context& ctx, int64_t times = 1) const;
  void launch(CUstream_st* stream, int64_t times = 1) const { try_launch(stream, times).value(); }
  Result<void> try_launch(CUstream_st* stream, int64_t times = 1) const;
  /// Sends ahead what the first launch would send.
  void upload(Context& ctx) const { try_upload(ctx).value(); }
  Result<void> try_upload(Context& ctx) const;
  void upload(CUstream_st* stream) const { try_upload(stream).value(); }
  Result<void> try_upload(CUstream_st* stream) const;

  /// Errors: E0704 (no such node), E0717 (a node of another graph).
  ExecNode node(std::string_view name) const { return try_node(name).value(); }
  Result<ExecNode> try_node(std::string_view name) const;
  ExecNode node(const Node& n) const { return try_node(n).value(); }
  Result<ExecNode> try_node(const Node& n) const;
  /// Takes over all nodes of another graph of the same topology. Errors: E0709; it stays as it was.
  void update(const Graph& g) const { try_update(g).value(); }
  Result<void> try_update(const Graph& g) const;
  /// Puts other arrays in the place of those it uses: {{x, x2}, {z, z2}}. All or nothing. Errors: E0706
  /// (another dtype, shape or place of memory; not used by the graph; used by it already), E0716, E0717.
  void rebind(const std::vector<std::pair<Tensor, Tensor>>& pairs) const { try_rebind(pairs).value(); }
  Result<void> try_rebind(const std::vector<std::pair<Tensor, Tensor>>& pairs) const;
  UpdateReport last_update() const;

  int64_t num_leases() const;
  int64_t arena_bytes() const;
  /// Nodes of the driver's graph.
  int64_t num_driver_nodes() const;
  /// Destroys it now; launches in flight go on. Later use: E0716. A second call does nothing.
  void close() const { try_close().value(); }
  Result<void> try_close() const;

 private:
  friend class Graph;
  friend struct detail::Access;
  explicit Exec(std::shared_ptr<detail::ExecImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<detail::ExecImpl> impl_;
};

inline Exec Graph::instantiate() const { return try_instantiate().value(); }

GK_API_END
