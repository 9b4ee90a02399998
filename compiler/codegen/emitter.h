// The scalar emitter: kernel IR blocks to LLVM IR, one element at a time, the same for both targets. Owns the
// function under construction, its parameters and the fault calls. Promises the op table's meaning: nothing
// is undefined in LLVM's sense, and no float operation is contracted or reassociated unless the kernel is
// fast_math. Not for the iteration around a body: the shells (map, reduce, matmul for each target) do that.
//
// Values: a bool is an i1, an integer its own type, f16 and bf16 are floats that hold a representable value
// (each operation computes in f32 and rounds), f32 and f64 themselves. In memory a bool is one byte of 0
// or 1.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/llvm.h"
#include "compiler/codegen/variant.h"
#include "compiler/ir/kernel.h"

namespace gk::codegen {

using Builder = llvm::IRBuilder<>;

struct Typed {
  llvm::Value* v = nullptr;
  DType t = DType::F32;
};

/// One evaluation of a block: where it happens, and the values it has made so far.
struct Point {
  std::vector<llvm::Value*> index;  // of each axis, then each reduce axis, in the emitter's index type
  std::vector<Typed> reduced;       // ReduceResult k
  std::vector<Typed> values;        // by SSA number
  // The vector shell takes contiguous loads and stores over: null or false means "emit as usual".
  std::function<llvm::Value*(const ir::KInst&)> load_hook;
  std::function<bool(const ir::KInst&, llvm::Value*)> store_hook;
  // Innermost loop of the user's text.
  llvm::BasicBlock* break_to = nullptr;
  llvm::BasicBlock* continue_to = nullptr;
};

class Emitter {
 public:
  Emitter(llvm::Module& module, const ir::Kernel& kernel, const Variant& variant);

  llvm::Module& module;
  llvm::LLVMContext& context;
  const ir::Kernel& kernel;
  const Variant& variant;
  Builder b;
  bool cuda() const { return variant.kind == program::TargetKind::Cuda; }

  // ---- Function under construction (emitter.cpp)
  /// Starts `fn`, whose first arguments are the kernel's parameters, then faults and step where used.
  void begin(llvm::Function* fn);
  /// The types of those arguments.
  std::vector<llvm::Type*> parameter_types();
  void annotate_parameters(llvm::Function* fn);
  llvm::Value* stack(llvm::Type* type, llvm::Value* count = nullptr);
  llvm::Function* function() const { return function_; }
  llvm::BasicBlock* block(const char* name);
  /// for (i = from; i < to; i += step): signed compare, step > 0. `unroll`: so often, -1: never, 0: as LLVM
  /// likes.
  void loop(llvm::Value* from, llvm::Value* to, llvm::Value* step,
            const std::function<void(llvm::Value*)>& body, int unroll = 0);
  /// The same over points that do not depend on each other, one after the other.
  void loop_of_points(llvm::Value* from, llvm::Value* to, const std::function<void(llvm::Value*)>& body);
  void when(llvm::Value* condition, const std::function<void()>& then);
  void run(const ir::KBlock& block, Point& p);
  void run(const ir::KInst& i, Point& p) { inst(i, p); }
  /// Where local `n` lives from now on.
  void move_local(size_t n, llvm::Value* place) { locals_[n] = place; }
  llvm::Value* local(size_t n) const { return locals_[n]; }
  Point point() const;

  // ---- Indices (memory.cpp)
  llvm::Type* index_type() const { return index_type_; }
  llvm::Value* index(int64_t v) const {
    return llvm::ConstantInt::get(index_type_, static_cast<uint64_t>(v));
  }
  llvm::Value* size(const ir::KSize& s);
  llvm::Value* product(std::span<const ir::KSize> sizes);
  /// Row-major digits of `linear` over `sizes` (non-empty spaces only).
  std::vector<llvm::Value*> digits(llvm::Value* linear, std::span<const ir::KSize> sizes);
  llvm::Value* offset(const ir::Access& a, const std::vector<llvm::Value*>& at);
  llvm::Value* address(int param, llvm::Value* element);
  llvm::Value* param(int p) const { return params_[static_cast<size_t>(p)]; }
  int64_t element_bytes(int param) const;
  llvm::Value* load(DType t, llvm::Value* address, bool atomic, bool invariant);
  void store(DType t, llvm::Value* value, llvm::Value* address, bool atomic);
  llvm::Value* load(const ir::Access& a, const std::vector<llvm::Value*>& at);
  llvm::Value* atomic_result(ir::AtomicOp op, Typed old, llvm::Value* operand);
  llvm::Value* atomic_update(ir::AtomicOp op, DType t, llvm::Value* where, llvm::Value* operand);
  /// From now on atomics on a parameter with an address here go to that copy, which is nobody else's. Empty:
  /// none.
  void use_private(std::vector<llvm::Value*> copies) { private_copies_ = std::move(copies); }
  /// Nobody writes this buffer while the kernel runs.
  bool is_invariant(int param) const;

  // ---- Types and conversions (convert.cpp)
  llvm::Type* storage_type(DType t);
  llvm::Type* compute_type(DType t);
  llvm::Value* from_storage(DType t, llvm::Value* v);
  llvm::Value* to_storage(DType t, llvm::Value* v);
  /// To the nearest value of a 16-bit float; other types as they are.
  llvm::Value* round_to(DType t, llvm::Value* v);
  llvm::Value* cast(Typed v, DType to);
  llvm::Value* constant(const Scalar& s);
  llvm::Value* real(llvm::Type* t, double v) { return llvm::ConstantFP::get(t, v); }

  // ---- Operations (elementwise.cpp, math.cpp)
  llvm::Value* compute(ir::Op op, std::span<const Typed> args, DType result);
  llvm::Value* minimum(Typed a, llvm::Value* o);
  llvm::Value* maximum(Typed a, llvm::Value* o);
  /// Transcendental functions of f32 or f64 values, from libdevice, host_math*.cpp or libm.
  llvm::Value* math(ir::Op op, std::span<llvm::Value* const> args);
  llvm::Value* float_mod(llvm::Value* x, llvm::Value* y);  // C's fmod
  llvm::Value* by_squaring(Typed base, llvm::Value* count, llvm::Value* start);
  llvm::Value* call_library(const char* name, std::span<llvm::Value* const> args);

  // ---- Faults (memory.cpp)
  void fault(int site, llvm::Value* axis, llvm::Value* at, llvm::Value* extent);
  int site_of(const ir::KInst& i) const;

 private:
  void inst(const ir::KInst& i, Point& p);
  void control(const ir::KInst& i, Point& p);
  void for_loop(const ir::KInst& i, Point& p);
  void while_loop(const ir::KInst& i, Point& p);
  void loop_body(const ir::KBlock& body, Point& p, llvm::BasicBlock* next, llvm::BasicBlock* done);
  void load_inst(const ir::KInst& i, Point& p);
  void indexed(const ir::KInst& i, Point& p);
  void gather(const ir::KInst& i, Point& p);
  void atomic(const ir::KInst& i, Point& p, llvm::Value* address);
  void random(const ir::KInst& i, Point& p);
  llvm::Value* check(const ir::KInst& i, std::span<llvm::Value* const> at);
  void set(const ir::KInst& i, Point& p, llvm::Value* v);
  Typed arg(const Point& p, const ir::KInst& i, size_t n) const;
  void number_sites(const ir::KBlock& block);

  llvm::Value* call_host_math(ir::Op op, std::span<llvm::Value* const> args);
  llvm::Function* make_host_math(ir::Op op, const std::string& name, llvm::Type* element, size_t arity,
                                 int lanes);
  bool fuses() const;     // the host's processor multiplies and adds in one instruction
  int f64_lanes() const;  // of its vectors
  llvm::Instruction* loop_back(llvm::Value* from, llvm::Value* to, llvm::Value* step,
                               const std::function<void(llvm::Value*)>& body);
  void note_for_loop(llvm::Instruction* back, std::initializer_list<std::pair<const char*, int>> notes);
  llvm::Value* double_to_narrow(DType to, llvm::Value* v);
  llvm::Value* bf16_bits(llvm::Value* f);

  llvm::Function* function_ = nullptr;
  llvm::Type* index_type_;
  std::vector<llvm::Value*> params_;
  std::vector<llvm::Value*> locals_;
  llvm::Value* faults_ = nullptr;
  llvm::Value* step_ = nullptr;
  llvm::Function* fault_function_ = nullptr;
  std::map<std::pair<llvm::Type*, llvm::Type*>, llvm::Function*> power_function_;  // by base and count
  std::map<const ir::KInst*, int> sites_;
  int call_lanes_ = 0;                        // the most that all functions called in this loop have
  std::vector<char> constant_nonzero_;        // by SSA number: a Const other than 0
  std::vector<char> racing_;                  // by parameter: plain accesses must be atomic
  std::vector<llvm::Value*> private_copies_;  // by parameter
};

}  // namespace gk::codegen
