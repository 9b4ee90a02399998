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

int64_t product_of(const std::vector<int64_t>& v) {
  int64_t p = 1;
  for (int64_t x : v) p *= x;
  return p;
}

// A number of chunks near `want` that divides `extent`, else `want`: then a last shorter chunk is its own
// launch.
int64_t choose_chunks(int64_t extent, int64_t want) {
  for (int64_t d = 0; d <= want / 2; ++d) {
    if (extent % (want - d) == 0) return want - d;
    if (want + d <= extent && extent % (want + d) == 0) return want + d;
  }
  return want;
}

}  // namespace

Result<void> Lowerer::reduce(int g, const std::vector<ValueId>& reductions,
                             const std::vector<ValueId>& stored) {
  const Node& first = *look_.node(reductions[0]);
  const Shape in = look_.shape(first.operands[0]);
  if (stored.empty() || look_.elements(reductions[0]) == 0) {
    for (ValueId v : stored) buffer_of(v);
    return {};
  }
  Walk walk;
  for (int k = 0; k < in.rank(); ++k) {
    const bool reduced =
        std::find(first.attrs.axes.begin(), first.attrs.axes.end(), k) != first.attrs.axes.end();
    if (in[k] != 1) walk.push(in[k], reduced);
  }
  if (std::none_of(walk.dims.begin(), walk.dims.end(), [](const Walk::Dim& d) { return d.reduce; }))
    walk.push(1, true);  // a reduction of one element still is one: -0.0 sums to 0.0
  GK_TRY(
      Draft d,
      draft(g, ir::Kernel::Kind::Reduce, walk, [&](Evaluator& e, Draft& d, const std::vector<Coord>& dims) {
        std::vector<Coord> kept;
        for (size_t k = 0; k < dims.size(); ++k)
          if (!walk.dims[k].reduce) kept.push_back(dims[k]);
        e.start(d.kernel.body);
        for (ValueId r : reductions) {
          const Node& n = *look_.node(r);
          ir::KReduction red;
          red.op = reduce_op(n.op);
          red.value_dtype = dtype(n.operands[0]);
          red.accumulator = accumulates_in(red.op, red.value_dtype);
          red.value = e.value(n.operands[0], point_in(e, look_.shape(n.operands[0]), dims));
          if (red.value < 0) return;
          d.kernel.reductions.push_back(red);
        }
        e.start(d.kernel.epilogue);
        for (size_t k = 0; k < reductions.size(); ++k) {
          const ir::KReduction& red = d.kernel.reductions[k];
          const bool arg = red.op == ReduceOp::ArgMin || red.op == ReduceOp::ArgMax;
          int ssa = e.reduce_result(static_cast<int>(k), arg ? DType::I64 : red.accumulator);
          if (!arg && red.accumulator != dtype(reductions[k])) ssa = e.cast(ssa, dtype(reductions[k]));
          e.define(reductions[k], ssa);
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
      }));
  collapse(d);
  if (!split_reduction(d)) out_.steps.push_back(finish(std::move(d), out_.buffers));
  return {};
}

// Emits the partial results, leaving in `d` the reduction of these; then the steps are complete and it gives
// true.
bool Lowerer::split_reduction(Draft& d) {
  const Limits& limits = options_.target == program::TargetKind::Cuda ? kCudaLimits : kHostLimits;
  const int64_t points = product_of(d.axes), much = product_of(d.reduce_axes);
  if (points >= limits.few_results || much <= limits.much) return false;
  for (const ir::KReduction& r : d.kernel.reductions)
    if (r.op == ReduceOp::ArgMin || r.op == ReduceOp::ArgMax) return false;
  const size_t axis = static_cast<size_t>(std::max_element(d.reduce_axes.begin(), d.reduce_axes.end()) -
                                          d.reduce_axes.begin());
  const int64_t extent = d.reduce_axes[axis];
  const int64_t want = std::min({extent, limits.chunks / points, much / limits.chunk_min});
  if (want < 2) return false;
  const int64_t chunks = choose_chunks(extent, want), length = extent / chunks,
                tail = extent - chunks * length;
  const int64_t partials = chunks + (tail > 0);
  const size_t column = d.axes.size() + axis, parallel = d.axes.size();

  Shape partial_shape;
  partial_shape.push_back(points);
  partial_shape.push_back(partials);
  std::vector<int> buffers;
  for (const ir::KReduction& r : d.kernel.reductions)
    buffers.push_back(new_buffer(r.accumulator, partial_shape));
  std::vector<int64_t> point_strides(parallel, partials);
  for (size_t k = parallel; k-- > 1;) point_strides[k - 1] = point_strides[k] * d.axes[k];

  const auto phase = [&](bool is_tail) {
    Draft p = clone(d);
    p.kernel.epilogue = {};
    for (DraftAccess& a : p.accesses) {
      const int64_t c = a.coefs[column];
      if (is_tail)
        a.offset += c * chunks * length;
      else
        a.coefs.insert(a.coefs.begin() + static_cast<long>(parallel), c * length);
    }
    p.reduce_axes[axis] = is_tail ? tail : length;
    if (!is_tail) p.axes.push_back(chunks);
    for (size_t k = 0; k < buffers.size(); ++k) {
      ir::KInst get;
      get.kind = ir::KKind::ReduceResult;
      get.axis = static_cast<int>(k);
      get.dtype = p.kernel.reductions[k].accumulator;
      get.result = p.kernel.num_values++;
      ir::KInst put;
      put.kind = ir::KKind::Store;
      put.dtype = get.dtype;
      put.args = {get.result};
      put.axis = static_cast<int>(p.accesses.size());
      DraftAccess a;
      a.buffer = buffers[k];
      a.offset = is_tail ? chunks : 0;
      a.coefs = point_strides;
      if (!is_tail) a.coefs.push_back(1);
      a.coefs.resize(p.axes.size() + p.reduce_axes.size(), 0);
      p.accesses.push_back(std::move(a));
      p.kernel.epilogue.insts.push_back(std::move(get));
      p.kernel.epilogue.insts.push_back(std::move(put));
    }
    add(std::move(p));
  };
  phase(false);
  if (tail > 0) phase(true);

  d.kernel.body = {};
  d.kernel.locals.clear();
  d.reduce_axes = {partials};
  for (DraftAccess& a : d.accesses) a.coefs.resize(parallel), a.coefs.push_back(0);
  for (size_t k = 0; k < buffers.size(); ++k) {
    ir::KReduction& r = d.kernel.reductions[k];
    ir::KInst get;
    get.kind = ir::KKind::Load;
    get.dtype = r.accumulator;
    get.axis = static_cast<int>(d.accesses.size());
    get.result = d.kernel.num_values++;
    r.value = get.result;
    r.value_dtype = r.accumulator;
    DraftAccess a;
    a.buffer = buffers[k];
    a.coefs = point_strides;
    a.coefs.push_back(1);
    d.accesses.push_back(std::move(a));
    d.kernel.body.insts.push_back(std::move(get));
  }
  add(std::move(d));
  return true;
}

}  // namespace gk::passes
