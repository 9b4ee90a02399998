#include "compiler/passes/apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/passes/fuse.h"

namespace gk::passes {
namespace {

class Reasons {
 public:
  explicit Reasons(const Module& m) : m_(m), look_(m), kinds_(node_kinds(look_)) {
    for (int i = 0; i < count(); ++i)
      if (placed(i))
        for (const ValueId v : node(i).operands) readers_[source(v)].insert(node(i).group);
  }

  std::vector<std::string> all() const {
    std::vector<std::string> out;
    for (int i = 0; i < count(); ++i) {
      if (!placed(i)) continue;
      const std::vector<ValueId>& operands = node(i).operands;
      for (size_t k = 0; k < operands.size(); ++k) {
        const ValueId v = source(operands[k]);
        const int from = look_.top(v);
        if (from < 0 || !placed(from) || node(from).group == node(i).group) continue;
        std::string line = fmt::format("{} | {}: {}", name(from), name(i), reason(from, v, i, k));
        if (std::find(out.begin(), out.end(), line) == out.end()) out.push_back(std::move(line));
      }
    }
    return out;
  }

 private:
  int count() const { return static_cast<int>(m_.top.nodes.size()); }
  const Node& node(int i) const { return m_.top.nodes[static_cast<size_t>(i)]; }
  NodeKind kind(int i) const { return kinds_[static_cast<size_t>(i)]; }
  bool placed(int i) const { return kind(i) >= NodeKind::Map && node(i).group >= 0; }
  std::string_view name(int i) const {
    return node(i).op == Op::KernelCall ? std::string_view(node(i).attrs.name) : ir::info(node(i).op).name;
  }
  /// What is read through views and through values that are computed anew.
  ValueId source(ValueId v) const {
    while (true) {
      const int i = look_.top(v);
      if (i < 0 || node(i).operands.empty()) return v;
      if (kind(i) != NodeKind::View && (kind(i) != NodeKind::Map || node(i).group >= 0)) return v;
      v = node(i).operands[0];
    }
  }

  std::string reason(int from, ValueId v, int to, size_t k) const {
    if (!m_.fuse) return "`pragma fuse off`";
    switch (kind(from)) {
      case NodeKind::Reduce: return fmt::format("`{}` is complete when its kernel ends", name(from));
      case NodeKind::Product: return "a product is computed by itself";
      case NodeKind::Call: return "a kernel of the program's is launched by itself";
      case NodeKind::Branch: return "a condition of the device has a body of its own";
      case NodeKind::Region: return "a part is written in place first";
      default: break;
    }
    switch (kind(to)) {
      case NodeKind::Product: return "a product reads whole arrays";
      case NodeKind::Call: return "a kernel of the program's reads whole arrays";
      case NodeKind::Branch: return "a condition of the device has a body of its own";
      case NodeKind::Region: return "a part is written in place";
      default: break;
    }
    if (needs_buffer(kind(to), node(to), k)) return fmt::format("`{}` reads at any index", name(to));
    if (const auto at = readers_.find(v); at != readers_.end() && at->second.size() > 1)
      return fmt::format("{} kernels read it, and storing it costs less than computing it in each",
                         at->second.size());
    const Shape there = squeezed(look_.shape(v));
    const Shape here =
        squeezed(look_.shape(kind(to) == NodeKind::Reduce ? node(to).operands[0] : node(to).results[0]));
    if (!(there == here)) return fmt::format("they go over {} and {} points", points(there), points(here));
    return "together they are too large for one kernel, or what lies between them needs the first";
  }
  static int64_t points(const Shape& s) { return num_elements(s).value_or(0); }

  const Module& m_;
  Lookup look_;
  std::vector<NodeKind> kinds_;
  std::map<ValueId, std::set<int>> readers_;
};

}  // namespace

std::vector<std::string> apart(const Module& fused) { return Reasons(fused).all(); }

}  // namespace gk::passes
