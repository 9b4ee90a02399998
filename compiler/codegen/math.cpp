// Transcendental functions: libdevice on NVIDIA; on the host own f32 code (host_math.cpp) and libm's scalar
// f64 functions, which give an element the same bits wherever it lies in a loop. Random draws.
#include "compiler/codegen/emitter.h"
#include "compiler/ir/rng.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;

namespace {
const char* c_name(Op op) {
  switch (op) {
    case Op::Exp: return "exp";
    case Op::Exp2: return "exp2";
    case Op::Expm1: return "expm1";
    case Op::Log: return "log";
    case Op::Log2: return "log2";
    case Op::Log10: return "log10";
    case Op::Log1p: return "log1p";
    case Op::Sin: return "sin";
    case Op::Cos: return "cos";
    case Op::Tan: return "tan";
    case Op::Asin: return "asin";
    case Op::Acos: return "acos";
    case Op::Atan: return "atan";
    case Op::Sinh: return "sinh";
    case Op::Cosh: return "cosh";
    case Op::Tanh: return "tanh";
    case Op::Asinh: return "asinh";
    case Op::Acosh: return "acosh";
    case Op::Atanh: return "atanh";
    case Op::Erf: return "erf";
    case Op::Pow: return "pow";
    case Op::Atan2: return "atan2";
    default: return "fmod";
  }
}

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
    const bool compares =
        o == Op::Eq || o == Op::Ne || o == Op::Lt || o == Op::Le || o == Op::Gt || o == Op::Ge;
    const DType t = compares ? DType::Bool : x.t;
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
    const std::string name = std::string("__nv_") + c_name(op) + (single ? "f" : "");
    return call_library(name.c_str(), args);
  }
  return single ? host_math_f32(op, args) : call_library(c_name(op), args);
}

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
