#include "compiler/codegen/reduce.h"

#include <limits>

namespace gk::codegen {

using ir::KReduction;
using ir::ReduceOp;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();  // index of "no element yet"

DType value_type(const KReduction& r) { return is_arg(r) ? r.value_dtype : r.accumulator; }

llvm::Constant* least(llvm::Type* t, DType d) {
  if (gk::is_float(d)) return llvm::ConstantFP::getInfinity(t, true);
  const unsigned n = t->getIntegerBitWidth();
  return llvm::ConstantInt::get(t, is_signed(d) ? llvm::APInt::getSignedMinValue(n) : llvm::APInt(n, 0));
}
llvm::Constant* greatest(llvm::Type* t, DType d) {
  if (gk::is_float(d)) return llvm::ConstantFP::getInfinity(t, false);
  const unsigned n = t->getIntegerBitWidth();
  return llvm::ConstantInt::get(
      t, is_signed(d) ? llvm::APInt::getSignedMaxValue(n) : llvm::APInt::getMaxValue(n));
}
}  // namespace

bool is_arg(const KReduction& r) { return r.op == ReduceOp::ArgMin || r.op == ReduceOp::ArgMax; }

llvm::Type* partial_type(Emitter& e, const KReduction& r) {
  const DType t = value_type(r);
  return is_bool(t) ? e.b.getInt8Ty() : e.compute_type(t);
}

Partial identity(Emitter& e, const KReduction& r) {
  llvm::Type* t = partial_type(e, r);
  const DType d = value_type(r);
  llvm::Constant* zero = llvm::Constant::getNullValue(t);
  llvm::Constant* one = gk::is_float(d) ? llvm::ConstantFP::get(t, 1) : llvm::ConstantInt::get(t, 1);
  switch (r.op) {
    case ReduceOp::Prod:
    case ReduceOp::All: return {one, nullptr};
    case ReduceOp::Min: return {is_bool(d) ? one : greatest(t, d), nullptr};
    case ReduceOp::Max: return {is_bool(d) ? zero : least(t, d), nullptr};
    case ReduceOp::ArgMin:
    case ReduceOp::ArgMax: return {zero, e.b.getInt64(kNone)};
    default: return {zero, nullptr};
  }
}

Partial lift(Emitter& e, const KReduction& r, Typed value, Value* at) {
  Partial p{e.cast(value, value_type(r)), nullptr};
  if (is_bool(value_type(r))) p.v = e.b.CreateZExt(p.v, e.b.getInt8Ty());
  if (is_arg(r)) p.at = at;
  return p;
}

Partial combine(Emitter& e, const KReduction& r, Partial x, Partial y) {
  Builder& b = e.b;
  const DType d = value_type(r);
  const bool real_type = gk::is_float(d);
  switch (r.op) {
    case ReduceOp::Sum: return {real_type ? b.CreateFAdd(x.v, y.v) : b.CreateAdd(x.v, y.v), nullptr};
    case ReduceOp::Prod: return {real_type ? b.CreateFMul(x.v, y.v) : b.CreateMul(x.v, y.v), nullptr};
    case ReduceOp::Min: return {e.minimum({x.v, d}, y.v), nullptr};
    case ReduceOp::Max: return {e.maximum({x.v, d}, y.v), nullptr};
    case ReduceOp::Any: return {b.CreateOr(x.v, y.v), nullptr};
    case ReduceOp::All: return {b.CreateAnd(x.v, y.v), nullptr};
    default: break;
  }
  // The first NaN, else the extreme value, else the smaller index.
  const bool least_wins = r.op == ReduceOp::ArgMin;
  Value *beats = nullptr, *ties = nullptr;
  if (real_type) {
    beats = least_wins ? b.CreateFCmpOLT(y.v, x.v) : b.CreateFCmpOGT(y.v, x.v);
    ties = b.CreateFCmpOEQ(y.v, x.v);
    Value* x_nan = b.CreateFCmpUNO(x.v, x.v);
    Value* y_nan = b.CreateFCmpUNO(y.v, y.v);
    beats = b.CreateOr(beats, b.CreateAnd(y_nan, b.CreateNot(x_nan)));
    ties = b.CreateOr(ties, b.CreateAnd(y_nan, x_nan));
  } else {
    const bool sign = is_signed(d);
    beats = least_wins ? (sign ? b.CreateICmpSLT(y.v, x.v) : b.CreateICmpULT(y.v, x.v))
                       : (sign ? b.CreateICmpSGT(y.v, x.v) : b.CreateICmpUGT(y.v, x.v));
    ties = b.CreateICmpEQ(y.v, x.v);
  }
  Value* none = llvm::ConstantInt::get(x.at->getType(), static_cast<uint64_t>(kNone));
  Value* earlier = b.CreateICmpSLT(y.at, x.at);
  Value* take = b.CreateOr(beats, b.CreateAnd(ties, earlier));
  take = b.CreateOr(take, b.CreateICmpEQ(x.at, none));
  take = b.CreateAnd(take, b.CreateICmpNE(y.at, none));
  return {b.CreateSelect(take, y.v, x.v), b.CreateSelect(take, y.at, x.at)};
}

Typed reduced(Emitter& e, const KReduction& r, Partial p) {
  if (is_arg(r)) {
    Value* none = e.b.CreateICmpEQ(p.at, e.b.getInt64(kNone));
    return {e.b.CreateSelect(none, e.b.getInt64(0), p.at), DType::I64};
  }
  Value* v = is_bool(value_type(r)) ? e.b.CreateICmpNE(p.v, e.b.getInt8(0)) : p.v;
  return {v, value_type(r)};
}

Partials::Partials(Emitter& emitter, unsigned lanes) : e(emitter), lanes_(lanes) {
  for (size_t k = 0; k < e.kernel.reductions.size(); ++k) {
    values_.push_back(e.stack(type(k)));
    places_.push_back(is_arg(e.kernel.reductions[k]) ? e.stack(at_type()) : nullptr);
  }
}

llvm::Type* Partials::type(size_t k) {
  llvm::Type* t = partial_type(e, e.kernel.reductions[k]);
  return lanes_ == 1 ? t : llvm::FixedVectorType::get(t, lanes_);
}
llvm::Type* Partials::at_type() {
  return lanes_ == 1 ? e.b.getInt64Ty()
                     : static_cast<llvm::Type*>(llvm::FixedVectorType::get(e.b.getInt64Ty(), lanes_));
}

void Partials::reset() {
  for (size_t k = 0; k < values_.size(); ++k) {
    Partial p = identity(e, e.kernel.reductions[k]);
    if (lanes_ > 1) {
      p.v = e.b.CreateVectorSplat(lanes_, p.v);
      if (p.at) p.at = e.b.CreateVectorSplat(lanes_, p.at);
    }
    set(k, p);
  }
}

Partial Partials::get(size_t k) {
  return {e.b.CreateLoad(type(k), values_[k]), places_[k] ? e.b.CreateLoad(at_type(), places_[k]) : nullptr};
}

void Partials::set(size_t k, Partial p) {
  e.b.CreateStore(p.v, values_[k]);
  if (places_[k]) e.b.CreateStore(p.at, places_[k]);
}

void Partials::add_body(Point& p, Value* at) {
  e.run(e.kernel.body, p);
  for (size_t k = 0; k < e.kernel.reductions.size(); ++k) {
    const KReduction& r = e.kernel.reductions[k];
    add(k, lift(e, r, p.values[static_cast<size_t>(r.value)], at));
  }
}

void run_epilogue(Emitter& e, const std::vector<Value*>& index, std::vector<Typed> results) {
  Point p = e.point();
  p.index = index;
  p.reduced = std::move(results);
  e.run(e.kernel.epilogue, p);
}

}  // namespace gk::codegen
