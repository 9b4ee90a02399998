// Program: the hinge between compiler and runtime. Plain data: code blobs, steps in order with what they
// read and write, arena offsets, slots and scalar parameters. The compiler makes it and never sees a device;
// the runtime runs it and never sees LLVM.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"
#include "runtime/base/shape.h"

namespace gk::program {

enum class TargetKind : uint8_t { Host, Cuda };

/// Code for one target, shared between programs. `key` identifies it in every cache.
struct Code {
  enum class Format : uint8_t { HostObject /* relocatable ELF */, Cubin, Ptx };
  Format format = Format::HostObject;
  std::string key;
  std::string bytes;
  std::vector<std::string> functions;  // entry points in it
};

/// Where a step finds memory: an external slot or the executable's arena.
struct Ref {
  enum class Kind : uint8_t { Slot, Arena };
  Kind kind = Kind::Slot;
  int32_t index = 0;         // Slot: number. Arena: number of the temporary
  int64_t offset_bytes = 0;  // from the slot's or the arena's start
  int64_t size_bytes = 0;    // extent that is touched, from offset (0: nothing)
  int32_t device = 0;        // Program::targets: where that memory is
  bool operator==(const Ref&) const = default;
};

/// One kernel argument: pointer, value known now, or a scalar slot read at launch (and patched by update).
struct Arg {
  enum class Kind : uint8_t { Pointer, Value, ScalarSlot, Faults, StepIndex };
  Kind kind = Kind::Pointer;
  Ref ref;            // Pointer
  Scalar value{};     // Value
  int32_t slot = -1;  // ScalarSlot
  DType dtype{};      // ScalarSlot: what the kernel takes
};

struct LaunchDims {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  // Host: the entry is called as fn(args, begin, end) over [0, items) in chunks of at most `grain`.
  int64_t items = 0;
  int64_t grain = 1;
  int64_t work = -1;  // Host: about how many scalar operations all items take; below zero: not known
};

/// C = act(A @ B + bias), row-major with leading dimensions, batch strides in elements.
struct MatMulCall {
  DType dtype = DType::F32;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool trans_a = false, trans_b = false;  // the stored matrix is the transpose
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  bool has_bias = false;  // bias[n]
  enum class Activation : uint8_t { None, Relu, Gelu } activation = Activation::None;
  bool tf32 = false;
};

/// The work of a library in one step. Another kind of work (a transform, a sort, a collective) is another
/// alternative; what everybody asks of it stands below, who does it in runtime/library.
using LibraryCall = std::variant<MatMulCall>;

/// "matmul"
std::string_view name(const LibraryCall& c);
/// The call's facts, for dumps: "f32 m=4 n=2 k=8 b^T bias relu".
std::string text(const LibraryCall& c);
/// How many arrays it reads; it writes one.
int num_reads(const LibraryCall& c);
/// Whether there is nothing to do.
bool is_empty(const LibraryCall& c);

struct FaultSite {
  /// An array was searched for NaN, and `index` of the record is where one is in row-major order, plus
  /// `extent`.
  static constexpr uint8_t kNotANumber = 255;
  uint8_t kind = 0;  // as ir::FaultSite::Kind, or the above
  Span span{};
  std::string name{};  // kNotANumber: of the array, "" where it has none
  Shape shape{};
};

struct Program;

/// What a step with bodies runs: a program whose slots are parts of the memory of the program around it, and
/// whose arena is a part of its arena.
struct Body {
  std::shared_ptr<const Program> program;
  std::vector<Ref> slots;        // one a slot of `program`
  std::vector<int32_t> scalars;  // for each scalar of `program`, the scalar slot around that it is, or this:
  static constexpr int32_t kTurn = -1;  // of a Repeat: the number of the turn, from 0
  int64_t arena_offset_bytes = 0;       // where its temporaries begin
};

struct Step {
  enum class Kind : uint8_t { Launch, Copy, Library, If, While, Repeat };
  Kind kind = Kind::Launch;
  std::string label;  // for people and dumps: "maximum+add", "matmul", …
  Span span{};
  int32_t device = 0;  // Program::targets: who runs it
  std::vector<Ref> reads, writes;
  // Launch
  int32_t code = -1;  // Program::codes
  std::string function;
  LaunchDims dims;
  std::vector<Arg> args;
  std::vector<FaultSite> fault_sites;  // the kernel's, unless the compiler gave the step others
  // Copy: src = reads[0], dst = writes[0], same size
  // Library: MatMulCall: a, b, (bias) = reads; c = writes[0]
  LibraryCall library;
  // If, While: reads[0] is the condition, one byte on the device; the body of a While writes it anew. All
  // that bodies read and write is in reads and writes too.
  std::vector<Body> bodies;  // If: what is done where it is true, and (may be missing) where not. Others: one
  int64_t times = 0;         // Repeat: how often its body is done
};

struct Slot {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  int64_t size_bytes = 0;
  bool read = false, written = false, fresh = false;
};

struct Program {
  std::string name;
  std::vector<TargetKind> targets{TargetKind::Host};  // the devices that its steps run on
  std::vector<std::shared_ptr<const Code>> codes;
  std::vector<Step> steps;  // in a valid order: later steps may depend on earlier ones only
  std::vector<Slot> slots;
  std::vector<Scalar> scalars;  // defaults of the scalar slots
  int64_t arena_bytes = 0;      // every temporary lies in [0, arena_bytes), 256-byte aligned
  int64_t temporaries = 0;      // for stats: number and unplanned sum
  int64_t temporaries_bytes = 0;
  int64_t fused_ops = 0;
  bool uses_faults = false;
  TargetKind target(const Step& s) const { return targets[static_cast<size_t>(s.device)]; }
};

/// What a kernel writes on the first fault; zeroed by the runtime. `state` 0: none, 1: claimed, 2: complete.
struct FaultRecord {
  uint32_t state = 0;
  uint32_t site = 0;
  int64_t step = 0;
  int64_t axis = 0;
  int64_t index = 0;
  int64_t extent = 0;
};

/// `--emit=plan`: steps, reads, writes, arena, one line each. Stable text.
std::string print(const Program& p);
}  // namespace gk::program
