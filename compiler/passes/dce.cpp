#include "compiler/passes/dce.h"

#include "compiler/passes/lookup.h"

namespace gk::passes {
namespace {

class Dce {
 public:
  explicit Dce(Module& m) : m_(m), look_(m), used_(m.value_types.size(), false) {
    for (const ir::Output& o : m.outputs) use(o.value);
  }
  void run() { block(m_.top); }

 private:
  void use(ValueId v) { used_[static_cast<size_t>(v)] = true; }

  // Liveness is settled before anything moves: the lookup points at nodes.
  void mark(const ir::Block& b, std::vector<bool>& keep) {
    for (ValueId v : b.yields) use(v);
    keep.assign(b.nodes.size(), false);
    for (size_t i = b.nodes.size(); i-- > 0;) {
      const Node& n = b.nodes[i];
      bool live = may_fault(look_, n);
      for (ValueId r : n.results) live = live || used_[static_cast<size_t>(r)];
      if (!live) continue;
      keep[i] = true;
      for (ValueId v : all_operands(look_, n)) use(v);
    }
  }

  void block(ir::Block& b) {
    std::vector<bool> keep;
    mark(b, keep);
    for (size_t i = 0; i < b.nodes.size(); ++i)
      if (keep[i] && b.nodes[i].body) block(*b.nodes[i].body);
    std::vector<Node> kept;
    for (size_t i = 0; i < b.nodes.size(); ++i)
      if (keep[i]) kept.push_back(std::move(b.nodes[i]));
    b.nodes = std::move(kept);
  }

  Module& m_;
  Lookup look_;
  std::vector<bool> used_;
};

}  // namespace

Result<void> dce(ir::Module& m) {
  Dce(m).run();
  return {};
}

}  // namespace gk::passes
