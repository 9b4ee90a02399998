// Reductions: one kernel, or two where few results are made of much: partial results of fixed chunks first,
// so that the order of additions depends on the extents alone, never on the machine.
#include <algorithm>

#include "compiler/passes/lower_group.h"

namespace gk::passes {
namespace {

using ir::ReduceOp;

ReduceOp reduce_op(Op op) {
  switch (op) {
    case Op::Sum: return ReduceOp::Sum;
    case Op::Prod: return ReduceOp::Prod;
    case Op::ReduceMin: return ReduceOp::Min;
    case Op::ReduceMax: return ReduceOp::Max;
    case Op::Any: return ReduceOp::Any;
    case Op::All: return ReduceOp::All;
    case Op::ArgMin: return ReduceOp::ArgMin;
    default: return ReduceOp::ArgMax;
  }
}

DType accumulates_in(ReduceOp op, DType t) {
  return op == ReduceOp::Sum || op == ReduceOp::Prod ? accumulator(t) : t;
}

// When to work in two phases, and into how many chunks.
struct Limits {
  int64_t few_results, much, chunks, chunk_min;
};
constexpr Limits kCudaLimits{264, 4096, 528, 2048};
constexpr Limits kHostLimits{8, 65536, 64, 16384};

// A number of chunks near `want` that divides `extent`, else `want`: then a last shorter chunk is its own
// launch.
int64_t choose_chunks(int64_t extent, int64_t want) {
  for (int64_t d = 0; d <= want / 2; ++d) {
    if (extent % (want - d) == 0) return want - d;
    if (want + d <= extent && extent % (want + d) == 0) return want + d;
  }
  return want;
}

// Note [Chunks]
// What the chunks of a reduction are follows from the extents of the space and the reduced axes alone: not
// from how the drafts' axes are split or merged, which depends on what is fused into them. Of neighbouring
// reduced dimensions the longest run is cut: its outer dimensions are whole chunks, one is cut evenly, those
// inside it belong to every chunk.
struct Chunks {
  size_t first = 0, cut = 0;  // the run's outermost dimension, and the one that is cut
  int64_t count = 0, length = 0, tail = 0;
};

std::optional<Chunks> choose_chunks(const Walk& space, const Limits& limits) {
  int64_t points = 1, much = 1;
  for (const Walk::Dim& d : space.dims) (d.reduce ? much : points) *= d.axes[0];
  if (points >= limits.few_results || much <= limits.much) return std::nullopt;
  const int64_t want = std::min(limits.chunks / points, much / limits.chunk_min);
  if (want < 2) return std::nullopt;
  Chunks c;
  int64_t longest = 0;
  for (size_t k = 0; k < space.dims.size(); ++k) {
    if (!space.dims[k].reduce || (k > 0 && space.dims[k - 1].reduce)) continue;
    int64_t run = 1;
    for (size_t i = k; i < space.dims.size() && space.dims[i].reduce; ++i) run *= space.dims[i].axes[0];
    if (run > longest) longest = run, c.first = k;
  }
  int64_t outer = 1;
  for (c.cut = c.first;; ++c.cut) {
    const int64_t extent = space.dims[c.cut].axes[0];
    const bool last = c.cut + 1 == space.dims.size() || !space.dims[c.cut + 1].reduce;
    if (outer * extent < want && !last) {
      outer *= extent;
      continue;
    }
    c.count = choose_chunks(extent, std::min(extent, want / outer));
    c.length = extent / c.count;
    c.tail = extent - c.count * c.length;
    return c;
  }
}

}  // namespace

Result<void> Lowerer::reduce(int g, const std::vector<ValueId>& reductions,
                             const std::vector<ValueId>& stored) {
  const Node& first = *look_.node(reductions[0]);
  const Shape in = look_.shape(first.operands[0]);
  Walk space;
  for (int k = 0; k < in.rank(); ++k) {
    const bool reduced =
        std::find(first.attrs.axes.begin(), first.attrs.axes.end(), k) != first.attrs.axes.end();
    if (in[k] != 1) space.push(in[k], reduced);
  }
  std::vector<Reducing> what;
  for (ValueId r : reductions) {
    const ValueId v = look_.node(r)->operands[0];
    const ReduceOp op = reduce_op(look_.node(r)->op);
    what.push_back({r, op, dtype(v), accumulates_in(op, dtype(v)),
                    [this, v](PointEmitter& e, const std::vector<Coord>& dims) {
                      return e.value(v, point_in(e, look_.shape(v), dims));
                    }});
  }
  return reduce(g, space, what, stored);
}

// A product with a vector, kept as one operation: the very sum that it is made of where things are fused.
Result<void> Lowerer::vector_product(int g, const Node& n, const std::vector<ValueId>& stored) {
  const ValueId a = n.operands[0], b = n.operands[1];
  const Shape left = look_.shape(a), right = look_.shape(b);
  const DType t = dtype(a), wide = is_float(t) ? accumulator(t) : t;
  const bool row = left.rank() == 1;
  const Shape in = row ? right : left;
  const int summed = row && right.rank() > 1 ? in.rank() - 2 : in.rank() - 1;
  Walk space;
  for (int k = 0; k < in.rank(); ++k)
    if (in[k] != 1) space.push(in[k], k == summed);
  Reducing sum{n.results[0], ReduceOp::Sum, wide, wide, {}};
  sum.value = [=, this](PointEmitter& e, const std::vector<Coord>& dims) {
    size_t at = 0;
    for (int k = 0; k < summed; ++k) at += in[k] != 1;
    const std::vector<Coord> along{in[summed] == 1 ? e.constant(0) : dims[at]};
    int x = e.value(a, row ? e.point(along) : point_in(e, left, dims));
    if (x < 0) return x;
    int y = e.value(b, right.rank() == 1 ? e.point(along) : point_in(e, right, dims));
    if (y < 0) return y;
    if (wide != t) x = e.cast(x, wide), y = e.cast(y, wide);
    return e.multiply(x, y, wide);
  };
  return reduce(g, space, {std::move(sum)}, stored);
}

Result<void> Lowerer::reduce(int g, const Walk& space, const std::vector<Reducing>& what,
                             const std::vector<ValueId>& stored) {
  if (stored.empty() || look_.elements(what[0].result) == 0) {
    for (ValueId v : stored) buffer_of(v);
    return {};
  }
  using Dims = std::vector<Coord>;
  const auto kept_of = [&](const Dims& dims) {
    Dims kept;
    for (size_t k = 0; k < space.dims.size(); ++k)
      if (!space.dims[k].reduce) kept.push_back(dims[k]);
    return kept;
  };
  const auto body = [&](PointEmitter& e, Draft& d, const Dims& dims) {
    e.start(d.kernel.body);
    for (const Reducing& r : what) {
      ir::KReduction red{r.op, r.value(e, dims), r.value_dtype, r.accumulator};
      if (red.value < 0) return false;
      d.kernel.reductions.push_back(red);
    }
    return true;
  };
  const auto is_arg = [](const Reducing& r) { return r.op == ReduceOp::ArgMin || r.op == ReduceOp::ArgMax; };
  const auto epilogue = [&](PointEmitter& e, Draft& d, const Dims& kept) {
    e.start(d.kernel.epilogue);
    for (size_t k = 0; k < what.size(); ++k) {
      const Reducing& r = what[k];
      const DType t = is_arg(r) ? DType::I64 : r.accumulator;
      int ssa = e.reduce_result(static_cast<int>(k), t);
      if (t != dtype(r.result)) ssa = e.cast(ssa, dtype(r.result));
      e.define(r.result, ssa);
    }
    std::vector<int> got;
    for (ValueId v : stored) {
      got.push_back(e.value(v, point_in(e, look_.shape(v), kept)));
      if (got.back() < 0) return;
    }
    for (size_t k = 0; k < stored.size(); ++k) {
      const Shape shape = look_.shape(stored[k]);
      e.store(buffer_of(stored[k]), shape, point_in(e, shape, kept), got[k], look_.node(stored[k])->span);
    }
  };
  const Limits& limits = options_.target == program::TargetKind::Cuda ? kCudaLimits : kHostLimits;
  std::optional<Chunks> chunks;
  if (std::none_of(what.begin(), what.end(), is_arg)) chunks = choose_chunks(space, limits);
  if (!chunks) {
    Walk walk = space;
    if (std::none_of(walk.dims.begin(), walk.dims.end(), [](const Walk::Dim& d) { return d.reduce; }))
      walk.push(1, true);  // a reduction of one element still is one: -0.0 sums to 0.0
    GK_TRY(Draft d,
           draft(g, ir::Kernel::Kind::Reduce, walk, [&](PointEmitter& e, Draft& d, const Dims& dims) {
             if (body(e, d, dims)) epilogue(e, d, kept_of(dims));
           }));
    add(std::move(d));
    return {};
  }

  // The partial results, by point and chunk.
  const Chunks& c = *chunks;
  Shape partial_shape;
  for (const Walk::Dim& d : space.dims)
    if (!d.reduce) partial_shape.push_back(d.axes[0]);
  for (size_t k = c.first; k < c.cut; ++k) partial_shape.push_back(space.dims[k].axes[0]);
  partial_shape.push_back(c.count + (c.tail > 0));
  std::vector<int> buffers;
  for (const Reducing& r : what) buffers.push_back(new_buffer(r.accumulator, partial_shape));
  for (const bool tail : {false, true}) {
    if (tail && c.tail == 0) continue;
    Walk walk;
    for (size_t k = 0; k < space.dims.size(); ++k) {
      const int64_t extent = space.dims[k].axes[0];
      if (k == c.cut && !tail) walk.push(c.count);
      const bool whole = k >= c.first && k < c.cut;
      walk.push(k != c.cut ? extent : tail ? c.tail : c.length, space.dims[k].reduce && !whole);
    }
    GK_TRY(Draft d,
           draft(g, ir::Kernel::Kind::Reduce, walk, [&](PointEmitter& e, Draft& d, const Dims& walked) {
             Dims dims, chunk;
             for (size_t k = 0, w = 0; k < space.dims.size(); ++k, ++w) {
               if (k >= c.first && k < c.cut) chunk.push_back(walked[w]);
               if (k != c.cut) {
                 dims.push_back(walked[w]);
                 continue;
               }
               chunk.push_back(tail ? e.constant(c.count) : walked[w++]);
               Coord at = walked[w];
               at.offset += chunk.back().offset * c.length;
               for (size_t a = 0; a < at.coefs.size(); ++a) at.coefs[a] += chunk.back().coefs[a] * c.length;
               dims.push_back(std::move(at));
             }
             if (!body(e, d, dims)) return;
             e.start(d.kernel.epilogue);
             Dims place = kept_of(dims);
             place.insert(place.end(), chunk.begin(), chunk.end());
             const int p = e.point(std::move(place));
             for (size_t k = 0; k < what.size(); ++k) {
               const int ssa = e.reduce_result(static_cast<int>(k), what[k].accumulator);
               e.store(buffers[k], partial_shape, p, ssa, {});
             }
           }));
    add(std::move(d));
  }

  Walk last;
  const int kept = partial_shape.rank() - static_cast<int>(c.cut - c.first) - 1;
  for (int k = 0; k < partial_shape.rank(); ++k) last.push(partial_shape[k], k >= kept);
  GK_TRY(Draft d, draft(g, ir::Kernel::Kind::Reduce, last, [&](PointEmitter& e, Draft& d, const Dims& dims) {
           e.start(d.kernel.body);
           const int p = e.point(dims);
           for (size_t k = 0; k < what.size(); ++k) {
             const int ssa = e.load(buffers[k], partial_shape, p);
             d.kernel.reductions.push_back({what[k].op, ssa, what[k].accumulator, what[k].accumulator});
           }
           epilogue(e, d, Dims(dims.begin(), dims.begin() + kept));
         }));
  add(std::move(d));
  return {};
}

}  // namespace gk::passes
