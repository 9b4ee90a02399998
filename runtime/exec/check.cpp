// What a program and its bindings must be before anything of them is given to a recorder.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/exec/walk.h"

namespace gk::exec {
namespace {

using program::Arg;
using program::Ref;
using program::Step;

Failure broken(const Step& s, std::string_view what) {
  return fail(ErrorKind::Internal, "E0902", fmt::format("step '{}': {}", s.label, what), s.span);
}

bool has_device(const program::Program& p, int32_t device) {
  return device >= 0 && static_cast<size_t>(device) < p.targets.size();
}

Result<void> check_ref(const program::Program& p, const Step& s, const Ref& r) {
  if (!has_device(p, r.device)) return broken(s, fmt::format("memory of no device {}", r.device));
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

Result<void> check_body(const program::Program& p, const Step& s, const program::Body& b) {
  if (b.program == nullptr) return broken(s, "a body without a program");
  const program::Program& inner = *b.program;
  if (inner.targets != p.targets) return broken(s, "a body for another kind of device");
  if (b.slots.size() != inner.slots.size() || b.scalars.size() != inner.scalars.size()) {
    return broken(s, "a body is given as many arrays and scalars as it has");
  }
  for (size_t i = 0; i < b.slots.size(); ++i) {
    GK_CHECK(check_ref(p, s, b.slots[i]));
    if (b.slots[i].size_bytes < inner.slots[i].size_bytes) {
      return broken(s,
                    fmt::format("a body's array '{}' is larger than what it is given", inner.slots[i].name));
    }
  }
  for (const int32_t slot : b.scalars) {
    if (slot == program::Body::kTurn && s.kind == Step::Kind::Repeat) continue;
    if (slot < 0 || static_cast<size_t>(slot) >= p.scalars.size()) {
      return broken(s, fmt::format("there is no scalar {}", slot));
    }
  }
  if (b.arena_offset_bytes < 0 || b.arena_offset_bytes > p.arena_bytes ||
      inner.arena_bytes > p.arena_bytes - b.arena_offset_bytes) {
    return broken(s, "a body's temporaries do not fit the arena");
  }
  return check_program(inner);
}

Result<void> check_conditional(const program::Program& p, const Step& s) {
  const bool loop = s.kind == Step::Kind::While;
  if (s.reads.empty() || s.reads[0].size_bytes != 1) return broken(s, "a condition is one byte");
  if (loop ? s.bodies.size() != 1 : (s.bodies.empty() || s.bodies.size() > 2)) {
    return broken(s, "a loop has one body, a branch one or two");
  }
  for (const program::Body& b : s.bodies) GK_CHECK(check_body(p, s, b));
  const auto does_something = [](const program::Body& b) {
    return std::any_of(b.program->steps.begin(), b.program->steps.end(),
                       [&](const Step& inner) { return !is_empty(inner, b.program->target(inner)); });
  };
  if (loop && !does_something(s.bodies[0])) return broken(s, "a loop whose body does nothing never ends");
  return {};
}

void note(std::vector<SlotUse>& uses, const Ref& r, bool written) {
  if (r.kind != Ref::Kind::Slot || r.size_bytes == 0) return;
  SlotUse& use = uses[static_cast<size_t>(r.index)];
  const int64_t end = r.offset_bytes + r.size_bytes;
  const bool first = !use.read && !use.written;
  use.begin_bytes = first ? r.offset_bytes : std::min(use.begin_bytes, r.offset_bytes);
  use.end_bytes = std::max(use.end_bytes, end);
  (written ? use.written : use.read) = true;
}

}  // namespace

Result<void> check_program(const program::Program& p) {
  if (p.targets.size() != 1) {
    return fail(
        ErrorKind::Unsupported, "E0405",
        fmt::format("'{}' is for {} devices; one is what can be run on now", p.name, p.targets.size()));
  }
  for (const Step& s : p.steps) {
    if (!has_device(p, s.device)) return broken(s, fmt::format("there is no device {}", s.device));
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
    switch (s.kind) {
      case Step::Kind::Launch:
        if (s.code < 0 || static_cast<size_t>(s.code) >= p.codes.size()) {
          return broken(s, fmt::format("there is no code {}", s.code));
        }
        break;
      case Step::Kind::Copy:
        if (s.reads.size() != 1 || s.writes.size() != 1 || s.reads[0].size_bytes != s.writes[0].size_bytes) {
          return broken(s, "a copy has one source and one destination of one size");
        }
        break;
      case Step::Kind::Library:
        if (s.reads.size() != static_cast<size_t>(num_reads(s.library)) || s.writes.size() != 1) {
          return broken(s, fmt::format("a library's {} reads {} arrays and writes one", name(s.library),
                                       num_reads(s.library)));
        }
        break;
      case Step::Kind::If:
      case Step::Kind::While: GK_CHECK(check_conditional(p, s)); break;
      case Step::Kind::Repeat:
        if (s.bodies.size() != 1 || s.times < 0) return broken(s, "a repetition has one body, and turns");
        GK_CHECK(check_body(p, s, s.bodies[0]));
        break;
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
    case Step::Kind::Library: return is_empty(s.library);
    case Step::Kind::If:
    case Step::Kind::Repeat:
      // A branch to nothing is no step; a loop always is one, for its condition.
      return (s.kind == Step::Kind::Repeat && s.times == 0) ||
             std::all_of(s.bodies.begin(), s.bodies.end(), [](const program::Body& b) {
               return std::all_of(b.program->steps.begin(), b.program->steps.end(), [&](const Step& inner) {
                 return is_empty(inner, b.program->target(inner));
               });
             });
    case Step::Kind::While: return false;
    case Step::Kind::Launch: break;
  }
  if (target == program::TargetKind::Host) return s.dims.items <= 0;
  return s.dims.grid[0] == 0 || s.dims.grid[1] == 0 || s.dims.grid[2] == 0;
}

std::vector<SlotUse> slot_uses(const program::Program& p) {
  std::vector<SlotUse> uses(p.slots.size());
  for (const Step& s : p.steps) {
    for (const Ref& r : s.reads) note(uses, r, false);
    for (const Ref& r : s.writes) note(uses, r, true);
  }
  return uses;
}

}  // namespace gk::exec
