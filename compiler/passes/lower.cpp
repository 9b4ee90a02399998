#include "compiler/passes/lower.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "compiler/passes/lower_group.h"

namespace gk::passes {
namespace {
constexpr int kSeveral = -2;
constexpr int kMostSplits = 16;  // of the axes of a kernel; beyond, indices are divided
constexpr int kMaxLabelNames = 6;
}  // namespace

Lowerer::Lowerer(const ir::Module& m, const Options& options)
    : m_(m),
      options_(options),
      look_(m),
      kinds_(node_kinds(look_)),
      user_(m.value_types.size(), -1),
      is_output_(m.value_types.size(), false) {
  for (const ir::Output& o : m.outputs) is_output_[static_cast<size_t>(o.value)] = true;
}

// ---- Groups

void Lowerer::find_groups() {
  for (size_t i = 0; i < m_.top.nodes.size(); ++i) {
    const int g = m_.top.nodes[i].group;
    if (g < 0) continue;
    if (g >= static_cast<int>(groups_.size())) groups_.resize(static_cast<size_t>(g) + 1);
    groups_[static_cast<size_t>(g)].members.push_back(static_cast<int>(i));
  }
  for (size_t i = m_.top.nodes.size(); i-- > 0;) {
    const Node& n = m_.top.nodes[i];
    int who = n.group;
    if (who < 0)
      for (ValueId r : n.results) {
        const int u = user_[static_cast<size_t>(r)];
        who = who == -1 || who == u ? u : u == -1 ? who : kSeveral;
      }
    if (who == -1) continue;
    for (ValueId v : n.operands) {
      int& u = user_[static_cast<size_t>(v)];
      u = u == -1 || u == who ? who : kSeveral;
    }
  }
}

bool Lowerer::is_stored(ValueId v) const {
  const int i = look_.top(v);
  const int g = node(i).group;
  if (g < 0) return false;
  const bool others = user_[static_cast<size_t>(v)] != g;
  return is_output_[static_cast<size_t>(v)] || (others && !is_leaf(node(i).op));
}

std::vector<ValueId> Lowerer::stored_values(const Group& g) const {
  std::vector<ValueId> out;
  for (int i : g.members)
    for (ValueId r : node(i).results)
      if (is_stored(r)) out.push_back(r);
  return out;
}

// Operands first; among the ready ones the group that ends earliest in the program.
std::vector<int> Lowerer::order() const {
  const size_t n = groups_.size();
  std::vector<std::vector<int>> after(n);
  std::vector<int> waiting(n, 0), seen(m_.top.nodes.size(), -1);
  for (size_t g = 0; g < n; ++g) {
    std::set<int> reads;
    std::vector<int> stack = groups_[g].members;
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      for (ValueId v : node(i).operands) {
        const int from = look_.top(v);
        if (seen[static_cast<size_t>(from)] == static_cast<int>(g)) continue;
        seen[static_cast<size_t>(from)] = static_cast<int>(g);
        const int other = node(from).group;
        if (other < 0)
          stack.push_back(from);
        else if (other != static_cast<int>(g))
          reads.insert(other);
      }
    }
    waiting[g] = static_cast<int>(reads.size());
    for (int r : reads) after[static_cast<size_t>(r)].push_back(static_cast<int>(g));
  }
  using Entry = std::pair<int, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](int g) { ready.push({groups_[static_cast<size_t>(g)].members.back(), g}); };
  for (size_t g = 0; g < n; ++g)
    if (waiting[g] == 0) push(static_cast<int>(g));
  std::vector<int> out;
  while (!ready.empty()) {
    const int g = ready.top().second;
    ready.pop();
    out.push_back(g);
    for (int next : after[static_cast<size_t>(g)])
      if (--waiting[static_cast<size_t>(next)] == 0) push(next);
  }
  return out;
}

// ---- Buffers

int Lowerer::new_buffer(DType t, const Shape& shape) {
  Buffer b;
  b.dtype = t;
  b.shape = shape;
  b.size_bytes = num_elements(shape).value_or(0) * size_bytes(t);
  out_.buffers.push_back(std::move(b));
  return static_cast<int>(out_.buffers.size()) - 1;
}

int Lowerer::buffer_of(ValueId v) {
  if (const auto it = extra_.find(v); it != extra_.end()) return it->second;
  const Node& n = *look_.node(v);
  if (n.op == Op::Input) {
    const int slot = static_cast<int>(n.attrs.index);
    const auto [it, fresh] = slot_buffers_.try_emplace(slot, -1);
    if (fresh) {
      it->second = new_buffer(dtype(v), look_.shape(v));
      out_.buffers[static_cast<size_t>(it->second)].slot = slot;
    }
    return it->second;
  }
  const auto [it, fresh] = buffers_.try_emplace(v, -1);
  if (fresh) it->second = new_buffer(dtype(v), look_.shape(v));
  return it->second;
}

bool Lowerer::in_memory(ValueId v) const {
  if (extra_.count(v) != 0 || buffers_.count(v) != 0) return true;
  const Node* n = look_.node(v);
  return n->op == Op::Input || (n->group >= 0 && is_stored(v));
}

// ---- Drafts

PointEmitter::Source Lowerer::source(int g) {
  PointEmitter::Source s;
  s.look = &look_;
  s.kinds = &kinds_;
  s.in_memory = &extra_;
  s.buffers = &out_.buffers;
  s.buffer_of = [this](ValueId v) { return buffer_of(v); };
  s.group = g;
  return s;
}

Result<Draft> Lowerer::draft(int g, ir::Kernel::Kind kind, Walk walk, const Writer& write, Cut* cut) {
  // Each turn puts one more value in memory or splits an axis, and there are only so many of both.
  for (int splits = 0;;) {
    GK_CHECK(poll(options_));
    Draft d;
    d.kernel.kind = kind;
    d.kernel.fast_math = m_.fast_math;
    d.label = label(members_now_);
    if (!members_now_.empty()) d.span = node(members_now_.back()).span;
    std::vector<std::pair<size_t, size_t>> where;  // axis -> (dimension, part)
    for (const bool reduce : {false, true})
      for (size_t k = 0; k < walk.dims.size(); ++k)
        if (walk.dims[k].reduce == reduce)
          for (size_t part = 0; part < walk.dims[k].axes.size(); ++part) {
            (reduce ? d.reduce_axes : d.axes).push_back(walk.dims[k].axes[part]);
            where.push_back({k, part});
          }
    PointEmitter::Source s = source(g);
    s.may_split = kind != ir::Kernel::Kind::MatMul && splits < kMostSplits;
    s.may_cut = cut != nullptr;
    PointEmitter e(s, d);
    std::vector<Coord> dims;
    for (const Walk::Dim& dim : walk.dims) dims.push_back(e.constant(dim.start));
    for (size_t a = where.size(); a-- > 0;) {
      const auto [k, part] = where[a];
      int64_t scale = 1;
      for (size_t p = part + 1; p < walk.dims[k].axes.size(); ++p) scale *= walk.dims[k].axes[p];
      dims[k].coefs[a] = scale;
    }
    write(e, d, dims);
    const Retry& r = e.retry();
    if (r.materialise >= 0) {
      GK_TRY(extra_[r.materialise], materialise(r.materialise));
    } else if (!r.cuts.empty()) {
      const size_t k = where[static_cast<size_t>(r.axis)].first;
      if (!fit_for_cuts(walk, k, r.cuts)) {
        cut = nullptr;
        continue;
      }
      *cut = {k, r.cuts};
      return d;
    } else if (r.axis >= 0) {
      ++splits;
      const auto [k, part] = where[static_cast<size_t>(r.axis)];
      auto& axes = walk.dims[k].axes;
      axes[part] /= r.inner;
      axes.insert(axes.begin() + static_cast<long>(part) + 1, r.inner);
    } else {
      return d;
    }
  }
}

void Lowerer::add(Draft d) {
  if (d.kernel.kind != ir::Kernel::Kind::MatMul) collapse(d);
  out_.steps.push_back(finish(std::move(d), out_.buffers));
}

// The point of an array of `shape` whose extents other than 1 are walked by `dims`.
int Lowerer::point_in(PointEmitter& e, const Shape& shape, const std::vector<Coord>& dims) const {
  std::vector<Coord> c;
  size_t next = 0;
  for (int64_t d : shape) c.push_back(d == 1 ? e.constant(0) : dims[next++]);
  return e.point(std::move(c));
}

std::string Lowerer::label(const std::vector<int>& members) const {
  std::string out;
  int names = 0;
  const bool views_only = std::all_of(members.begin(), members.end(),
                                      [&](int i) { return is_view(node(i).op) || is_leaf(node(i).op); });
  for (int i : members) {
    if (is_view(node(i).op) && !views_only) continue;
    if (names++ == kMaxLabelNames) break;
    if (!out.empty()) out += "+";
    out += node(i).op == Op::KernelCall ? std::string_view(node(i).attrs.name) : ir::info(node(i).op).name;
  }
  return out;
}

// ---- Kinds of groups

Result<void> Lowerer::group(int g) {
  const Group& it = groups_[static_cast<size_t>(g)];
  members_now_ = it.members;
  for (int i : it.members) {
    if (kinds_[static_cast<size_t>(i)] == NodeKind::Call) return call(node(i));
    if (kinds_[static_cast<size_t>(i)] == NodeKind::Branch) return branch(node(i));
  }
  std::vector<ValueId> rest = stored_values(it), reductions;
  const Node* lead = nullptr;
  for (int i : it.members) {
    const NodeKind k = kinds_[static_cast<size_t>(i)];
    if (k == NodeKind::Reduce) reductions.push_back(node(i).results[0]);
    if (k == NodeKind::Reduce || k == NodeKind::Product || k == NodeKind::Region)
      if (!lead) lead = &node(i);
  }
  if (lead) {
    const ValueId r = lead->results[0];
    const Shape space = squeezed(look_.shape(r));
    std::vector<ValueId> with_lead;
    std::erase_if(rest, [&](ValueId v) {
      const bool mine = lead->op == Op::UpdateSlice ? v == r : squeezed(look_.shape(v)) == space;
      if (mine) with_lead.push_back(v);
      return mine;
    });
    if (lead->op == Op::UpdateSlice)
      GK_CHECK(region(g, *lead));
    else if (lead->op == Op::MatMul)
      GK_CHECK(product(g, *lead, with_lead));
    else
      GK_CHECK(reduce(g, reductions, with_lead));
  }
  // One kernel for each set of points; nearly always there is one.
  while (!rest.empty()) {
    const Shape space = squeezed(look_.shape(rest[0]));
    std::vector<ValueId> same;
    std::erase_if(rest, [&](ValueId v) {
      const bool mine = squeezed(look_.shape(v)) == space;
      if (mine) same.push_back(v);
      return mine;
    });
    GK_CHECK(map(g, same));
  }
  return {};
}

// Puts a value that is usually recomputed into memory, as a step of its own ahead of the current ones.
Result<int> Lowerer::materialise(ValueId v) {
  if (in_memory(v)) return buffer_of(v);
  const std::vector<int> saved = std::exchange(members_now_, {look_.top(v)});
  const int g = look_.node(v)->group;
  const int buffer = new_buffer(dtype(v), look_.shape(v));
  if (look_.elements(v) > 0) {
    Walk walk;
    for (int64_t d : squeezed(look_.shape(v))) walk.push(d);
    GK_TRY(Draft d, draft(g, ir::Kernel::Kind::Map, walk,
                          [&](PointEmitter& e, Draft& d, const std::vector<Coord>& dims) {
                            e.start(d.kernel.body);
                            const Shape shape = look_.shape(v);
                            const int p = point_in(e, shape, dims);
                            const int ssa = e.value(v, p);
                            if (ssa >= 0) e.store(buffer, shape, p, ssa, {});
                          }));
    add(std::move(d));
  }
  members_now_ = saved;
  extra_[v] = buffer;
  return buffer;
}

// A value as one dense run of memory: where it is, or a copy.
Result<int> Lowerer::dense(ValueId v, int64_t& offset) {
  offset = 0;
  if (in_memory(v)) return buffer_of(v);
  const Shape shape = look_.shape(v);
  if (look_.elements(v) > 0) {
    Draft d;
    const Shape walked = squeezed(shape);
    d.axes.assign(walked.begin(), walked.end());
    PointEmitter::Source s = source(look_.node(v)->group);
    s.may_split = false;
    PointEmitter e(s, d);
    e.start(d.kernel.body);
    std::vector<Coord> dims;
    for (int k = 0; k < walked.rank(); ++k) dims.push_back(e.axis(k));
    const auto place = e.locate(v, point_in(e, shape, dims));
    if (place && place->second.ssa < 0) {
      const Shape strides = row_major_strides(walked);
      bool same = true;
      for (int k = 0; k < walked.rank(); ++k)
        same = same && place->second.coefs[static_cast<size_t>(k)] == strides[k];
      offset = place->second.offset;
      if (same) return place->first;
    }
  }
  offset = 0;
  return materialise(v);
}

void Lowerer::copy(int from, int to) {
  LoweredStep s;
  s.step.kind = program::Step::Kind::Copy;
  s.step.label = "copy";
  const int64_t bytes = out_.buffers[static_cast<size_t>(from)].size_bytes;
  s.buffers = {{from, 0, bytes, true, false, -1, false, {}}, {to, 0, bytes, false, true, -1, false, {}}};
  out_.steps.push_back(std::move(s));
}

Result<void> Lowerer::region(int g, const Node& n) {
  const ValueId base = n.operands[0], value = n.operands[1], result = n.results[0];
  int from = -1;
  if (in_memory(base)) {
    from = buffer_of(base);
  } else {
    GK_TRY(from, materialise(base));
  }
  const int to = buffer_of(result);
  if (look_.elements(result) == 0) return {};
  if (look_.elements(value) == 0) {
    copy(from, to);
    return {};
  }
  const Shape shape = look_.shape(value);
  Walk walk;
  for (int64_t d : squeezed(shape)) walk.push(d);
  GK_TRY(Draft d, draft(g, ir::Kernel::Kind::Map, walk,
                        [&](PointEmitter& e, Draft& d, const std::vector<Coord>& dims) {
                          e.start(d.kernel.body);
                          const int ssa = e.value(value, point_in(e, shape, dims));
                          if (ssa < 0) return;
                          std::vector<Coord> at;
                          size_t next = 0;
                          for (int k = 0; k < shape.rank(); ++k) {
                            Coord c = shape[k] == 1 ? e.constant(0) : dims[next++];
                            for (int64_t& x : c.coefs) x *= n.attrs.steps[k];
                            c.offset = n.attrs.starts[k];
                            at.push_back(std::move(c));
                          }
                          e.store(to, look_.shape(result), e.point(std::move(at)), ssa, n.span);
                        }));
  add(std::move(d));
  out_.steps.back().inherits.push_back({from, to});
  return {};
}

Result<void> Lowerer::call(const Node& n) {
  const ir::Kernel& k = *n.attrs.kernel;
  LoweredStep s;
  s.step.label = n.attrs.name.empty() ? k.name : n.attrs.name;
  s.step.span = n.span;
  s.kernel = std::make_shared<ir::Kernel>();
  size_t result = 0;
  for (size_t i = 0; i < k.params.size(); ++i) {
    const ValueId v = n.operands[i];
    program::Arg a;
    if (k.params[i].kind == ir::KParam::Kind::Scalar) {
      const Node* from = look_.node(v);
      DType as = dtype(v);
      while (from->op == Op::Cast || from->op == Op::Reshape || from->op == Op::Broadcast)
        from = look_.node(from->operands[0]);
      if (from->op != Op::Const && from->op != Op::Param)
        return fail(ErrorKind::Internal, "E0901", "a scalar of a kernel is not known on the host", n.span);
      a.kind = from->op == Op::Param ? program::Arg::Kind::ScalarSlot : program::Arg::Kind::Value;
      a.value = from->attrs.value.cast(as);
      a.slot = from->op == Op::Param ? static_cast<int>(from->attrs.index) : -1;
      a.dtype = as;
    } else {
      BufferUse u;
      u.param = static_cast<int>(i);
      u.size_bytes = look_.elements(v) * size_bytes(dtype(v));
      if (k.params[i].written) {
        int from = -1;
        if (in_memory(v)) {
          from = buffer_of(v);
        } else {
          GK_TRY(from, materialise(v));
        }
        u.buffer = buffer_of(n.results[result++]);
        s.inherits.push_back({from, u.buffer});
        u.read = u.written = true;
      } else {
        GK_TRY(u.buffer, dense(v, u.offset_bytes));
        u.offset_bytes *= size_bytes(dtype(v));
        u.read = true;
      }
      s.buffers.push_back(u);
      a.kind = program::Arg::Kind::Pointer;
    }
    s.step.args.push_back(a);
  }
  s.kernel =
      std::const_pointer_cast<ir::Kernel>(n.attrs.kernel);  // never changed: its uses are not pointwise
  s.use.axes.assign(n.attrs.shape.begin(), n.attrs.shape.end());
  s.use.threads = static_cast<int>(n.attrs.index);
  const bool empty = num_elements(n.attrs.shape) == 0;
  if (!empty) {
    out_.steps.push_back(std::move(s));
    return {};
  }
  for (const auto& i : s.inherits) copy(i.from, i.to);
  return {};
}

Result<Lowered> Lowerer::run() {
  find_groups();
  find_ends();
  for (int g : order()) GK_CHECK(group(g));
  for (const ir::Output& o : m_.outputs) out_.outputs.push_back({buffer_of(o.value), o.slot});
  for (const Node& n : m_.top.nodes) out_.fused_ops += n.group >= 0;
  return std::move(out_);
}

Result<Lowered> lower(const ir::Module& m, const Options& options) { return Lowerer(m, options).run(); }

}  // namespace gk::passes
