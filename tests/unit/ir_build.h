// Short ways to build IR in tests: types from text-like calls, nodes that must succeed, arrays of numbers.
// Owns nothing. Not for the product.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "compiler/interp/interp.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/module.h"
#include "tests/unit/region_build.h"

namespace gk::test {

inline ir::Type type(DType t, std::initializer_list<int64_t> extents) {
  return ir::Type::of(t, Shape(extents));
}

/// A module under construction; every step must succeed.
struct Build : RegionBuild {
  int slot(const ir::Type& t, bool input, bool output, bool fresh = false) {
    ir::SlotInfo s;
    s.type = t;
    s.is_input = input;
    s.is_output = output;
    s.fresh = fresh;
    m.slots.push_back(s);
    return static_cast<int>(m.slots.size()) - 1;
  }
  ir::ValueId add(ir::Op op, std::vector<ir::ValueId> operands, ir::Attrs attrs = {}) {
    return add_to(here(), op, std::move(operands), std::move(attrs));
  }
  ir::ValueId add_to(ir::Region& r, ir::Op op, std::vector<ir::ValueId> operands, ir::Attrs attrs = {}) {
    auto v = ir::append(m, r, op, std::move(operands), std::move(attrs));
    EXPECT_TRUE(v) << ir::info(op).name << ": " << (v ? "" : v.error().message);
    return v ? *v : -1;
  }
  ir::ValueId input(const ir::Type& t) {
    ir::Attrs a;
    a.index = slot(t, true, false);
    return add(ir::Op::Input, {}, a);
  }
  ir::ValueId constant(const Scalar& s) {
    ir::Attrs a;
    a.value = s;
    return add(ir::Op::Const, {}, a);
  }
  int output(ir::ValueId v) {
    const int s = slot(m.type(v), false, true, true);
    m.outputs.push_back({v, s});
    return s;
  }
};

inline interp::Array array(DType t, const Shape& s, std::initializer_list<double> values) {
  auto a = interp::Array::zeros(t, s);
  int64_t i = 0;
  for (const double v : values) a.set(i++, Scalar::of_float(v, t));
  EXPECT_EQ(i, a.size());
  return a;
}
inline std::vector<double> numbers(const interp::Array& a) {
  std::vector<double> out;
  for (int64_t i = 0; i < a.size(); ++i) out.push_back(a.get(i).as_double());
  return out;
}

/// A user kernel `z[i] = x[i] // d[i]` over its first extent, with every extent a parameter.
inline ir::Kernel divide_kernel() {
  using namespace ir;
  Kernel k;
  k.kind = Kernel::Kind::User;
  k.name = "divide";
  for (const char* name : {"z", "x", "d"}) {
    KParam p;
    p.dtype = DType::I32;
    p.name = name;
    p.extents = {KSize::dynamic(3)};
    p.read = *name != 'z';
    p.written = *name == 'z';
    k.params.push_back(p);
  }
  KParam n;
  n.kind = KParam::Kind::Scalar;
  n.dtype = DType::I64;
  n.name = "n";
  k.params.push_back(n);
  k.axes = {KSize::dynamic(3)};
  k.uses_faults = true;
  const auto inst = [&](KKind kind, DType t, int result, std::vector<int> args, int param = -1) -> KInst& {
    KInst i;
    i.kind = kind;
    i.dtype = t;
    i.result = result;
    i.args = std::move(args);
    i.param = param;
    k.body.insts.push_back(std::move(i));
    return k.body.insts.back();
  };
  inst(KKind::AxisIndex, DType::I64, 0, {}).axis = 0;
  inst(KKind::LoadIndexed, DType::I32, 1, {0}, 1);
  inst(KKind::LoadIndexed, DType::I32, 2, {0}, 2);
  inst(KKind::Compute, DType::I32, 3, {1, 2}).op = Op::FloorDiv;
  inst(KKind::StoreIndexed, DType::I32, -1, {0, 3}, 0);
  k.body.insts[3].span = {0, 10, 20};
  k.num_values = 4;
  return k;
}

}  // namespace gk::test
