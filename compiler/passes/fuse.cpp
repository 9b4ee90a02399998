// Note [Stages]
// Every computed node gets a stage such that an edge between two groups always goes to a strictly higher
// stage; so there are no cycles, without ever searching for one. Map groups have even stages; reductions,
// products, region writes and calls odd ones. A node joins its operand's group, at the same stage, only where
// both walk the same points. That first placement is as early as possible. Then, from the last node back, a
// node whose users are all in one later group moves into it ("sinks": prologues, and chains through views),
// and one that is cheap is recomputed by each of its users (group -1). Moving later keeps the order: a node's
// operands have stages below its old one.
#include "compiler/passes/fuse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/passes/weight.h"

namespace gk::passes {
namespace {

constexpr int kNone = -1;
constexpr int kPollEvery = 1024;  // nodes or kernels
constexpr int kMany = -2;
constexpr int kCopyCost = 2;  // scalar operations worth repeating rather than storing an array
constexpr int kReductionCopyCost =
    8;  // … where a reduction reads it: it would be stored only to be read once more
constexpr int64_t kMostPoints = 32;  // of a value that one kernel computes for a single point of its own
constexpr int64_t kMostPointsWeight = 512;  // what all these may expand to

// Reached through views: what is read, and how the points of user and source relate.
struct Source {
  ValueId root = -1;
  bool direct = true;
};

// How the users found so far read a node.
struct Use {
  int set = kNone;
  bool expanding = false;  // some element is read at more points than it has
  bool partial = false;    // some element may not be read
  bool buffer = false;     // must be in memory
  bool reduced = false;    // by a reduction
  int copied = 0;          // cost of users that are recomputed
  int64_t points = 0;      // at how many points a kernel needs it for one of its own
};

class Fuser {
 public:
  Fuser(Module& m, const Options& o) : m_(m), options_(o), look_(m), kinds_(node_kinds(look_)) {
    const size_t n = m.top.nodes.size();
    stage_.assign(n, -1);
    set_.assign(n, kNone);
    parent_.resize(n);
    std::iota(parent_.begin(), parent_.end(), 0);
    sources_.resize(m.value_types.size());
    points_.assign(n, 1);
    counted_.assign(n, 0);
    is_output_.assign(m.value_types.size(), false);
    for (const ir::Output& out : m.outputs) is_output_[static_cast<size_t>(out.value)] = true;
  }

  // Errors: Interrupted, and then the groups mean nothing.
  Result<void> run() {
    for (size_t i = 0; i < nodes().size(); ++i) place(static_cast<int>(i));
    if (m_.fuse) join_readers();
    GK_CHECK(poll(options_));
    for (size_t i = 0; i < nodes().size(); ++i)
      if (computed(static_cast<int>(i))) set_[i] = find(static_cast<int>(i));
    home_ = set_;
    if (m_.fuse) {
      GK_CHECK(sink());
      GK_CHECK(limit());
    }
    number();
    return {};
  }

 private:
  std::vector<Node>& nodes() { return m_.top.nodes; }
  NodeKind kind(int i) const { return kinds_[static_cast<size_t>(i)]; }
  bool computed(int i) const { return kind(i) >= NodeKind::Map; }
  int find(int i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      auto& p = parent_[static_cast<size_t>(i)];
      p = parent_[static_cast<size_t>(p)];
      i = p;
    }
    return i;
  }
  // The lower number leads: a set is named by its first member.
  void unite(int a, int b) {
    a = find(a), b = find(b);
    if (a != b) parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }
  Shape space(int i) {
    const Node& n = nodes()[static_cast<size_t>(i)];
    if (n.op == Op::Loop) return loop_space(look_, n);
    return squeezed(look_.shape(n.results[0]));
  }
  static bool same_points(const Lookup& l, const Node& view) {
    return (view.op == Op::Reshape || view.op == Op::Broadcast) &&
           squeezed(l.shape(view.operands[0])) == squeezed(l.shape(view.results[0]));
  }

  Source source(ValueId v) const {
    const int i = look_.top(v);
    if (i >= 0 && kind(i) == NodeKind::View) return sources_[static_cast<size_t>(v)];
    return {v, true};
  }

  // ---- First placement
  void place(int i) {
    const Node& n = nodes()[static_cast<size_t>(i)];
    if (kind(i) == NodeKind::View) {
      Source s = source(n.operands[0]);
      s.direct = s.direct && same_points(look_, n);
      sources_[static_cast<size_t>(n.results[0])] = s;
      return;
    }
    if (!computed(i)) return;
    struct Operand {
      int node;
      bool direct;
    };
    std::vector<Operand> operands;
    int top = -1;
    for (size_t k = 0; k < n.operands.size(); ++k) {
      const Source s = source(n.operands[k]);
      const int from = look_.top(s.root);
      if (!computed(from)) continue;
      const bool at_point =
          s.direct && (ir::is_elementwise(n.op) || (n.op == Op::Loop && k < num_carried(n)));
      operands.push_back({from, at_point && space(from) == space(i)});
      top = std::max(top, stage_[static_cast<size_t>(from)]);
    }
    int& stage = stage_[static_cast<size_t>(i)];
    if (kind(i) != NodeKind::Map) {
      stage = top < 0 ? 1 : top % 2 == 0 ? top + 1 : top + 2;
      return;
    }
    stage = top < 0 ? 0 : top % 2 == 0 ? top + 2 : top + 1;
    if (top < 0 || !m_.fuse) return;
    int set = kNone;
    for (const Operand& o : operands) {
      if (stage_[static_cast<size_t>(o.node)] != top) continue;
      const NodeKind k = kind(find(o.node));
      const bool joins = o.direct &&
                         (k == NodeKind::Map || k == NodeKind::Reduce || k == NodeKind::Product) &&
                         (set == kNone || set == find(o.node) || k == NodeKind::Map);
      if (!joins) return;
      set = find(o.node);
    }
    for (const Operand& o : operands)
      if (stage_[static_cast<size_t>(o.node)] == top) unite(o.node, i);
    stage = top;
  }

  // Side by side: groups that walk the same points at the same stage and read one array are one kernel.
  void join_readers() {
    std::map<std::tuple<int, std::vector<int64_t>, ValueId>, int> readers;
    for (int i = 0; i < static_cast<int>(nodes().size()); ++i) {
      const Node& n = nodes()[static_cast<size_t>(i)];
      if (!computed(i)) continue;
      const NodeKind k = kind(find(i));
      std::vector<int64_t> points;
      if (k == NodeKind::Map) {
        const Shape s = space(i);
        points.assign(s.begin(), s.end());
      } else if (kind(i) == NodeKind::Reduce && n.op != Op::ArgMin && n.op != Op::ArgMax) {
        const Shape s = look_.shape(n.operands[0]);
        points.assign(s.begin(), s.end());
        points.push_back(-1);
        points.insert(points.end(), n.attrs.axes.begin(), n.attrs.axes.end());
      } else {
        continue;
      }
      for (ValueId v : n.operands) {
        const ValueId root = source(v).root;
        if (kind(look_.top(root)) == NodeKind::Leaf) continue;
        const auto [it, fresh] = readers.try_emplace({stage_[static_cast<size_t>(i)], points, root}, i);
        if (!fresh) unite(it->second, i);
      }
    }
  }

  // ---- Sinking
  static bool moves_point(const Node& n) {
    return is_view(n.op) || n.op == Op::Take || n.op == Op::Concat || n.op == Op::UpdateSlice;
  }
  static void join(Use& into, const Use& u, bool moved) {
    // Users at one point of one kernel share the value there; a view moves the point.
    into.points = moved && into.set == u.set ? std::min(kMostPoints + 1, into.points + u.points)
                                             : std::max(into.points, u.points);
    into.set = into.set == kNone || into.set == u.set ? u.set : kMany;
    into.expanding |= u.expanding;
    into.partial |= u.partial;
    into.buffer |= u.buffer;
    into.reduced |= u.reduced;
    into.copied = std::max(into.copied, u.copied);
  }

  Result<void> sink() {
    std::vector<Use> uses(nodes().size());
    for (int i = static_cast<int>(nodes().size()) - 1; i >= 0; --i) {
      if (i % kPollEvery == 0) GK_CHECK(poll(options_));
      const Node& n = nodes()[static_cast<size_t>(i)];
      Use mine = uses[static_cast<size_t>(i)];
      if (kind(i) == NodeKind::Leaf || kind(i) == NodeKind::Input) continue;
      if (computed(i)) {
        decide(i, n, mine);
        const int64_t points =
            set_[static_cast<size_t>(i)] == home_[static_cast<size_t>(i)] ? 1 : mine.points;
        points_[static_cast<size_t>(i)] = points;
        if (set_[static_cast<size_t>(i)] == kNone)
          mine.copied += cost_of(n);
        else
          mine = Use{.set = set_[static_cast<size_t>(i)], .points = points};
      }
      for (size_t k = 0; k < n.operands.size(); ++k) {
        const ValueId v = n.operands[k];
        Use u = mine;
        refine(u, i, n, k, v);
        join(uses[static_cast<size_t>(look_.top(v))], u, moves_point(n) && look_.elements(v) > 1);
      }
    }
    return {};
  }

  void refine(Use& u, int i, const Node& n, size_t k, ValueId operand) {
    switch (kind(i)) {
      case NodeKind::View:
        u.partial |= n.op == Op::Slice;
        u.expanding |= n.op == Op::Broadcast && look_.elements(n.results[0]) > look_.elements(operand);
        break;
      case NodeKind::Reduce: u.reduced = true; break;
      case NodeKind::Map:
        if (n.op == Op::RngUniform || n.op == Op::RngNormal) u.expanding = true;
        if (n.op == Op::UpdateSlice || n.op == Op::Take || n.op == Op::Concat) u.expanding = true;
        if (n.op == Op::UpdateSlice && k == 0) u.partial = true;
        if (n.op == Op::Loop && k >= num_carried(n))
          u.expanding |= !(squeezed(look_.shape(operand)) == loop_space(look_, n));
        if (is_view(n.op)) {
          u.partial |= n.op == Op::Slice;
          u.expanding |= n.op == Op::Broadcast && look_.elements(n.results[0]) > look_.elements(operand);
        }
        break;
      default: break;
    }
    u.buffer |= needs_buffer(kind(i), n, k);
  }

  void decide(int i, const Node& n, const Use& use) {
    int& set = set_[static_cast<size_t>(i)];
    if (kind(i) != NodeKind::Map || use.buffer || use.set == kNone || (use.set == set && !use.expanding))
      return;
    for (ValueId r : n.results)
      if (is_output_[static_cast<size_t>(r)]) return;
    if (kind(find_home(i)) != NodeKind::Map && use.set == kMany) return;  // an epilogue stays
    // A loop is heavy and does best in a kernel of its own kind: the host takes its turns for many points at
    // once.
    if (n.op == Op::Loop) return;
    if (use.points > kMostPoints || use.points * weight(look_, n, options_.target) > kMostPointsWeight)
      return;
    const bool faults = may_fault(look_, n);
    if (use.set >= 0 && use.set != set && !use.expanding && !(faults && use.partial) &&
        kind(find_home(i)) == NodeKind::Map) {
      set = use.set;
      return;
    }
    if (faults || kind(find_home(i)) != NodeKind::Map) return;
    if (cost_of(n) + use.copied <= (use.reduced ? kReductionCopyCost : kCopyCost)) set = kNone;
  }
  int find_home(int i) const { return home_[static_cast<size_t>(i)]; }

  // ---- Limits
  void roots_of(const Node& n, int set, std::set<ValueId>& out) {
    for (ValueId v : n.operands) root(v, set, out);
  }
  void root(ValueId v, int set, std::set<ValueId>& out) {
    const ValueId r = source(v).root;
    const int i = look_.top(r);
    if (kind(i) == NodeKind::Leaf) return;
    const int s = set_[static_cast<size_t>(i)];
    if (kind(i) == NodeKind::Input || (s != kNone && s != set))
      out.insert(r);
    else if (s == kNone)
      roots_of(nodes()[static_cast<size_t>(i)], set, out);
  }

  Result<void> limit() {
    // Later stages first: what goes home then counts there.
    std::map<std::pair<int, int>, int> order;
    for (int i = 0; i < static_cast<int>(nodes().size()); ++i)
      if (computed(i) && home_[static_cast<size_t>(i)] == i) order[{-stage_[static_cast<size_t>(i)], i}] = i;
    int seen = 0;
    for (const auto& [key, set] : order) {
      if (++seen % kPollEvery == 0) GK_CHECK(poll(options_));
      std::vector<int> mine = members(set);
      if (fits(set, mine)) continue;
      for (int i : mine) set_[static_cast<size_t>(i)] = home_[static_cast<size_t>(i)];
      moved_ = true;
      mine = members(set);
      if (fits(set, mine)) continue;
      cut(set, mine);
      moved_ = true;
    }
    return {};
  }

  // Members by set, rebuilt only after something went home: limits are rarely met.
  std::vector<int> members(int set) {
    if (moved_ || members_.empty()) {
      members_.clear();
      for (int i = 0; i < static_cast<int>(nodes().size()); ++i)
        if (set_[static_cast<size_t>(i)] != kNone) members_[set_[static_cast<size_t>(i)]].push_back(i);
      users_.assign(nodes().size(), {kNone, -1});
      for (int i = 0; i < static_cast<int>(nodes().size()); ++i) {
        if (set_[static_cast<size_t>(i)] == kNone) continue;
        std::set<ValueId> read;
        for (ValueId v : nodes()[static_cast<size_t>(i)].operands) reached(v, read);
        for (ValueId v : read) {
          auto& u = users_[static_cast<size_t>(look_.top(v))];
          const int s = set_[static_cast<size_t>(i)];
          u.first = u.first == kNone || u.first == s ? s : kMany;
          if (s == set_[static_cast<size_t>(look_.top(v))]) u.second = i;
        }
      }
      moved_ = false;
    }
    const auto it = members_.find(set);
    return it == members_.end() ? std::vector<int>{} : it->second;
  }
  // The computed values that reading `v` needs, through what is recomputed.
  void reached(ValueId v, std::set<ValueId>& out) {
    const ValueId r = source(v).root;
    const int i = look_.top(r);
    if (!computed(i)) return;
    if (set_[static_cast<size_t>(i)] != kNone) {
      out.insert(r);
      return;
    }
    for (ValueId o : nodes()[static_cast<size_t>(i)].operands) reached(o, out);
  }
  bool stored(int i) {
    for (ValueId r : nodes()[static_cast<size_t>(i)].results)
      if (is_output_[static_cast<size_t>(r)]) return true;
    const int u = users_[static_cast<size_t>(i)].first;
    return u != set_[static_cast<size_t>(i)];  // nobody (it is there for its faults), others, or many
  }

  // What a member brings into the kernel that is being counted: itself, and what is recomputed for it.
  int64_t weight_with_copies(int i) {
    int64_t sum = 0;
    std::vector<int> stack{i};
    while (!stack.empty()) {
      const int at = stack.back();
      stack.pop_back();
      const Node& n = nodes()[static_cast<size_t>(at)];
      sum += weight(look_, n, options_.target) * points_[static_cast<size_t>(at)];
      for (ValueId v : n.operands) {
        const int from = look_.top(source(v).root);
        if (!computed(from) || set_[static_cast<size_t>(from)] != kNone) continue;
        if (std::exchange(counted_[static_cast<size_t>(from)], kernel_) == kernel_) continue;
        stack.push_back(from);
      }
    }
    return sum;
  }

  bool fits(int set, const std::vector<int>& mine) {
    std::set<ValueId> loads;
    ++kernel_;
    int64_t heavy = 0;
    int stores = 0;
    for (int i : mine) {
      roots_of(nodes()[static_cast<size_t>(i)], set, loads);
      heavy += weight_with_copies(i);
      stores += stored(i);
    }
    return heavy <= options_.max_kernel_ops &&
           static_cast<int>(loads.size()) + stores <= options_.max_kernel_operands;
  }

  // Cuts a set in node order into parts that fit; what a later part reads of an earlier one is stored.
  void cut(int set, const std::vector<int>& mine) {
    int part = set, stores = 0;
    int64_t heavy = 0;
    std::set<ValueId> loads;
    ++kernel_;
    std::map<int, int> pending;  // last user inside the set -> values waiting for it
    std::vector<bool> kept(nodes().size(), false);
    for (int i : mine) kept[static_cast<size_t>(i)] = stored(i);
    size_t begin = 0;
    size_t good = 0;  // cutting before this member leaves a part that fits
    for (size_t p = 0; p < mine.size(); ++p) {
      const int i = mine[p];
      // Reductions and products lead their set: their epilogue may leave them, never the reverse.
      roots_of(nodes()[static_cast<size_t>(i)], set, loads);
      std::set<ValueId> inside;
      for (ValueId v : nodes()[static_cast<size_t>(i)].operands) reached(v, inside);
      for (ValueId v : inside) {
        const int from = look_.top(v);
        if (home_part_.count(from) != 0 && home_part_[from] != part) loads.insert(v);
      }
      heavy += weight_with_copies(i);
      stores += kept[static_cast<size_t>(i)];
      pending.erase(i);
      home_part_[i] = part;
      if (!kept[static_cast<size_t>(i)] && users_[static_cast<size_t>(i)].second > i)
        ++pending[users_[static_cast<size_t>(i)].second];
      const int fixed = static_cast<int>(loads.size()) + stores;
      if (p > begin && (heavy > options_.max_kernel_ops || fixed > options_.max_kernel_operands)) {
        const size_t at = good > begin ? good : p;
        part = static_cast<int>(nodes().size()) + next_part_++;
        for (size_t q = at; q <= p; ++q) home_part_.erase(mine[q]);
        begin = good = at;
        heavy = stores = 0;
        ++kernel_;
        loads.clear();
        pending.clear();
        p = at - 1;
        for (size_t q = at; q < mine.size(); ++q) set_[static_cast<size_t>(mine[q])] = part;
        set = part;
        continue;
      }
      int live = 0;
      for (const auto& [user, count] : pending) live += count;
      if (fixed + live <= options_.max_kernel_operands) good = p + 1;
    }
  }

  // ---- Numbers, by first member
  void number() {
    std::map<int, int> numbers;
    for (size_t i = 0; i < nodes().size(); ++i) {
      int& group = nodes()[i].group;
      group = -1;
      if (set_[i] == kNone) continue;
      group = numbers.try_emplace(set_[i], static_cast<int>(numbers.size())).first->second;
    }
  }

  Module& m_;
  const Options& options_;
  Lookup look_;
  std::vector<NodeKind> kinds_;
  std::vector<int> stage_, set_, home_, parent_;
  std::vector<int64_t> points_;  // by node: Use::points
  std::vector<int> counted_;     // by node: the kernel that it was counted for last
  int kernel_ = 0;
  std::vector<Source> sources_;
  std::vector<bool> is_output_;
  std::map<int, std::vector<int>> members_;
  std::vector<std::pair<int, int>> users_;  // by node: the set of its users, the last one in its own set
  std::map<int, int> home_part_;
  int next_part_ = 0;
  bool moved_ = true;
};

}  // namespace

Result<void> fuse(ir::Module& m, const Options& options) { return Fuser(m, options).run(); }

}  // namespace gk::passes
