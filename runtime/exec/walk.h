// The step walker: a program's steps, with their bindings filled in, given to a recorder one by one. The only
// code that turns steps into operations, for eager runs, graphs and updates alike. Promises program order,
// and that operations are told in the same order however often a program is walked: those of a conditional's
// bodies first, then the conditional itself; those of a repetition turn by turn, which is none itself.
#pragma once

#include <functional>

#include "runtime/exec/loaded.h"

namespace gk::exec {

/// Where one program finds its memory this time.
struct Frame {
  const Resolved* program = nullptr;
  std::vector<std::byte*> slots;
  std::span<const Scalar> scalars;
  std::byte* arena = nullptr;
  void* faults = nullptr;
  std::vector<Scalar> own_scalars;  // of a body: those of the program around it that it takes

  Frame() = default;
  Frame(Frame&&) = default;  // `scalars` may point into own_scalars, whose storage a move keeps
  Frame& operator=(Frame&&) = default;
};
/// `loaded` and `bindings` must outlive it.
/// Its slots are written into `room`.
Frame frame_of(const Loaded::Impl& loaded, const Bindings& bindings, void* arena, void* faults,
               std::vector<std::byte*> room = {});
/// The frame of body `body` of step `step` in the program of `outer`.
Frame body_frame(const Frame& outer, size_t step, size_t body);
/// In `inside`, which is the frame of `b`: what knows the turn is told.
void set_turn(Frame& inside, const program::Body& b, int64_t turn);

/// Checks that the bindings fit the program: numbers of slots and scalars, sizes, memory still owned or
/// leased. Errors: Internal E0902, Lease E0602.
Result<void> check_bindings(const program::Program& p, const Bindings& b, Span span);
/// Checks a program's own references: slots, scalars, codes, arena extents, bodies. Errors: Internal E0902.
Result<void> check_program(const program::Program& p);
/// Whether the step gives the driver anything to do.
bool is_empty(const program::Step& s, program::TargetKind target);
/// What a program does with the memory of its slots.
std::vector<SlotUse> slot_uses(const program::Program& p);

/// Gives steps to a recorder.
class Walker {
 public:
  using Each = std::function<void(hal::NodeId)>;
  /// One step; `each` (may be null) is told every operation.
  Result<hal::NodeId> step(hal::Recorder& r, const Frame& frame, size_t index,
                           std::span<const hal::NodeId> deps, const Each* each);

 private:
  Result<hal::NodeId> kernel(hal::Recorder& r, const Frame& frame, size_t index,
                             std::span<const hal::NodeId> deps);
  Result<hal::NodeId> repeat(hal::Recorder& r, const Frame& frame, size_t index,
                             std::span<const hal::NodeId> deps, const Each* each);
  Result<hal::NodeId> conditional(hal::Recorder& r, const Frame& frame, size_t index,
                                  std::span<const hal::NodeId> deps, const Each* each);
  std::vector<uint64_t> values_;
  std::vector<void*> params_;
  std::vector<uint32_t> sizes_;
};

/// Gives all steps that are not empty to the recorder, each after the one before; `last` is the node to come
/// after (-1: none) and then the last one added.
Result<void> walk(Walker& walker, hal::Recorder& r, const Frame& frame, hal::NodeId& last,
                  const Walker::Each* each = nullptr);
Result<void> walk(hal::Recorder& r, const Frame& frame, hal::NodeId& last,
                  const Walker::Each* each = nullptr);

/// The buffers of eager runs.
struct RunRoom {
  Walker walker;
  std::vector<std::byte*> slots;
};

}  // namespace gk::exec
