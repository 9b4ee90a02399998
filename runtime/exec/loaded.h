// A program with its code on the device: functions by step, numbers of its steps, and what its slots are used
// for; bodies of conditional steps have theirs. Owns the code. Immutable once made. Not for running: walk.h.
#pragma once

#include <memory>
#include <vector>

#include "runtime/exec/exec.h"

namespace gk::exec {

/// One program, or the body of a conditional step of one, with the functions that its steps launch.
struct Resolved {
  const program::Program* program = nullptr;
  int64_t first_step = 0;
  std::vector<hal::Function*> functions;      // one a step; null where it launches none
  std::vector<std::vector<Resolved>> bodies;  // of each step
};

/// The part of a slot's memory that a program touches, and how.
struct SlotUse {
  bool read = false, written = false;
  int64_t begin_bytes = 0, end_bytes = 0;
};

class Core;

struct Loaded::Impl {
  std::shared_ptr<Core> core;
  std::shared_ptr<const program::Program> program;
  std::vector<std::shared_ptr<hal::Module>> modules;
  Resolved resolved;
  std::vector<SlotUse> uses;         // one a slot
  std::vector<int64_t> first_steps;  // of the program and its bodies
  ~Impl();
};

}  // namespace gk::exec
