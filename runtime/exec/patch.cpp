#include "runtime/exec/patch.h"

#include <fmt/format.h>

#include <algorithm>

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
  Result<hal::NodeId> library(const hal::LibraryOp& op, std::span<const hal::NodeId>) override {
    GK_CHECK(exec_.set_library(node_, op));
    return node_;
  }
  Result<hal::NodeId> host_call(std::function<void()>, std::span<const hal::NodeId>) override {
    return fail(ErrorKind::Capture, "E0705", "a call of a host function cannot be changed in place");
  }
  Result<hal::NodeId> conditional(const hal::ConditionalOp&, std::span<const hal::NodeId>) override {
    return fail(ErrorKind::Capture, "E0705", "a conditional cannot be changed in place");
  }

 private:
  hal::GraphExec& exec_;
  hal::NodeId node_ = -1;
};

bool is_conditional(const Step& s) { return s.kind == Step::Kind::If || s.kind == Step::Kind::While; }

/// What `changed` means inside a body.
struct Inside {
  Marks slots, scalars;
};
Inside inside(const Changed& changed, const program::Body& b) {
  Inside in;
  // Where everything changes nothing is said of single slots.
  const auto scalar = [&](int32_t s) {
    return s >= 0 && changed.scalars != nullptr && changed.scalars->has(static_cast<size_t>(s));
  };
  for (size_t i = 0; i < b.slots.size(); ++i) {
    if (changed.everything || changed.moved(b.slots[i])) in.slots.set(i);
  }
  for (size_t i = 0; i < b.scalars.size(); ++i) {
    if (changed.everything || scalar(b.scalars[i])) in.scalars.set(i);
  }
  return in;
}

/// An operation with what changes of it.
struct Operation {
  const Step* step = nullptr;
  bool touched = false;
};

// In the walker's order: a conditional after the operations of its bodies, a repetition not at all.
template <class F>
void each_operation(const program::Program& p, const Changed& changed, F& f) {
  for (const Step& s : p.steps) {
    if (is_empty(s, p.target(s))) continue;
    const bool repeats = s.kind == Step::Kind::Repeat;
    for (const program::Body& b : s.bodies) {
      const Inside in = inside(changed, b);
      for (int64_t turn = 0; turn < (repeats ? s.times : 1); ++turn)
        each_operation(*b.program, {changed.arena, &in.slots, &in.scalars, changed.everything}, f);
    }
    if (!repeats) f(Operation{&s, changed.touches(s)});
  }
}

std::vector<Operation> operations(const program::Program& p, const Changed& changed) {
  std::vector<Operation> out;
  const auto add = [&](const Operation& o) { out.push_back(o); };
  each_operation(p, changed, add);
  return out;
}

std::string_view name(Step::Kind k) {
  switch (k) {
    case Step::Kind::Launch: return "kernel";
    case Step::Kind::Copy: return "copy";
    case Step::Kind::Library: return "library call";
    case Step::Kind::If: return "branch";
    case Step::Kind::While: return "loop";
    case Step::Kind::Repeat: return "repetition";
  }
  return "";
}

std::string why_not_patchable(const Operation& o, size_t index, bool can_set_library) {
  if (is_conditional(*o.step)) {
    return fmt::format("operation {} is a {}, whose condition cannot be patched", index, name(o.step->kind));
  }
  if (o.step->kind == Step::Kind::Library && !can_set_library) {
    return fmt::format("operation {} is a library call, which cannot be patched", index);
  }
  return {};
}

Result<void> patch_steps(Patcher& patcher, Walker& walker, const Frame& frame,
                         const std::vector<hal::NodeId>& ids, size_t& operation, const Changed& changed,
                         int64_t& patched) {
  const program::Program& p = *frame.program->program;
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const Step& s = p.steps[i];
    if (is_empty(s, p.target(s))) continue;
    const bool repeats = s.kind == Step::Kind::Repeat;
    for (size_t b = 0; b < s.bodies.size(); ++b) {
      const Inside in = inside(changed, s.bodies[b]);
      Frame body = body_frame(frame, i, b);
      for (int64_t turn = 0; turn < (repeats ? s.times : 1); ++turn) {
        if (repeats) set_turn(body, s.bodies[b], turn);
        GK_CHECK(patch_steps(patcher, walker, body, ids, operation,
                             {changed.arena, &in.slots, &in.scalars, changed.everything}, patched));
      }
    }
    if (repeats) continue;
    const hal::NodeId id = ids[operation++];
    if (is_conditional(s) || !changed.touches(s)) continue;
    patcher.aim(id);
    GK_CHECK(walker.step(patcher, frame, i, {}, nullptr));
    ++patched;
  }
  return {};
}

}  // namespace

bool Changed::moved(const Ref& r) const {
  if (r.kind == Ref::Kind::Arena) return arena;
  return slots != nullptr && slots->has(static_cast<size_t>(r.index));
}

bool Changed::touches(const Step& s) const {
  if (everything) return true;
  // Bodies are asked on their own.
  if (is_conditional(s)) return moved(s.reads[0]);
  if (s.kind != Step::Kind::Launch) {
    const auto any = [&](const std::vector<Ref>& refs) {
      return std::any_of(refs.begin(), refs.end(), [&](const Ref& r) { return moved(r); });
    };
    return any(s.reads) || any(s.writes);
  }
  return std::any_of(s.args.begin(), s.args.end(), [&](const Arg& a) {
    if (a.kind == Arg::Kind::Pointer) return moved(a.ref);
    return a.kind == Arg::Kind::ScalarSlot && scalars != nullptr && scalars->has(static_cast<size_t>(a.slot));
  });
}

Result<void> patch(hal::GraphExec& exec, Walker& walker, const Frame& frame,
                   const std::vector<hal::NodeId>& ids, const Changed& changed, int64_t& patched) {
  Patcher patcher(exec);
  size_t operation = 0;
  return patch_steps(patcher, walker, frame, ids, operation, changed, patched);
}

std::string why_not_patchable(const program::Program& from, const program::Program& to,
                              const Changed& changed, bool can_set_library) {
  std::string why;
  if (&from == &to) {
    size_t i = 0;
    const auto ask = [&](const Operation& o) {
      if (why.empty() && o.touched) why = why_not_patchable(o, i, can_set_library);
      ++i;
    };
    each_operation(to, changed, ask);
    return why;
  }
  const std::vector<Operation> a = operations(from, {}), b = operations(to, changed);
  if (a.size() != b.size()) {
    return fmt::format("the node has {} operations and the new program {}", a.size(), b.size());
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].step->kind != b[i].step->kind) {
      return fmt::format("operation {} is a {} and would become a {}", i, name(a[i].step->kind),
                         name(b[i].step->kind));
    }
    if (a[i].step->bodies.size() != b[i].step->bodies.size()) {
      return fmt::format("operation {} has another number of branches", i);
    }
    if (b[i].touched) why = why_not_patchable(b[i], i, can_set_library);
    if (!why.empty()) return why;
  }
  return {};
}

bool same_operations(const program::Program& from, const program::Program& to) {
  const std::vector<Operation> a = operations(from, {}), b = operations(to, {});
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Operation& x, const Operation& y) {
    return x.step->kind == y.step->kind && x.step->bodies.size() == y.step->bodies.size();
  });
}

}  // namespace gk::exec
