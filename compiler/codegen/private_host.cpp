// Note [Private copies]
// An array that a kernel does nothing to but one atomic operation, whose old values nobody looks at, may be
// updated in a copy of the chunk's own and joined at the chunk's end: integers come out the same in any
// order, and of float sums the order is not promised. Chunks of different threads then do not fight for its
// cache lines at every point. It pays where the array is small and the chunk has several points an element,
// which only the running program knows: both ways are emitted.
#include "compiler/codegen/shells.h"

namespace gk::codegen {

using ir::AtomicOp;
using ir::KKind;
using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr int64_t kCopyBytes = 16384;  // of all copies of a chunk, on the stack
constexpr int64_t kPointsAnElement = 4;
constexpr size_t kMostInstructions = 256;  // more are not worth emitting twice

struct Accesses {
  std::vector<std::optional<AtomicOp>> only;  // by parameter: its one operation
  std::vector<char> otherwise;                // by parameter: touched in another way
  std::vector<char> read;                     // by SSA number
  std::vector<std::pair<int, int>> results;   // of atomics: parameter and SSA number
  size_t instructions = 0;

  void visit(const ir::KBlock& block) {
    if (block.result >= 0) read[static_cast<size_t>(block.result)] = 1;
    for (const ir::KInst& i : block.insts) {
      ++instructions;
      for (const int a : i.args) read[static_cast<size_t>(a)] = 1;
      const auto p = static_cast<size_t>(i.param);
      if (i.kind == KKind::Atomic) {
        if (!i.checked || only[p].value_or(i.atomic) != i.atomic) otherwise[p] = 1;
        only[p] = i.atomic;
        if (i.result >= 0) results.emplace_back(i.param, i.result);
      } else if (i.kind == KKind::LoadIndexed || i.kind == KKind::StoreIndexed) {
        otherwise[p] = 1;
      }
      for (const auto& inner : i.blocks)
        if (inner) visit(*inner);
    }
  }
};

/// What leaves every value as it is.
llvm::Constant* identity(Emitter& e, AtomicOp op, DType t) {
  llvm::Type* type = e.compute_type(t);
  if (op == AtomicOp::Min || op == AtomicOp::Max) {
    if (gk::is_float(t)) return llvm::ConstantFP::getInfinity(type, op == AtomicOp::Max);
    const unsigned n = type->getIntegerBitWidth();
    const bool least = op == AtomicOp::Max;
    if (!is_signed(t))
      return llvm::ConstantInt::get(type, least ? llvm::APInt(n, 0) : llvm::APInt::getMaxValue(n));
    return llvm::ConstantInt::get(
        type, least ? llvm::APInt::getSignedMinValue(n) : llvm::APInt::getSignedMaxValue(n));
  }
  if (op == AtomicOp::And) return llvm::Constant::getAllOnesValue(type);
  return llvm::Constant::getNullValue(type);
}

}  // namespace

void host_points(Emitter& e, Value* begin, Value* end, const std::function<void()>& points) {
  if (e.kernel.kind != ir::Kernel::Kind::User) return points();
  Builder& b = e.b;
  const std::vector<ir::KParam>& params = e.kernel.params;
  Accesses found;
  found.only.resize(params.size());
  found.otherwise.assign(params.size(), 0);
  found.read.assign(static_cast<size_t>(e.kernel.num_values), 0);
  found.visit(e.kernel.body);
  for (const auto& [param, result] : found.results)
    if (found.read[static_cast<size_t>(result)]) found.otherwise[static_cast<size_t>(param)] = 1;
  std::vector<size_t> own;
  for (size_t p = 0; p < params.size(); ++p)
    if (found.only[p] && !found.otherwise[p] && *found.only[p] != AtomicOp::Exchange) own.push_back(p);
  if (own.empty() || found.instructions > kMostInstructions) return points();

  Value* fits = b.getTrue();
  std::vector<Value*> counts, copies(params.size());
  for (const size_t p : own) {
    const int64_t most = kCopyBytes / static_cast<int64_t>(own.size()) / size_bytes(params[p].dtype);
    Value* n = e.product(params[p].extents);
    counts.push_back(n);
    fits = b.CreateAnd(fits, b.CreateICmpULE(n, e.index(most)));
    fits = b.CreateAnd(fits,
                       b.CreateICmpULE(b.CreateMul(n, e.index(kPointsAnElement)), b.CreateSub(end, begin)));
    copies[p] = e.stack(e.storage_type(params[p].dtype), b.getInt64(static_cast<uint64_t>(most)));
  }
  BasicBlock* apart = e.block("apart");
  BasicBlock* direct = e.block("direct");
  BasicBlock* done = e.block("done");
  b.CreateCondBr(fits, apart, direct);
  b.SetInsertPoint(direct);
  points();
  b.CreateBr(done);

  b.SetInsertPoint(apart);
  const auto element = [&](size_t k, Value* base, Value* i) {
    return b.CreateInBoundsGEP(e.storage_type(params[own[k]].dtype), base, i);
  };
  for (size_t k = 0; k < own.size(); ++k) {
    const DType t = params[own[k]].dtype;
    e.loop(e.index(0), counts[k], e.index(1), [&](Value* i) {
      e.store(t, identity(e, *found.only[own[k]], t), element(k, copies[own[k]], i), false);
    });
  }
  e.use_private(copies);
  points();
  e.use_private({});
  for (size_t k = 0; k < own.size(); ++k) {
    const DType t = params[own[k]].dtype;
    const AtomicOp op = *found.only[own[k]];
    e.loop(
        e.index(0), counts[k], e.index(1),
        [&](Value* i) {
          Value* v = e.load(t, element(k, copies[own[k]], i), false, false);
          Value* same = identity(e, op, t);
          Value* changed = gk::is_float(t) ? b.CreateFCmpUNE(v, same) : b.CreateICmpNE(v, same);
          e.when(changed,
                 [&] { e.atomic_update(op, t, element(k, e.param(static_cast<int>(own[k])), i), v); });
        },
        -1);
  }
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

}  // namespace gk::codegen
