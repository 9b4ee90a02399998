#include "compiler/passes/copier.h"

namespace gk::passes {

ir::Node Copier::node(const ir::Node& n, const CopyInto& copy_into) {
  ir::Node c;
  c.op = n.op;
  c.attrs = n.attrs;
  c.span = n.span;
  for (const ir::ValueId v : n.operands) c.operands.push_back(now(v));
  for (const ir::Region& r : n.regions) {
    ir::Region inside;
    for (const ir::ValueId p : r.params) inside.params.push_back(fresh(p));
    for (const ir::Node& i : r.nodes)
      if (copy_into)
        copy_into(i, inside);
      else
        inside.nodes.push_back(node(i));
    for (const ir::ValueId y : r.yields) inside.yields.push_back(now(y));
    c.regions.push_back(std::move(inside));
  }
  for (const ir::ValueId r : n.results) c.results.push_back(fresh(r));
  return c;
}

}  // namespace gk::passes
