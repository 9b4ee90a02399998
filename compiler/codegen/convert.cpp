// Types in memory and in registers, and the language's conversions: float to integer truncates and saturates
// (NaN 0), integers wrap, anything to bool is "not zero", anything to a float rounds once.
#include "compiler/codegen/emitter.h"

namespace gk::codegen {

using llvm::Value;

llvm::Type* Emitter::storage_type(DType t) {
  switch (t) {
    case DType::F16: return b.getHalfTy();
    case DType::BF16: return b.getInt16Ty();
    case DType::F32: return b.getFloatTy();
    case DType::F64: return b.getDoubleTy();
    default: return b.getIntNTy(static_cast<unsigned>(size_bytes(t) * 8));
  }
}

llvm::Type* Emitter::compute_type(DType t) {
  switch (t) {
    case DType::Bool: return b.getInt1Ty();
    case DType::F16:
    case DType::BF16:
    case DType::F32: return b.getFloatTy();
    case DType::F64: return b.getDoubleTy();
    default: return b.getIntNTy(static_cast<unsigned>(bits(t)));
  }
}

namespace {
/// `like`'s shape (scalar or vector) with another element type.
llvm::Type* shaped(llvm::Type* element, Value* like) { return like->getType()->getWithNewType(element); }
}  // namespace

Value* Emitter::from_storage(DType t, Value* v) {
  switch (t) {
    case DType::Bool: return b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    case DType::F16: return b.CreateFPExt(v, shaped(b.getFloatTy(), v));
    case DType::BF16:
      return b.CreateBitCast(b.CreateShl(b.CreateZExt(v, shaped(b.getInt32Ty(), v)), 16),
                             shaped(b.getFloatTy(), v));
    default: return v;
  }
}

/// Upper 16 bits of the result hold the bfloat16, the lower ones are zero. Integer arithmetic, because x86
/// without AVX512-BF16 has no instruction, and so that both targets give the same bits.
Value* Emitter::bf16_bits(Value* f) {
  Value* u = b.CreateBitCast(f, shaped(b.getInt32Ty(), f));
  auto k = [&](uint32_t v) { return llvm::ConstantInt::get(u->getType(), v); };
  Value* odd = b.CreateAnd(b.CreateLShr(u, 16), k(1));
  Value* rounded = b.CreateAdd(u, b.CreateAdd(odd, k(0x7fff)));
  Value* nan = b.CreateFCmpUNO(f, f);
  return b.CreateAnd(b.CreateSelect(nan, b.CreateOr(u, k(0x00400000)), rounded), k(0xffff0000));
}

Value* Emitter::to_storage(DType t, Value* v) {
  switch (t) {
    case DType::Bool: return b.CreateZExt(v, shaped(b.getInt8Ty(), v));
    case DType::F16: return b.CreateFPTrunc(v, shaped(b.getHalfTy(), v));
    case DType::BF16: return b.CreateTrunc(b.CreateLShr(bf16_bits(v), 16), shaped(b.getInt16Ty(), v));
    default: return v;
  }
}

Value* Emitter::round_to(DType t, Value* v) {
  if (t == DType::F16) return b.CreateFPExt(b.CreateFPTrunc(v, shaped(b.getHalfTy(), v)), v->getType());
  if (t == DType::BF16) return b.CreateBitCast(bf16_bits(v), v->getType());
  return v;
}

/// f64 to f16 or bf16 in one rounding: first to f32 by rounding to odd, which keeps what the second step
/// needs.
Value* Emitter::double_to_narrow(DType to, Value* v) {
  Value* f = b.CreateFPTrunc(v, b.getFloatTy());
  Value* back = b.CreateFPExt(f, b.getDoubleTy());
  Value* u = b.CreateBitCast(f, b.getInt32Ty());
  Value* exact_or_nan = b.CreateFCmpUEQ(back, v);
  Value* away = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
  Value* odd = b.CreateOr(b.CreateSub(u, b.CreateZExt(away, b.getInt32Ty())), b.getInt32(1));
  return round_to(to, b.CreateBitCast(b.CreateSelect(exact_or_nan, u, odd), b.getFloatTy()));
}

Value* Emitter::cast(Typed x, DType to) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.setFastMathFlags({});
  if (x.t == to) return x.v;
  llvm::Type* type = compute_type(to);
  if (is_bool(to)) {
    if (gk::is_float(x.t)) return b.CreateFCmpUNE(x.v, real(x.v->getType(), 0));
    return b.CreateICmpNE(x.v, llvm::Constant::getNullValue(x.v->getType()));
  }
  if (gk::is_float(x.t)) {
    if (!gk::is_float(to)) {
      const auto id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
      return b.CreateIntrinsic(id, {type, x.v->getType()}, {x.v});
    }
    if (x.t == DType::F64) {
      if (to == DType::F32) return b.CreateFPTrunc(x.v, type);
      return double_to_narrow(to, x.v);
    }
    if (to == DType::F64) return b.CreateFPExt(x.v, type);
    return round_to(to, x.v);  // among f16, bf16, f32, all of which are floats here
  }
  const bool sign = is_signed(x.t);
  if (!gk::is_float(to)) return b.CreateIntCast(x.v, type, sign);
  auto number = [&](Value* v, llvm::Type* t) { return sign ? b.CreateSIToFP(v, t) : b.CreateUIToFP(v, t); };
  if (to == DType::F32 || to == DType::F64) return number(x.v, type);
  if (is_bool(x.t) || bits(x.t) <= 16) return round_to(to, number(x.v, b.getFloatTy()));
  Value* v = x.v;
  if (bits(x.t) == 64) {
    // Beyond 2^53 an f64 would round too: drop 11 bits into a sticky one first.
    Value* low = b.CreateAnd(v, b.getInt64(0x7ff));
    Value* sticky =
        b.CreateOr(b.CreateAnd(v, b.getInt64(~uint64_t{0x7ff})),
                   b.CreateShl(b.CreateZExt(b.CreateICmpNE(low, b.getInt64(0)), b.getInt64Ty()), 11));
    Value* magnitude = sign ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, v, b.getFalse()) : v;
    v = b.CreateSelect(b.CreateICmpUGE(magnitude, b.getInt64(uint64_t{1} << 53)), sticky, v);
  }
  return double_to_narrow(to, number(v, b.getDoubleTy()));
}

Value* Emitter::constant(const Scalar& s) {
  llvm::Type* type = compute_type(s.dtype);
  if (s.is_float()) return llvm::ConstantFP::get(type, s.f);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(s.i), false, true);
}

}  // namespace gk::codegen
