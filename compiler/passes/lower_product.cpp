// Matrix products: a library call with what follows as a map (or absorbed, where the library can), or a
// generated kernel with what follows inside.
#include <algorithm>

#include "compiler/passes/lower_group.h"

namespace gk::passes {
namespace {

bool library_has(DType t) {
  return t == DType::F32 || t == DType::F64 || t == DType::F16 || t == DType::BF16;
}

// The leading dimension of a matrix of `rows` x `cols` with these strides, where the library takes it as it
// lies. Strides along an extent of 1 are 0 and mean nothing. The library takes transposes as well, but sums
// in another order then: see Note [Who computes a product].
std::optional<int64_t> leading(int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  if ((cols == 1 || col_stride == 1) && (rows == 1 || row_stride >= cols))
    return rows == 1 ? cols : row_stride;
  return std::nullopt;
}

// Note [Who computes a product]. Statement by statement an operand is an array of its own; in a graph it may
// be a view that the product reads in place. Both must give the same bits, and libraries and generated
// kernels sum in different orders, as a library does for a matrix and for its transpose. So who computes a
// product, and how, follows from its shapes alone: an operand that does not lie row by row is copied first.

}  // namespace

Result<void> Lowerer::product(int g, const Node& n, const std::vector<ValueId>& stored) {
  if (stored.empty() || look_.elements(n.results[0]) == 0) {
    for (ValueId v : stored) buffer_of(v);
    return {};
  }
  const Shape a = look_.shape(n.operands[0]), b = look_.shape(n.operands[1]), c = look_.shape(n.results[0]);
  const bool row = a.rank() == 1, column = b.rank() == 1;  // vectors
  const int64_t k = a[a.rank() - 1], m = row ? 1 : a[a.rank() - 2], cols = column ? 1 : b[b.rank() - 1];
  if (k == 0) return product_of_nothing(g, n, stored);
  if (row || column) return vector_product(g, n, stored);
  Shape batch;
  for (int i = 0; i < c.rank() - !row - !column; ++i) batch.push_back(c[i]);
  const int batches = batch.rank();
  const int64_t work = m * cols * k * num_elements(batch).value_or(1);
  const DType t = dtype(n.operands[0]);
  bool wants_library = options_.library_matmul && library_has(t) && work > options_.generated_matmul_max;
  if (wants_library && options_.library_does) {
    // Who computes a product follows from its shapes alone, so the library is asked for it laid out plainly.
    program::MatMulCall plain;
    plain.dtype = t;
    plain.m = m, plain.n = cols, plain.k = k;
    plain.batch = num_elements(batch).value_or(1);
    plain.lda = k, plain.ldb = plain.ldc = cols;
    plain.stride_a = m * k, plain.stride_b = k * cols, plain.stride_c = m * cols;
    plain.tf32 = m_.tf32 && t == DType::F32;
    wants_library = options_.library_does(plain);
  }

  // Axes: batches, m, n, k; extents of 1 stay, the kernel's form is fixed.
  bool copied = false;
  while (true) {
    Draft d;
    d.kernel.kind = ir::Kernel::Kind::MatMul;
    d.kernel.fast_math = m_.fast_math;
    d.label = label(members_now_);
    d.span = node(members_now_.back()).span;
    for (int64_t x : batch)
      if (x != 1) d.axes.push_back(x);
    const int mine = static_cast<int>(d.axes.size());
    d.axes.push_back(m);
    d.axes.push_back(cols);
    d.reduce_axes = {k};
    PointEmitter::Source s = source(g);
    s.may_split = false;
    PointEmitter e(s, d);
    e.start(d.kernel.body);
    std::vector<Coord> at_batch;
    for (int i = 0, next = 0; i < batches; ++i)
      at_batch.push_back(batch[i] == 1 ? e.constant(0) : e.axis(next++));
    const Coord at_m = e.axis(mine), at_n = e.axis(mine + 1), at_k = e.axis(mine + 2);
    const auto point = [&](const Shape& shape, bool vector, const Coord& first, const Coord& second) {
      std::vector<Coord> p;
      const int own = shape.rank() - (vector ? 1 : 2);
      for (int i = 0; i < own; ++i)
        p.push_back(shape[i] == 1 ? e.constant(0) : at_batch[static_cast<size_t>(batches - own + i)]);
      p.push_back(first);
      if (!vector) p.push_back(second);
      return e.point(std::move(p));
    };
    const auto pa = e.locate(n.operands[0], point(a, row, row ? at_k : at_m, at_k));
    const auto pb = e.locate(n.operands[1], point(b, column, at_k, at_n));
    const bool fine_a = pa && pa->second.ssa < 0, fine_b = pb && pb->second.ssa < 0;
    if (!fine_a || !fine_b) {
      const ValueId v = fine_a ? n.operands[1] : n.operands[0];
      GK_TRY(extra_[v], materialise(v));
      continue;
    }
    if (wants_library) {
      const auto coef = [](const Coord& x, int i) { return x.coefs[static_cast<size_t>(i)]; };
      const Coord &ca = pa->second, &cb = pb->second;
      const auto la = leading(m, k, coef(ca, mine), coef(ca, mine + 2));
      const auto lb = leading(k, cols, coef(cb, mine + 2), coef(cb, mine + 1));
      // Batches as one axis.
      int64_t count = 1, sa = 0, sb = 0;
      bool one = true;
      for (int i = mine - 1; i >= 0; --i) {
        if (i == mine - 1)
          sa = coef(ca, i), sb = coef(cb, i);
        else
          one = one && coef(ca, i) == sa * count && coef(cb, i) == sb * count;
        count *= d.axes[static_cast<size_t>(i)];
      }
      one = one && sa >= 0 && sb >= 0;
      if (la && lb && one) {
        LoweredStep step;
        step.step.kind = program::Step::Kind::Library;
        step.step.label = "matmul";
        step.step.span = n.span;
        auto& call = step.step.library.emplace<program::MatMulCall>();
        call.dtype = t;
        call.m = m, call.n = cols, call.k = k, call.batch = count;
        call.lda = *la, call.stride_a = sa;
        call.ldb = *lb, call.stride_b = sb;
        call.ldc = cols, call.stride_c = m * cols;
        call.tf32 = m_.tf32 && t == DType::F32;
        const auto touch = [&](const std::pair<int, Coord>& p) {
          BufferUse u;
          int64_t last = p.second.offset;
          for (size_t i = 0; i + 1 < p.second.coefs.size(); ++i)
            last += p.second.coefs[i] * ((i < d.axes.size() ? d.axes[i] : k) - 1);
          u.buffer = p.first;
          u.offset_bytes = p.second.offset * size_bytes(t);
          u.size_bytes = (last - p.second.offset + 1) * size_bytes(t);
          u.read = true;
          return u;
        };
        step.buffers = {touch(*pa), touch(*pb)};
        const ValueId r = n.results[0];
        ValueId result = r;
        if (stored.size() == 1 && stored[0] != r && absorb(g, n, stored[0], step)) result = stored[0];
        BufferUse to;
        to.buffer = buffer_of(result);
        to.size_bytes = look_.elements(r) * size_bytes(t);
        to.written = true;
        step.buffers.push_back(to);
        out_.steps.push_back(std::move(step));
        std::vector<ValueId> rest = stored;
        std::erase(rest, result);
        if (rest.empty()) return {};
        extra_[r] = buffer_of(r);
        std::erase_if(members_now_, [&](int i) { return node(i).op == Op::MatMul; });
        return map(g, rest);
      }
      if (!copied) {
        copied = true;
        for (ValueId v : {la && one ? -1 : n.operands[0], lb && one ? -1 : n.operands[1]})
          if (v >= 0 && !in_memory(v)) {
            GK_TRY(extra_[v], materialise(v));
          }
        continue;
      }
    }
    const auto access = [&](const std::pair<int, Coord>& p) {
      d.accesses.push_back({p.first, p.second.offset, {p.second.coefs.begin(), p.second.coefs.end() - 1}});
      ir::Access out;
      out.param = static_cast<int>(d.accesses.size()) - 1;
      return out;
    };
    d.kernel.matmul = {access(*pa), access(*pb), t, is_float(t) ? accumulator(t) : t};
    e.start(d.kernel.epilogue);
    int acc = e.reduce_result(0, d.kernel.matmul.accumulator);
    if (d.kernel.matmul.accumulator != t) acc = e.cast(acc, t);
    e.define(n.results[0], acc);
    std::vector<Coord> dims;
    for (int i = 0; i < mine; ++i) dims.push_back(e.axis(i));
    if (m != 1 && !row) dims.push_back(at_m);
    if (cols != 1 && !column) dims.push_back(at_n);
    std::vector<int> got;
    for (ValueId v : stored) {
      got.push_back(e.value(v, point_in(e, look_.shape(v), dims)));
      if (got.back() < 0) break;
    }
    if (e.retry().materialise >= 0) {
      GK_TRY(extra_[e.retry().materialise], materialise(e.retry().materialise));
      continue;
    }
    for (size_t i = 0; i < stored.size(); ++i) {
      const Shape shape = look_.shape(stored[i]);
      e.store(buffer_of(stored[i]), shape, point_in(e, shape, dims), got[i], look_.node(stored[i])->span);
    }
    add(std::move(d));
    return {};
  }
}

// An inner extent of 0: zeros go through what follows.
Result<void> Lowerer::product_of_nothing(int g, const Node& n, const std::vector<ValueId>& stored) {
  Walk walk;
  for (int64_t d : squeezed(look_.shape(n.results[0]))) walk.push(d);
  GK_TRY(
      Draft d,
      draft(g, ir::Kernel::Kind::Map, walk, [&](PointEmitter& e, Draft& d, const std::vector<Coord>& dims) {
        e.start(d.kernel.body);
        ir::KInst zero;
        zero.kind = ir::KKind::Const;
        zero.dtype = dtype(n.results[0]);
        zero.value = Scalar::of_int(0).cast(zero.dtype);
        e.define(n.results[0], e.emit(std::move(zero)));
        std::vector<int> got;
        for (ValueId v : stored) {
          got.push_back(e.value(v, point_in(e, look_.shape(v), dims)));
          if (got.back() < 0) return;
        }
        for (size_t k = 0; k < stored.size(); ++k) {
          const Shape shape = look_.shape(stored[k]);
          e.store(buffer_of(stored[k]), shape, point_in(e, shape, dims), got[k], look_.node(stored[k])->span);
        }
      }));
  add(std::move(d));
  return {};
}

// acc + bias[n], maximum(acc, 0) and maximum(acc + bias[n], 0) go into the call on CUDA.
bool Lowerer::absorb(int g, const Node& n, ValueId v, LoweredStep& s) {
  if (options_.target != program::TargetKind::Cuda) return false;
  const ValueId r = n.results[0];
  const Shape shape = look_.shape(r);
  bool relu = false;
  ValueId bias = -1;
  const Node* at = look_.node(v);
  const auto in_group = [&](const Node* x) { return x && x->group == g; };
  if (in_group(at) && at->op == Op::Max) {
    for (size_t k = 0; k < 2; ++k) {
      const auto zero = constant_of(look_, at->operands[k]);
      if (!zero || zero->as_double() != 0) continue;
      relu = true;
      v = at->operands[1 - k];
      break;
    }
    at = look_.node(v);
  }
  if (v != r) {
    if (!in_group(at) || at->op != Op::Add) return false;
    if (at->operands[0] != r && at->operands[1] != r) return false;
    bias = at->operands[at->operands[0] == r ? 1 : 0];
  }
  if (!relu && bias < 0) return false;
  auto& call = std::get<program::MatMulCall>(s.step.library);
  if (shape.empty() || call.n != shape[shape.rank() - 1]) return false;
  if (bias >= 0) {
    if (bias == r) return false;
    Draft d;
    d.axes.assign(shape.begin(), shape.end());
    PointEmitter::Source src = source(g);
    src.may_split = false;
    PointEmitter e(src, d);
    e.start(d.kernel.body);
    std::vector<Coord> dims;
    for (int k = 0; k < shape.rank(); ++k) dims.push_back(e.axis(k));
    const auto place = e.locate(bias, e.point(std::move(dims)));
    if (!place || place->second.ssa >= 0) return false;
    for (int k = 0; k < shape.rank(); ++k)
      if (shape[k] != 1 && place->second.coefs[static_cast<size_t>(k)] != (k + 1 == shape.rank()))
        return false;
    BufferUse u;
    u.buffer = place->first;
    u.offset_bytes = place->second.offset * size_bytes(dtype(r));
    u.size_bytes = call.n * size_bytes(dtype(r));
    u.read = true;
    s.buffers.push_back(u);
    call.has_bias = true;
  }
  if (relu) call.activation = program::MatMulCall::Activation::Relu;
  s.step.label = label(members_now_);
  return true;
}

}  // namespace gk::passes
