// Reductions and matrix products. Order: one element after the other, in row-major order of the reduced axes
// (of k, for matmul). Floats accumulate in f64 and are rounded once to the result; integers wrap.
#include <algorithm>
#include <cmath>

#include "compiler/interp/eval.h"

namespace gk::interp {
namespace {

using ir::Op;

class Accumulator {
 public:
  Accumulator(Op op, DType in) : op_(op), in_(in) {
    sum_ = op == Op::Prod ? 1 : 0;
    integer_ = op == Op::Prod || op == Op::All ? 1 : 0;
  }

  void add(const Scalar& x) {
    switch (op_) {
      case Op::Sum: x.is_float() ? void(sum_ += x.f) : void(integer_ += static_cast<uint64_t>(x.i)); break;
      case Op::Prod: x.is_float() ? void(sum_ *= x.f) : void(integer_ *= static_cast<uint64_t>(x.i)); break;
      case Op::Any: integer_ |= static_cast<uint64_t>(x.i != 0); break;
      case Op::All: integer_ &= static_cast<uint64_t>(x.i != 0); break;
      default: choose(x);
    }
    ++count_;
  }

  Scalar result(DType t) const {
    switch (op_) {
      case Op::Sum:
      case Op::Prod:
        return is_float(in_) ? Scalar::of_float(sum_, t) : Scalar::of_int(static_cast<int64_t>(integer_), t);
      case Op::Any:
      case Op::All: return Scalar::of_bool(integer_ != 0);
      case Op::ArgMin:
      case Op::ArgMax: return Scalar::of_int(where_, DType::I64);
      default: return best_;
    }
  }

 private:
  void choose(const Scalar& x) {
    if (count_ == 0) {
      best_ = x;
      return;
    }
    const Scalar both[] = {best_, x};
    if (op_ == Op::ReduceMin || op_ == Op::ReduceMax) {
      best_ = ir::apply(op_ == Op::ReduceMin ? Op::Min : Op::Max, both, in_);
      return;
    }
    // The first NaN wins, then the first of the extremes.
    if (best_.is_float() && std::isnan(best_.f)) return;
    const bool better = ir::apply(op_ == Op::ArgMin ? Op::Gt : Op::Lt, both, DType::Bool).i != 0;
    if (better || (x.is_float() && std::isnan(x.f))) {
      best_ = x;
      where_ = count_;
    }
  }

  Op op_;
  DType in_;
  double sum_ = 0;
  uint64_t integer_ = 0;
  Scalar best_;
  int64_t where_ = 0, count_ = 0;
};

}  // namespace

Array reduce(Op op, const Array& x, const ir::Attrs& attrs, const ir::Type& result) {
  // The kept axes in order, then the reduced ones, with their strides in x.
  Shape kept, reduced, kept_strides, reduced_strides;
  const Shape strides = row_major_strides(x.shape);
  for (int i = 0; i < x.shape.rank(); ++i) {
    const bool gone = std::find(attrs.axes.begin(), attrs.axes.end(), i) != attrs.axes.end();
    (gone ? reduced : kept).push_back(x.shape[i]);
    (gone ? reduced_strides : kept_strides).push_back(strides[i]);
  }
  Array out = Array::zeros(result.dtype, result.shape());
  for_each_index(kept, [&](const Shape& at, int64_t linear) {
    int64_t base = 0;
    for (int i = 0; i < at.rank(); ++i) base += at[i] * kept_strides[i];
    Accumulator acc(op, x.dtype);
    for_each_index(reduced, [&](const Shape& inner, int64_t) {
      int64_t offset = base;
      for (int i = 0; i < inner.rank(); ++i) offset += inner[i] * reduced_strides[i];
      acc.add(x.get(offset));
    });
    out.set(linear, acc.result(result.dtype));
  });
  return out;
}

Array matmul(const Array& a, const Array& b, const ir::Type& result) {
  const int rank_a = a.shape.rank(), rank_b = b.shape.rank();
  const bool row = rank_a == 1, column = rank_b == 1;  // vectors
  const Shape sa = row_major_strides(a.shape), sb = row_major_strides(b.shape);
  const int64_t k = a.shape[rank_a - 1];
  const int64_t step_a = sa[rank_a - 1], step_b = column ? sb[0] : sb[rank_b - 2];
  Array out = Array::zeros(result.dtype, result.shape());
  const int batch = out.shape.rank() - (row ? 0 : 1) - (column ? 0 : 1);
  // Offset of a batch index in an operand whose batch axes are its first `n`, aligned at their ends.
  const auto base = [batch](const Shape& at, const Shape& shape, const Shape& strides, int n) {
    int64_t offset = 0;
    for (int i = 0; i < n; ++i)
      if (shape[i] != 1) offset += at[batch - n + i] * strides[i];
    return offset;
  };
  for_each_index(out.shape, [&](const Shape& at, int64_t linear) {
    int64_t pa = base(at, a.shape, sa, std::max(rank_a - 2, 0)),
            pb = base(at, b.shape, sb, std::max(rank_b - 2, 0));
    if (!row) pa += at[batch] * sa[rank_a - 2];
    if (!column) pb += at[out.shape.rank() - 1] * sb[rank_b - 1];
    double sum = 0;
    uint64_t integer = 0;
    for (int64_t i = 0; i < k; ++i, pa += step_a, pb += step_b) {
      const Scalar x = a.get(pa), y = b.get(pb);
      if (x.is_float())
        sum += x.f * y.f;
      else
        integer += static_cast<uint64_t>(x.i) * static_cast<uint64_t>(y.i);
    }
    out.set(linear, is_float(a.dtype) ? Scalar::of_float(sum, result.dtype)
                                      : Scalar::of_int(static_cast<int64_t>(integer), result.dtype));
  });
  return out;
}

}  // namespace gk::interp
