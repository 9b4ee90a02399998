// Map and User kernels on NVIDIA: a grid-stride loop over points, or over short vectors of points along the
// innermost axis where every contiguous buffer is aligned (checked when the kernel runs).
#include <algorithm>

#include "compiler/codegen/shells.h"

namespace gk::codegen {

using llvm::BasicBlock;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

void cuda_entry(Emitter& e, const std::string& name, int threads) {
  auto* fn = llvm::Function::Create(llvm::FunctionType::get(e.b.getVoidTy(), e.parameter_types(), false),
                                    llvm::GlobalValue::ExternalLinkage, name, e.module);
  fn->setCallingConv(llvm::CallingConv::PTX_Kernel);
  fn->addFnAttr("nvvm.maxntid", std::to_string(threads));
  e.annotate_parameters(fn);
  e.begin(fn);
}

Value* cuda_register(Emitter& e, Intrinsic::ID id) {
  Value* r = e.b.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>(), llvm::ArrayRef<Value*>());
  return e.b.CreateZExtOrTrunc(r, e.index_type());
}

void cuda_loop(Emitter& e, Value* n, const std::function<void(Value*)>& body) {
  Value* width = cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  Value* first =
      e.b.CreateNSWAdd(e.b.CreateNSWMul(cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_ctaid_x), width),
                       cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_tid_x));
  Value* step = e.b.CreateNSWMul(cuda_register(e, Intrinsic::nvvm_read_ptx_sreg_nctaid_x), width);
  e.loop(first, n, step, body);
}

void cuda_barrier(Emitter& e) {
  Value* all[] = {e.b.getInt32(0)};
  e.b.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all, llvm::ArrayRef<llvm::Type*>(),
                      llvm::ArrayRef<Value*>(all));
}

Value* cuda_shared(Emitter& e, llvm::Type* element, int64_t count, const char* name) {
  auto* type = llvm::ArrayType::get(element, static_cast<uint64_t>(count));
  auto* g = new llvm::GlobalVariable(e.module, type, false, llvm::GlobalValue::InternalLinkage,
                                     llvm::PoisonValue::get(type), name, nullptr,
                                     llvm::GlobalValue::NotThreadLocal, 3);
  g->setAlignment(llvm::Align(16));
  return g;
}

namespace {

std::vector<Value*> point_index(Emitter& e, Value* linear) {
  return e.kernel.axes.empty() ? std::vector<Value*>{} : e.digits(linear, e.kernel.axes);
}

void scalar_loop(Emitter& e, Value* n) {
  cuda_loop(e, n, [&](Value* i) {
    Point p = e.point();
    p.index = point_index(e, i);
    e.run(e.kernel.body, p);
  });
}

/// Vector loads come before all stores of a thread's points; so nothing may be loaded after it was stored.
bool loads_first(const ir::Kernel& k) {
  std::vector<char> stored(k.params.size(), 0);
  for (const ir::KInst* i : accesses(k.body)) {
    const auto p = static_cast<size_t>(i->access.param);
    if (i->kind == ir::KKind::Store) stored[p] = 1;
    if (i->kind == ir::KKind::Load && stored[p]) return false;
  }
  for (const ir::KInst& i : k.body.insts)
    if (!i.blocks.empty()) return false;
  return true;
}

class VectorMap {
 public:
  VectorMap(Emitter& emitter, int lanes) : e(emitter), b(emitter.b), width(lanes) {
    const size_t last = e.kernel.axes.size() - 1;
    for (const ir::KInst* i : accesses(e.kernel.body))
      if (is_unit(i->access, last)) wide_.push_back(i);
  }
  bool useful() const { return !wide_.empty(); }

  /// All wide accesses of all rows start at multiples of their vectors.
  Value* aligned() {
    Value* misfit = e.index(0);
    const size_t last = e.kernel.axes.size() - 1;
    Value* bad = b.getInt64(0);
    for (const ir::KInst* i : wide_) {
      const ir::Access& a = i->access;
      Value* start = e.address(a.param, e.size(a.offset));
      const auto bytes = static_cast<uint64_t>(e.element_bytes(a.param) * width);
      bad = b.CreateOr(bad, b.CreateAnd(b.CreatePtrToInt(start, b.getInt64Ty()), b.getInt64(bytes - 1)));
      for (size_t d = 0; d < last && d < a.strides.size(); ++d)
        misfit = b.CreateOr(misfit, e.size(a.strides[d]));
    }
    if (last > 0) misfit = b.CreateOr(misfit, e.size(e.kernel.axes[last]));
    Value* rows_fit = b.CreateICmpEQ(b.CreateAnd(misfit, e.index(width - 1)), e.index(0));
    return b.CreateAnd(rows_fit, b.CreateICmpEQ(bad, b.getInt64(0)));
  }

  void points(Value* number) {
    std::vector<ir::KSize> outer(e.kernel.axes.begin(), e.kernel.axes.end() - 1);
    std::vector<Value*> at;
    Value* vector = number;
    if (!outer.empty()) {
      Value* per_row = b.CreateLShr(e.size(e.kernel.axes.back()),
                                    static_cast<uint64_t>(std::countr_zero(static_cast<unsigned>(width))));
      Value* row = b.CreateUDiv(number, per_row);
      vector = b.CreateNSWSub(number, b.CreateNSWMul(row, per_row));
      at = e.digits(row, outer);
    }
    at.push_back(b.CreateNSWMul(vector, e.index(width)));
    std::map<const ir::KInst*, Value*> loaded, stored;
    for (const ir::KInst* i : wide_)
      if (i->kind == ir::KKind::Load) loaded[i] = load(i->access, at);
    for (int lane = 0; lane < width; ++lane) {
      Point p = e.point();
      p.index = at;
      p.index.back() = b.CreateNSWAdd(at.back(), e.index(lane));
      p.load_hook = [&](const ir::KInst& i) -> Value* {
        auto it = loaded.find(&i);
        if (it == loaded.end()) return nullptr;
        return e.from_storage(type(i.access),
                              b.CreateExtractElement(it->second, static_cast<uint64_t>(lane)));
      };
      p.store_hook = [&](const ir::KInst& i, Value* v) {
        if (std::find(wide_.begin(), wide_.end(), &i) == wide_.end()) return false;
        Value*& all = stored[&i];
        if (!all) all = llvm::PoisonValue::get(vector_type(i.access));
        all = b.CreateInsertElement(all, e.to_storage(type(i.access), v), static_cast<uint64_t>(lane));
        return true;
      };
      e.run(e.kernel.body, p);
    }
    for (const ir::KInst* i : wide_)
      if (i->kind == ir::KKind::Store)
        b.CreateAlignedStore(stored[i], e.address(i->access.param, e.offset(i->access, at)),
                             align(i->access));
  }

 private:
  DType type(const ir::Access& a) const { return e.kernel.params[static_cast<size_t>(a.param)].dtype; }
  llvm::Type* vector_type(const ir::Access& a) {
    return llvm::FixedVectorType::get(e.storage_type(type(a)), static_cast<unsigned>(width));
  }
  llvm::Align align(const ir::Access& a) const {
    return llvm::Align(static_cast<uint64_t>(e.element_bytes(a.param) * width));
  }
  Value* load(const ir::Access& a, const std::vector<Value*>& at) {
    auto* l = b.CreateAlignedLoad(vector_type(a), e.address(a.param, e.offset(a, at)), align(a));
    if (e.is_invariant(a.param))
      l->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.context, {}));
    return l;
  }

  Emitter& e;
  Builder& b;
  int width;
  std::vector<const ir::KInst*> wide_;
};

}  // namespace

void map_cuda(Emitter& e, const std::string& name) {
  Builder& b = e.b;
  const bool user = e.kernel.kind == ir::Kernel::Kind::User;
  cuda_entry(e, name, user ? 1024 : 256);
  Value* n = e.product(e.kernel.axes);
  const int width = e.variant.vector;
  if (!user && width > 1 && !e.kernel.axes.empty() && loads_first(e.kernel)) {
    VectorMap vectors(e, width);
    if (vectors.useful()) {
      const auto shift = static_cast<uint64_t>(std::countr_zero(static_cast<unsigned>(width)));
      BasicBlock* fast = e.block("vectors");
      BasicBlock* slow = e.block("points");
      BasicBlock* done = e.block("exit");
      b.CreateCondBr(vectors.aligned(), fast, slow);
      b.SetInsertPoint(fast);
      Value* count = b.CreateLShr(n, shift);
      cuda_loop(e, count, [&](Value* i) { vectors.points(i); });
      if (e.kernel.axes.size() == 1) {  // the tail; rows of more axes are whole
        Value* covered = b.CreateShl(count, shift);
        cuda_loop(e, b.CreateNSWSub(n, covered), [&](Value* i) {
          Point p = e.point();
          p.index = {b.CreateNSWAdd(covered, i)};
          e.run(e.kernel.body, p);
        });
      }
      b.CreateBr(done);
      b.SetInsertPoint(slow);
      scalar_loop(e, n);
      b.CreateBr(done);
      b.SetInsertPoint(done);
      b.CreateRetVoid();
      return;
    }
  }
  scalar_loop(e, n);
  b.CreateRetVoid();
}

}  // namespace gk::codegen
