#include <gtest/gtest.h>

#include "tests/unit/ir_build.h"

namespace gk::ir {
namespace {

using enum DType;
using test::Build;
using test::type;

// x + x to a fresh slot, and a loop that adds x.
Module good() {
  Build b;
  const ValueId x = b.input(type(F32, {2}));
  const ValueId y = b.add(Op::Add, {x, x});
  Region body = b.region({type(I64, {}), type(F32, {2}), type(F32, {2})}, [&](const auto& p) {
    return std::vector{b.add(Op::Add, {p[1], p[2]})};
  });
  const ValueId z = b.with_regions(Op::Loop, {y, x}, {std::move(body)}, 3)[0];
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
  EXPECT_EQ(broken([](Module& m) { m.outputs[0].value = m.top.nodes[2].regions[0].params[1]; }),
            "invalid IR: %3 is used outside its region");
  EXPECT_EQ(broken([](Module& m) { m.top.nodes[2].regions[0].nodes[0].operands[0] = 1; }),
            "invalid IR: %1 is used outside its region");
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
            "invalid IR: output %6 is f32[2], its slot f32[1]");
}

TEST(IrVerify, loops) {
  const auto loop = [](Module& m) -> Node& { return m.top.nodes[2]; };
  const auto body = [&](Module& m) -> Region& { return loop(m).regions[0]; };
  EXPECT_EQ(broken([&](Module& m) { loop(m).regions.clear(); }), "invalid IR: loop lacks regions");
  EXPECT_EQ(broken([&](Module& m) { loop(m).regions.resize(2); }), "invalid IR: loop has 2 regions");
  EXPECT_EQ(broken([&](Module& m) { m.top.nodes[1].regions.resize(1); }), "invalid IR: add has regions");
  EXPECT_EQ(broken([&](Module& m) { loop(m).attrs.index = -1; }),
            "invalid IR: a loop has a negative trip count");
  EXPECT_EQ(broken([&](Module& m) { loop(m).results.resize(3); }),
            "invalid IR: loop carries 3 values but has 2");
  EXPECT_EQ(broken([&](Module& m) { body(m).yields.clear(); }),
            "invalid IR: a region of loop has 0 yields, not 1");
  EXPECT_EQ(broken([&](Module& m) { body(m).params.pop_back(); }),
            "invalid IR: a region of loop has 2 parameters, not 3");
  EXPECT_EQ(broken([&](Module& m) { body(m).yields[0] = body(m).params[0]; }),
            "invalid IR: yield %2 of loop is i64[], not f32[2]");
  EXPECT_EQ(broken([&](Module& m) { m.value_types[2] = type(F32, {}); }),
            "invalid IR: parameter %2 of loop is f32[], not i64[]");
  EXPECT_EQ(broken([&](Module& m) { m.top.yields = {0}; }),
            "invalid IR: the top region has parameters or yields");
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
  Region then =
      b.region({type(F32, {2})}, [&](const auto& p) { return std::vector{b.add(Op::Neg, {p[0]})}; });
  Region other = b.region({type(F32, {2})}, [](const auto& p) { return std::vector{p[0]}; });
  Region turn = b.region({type(I64, {})}, [&](const auto& p) {
    Attrs a;
    a.value = b.m.params[0];
    const ValueId most = b.add(Op::Param, {}, a);
    return std::vector{b.add(Op::Lt, {p[0], most}), b.add(Op::Add, {p[0], most})};
  });
  b.output(b.branch({c, x}, std::move(then), std::move(other))[0]);
  b.output(b.with_regions(Op::While, {c, n}, {std::move(turn)})[0]);
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
            "invalid IR: if has 1 regions");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.regions.clear(); }),
            "invalid IR: if lacks regions");
  EXPECT_EQ(broken_conditional([](M& m, N&, N&) { m.params.clear(); }), "invalid IR: no scalar slot 0");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.operands.push_back(2); }),
            "invalid IR: a region of if has 1 parameters, not 2");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.operands[1] = 2; }),
            "invalid IR: parameter %3 of if is f32[2], not i64[]");
  EXPECT_EQ(broken_conditional(
                [](M&, N&, N& loop) { std::swap(loop.regions[0].yields[0], loop.regions[0].yields[1]); }),
            "invalid IR: yield %9 of while is i64[], not bool[]");
  EXPECT_EQ(broken_conditional([](M&, N&, N& loop) { loop.regions[0].yields.pop_back(); }),
            "invalid IR: a region of while has 1 yields, not 2");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.results.clear(); }),
            "invalid IR: a region of if has 1 yields, not 0");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.regions[1].params[0] = 3; }),
            "invalid IR: %3 is defined twice");
  EXPECT_EQ(broken_conditional([](M&, N& branch, N&) { branch.regions[1].yields[0] = 0; }),
            "invalid IR: %0 is used outside its region");
  EXPECT_EQ(
      broken_conditional([](M& m, N& branch, N&) { branch.regions[0].nodes.push_back(m.top.nodes[0]); }),
      "invalid IR: an input stands in a region");
}

}  // namespace
}  // namespace gk::ir
