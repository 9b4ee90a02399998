#include "runtime/exec/driver_graph.h"

#include <fmt/format.h>

namespace gk::exec {
namespace {

using program::Arg;
using program::Ref;
using program::Step;

/// A recorder that changes the node it is told to, in place of adding one.
class Patcher : public hal::Recorder {
 public:
  explicit Patcher(hal::GraphExec& exec) : exec_(exec) {}
  void aim(hal::NodeId node) { node_ = node; }
  Result<hal::NodeId> kernel(const hal::KernelLaunch& launch, std::span<const hal::NodeId>) override {
    GK_CHECK(exec_.set_kernel(node_, launch));
    return node_;
  }
  Result<hal::NodeId> copy(const hal::CopyOp& op, std::span<const hal::NodeId>) override {
    GK_CHECK(exec_.set_copy(node_, op));
    return node_;
  }
  Result<hal::NodeId> matmul(const hal::MatMulOp&, std::span<const hal::NodeId>) override {
    return fail(ErrorKind::Capture, "E0705", "a library call's node cannot be changed in place");
  }
  Result<hal::NodeId> host_call(std::function<void()>, std::span<const hal::NodeId>) override {
    return fail(ErrorKind::Capture, "E0705", "a host call's node cannot be changed in place");
  }
  Result<hal::NodeId> conditional(const hal::ConditionalOp&, std::span<const hal::NodeId>) override {
    return fail(ErrorKind::Capture, "E0705", "a conditional node cannot be changed in place");
  }

 private:
  hal::GraphExec& exec_;
  hal::NodeId node_ = -1;
};

std::vector<const Step*> operations(const program::Program& p) {
  std::vector<const Step*> ops;
  for (const Step& s : p.steps) {
    if (!is_empty(s, p.target)) ops.push_back(&s);
  }
  return ops;
}

std::string_view name(Step::Kind k) {
  switch (k) {
    case Step::Kind::Launch: return "kernel";
    case Step::Kind::Copy: return "copy";
    case Step::Kind::MatMul: return "library call";
  }
  return "";
}

}  // namespace

Result<std::shared_ptr<Arena>> make_arena(Core& core, int64_t size_bytes) {
  auto arena = std::make_shared<Arena>();
  if (size_bytes > 0) {
    GK_TRY(arena->block, core.pool().allocate(size_bytes));
  }
  return arena;
}

Result<std::shared_ptr<DriverGraph>> DriverGraph::build(Core& core, std::span<const GraphNode> nodes,
                                                        void* arena) {
  auto built = std::make_shared<DriverGraph>();
  GK_TRY(built->graph_, core.device().create_graph());
  hal::NodeId last = -1;
  for (const GraphNode& node : nodes) {
    std::vector<hal::NodeId> ids;
    const Frame frame{&node.program->impl(), &node.bindings, arena, core.faults()};
    GK_CHECK(walk(*built->graph_, frame, last, [&](hal::NodeId id) { ids.push_back(id); }));
    built->ids_.push_back(std::move(ids));
    built->programs_.push_back(node.program);
  }
  return built;
}

bool Changed::touches(const Step& s) const {
  if (everything) return true;
  const auto moved = [&](const Ref& r) {
    if (r.kind == Ref::Kind::Arena) return arena;
    return slots != nullptr && (*slots)[static_cast<size_t>(r.index)] != 0;
  };
  if (s.kind != Step::Kind::Launch) {
    for (const auto* refs : {&s.reads, &s.writes}) {
      for (const Ref& r : *refs) {
        if (moved(r)) return true;
      }
    }
    return false;
  }
  for (const Arg& a : s.args) {
    if (a.kind == Arg::Kind::Pointer && moved(a.ref)) return true;
    if (a.kind == Arg::Kind::ScalarSlot && scalars != nullptr &&
        (*scalars)[static_cast<size_t>(a.slot)] != 0) {
      return true;
    }
  }
  return false;
}

Result<void> patch(hal::GraphExec& exec, const Frame& frame, const std::vector<hal::NodeId>& ids,
                   const Changed& changed, int64_t& patched) {
  Patcher patcher(exec);
  Walker walker;
  const program::Program& p = *frame.loaded->program;
  size_t operation = 0;
  for (size_t i = 0; i < p.steps.size(); ++i) {
    if (is_empty(p.steps[i], p.target)) continue;
    const hal::NodeId id = ids[operation++];
    if (!changed.touches(p.steps[i])) continue;
    patcher.aim(id);
    GK_CHECK(walker.step(patcher, frame, i, {}));
    ++patched;
  }
  return {};
}

std::string why_not_patchable(const program::Program& from, const program::Program& to,
                              const Changed& changed) {
  const std::vector<const Step*> a = operations(from), b = operations(to);
  if (a.size() != b.size()) {
    return fmt::format("the node has {} operations and the new program {}", a.size(), b.size());
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i]->kind != b[i]->kind) {
      return fmt::format("operation {} is a {} and would become a {}", i, name(a[i]->kind), name(b[i]->kind));
    }
    if (b[i]->kind == Step::Kind::MatMul && changed.touches(*b[i])) {
      return fmt::format("operation {} is a library call, which cannot be patched", i);
    }
  }
  return {};
}

}  // namespace gk::exec
