#include "runtime/exec/walk.h"

#include <fmt/format.h>

namespace gk::exec {
namespace {

using program::Arg;
using program::Ref;
using program::Step;

std::byte* resolve(const Ref& ref, const Frame& frame) {
  if (ref.kind == Ref::Kind::Arena) return static_cast<std::byte*>(frame.arena) + ref.offset_bytes;
  const SlotBinding& slot = frame.bindings->slots[static_cast<size_t>(ref.index)];
  return static_cast<std::byte*>(slot.block->address()) + slot.offset_bytes + ref.offset_bytes;
}

const Scalar& scalar(const Frame& frame, int32_t slot) {
  const auto i = static_cast<size_t>(slot);
  const std::vector<Scalar>& given = frame.bindings->scalars;
  return given.empty() ? frame.loaded->program->scalars[i] : given[i];
}

tl::unexpected<Error> broken(const Step& s, std::string_view what) {
  return fail(ErrorKind::Internal, "E0902", fmt::format("step '{}': {}", s.label, what), s.span);
}

Result<void> check_ref(const program::Program& p, const Step& s, const Ref& r) {
  if (r.offset_bytes < 0 || r.size_bytes < 0) return broken(s, "a negative extent");
  if (r.kind == Ref::Kind::Slot && (r.index < 0 || static_cast<size_t>(r.index) >= p.slots.size())) {
    return broken(s, fmt::format("there is no slot {}", r.index));
  }
  const int64_t size =
      r.kind == Ref::Kind::Arena ? p.arena_bytes : p.slots[static_cast<size_t>(r.index)].size_bytes;
  if (r.offset_bytes > size || r.size_bytes > size - r.offset_bytes) {
    return broken(s, fmt::format("{} bytes at {} do not fit {} bytes", r.size_bytes, r.offset_bytes, size));
  }
  return {};
}

}  // namespace

Result<void> check_program(const program::Program& p) {
  for (const Step& s : p.steps) {
    for (const auto* refs : {&s.reads, &s.writes}) {
      for (const Ref& r : *refs) GK_CHECK(check_ref(p, s, r));
    }
    for (const Arg& a : s.args) {
      if (a.kind == Arg::Kind::Pointer) GK_CHECK(check_ref(p, s, a.ref));
      if (a.kind == Arg::Kind::ScalarSlot &&
          (a.slot < 0 || static_cast<size_t>(a.slot) >= p.scalars.size())) {
        return broken(s, fmt::format("there is no scalar {}", a.slot));
      }
    }
    if (s.kind == Step::Kind::Launch && (s.code < 0 || static_cast<size_t>(s.code) >= p.codes.size())) {
      return broken(s, fmt::format("there is no code {}", s.code));
    }
    if (s.kind == Step::Kind::Copy &&
        (s.reads.size() != 1 || s.writes.size() != 1 || s.reads[0].size_bytes != s.writes[0].size_bytes)) {
      return broken(s, "a copy has one source and one destination of one size");
    }
    if (s.kind == Step::Kind::MatMul &&
        (s.reads.size() != (s.matmul.has_bias ? 3U : 2U) || s.writes.size() != 1)) {
      return broken(s, "a matrix product reads two matrices, and a bias where it has one, and writes one");
    }
  }
  return {};
}

Result<void> check_bindings(const program::Program& p, const Bindings& b, Span span) {
  if (b.slots.size() != p.slots.size()) {
    return fail(ErrorKind::Internal, "E0902",
                fmt::format("'{}' has {} arrays and was given {}", p.name, p.slots.size(), b.slots.size()),
                span);
  }
  if (!b.scalars.empty() && b.scalars.size() != p.scalars.size()) {
    return fail(
        ErrorKind::Internal, "E0902",
        fmt::format("'{}' has {} scalars and was given {}", p.name, p.scalars.size(), b.scalars.size()),
        span);
  }
  for (size_t i = 0; i < b.slots.size(); ++i) {
    const SlotBinding& slot = b.slots[i];
    const program::Slot& wanted = p.slots[i];
    if (slot.block == nullptr) {
      return fail(ErrorKind::Internal, "E0902", fmt::format("array '{}' was not given", wanted.name), span);
    }
    if (slot.block->released() && slot.block->leases() == 0) {
      return fail(ErrorKind::Lease, "E0602",
                  fmt::format("the memory of '{}' was given back already", wanted.name), span);
    }
    const int64_t size = slot.block->size_bytes();
    if (slot.offset_bytes < 0 || slot.offset_bytes > size || wanted.size_bytes > size - slot.offset_bytes) {
      return fail(ErrorKind::Internal, "E0902",
                  fmt::format("array '{}' needs {} bytes at {} of a block of {}", wanted.name,
                              wanted.size_bytes, slot.offset_bytes, size),
                  span);
    }
  }
  return {};
}

bool is_empty(const Step& s, program::TargetKind target) {
  switch (s.kind) {
    case Step::Kind::Copy: return s.writes[0].size_bytes == 0;
    case Step::Kind::MatMul: return s.matmul.m == 0 || s.matmul.n == 0 || s.matmul.batch == 0;
    case Step::Kind::Launch: break;
  }
  if (target == program::TargetKind::Host) return s.dims.items <= 0;
  return s.dims.grid[0] == 0 || s.dims.grid[1] == 0 || s.dims.grid[2] == 0;
}

Result<hal::NodeId> Walker::step(hal::Recorder& r, const Frame& frame, size_t index,
                                 std::span<const hal::NodeId> deps) {
  const Step& s = frame.loaded->program->steps[index];
  if (s.kind == Step::Kind::Copy) {
    return r.copy({resolve(s.writes[0], frame), resolve(s.reads[0], frame), s.writes[0].size_bytes}, deps);
  }
  if (s.kind == Step::Kind::MatMul) {
    const void* bias = s.matmul.has_bias ? resolve(s.reads[2], frame) : nullptr;
    return r.matmul({&s.matmul, resolve(s.reads[0], frame), resolve(s.reads[1], frame), bias,
                     resolve(s.writes[0], frame)},
                    deps);
  }
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
      case Arg::Kind::StepIndex: *value = static_cast<uint64_t>(frame.loaded->first_step) + index; break;
      case Arg::Kind::Value:
        a.value.store(value);
        sizes_[i] = static_cast<uint32_t>(size_bytes(a.value.dtype));
        break;
      case Arg::Kind::ScalarSlot:
        scalar(frame, a.slot).cast(a.dtype).store(value);
        sizes_[i] = static_cast<uint32_t>(size_bytes(a.dtype));
        break;
    }
  }
  return r.kernel({frame.loaded->functions[index], s.dims, params_, sizes_}, deps);
}

Result<void> walk(hal::Recorder& r, const Frame& frame, hal::NodeId& last,
                  const std::function<void(hal::NodeId)>& each) {
  Walker walker;
  const program::Program& p = *frame.loaded->program;
  for (size_t i = 0; i < p.steps.size(); ++i) {
    if (is_empty(p.steps[i], p.target)) continue;
    const std::span<const hal::NodeId> deps = last < 0 ? std::span<const hal::NodeId>{} : std::span(&last, 1);
    GK_TRY(const hal::NodeId node, walker.step(r, frame, i, deps));
    last = node;
    if (each) each(node);
  }
  return {};
}

}  // namespace gk::exec
