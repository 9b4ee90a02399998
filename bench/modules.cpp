#include "bench/modules.h"

#include <fmt/format.h>

#include <cstdlib>

namespace gk::bench {
namespace {

using ir::Op;
using ir::ValueId;

constexpr int64_t kSmall = 16, kStates = 4096, kSteps = 10, kChain = int64_t{4} << 20;
constexpr double kStep = 0.01;

/// f32 arrays of one shape. The modules are fixed: an op that is refused is a mistake in this file.
class Builder {
 public:
  Builder(std::string name, int64_t n, bool fuse) : n_(n) {
    module.name = std::move(name);
    module.fuse = fuse;
  }

  int slot(std::string name, bool read, bool written) {
    ir::SlotInfo s;
    s.type = ir::Type::of(DType::F32, Shape{n_});
    s.is_input = read;
    s.is_output = written;
    s.name = std::move(name);
    module.slots.push_back(std::move(s));
    return static_cast<int>(module.slots.size()) - 1;
  }
  ValueId input(int slot) {
    ir::Attrs a;
    a.index = slot;
    a.name = module.slots[static_cast<size_t>(slot)].name;
    return op(Op::Input, {}, std::move(a));
  }
  ValueId input(std::string name) { return input(slot(std::move(name), true, false)); }
  void output(ValueId v, int slot) { module.outputs.push_back({v, slot}); }
  void output(ValueId v, std::string name) { output(v, slot(std::move(name), false, true)); }
  ValueId number(double v) {
    ir::Attrs a;
    a.value = Scalar::of_float(v, DType::F32);
    const ValueId scalar = op(Op::Const, {}, std::move(a));
    ir::Attrs shape;
    shape.shape = Shape{n_};
    return op(Op::Broadcast, {scalar}, std::move(shape));
  }
  ValueId add(ValueId a, ValueId b) { return op(Op::Add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return op(Op::Sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return op(Op::Mul, {a, b}); }

  ir::Module module;

 private:
  ValueId op(Op o, std::vector<ValueId> operands, ir::Attrs attrs = {}) {
    auto v = ir::append(module, module.top, o, std::move(operands), std::move(attrs));
    if (!v) {
      fmt::print(stderr, "gk_bench: {}: {}\n", ir::info(o).name, v.error().message);
      std::abort();
    }
    return *v;
  }
  int64_t n_;
};

using State = std::vector<ValueId>;

template <class Slope>
State steps(Builder& b, State s, Slope slope) {
  const ValueId half = b.number(kStep / 2), whole = b.number(kStep), sixth = b.number(kStep / 6),
                two = b.number(2);
  // a + h * k, field by field
  auto along = [&](const State& a, ValueId h, const State& k) {
    State r;
    for (size_t i = 0; i < a.size(); ++i) r.push_back(b.add(a[i], b.mul(h, k[i])));
    return r;
  };
  for (int64_t i = 0; i < kSteps; ++i) {
    const State k1 = slope(s);
    const State k2 = slope(along(s, half, k1));
    const State k3 = slope(along(s, half, k2));
    const State k4 = slope(along(s, whole, k3));
    State sum;
    for (size_t f = 0; f < s.size(); ++f)
      sum.push_back(b.add(b.add(b.add(k1[f], b.mul(two, k2[f])), b.mul(two, k3[f])), k4[f]));
    s = along(s, sixth, sum);
  }
  return s;
}

}  // namespace

ir::Module increments(int arrays) {
  Builder b(fmt::format("increments {}", arrays), kSmall, false);
  for (int i = 0; i < arrays; ++i) {
    const int slot = b.slot(fmt::format("x{}", i), true, true);
    b.output(b.add(b.input(slot), b.number(1)), slot);
  }
  return std::move(b.module);
}

ir::Module increment() { return increments(1); }

ir::Module rk4_logistic(bool fuse) {
  Builder b("rk4", kStates, fuse);
  const ValueId one = b.number(1);
  State s{b.input("u")};
  s = steps(b, std::move(s), [&](const State& u) { return State{b.mul(u[0], b.sub(one, u[0]))}; });
  b.output(s[0], "v");
  return std::move(b.module);
}

ir::Module rk4_lorenz(bool fuse) {
  Builder b("lorenz", kStates, fuse);
  const ValueId sigma = b.number(10), rho = b.number(28), beta = b.number(8.0 / 3);
  State s{b.input("x"), b.input("y"), b.input("z")};
  s = steps(b, std::move(s), [&](const State& p) {
    return State{b.mul(sigma, b.sub(p[1], p[0])), b.sub(b.mul(p[0], b.sub(rho, p[2])), p[1]),
                 b.sub(b.mul(p[0], p[1]), b.mul(beta, p[2]))};
  });
  b.output(s[0], "x2");
  b.output(s[1], "y2");
  b.output(s[2], "z2");
  return std::move(b.module);
}

ir::Module chain(bool fuse) {
  Builder b("chain", kChain, fuse);
  const ValueId factor = b.number(0.99), offset = b.number(0.01);
  ValueId y = b.input("x");
  for (int i = 0; i < 50; ++i) y = b.add(b.mul(y, factor), offset);
  b.output(y, "out");
  return std::move(b.module);
}

}  // namespace gk::bench
