#include "compiler/passes/merge_params.h"

namespace gk::passes {
namespace {

class Renumber {
 public:
  Renumber(int read, int written) : read_(read), written_(written) {}
  int now(int p) const {
    if (p == read_) p = written_;
    return p > read_ ? p - 1 : p;
  }
  void size(ir::KSize& s) const {
    if (s.param >= 0) s.param = now(s.param);
  }
  void access(ir::Access& a) const {
    if (a.param >= 0) a.param = now(a.param);
    for (ir::KSize& s : a.strides) size(s);
    size(a.offset);
  }
  void block(ir::KBlock& b) const {
    for (ir::KInst& i : b.insts) {
      if (i.param >= 0) i.param = now(i.param);
      access(i.access);
      size(i.size);
      size(i.stride);
      for (auto& inner : i.blocks) block(*inner);
    }
  }

 private:
  int read_, written_;
};

}  // namespace

void merge_params(LoweredStep& s, int read, int written) {
  ir::Kernel& k = *s.kernel;
  const Renumber to(read, written);
  k.params[static_cast<size_t>(written)].read = true;
  k.params.erase(k.params.begin() + read);
  for (ir::KParam& p : k.params)
    for (ir::KSize& e : p.extents) to.size(e);
  for (ir::KSize& a : k.axes) to.size(a);
  for (ir::KSize& a : k.reduce_axes) to.size(a);
  to.block(k.body);
  to.block(k.epilogue);
  to.access(k.matmul.a);
  to.access(k.matmul.b);
  s.step.args.erase(s.step.args.begin() + read);
  std::erase_if(s.buffers, [&](const BufferUse& u) { return u.param == read; });
  for (BufferUse& u : s.buffers) {
    if (u.param == written) u.read = true;
    u.param = to.now(u.param);
  }
}

}  // namespace gk::passes
