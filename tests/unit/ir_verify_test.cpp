#include <gtest/gtest.h>

#include "tests/unit/ir_build.h"

namespace gk::ir {
namespace {

using enum DType;
using test::Build;
using test::type;

// x + x to a fresh slot, and a loop that doubles x.
Module good() {
  Build b;
  const ValueId x = b.input(type(F32, {2}));
  const ValueId y = b.add(Op::Add, {x, x});
  Attrs trips;
  trips.index = 3;
  const ValueId z = b.add(Op::Loop, {y}, trips);
  auto body = std::make_unique<Block>();
  body->params = {b.m.new_value(type(I64, {})), b.m.new_value(type(F32, {2}))};
  body->yields = {b.add_to(*body, Op::Add, {body->params[1], body->params[1]})};
  b.m.top.nodes.back().body = std::move(body);
  b.output(z);
  return std::move(b.m);
}

template <class F>
std::string broken(F&& damage) {
  Module m = good();
  damage(m);
  const auto r = verify(m);
  if (r) return "valid";
  EXPECT_EQ(r.error().code, "E0901");
  EXPECT_EQ(r.error().kind, ErrorKind::Internal);
  return r.error().message;
}

TEST(IrVerify, accepts_a_good_module) {
  EXPECT_EQ(broken([](Module&) {}), "valid");
}

TEST(IrVerify, definitions_and_uses) {
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[1].operands[0] = 99; }), "invalid IR: %99 is not a value");
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[1].operands[0] = -1; }), "invalid IR: %-1 is not a value");
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[1].operands[0] = 2; }),
            "invalid IR: %2 is used before its definition");
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[1].results[0] = 0; }), "invalid IR: %0 is defined twice");
  EXPECT_EQ(broken([](Module& m) { m.outputs[0].value = m.top.nodes[2].body->params[1]; }),
            "invalid IR: %4 is used outside its loop");
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[1].results.clear(); }),
            "invalid IR: add has 1 results, not 0");
}

TEST(IrVerify, types_are_inferred_again) {
  EXPECT_EQ(broken([](Module& m) { m.value_types[1] = type(F32, {3}); }),
            "invalid IR: %1 = add is f32[2], not f32[3]");
  EXPECT_EQ(broken([](Module& m) { m.value_types[1] = type(F64, {2}); }),
            "invalid IR: %1 = add is f32[2], not f64[2]");
  EXPECT_EQ(broken([](Module& m) { m.value_types[1].dims[0].value = -1; }),
            "invalid IR: %1 has an unknown extent: f32[_]");
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[1].operands.pop_back(); }),
            "invalid IR: add: add takes 2 operands, not 1");
}

TEST(IrVerify, slots_and_outputs) {
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[0].attrs.index = 9; }), "invalid IR: input: no slot 9");
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[0].attrs.index = 1; }),
            "invalid IR: input of slot 1, which is not an input");
  EXPECT_EQ(broken([](Module& m) { m.slots[1].is_input = true; }), "invalid IR: fresh slot 1 is an input");
  EXPECT_EQ(broken([](Module& m) { m.slots[1].is_output = false; }),
            "invalid IR: fresh slot 1 is not an output");
  EXPECT_EQ(broken([](Module& m) { m.outputs.clear(); }), "invalid IR: output slot 1 is not written");
  EXPECT_EQ(broken([](Module& m) { m.outputs.push_back(m.outputs[0]); }),
            "invalid IR: slot 1 is written twice");
  EXPECT_EQ(broken([](Module& m) { m.outputs[0].slot = 2; }), "invalid IR: no output slot 2");
  EXPECT_EQ(broken([](Module& m) { m.outputs[0].slot = 0; }), "invalid IR: slot 0 is not an output");
  EXPECT_EQ(broken([](Module& m) { m.slots[1].type = type(F32, {1}); }),
            "invalid IR: output %2 is f32[2], its slot f32[1]");
}

TEST(IrVerify, loops) {
  const auto loop = [](Module& m) -> Node& { return m.top.nodes[2]; };
  EXPECT_EQ(broken([&](Module& m) { loop(m).body.reset(); }), "invalid IR: loop lacks a body");
  EXPECT_EQ(broken([&](Module& m) { m.top.nodes[1].body = std::make_unique<Block>(); }),
            "invalid IR: add has a body");
  EXPECT_EQ(broken([&](Module& m) { loop(m).attrs.index = -1; }),
            "invalid IR: a loop has a negative trip count");
  EXPECT_EQ(broken([&](Module& m) { loop(m).body->yields.clear(); }),
            "invalid IR: a loop carries 1 values but its body takes 1 and yields 0");
  EXPECT_EQ(broken([&](Module& m) { loop(m).body->params.pop_back(); }),
            "invalid IR: a loop carries 1 values but its body takes 0 and yields 1");
  EXPECT_EQ(broken([&](Module& m) { loop(m).body->yields[0] = loop(m).body->params[0]; }),
            "invalid IR: a loop yields %3 as i64[], not f32[2]");
  EXPECT_EQ(broken([&](Module& m) { m.value_types[3] = type(F32, {}); }),
            "invalid IR: loop parameter %3 is f32[], not i64[]");
  EXPECT_EQ(broken([&](Module& m) { m.top.yields = {0}; }),
            "invalid IR: the top block has parameters or yields");
}

TEST(IrVerify, parameters) {
  Build b;
  Attrs a;
  a.value = Scalar::of_float(1, F32);
  b.add(Op::Param, {}, a);
  EXPECT_EQ(verify(b.m).error().message, "invalid IR: no scalar slot 0");
  b.m.params = {Scalar::of_int(1)};
  EXPECT_EQ(verify(b.m).error().message, "invalid IR: scalar slot 0 is not f32");
  b.m.params = {Scalar::of_float(2, F32)};
  EXPECT_TRUE(verify(b.m));
}

TEST(IrVerify, kernel_calls) {
  const auto attempt = [](std::vector<Type> operands, Attrs attrs) {
    const auto r = result_types({}, Op::KernelCall, operands, attrs);
    return r ? std::to_string(r->size()) + " results" : r.error().message;
  };
  const Type n = type(I32, {4}), scalar = type(I64, {});
  Attrs call;
  call.name = "divide";
  call.shape = {4};
  EXPECT_EQ(attempt({n, n, n, scalar}, call), "cannot call kernel divide: it has no body");
  call.kernel = std::make_shared<const Kernel>(test::divide_kernel());
  EXPECT_EQ(attempt({n, n, n, scalar}, call), "1 results");
  EXPECT_EQ(attempt({n, n, n}, call), "cannot call kernel divide: it takes 4 operands, not 3");
  EXPECT_EQ(attempt({n, n, type(F32, {4}), scalar}, call),
            "cannot call kernel divide: parameter 2 is i32 of 1 axes, not f32[4]");
  call.shape = {4, 4};
  EXPECT_EQ(attempt({n, n, n, scalar}, call), "cannot call kernel divide: it runs over 1 axes, not 2");
}

TEST(IrAppend, errors_carry_the_span) {
  Build b;
  const ValueId x = b.input(type(F32, {2}));
  const auto r = append(b.m, b.m.top, Op::Not, {x}, {}, {0, 3, 5});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "E0202");
  EXPECT_EQ(r.error().span.begin, 3u);
  EXPECT_EQ(b.m.top.nodes.size(), 1u) << "nothing is appended";
  EXPECT_FALSE(append(b.m, b.m.top, Op::Neg, {77}));
}

// A branch that negates x or leaves it, and a loop that counts.
Module conditional() {
  Build b;
  b.m.params = {Scalar::of_int(3)};
  const ValueId x = b.input(type(F32, {2})), c = b.input(type(Bool, {})), n = b.input(type(I64, {}));
  Build then, other, turn;
  const ValueId inside = then.input(type(F32, {2}));
  then.m.slots[0].is_output = true;
  then.m.outputs.push_back({then.add(Op::Neg, {inside}), 0});
  other.slot(type(F32, {2}), false, false);
  const ValueId count = turn.input(type(I64, {}));
  turn.m.params = {Scalar::of_int(3)};
  Attrs a;
  a.value = turn.m.params[0];
  const ValueId most = turn.add(Op::Param, {}, a);
  turn.m.slots[0].is_output = true;
  turn.m.outputs.push_back({turn.add(Op::Add, {count, most}), 0});
  turn.m.slots[static_cast<size_t>(turn.output(turn.add(Op::Lt, {count, most})))].fresh = false;
  std::vector<Module> arms, turns;
  arms.push_back(std::move(then.m));
  arms.push_back(std::move(other.m));
  turns.push_back(std::move(turn.m));
  b.output(b.conditional(Op::If, {c, x}, std::move(arms))[0]);
  b.output(b.conditional(Op::While, {c, n}, std::move(turns))[0]);
  return std::move(b.m);
}

template <class F>
std::string broken_conditional(F&& damage) {
  Module m = conditional();
  damage(m, m.top.nodes[3], m.top.nodes[4]);
  const auto r = verify(m);
  return r ? "valid" : r.error().message;
}

TEST(IrVerify, regions_fit_what_is_around_them) {
  using M = Module;
  using N = Node;
  EXPECT_EQ(broken_conditional([](M&, N&, N&) {}), "valid");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.operands[0] = 0; }),
            "invalid IR: the first operand is not a condition, bool[]");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.regions.pop_back(); }),
            "invalid IR: there are 1 regions");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.regions.clear(); }),
            "invalid IR: if lacks regions");
  EXPECT_EQ(broken_conditional([](M& m, N&, N&) { m.fuse = false; }),
            "invalid IR: a region has other flags than what is around it");
  EXPECT_EQ(broken_conditional([](M&, N&, N& loop) { loop.regions[0].scalars = {1}; }),
            "invalid IR: param 0 of a region is not param 1 around it");
  EXPECT_EQ(broken_conditional([](M&, N&, N& loop) { loop.regions[0].scalars.clear(); }),
            "invalid IR: a region has 1 params, of which 0 are given");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.operands.push_back(2); }),
            "invalid IR: a region has 1 slots for 2 operands");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.operands[1] = 2; }),
            "invalid IR: slot 0 of a region is f32[2], which is not what belongs there");
  EXPECT_EQ(broken_conditional([](M&, N&, N& loop) { loop.regions[0].module->slots[1].is_input = true; }),
            "invalid IR: slot 1 of a region is bool[], which is not what belongs there");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.results.clear(); }),
            "invalid IR: if has 1 results, not 0");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.regions[0].module->outputs.clear(); }),
            "invalid IR: output slot 0 is not written");
  EXPECT_EQ(broken_conditional([](M& m, N&, N&) { m.value_types[3] = type(F32, {3}); }),
            "invalid IR: %3 = if is f32[2], not f32[3]");
}

}  // namespace
}  // namespace gk::ir
