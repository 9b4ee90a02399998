#include "compiler/passes/draft.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

namespace gk::passes {
namespace {

using ir::KInst;
using ir::KKind;
using ir::KSize;

void each(ir::KBlock& b, const std::function<void(KInst&)>& f) {
  for (KInst& i : b.insts) {
    f(i);
    for (auto& inner : i.blocks) each(*inner, f);
  }
}

void drop_axis(Draft& d, std::vector<int64_t>& axes, size_t k, size_t column) {
  axes.erase(axes.begin() + static_cast<long>(k));
  for (DraftAccess& a : d.accesses) a.coefs.erase(a.coefs.begin() + static_cast<long>(column));
}

void collapse(Draft& d, std::vector<int64_t>& axes, size_t first, size_t keep) {
  for (size_t k = axes.size(); k-- > 0;)
    if (axes[k] == 1 && axes.size() > keep) drop_axis(d, axes, k, first + k);
  for (size_t k = axes.size(); k-- > 1;) {
    const bool one = std::all_of(d.accesses.begin(), d.accesses.end(), [&](const DraftAccess& a) {
      return a.coefs[first + k - 1] == a.coefs[first + k] * axes[k];
    });
    if (!one) continue;
    axes[k - 1] *= axes[k];
    for (DraftAccess& a : d.accesses) a.coefs[first + k - 1] = a.coefs[first + k];
    drop_axis(d, axes, k, first + k);
  }
}

class Finisher {
 public:
  Finisher(Draft d, const std::vector<Buffer>& buffers) : d_(std::move(d)), buffers_(buffers) {
    extents_ = d_.axes;
    extents_.insert(extents_.end(), d_.reduce_axes.begin(), d_.reduce_axes.end());
    param_of_.resize(d_.accesses.size(), -1);
    rest_.resize(d_.accesses.size(), 0);
    placed_.resize(d_.accesses.size());
  }

  LoweredStep run() {
    auto& k = d_.kernel;
    find_buffers(k.body, false);
    if (k.kind == ir::Kernel::Kind::MatMul) {
      use(k.matmul.a.param, true, false, false, false);
      use(k.matmul.b.param, true, false, false, false);
    }
    find_buffers(k.epilogue, true);
    scalar_params_.assign(d_.scalars.size(), -1);
    find_scalars(k.body);
    find_scalars(k.epilogue);
    for (size_t a = 0; a < d_.axes.size(); ++a) k.axes.push_back(KSize::dynamic(number(d_.axes[a])));
    for (size_t a = 0; a < d_.reduce_axes.size(); ++a)
      k.reduce_axes.push_back(KSize::dynamic(number(d_.reduce_axes[a])));
    if (k.kind == ir::Kernel::Kind::MatMul) {
      k.matmul.a = access(k.matmul.a.param);
      k.matmul.b = access(k.matmul.b.param);
    }
    rewrite(k.body);
    in_epilogue_ = true;
    rewrite(k.epilogue);
    k.uses_faults = !ir::fault_sites(k).empty();
    k.name = d_.label;
    out_.use.axes = d_.axes;
    out_.use.reduce_axes = d_.reduce_axes;
    out_.step.kind = program::Step::Kind::Launch;
    out_.step.label = d_.label;
    out_.step.span = d_.span;
    out_.kernel = std::make_shared<ir::Kernel>(std::move(k));
    return std::move(out_);
  }

 private:
  // ---- Buffers come first among the parameters, in order of appearance.
  void find_buffers(ir::KBlock& b, bool epilogue) {
    const bool at_store = epilogue || d_.kernel.kind == ir::Kernel::Kind::Map;
    each(b, [&](KInst& i) {
      switch (i.kind) {
        case KKind::Load: use(i.use, true, false, at_store, false); break;
        case KKind::Store: use(i.use, false, true, true, false); break;
        case KKind::Gather: use(i.use, true, false, false, true); break;
        case KKind::LoadIndexed: i.param = indexed(d_.indexed[static_cast<size_t>(i.param)]); break;
        default: break;
      }
    });
  }

  int pointer(const BufferUse& u, DType t) {
    ir::KParam p;
    p.dtype = t;
    p.read = u.read;
    p.written = u.written;
    d_.kernel.params.push_back(std::move(p));
    out_.buffers.push_back(u);
    out_.buffers.back().param = static_cast<int>(d_.kernel.params.size()) - 1;
    program::Arg a;
    a.kind = program::Arg::Kind::Pointer;
    out_.step.args.push_back(a);
    return out_.buffers.back().param;
  }

  void use(int index, bool read, bool written, bool at_store, bool gather) {
    const DraftAccess& a = d_.accesses[static_cast<size_t>(index)];
    int64_t low = a.offset, high = a.offset;
    bool empty = false;
    for (size_t k = 0; k < a.coefs.size(); ++k) {
      empty = empty || extents_[k] == 0;
      (a.coefs[k] < 0 ? low : high) += a.coefs[k] * (extents_[k] - 1);
    }
    if (gather) (a.gather_stride < 0 ? low : high) += a.gather_stride * (a.gather_size - 1);
    if (empty) low = high = 0;
    const Buffer& b = buffers_[static_cast<size_t>(a.buffer)];
    const int64_t bytes = size_bytes(b.dtype);
    int param = param_by_place_.try_emplace({a.buffer, low, written}, -1).first->second;
    if (param < 0) {
      BufferUse u;
      u.buffer = a.buffer;
      u.offset_bytes = low * bytes;
      u.pointwise = true;
      u.strides = a.coefs;
      param = pointer(u, b.dtype);
      param_by_place_[{a.buffer, low, written}] = param;
    }
    BufferUse& u = out_.buffers[static_cast<size_t>(param)];
    u.size_bytes = std::max(u.size_bytes, empty ? 0 : (high - low + 1) * bytes);
    u.read |= read;
    u.written |= written;
    u.pointwise = u.pointwise && at_store && !gather && u.strides == a.coefs && a.offset == low;
    auto& p = d_.kernel.params[static_cast<size_t>(param)];
    p.read |= read;
    p.written |= written;
    param_of_[static_cast<size_t>(index)] = param;
    rest_[static_cast<size_t>(index)] = a.offset - low;
  }

  int indexed(const DraftIndexed& x) {
    const auto [it, fresh] = indexed_params_.try_emplace({x.buffer, x.extents.rank()}, -1);
    if (!fresh) return it->second;
    const Buffer& b = buffers_[static_cast<size_t>(x.buffer)];
    BufferUse u;
    u.buffer = x.buffer;
    u.size_bytes = b.size_bytes;
    u.read = true;
    it->second = pointer(u, b.dtype);
    pending_extents_.push_back({it->second, x.extents});
    return it->second;
  }

  // ---- Scalars
  int scalar(const DraftScalar& s) {
    ir::KParam p;
    p.kind = ir::KParam::Kind::Scalar;
    p.dtype = s.value.dtype;
    d_.kernel.params.push_back(std::move(p));
    program::Arg a;
    a.kind = s.slot >= 0 ? program::Arg::Kind::ScalarSlot : program::Arg::Kind::Value;
    a.value = s.value;
    a.slot = s.slot;
    a.dtype = s.value.dtype;
    out_.step.args.push_back(a);
    return static_cast<int>(d_.kernel.params.size()) - 1;
  }
  void find_scalars(ir::KBlock& b) {
    each(b, [&](KInst& i) {
      if (i.kind != KKind::ScalarParam) return;
      int& p = scalar_params_[static_cast<size_t>(i.param)];
      if (p < 0) p = scalar(d_.scalars[static_cast<size_t>(i.param)]);
    });
  }
  int number(int64_t v) { return scalar({-1, Scalar::of_int(v)}); }

  // Strides of a row-major walk over `n` axes from `first`: the innermost extent is the next one's stride,
  // products of several extents get a parameter, shared by all accesses.
  KSize row_major(size_t first, size_t count, size_t k) {
    if (k + 1 == count) return KSize::fixed(1);
    // Without parallel axes those of the reduction begin at 0 too.
    const auto& axes = first == d_.axes.size() ? d_.kernel.reduce_axes : d_.kernel.axes;
    if (k + 2 == count) return axes[k + 1];
    const auto [it, fresh] = products_.try_emplace({first, k}, -1);
    if (fresh) {
      int64_t product = 1;
      for (size_t i = k + 1; i < count; ++i) product *= extents_[first + i];
      it->second = number(product);
    }
    return KSize::dynamic(it->second);
  }
  bool is_row_major(const std::vector<int64_t>& coefs, size_t first, size_t count) const {
    int64_t stride = 1;
    for (size_t k = count; k-- > 0;) {
      if (coefs[first + k] != stride) return false;
      stride *= extents_[first + k];
    }
    return true;
  }

  // In an epilogue over the parallel axes only.
  std::vector<KSize> strides(const std::vector<int64_t>& coefs) {
    std::vector<KSize> out;
    const size_t parallel = d_.axes.size();
    const auto part = [&](size_t first, size_t count) {
      const bool dense = is_row_major(coefs, first, count);
      for (size_t k = 0; k < count; ++k) {
        const int64_t c = coefs[first + k];
        if (dense && d_.kernel.kind != ir::Kernel::Kind::MatMul)
          out.push_back(row_major(first, count, k));
        else if (c == 0 || c == 1)
          out.push_back(KSize::fixed(c));
        else
          out.push_back(KSize::dynamic(number(c)));
      }
    };
    part(0, parallel);
    if (!in_epilogue_) part(parallel, coefs.size() - parallel);
    return out;
  }

  ir::Access access(int index) {
    const DraftAccess& a = d_.accesses[static_cast<size_t>(index)];
    auto& cached = placed_[static_cast<size_t>(index)];
    if (cached.param < 0) {
      cached.param = param_of_[static_cast<size_t>(index)];
      cached.strides = strides(a.coefs);
      const int64_t rest = rest_[static_cast<size_t>(index)];
      cached.offset = rest == 0 ? KSize::fixed(0) : KSize::dynamic(number(rest));
    }
    return cached;
  }

  // ---- Instructions
  KInst compute(ir::Op op, std::vector<int> args) {
    KInst i;
    i.kind = KKind::Compute;
    i.op = op;
    i.dtype = DType::I64;
    i.args = std::move(args);
    i.result = d_.kernel.num_values++;
    return i;
  }
  int scalar_value(std::vector<KInst>& out, int param) {
    KInst i;
    i.kind = KKind::ScalarParam;
    i.dtype = DType::I64;
    i.param = param;
    i.result = d_.kernel.num_values++;
    out.push_back(std::move(i));
    return out.back().result;
  }

  // A sum of scaled axes, whose last instruction keeps the number that its users know.
  void index(const KInst& from, std::vector<KInst>& out) {
    const DraftAccess& a = d_.accesses[static_cast<size_t>(from.use)];
    const std::vector<KSize> scale = strides(a.coefs);
    int sum = -1;
    for (size_t k = 0; k < scale.size(); ++k) {
      if (scale[k] == KSize::fixed(0)) continue;
      KInst axis;
      axis.kind = KKind::AxisIndex;
      axis.dtype = DType::I64;
      axis.axis = static_cast<int>(k);
      axis.result = d_.kernel.num_values++;
      int term = axis.result;
      out.push_back(std::move(axis));
      if (scale[k].param >= 0) {
        const int by = scalar_value(out, scale[k].param);
        out.push_back(compute(ir::Op::Mul, {term, by}));
        term = out.back().result;
      }
      if (sum >= 0) {
        out.push_back(compute(ir::Op::Add, {sum, term}));
        term = out.back().result;
      }
      sum = term;
    }
    if (a.offset != 0 || sum < 0) {
      const int by = scalar_value(out, number(a.offset));
      if (sum >= 0) out.push_back(compute(ir::Op::Add, {sum, by}));
    }
    out.back().result = from.result;
  }

  void rewrite(ir::KBlock& b) {
    for (; next_pending_ < pending_extents_.size(); ++next_pending_) {
      const auto& [param, extents] = pending_extents_[next_pending_];
      std::vector<KSize> sizes;
      for (int64_t e : extents) sizes.push_back(KSize::dynamic(number(e)));
      d_.kernel.params[static_cast<size_t>(param)].extents = std::move(sizes);
    }
    std::vector<KInst> out;
    for (KInst& i : b.insts) {
      for (auto& inner : i.blocks) rewrite(*inner);
      switch (i.kind) {
        case KKind::AxisIndex: index(i, out); continue;
        case KKind::ScalarParam: i.param = scalar_params_[static_cast<size_t>(i.param)]; break;
        case KKind::Gather: {
          const DraftAccess& a = d_.accesses[static_cast<size_t>(i.use)];
          i.size = KSize::dynamic(number(a.gather_size));
          i.stride = a.gather_stride == 1 ? KSize::fixed(1) : KSize::dynamic(number(a.gather_stride));
          i.access = access(i.use);
          i.axis = a.gather_axis;
          break;
        }
        case KKind::Load:
        case KKind::Store:
          i.access = access(i.use);
          i.axis = -1;
          break;
        default: break;
      }
      out.push_back(std::move(i));
    }
    b.insts = std::move(out);
  }

  Draft d_;
  const std::vector<Buffer>& buffers_;
  LoweredStep out_;
  std::vector<int64_t> extents_, rest_;
  std::vector<int> param_of_, scalar_params_;
  std::vector<ir::Access> placed_;
  std::map<std::tuple<int, int64_t, bool>, int> param_by_place_;
  std::map<std::pair<int, int>, int> indexed_params_;
  std::vector<std::pair<int, Shape>> pending_extents_;
  size_t next_pending_ = 0;
  bool in_epilogue_ = false;
  std::map<std::pair<size_t, size_t>, int> products_;
};

}  // namespace

void collapse(Draft& d) {
  const size_t keep = d.kernel.kind == ir::Kernel::Kind::Reduce ? 1 : 0;
  collapse(d, d.reduce_axes, d.axes.size(), keep);
  collapse(d, d.axes, 0, 0);
}

LoweredStep finish(Draft d, const std::vector<Buffer>& buffers) {
  return Finisher(std::move(d), buffers).run();
}

}  // namespace gk::passes
