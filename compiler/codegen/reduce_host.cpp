// Note [Order of reductions on the host]
// Element r of the linear reduce index belongs to partial r % 32; each partial adds its elements in order;
// then partial j takes j + 16, then j + 8, 4, 2, 1. The order depends on the reduced extents alone: not on
// threads, on how the elements lie in memory, or on what is fused into the body. Three ways of walking give
// that one order: by rows, tiles of a result's elements are evaluated into a buffer and added as vectors of
// 32; by columns, neighbouring results are evaluated side by side with 32 partials each; and where there are
// at most 32 elements, each is a partial, the tree is written out, and LLVM makes vectors of results.
#include "compiler/codegen/reduce.h"
#include "compiler/codegen/shells.h"

namespace gk::codegen {

using ir::KReduction;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr unsigned kLanes = kHostLanes;
constexpr int64_t kColumns = 64;

class HostReduce {
 public:
  explicit HostReduce(Emitter& emitter) : e(emitter), b(emitter.b) {}

  void rows(const std::vector<Value*>& index) {
    if (!partials_) prepare_rows();
    Value* count = e.product(e.kernel.reduce_axes);
    partials_->reset();
    e.loop(e.index(0), count, e.index(kReduceTile), [&](Value* start) { tile(index, start, count); });
    std::vector<Typed> results;
    for (size_t k = 0; k < reductions().size(); ++k) results.push_back(reduced(e, reductions()[k], tree(k)));
    run_epilogue(e, index, results);
  }

  void unrolled(std::vector<Value*> index, Value* from, Value* to) {
    const std::vector<int64_t>& extents = e.variant.unrolled;
    int64_t count = 1;
    for (const int64_t n : extents) count *= n;
    e.loop(from, to, e.index(1), [&](Value* i) {
      if (!index.empty()) index.back() = i;
      std::vector<std::vector<Partial>> partials(reductions().size());
      for (int64_t r = 0; r < count; ++r) {
        Point p = e.point();
        p.index = index;
        p.index.resize(index.size() + extents.size());
        for (size_t d = extents.size(), rest = static_cast<size_t>(r); d-- > 0;) {
          const auto n = static_cast<size_t>(extents[d]);
          p.index[index.size() + d] = e.index(static_cast<int64_t>(rest % n));
          rest /= n;
        }
        e.run(e.kernel.body, p);
        for (size_t k = 0; k < reductions().size(); ++k) {
          const KReduction& red = reductions()[k];
          partials[k].push_back(lift(e, red, p.values[static_cast<size_t>(red.value)], b.getInt64(r)));
        }
      }
      std::vector<Typed> results;
      for (size_t k = 0; k < reductions().size(); ++k) {
        std::vector<Partial>& x = partials[k];
        for (size_t half = kLanes / 2; half > 0; half /= 2) {
          for (size_t j = 0; j + half < x.size(); ++j) x[j] = combine(e, reductions()[k], x[j], x[j + half]);
          x.resize(std::min(x.size(), half));
        }
        // Partials begin at the identity: what that changes is the sign of a sum of negative zeros alone.
        const KReduction& red = reductions()[k];
        results.push_back(reduced(e, red, is_arg(red) ? x[0] : combine(e, red, identity(e, red), x[0])));
      }
      run_epilogue(e, index, results);
    });
  }

  void columns(std::vector<Value*> index, Value* from, Value* to) {
    if (sums_.empty()) sums_ = buffers(kLanes * kColumns);
    Value* count = e.product(e.kernel.reduce_axes);
    Value* lanes = b.CreateBinaryIntrinsic(Intrinsic::smin, count, e.index(kLanes));
    lanes = b.CreateBinaryIntrinsic(Intrinsic::smax, lanes, e.index(1));
    e.loop(
        from, to, e.index(kColumns),
        [&](Value* first) {
          Value* width =
              b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWSub(to, first), e.index(kColumns));
          e.loop(
              e.index(0), b.CreateNSWMul(lanes, e.index(kColumns)), e.index(1),
              [&](Value* i) {
                for (size_t k = 0; k < reductions().size(); ++k)
                  put(sums_[k], i, identity(e, reductions()[k]));
              },
              -1);
          e.loop(
              e.index(0), count, e.index(1),
              [&](Value* r) {
                Value* line = b.CreateNSWMul(b.CreateAnd(r, e.index(kLanes - 1)), e.index(kColumns));
                const std::vector<Value*> at = e.digits(r, e.kernel.reduce_axes);
                e.loop(
                    e.index(0), width, e.index(1),
                    [&](Value* j) {
                      Point p = e.point();
                      p.index = index;
                      p.index.back() = b.CreateNSWAdd(first, j);
                      p.index.insert(p.index.end(), at.begin(), at.end());
                      e.run(e.kernel.body, p);
                      Value* slot = b.CreateNSWAdd(line, j);
                      for (size_t k = 0; k < reductions().size(); ++k) {
                        const KReduction& red = reductions()[k];
                        const Partial x = lift(e, red, p.values[static_cast<size_t>(red.value)], r);
                        put(sums_[k], slot, combine(e, red, get(k, sums_[k], slot), x));
                      }
                    },
                    -1);
              },
              -1);
          // Partials that no element reached are identities and may be left out.
          for (int64_t half = kLanes / 2; half > 0; half /= 2) {
            Value* pairs =
                b.CreateBinaryIntrinsic(Intrinsic::smin, e.index(half), b.CreateNSWSub(lanes, e.index(half)));
            e.loop(
                e.index(0), pairs, e.index(1),
                [&](Value* l) {
                  e.loop(
                      e.index(0), width, e.index(1),
                      [&](Value* j) {
                        Value* low = b.CreateNSWAdd(b.CreateNSWMul(l, e.index(kColumns)), j);
                        Value* high = b.CreateNSWAdd(low, e.index(half * kColumns));
                        for (size_t k = 0; k < reductions().size(); ++k)
                          put(sums_[k], low,
                              combine(e, reductions()[k], get(k, sums_[k], low), get(k, sums_[k], high)));
                      },
                      -1);
                },
                -1);
          }
          e.loop(
              e.index(0), width, e.index(1),
              [&](Value* j) {
                std::vector<Typed> results;
                for (size_t k = 0; k < reductions().size(); ++k)
                  results.push_back(reduced(e, reductions()[k], get(k, sums_[k], j)));
                index.back() = b.CreateNSWAdd(first, j);
                run_epilogue(e, index, results);
              },
              -1);
        },
        -1);
  }

 private:
  /// Two arrays on the stack: values, and indices where the reduction has them.
  struct Buffer {
    Value* values;
    Value* places;
    llvm::Type* type;
  };
  const std::vector<KReduction>& reductions() const { return e.kernel.reductions; }

  std::vector<Buffer> buffers(int64_t count) {
    std::vector<Buffer> out;
    Value* n = b.getInt64(static_cast<uint64_t>(count));
    for (const KReduction& r : reductions()) {
      llvm::Type* t = partial_type(e, r);
      out.push_back({e.stack(t, n), is_arg(r) ? e.stack(b.getInt64Ty(), n) : nullptr, t});
    }
    return out;
  }
  void put(const Buffer& to, Value* i, Partial p) {
    b.CreateStore(p.v, b.CreateInBoundsGEP(to.type, to.values, i));
    if (to.places) b.CreateStore(p.at, b.CreateInBoundsGEP(b.getInt64Ty(), to.places, i));
  }
  Partial get(size_t, const Buffer& from, Value* i) {
    Partial p;
    p.v = b.CreateLoad(from.type, b.CreateInBoundsGEP(from.type, from.values, i));
    if (from.places) p.at = b.CreateLoad(b.getInt64Ty(), b.CreateInBoundsGEP(b.getInt64Ty(), from.places, i));
    return p;
  }
  Partial get_lanes(const Buffer& from, Value* i) {
    Partial p;
    p.v = b.CreateLoad(llvm::FixedVectorType::get(from.type, kLanes),
                       b.CreateInBoundsGEP(from.type, from.values, i));
    if (from.places)
      p.at = b.CreateLoad(llvm::FixedVectorType::get(b.getInt64Ty(), kLanes),
                          b.CreateInBoundsGEP(b.getInt64Ty(), from.places, i));
    return p;
  }

  void prepare_rows() {
    tile_ = buffers(kReduceTile);
    partials_ = std::make_unique<Partials>(e, kLanes);
  }

  void tile(const std::vector<Value*>& index, Value* start, Value* count) {
    Value* end = b.CreateBinaryIntrinsic(Intrinsic::smin, count, b.CreateNSWAdd(start, e.index(kReduceTile)));
    host_rows(e, e.kernel.reduce_axes, start, end,
              [&](std::vector<Value*> at, Value* from, Value* to, Value* row_start) {
                e.loop(from, to, e.index(1), [&](Value* i) {
                  Point p = e.point();
                  p.index = index;
                  p.index.insert(p.index.end(), at.begin(), at.end());
                  if (!at.empty()) p.index.back() = i;
                  e.run(e.kernel.body, p);
                  Value* r = b.CreateNSWAdd(row_start, i);
                  for (size_t k = 0; k < reductions().size(); ++k) {
                    const KReduction& red = reductions()[k];
                    put(tile_[k], b.CreateNSWSub(r, start),
                        lift(e, red, p.values[static_cast<size_t>(red.value)], r));
                  }
                });
              });
    Value* n = b.CreateNSWSub(end, start);
    Value* padded = b.CreateAnd(b.CreateNSWAdd(n, e.index(kLanes - 1)), e.index(-int64_t{kLanes}));
    e.loop(n, padded, e.index(1), [&](Value* i) {
      for (size_t k = 0; k < reductions().size(); ++k) put(tile_[k], i, identity(e, reductions()[k]));
    });
    e.loop(e.index(0), padded, e.index(kLanes), [&](Value* i) {
      for (size_t k = 0; k < reductions().size(); ++k) partials_->add(k, get_lanes(tile_[k], i));
    });
  }

  Partial tree(size_t k) {
    Partial p = partials_->get(k);
    for (unsigned n = kLanes / 2; n > 0; n /= 2) {
      std::vector<int> low, high;
      for (unsigned i = 0; i < n; ++i) {
        low.push_back(static_cast<int>(i));
        high.push_back(static_cast<int>(i + n));
      }
      auto part = [&](Value* v, const std::vector<int>& lanes) {
        return v ? b.CreateShuffleVector(v, lanes) : nullptr;
      };
      p = combine(e, reductions()[k], {part(p.v, low), part(p.at, low)}, {part(p.v, high), part(p.at, high)});
    }
    p.v = b.CreateExtractElement(p.v, uint64_t{0});
    if (p.at) p.at = b.CreateExtractElement(p.at, uint64_t{0});
    return p;
  }

  Emitter& e;
  Builder& b;
  std::unique_ptr<Partials> partials_;
  std::vector<Buffer> tile_, sums_;
};

}  // namespace

void reduce_host(Emitter& e, const std::string& name) {
  host_entry(e, name, [&](Value* begin, Value* end) {
    HostReduce reduce(e);
    host_rows(e, e.kernel.axes, begin, end, [&](std::vector<Value*> index, Value* from, Value* to, Value*) {
      if (!e.variant.unrolled.empty()) return reduce.unrolled(index, from, to);
      if (e.variant.columns) return reduce.columns(index, from, to);
      e.loop(from, to, e.index(1), [&](Value* i) {
        if (!index.empty()) index.back() = i;
        reduce.rows(index);
      });
    });
  });
}

}  // namespace gk::codegen
