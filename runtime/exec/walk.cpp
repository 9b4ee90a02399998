#include "runtime/exec/walk.h"

namespace gk::exec {
namespace {

using program::Arg;
using program::Ref;
using program::Step;

std::byte* resolve(const Ref& ref, const Frame& frame) {
  std::byte* const base =
      ref.kind == Ref::Kind::Arena ? frame.arena : frame.slots[static_cast<size_t>(ref.index)];
  return base + ref.offset_bytes;
}

}  // namespace

Frame frame_of(const Loaded::Impl& loaded, const Bindings& bindings, void* arena, void* faults,
               std::vector<std::byte*> room) {
  Frame f;
  f.program = &loaded.resolved;
  f.slots = std::move(room);
  f.slots.clear();
  f.slots.reserve(bindings.slots.size());
  for (const SlotBinding& s : bindings.slots) {
    f.slots.push_back(static_cast<std::byte*>(s.block->address()) + s.offset_bytes);
  }
  f.scalars = bindings.scalars.empty() ? loaded.program->scalars : bindings.scalars;
  f.arena = static_cast<std::byte*>(arena);
  f.faults = faults;
  return f;
}

Frame body_frame(const Frame& outer, size_t step, size_t body) {
  const program::Body& b = outer.program->program->steps[step].bodies[body];
  Frame f;
  f.program = &outer.program->bodies[step][body];
  f.slots.reserve(b.slots.size());
  for (const Ref& r : b.slots) f.slots.push_back(resolve(r, outer));
  for (const int32_t s : b.scalars)
    f.own_scalars.push_back(s == program::Body::kTurn ? Scalar::of_int(0)
                                                      : outer.scalars[static_cast<size_t>(s)]);
  f.scalars = f.own_scalars;
  f.arena = outer.arena + b.arena_offset_bytes;
  f.faults = outer.faults;
  return f;
}

void set_turn(Frame& inside, const program::Body& b, int64_t turn) {
  for (size_t i = 0; i < b.scalars.size(); ++i) {
    if (b.scalars[i] == program::Body::kTurn) inside.own_scalars[i] = Scalar::of_int(turn);
  }
}

Result<hal::NodeId> Walker::step(hal::Recorder& r, const Frame& frame, size_t index,
                                 std::span<const hal::NodeId> deps, const Each* each) {
  const Step& s = frame.program->program->steps[index];
  Result<hal::NodeId> node = -1;
  switch (s.kind) {
    case Step::Kind::Launch: node = kernel(r, frame, index, deps); break;
    case Step::Kind::Copy:
      node = r.copy({resolve(s.writes[0], frame), resolve(s.reads[0], frame), s.writes[0].size_bytes}, deps);
      break;
    case Step::Kind::Library: {
      hal::LibraryOp op{&s.library, {}, resolve(s.writes[0], frame)};
      for (size_t i = 0; i < s.reads.size(); ++i) op.reads[i] = resolve(s.reads[i], frame);
      node = r.library(op, deps);
      break;
    }
    case Step::Kind::If:
    case Step::Kind::While: node = conditional(r, frame, index, deps, each); break;
    case Step::Kind::Repeat: return repeat(r, frame, index, deps, each);
  }
  if (node && each != nullptr) (*each)(*node);
  return node;
}

Result<hal::NodeId> Walker::repeat(hal::Recorder& r, const Frame& frame, size_t index,
                                   std::span<const hal::NodeId> deps, const Each* each) {
  const Step& s = frame.program->program->steps[index];
  Frame inside = body_frame(frame, index, 0);
  hal::NodeId last = deps.empty() ? -1 : deps.back();
  for (int64_t turn = 0; turn < s.times; ++turn) {
    set_turn(inside, s.bodies[0], turn);
    GK_CHECK(walk(*this, r, inside, last, each));
  }
  return last;
}

Result<hal::NodeId> Walker::kernel(hal::Recorder& r, const Frame& frame, size_t index,
                                   std::span<const hal::NodeId> deps) {
  const Step& s = frame.program->program->steps[index];
  const size_t count = s.args.size();
  values_.assign(count, 0);
  params_.resize(count);
  sizes_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Arg& a = s.args[i];
    uint64_t* value = &values_[i];
    params_[i] = value;
    sizes_[i] = 8;
    switch (a.kind) {
      case Arg::Kind::Pointer: *value = reinterpret_cast<uint64_t>(resolve(a.ref, frame)); break;
      case Arg::Kind::Faults: *value = reinterpret_cast<uint64_t>(frame.faults); break;
      case Arg::Kind::StepIndex: *value = static_cast<uint64_t>(frame.program->first_step) + index; break;
      case Arg::Kind::Value:
        a.value.store(value);
        sizes_[i] = static_cast<uint32_t>(size_bytes(a.value.dtype));
        break;
      case Arg::Kind::ScalarSlot:
        frame.scalars[static_cast<size_t>(a.slot)].cast(a.dtype).store(value);
        sizes_[i] = static_cast<uint32_t>(size_bytes(a.dtype));
        break;
    }
  }
  return r.kernel({frame.program->functions[index], s.dims, params_, sizes_}, deps);
}

Result<hal::NodeId> Walker::conditional(hal::Recorder& r, const Frame& frame, size_t index,
                                        std::span<const hal::NodeId> deps, const Each* each) {
  const Step& s = frame.program->program->steps[index];
  std::vector<Frame> bodies;
  for (size_t b = 0; b < s.bodies.size(); ++b) bodies.push_back(body_frame(frame, index, b));
  hal::ConditionalOp op;
  op.kind = s.kind == Step::Kind::If ? hal::ConditionalOp::Kind::If : hal::ConditionalOp::Kind::While;
  op.condition = resolve(s.reads[0], frame);
  op.has_else = s.bodies.size() > 1;
  op.record = [&](hal::Recorder& inside, int body) -> Result<void> {
    hal::NodeId last = -1;
    return walk(inside, bodies[static_cast<size_t>(body)], last, each);
  };
  return r.conditional(op, deps);
}

Result<void> walk(hal::Recorder& r, const Frame& frame, hal::NodeId& last, const Walker::Each* each) {
  Walker walker;
  return walk(walker, r, frame, last, each);
}

Result<void> walk(Walker& walker, hal::Recorder& r, const Frame& frame, hal::NodeId& last,
                  const Walker::Each* each) {
  const program::Program& p = *frame.program->program;
  for (size_t i = 0; i < p.steps.size(); ++i) {
    if (is_empty(p.steps[i], p.target(p.steps[i]))) continue;
    const std::span<const hal::NodeId> deps = last < 0 ? std::span<const hal::NodeId>{} : std::span(&last, 1);
    GK_TRY(const hal::NodeId node, walker.step(r, frame, i, deps, each));
    last = node;
  }
  return {};
}

}  // namespace gk::exec
