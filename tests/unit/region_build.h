// Short ways to build regions in tests. Owns the module under construction and the regions that are open in
// it. Not for the product.
#pragma once

#include <utility>
#include <vector>

#include "compiler/ir/module.h"

namespace gk::test {

struct RegionBuild {
  ir::Module m;
  std::vector<ir::Region> open;  // innermost last

  /// Where nodes go now.
  ir::Region& here() { return open.empty() ? m.top : open.back(); }
  /// A region with parameters of these types: `fill(parameters)` adds what is in it and gives its yields.
  template <class F>
  ir::Region region(const std::vector<ir::Type>& params, F&& fill) {
    open.emplace_back();
    for (const ir::Type& t : params) open.back().params.push_back(m.new_value(ir::Type(t)));
    const std::vector<ir::ValueId> given = open.back().params;
    std::vector<ir::ValueId> yields = fill(given);
    ir::Region r = std::move(open.back());
    open.pop_back();
    r.yields = std::move(yields);
    return r;
  }
  /// A Loop, If or While; gives its results.
  std::vector<ir::ValueId> with_regions(ir::Op op, std::vector<ir::ValueId> operands,
                                        std::vector<ir::Region> regions, int64_t trips = 0) {
    ir::Node n;
    n.op = op;
    n.operands = std::move(operands);
    n.regions = std::move(regions);
    n.attrs.index = trips;
    return ir::append(m, here(), std::move(n));
  }
  std::vector<ir::ValueId> branch(std::vector<ir::ValueId> operands, ir::Region then, ir::Region otherwise) {
    return with_regions(ir::Op::If, std::move(operands), {std::move(then), std::move(otherwise)});
  }
};

}  // namespace gk::test
