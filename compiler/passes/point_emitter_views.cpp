// The part of PointEmitter that moves points: views, regions, concatenation, linear indices.
#include <algorithm>

#include "compiler/passes/point_emitter.h"

namespace gk::passes {

Coord PointEmitter::scaled(const Coord& c, int64_t by, int64_t plus) {
  if (c.ssa < 0) {
    Coord out = c;
    out.offset = c.offset * by + plus;
    for (int64_t& x : out.coefs) x *= by;
    return out;
  }
  int v = c.ssa;
  if (by != 1) v = compute(Op::Mul, {v, number(by)}, DType::I64);
  if (plus != 0) v = compute(Op::Add, {v, number(plus)}, DType::I64);
  Coord out = constant(0);
  out.ssa = v;
  return out;
}

Coord PointEmitter::linear(const Shape& shape, int p) {
  const Shape strides = row_major_strides(shape);
  Coord sum = constant(0);
  int ssa = -1;
  const std::vector<Coord> at = points_[static_cast<size_t>(p)];
  for (int k = 0; k < shape.rank(); ++k) {
    const Coord& c = at[static_cast<size_t>(k)];
    if (c.ssa < 0) {
      sum.offset += c.offset * strides[k];
      for (size_t a = 0; a < c.coefs.size(); ++a) sum.coefs[a] += c.coefs[a] * strides[k];
      continue;
    }
    const int term = strides[k] == 1 ? c.ssa : compute(Op::Mul, {c.ssa, number(strides[k])}, DType::I64);
    ssa = ssa < 0 ? term : compute(Op::Add, {ssa, term}, DType::I64);
  }
  if (ssa < 0) return sum;
  Coord out = constant(0);
  out.ssa = is_constant(sum) && sum.offset == 0 ? ssa : compute(Op::Add, {ssa, index(sum)}, DType::I64);
  return out;
}

std::pair<int64_t, int64_t> PointEmitter::range(const Coord& c) const {
  int64_t low = c.offset, high = c.offset;
  for (size_t a = 0; a < c.coefs.size(); ++a)
    (c.coefs[a] < 0 ? low : high) += c.coefs[a] * std::max<int64_t>(extent(a) - 1, 0);
  return {low, high};
}

// Note [Reshaped points]
// An index into a reshaped array is a linear index cut into digits. Where the axes of the kernel fall on the
// boundaries of the digits, each digit is again a sum of axes; where an axis crosses a boundary but splits
// evenly there, evaluation starts again with that axis split (collapse() merges it back where nothing needs
// the split). What remains is computed with divisions by the extents, which are then part of the kernel.
std::optional<std::vector<Coord>> PointEmitter::digits(const Coord& at, const Shape& shape) {
  std::vector<Coord> out;
  const Shape strides = row_major_strides(shape);
  Coord rest = at;
  for (int k = 0; k < shape.rank() && rest.ssa < 0; ++k) {
    if (shape[k] == 1 || shape[k] == 0) {
      out.push_back(constant(0));
      continue;
    }
    const int64_t s = strides[k];
    Coord digit = constant(0);
    digit.offset = rest.offset >= 0 ? rest.offset / s : -((-rest.offset + s - 1) / s);
    rest.offset -= digit.offset * s;
    for (size_t a = 0; a < rest.coefs.size(); ++a)
      if (rest.coefs[a] % s == 0) {
        digit.coefs[a] = rest.coefs[a] / s;
        rest.coefs[a] = 0;
      }
    const auto [low, high] = range(rest);
    if (low < 0 || high >= s) {
      if (source_.may_split)
        for (size_t a = 0; a + 1 < rest.coefs.size(); ++a) {
          const int64_t c = rest.coefs[a], e = extent(a);
          if (c <= 0 || s % c != 0 || c * (e - 1) < s || e % (s / c) != 0) continue;
          retry_.axis = static_cast<int>(a);
          retry_.inner = s / c;
          return std::nullopt;
        }
      rest.ssa = 0;  // not digits of axes: falls to the divisions below
      break;
    }
    out.push_back(std::move(digit));
  }
  if (rest.ssa < 0) return out;
  if (at.ssa < 0 && at.coefs.back() != 0) return std::nullopt;  // the axis of a gather is not an index yet
  out.clear();
  const int whole = index(at);
  for (int k = 0; k < shape.rank(); ++k) {
    Coord c = constant(0);
    if (shape[k] != 1) {
      int v = whole;
      if (strides[k] != 1) v = compute(Op::FloorDiv, {v, literal(Scalar::of_int(strides[k]))}, DType::I64);
      if (k != 0)
        v = compute(Op::Mod, {v, literal(Scalar::of_int(std::max<int64_t>(shape[k], 1)))}, DType::I64);
      c.ssa = v;
    }
    out.push_back(std::move(c));
  }
  return out;
}

// The point of the operand that view `n` shows at `p`.
std::optional<int> PointEmitter::view_point(const Node& n, int p) {
  // A computed index must be the same one at every visit.
  const uint64_t k = key(n.results[0], p);
  if (const auto it = view_points_.find(k); it != view_points_.end()) return it->second;
  const auto q = make_view_point(n, p);
  if (q) view_points_[k] = *q;
  return q;
}

std::optional<int> PointEmitter::make_view_point(const Node& n, int p) {
  const Shape from = look().shape(n.operands[0]);
  const std::vector<Coord> at = points_[static_cast<size_t>(p)];
  std::vector<Coord> c;
  switch (n.op) {
    case Op::Broadcast: {
      const size_t lead = at.size() - static_cast<size_t>(from.rank());
      for (int k = 0; k < from.rank(); ++k)
        c.push_back(from[k] == 1 ? constant(0) : at[lead + static_cast<size_t>(k)]);
      break;
    }
    case Op::Transpose:
      c.resize(at.size());
      for (size_t k = 0; k < at.size(); ++k) c[static_cast<size_t>(n.attrs.axes[k])] = at[k];
      break;
    case Op::Slice:
      for (int k = 0; k < from.rank(); ++k)
        c.push_back(scaled(at[static_cast<size_t>(k)], n.attrs.steps[k], n.attrs.starts[k]));
      break;
    default: {
      const Shape shown = look().shape(n.results[0]);
      if (squeezed(from) == squeezed(shown)) {
        size_t next = 0;
        for (int64_t d : from) {
          while (d != 1 && shown[static_cast<int>(next)] == 1) ++next;
          c.push_back(d == 1 ? constant(0) : at[next++]);
        }
        break;
      }
      if (look().elements(n.results[0]) == 0) {  // there is no point to move, and no digit to divide by
        c.assign(static_cast<size_t>(from.rank()), constant(0));
        break;
      }
      auto split = digits(linear(shown, p), from);
      if (!split) return std::nullopt;
      c = std::move(*split);
    }
  }
  return point(std::move(c));
}

int PointEmitter::view(const Node& n, int p) {
  const ValueId from = look().outside(n.operands[0]);
  if (n.op == Op::Reshape && !local(from))  // dense in memory: the linear index is enough
    return load(source_.buffer_of(from), linear(look().shape(n.results[0]), p));
  const auto q = view_point(n, p);
  return q ? need(from, *q) : -1;
}

std::optional<std::pair<int, Coord>> PointEmitter::locate(ValueId v, int p) {
  while (local(v)) {
    const Node* n = look().node(v);
    if (!n || !is_view(n->op)) return std::nullopt;
    if (n->op == Op::Reshape && !local(n->operands[0]))
      return std::pair{source_.buffer_of(n->operands[0]), linear(look().shape(v), p)};
    const auto q = view_point(*n, p);
    if (!q) return std::nullopt;
    p = *q;
    v = n->operands[0];
  }
  return std::pair{source_.buffer_of(v), linear(look().shape(v), p)};
}

// The index `(c - start) / step` kept within [0, count), with the conditions under which it was inside.
int PointEmitter::clamped_range(const Coord& c, int64_t start, int64_t step, int64_t count,
                                std::vector<int>& conditions, bool& never) {
  if (is_constant(c)) {
    const int64_t d = c.offset - start;
    if (d % step != 0 || d / step < 0 || d / step >= count) never = true;
    return -1;
  }
  const auto both = [&](Op op, int a, int b) { return compute(op, {a, b}, DType::I64); };
  int d = step > 0 ? both(Op::Sub, index(c), number(start)) : both(Op::Sub, number(start), index(c));
  if (const int64_t s = std::abs(step); s != 1) {
    const int by = literal(Scalar::of_int(s));
    conditions.push_back(compute(Op::Eq, {both(Op::Mod, d, by), number(0)}, DType::Bool));
    d = both(Op::FloorDiv, d, by);
  }
  conditions.push_back(compute(Op::Ge, {d, number(0)}, DType::Bool));
  conditions.push_back(compute(Op::Lt, {d, number(count)}, DType::Bool));
  return both(Op::Max, both(Op::Min, d, number(count - 1)), number(0));
}

int PointEmitter::update(const Node& n, int p, ValueId v) {
  const auto [it, fresh] = selects_.try_emplace(key(v, p));
  if (fresh) {
    Select s;
    const Shape base = look().shape(n.operands[0]), value = look().shape(n.operands[1]);
    const std::vector<Coord> at = points_[static_cast<size_t>(p)];
    std::vector<Coord> c;
    bool never = num_elements(value) == 0;
    for (int k = 0; k < base.rank() && !never; ++k) {
      const Coord& x = at[static_cast<size_t>(k)];
      if (base[k] == value[k] && (base[k] == 1 || n.attrs.steps[k] == 1)) {
        c.push_back(x);
        continue;
      }
      const int inside = clamped_range(x, n.attrs.starts[k], n.attrs.steps[k], value[k], s.conditions, never);
      Coord y = constant(inside < 0 ? (x.offset - n.attrs.starts[k]) / n.attrs.steps[k] : 0);
      y.ssa = inside;
      c.push_back(value[k] == 1 ? constant(0) : y);
    }
    if (never) {
      s.conditions.clear();
    } else {
      s.operands.push_back(1);
      s.points.push_back(point(std::move(c)));
    }
    if (never || !s.conditions.empty()) {
      s.operands.push_back(0);
      s.points.push_back(p);
    }
    selects_[key(v, p)] = std::move(s);
  }
  const Select s = selects_[key(v, p)];
  std::vector<int> got;
  for (size_t k = 0; k < s.operands.size(); ++k) got.push_back(need(n.operands[s.operands[k]], s.points[k]));
  if (std::any_of(got.begin(), got.end(), [](int g) { return g < 0; })) return -1;
  if (got.size() == 1) return got[0];
  int inside = s.conditions[0];
  for (size_t k = 1; k < s.conditions.size(); ++k)
    inside = compute(Op::And, {inside, s.conditions[k]}, DType::Bool);
  return where(inside, got[0], got[1], type_of(v));
}

// Whether the index is one axis of the kernel, which then has to be walked in parts: from each of `begins`
// (of the concatenation's parts) to the next.
bool PointEmitter::cut_at(const Coord& c, const std::vector<int64_t>& begins) {
  if (!source_.may_cut || c.ssa >= 0) return false;
  int axis = -1;
  for (size_t a = 0; a < c.coefs.size(); ++a) {
    if (c.coefs[a] == 0) continue;
    if (c.coefs[a] != 1 || axis >= 0 || a >= d_.axes.size()) return false;
    axis = static_cast<int>(a);
  }
  if (axis < 0) return false;
  std::vector<int64_t> cuts;
  for (int64_t b : begins)
    if (b > c.offset && b < c.offset + extent(static_cast<size_t>(axis))) cuts.push_back(b - c.offset);
  if (cuts.empty()) return false;
  retry_.axis = axis;
  retry_.cuts = std::move(cuts);
  return true;
}

int PointEmitter::concat(const Node& n, int p, ValueId v) {
  const auto [it, fresh] = selects_.try_emplace(key(v, p));
  if (fresh) {
    Select s;
    const auto axis = static_cast<size_t>(n.attrs.axes[0]);
    const std::vector<Coord> at = points_[static_cast<size_t>(p)];
    std::vector<int64_t> begins{0};
    for (ValueId o : n.operands) begins.push_back(begins.back() + look().shape(o)[static_cast<int>(axis)]);
    if (cut_at(at[axis], begins)) return -1;
    const auto [low, high] = range(at[axis]);
    int64_t begin = 0;
    for (size_t k = 0; k < n.operands.size(); ++k) {
      const int64_t count = look().shape(n.operands[k])[static_cast<int>(axis)];
      if (count == 0) continue;
      std::vector<Coord> c = at;
      if (at[axis].ssa < 0 && (high < begin || low >= begin + count)) {
        begin += count;
        continue;
      }
      if (at[axis].ssa < 0 && low >= begin && high < begin + count) {  // this part alone
        c[axis].offset -= begin;
        s.operands = {k};
        s.points = {point(std::move(c))};
        s.conditions.clear();
        break;
      }
      std::vector<int> conditions;
      bool never = false;
      const int inside = clamped_range(at[axis], begin, 1, count, conditions, never);
      if (!never) {
        c[axis] = constant(inside < 0 ? at[axis].offset - begin : 0);
        if (count != 1) c[axis].ssa = inside;
        s.operands.push_back(k);
        s.points.push_back(point(std::move(c)));
        if (inside >= 0)
          s.conditions.push_back(conditions.back());  // below its end: earlier operands come first
      }
      begin += count;
    }
    selects_[key(v, p)] = std::move(s);
  }
  const Select s = selects_[key(v, p)];
  std::vector<int> got;
  for (size_t k = 0; k < s.operands.size(); ++k) got.push_back(need(n.operands[s.operands[k]], s.points[k]));
  if (std::any_of(got.begin(), got.end(), [](int g) { return g < 0; })) return -1;
  int out = got.back();
  for (size_t k = got.size() - 1; k-- > 0;) out = where(s.conditions[k], got[k], out, type_of(v));
  return out;
}

}  // namespace gk::passes
