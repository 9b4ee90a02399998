// Map and User kernels on the host: rows of the innermost axis, which LLVM's vectoriser sees as plain loops.
#include "compiler/codegen/shells.h"

namespace gk::codegen {

using llvm::BasicBlock;
using llvm::Value;

bool is_unit(const ir::Access& a, size_t axis) {
  return axis < a.strides.size() && a.strides[axis] == ir::KSize::fixed(1);
}

std::vector<const ir::KInst*> accesses(const ir::KBlock& block) {
  std::vector<const ir::KInst*> out;
  for (const ir::KInst& i : block.insts) {
    if (i.kind == ir::KKind::Load || i.kind == ir::KKind::Store) out.push_back(&i);
    for (const auto& inner : i.blocks) {
      if (!inner) continue;
      for (const ir::KInst* x : accesses(*inner)) out.push_back(x);
    }
  }
  return out;
}

void host_entry(Emitter& e, const std::string& name, const std::function<void(Value*, Value*)>& body) {
  Builder& b = e.b;
  llvm::Type* pointer = llvm::PointerType::get(e.context, 0);
  std::vector<llvm::Type*> types = e.parameter_types();
  const auto parameters = static_cast<unsigned>(types.size());
  types.push_back(b.getInt64Ty());
  types.push_back(b.getInt64Ty());
  // Pointers that were read from memory carry no noalias; arguments do. So two functions.
  auto* inner = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                       llvm::GlobalValue::InternalLinkage, name + ".body", e.module);
  inner->addFnAttr(llvm::Attribute::NoInline);
  e.annotate_parameters(inner);
  e.begin(inner);
  Value* begin = inner->getArg(parameters);
  Value* end = inner->getArg(parameters + 1);
  e.when(b.CreateICmpSLT(begin, end), [&] { body(begin, end); });
  b.CreateRetVoid();

  auto* outer = llvm::Function::Create(
      llvm::FunctionType::get(b.getVoidTy(), {pointer, b.getInt64Ty(), b.getInt64Ty()}, false),
      llvm::GlobalValue::ExternalLinkage, name, e.module);
  outer->addFnAttr(llvm::Attribute::NoUnwind);
  b.SetInsertPoint(BasicBlock::Create(e.context, "entry", outer));
  std::vector<Value*> args;
  for (unsigned p = 0; p < parameters; ++p) {
    Value* slot = b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, outer->getArg(0), p));
    args.push_back(b.CreateLoad(types[p], slot));
  }
  args.push_back(outer->getArg(1));
  args.push_back(outer->getArg(2));
  b.CreateCall(inner, args);
  b.CreateRetVoid();
}

void host_rows(Emitter& e, std::span<const ir::KSize> axes, Value* begin, Value* end, const RowBody& row) {
  Builder& b = e.b;
  if (axes.size() <= 1) {
    row(std::vector<Value*>(axes.size()), begin, end, e.index(0));
    return;
  }
  Value* width = e.size(axes.back());
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* head = e.block("row");
  BasicBlock* inside = e.block("row.body");
  BasicBlock* done = e.block("row.end");
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* at = b.CreatePHI(b.getInt64Ty(), 2);
  at->addIncoming(begin, before);
  b.CreateCondBr(b.CreateICmpSLT(at, end), inside, done);
  b.SetInsertPoint(inside);
  Value* number = b.CreateUDiv(at, width);
  Value* row_start = b.CreateNSWMul(number, width);
  Value* from = b.CreateNSWSub(at, row_start);
  Value* left = b.CreateNSWSub(end, at);
  Value* length = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateNSWSub(width, from), left);
  std::vector<Value*> index = e.digits(number, axes.first(axes.size() - 1));
  index.push_back(nullptr);
  row(index, from, b.CreateNSWAdd(from, length), row_start);
  at->addIncoming(b.CreateNSWAdd(at, length), b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(done);
}

void map_host(Emitter& e, const std::string& name) {
  host_entry(e, name, [&](Value* begin, Value* end) {
    host_points(e, begin, end, [&] {
      host_rows(e, e.kernel.axes, begin, end, [&](std::vector<Value*> index, Value* from, Value* to, Value*) {
        if (wants_tiles(e.kernel)) return tiles_host(e, index, from, to);
        e.loop_of_points(from, to, [&](Value* i) {
          Point p = e.point();
          p.index = index;
          if (!p.index.empty()) p.index.back() = i;
          e.run(e.kernel.body, p);
        });
      });
    });
  });
}

}  // namespace gk::codegen
