// The way from a traced module to a schedule: every pass, top to bottom. One pass is one file pair and one
// free function. run_pipeline() is the readable list; after each pass the verifier runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/ir/module.h"
#include "runtime/program/program.h"

namespace gk::passes {

struct Options {
  program::TargetKind target = program::TargetKind::Host;
  int max_kernel_operands = 32;    // buffers a fused kernel may touch; more splits it, deterministically
  int max_kernel_ops = 2000;       // what the operations of a fused kernel expand to, by weight()
  int64_t max_unrolled_ops = 512;  // the same of a loop written out; a heavier one stays a loop
  int64_t min_loop_trips = 4;      // (tracer) host-known loops shorter than this are unrolled
  bool library_matmul = true;      // matmul steps may go to a library (else always generated kernels)
  // Whether the library does this very product; asked once for each. Null: it does those of all floats.
  std::function<bool(const program::LibraryCall&)> library_does;
  int64_t generated_matmul_max = 0;  // m*n*k up to which a generated kernel is preferred to the library
  // Called after each pass with its name and the module, for --emit=ir and --time-passes.
  std::function<void(const char*, const ir::Module&)> after_pass;
  // Asked between steps of a few milliseconds; when true, the pipeline ends with Interrupted.
  std::function<bool()> interrupted;
};

/// Errors: Interrupted E0806.
Result<void> poll(const Options& options);

/// The extents a Launch step runs over, with its kernel; codegen turns them into launch dims.
struct KernelUse {
  int kernel = -1;            // Schedule::kernels
  std::vector<int64_t> axes;  // concrete extents of the parallel axes
  std::vector<int64_t> reduce_axes;
  int threads = 0;  // user's launch(threads=…), 0: choose
};

/// A program without code: Launch steps have dims and function unset, `code` = -1, and uses[step].
struct Schedule {
  program::Program program;
  std::vector<std::shared_ptr<const ir::Kernel>> kernels;  // equal keys are one kernel
  std::vector<KernelUse> uses;                             // one per step (kernel -1 for all but Launch)
  std::vector<std::vector<Schedule>> bodies;               // one per step: of its Step::bodies
};

/// simplify -> expand -> regions -> simplify -> cse -> dce, which look into regions too, then
/// make_schedule(). Errors: Internal only, but for OutOfMemory E0602 when a size overflows, and Interrupted.
Result<Schedule> run_pipeline(ir::Module module, const Options& options);

/// fuse -> lower -> plan_memory, of a module whose regions need no more passes. The regions of If and While
/// nodes go the same way when their node is lowered.
Result<Schedule> make_schedule(ir::Module module, const Options& options);

}  // namespace gk::passes
