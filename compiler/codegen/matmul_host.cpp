// Matrix products on the host, where no library takes them: tiles of 4 rows and 32 columns. The sum over k
// runs in order with fused multiply-adds for floats, in the vector path and in the ragged one alike.
#include "compiler/codegen/reduce.h"
#include "compiler/codegen/shells.h"

namespace gk::codegen {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

Value* multiply_add(Emitter& e, Value* x, Value* y, Value* sum) {
  if (!x->getType()->isFPOrFPVectorTy()) return e.b.CreateAdd(sum, e.b.CreateMul(x, y));
  return e.b.CreateIntrinsic(Intrinsic::fma, {x->getType()}, {x, y, sum});
}

Value* matmul_operand(Emitter& e, const ir::Access& a, const std::vector<Value*>& at) {
  const DType t = e.kernel.params[static_cast<size_t>(a.param)].dtype;
  return e.cast({e.load(a, at), t}, e.kernel.matmul.accumulator);
}

namespace {

class HostMatMul {
 public:
  explicit HostMatMul(Emitter& emitter)
      : e(emitter), b(emitter.b), mm(e.kernel.matmul), type(e.compute_type(mm.accumulator)) {
    axes = e.kernel.axes.size();
    m = e.size(e.kernel.axes[axes - 2]);
    n = e.size(e.kernel.axes[axes - 1]);
    k = e.size(e.kernel.reduce_axes[0]);
    sums = e.stack(type, b.getInt64(kHostRows * kHostColumns));
  }

  void item(Value* number) {
    Value* wide = ceil_div(n, kHostColumns);
    Value* high = ceil_div(m, kHostRows);
    Value* rest = b.CreateUDiv(number, wide);
    Value* column = b.CreateNSWMul(b.CreateNSWSub(number, b.CreateNSWMul(rest, wide)), e.index(kHostColumns));
    Value* batch = b.CreateUDiv(rest, high);
    Value* row = b.CreateNSWMul(b.CreateNSWSub(rest, b.CreateNSWMul(batch, high)), e.index(kHostRows));
    const std::span<const ir::KSize> outer(e.kernel.axes.data(), axes - 2);
    std::vector<Value*> index = outer.empty() ? std::vector<Value*>{} : e.digits(batch, outer);
    Value* rows = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWSub(m, row), e.index(kHostRows));
    Value* columns =
        b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWSub(n, column), e.index(kHostColumns));

    if (is_unit(mm.b, axes - 1)) {
      llvm::BasicBlock* whole = e.block("whole");
      llvm::BasicBlock* part = e.block("part");
      llvm::BasicBlock* done = e.block("summed");
      Value* full = b.CreateAnd(b.CreateICmpEQ(rows, e.index(kHostRows)),
                                b.CreateICmpEQ(columns, e.index(kHostColumns)));
      b.CreateCondBr(full, whole, part);
      b.SetInsertPoint(whole);
      vectors(index, row, column);
      b.CreateBr(done);
      b.SetInsertPoint(part);
      scalars(index, row, column, rows, columns);
      b.CreateBr(done);
      b.SetInsertPoint(done);
    } else {
      scalars(index, row, column, rows, columns);
    }
    e.loop(e.index(0), rows, e.index(1), [&](Value* i) {
      e.loop(e.index(0), columns, e.index(1), [&](Value* j) {
        std::vector<Value*> at = index;
        at.push_back(b.CreateNSWAdd(row, i));
        at.push_back(b.CreateNSWAdd(column, j));
        run_epilogue(e, at, {{b.CreateLoad(type, slot(i, j)), mm.accumulator}});
      });
    });
  }

 private:
  Value* ceil_div(Value* x, int64_t by) {
    return b.CreateUDiv(b.CreateNSWAdd(x, e.index(by - 1)), e.index(by));
  }
  Value* slot(Value* i, Value* j) {
    return b.CreateInBoundsGEP(type, sums, b.CreateNSWAdd(b.CreateNSWMul(i, e.index(kHostColumns)), j));
  }
  std::vector<Value*> at(const std::vector<Value*>& index, Value* i, Value* j, Value* l) {
    std::vector<Value*> out = index;
    out.insert(out.end(), {i, j, l});
    return out;
  }

  void vectors(const std::vector<Value*>& index, Value* row, Value* column) {
    auto* lanes = llvm::FixedVectorType::get(type, kHostColumns);
    std::vector<Value*> sum;
    for (int i = 0; i < kHostRows; ++i) {
      sum.push_back(e.stack(lanes));
      b.CreateStore(llvm::Constant::getNullValue(lanes), sum.back());
    }
    const DType t = e.kernel.params[static_cast<size_t>(mm.b.param)].dtype;
    auto* stored = llvm::FixedVectorType::get(e.storage_type(t), kHostColumns);
    e.loop(e.index(0), k, e.index(1), [&](Value* l) {
      Value* where = e.address(mm.b.param, e.offset(mm.b, at(index, row, column, l)));
      Value* raw = b.CreateAlignedLoad(stored, where, llvm::Align(static_cast<uint64_t>(size_bytes(t))));
      Value* right = widen({e.from_storage(t, raw), t}, lanes);
      for (int i = 0; i < kHostRows; ++i) {
        Value* left = matmul_operand(e, mm.a, at(index, b.CreateNSWAdd(row, e.index(i)), column, l));
        Value* so_far = b.CreateLoad(lanes, sum[static_cast<size_t>(i)]);
        b.CreateStore(multiply_add(e, b.CreateVectorSplat(kHostColumns, left), right, so_far),
                      sum[static_cast<size_t>(i)]);
      }
    });
    for (int i = 0; i < kHostRows; ++i)
      b.CreateStore(b.CreateLoad(lanes, sum[static_cast<size_t>(i)]), slot(e.index(i), e.index(0)));
  }

  /// Vectors from an operand's type to the accumulator's: the same or wider.
  Value* widen(Typed x, llvm::Type* to) {
    if (x.v->getType() == to) return x.v;
    if (gk::is_float(x.t)) return b.CreateFPExt(x.v, to);
    return b.CreateIntCast(x.v, to, is_signed(x.t));
  }

  void scalars(const std::vector<Value*>& index, Value* row, Value* column, Value* rows, Value* columns) {
    e.loop(e.index(0), e.index(kHostRows * kHostColumns), e.index(1), [&](Value* i) {
      b.CreateStore(llvm::Constant::getNullValue(type), b.CreateInBoundsGEP(type, sums, i));
    });
    e.loop(e.index(0), k, e.index(1), [&](Value* l) {
      e.loop(e.index(0), rows, e.index(1), [&](Value* i) {
        Value* y = b.CreateNSWAdd(row, i);
        Value* left = matmul_operand(e, mm.a, at(index, y, column, l));
        e.loop(e.index(0), columns, e.index(1), [&](Value* j) {
          Value* right = matmul_operand(e, mm.b, at(index, row, b.CreateNSWAdd(column, j), l));
          Value* s = slot(i, j);
          b.CreateStore(multiply_add(e, left, right, b.CreateLoad(type, s)), s);
        });
      });
    });
  }

  Emitter& e;
  Builder& b;
  const ir::KMatMul& mm;
  llvm::Type* type;
  size_t axes;
  Value *m, *n, *k, *sums;
};

}  // namespace

void matmul_host(Emitter& e, const std::string& name) {
  host_entry(e, name, [&](Value* begin, Value* end) {
    HostMatMul matmul(e);
    e.loop(begin, end, e.index(1), [&](Value* number) { matmul.item(number); });
  });
}

}  // namespace gk::codegen
