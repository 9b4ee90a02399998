#include "compiler/codegen/variant.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace gk::codegen {

using ir::KKind;
using program::TargetKind;

namespace {

int64_t product(const std::vector<int64_t>& v) {
  int64_t n = 1;
  for (const int64_t x : v) n *= x;
  return n;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class F>
void visit(const ir::KBlock& block, const F& f) {
  for (const ir::KInst& i : block.insts) {
    f(i);
    for (const auto& inner : i.blocks)
      if (inner) visit(*inner, f);
  }
}
template <class F>
void visit(const ir::Kernel& k, const F& f) {
  visit(k.body, f);
  visit(k.epilogue, f);
}

/// Sums of |stride| * (extent - 1): no offset of any access, and no count of points, is beyond 2^30.
class Reach {
 public:
  Reach(const std::vector<std::optional<int64_t>>& scalars, const Extents& e) : scalars_(scalars) {
    extents_ = e.axes;
    extents_.insert(extents_.end(), e.reduce_axes.begin(), e.reduce_axes.end());
    within(e.items() > kLimit ? kLimit + 1 : e.items());
    within(e.reduce_items());
  }
  void access(const ir::Access& a) {
    int64_t sum = term(a.offset, 2);
    for (size_t d = 0; d < a.strides.size() && d < extents_.size(); ++d)
      sum += term(a.strides[d], extents_[d]);
    within(sum);
    offset_ = sum;
  }
  void gather(const ir::KInst& i) {
    access(i.access);
    const auto n = value(i.size);
    within(n ? offset_ + term(i.stride, *n) : kLimit + 1);
  }
  void refuse() { fits_ = false; }
  bool fits() const { return fits_; }

 private:
  static constexpr int64_t kLimit = int64_t{1} << 30;
  std::optional<int64_t> value(const ir::KSize& s) const {
    if (s.param < 0) return s.value;
    const auto p = static_cast<size_t>(s.param);
    return p < scalars_.size() ? scalars_[p] : std::nullopt;
  }
  int64_t term(const ir::KSize& s, int64_t extent) {
    const auto v = value(s);
    if (!v || *v > kLimit || *v < -kLimit || extent > kLimit) {
      fits_ = false;
      return 0;
    }
    const int64_t t = std::abs(*v) * std::max<int64_t>(extent - 1, 0);
    within(t);
    return std::min(t, kLimit);
  }
  void within(int64_t n) { fits_ = fits_ && n <= kLimit; }

  const std::vector<std::optional<int64_t>>& scalars_;
  std::vector<int64_t> extents_;
  int64_t offset_ = 0;
  bool fits_ = true;
};

bool fits_32_bits(const ir::Kernel& k, const Extents& e, const std::vector<std::optional<int64_t>>& scalars) {
  if (k.kind == ir::Kernel::Kind::User) return false;  // the user's index arithmetic is i64
  Reach r(scalars, e);
  visit(k, [&](const ir::KInst& i) {
    if (i.kind == KKind::Load || i.kind == KKind::Store) r.access(i.access);
    if (i.kind == KKind::Gather) r.gather(i);
    if (i.kind == KKind::LoadIndexed || i.kind == KKind::StoreIndexed || i.kind == KKind::Atomic ||
        i.kind == KKind::Extent)
      r.refuse();
  });
  if (k.kind == ir::Kernel::Kind::MatMul) {
    r.access(k.matmul.a);
    r.access(k.matmul.b);
  }
  return r.fits();
}

bool fixed_at(const ir::Access& a, size_t axis, int64_t v) {
  return axis < a.strides.size() && a.strides[axis] == ir::KSize::fixed(v);
}

/// Whether neighbouring results read neighbouring elements more often than consecutive steps of one do.
bool column_like(const ir::Kernel& k) {
  if (k.axes.empty() || k.reduce_axes.empty()) return false;
  const size_t inner = k.axes.size() - 1, reduced = k.axes.size() + k.reduce_axes.size() - 1;
  int along_axes = 0, along_reduction = 0;
  visit(k.body, [&](const ir::KInst& i) {
    if (i.kind != KKind::Load) return;
    along_axes += fixed_at(i.access, inner, 1) && !fixed_at(i.access, reduced, 1);
    along_reduction += fixed_at(i.access, reduced, 1);
  });
  return along_axes > along_reduction;
}

/// Elements that fill 16 bytes of the widest contiguous buffer.
int vector_width(const ir::Kernel& k) {
  if (k.axes.empty()) return 1;
  int64_t widest = 0;
  visit(k.body, [&](const ir::KInst& i) {
    if ((i.kind == KKind::Load || i.kind == KKind::Store) && fixed_at(i.access, k.axes.size() - 1, 1))
      widest = std::max(widest, size_bytes(k.params[static_cast<size_t>(i.access.param)].dtype));
  });
  return widest == 0 ? 1 : static_cast<int>(std::min<int64_t>(16 / widest, 8));
}

int64_t cost(const ir::KBlock& block) {
  int64_t n = 1;
  visit(block, [&](const ir::KInst& i) {
    const bool heavy = i.kind == KKind::RngNormal || i.kind == KKind::RngUniform ||
                       (i.kind == KKind::Compute && ir::is_heavy(i.op));
    n += heavy ? 16 : i.kind == KKind::For || i.kind == KKind::While ? 256 : 1;
  });
  return n;
}

// Operations of a reduction that is written out.
constexpr int64_t kMostUnrolled = 256;
// Strides up to this are worth code of their own: those between neighbouring results of a short reduction.
constexpr int64_t kMostKnown = 64;

void unroll_short(const ir::Kernel& k, const Extents& e, const std::vector<std::optional<int64_t>>& scalars,
                  Variant& v) {
  const int64_t n = e.reduce_items();
  if (n < 1 || n > kHostLanes || n * cost(k.body) > kMostUnrolled) return;
  v.unrolled = e.reduce_axes;
  for (size_t d = 0; d < e.reduce_axes.size(); ++d)
    if (const int p = k.reduce_axes[d].param; p >= 0) v.known[p] = e.reduce_axes[d];
  visit(k.body, [&](const ir::KInst& i) {
    for (const ir::KSize& s : i.access.strides) {
      if (s.param < 0 || static_cast<size_t>(s.param) >= scalars.size()) continue;
      const auto& value = scalars[static_cast<size_t>(s.param)];
      if (value && std::abs(*value) <= kMostKnown) v.known[s.param] = *value;
    }
  });
}

bool has_loop(const ir::Kernel& k) {
  bool any = false;
  visit(k, [&](const ir::KInst& i) { any |= i.kind == KKind::For || i.kind == KKind::While; });
  return any;
}

program::LaunchDims host_dims(const ir::Kernel& k, const Extents& e) {
  program::LaunchDims d;
  d.items = e.items();
  // As far as it matters for the grain; the product may be beyond i64.
  const int64_t reduced = std::clamp<int64_t>(e.reduce_items(), 1, 1 << 20);
  int64_t per_item = cost(k.body) + cost(k.epilogue);
  if (k.kind == ir::Kernel::Kind::Reduce) per_item = cost(k.body) * reduced;
  if (k.kind == ir::Kernel::Kind::MatMul) {
    const int64_t m = e.axes[e.axes.size() - 2], n = e.axes.back();
    d.items = m * n == 0 ? 0 : e.items() / (m * n) * ceil_div(m, kHostRows) * ceil_div(n, kHostColumns);
    per_item = kHostRows * kHostColumns * reduced / 8 + 1;
  }
  constexpr int64_t kUncounted = int64_t{1} << 40;
  if (!has_loop(k) && per_item < kUncounted && d.items < kUncounted / per_item) d.work = d.items * per_item;
  // About 64 thousand scalar operations a chunk, so that handing one to a thread costs little beside it.
  d.grain = std::max<int64_t>(1, 65536 / per_item);
  if (d.grain > 64) d.grain = d.grain / 64 * 64;
  d.grain = std::clamp<int64_t>(d.grain, 1, std::max<int64_t>(d.items, 1));
  return d;
}

/// The largest usual block that still leaves work for every multiprocessor.
uint32_t block_size(int64_t threads, int multiprocessors) {
  for (const uint32_t block : {256u, 128u})
    if (threads / block >= multiprocessors) return block;
  return 64;
}

void set_grid(program::LaunchDims& d, int64_t blocks, int multiprocessors) {
  const int64_t most = std::max<int64_t>(multiprocessors, 1) * 64;  // the kernels' loops do the rest
  d.grid[0] = static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, most));
}

}  // namespace

int64_t Extents::items() const { return product(axes); }
int64_t Extents::reduce_items() const { return product(reduce_axes); }

std::string Variant::text() const {
  std::string s = kind == TargetKind::Cuda ? "cuda" : "host";
  s += " sm" + std::to_string(sm) + (index32 ? " i32" : " i64") + " v" + std::to_string(vector) + " l" +
       std::to_string(lanes) + (columns ? " columns" : "") + " s" + std::to_string(split);
  for (const int64_t n : unrolled) s += " u" + std::to_string(n);
  for (const auto& [param, value] : known) s += " p" + std::to_string(param) + "=" + std::to_string(value);
  return s;
}

Variant choose_variant(const ir::Kernel& k, const Target& target, const Extents& e,
                       const std::vector<std::optional<int64_t>>& scalars) {
  Variant v;
  v.kind = target.kind;
  if (k.kind == ir::Kernel::Kind::Reduce) v.columns = column_like(k);
  if (target.kind == TargetKind::Host) {
    if (k.kind == ir::Kernel::Kind::Reduce) unroll_short(k, e, scalars, v);
    return v;
  }
  v.sm = target.sm;
  v.index32 = fits_32_bits(k, e, scalars);
  switch (k.kind) {
    case ir::Kernel::Kind::Map:
      // With fewer points than that, a thread each keeps more multiprocessors busy.
      if (e.items() >= int64_t{target.multiprocessors} * 1024) v.vector = vector_width(k);
      break;
    case ir::Kernel::Kind::Reduce:
      v.lanes = e.reduce_items() >= 32768 ? 1024 : e.reduce_items() >= 2048 ? 256 : 32;
      break;
    case ir::Kernel::Kind::MatMul: {
      const int64_t m = e.axes[e.axes.size() - 2], n = e.axes.back();
      const int64_t tiles =
          e.items() / std::max<int64_t>(m * n, 1) * ceil_div(m, kMatMulTile) * ceil_div(n, kMatMulTile);
      // Tiles that cannot fill the device leave it to threads that share the sums.
      v.split = m > 32 && tiles >= target.multiprocessors / 2 ? 0 : 8;
      break;
    }
    default: break;
  }
  return v;
}

program::LaunchDims choose_dims(const ir::Kernel& k, const Target& target, const Variant& v,
                                const Extents& e) {
  if (target.kind == TargetKind::Host) return host_dims(k, e);
  program::LaunchDims d;
  const int sms = std::max(target.multiprocessors, 1);
  const int64_t items = e.items();
  d.items = items;
  switch (k.kind) {
    case ir::Kernel::Kind::Map: {
      const int64_t threads = ceil_div(items, v.vector);
      d.block[0] = block_size(threads, sms);
      set_grid(d, ceil_div(threads, d.block[0]), sms);
      break;
    }
    case ir::Kernel::Kind::User:
      d.block[0] = e.threads > 0 ? static_cast<uint32_t>(std::min(e.threads, 1024)) : 256;
      // No loop cap: the user's points may be uneven, and so the hardware's scheduler should deal them out.
      d.grid[0] = static_cast<uint32_t>(
          std::clamp<int64_t>(ceil_div(items, d.block[0]), 1, std::numeric_limits<int32_t>::max()));
      break;
    case ir::Kernel::Kind::Reduce:
      if (v.columns) {
        d.block[0] = kReduceColumns;
        d.block[1] = 32;
        set_grid(d, ceil_div(items, kReduceColumns), sms);
      } else if (v.lanes == 32) {
        const int64_t warps = items >= int64_t{sms} * 4 ? 4 : 1;
        d.block[0] = static_cast<uint32_t>(32 * warps);
        set_grid(d, ceil_div(items, warps), sms);
      } else {
        d.block[0] = static_cast<uint32_t>(v.lanes);
        set_grid(d, items, sms);
      }
      break;
    case ir::Kernel::Kind::MatMul: {
      const int64_t m = e.axes[e.axes.size() - 2], n = e.axes.back();
      const int64_t batch = m * n == 0 ? 0 : items / (m * n);
      if (v.split > 0) {
        d.block[0] = kMatMulColumns;
        d.block[1] = static_cast<uint32_t>(v.split);
        set_grid(d, batch * ceil_div(m, kMatMulRows) * ceil_div(n, kMatMulColumns), sms);
      } else {
        d.block[0] = 256;
        set_grid(d, batch * ceil_div(m, kMatMulTile) * ceil_div(n, kMatMulTile), sms);
      }
      break;
    }
  }
  return d;
}

}  // namespace gk::codegen
