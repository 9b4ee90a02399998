// Blocks and control flow.
#include "compiler/codegen/emitter.h"

namespace gk::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {
void mark_constants(const ir::KBlock& block, std::vector<char>& nonzero) {
  for (const ir::KInst& i : block.insts) {
    if (i.kind == ir::KKind::Const && i.result >= 0 && !i.value.is_float() && i.value.i != 0)
      nonzero[static_cast<size_t>(i.result)] = 1;
    for (const auto& inner : i.blocks)
      if (inner) mark_constants(*inner, nonzero);
  }
}

bool is_division_site(const ir::KInst& i, const std::vector<char>& nonzero) {
  if (i.kind != ir::KKind::Compute || (i.op != ir::Op::FloorDiv && i.op != ir::Op::Mod)) return false;
  return is_integer(i.dtype) && !nonzero[static_cast<size_t>(i.args[1])];
}

bool is_checked_access(const ir::KInst& i) {
  switch (i.kind) {
    case ir::KKind::LoadIndexed:
    case ir::KKind::StoreIndexed:
    case ir::KKind::Atomic:
    case ir::KKind::Gather: return i.checked;
    default: return false;
  }
}

void find_writes(const ir::KBlock& block, std::vector<char>& written) {
  for (const ir::KInst& i : block.insts) {
    if ((i.kind == ir::KKind::StoreIndexed || i.kind == ir::KKind::Atomic) && i.param >= 0)
      written[static_cast<size_t>(i.param)] = 1;
    for (const auto& inner : i.blocks)
      if (inner) find_writes(*inner, written);
  }
}

/// Every indexed access of `param` is at the point's own axes, so that no two points meet.
bool only_own_point(const ir::KBlock& block, int param, size_t rank, std::vector<int>& axis_of) {
  for (const ir::KInst& i : block.insts) {
    if (i.kind == ir::KKind::AxisIndex && i.result >= 0) axis_of[static_cast<size_t>(i.result)] = i.axis;
    const bool load = i.kind == ir::KKind::LoadIndexed, store = i.kind == ir::KKind::StoreIndexed;
    if ((load || store) && i.param == param) {
      if (i.args.size() - (store ? 1 : 0) != rank) return false;
      for (size_t d = 0; d < rank; ++d)
        if (axis_of[static_cast<size_t>(i.args[d])] != static_cast<int>(d)) return false;
    }
    if (i.kind == ir::KKind::Atomic && i.param == param) return false;
    for (const auto& inner : i.blocks)
      if (inner && !only_own_point(*inner, param, rank, axis_of)) return false;
  }
  return true;
}
}  // namespace

Emitter::Emitter(llvm::Module& m, const ir::Kernel& k, const Variant& v)
    : module(m), context(m.getContext()), kernel(k), variant(v), b(m.getContext()) {
  index_type_ = v.index32 ? b.getInt32Ty() : b.getInt64Ty();
  if (k.fast_math) {
    llvm::FastMathFlags f;  // not nnan or ninf: those would make some inputs undefined
    f.setAllowContract(true);
    f.setAllowReassoc(true);
    f.setAllowReciprocal(true);
    f.setApproxFunc(true);
    b.setFastMathFlags(f);
  }
  constant_nonzero_.assign(static_cast<size_t>(k.num_values), 0);
  mark_constants(k.body, constant_nonzero_);
  mark_constants(k.epilogue, constant_nonzero_);
  number_sites(k.body);
  number_sites(k.epilogue);
  racing_.assign(k.params.size(), 0);
  if (k.kind == ir::Kernel::Kind::User) {
    find_writes(k.body, racing_);
    for (size_t p = 0; p < racing_.size(); ++p) {
      std::vector<int> axis_of(static_cast<size_t>(k.num_values), -1);
      if (racing_[p] && only_own_point(k.body, static_cast<int>(p), k.axes.size(), axis_of)) racing_[p] = 0;
    }
  }
}

void Emitter::number_sites(const ir::KBlock& block) {
  for (const ir::KInst& i : block.insts) {
    if (is_checked_access(i) || is_division_site(i, constant_nonzero_))
      sites_.emplace(&i, static_cast<int>(sites_.size()));
    for (const auto& inner : i.blocks)
      if (inner) number_sites(*inner);
  }
}

int Emitter::site_of(const ir::KInst& i) const {
  auto at = sites_.find(&i);
  return at == sites_.end() ? -1 : at->second;
}

std::vector<llvm::Type*> Emitter::parameter_types() {
  std::vector<llvm::Type*> types;
  llvm::Type* pointer = llvm::PointerType::get(context, cuda() ? 1 : 0);
  for (const ir::KParam& p : kernel.params)
    types.push_back(p.kind == ir::KParam::Kind::Buffer ? pointer : storage_type(p.dtype));
  if (kernel.uses_faults) {
    types.push_back(pointer);
    types.push_back(b.getInt64Ty());
  }
  return types;
}

void Emitter::annotate_parameters(llvm::Function* fn) {
  for (unsigned p = 0; p < kernel.params.size(); ++p) {
    if (kernel.params[p].kind != ir::KParam::Kind::Buffer) continue;
    fn->addParamAttr(p, llvm::Attribute::NoAlias);
    if (is_invariant(static_cast<int>(p))) fn->addParamAttr(p, llvm::Attribute::ReadOnly);
    fn->addParamAttr(p, llvm::Attribute::getWithAlignment(
                            context, llvm::Align(static_cast<uint64_t>(size_bytes(kernel.params[p].dtype)))));
  }
}

void Emitter::begin(llvm::Function* fn) {
  function_ = fn;
  fn->addFnAttr(llvm::Attribute::NoUnwind);
  BasicBlock* entry = BasicBlock::Create(context, "entry", fn);
  BasicBlock* start = BasicBlock::Create(context, "start", fn);
  b.SetInsertPoint(entry);
  b.CreateBr(start);
  b.SetInsertPoint(start);
  params_.clear();
  for (unsigned p = 0; p < kernel.params.size(); ++p) {
    llvm::Argument* a = fn->getArg(p);
    const bool buffer = kernel.params[p].kind == ir::KParam::Kind::Buffer;
    params_.push_back(buffer ? a : from_storage(kernel.params[p].dtype, a));
  }
  if (kernel.uses_faults) {
    faults_ = fn->getArg(static_cast<unsigned>(kernel.params.size()));
    step_ = fn->getArg(static_cast<unsigned>(kernel.params.size()) + 1);
  }
  locals_.clear();
  for (const ir::KLocal& l : kernel.locals) locals_.push_back(stack(compute_type(l.dtype)));
}

llvm::Value* Emitter::stack(llvm::Type* type, Value* count) {
  const llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(function_->getEntryBlock().getTerminator());
  auto* a = b.CreateAlloca(type, count);
  if (count) a->setAlignment(llvm::Align(64));
  return a;
}

BasicBlock* Emitter::block(const char* name) { return BasicBlock::Create(context, name, function_); }

void Emitter::loop(Value* from, Value* to, Value* step, const std::function<void(Value*)>& body, int unroll) {
  llvm::Instruction* back = loop_back(from, to, step, body);
  if (unroll > 0) note_for_loop(back, {{"llvm.loop.unroll.count", unroll}});
  if (unroll < 0) note_for_loop(back, {{"llvm.loop.unroll.disable", 0}});
}

void Emitter::loop_of_points(Value* from, Value* to, const std::function<void(Value*)>& body) {
  call_lanes_ = 0;
  bool straight = false;
  llvm::Instruction* back = loop_back(from, to, index(1), [&](Value* i) {
    BasicBlock* inside = b.GetInsertBlock();
    body(i);
    straight = b.GetInsertBlock() == inside;
  });
  // See Note [Functions with rare cases] in math.cpp. More than one call at a time would keep vectors on the
  // stack.
  if (straight && call_lanes_ > 0)
    note_for_loop(back, {{"llvm.loop.vectorize.width", call_lanes_}, {"llvm.loop.interleave.count", 1}});
}

llvm::Instruction* Emitter::loop_back(Value* from, Value* to, Value* step,
                                      const std::function<void(Value*)>& body) {
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* head = block("loop");
  BasicBlock* inside = block("body");
  BasicBlock* done = block("done");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* i = b.CreatePHI(from->getType(), 2);
  i->addIncoming(from, before);
  b.CreateCondBr(b.CreateICmpSLT(i, to), inside, done);
  b.SetInsertPoint(inside);
  body(i);
  i->addIncoming(b.CreateNSWAdd(i, step), b.GetInsertBlock());
  llvm::BranchInst* back = b.CreateBr(head);
  b.SetInsertPoint(done);
  return back;
}

/// A note whose value is 0 has none: its name says all.
void Emitter::note_for_loop(llvm::Instruction* back,
                            std::initializer_list<std::pair<const char*, int>> notes) {
  std::vector<llvm::Metadata*> all{nullptr};
  for (const auto& [name, value] : notes) {
    std::vector<llvm::Metadata*> note{llvm::MDString::get(context, name)};
    if (value > 0) note.push_back(llvm::ConstantAsMetadata::get(b.getInt32(static_cast<uint32_t>(value))));
    all.push_back(llvm::MDNode::get(context, note));
  }
  llvm::MDNode* id = llvm::MDNode::getDistinct(context, all);
  id->replaceOperandWith(0, id);
  back->setMetadata(llvm::LLVMContext::MD_loop, id);
}

void Emitter::when(Value* condition, const std::function<void()>& then) {
  BasicBlock* yes = block("then");
  BasicBlock* done = block("end");
  b.CreateCondBr(condition, yes, done);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

Point Emitter::point() const {
  Point p;
  p.values.resize(static_cast<size_t>(kernel.num_values));
  return p;
}

Typed Emitter::arg(const Point& p, const ir::KInst& i, size_t n) const {
  return p.values[static_cast<size_t>(i.args[n])];
}

void Emitter::set(const ir::KInst& i, Point& p, Value* v) {
  if (i.result >= 0) p.values[static_cast<size_t>(i.result)] = {v, i.dtype};
}

void Emitter::run(const ir::KBlock& block, Point& p) {
  for (const ir::KInst& i : block.insts) inst(i, p);
}

void Emitter::inst(const ir::KInst& i, Point& p) {
  switch (i.kind) {
    case ir::KKind::Const: return set(i, p, cast({constant(i.value), i.value.dtype}, i.dtype));
    case ir::KKind::ScalarParam: {
      const auto n = static_cast<size_t>(i.param);
      return set(i, p, cast({params_[n], kernel.params[n].dtype}, i.dtype));
    }
    case ir::KKind::AxisIndex: {
      Value* at = b.CreateSExt(p.index[static_cast<size_t>(i.axis)], b.getInt64Ty());
      return set(i, p, cast({at, DType::I64}, i.dtype));
    }
    case ir::KKind::Extent: {
      const auto& extents = kernel.params[static_cast<size_t>(i.param)].extents;
      Value* n = b.CreateSExt(size(extents[static_cast<size_t>(i.axis)]), b.getInt64Ty());
      return set(i, p, cast({n, DType::I64}, i.dtype));
    }
    case ir::KKind::Compute: {
      std::vector<Typed> args;
      for (size_t n = 0; n < i.args.size(); ++n) args.push_back(arg(p, i, n));
      if (const int site = site_of(i); site >= 0 && kernel.uses_faults) {
        Value* zero = llvm::Constant::getNullValue(args[1].v->getType());
        when(b.CreateICmpEQ(args[1].v, zero),
             [&] { fault(site, b.getInt64(0), b.getInt64(0), b.getInt64(0)); });
      }
      return set(i, p, compute(i.op, args, i.dtype));
    }
    case ir::KKind::Cast: return set(i, p, cast(arg(p, i, 0), i.dtype));
    case ir::KKind::Load: return load_inst(i, p);
    case ir::KKind::Store: {
      const DType t = kernel.params[static_cast<size_t>(i.access.param)].dtype;
      Value* v = cast(arg(p, i, 0), t);
      if (p.store_hook && p.store_hook(i, v)) return;
      return store(t, v, address(i.access.param, offset(i.access, p.index)), false);
    }
    case ir::KKind::LoadIndexed:
    case ir::KKind::StoreIndexed:
    case ir::KKind::Atomic: return indexed(i, p);
    case ir::KKind::Gather: return gather(i, p);
    case ir::KKind::RngUniform:
    case ir::KKind::RngNormal: return random(i, p);
    case ir::KKind::ReduceResult:
      return set(i, p, cast(p.reduced[static_cast<size_t>(i.reduction)], i.dtype));
    case ir::KKind::VarGet: {
      const auto n = static_cast<size_t>(i.local);
      const DType t = kernel.locals[n].dtype;
      return set(i, p, cast({b.CreateLoad(compute_type(t), locals_[n]), t}, i.dtype));
    }
    case ir::KKind::VarSet: {
      const auto n = static_cast<size_t>(i.local);
      b.CreateStore(cast(arg(p, i, 0), kernel.locals[n].dtype), locals_[n]);
      return;
    }
    default: return control(i, p);
  }
}

void Emitter::control(const ir::KInst& i, Point& p) {
  switch (i.kind) {
    case ir::KKind::If: {
      BasicBlock* yes = block("then");
      BasicBlock* no = block("else");
      BasicBlock* done = block("end");
      b.CreateCondBr(cast(arg(p, i, 0), DType::Bool), yes, no);
      b.SetInsertPoint(yes);
      run(*i.blocks[0], p);
      b.CreateBr(done);
      b.SetInsertPoint(no);
      if (i.blocks.size() > 1 && i.blocks[1]) run(*i.blocks[1], p);
      b.CreateBr(done);
      b.SetInsertPoint(done);
      return;
    }
    case ir::KKind::For: return for_loop(i, p);
    case ir::KKind::While: return while_loop(i, p);
    case ir::KKind::Break:
    case ir::KKind::Continue:
      b.CreateBr(i.kind == ir::KKind::Break ? p.break_to : p.continue_to);
      b.SetInsertPoint(block("after"));  // what follows in the block is never reached
      return;
    default: return;
  }
}

/// The trips are counted ahead, so that neither a step past the largest integer nor an assignment to the
/// variable in the body changes them.
void Emitter::for_loop(const ir::KInst& i, Point& p) {
  Value* from = cast(arg(p, i, 0), DType::I64);
  Value* to = cast(arg(p, i, 1), DType::I64);
  Value* step = cast(arg(p, i, 2), DType::I64);
  Value* zero = b.getInt64(0);
  Value* one = b.getInt64(1);
  Value* up = b.CreateICmpSGT(step, zero);
  Value* any = b.CreateAnd(b.CreateSelect(up, b.CreateICmpSLT(from, to), b.CreateICmpSGT(from, to)),
                           b.CreateICmpNE(step, zero));
  Value* distance = b.CreateSelect(up, b.CreateSub(to, from), b.CreateSub(from, to));
  Value* stride = b.CreateSelect(up, step, b.CreateSub(zero, step));
  stride = b.CreateSelect(b.CreateICmpEQ(stride, zero), one, stride);
  Value* trips = b.CreateAdd(b.CreateUDiv(b.CreateSub(distance, one), stride), one);
  trips = b.CreateSelect(any, trips, zero);

  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* head = block("for");
  BasicBlock* inside = block("for.body");
  BasicBlock* next = block("for.next");
  BasicBlock* done = block("for.end");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* n = b.CreatePHI(b.getInt64Ty(), 2);
  n->addIncoming(zero, before);
  b.CreateCondBr(b.CreateICmpNE(n, trips), inside, done);
  b.SetInsertPoint(inside);
  const auto local = static_cast<size_t>(i.local);
  Value* at = b.CreateAdd(from, b.CreateMul(n, step));
  b.CreateStore(cast({at, DType::I64}, kernel.locals[local].dtype), locals_[local]);
  loop_body(*i.blocks[0], p, next, done);
  b.SetInsertPoint(next);
  n->addIncoming(b.CreateAdd(n, one), next);
  b.CreateBr(head);
  b.SetInsertPoint(done);
}

void Emitter::loop_body(const ir::KBlock& body, Point& p, BasicBlock* next, BasicBlock* done) {
  BasicBlock* outer_break = std::exchange(p.break_to, done);
  BasicBlock* outer_continue = std::exchange(p.continue_to, next);
  run(body, p);
  p.break_to = outer_break;
  p.continue_to = outer_continue;
  b.CreateBr(next);
}

void Emitter::while_loop(const ir::KInst& i, Point& p) {
  BasicBlock* head = block("while");
  BasicBlock* inside = block("while.body");
  BasicBlock* done = block("while.end");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  run(*i.blocks[0], p);
  const Typed condition = p.values[static_cast<size_t>(i.blocks[0]->result)];
  b.CreateCondBr(cast(condition, DType::Bool), inside, done);
  b.SetInsertPoint(inside);
  loop_body(*i.blocks[1], p, head, done);
  b.SetInsertPoint(done);
}

}  // namespace gk::codegen
