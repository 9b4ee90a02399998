// Note [Order of reductions on NVIDIA]
// With L lanes (32, 256 or 1024, by the reduced extent alone) element r belongs to partial r % L, each
// partial adds in order; then sum j of 32 adds partials j, j + 32, j + 64 … in order; then sum j takes j +
// 16, then j + 8, 4, 2,
// 1. Three ways of walking give that one order: a warp a result (L = 32), a block a result, and, where
// neighbouring results lie side by side, a block for 32 results, whose y index is j.
#include "compiler/codegen/reduce.h"
#include "compiler/codegen/shells.h"

namespace gk::codegen {

using ir::KReduction;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

class CudaReduce {
 public:
  explicit CudaReduce(Emitter& emitter)
      : e(emitter), b(emitter.b), sums_(emitter), inner_(emitter), lanes_(emitter.variant.lanes) {
    tid_ = cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_tid_x);
    block_ = cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    blocks_ = cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    items_ = e.product(e.kernel.axes);
    count_ = e.product(e.kernel.reduce_axes);
  }

  void warps() {
    Value* width = cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_ntid_x);
    Value* lane = b.CreateAnd(tid_, e.index(31));
    Value* per_block = b.CreateLShr(width, 5);
    Value* first = b.CreateNSWAdd(b.CreateNSWMul(block_, per_block), b.CreateLShr(tid_, 5));
    e.loop(first, items_, b.CreateNSWMul(blocks_, per_block), [&](Value* item) {
      const std::vector<Value*> at = place(item);
      sums_.reset();
      gather(sums_, at, lane, 32);
      warp_tree();
      finish(at, b.CreateICmpEQ(lane, e.index(0)));
    });
  }

  void blocks() {
    allocate(lanes_);
    e.loop(block_, items_, blocks_, [&](Value* item) {
      const std::vector<Value*> at = place(item);
      sums_.reset();
      gather(sums_, at, tid_, lanes_);
      for (size_t k = 0; k < reductions().size(); ++k) {
        put(k, tid_, sums_.get(k));
        cuda_barrier(e);
        e.when(b.CreateICmpSLT(tid_, e.index(32)), [&] {
          sums_.set(k, get(k, tid_));
          e.loop(e.index(32), e.index(lanes_), e.index(32),
                 [&](Value* from) { sums_.add(k, get(k, b.CreateNSWAdd(tid_, from))); });
        });
        cuda_barrier(e);
      }
      e.when(b.CreateICmpSLT(tid_, e.index(32)), [&] {
        warp_tree();
        finish(at, b.CreateICmpEQ(tid_, e.index(0)));
      });
    });
  }

  void columns() {
    constexpr int64_t kPitch = kReduceColumns + 1;  // a column of the tile touches every bank
    allocate(32 * kPitch);
    Value* row = cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_tid_y);
    Value* tiles = b.CreateLShr(b.CreateNSWAdd(items_, e.index(kReduceColumns - 1)), 5);
    e.loop(block_, tiles, blocks_, [&](Value* tile) {
      Value* item = b.CreateNSWAdd(b.CreateNSWMul(tile, e.index(kReduceColumns)), tid_);
      Value* valid = b.CreateICmpSLT(item, items_);
      sums_.reset();
      e.when(valid, [&] {
        const std::vector<Value*> at = place(item);
        e.loop(
            e.index(0), e.index(lanes_), e.index(32),
            [&](Value* part) {
              inner_.reset();
              gather(inner_, at, b.CreateNSWAdd(row, part), lanes_);
              for (size_t k = 0; k < reductions().size(); ++k) sums_.add(k, inner_.get(k));
            },
            -1);
      });
      Value* slot = b.CreateNSWAdd(b.CreateNSWMul(row, e.index(kPitch)), tid_);
      for (size_t k = 0; k < reductions().size(); ++k) {
        put(k, slot, sums_.get(k));
        cuda_barrier(e);
        for (int64_t half = 16; half > 0; half /= 2) {
          e.when(b.CreateICmpSLT(row, e.index(half)), [&] {
            sums_.add(k, get(k, b.CreateNSWAdd(slot, e.index(half * kPitch))));
            put(k, slot, sums_.get(k));
          });
          cuda_barrier(e);
        }
      }
      e.when(b.CreateAnd(valid, b.CreateICmpEQ(row, e.index(0))), [&] { epilogue(place(item)); });
    });
  }

 private:
  const std::vector<KReduction>& reductions() const { return e.kernel.reductions; }
  std::vector<Value*> place(Value* item) {
    return e.kernel.axes.empty() ? std::vector<Value*>{} : e.digits(item, e.kernel.axes);
  }

  /// Adds elements first, first + step, … of the result at `at`.
  void gather(Partials& into, const std::vector<Value*>& at, Value* first, int64_t step) {
    e.loop(
        first, count_, e.index(step),
        [&](Value* r) {
          Point p = e.point();
          p.index = at;
          if (!e.kernel.reduce_axes.empty()) {
            const std::vector<Value*> inner = e.digits(r, e.kernel.reduce_axes);
            p.index.insert(p.index.end(), inner.begin(), inner.end());
          }
          into.add_body(p, b.CreateSExt(r, b.getInt64Ty()));
        },
        4);
  }

  void epilogue(const std::vector<Value*>& at) {
    std::vector<Typed> results;
    for (size_t k = 0; k < reductions().size(); ++k)
      results.push_back(reduced(e, reductions()[k], sums_.get(k)));
    run_epilogue(e, at, results);
  }
  void finish(const std::vector<Value*>& at, Value* leader) {
    e.when(leader, [&] { epilogue(at); });
  }

  void warp_tree() {
    for (int half = 16; half > 0; half /= 2) {
      for (size_t k = 0; k < reductions().size(); ++k) {
        const Partial mine = sums_.get(k);
        sums_.set(k, combine(e, reductions()[k], mine, {shuffle(mine.v, half), shuffle(mine.at, half)}));
      }
    }
  }
  /// The value of the lane `down` further.
  Value* shuffle(Value* v, int down) {
    if (!v) return nullptr;
    llvm::Type* type = v->getType();
    const unsigned n = type->getPrimitiveSizeInBits().getFixedValue();
    auto move = [&](Value* word) -> Value* {
      Value* args[] = {b.getInt32(0xffffffff), word, b.getInt32(static_cast<uint32_t>(down)), b.getInt32(31)};
      return b.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_down_i32, llvm::ArrayRef<llvm::Type*>(),
                               llvm::ArrayRef<Value*>(args));
    };
    Value* u = b.CreateBitCast(v, b.getIntNTy(n));
    if (n <= 32)
      return b.CreateBitCast(b.CreateTrunc(move(b.CreateZExt(u, b.getInt32Ty())), b.getIntNTy(n)), type);
    Value* low = move(b.CreateTrunc(u, b.getInt32Ty()));
    Value* high = move(b.CreateTrunc(b.CreateLShr(u, 32), b.getInt32Ty()));
    Value* both =
        b.CreateOr(b.CreateZExt(low, u->getType()), b.CreateShl(b.CreateZExt(high, u->getType()), 32));
    return b.CreateBitCast(both, type);
  }

  /// Shared memory for `count` partials of one reduction at a time.
  void allocate(int64_t count) {
    bool places = false;
    for (const KReduction& r : reductions()) places |= is_arg(r);
    values_ = cuda_shared(e, b.getInt64Ty(), count, "values");
    if (places) places_ = cuda_shared(e, b.getInt64Ty(), count, "places");
  }
  void put(size_t k, Value* i, Partial p) {
    b.CreateStore(p.v, b.CreateInBoundsGEP(p.v->getType(), values_, i));
    if (p.at) b.CreateStore(p.at, b.CreateInBoundsGEP(b.getInt64Ty(), places_, i));
  }
  Partial get(size_t k, Value* i) {
    llvm::Type* t = partial_type(e, reductions()[k]);
    Partial p{b.CreateLoad(t, b.CreateInBoundsGEP(t, values_, i)), nullptr};
    if (is_arg(reductions()[k]))
      p.at = b.CreateLoad(b.getInt64Ty(), b.CreateInBoundsGEP(b.getInt64Ty(), places_, i));
    return p;
  }

  Emitter& e;
  Builder& b;
  Partials sums_, inner_;
  int64_t lanes_;
  Value *tid_, *block_, *blocks_, *items_, *count_;
  Value *values_ = nullptr, *places_ = nullptr;
};

}  // namespace

void reduce_cuda(Emitter& e, const std::string& name) {
  const bool columns = e.variant.columns;
  cuda_entry(e, name, columns ? 1024 : e.variant.lanes == 32 ? 128 : e.variant.lanes);
  CudaReduce reduce(e);
  if (columns) {
    reduce.columns();
  } else if (e.variant.lanes == 32) {
    reduce.warps();
  } else {
    reduce.blocks();
  }
  e.b.CreateRetVoid();
}

}  // namespace gk::codegen
