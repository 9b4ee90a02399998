// Transcendental functions: libdevice on NVIDIA; on the host own code (host_math*.cpp) and libm's scalar
// functions, which give an element the same bits wherever it lies in a loop. Random draws.
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include "compiler/codegen/emitter.h"
#include "compiler/codegen/host_math.h"
#include "compiler/ir/rng.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;

namespace {
/// What rng.h builds instructions with.
struct RngBuilder {
  using V = Typed;
  Emitter& e;
  V constant(const Scalar& s) { return {e.constant(s), s.dtype}; }
  V cast(V v, DType t) { return {e.cast(v, t), t}; }
  V op(Op o, V x) {
    const Typed args[] = {x};
    return {e.compute(o, args, x.t), x.t};
  }
  V op(Op o, V x, V y) {
    const Typed args[] = {x, y};
    const DType t = ir::is_comparison(o) ? DType::Bool : x.t;
    return {e.compute(o, args, t), t};
  }
  V bits(V v, DType t) { return {e.b.CreateBitCast(v.v, e.compute_type(t)), t}; }
  V where(V c, V yes, V no) { return {e.b.CreateSelect(c.v, yes.v, no.v), yes.t}; }
};
}  // namespace

Value* Emitter::call_library(const char* name, std::span<Value* const> args) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto* type = llvm::FunctionType::get(types[0], types, false);
  llvm::FunctionCallee callee = module.getOrInsertFunction(name, type);
  auto* fn = llvm::cast<llvm::Function>(callee.getCallee());
  fn->addFnAttr(llvm::Attribute::NoUnwind);
  fn->addFnAttr(llvm::Attribute::WillReturn);
  fn->setMemoryEffects(llvm::MemoryEffects::none());
  llvm::CallInst* call = b.CreateCall(callee, std::vector<Value*>(args.begin(), args.end()));
  // LLVM would turn pow(x, 2) into x * x, so that a constant exponent gave other bits than a parameter.
  if (!cuda()) call->addFnAttr(llvm::Attribute::NoBuiltin);
  return call;
}

Value* Emitter::math(Op op, std::span<Value* const> args) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.setFastMathFlags({});
  const bool single = args[0]->getType()->isFloatTy();
  if (cuda()) {
    const std::string name = std::string("__nv_") + ir::info(op).library.name + (single ? "f" : "");
    return call_library(name.c_str(), args);
  }
  if (single && !has_f32_formula(op)) {
    std::vector<Value*> wide;
    for (Value* a : args) wide.push_back(b.CreateFPExt(a, b.getDoubleTy()));
    return b.CreateFPTrunc(math(op, wide), b.getFloatTy());
  }
  if (!single && !(fuses() && has_f64_formula(op))) return call_library(ir::info(op).library.name, args);
  if (has_rare_cases(op, single, fuses())) return call_host_math(op, args);
  return single ? host_math_f32(b, op, args, fuses()) : host_math_f64(b, op, args).value;
}

// Note [Functions with rare cases]
// A branch inside a loop would keep LLVM from making vectors of it. So a formula with rare cases is a
// function, of one element and of as many as a vector of the loop may have; the loop vectoriser is told that
// the one stands for the other (its "vector function ABI"). Inside the vector function one test asks whether
// any element is a rare one. All are made by the same code, so that an element has the same bits everywhere.
// Most of a function's time is spent waiting for its own results. So there are functions of two vectors too,
// whose instructions alternate; loops over points are told to be as wide as that, which the vectoriser would
// not choose.
Value* Emitter::call_host_math(Op op, std::span<Value* const> args) {
  const bool single = args[0]->getType()->isFloatTy();
  const std::string name = std::string("gk_") + ir::info(op).library.name + (single ? "_f32" : "_f64");
  llvm::Function* scalar = module.getFunction(name);
  std::string variants;
  const auto variant = [&](int lanes) {
    const std::string vector = name + "_v" + std::to_string(lanes);
    if (!variants.empty()) variants += ",";
    variants += "_ZGV_LLVM_N" + std::to_string(lanes) + std::string(args.size(), 'v') + "_" + name + "(" +
                vector + ")";
    if (scalar == nullptr) make_host_math(op, vector, args[0]->getType(), args.size(), lanes);
  };
  const int lanes = f64_lanes(), most = single ? lanes * 4 : lanes * 2;
  for (int n = lanes; n <= most; n *= 2) variant(n);
  call_lanes_ = call_lanes_ == 0 ? most : std::min(call_lanes_, most);
  if (scalar == nullptr) scalar = make_host_math(op, name, args[0]->getType(), args.size(), 1);
  llvm::CallInst* call = b.CreateCall(scalar, std::vector<Value*>(args.begin(), args.end()));
  call->addFnAttr(llvm::Attribute::get(context, "vector-function-abi-variant", variants));
  return call;
}

llvm::Function* Emitter::make_host_math(Op op, const std::string& name, llvm::Type* element, size_t arity,
                                        int lanes) {
  const llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::Type* type = lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  auto* fn =
      llvm::Function::Create(llvm::FunctionType::get(type, std::vector<llvm::Type*>(arity, type), false),
                             llvm::GlobalValue::InternalLinkage, name, module);
  for (const auto a : {llvm::Attribute::NoInline, llvm::Attribute::NoUnwind, llvm::Attribute::WillReturn})
    fn->addFnAttr(a);
  fn->setMemoryEffects(llvm::MemoryEffects::none());
  if (lanes > 1) llvm::appendToCompilerUsed(module, {fn});
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", fn));
  std::vector<Value*> args;
  for (llvm::Argument& a : fn->args()) args.push_back(&a);
  if (element->isFloatTy()) {
    b.CreateRet(host_math_f32(b, op, args, fuses()));
    return fn;
  }
  const RareResult usual = host_math_f64(b, op, args);
  Value* any = lanes == 1 ? usual.rare : b.CreateOrReduce(usual.rare);
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* rare = llvm::BasicBlock::Create(context, "rare", fn);
  auto* next = llvm::BasicBlock::Create(context, "next", fn);
  auto* done = llvm::BasicBlock::Create(context, "done", fn);
  b.CreateCondBr(any, rare, done);
  // One element after the other asks libm where it has to.
  b.SetInsertPoint(rare);
  llvm::PHINode* at = b.CreatePHI(b.getInt32Ty(), 2);
  llvm::PHINode* so_far = b.CreatePHI(type, 2);
  at->addIncoming(b.getInt32(0), before);
  so_far->addIncoming(usual.value, before);
  auto* ask = llvm::BasicBlock::Create(context, "ask", fn, next);
  const auto lane = [&](Value* v) { return lanes == 1 ? v : b.CreateExtractElement(v, at); };
  b.CreateCondBr(lane(usual.rare), ask, next);
  b.SetInsertPoint(ask);
  std::vector<Value*> own;
  for (Value* a : args) own.push_back(lane(a));
  Value* asked = call_library(ir::info(op).library.name, own);
  if (lanes > 1) asked = b.CreateInsertElement(so_far, asked, at);
  b.CreateBr(next);
  b.SetInsertPoint(next);
  llvm::PHINode* now = b.CreatePHI(type, 2);
  now->addIncoming(so_far, rare);
  now->addIncoming(asked, ask);
  Value* further = b.CreateAdd(at, b.getInt32(1));
  at->addIncoming(further, next);
  so_far->addIncoming(now, next);
  llvm::BranchInst* back =
      b.CreateCondBr(b.CreateICmpULT(further, b.getInt32(static_cast<uint32_t>(lanes))), rare, done);
  // As many copies of it as lanes would be most of the function.
  note_for_loop(back, {{"llvm.loop.unroll.disable", 0}});
  b.SetInsertPoint(done);
  llvm::PHINode* result = b.CreatePHI(type, 2);
  result->addIncoming(usual.value, before);
  result->addIncoming(now, next);
  b.CreateRet(result);
  return fn;
}

/// What Machine::prepare() noted of the processor.
static int noted(const llvm::Module& m, const char* name) {
  const auto* flag = llvm::mdconst::extract_or_null<llvm::ConstantInt>(m.getModuleFlag(name));
  return flag == nullptr ? 0 : static_cast<int>(flag->getSExtValue());
}
bool Emitter::fuses() const { return noted(module, "gk-fma") != 0; }
int Emitter::f64_lanes() const { return std::max(noted(module, "gk-f64-lanes"), 2); }

Value* Emitter::float_mod(Value* x, Value* y) {
  Value* args[] = {x, y};
  const bool single = x->getType()->isFloatTy();
  if (cuda()) return call_library(single ? "__nv_fmodf" : "__nv_fmod", args);
  return call_library(single ? "fmodf" : "fmod", args);
}

void Emitter::random(const ir::KInst& i, Point& p) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.setFastMathFlags({});
  RngBuilder r{*this};
  const Typed seed{cast(arg(p, i, 0), DType::U64), DType::U64};
  const Typed position{cast(arg(p, i, 1), DType::U64), DType::U64};
  const Typed v = i.kind == ir::KKind::RngUniform ? ir::rng_uniform(r, seed, position, i.dtype)
                                                  : ir::rng_normal(r, seed, position, i.dtype);
  set(i, p, cast(v, i.dtype));
}

}  // namespace gk::codegen
