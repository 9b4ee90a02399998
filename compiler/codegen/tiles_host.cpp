// Note [Loops in tiles]
// LLVM makes vectors of innermost loops alone, and the innermost loop of a map whose body is a loop is that
// one, whose turns depend on each other. So such a map is walked in tiles: each turn of the loop is taken for
// all points of a tile before the next one, in innermost loops over the points. The straight pieces of the
// body become such loops; what a piece makes and a later one uses, and the locals, are arrays of a tile's
// length on the stack. Numbers and indices are made again where they are used.
#include <algorithm>
#include <set>

#include "compiler/codegen/shells.h"

namespace gk::codegen {

using ir::KInst;
using ir::KKind;
using llvm::Value;

namespace {

constexpr int64_t kTile = 128;
constexpr int64_t kShortTile = 16;  // where so many arrays are kept that they would leave the cache
constexpr size_t kManyArrays = 64;

bool is_loop(const KInst& i) { return i.kind == KKind::For; }
bool is_remade(const KInst& i) {
  return i.kind == KKind::Const || i.kind == KKind::ScalarParam || i.kind == KKind::AxisIndex;
}

class Tiles {
 public:
  explicit Tiles(Emitter& emitter)
      : e(emitter),
        b(emitter.b),
        defined_(static_cast<size_t>(e.kernel.num_values), nullptr),
        piece_(static_cast<size_t>(e.kernel.num_values), -1),
        kept_(static_cast<size_t>(e.kernel.num_values), nullptr) {
    std::vector<char> counter(e.kernel.locals.size(), 0);
    number(e.kernel.body, counter);
    mark(e.kernel.body);
    if (crossing_.size() + e.kernel.locals.size() > kManyArrays) length_ = kShortTile;
    for (size_t v = 0; v < kept_.size(); ++v)
      if (crossing_.count(v) != 0) kept_[v] = array(e.compute_type(defined_[v]->dtype));
    for (size_t n = 0; n < e.kernel.locals.size(); ++n)
      locals_.push_back(counter[n] ? nullptr : array(e.compute_type(e.kernel.locals[n].dtype)));
  }

  void rows(const std::vector<Value*>& index, Value* from, Value* to) {
    e.loop(
        from, to, e.index(length_),
        [&](Value* start) {
          index_ = index;
          start_ = start;
          count_ =
              b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateNSWSub(to, start), e.index(length_));
          block(e.kernel.body);
        },
        -1);
  }

 private:
  Value* array(llvm::Type* t) { return e.stack(t, b.getInt64(static_cast<uint64_t>(length_))); }

  // Gives each straight piece of the text a number.
  void number(const ir::KBlock& block, std::vector<char>& counter) {
    ++pieces_;
    for (const KInst& i : block.insts) {
      if (is_loop(i)) {
        counter[static_cast<size_t>(i.local)] = 1;
        number(*i.blocks[0], counter);
        ++pieces_;
      } else if (i.result >= 0) {
        defined_[static_cast<size_t>(i.result)] = &i;
        piece_[static_cast<size_t>(i.result)] = pieces_;
      }
    }
  }
  // Finds what is used in another piece than its own.
  void mark(const ir::KBlock& block) {
    int here = ++next_;
    for (const KInst& i : block.insts) {
      if (is_loop(i)) {
        mark(*i.blocks[0]);
        here = ++next_;
        continue;
      }
      for (const int a : i.args)
        if (piece_[static_cast<size_t>(a)] != here && !is_remade(*defined_[static_cast<size_t>(a)]))
          crossing_.insert(static_cast<size_t>(a));
    }
  }

  void block(const ir::KBlock& block) {
    std::vector<const KInst*> straight;
    for (const KInst& i : block.insts) {
      if (!is_loop(i)) {
        straight.push_back(&i);
        continue;
      }
      piece(straight);
      straight.clear();
      loop(i);
    }
    piece(straight);
  }

  void loop(const KInst& i) {
    // First, last and step are numbers, equal for all points.
    Point p = e.point();
    for (const int a : i.args) e.run(*defined_[static_cast<size_t>(a)], p);
    const auto number = [&](size_t n) { return p.values[static_cast<size_t>(i.args[n])].v; };
    e.loop(
        number(0), number(1), number(2),
        [&](Value* turn) {
          const auto counter = static_cast<size_t>(i.local);
          b.CreateStore(turn, e.local(counter));
          block(*i.blocks[0]);
        },
        -1);
  }

  void piece(const std::vector<const KInst*>& straight) {
    if (straight.empty()) return;
    e.loop(e.index(0), count_, e.index(1), [&](Value* j) {
      Point p = e.point();
      p.index = index_;
      p.index.back() = b.CreateNSWAdd(start_, j);
      std::vector<Value*> scalars;
      for (size_t n = 0; n < locals_.size(); ++n) {
        scalars.push_back(e.local(n));
        if (locals_[n]) e.move_local(n, at(e.compute_type(e.kernel.locals[n].dtype), locals_[n], j));
      }
      for (const KInst* i : straight) {
        for (const int a : i->args) fetch(static_cast<size_t>(a), p, j);
        e.run(*i, p);
        if (i->result < 0) continue;
        const auto r = static_cast<size_t>(i->result);
        if (kept_[r]) b.CreateStore(p.values[r].v, at(e.compute_type(i->dtype), kept_[r], j));
      }
      for (size_t n = 0; n < locals_.size(); ++n) e.move_local(n, scalars[n]);
    });
  }
  Value* at(llvm::Type* t, Value* array, Value* j) { return b.CreateInBoundsGEP(t, array, j); }

  void fetch(size_t v, Point& p, Value* j) {
    if (p.values[v].v) return;
    const KInst& from = *defined_[v];
    if (is_remade(from)) return e.run(from, p);
    llvm::Type* t = e.compute_type(from.dtype);
    p.values[v] = {b.CreateLoad(t, at(t, kept_[v], j)), from.dtype};
  }

  Emitter& e;
  Builder& b;
  std::vector<const KInst*> defined_;  // by SSA number
  std::vector<int> piece_;
  std::set<size_t> crossing_;
  std::vector<Value*> kept_;    // by SSA number: the array of what crosses
  std::vector<Value*> locals_;  // by local: its array; null for the counter of a loop
  int pieces_ = 0, next_ = 0;
  int64_t length_ = kTile;
  std::vector<Value*> index_;
  Value* start_ = nullptr;
  Value* count_ = nullptr;
};

}  // namespace

bool wants_tiles(const ir::Kernel& k) {
  return k.kind == ir::Kernel::Kind::Map && !k.axes.empty() &&
         std::any_of(k.body.insts.begin(), k.body.insts.end(), is_loop);
}

void tiles_host(Emitter& e, const std::vector<Value*>& index, Value* from, Value* to) {
  Tiles(e).rows(index, from, to);
}

}  // namespace gk::codegen
