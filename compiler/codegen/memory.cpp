// Where elements lie, loads and stores, bounds, atomics, and the first fault.
#include <cstddef>

#include "compiler/codegen/emitter.h"
#include "runtime/program/program.h"

namespace gk::codegen {

using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;
using llvm::BasicBlock;
using llvm::Value;

int64_t Emitter::element_bytes(int p) const {
  return size_bytes(kernel.params[static_cast<size_t>(p)].dtype);
}

bool Emitter::is_invariant(int p) const { return !kernel.params[static_cast<size_t>(p)].written; }

Value* Emitter::size(const ir::KSize& s) {
  if (s.param < 0) return index(s.value);
  if (const auto it = variant.known.find(s.param); it != variant.known.end()) return index(it->second);
  return b.CreateSExtOrTrunc(param(s.param), index_type_);
}

Value* Emitter::product(std::span<const ir::KSize> sizes) {
  Value* n = index(1);
  for (const ir::KSize& s : sizes) n = b.CreateNSWMul(n, size(s));
  return n;
}

std::vector<Value*> Emitter::digits(Value* linear, std::span<const ir::KSize> sizes) {
  std::vector<Value*> out(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    if (d == 0) {
      out[0] = linear;
      break;
    }
    Value* n = size(sizes[d]);
    Value* rest = b.CreateUDiv(linear, n);
    out[d] = b.CreateNSWSub(linear, b.CreateNSWMul(rest, n));
    linear = rest;
  }
  return out;
}

Value* Emitter::offset(const ir::Access& a, const std::vector<Value*>& at) {
  // Outermost first: what the inner loop does not change comes early and moves out of it.
  Value* sum = size(a.offset);
  for (size_t d = 0; d < a.strides.size(); ++d) {
    const ir::KSize& s = a.strides[d];
    if (s.param < 0 && s.value == 0) continue;
    Value* term = s.param < 0 && s.value == 1 ? at[d] : b.CreateNSWMul(at[d], size(s));
    sum = b.CreateNSWAdd(sum, term);
  }
  return sum;
}

Value* Emitter::address(int p, Value* element) {
  return b.CreateInBoundsGEP(storage_type(kernel.params[static_cast<size_t>(p)].dtype), param(p), element);
}

Value* Emitter::load(DType t, Value* address, bool atomic, bool invariant) {
  const llvm::Align align(static_cast<uint64_t>(size_bytes(t)));
  if (atomic) {
    llvm::Type* bits_type = b.getIntNTy(static_cast<unsigned>(size_bytes(t) * 8));
    auto* l = b.CreateAlignedLoad(bits_type, address, align);
    l->setAtomic(AtomicOrdering::Unordered);
    return from_storage(t, b.CreateBitCast(l, storage_type(t)));
  }
  auto* l = b.CreateAlignedLoad(storage_type(t), address, align);
  if (invariant) l->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context, {}));
  return from_storage(t, l);
}

void Emitter::store(DType t, Value* value, Value* address, bool atomic) {
  const llvm::Align align(static_cast<uint64_t>(size_bytes(t)));
  Value* v = to_storage(t, value);
  if (atomic) {
    v = b.CreateBitCast(v, b.getIntNTy(static_cast<unsigned>(size_bytes(t) * 8)));
    b.CreateAlignedStore(v, address, align)->setAtomic(AtomicOrdering::Unordered);
    return;
  }
  b.CreateAlignedStore(v, address, align);
}

Value* Emitter::load(const ir::Access& a, const std::vector<Value*>& at) {
  const DType t = kernel.params[static_cast<size_t>(a.param)].dtype;
  return load(t, address(a.param, offset(a, at)), false, is_invariant(a.param));
}

void Emitter::load_inst(const ir::KInst& i, Point& p) {
  const DType t = kernel.params[static_cast<size_t>(i.access.param)].dtype;
  Value* v = p.load_hook ? p.load_hook(i) : nullptr;
  if (!v) v = load(i.access, p.index);
  set(i, p, cast({v, t}, i.dtype));
}

/// True where every index is inside; otherwise the fault of the first axis that is not is recorded.
Value* Emitter::check(const ir::KInst& i, std::span<Value* const> at) {
  const auto& extents = kernel.params[static_cast<size_t>(i.param)].extents;
  if (!i.checked || at.size() != extents.size() || at.empty()) return nullptr;
  std::vector<Value*> inside, n;
  Value* all = b.getTrue();
  for (size_t d = 0; d < at.size(); ++d) {
    n.push_back(b.CreateSExt(size(extents[d]), b.getInt64Ty()));
    inside.push_back(b.CreateICmpULT(at[d], n[d]));  // unsigned: negative is outside too
    all = b.CreateAnd(all, inside[d]);
  }
  if (kernel.uses_faults) {
    when(b.CreateNot(all), [&] {
      size_t d = at.size() - 1;
      Value *axis = b.getInt64(d), *bad = at[d], *extent = n[d];
      while (d-- > 0) {
        axis = b.CreateSelect(inside[d], axis, b.getInt64(d));
        bad = b.CreateSelect(inside[d], bad, at[d]);
        extent = b.CreateSelect(inside[d], extent, n[d]);
      }
      fault(site_of(i), axis, bad, extent);
    });
  }
  return all;
}

void Emitter::indexed(const ir::KInst& i, Point& p) {
  const ir::KParam& buffer = kernel.params[static_cast<size_t>(i.param)];
  const DType t = buffer.dtype;
  const size_t indices = i.args.size() - (i.kind == ir::KKind::LoadIndexed ? 0 : 1);
  std::vector<Value*> at;
  for (size_t d = 0; d < indices; ++d) at.push_back(cast(arg(p, i, d), DType::I64));
  Value* inside = check(i, at);
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* done = nullptr;
  if (inside) {
    BasicBlock* yes = block("inside");
    done = block("end");
    b.CreateCondBr(inside, yes, done);
    b.SetInsertPoint(yes);
  }
  Value* linear = b.getInt64(0);
  for (size_t d = 0; d < at.size(); ++d) {
    Value* n = at.size() == 1 ? nullptr : b.CreateSExt(size(buffer.extents[d]), b.getInt64Ty());
    linear = n ? b.CreateAdd(b.CreateMul(linear, n), at[d]) : at[d];
  }
  // Unchecked code may be wrong: no "inbounds" promise here.
  const auto own = static_cast<size_t>(i.param);
  Value* base = private_copies_.empty() || !private_copies_[own] ? param(i.param) : private_copies_[own];
  Value* where = b.CreateGEP(storage_type(t), base, linear);
  const bool racing = racing_[static_cast<size_t>(i.param)];
  Value* result = nullptr;
  if (i.kind == ir::KKind::LoadIndexed) {
    result = cast({load(t, where, racing, is_invariant(i.param)), t}, i.dtype);
  } else if (i.kind == ir::KKind::StoreIndexed) {
    store(t, cast(arg(p, i, indices), t), where, racing);
  } else {
    atomic(i, p, where);
    if (i.result >= 0) result = p.values[static_cast<size_t>(i.result)].v;
  }
  if (done) {
    BasicBlock* from = b.GetInsertBlock();
    b.CreateBr(done);
    b.SetInsertPoint(done);
    if (result) {
      llvm::PHINode* phi = b.CreatePHI(result->getType(), 2);
      phi->addIncoming(result, from);
      phi->addIncoming(llvm::Constant::getNullValue(result->getType()), before);
      result = phi;
    }
  }
  if (result) set(i, p, result);
}

/// The taken axis is inside or the result is 0, `checked` or not: only kernels' own indexing can be
/// unchecked.
void Emitter::gather(const ir::KInst& i, Point& p) {
  const DType t = kernel.params[static_cast<size_t>(i.access.param)].dtype;
  Value* at = cast(arg(p, i, 0), DType::I64);
  Value* n = b.CreateSExt(size(i.size), b.getInt64Ty());
  Value* inside = b.CreateICmpULT(at, n);
  if (i.checked && kernel.uses_faults)
    when(b.CreateNot(inside),
         [&] { fault(site_of(i), b.getInt64(static_cast<uint64_t>(i.axis < 0 ? 0 : i.axis)), at, n); });
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* yes = block("inside");
  BasicBlock* done = block("end");
  b.CreateCondBr(inside, yes, done);
  b.SetInsertPoint(yes);
  Value* element = b.CreateNSWAdd(offset(i.access, p.index),
                                  b.CreateNSWMul(b.CreateSExtOrTrunc(at, index_type_), size(i.stride)));
  Value* v =
      cast({load(t, address(i.access.param, element), false, is_invariant(i.access.param)), t}, i.dtype);
  BasicBlock* from = b.GetInsertBlock();
  b.CreateBr(done);
  b.SetInsertPoint(done);
  llvm::PHINode* phi = b.CreatePHI(v->getType(), 2);
  phi->addIncoming(v, from);
  phi->addIncoming(llvm::Constant::getNullValue(v->getType()), before);
  set(i, p, phi);
}

Value* Emitter::atomic_result(ir::AtomicOp op, Typed old, Value* operand) {
  const bool real_type = gk::is_float(old.t);
  switch (op) {
    case ir::AtomicOp::Add:
      if (is_bool(old.t)) return b.CreateOr(old.v, operand);
      return real_type ? round_to(old.t, b.CreateFAdd(old.v, operand)) : b.CreateAdd(old.v, operand);
    case ir::AtomicOp::Min: return minimum(old, operand);
    case ir::AtomicOp::Max: return maximum(old, operand);
    case ir::AtomicOp::And: return b.CreateAnd(old.v, operand);
    case ir::AtomicOp::Or: return b.CreateOr(old.v, operand);
    case ir::AtomicOp::Xor: return b.CreateXor(old.v, operand);
    case ir::AtomicOp::Exchange: break;
  }
  return operand;
}

/// The old value. `operand` is of the language's type `t`.
Value* Emitter::atomic_update(ir::AtomicOp what, DType t, Value* where, Value* operand) {
  const llvm::Align align(static_cast<uint64_t>(size_bytes(t)));
  const llvm::SyncScope::ID scope =
      cuda() ? context.getOrInsertSyncScopeID("device") : llvm::SyncScope::ID{llvm::SyncScope::System};
  const bool real_type = gk::is_float(t);
  std::optional<AtomicRMWInst::BinOp> op;
  switch (what) {
    case ir::AtomicOp::Add:
      if (!real_type) op = AtomicRMWInst::Add;
      if (t == DType::F32 || t == DType::F64) op = AtomicRMWInst::FAdd;
      break;
    case ir::AtomicOp::Min:
      if (!real_type) op = is_signed(t) ? AtomicRMWInst::Min : AtomicRMWInst::UMin;
      break;
    case ir::AtomicOp::Max:
      if (!real_type) op = is_signed(t) ? AtomicRMWInst::Max : AtomicRMWInst::UMax;
      break;
    case ir::AtomicOp::And: op = AtomicRMWInst::And; break;
    case ir::AtomicOp::Or: op = AtomicRMWInst::Or; break;
    case ir::AtomicOp::Xor: op = AtomicRMWInst::Xor; break;
    case ir::AtomicOp::Exchange:
      if (!real_type) op = AtomicRMWInst::Xchg;
      break;
  }
  // A bool's byte is 0 or 1 and stays so under min, max, and, or, xor; its sum is "or".
  if (is_bool(t) && what == ir::AtomicOp::Add) op = AtomicRMWInst::Or;
  if (op) {
    Value* old =
        b.CreateAtomicRMW(*op, where, to_storage(t, operand), align, AtomicOrdering::Monotonic, scope);
    return from_storage(t, old);
  }
  llvm::Type* word = b.getIntNTy(static_cast<unsigned>(size_bytes(t) * 8));
  auto* first = b.CreateAlignedLoad(word, where, align);
  first->setAtomic(AtomicOrdering::Monotonic, scope);
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* again = block("cas");
  BasicBlock* done = block("cas.end");
  b.CreateBr(again);
  b.SetInsertPoint(again);
  llvm::PHINode* seen = b.CreatePHI(word, 2);
  seen->addIncoming(first, before);
  const Typed old{from_storage(t, b.CreateBitCast(seen, storage_type(t))), t};
  Value* next = to_storage(t, atomic_result(what, old, operand));
  Value* swap = b.CreateAtomicCmpXchg(where, seen, b.CreateBitCast(next, word), align,
                                      AtomicOrdering::Monotonic, AtomicOrdering::Monotonic, scope);
  seen->addIncoming(b.CreateExtractValue(swap, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(swap, 1), done, again);
  b.SetInsertPoint(done);
  return old.v;
}

void Emitter::atomic(const ir::KInst& i, Point& p, Value* where) {
  const DType t = kernel.params[static_cast<size_t>(i.param)].dtype;
  Value* operand = cast(arg(p, i, i.args.size() - 1), t);
  if (private_copies_.empty() || !private_copies_[static_cast<size_t>(i.param)])
    return set(i, p, cast({atomic_update(i.atomic, t, where, operand), t}, i.dtype));
  const Typed old{load(t, where, false, false), t};
  store(t, atomic_result(i.atomic, old, operand), where, false);
  set(i, p, cast(old, i.dtype));
}

/// void gk_fault(faults, step, site, axis, index, extent): the first one claims the record.
void Emitter::fault(int site, Value* axis, Value* at, Value* extent) {
  if (site < 0 || !faults_) return;
  if (!fault_function_) {
    auto* type = llvm::FunctionType::get(
        b.getVoidTy(),
        {faults_->getType(), b.getInt64Ty(), b.getInt32Ty(), b.getInt64Ty(), b.getInt64Ty(), b.getInt64Ty()},
        false);
    auto* fn = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "gk_fault", module);
    fn->addFnAttr(llvm::Attribute::NoInline);
    fn->addFnAttr(llvm::Attribute::NoUnwind);
    fn->addFnAttr(llvm::Attribute::Cold);
    Builder f(BasicBlock::Create(context, "entry", fn));
    auto field = [&](size_t bytes) { return f.CreateConstGEP1_64(f.getInt8Ty(), fn->getArg(0), bytes); };
    BasicBlock* won = BasicBlock::Create(context, "won", fn);
    BasicBlock* done = BasicBlock::Create(context, "done", fn);
    using Record = program::FaultRecord;
    // Threads of the device claim it among themselves; the host only looks at the end. (Not every machine has
    // atomics of a GPU on host memory that the host takes part in.)
    const llvm::SyncScope::ID scope =
        cuda() ? context.getOrInsertSyncScopeID("device") : llvm::SyncScope::ID{llvm::SyncScope::System};
    Value* swap =
        f.CreateAtomicCmpXchg(field(offsetof(Record, state)), f.getInt32(0), f.getInt32(1), llvm::Align(4),
                              AtomicOrdering::AcquireRelease, AtomicOrdering::Monotonic, scope);
    f.CreateCondBr(f.CreateExtractValue(swap, 1), won, done);
    f.SetInsertPoint(won);
    f.CreateStore(fn->getArg(1), field(offsetof(Record, step)));
    f.CreateStore(fn->getArg(2), field(offsetof(Record, site)));
    f.CreateStore(fn->getArg(3), field(offsetof(Record, axis)));
    f.CreateStore(fn->getArg(4), field(offsetof(Record, index)));
    f.CreateStore(fn->getArg(5), field(offsetof(Record, extent)));
    f.CreateAlignedStore(f.getInt32(2), field(offsetof(Record, state)), llvm::Align(4))
        ->setAtomic(AtomicOrdering::Release);
    f.CreateBr(done);
    f.SetInsertPoint(done);
    f.CreateRetVoid();
    fault_function_ = fn;
  }
  b.CreateCall(fault_function_, {faults_, step_, b.getInt32(static_cast<uint32_t>(site)), axis, at, extent});
}

}  // namespace gk::codegen
