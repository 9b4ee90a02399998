// The elementwise ops of the op table, one function a family.
#include "compiler/codegen/emitter.h"

namespace gk::codegen {

using ir::Op;
using llvm::Value;
using llvm::Intrinsic::ID;
namespace Intrinsic = llvm::Intrinsic;

namespace {
bool is_transcendental(Op op) {
  switch (op) {
    case Op::Exp:
    case Op::Exp2:
    case Op::Expm1:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Asin:
    case Op::Acos:
    case Op::Atan:
    case Op::Sinh:
    case Op::Cosh:
    case Op::Tanh:
    case Op::Asinh:
    case Op::Acosh:
    case Op::Atanh:
    case Op::Erf: return true;
    default: return false;
  }
}
}  // namespace

Value* Emitter::compute(Op op, std::span<const Typed> args, DType result) {
  if (args.size() == 3)  // Where
    return b.CreateSelect(cast(args[0], DType::Bool), cast(args[1], result), cast(args[2], result));
  Value* v = args.size() == 1 ? unary(op, args[0]) : binary(op, args[0], args[1]);
  return gk::is_float(result) ? round_to(result, v) : v;
}

Value* Emitter::unary(Op op, Typed x) {
  const bool real_type = gk::is_float(x.t);
  Value* zero = llvm::Constant::getNullValue(x.v->getType());
  if (is_transcendental(op)) {
    Value* v[] = {x.v};
    return math(op, v);
  }
  switch (op) {
    case Op::Neg: return real_type ? b.CreateFNeg(x.v) : b.CreateNeg(x.v);
    case Op::Abs:
      if (real_type) return b.CreateUnaryIntrinsic(Intrinsic::fabs, x.v);
      if (!is_signed(x.t)) return x.v;
      return b.CreateBinaryIntrinsic(Intrinsic::abs, x.v, b.getFalse());  // the least integer stays itself
    case Op::Sign: {
      if (real_type) {
        Value* one = real(x.v->getType(), 1);
        Value* r = b.CreateSelect(b.CreateFCmpOGT(x.v, zero), one,
                                  b.CreateSelect(b.CreateFCmpOLT(x.v, zero), real(x.v->getType(), -1), zero));
        return b.CreateSelect(b.CreateFCmpUNO(x.v, x.v), x.v, r);
      }
      Value* positive = b.CreateZExt(b.CreateICmpNE(x.v, zero), x.v->getType());
      if (is_bool(x.t) || !is_signed(x.t)) return positive;
      return b.CreateSelect(b.CreateICmpSLT(x.v, zero), llvm::Constant::getAllOnesValue(x.v->getType()),
                            positive);
    }
    case Op::Not:
    case Op::BitNot: return b.CreateNot(x.v);
    case Op::Floor: return real_type ? b.CreateUnaryIntrinsic(Intrinsic::floor, x.v) : x.v;
    case Op::Ceil: return real_type ? b.CreateUnaryIntrinsic(Intrinsic::ceil, x.v) : x.v;
    case Op::Round: return real_type ? b.CreateUnaryIntrinsic(Intrinsic::roundeven, x.v) : x.v;
    case Op::Trunc: return real_type ? b.CreateUnaryIntrinsic(Intrinsic::trunc, x.v) : x.v;
    case Op::Sqrt: return b.CreateUnaryIntrinsic(Intrinsic::sqrt, x.v);
    case Op::IsNan: return real_type ? b.CreateFCmpUNO(x.v, x.v) : b.getFalse();
    case Op::IsInf: {
      if (!real_type) return b.getFalse();
      Value* inf = llvm::ConstantFP::getInfinity(x.v->getType());
      return b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(Intrinsic::fabs, x.v), inf);
    }
    case Op::IsFinite: {
      if (!real_type) return b.getTrue();
      Value* inf = llvm::ConstantFP::getInfinity(x.v->getType());
      return b.CreateFCmpOLT(b.CreateUnaryIntrinsic(Intrinsic::fabs, x.v), inf);
    }
    default: return x.v;
  }
}

Value* Emitter::binary(Op op, Typed x, Typed y) {
  const bool real_type = gk::is_float(x.t);
  switch (op) {
    case Op::Add: return real_type ? b.CreateFAdd(x.v, y.v) : b.CreateAdd(x.v, y.v);
    case Op::Sub: return real_type ? b.CreateFSub(x.v, y.v) : b.CreateSub(x.v, y.v);
    case Op::Mul: return real_type ? b.CreateFMul(x.v, y.v) : b.CreateMul(x.v, y.v);
    case Op::Div: return b.CreateFDiv(x.v, y.v);
    case Op::FloorDiv:
    case Op::Mod: return real_type ? float_divide(op, x.v, y.v) : integer_divide(op, x, y.v);
    case Op::Pow: {
      if (!real_type) return integer_power(x, y.v);
      Value* v[] = {x.v, y.v};
      return math(op, v);
    }
    case Op::Atan2: {
      Value* v[] = {x.v, y.v};
      return math(op, v);
    }
    case Op::PowInt: return float_power(x, y);
    case Op::Min: return minimum(x, y.v);
    case Op::Max: return maximum(x, y.v);
    case Op::And: return b.CreateAnd(x.v, y.v);
    case Op::Or: return b.CreateOr(x.v, y.v);
    case Op::Xor: return b.CreateXor(x.v, y.v);
    case Op::Shl:
    case Op::Shr: return shift(op, x, y.v);
    default: return compare(op, x, y.v);
  }
}

Value* Emitter::minimum(Typed x, Value* y) {
  if (gk::is_float(x.t)) return b.CreateBinaryIntrinsic(Intrinsic::minimum, x.v, y);
  return b.CreateBinaryIntrinsic(is_signed(x.t) ? Intrinsic::smin : Intrinsic::umin, x.v, y);
}

Value* Emitter::maximum(Typed x, Value* y) {
  if (gk::is_float(x.t)) return b.CreateBinaryIntrinsic(Intrinsic::maximum, x.v, y);
  return b.CreateBinaryIntrinsic(is_signed(x.t) ? Intrinsic::smax : Intrinsic::umax, x.v, y);
}

Value* Emitter::compare(Op op, Typed x, Value* y) {
  if (gk::is_float(x.t)) {
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

/// Floors; by zero gives 0 (the fault was recorded by the caller), and the least integer by -1 wraps.
Value* Emitter::integer_divide(Op op, Typed x, Value* y) {
  llvm::Type* type = x.v->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* by_zero = b.CreateICmpEQ(y, zero);
  if (!is_signed(x.t)) {
    Value* d = b.CreateSelect(by_zero, one, y);
    Value* r = op == Op::FloorDiv ? b.CreateUDiv(x.v, d) : b.CreateURem(x.v, d);
    return b.CreateSelect(by_zero, zero, r);
  }
  Value* minus_one = llvm::Constant::getAllOnesValue(type);
  Value* negates = b.CreateICmpEQ(y, minus_one);
  Value* d = b.CreateSelect(b.CreateOr(by_zero, negates), one, y);
  Value* rest = b.CreateSRem(x.v, d);
  // The remainder's sign is the dividend's; where it is not the divisor's, the quotient was rounded up.
  Value* off = b.CreateAnd(b.CreateICmpNE(rest, zero), b.CreateICmpSLT(b.CreateXor(rest, d), zero));
  if (op == Op::Mod) {
    Value* r = b.CreateSelect(off, b.CreateAdd(rest, d), rest);
    return b.CreateSelect(b.CreateOr(by_zero, negates), zero, r);
  }
  Value* q = b.CreateAdd(b.CreateSDiv(x.v, d), b.CreateSExt(off, type));
  return b.CreateSelect(by_zero, zero, b.CreateSelect(negates, b.CreateNeg(x.v), q));
}

/// By squaring, wrapping. A negative exponent: the inverse where it is an integer (of 1 and -1), else 0.
Value* Emitter::integer_power(Typed x, Value* y) {
  llvm::Function*& fn = power_function_[static_cast<int>(x.t)];
  llvm::Type* type = x.v->getType();
  if (!fn) {
    fn = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                llvm::GlobalValue::InternalLinkage, "gk_pow", module);
    fn->addFnAttr(llvm::Attribute::NoUnwind);
    Builder f(llvm::BasicBlock::Create(context, "entry", fn));
    llvm::BasicBlock* entry = f.GetInsertBlock();
    llvm::BasicBlock* head = llvm::BasicBlock::Create(context, "loop", fn);
    llvm::BasicBlock* inside = llvm::BasicBlock::Create(context, "body", fn);
    llvm::BasicBlock* done = llvm::BasicBlock::Create(context, "done", fn);
    Value* zero = llvm::Constant::getNullValue(type);
    Value* one = llvm::ConstantInt::get(type, 1);
    Value* base = fn->getArg(0);
    Value* negative = is_signed(x.t) ? f.CreateICmpSLT(fn->getArg(1), zero) : f.getFalse();
    // Of a negative exponent only its lowest bit matters, and only for bases 1 and -1.
    Value* unit = is_signed(x.t) ? f.CreateOr(f.CreateICmpEQ(base, one),
                                              f.CreateICmpEQ(base, llvm::Constant::getAllOnesValue(type)))
                                 : f.getFalse();
    Value* exponent = f.CreateSelect(negative, f.CreateAnd(fn->getArg(1), one), fn->getArg(1));
    Value* start = f.CreateSelect(f.CreateAnd(negative, f.CreateNot(unit)), zero, one);
    f.CreateBr(head);
    f.SetInsertPoint(head);
    llvm::PHINode* e = f.CreatePHI(type, 2);
    llvm::PHINode* square = f.CreatePHI(type, 2);
    llvm::PHINode* power = f.CreatePHI(type, 2);
    f.CreateCondBr(f.CreateICmpEQ(e, zero), done, inside);
    f.SetInsertPoint(inside);
    Value* odd = f.CreateICmpNE(f.CreateAnd(e, one), zero);
    Value* product = f.CreateSelect(odd, f.CreateMul(power, square), power);
    e->addIncoming(exponent, entry);
    e->addIncoming(f.CreateLShr(e, 1), inside);
    square->addIncoming(base, entry);
    square->addIncoming(f.CreateMul(square, square), inside);
    power->addIncoming(start, entry);
    power->addIncoming(product, inside);
    f.CreateBr(head);
    f.SetInsertPoint(done);
    f.CreateRet(power);
  }
  return b.CreateCall(fn, {x.v, y});
}

/// Repeated squaring, from the lowest bit of the exponent on. A negative exponent: 1 over the power of its
/// size. No flags: the order of the products is part of the result.
Value* Emitter::float_power(Typed x, Typed y) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.setFastMathFlags({});
  llvm::Type* type = x.v->getType();
  Value* one = real(type, 1);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(y.v)) {
    const bool negative = is_signed(y.t) && known->isNegative();
    uint64_t e = known->getZExtValue();
    if (negative) e = 0 - e;
    Value* power = nullptr;
    for (Value* square = x.v; e != 0; e >>= 1) {
      if (e & 1) power = power ? b.CreateFMul(power, square) : square;
      if (e > 1) square = b.CreateFMul(square, square);
    }
    if (!power) return one;
    return negative ? b.CreateFDiv(one, power) : power;
  }
  llvm::Type* i64 = b.getInt64Ty();
  llvm::Function*& fn = float_power_function_[static_cast<int>(x.t)][is_signed(y.t)];
  if (!fn) {
    fn = llvm::Function::Create(llvm::FunctionType::get(type, {type, i64}, false),
                                llvm::GlobalValue::InternalLinkage, "gk_powi", module);
    fn->addFnAttr(llvm::Attribute::NoUnwind);
    Builder f(llvm::BasicBlock::Create(context, "entry", fn));
    llvm::BasicBlock* entry = f.GetInsertBlock();
    llvm::BasicBlock* head = llvm::BasicBlock::Create(context, "loop", fn);
    llvm::BasicBlock* inside = llvm::BasicBlock::Create(context, "body", fn);
    llvm::BasicBlock* done = llvm::BasicBlock::Create(context, "done", fn);
    Value* zero = f.getInt64(0);
    Value* given = fn->getArg(1);
    Value* negative = is_signed(y.t) ? f.CreateICmpSLT(given, zero) : f.getFalse();
    Value* size = f.CreateSelect(negative, f.CreateNeg(given), given);
    f.CreateBr(head);
    f.SetInsertPoint(head);
    llvm::PHINode* e = f.CreatePHI(i64, 2);
    llvm::PHINode* square = f.CreatePHI(type, 2);
    llvm::PHINode* power = f.CreatePHI(type, 2);
    f.CreateCondBr(f.CreateICmpEQ(e, zero), done, inside);
    f.SetInsertPoint(inside);
    Value* odd = f.CreateICmpNE(f.CreateAnd(e, f.getInt64(1)), zero);
    e->addIncoming(size, entry);
    e->addIncoming(f.CreateLShr(e, 1), inside);
    square->addIncoming(fn->getArg(0), entry);
    square->addIncoming(f.CreateFMul(square, square), inside);
    power->addIncoming(one, entry);
    power->addIncoming(f.CreateSelect(odd, f.CreateFMul(power, square), power), inside);
    f.CreateBr(head);
    f.SetInsertPoint(done);
    f.CreateRet(f.CreateSelect(negative, f.CreateFDiv(one, power), power));
  }
  return b.CreateCall(fn, {x.v, y.v});
}

Value* Emitter::shift(Op op, Typed x, Value* y) {
  llvm::Type* type = x.v->getType();
  const unsigned width = type->getScalarSizeInBits();
  Value* limit = llvm::ConstantInt::get(type, width);
  Value* inside = b.CreateICmpULT(y, limit);  // a negative amount is a large one
  Value* last = llvm::ConstantInt::get(type, width - 1);
  Value* amount = b.CreateSelect(inside, y, last);
  if (op == Op::Shr && is_signed(x.t)) return b.CreateAShr(x.v, amount);
  Value* r = op == Op::Shl ? b.CreateShl(x.v, amount) : b.CreateLShr(x.v, amount);
  return b.CreateSelect(inside, r, llvm::Constant::getNullValue(type));
}

/// NumPy's floor division and remainder of floats: fmod is exact, so the remainder is too, and the quotient
/// is corrected to the integer that belongs to it.
Value* Emitter::float_divide(Op op, Value* x, Value* y) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.setFastMathFlags({});
  llvm::Type* type = x->getType();
  Value* zero = real(type, 0);
  Value* one = real(type, 1);
  Value* rest = float_mod(x, y);
  Value* by_zero = b.CreateFCmpOEQ(y, zero);
  Value* off = b.CreateAnd(b.CreateFCmpUNE(rest, zero),
                           b.CreateXor(b.CreateFCmpOLT(y, zero), b.CreateFCmpOLT(rest, zero)));
  if (op == Op::Mod) {
    Value* r = b.CreateSelect(off, b.CreateFAdd(rest, y), rest);
    Value* signed_zero = b.CreateBinaryIntrinsic(Intrinsic::copysign, zero, y);
    r = b.CreateSelect(b.CreateFCmpOEQ(rest, zero), signed_zero, r);
    return b.CreateSelect(by_zero, rest, r);
  }
  Value* q = b.CreateFDiv(b.CreateFSub(x, rest), y);
  q = b.CreateSelect(off, b.CreateFSub(q, one), q);
  Value* quotient = b.CreateFDiv(x, y);
  Value* down = b.CreateUnaryIntrinsic(Intrinsic::floor, q);
  Value* up = b.CreateFCmpOGT(b.CreateFSub(q, down), real(type, 0.5));
  Value* r = b.CreateSelect(up, b.CreateFAdd(down, one), down);
  Value* signed_zero = b.CreateBinaryIntrinsic(Intrinsic::copysign, zero, quotient);
  r = b.CreateSelect(b.CreateFCmpOEQ(q, zero), signed_zero, r);
  return b.CreateSelect(by_zero, quotient, r);
}

}  // namespace gk::codegen
