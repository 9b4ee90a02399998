// A kernel under construction, with numbers where the finished kernel has parameters. Owns the tables that
// its instructions point into; finish() collapses axes, chooses parameters, and gives a step. Promises that
// the kernel's text holds no extents: equal structure gives equal keys. In a draft: Load, Store, Gather and
// AxisIndex name an entry of `accesses` in `axis` (AxisIndex: a sum of axes, no buffer); ScalarParam an entry
// of `scalars` in `param`; LoadIndexed an entry of `indexed` in `param`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/passes/pipeline.h"

namespace gk::passes {

/// An array that steps read and write, before it has a place.
struct Buffer {
  DType dtype = DType::F32;
  Shape shape;
  int64_t size_bytes = 0;
  int slot = -1;  // >= 0: the content of that slot before the program
};

/// What one pointer of a step touches.
struct BufferUse {
  int buffer = -1;
  int64_t offset_bytes = 0, size_bytes = 0;
  bool read = false, written = false;
  int param = -1;                // Launch: kernel parameter
  bool pointwise = false;        // one access, at the point where the kernel stores
  std::vector<int64_t> strides;  // … with these strides
};

/// A step whose memory is named by buffers.
struct LoweredStep {
  program::Step step;  // reads, writes and Pointer refs are filled by plan_memory
  std::shared_ptr<ir::Kernel> kernel;
  KernelUse use;
  std::vector<BufferUse> buffers;
  /// `to` starts as the content of `from`: one place if `from` is not needed any more, else a copy.
  struct Inherit {
    int from, to;
  };
  std::vector<Inherit> inherits;
  // If, While, Repeat: the schedule of each region with its numbers. There a BufferUse has in `param` the
  // slot of the regions, or one of these.
  static constexpr int kCondition = -2, kArena = -3;
  std::vector<Schedule> bodies;
  std::vector<std::vector<int>> scalars;
};

struct Lowered {
  std::vector<Buffer> buffers;
  std::vector<LoweredStep> steps;
  struct Output {
    int buffer, slot;
  };
  std::vector<Output> outputs;
  int64_t fused_ops = 0;
};

struct DraftAccess {
  int buffer = -1;             // -1: an index
  int64_t offset = 0;          // elements
  std::vector<int64_t> coefs;  // over axes, then reduce_axes
  int64_t gather_size = 0, gather_stride = 0;
  int gather_axis = 0;  // of the user's array, for faults
};

struct DraftScalar {
  int slot = -1;  // >= 0: scalar slot
  Scalar value{};
};

struct DraftIndexed {
  int buffer = -1;
  Shape extents;  // empty: indexed by one linear index
};

struct Draft {
  ir::Kernel kernel;
  std::vector<int64_t> axes, reduce_axes;
  std::vector<DraftAccess> accesses;
  std::vector<DraftScalar> scalars;
  std::vector<DraftIndexed> indexed;
  std::string label;
  Span span{};
};

/// Merges neighbouring axes that every access walks as one, and drops axes of extent 1. Not for MatMul.
void collapse(Draft& d);

LoweredStep finish(Draft d, const std::vector<Buffer>& buffers);

}  // namespace gk::passes
