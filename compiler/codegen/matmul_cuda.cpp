// Matrix products on NVIDIA, by fused multiply-adds in the accumulator's type. Two kernels, chosen by extents
// alone: `split` (small products, few rows) has the threads of a block share each sum over k, so that even a
// 16 x 256 result keeps many multiprocessors busy; `tiled` stages 64 x 64 tiles through shared memory. In
// `split`, part s of the threads sums k = s, s + split, … in order and the parts are added in order.
#include "compiler/codegen/reduce.h"
#include "compiler/codegen/shells.h"

namespace gk::codegen {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

class CudaMatMul {
 public:
  explicit CudaMatMul(Emitter& emitter)
      : e(emitter), b(emitter.b), mm(e.kernel.matmul), type(e.compute_type(mm.accumulator)) {
    axes = e.kernel.axes.size();
    m = e.size(e.kernel.axes[axes - 2]);
    n = e.size(e.kernel.axes[axes - 1]);
    k = e.size(e.kernel.reduce_axes[0]);
    x = cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_tid_x);
  }

  void split() {
    const int parts = e.variant.split;
    Value* part = cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_tid_y);
    Value* shared = cuda_shared(e, type, int64_t{parts} * kMatMulRows * kMatMulColumns, "parts");
    std::vector<Value*> sums;
    for (int i = 0; i < kMatMulRows; ++i) sums.push_back(e.stack(type));
    each_tile(kMatMulRows, kMatMulColumns, [&](const std::vector<Value*>& index, Value* row, Value* column) {
      Value* j = b.CreateNSWAdd(column, x);
      Value* inside = b.CreateICmpSLT(j, n);
      for (Value* s : sums) b.CreateStore(llvm::Constant::getNullValue(type), s);
      // Rows past the end read the last one, which costs less than asking in the loop.
      std::vector<Value*> rows;
      for (int i = 0; i < kMatMulRows; ++i)
        rows.push_back(b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWAdd(row, e.index(i)),
                                               b.CreateNSWSub(m, e.index(1))));
      e.when(inside, [&] {
        e.loop(
            part, k, e.index(parts),
            [&](Value* l) {
              Value* right = matmul_operand(e, mm.b, at(index, row, j, l));
              for (size_t i = 0; i < sums.size(); ++i) {
                Value* left = matmul_operand(e, mm.a, at(index, rows[i], j, l));
                b.CreateStore(multiply_add(e, left, right, b.CreateLoad(type, sums[i])), sums[i]);
              }
            },
            8);
      });
      auto slot = [&](Value* p, Value* i) {
        Value* line = b.CreateNSWAdd(b.CreateNSWMul(p, e.index(kMatMulRows)), i);
        return b.CreateInBoundsGEP(type, shared,
                                   b.CreateNSWAdd(b.CreateNSWMul(line, e.index(kMatMulColumns)), x));
      };
      for (int i = 0; i < kMatMulRows; ++i)
        b.CreateStore(b.CreateLoad(type, sums[static_cast<size_t>(i)]), slot(part, e.index(i)));
      cuda_barrier(e);
      // Thread row i finishes result row i.
      Value* y = b.CreateNSWAdd(row, part);
      Value* mine = b.CreateAnd(b.CreateICmpSLT(part, e.index(kMatMulRows)), b.CreateICmpSLT(y, m));
      e.when(b.CreateAnd(mine, inside), [&] {
        Value* sum = b.CreateLoad(type, slot(e.index(0), part));
        for (int p = 1; p < parts; ++p) {
          Value* next = b.CreateLoad(type, slot(e.index(p), part));
          sum = type->isFloatingPointTy() ? b.CreateFAdd(sum, next) : b.CreateAdd(sum, next);
        }
        finish(index, y, j, sum);
      });
      cuda_barrier(e);
    });
  }

  void tiled() {
    constexpr int kDepth = 16, kPer = 4, kSide = kMatMulTile / kPer;  // 16 x 16 threads, 4 x 4 results each
    // One more column, so that the threads that stage a transposed operand hit different banks.
    constexpr int kPitch = kMatMulTile + 1;
    Value* left = cuda_shared(e, type, kDepth * kPitch, "left");
    Value* right = cuda_shared(e, type, kDepth * kPitch, "right");
    Value* tx = b.CreateAnd(x, e.index(kSide - 1));
    Value* ty = b.CreateLShr(x, 4);
    std::vector<Value*> sums;
    for (int i = 0; i < kPer * kPer; ++i) sums.push_back(e.stack(type));
    auto cell = [&](Value* base, Value* l, Value* i) {
      return b.CreateInBoundsGEP(type, base, b.CreateNSWAdd(b.CreateNSWMul(l, e.index(kPitch)), i));
    };
    each_tile(kMatMulTile, kMatMulTile, [&](const std::vector<Value*>& index, Value* row, Value* column) {
      for (Value* s : sums) b.CreateStore(llvm::Constant::getNullValue(type), s);
      e.loop(e.index(0), k, e.index(kDepth), [&](Value* start) {
        for (int part = 0; part < kDepth * kMatMulTile / 256; ++part) {
          Value* i = b.CreateNSWAdd(x, e.index(part * 256));
          stage(mm.a, is_unit(mm.a, axes), i, start, row, m, left, cell,
                [&](Value* y, Value* l) { return at(index, y, column, l); });
          stage(mm.b, is_unit(mm.b, axes), i, start, column, n, right, cell,
                [&](Value* z, Value* l) { return at(index, row, z, l); });
        }
        cuda_barrier(e);
        e.loop(
            e.index(0), e.index(kDepth), e.index(1),
            [&](Value* l) {
              std::vector<Value*> ls, rs;
              for (int i = 0; i < kPer; ++i) {
                ls.push_back(b.CreateLoad(type, cell(left, l, b.CreateNSWAdd(ty, e.index(i * kSide)))));
                rs.push_back(b.CreateLoad(type, cell(right, l, b.CreateNSWAdd(tx, e.index(i * kSide)))));
              }
              for (size_t i = 0; i < kPer; ++i)
                for (size_t j = 0; j < kPer; ++j) {
                  Value* s = sums[i * kPer + j];
                  b.CreateStore(multiply_add(e, ls[i], rs[j], b.CreateLoad(type, s)), s);
                }
            },
            kDepth);
        cuda_barrier(e);
      });
      for (int i = 0; i < kPer; ++i)
        for (int j = 0; j < kPer; ++j) {
          Value* y = b.CreateNSWAdd(row, b.CreateNSWAdd(ty, e.index(i * kSide)));
          Value* z = b.CreateNSWAdd(column, b.CreateNSWAdd(tx, e.index(j * kSide)));
          e.when(b.CreateAnd(b.CreateICmpSLT(y, m), b.CreateICmpSLT(z, n)),
                 [&] { finish(index, y, z, b.CreateLoad(type, sums[static_cast<size_t>(i * kPer + j)])); });
        }
    });
  }

 private:
  std::vector<Value*> at(const std::vector<Value*>& index, Value* i, Value* j, Value* l) {
    std::vector<Value*> out = index;
    out.insert(out.end(), {i, j, l});
    return out;
  }
  void finish(const std::vector<Value*>& index, Value* y, Value* z, Value* sum) {
    std::vector<Value*> place = index;
    place.insert(place.end(), {y, z});
    run_epilogue(e, place, {{sum, mm.accumulator}});
  }

  /// Copies element `i` of a depth x tile block into shared memory; outside the operand it is zero.
  /// Neighbouring threads follow the operand's contiguous axis.
  template <class Cell, class At>
  void stage(const ir::Access& a, bool depth_first, Value* i, Value* start, Value* first, Value* limit,
             Value* to, const Cell& cell, const At& where) {
    constexpr int kDepth = 16;
    Value* l = depth_first ? b.CreateAnd(i, e.index(kDepth - 1)) : b.CreateLShr(i, 6);
    Value* s = depth_first ? b.CreateLShr(i, 4) : b.CreateAnd(i, e.index(kMatMulTile - 1));
    Value* depth = b.CreateNSWAdd(start, l);
    Value* side = b.CreateNSWAdd(first, s);
    llvm::BasicBlock* load = e.block("stage");
    llvm::BasicBlock* done = e.block("staged");
    llvm::BasicBlock* before = b.GetInsertBlock();
    b.CreateCondBr(b.CreateAnd(b.CreateICmpSLT(depth, k), b.CreateICmpSLT(side, limit)), load, done);
    b.SetInsertPoint(load);
    Value* v = matmul_operand(e, a, where(side, depth));
    llvm::BasicBlock* loaded = b.GetInsertBlock();
    b.CreateBr(done);
    b.SetInsertPoint(done);
    llvm::PHINode* phi = b.CreatePHI(type, 2);
    phi->addIncoming(v, loaded);
    phi->addIncoming(llvm::Constant::getNullValue(type), before);
    b.CreateStore(phi, cell(to, l, s));
  }

  void each_tile(int rows, int columns,
                 const std::function<void(const std::vector<Value*>&, Value*, Value*)>& body) {
    auto ceil_div = [&](Value* v, int by) {
      return b.CreateUDiv(b.CreateNSWAdd(v, e.index(by - 1)), e.index(by));
    };
    Value* wide = ceil_div(n, columns);
    Value* high = ceil_div(m, rows);
    const std::span<const ir::KSize> outer(e.kernel.axes.data(), axes - 2);
    Value* count = b.CreateNSWMul(e.product(outer), b.CreateNSWMul(wide, high));
    e.loop(cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_ctaid_x), count,
           cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_nctaid_x), [&](Value* number) {
             Value* rest = b.CreateUDiv(number, wide);
             Value* column =
                 b.CreateNSWMul(b.CreateNSWSub(number, b.CreateNSWMul(rest, wide)), e.index(columns));
             Value* batch = b.CreateUDiv(rest, high);
             Value* row = b.CreateNSWMul(b.CreateNSWSub(rest, b.CreateNSWMul(batch, high)), e.index(rows));
             body(outer.empty() ? std::vector<Value*>{} : e.digits(batch, outer), row, column);
           });
  }

  Emitter& e;
  Builder& b;
  const ir::KMatMul& mm;
  llvm::Type* type;
  size_t axes;
  Value *m, *n, *k, *x;
};

}  // namespace

void matmul_cuda(Emitter& e, const std::string& name) {
  cuda_entry(e, name, 256);
  CudaMatMul matmul(e);
  if (e.variant.split > 0) {
    matmul.split();
  } else {
    matmul.tiled();
  }
  e.b.CreateRetVoid();
}

}  // namespace gk::codegen
