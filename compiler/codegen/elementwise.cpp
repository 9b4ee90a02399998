// The elementwise ops as instructions: what ir/op_definitions.h says, with LLVM's values.
#include "compiler/codegen/emitter.h"
#include "compiler/ir/op_definitions.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;
using llvm::Intrinsic::ID;
namespace Intrinsic = llvm::Intrinsic;

namespace {

/// The builder of LLVM's values. A 16-bit float is computed with in f32.
struct Instructions {
  using V = Typed;
  /// No flag of fast_math while it lives: the order of the operations is part of the result.
  struct Exact {
    explicit Exact(Builder& b) : guard(b) { b.setFastMathFlags({}); }
    llvm::IRBuilderBase::FastMathFlagGuard guard;
  };
  Emitter& e;
  Builder& b;

  Exact exact() { return Exact(b); }
  static bool real_type(V v) { return gk::is_float(v.t); }
  static V boolean_of(Value* v) { return {v, DType::Bool}; }

  DType dtype(V v) { return v.t; }
  V number(int64_t i, V like) {
    return {llvm::ConstantInt::get(like.v->getType(), static_cast<uint64_t>(i), true), like.t};
  }
  V real(double f, V like) { return {e.real(like.v->getType(), f), like.t}; }
  V boolean(bool v) { return boolean_of(v ? b.getTrue() : b.getFalse()); }

  V add(V x, V y) { return {real_type(x) ? b.CreateFAdd(x.v, y.v) : b.CreateAdd(x.v, y.v), x.t}; }
  V subtract(V x, V y) { return {real_type(x) ? b.CreateFSub(x.v, y.v) : b.CreateSub(x.v, y.v), x.t}; }
  V multiply(V x, V y) { return {real_type(x) ? b.CreateFMul(x.v, y.v) : b.CreateMul(x.v, y.v), x.t}; }
  V negate(V x) { return {real_type(x) ? b.CreateFNeg(x.v) : b.CreateNeg(x.v), x.t}; }
  V divide(V x, V y) { return {b.CreateFDiv(x.v, y.v), x.t}; }
  V quotient(V x, V y) { return {is_signed(x.t) ? b.CreateSDiv(x.v, y.v) : b.CreateUDiv(x.v, y.v), x.t}; }
  V remainder(V x, V y) { return {is_signed(x.t) ? b.CreateSRem(x.v, y.v) : b.CreateURem(x.v, y.v), x.t}; }
  V magnitude(V x) {
    if (real_type(x)) return {b.CreateUnaryIntrinsic(Intrinsic::fabs, x.v), x.t};
    return is_signed(x.t) ? V{b.CreateBinaryIntrinsic(Intrinsic::abs, x.v, b.getFalse()), x.t} : x;
  }
  V bit_and(V x, V y) { return {b.CreateAnd(x.v, y.v), x.t}; }
  V bit_or(V x, V y) { return {b.CreateOr(x.v, y.v), x.t}; }
  V bit_xor(V x, V y) { return {b.CreateXor(x.v, y.v), x.t}; }
  V bit_not(V x) { return {b.CreateNot(x.v), x.t}; }
  V shift_up(V x, V n) { return {b.CreateShl(x.v, n.v), x.t}; }
  V shift_down(V x, V n) { return {is_signed(x.t) ? b.CreateAShr(x.v, n.v) : b.CreateLShr(x.v, n.v), x.t}; }
  V below(V x, int n) { return boolean_of(b.CreateICmpULT(x.v, number(n, x).v)); }
  V compare(Op op, V x, V y) { return boolean_of(compared(op, x, y.v)); }
  V select(V c, V x, V y) { return {b.CreateSelect(c.v, x.v, y.v), x.t}; }
  V least(V x, V y) { return {e.minimum(x, y.v), x.t}; }
  V greatest(V x, V y) { return {e.maximum(x, y.v), x.t}; }
  V round(Op op, V x) {
    const ID id = op == Op::Floor   ? Intrinsic::floor
                  : op == Op::Ceil  ? Intrinsic::ceil
                  : op == Op::Trunc ? Intrinsic::trunc
                                    : Intrinsic::roundeven;
    return {b.CreateUnaryIntrinsic(id, x.v), x.t};
  }
  V square_root(V x) { return {b.CreateUnaryIntrinsic(Intrinsic::sqrt, x.v), x.t}; }
  V copy_sign(V size, V sign) {
    return {b.CreateBinaryIntrinsic(Intrinsic::copysign, size.v, sign.v), size.t};
  }
  V float_remainder(V x, V y) { return {e.float_mod(x.v, y.v), x.t}; }
  V widen(V c, V like) { return {b.CreateZExt(c.v, like.v->getType()), like.t}; }
  V spread(V c, V like) { return {b.CreateSExt(c.v, like.v->getType()), like.t}; }
  V by_squaring(V base, V exponent, V start) { return {e.by_squaring(base, exponent.v, start.v), base.t}; }
  V library(Op op, std::span<const V> args) {
    std::vector<Value*> values;
    for (const V& a : args) values.push_back(a.v);
    return {e.math(op, values), args[0].t};
  }

 private:
  Value* compared(Op op, V x, Value* y) {
    if (real_type(x)) {
      switch (op) {
        case Op::Eq: return b.CreateFCmpOEQ(x.v, y);
        case Op::Ne: return b.CreateFCmpUNE(x.v, y);
        case Op::Lt: return b.CreateFCmpOLT(x.v, y);
        case Op::Le: return b.CreateFCmpOLE(x.v, y);
        case Op::Gt: return b.CreateFCmpOGT(x.v, y);
        default: return b.CreateFCmpOGE(x.v, y);
      }
    }
    const bool sign = is_signed(x.t);
    switch (op) {
      case Op::Eq: return b.CreateICmpEQ(x.v, y);
      case Op::Ne: return b.CreateICmpNE(x.v, y);
      case Op::Lt: return sign ? b.CreateICmpSLT(x.v, y) : b.CreateICmpULT(x.v, y);
      case Op::Le: return sign ? b.CreateICmpSLE(x.v, y) : b.CreateICmpULE(x.v, y);
      case Op::Gt: return sign ? b.CreateICmpSGT(x.v, y) : b.CreateICmpUGT(x.v, y);
      default: return sign ? b.CreateICmpSGE(x.v, y) : b.CreateICmpUGE(x.v, y);
    }
  }
};

}  // namespace

Value* Emitter::compute(Op op, std::span<const Typed> args, DType result) {
  if (op == Op::Where)
    return b.CreateSelect(cast(args[0], DType::Bool), cast(args[1], result), cast(args[2], result));
  Instructions instructions{*this, b};
  Value* v = ir::OpDefinitions<Instructions>(instructions)(op, args).v;
  return gk::is_float(result) ? round_to(result, v) : v;
}

Value* Emitter::minimum(Typed x, Value* y) {
  if (gk::is_float(x.t)) return b.CreateBinaryIntrinsic(Intrinsic::minimum, x.v, y);
  return b.CreateBinaryIntrinsic(is_signed(x.t) ? Intrinsic::smin : Intrinsic::umin, x.v, y);
}

Value* Emitter::maximum(Typed x, Value* y) {
  if (gk::is_float(x.t)) return b.CreateBinaryIntrinsic(Intrinsic::maximum, x.v, y);
  return b.CreateBinaryIntrinsic(is_signed(x.t) ? Intrinsic::smax : Intrinsic::umax, x.v, y);
}

/// `start` times `base` to a count, an unsigned integer. Products in one order: from the lowest bit on.
Value* Emitter::by_squaring(Typed base, Value* count, Value* start) {
  const bool real_type = gk::is_float(base.t);
  const auto product = [real_type](Builder& f, Value* x, Value* y) {
    return real_type ? f.CreateFMul(x, y) : f.CreateMul(x, y);
  };
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(count)) {
    const auto* first = llvm::dyn_cast<llvm::ConstantFP>(start);
    Value* power = first && first->isExactlyValue(1.0) ? nullptr : start;
    Value* square = base.v;
    for (uint64_t e = known->getZExtValue(); e != 0; e >>= 1) {
      if (e & 1) power = power ? product(b, power, square) : square;
      if (e > 1) square = product(b, square, square);
    }
    return power ? power : start;
  }
  llvm::Type *type = base.v->getType(), *count_type = count->getType();
  llvm::Function*& fn = power_function_[{type, count_type}];
  if (!fn) {
    fn = llvm::Function::Create(llvm::FunctionType::get(type, {type, count_type, type}, false),
                                llvm::GlobalValue::InternalLinkage, "gk_power", module);
    fn->addFnAttr(llvm::Attribute::NoUnwind);
    Builder f(llvm::BasicBlock::Create(context, "entry", fn));
    llvm::BasicBlock* entry = f.GetInsertBlock();
    llvm::BasicBlock* head = llvm::BasicBlock::Create(context, "loop", fn);
    llvm::BasicBlock* inside = llvm::BasicBlock::Create(context, "body", fn);
    llvm::BasicBlock* done = llvm::BasicBlock::Create(context, "done", fn);
    f.CreateBr(head);
    f.SetInsertPoint(head);
    llvm::PHINode* e = f.CreatePHI(count_type, 2);
    llvm::PHINode* square = f.CreatePHI(type, 2);
    llvm::PHINode* power = f.CreatePHI(type, 2);
    Value* none = llvm::Constant::getNullValue(count_type);
    f.CreateCondBr(f.CreateICmpEQ(e, none), done, inside);
    f.SetInsertPoint(inside);
    Value* odd = f.CreateICmpNE(f.CreateAnd(e, llvm::ConstantInt::get(count_type, 1)), none);
    e->addIncoming(fn->getArg(1), entry);
    e->addIncoming(f.CreateLShr(e, 1), inside);
    square->addIncoming(fn->getArg(0), entry);
    square->addIncoming(product(f, square, square), inside);
    power->addIncoming(fn->getArg(2), entry);
    power->addIncoming(f.CreateSelect(odd, product(f, power, square), power), inside);
    f.CreateBr(head);
    f.SetInsertPoint(done);
    f.CreateRet(power);
  }
  return b.CreateCall(fn, {base.v, count, start});
}

}  // namespace gk::codegen
