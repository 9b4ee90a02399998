// The step walker: a program's steps, with their bindings filled in, given to a recorder one by one. The only
// code that turns steps into operations, for eager runs, graphs and updates alike. Promises program order.
#pragma once

#include <functional>

#include "runtime/exec/core.h"

namespace gk::exec {

/// Where one program finds its memory this time.
struct Frame {
  const Loaded::Impl* loaded = nullptr;
  const Bindings* bindings = nullptr;
  void* arena = nullptr;
  void* faults = nullptr;
};

/// Checks that the bindings fit the program: numbers of slots and scalars, sizes, memory still owned or
/// leased. Errors: Internal E0902, Lease E0602.
Result<void> check_bindings(const program::Program& p, const Bindings& b, Span span);
/// Checks a program's own references: slots, scalars, codes, arena extents. Errors: Internal E0902.
Result<void> check_program(const program::Program& p);
/// Whether the step gives the driver anything to do.
bool is_empty(const program::Step& s, program::TargetKind target);

/// Gives one step to the recorder.
class Walker {
 public:
  Result<hal::NodeId> step(hal::Recorder& r, const Frame& frame, size_t index,
                           std::span<const hal::NodeId> deps);

 private:
  std::vector<uint64_t> values_;
  std::vector<void*> params_;
  std::vector<uint32_t> sizes_;
};

/// Gives all steps that are not empty to the recorder, each after the one before; `last` is the node to come
/// after (-1: none) and then the last one added. `each` is told every node.
Result<void> walk(hal::Recorder& r, const Frame& frame, hal::NodeId& last,
                  const std::function<void(hal::NodeId)>& each);

}  // namespace gk::exec
