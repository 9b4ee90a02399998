#include "compiler/ir/kernel.h"

#include <algorithm>

namespace gk::ir {
namespace {

// Sites are found by walking in textual order; whether a divisor is a non-zero constant needs the constants
// seen so far, which SSA order puts first.
class SiteFinder {
 public:
  // In a user's kernel an index is what it is.
  explicit SiteFinder(const Kernel& k)
      : nonzero_(static_cast<size_t>(std::max(k.num_values, 0)), false),
        load_(k.kind == Kernel::Kind::User ? FaultSite::Kind::Load : FaultSite::Kind::LoadFromEnd) {
    walk(k.body);
    walk(k.epilogue);
  }
  std::vector<FaultSite> take() && { return std::move(sites_); }

 private:
  void walk(const KBlock& b) {
    for (const KInst& i : b.insts) {
      visit(i);
      for (const auto& inner : i.blocks)
        if (inner) walk(*inner);
    }
  }
  void visit(const KInst& i) {
    switch (i.kind) {
      case KKind::Const:
        if (in_range(i.result)) nonzero_[static_cast<size_t>(i.result)] = i.value.i != 0;
        break;
      case KKind::Compute:
        if ((i.op == Op::FloorDiv || i.op == Op::Mod) && is_integer(i.dtype) && i.args.size() == 2 &&
            !(in_range(i.args[1]) && nonzero_[static_cast<size_t>(i.args[1])]))
          sites_.push_back({FaultSite::Kind::DivideByZero, i.span});
        break;
      case KKind::LoadIndexed:
      case KKind::Gather:
        if (i.checked) sites_.push_back({load_, i.span});
        break;
      case KKind::StoreIndexed:
      case KKind::Atomic:
        if (i.checked) sites_.push_back({FaultSite::Kind::Store, i.span});
        break;
      default: break;
    }
  }
  bool in_range(int v) const { return v >= 0 && v < static_cast<int>(nonzero_.size()); }

  std::vector<bool> nonzero_;  // by value: a Const other than 0
  std::vector<FaultSite> sites_;
  FaultSite::Kind load_;
};

}  // namespace

std::vector<FaultSite> fault_sites(const Kernel& k) { return SiteFinder(k).take(); }

}  // namespace gk::ir
