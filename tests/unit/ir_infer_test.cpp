#include <gtest/gtest.h>

#include <set>

#include "compiler/ir/messages.h"
#include "tests/unit/ir_build.h"

namespace gk::ir {
namespace {

using enum DType;
using test::type;

Dim named(const char* name, int64_t v) { return Dim::known(v, name); }
Dim unknown(const char* name, int32_t symbol) { return {-1, symbol, name}; }
Type of(DType t, Dims dims) { return {t, std::move(dims)}; }

Attrs axes(std::vector<int64_t> v, bool keepdims = false) {
  Attrs a;
  a.axes = std::move(v);
  a.keepdims = keepdims;
  return a;
}
Attrs shape(const Shape& s) {
  Attrs a;
  a.shape = s;
  return a;
}
Attrs region(const Shape& starts, const Shape& counts, const Shape& steps) {
  Attrs a;
  a.starts = starts, a.shape = counts, a.steps = steps;
  return a;
}

std::string infer_text(Op op, std::vector<Type> operands, const Attrs& attrs = {}) {
  const auto r = infer(op, operands, attrs);
  if (r) return to_string(*r);
  std::string out = r.error().code + ": " + r.error().message;
  for (const auto& n : r.error().notes) out += "\nnote: " + n;
  for (const auto& h : r.error().helps) out += "\nhelp: " + h;
  return out;
}

TEST(IrOps, table_is_complete_and_names_are_unique) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(Op::kCount); ++i) {
    const OpInfo& o = info(static_cast<Op>(i));
    EXPECT_EQ(o.op, static_cast<Op>(i));
    EXPECT_TRUE(names.insert(o.name).second) << o.name;
    EXPECT_EQ(parse_op(o.name), o.op);
    EXPECT_TRUE(o.doc.ends_with('.')) << o.name;
    EXPECT_TRUE(o.edge_cases.empty() || o.edge_cases.ends_with('.')) << o.name;
  }
  EXPECT_FALSE(parse_op("frobnicate"));
}

TEST(IrType, prints_as_the_user_wrote) {
  EXPECT_EQ(to_string(of(F32, {named("B", 2), Dim::known(4), unknown("N", 1), unknown("", 2)})),
            "f32[B=2, 4, N, _]");
  EXPECT_EQ(to_string(of(I64, {})), "i64[]");
}

TEST(IrType, extents_compare_in_three_values) {
  EXPECT_EQ(equal(Dim::known(2), named("B", 2)), Tri::Yes);
  EXPECT_EQ(equal(Dim::known(2), Dim::known(3)), Tri::No);
  EXPECT_EQ(equal(unknown("N", 1), unknown("N", 1)), Tri::Yes);
  EXPECT_EQ(equal(unknown("N", 1), unknown("M", 2)), Tri::Maybe);
  EXPECT_EQ(equal(unknown("", 0), unknown("", 0)), Tri::Maybe);
  EXPECT_EQ(equal(unknown("N", 1), Dim::known(2)), Tri::Maybe);
}

TEST(IrBroadcast, known_and_unknown_extents) {
  const auto text = [](const Dims& a, const Dims& b) {
    const auto r = broadcast(a, b);
    return r ? to_string(of(F32, *r)) : r.error().message + " / " + r.error().notes.at(0);
  };
  EXPECT_EQ(text({Dim::known(2), Dim::known(1)}, {named("C", 3)}), "f32[2, C=3]");
  EXPECT_EQ(text({}, {Dim::known(0)}), "f32[0]");
  EXPECT_EQ(text({Dim::known(1)}, {Dim::known(0)}), "f32[0]");
  EXPECT_EQ(text({unknown("N", 1)}, {Dim::known(1)}), "f32[N]");
  EXPECT_EQ(text({unknown("N", 1)}, {Dim::known(4)}), "f32[4]");
  EXPECT_EQ(text({unknown("N", 1)}, {unknown("N", 1)}), "f32[N]");
  EXPECT_EQ(text({unknown("N", 1)}, {unknown("M", 2)}), "f32[_]");
  EXPECT_EQ(text({named("B", 2), named("C", 4)}, {named("B", 2)}),
            "cannot broadcast [B=2, C=4] and [B=2] / broadcasting aligns trailing axes: C=4 against B=2");
}

TEST(IrBroadcast, error_names_the_operands_and_the_missing_axis) {
  const Error e = broadcast_error(Op::Add, of(F32, {named("B", 2), named("C", 4)}), of(F32, {named("B", 2)}));
  EXPECT_EQ(e.code, "E0301");
  EXPECT_EQ(e.message, "cannot add f32[B=2, C=4] and f32[B=2]");
  EXPECT_EQ(e.notes, std::vector<std::string>{"broadcasting aligns trailing axes: C=4 against B=2"});
  EXPECT_EQ(e.helps, std::vector<std::string>{"add an axis: index the second operand with `[:, new]`"});
  // No axis would help here.
  EXPECT_TRUE(broadcast_error(Op::Add, type(F32, {2, 4}), type(F32, {3})).helps.empty());
}

TEST(IrInfer, elementwise_dtypes) {
  EXPECT_EQ(infer_text(Op::Add, {type(I8, {2}), type(I8, {2})}), "i8[2]");
  EXPECT_EQ(infer_text(Op::Lt, {type(I8, {2}), type(I8, {2})}), "bool[2]");
  EXPECT_EQ(infer_text(Op::IsNan, {type(F16, {2})}), "bool[2]");
  EXPECT_EQ(infer_text(Op::Where, {type(Bool, {2}), type(F16, {2}), type(F16, {2})}), "f16[2]");
  Attrs to;
  to.dtype = U8;
  EXPECT_EQ(infer_text(Op::Cast, {type(F16, {2})}, to), "u8[2]");
  EXPECT_EQ(infer_text(Op::Add, {of(F32, {unknown("N", 1)}), of(F32, {named("B", 3)})}), "f32[B=3]");
}

TEST(IrInfer, integer_power_keeps_the_float) {
  EXPECT_EQ(infer_text(Op::PowInt, {type(F16, {2}), type(I64, {2})}), "f16[2]");
  EXPECT_EQ(infer_text(Op::PowInt, {type(F64, {}), type(U64, {})}), "f64[]");
  EXPECT_EQ(
      infer_text(Op::PowInt, {type(F32, {}), type(F32, {})}),
      "E0202: cannot raise f32[] to the power f32[]\nnote: it takes a float and an exponent of i64 or u64");
  EXPECT_EQ(infer_text(Op::PowInt, {type(I64, {}), type(I64, {})}).substr(0, 5), "E0202");
}

TEST(IrInfer, elementwise_errors) {
  EXPECT_EQ(infer_text(Op::Add, {type(I8, {2}), type(F32, {2})}),
            "E0201: cannot add i8[2] and f32[2]\nnote: the element types differ: i8 against f32");
  EXPECT_EQ(infer_text(Op::Mul, {type(U64, {}), type(I8, {})}),
            "E0201: cannot multiply u64[] and i8[]\nnote: the element types differ: u64 against i8\n"
            "help: no type holds both u64 and i8: convert one of them");
  EXPECT_EQ(infer_text(Op::Sub, {type(Bool, {2}), type(Bool, {2})}),
            "E0202: cannot subtract bool[2] from bool[2]\nnote: subtract takes numbers, not bool\n"
            "help: convert it first, as with `i64(x)`, or use `&`, `|`, `^` and `~`");
  EXPECT_EQ(infer_text(Op::Div, {type(I32, {}), type(I32, {})}),
            "E0202: cannot divide i32[] by i32[]\nnote: divide takes floats, not i32");
  EXPECT_EQ(infer_text(Op::Sqrt, {type(I32, {})}),
            "E0202: cannot apply sqrt to i32[]\nnote: sqrt takes floats, not i32");
  EXPECT_EQ(infer_text(Op::Shl, {type(F32, {}), type(F32, {})}),
            "E0202: cannot apply left_shift to f32[] and f32[]\nnote: left_shift takes integers, not f32");
  EXPECT_EQ(
      infer_text(Op::Where, {type(I8, {}), type(F32, {}), type(F32, {})}),
      "E0202: cannot apply where to i8[], f32[] and f32[]\nnote: the condition of where is bool, not i8");
  EXPECT_EQ(infer_text(Op::Neg, {type(Bool, {})}).substr(0, 27), "E0202: cannot negate bool[]");
  EXPECT_EQ(infer_text(Op::Add, {type(F32, {2})}), "E0203: add takes 2 operands, not 1");
  EXPECT_EQ(infer_text(Op::Add, {type(F32, {2, 3}), type(F32, {3})}),
            "E0301: cannot add f32[2, 3] and f32[3]\nnote: the shapes differ; the operands are to be "
            "broadcast first");
  EXPECT_EQ(
      infer_text(Op::Add, {type(F32, {2, 3}), type(F32, {2, 4})}),
      "E0301: cannot add f32[2, 3] and f32[2, 4]\nnote: broadcasting aligns trailing axes: 3 against 4");
}

TEST(IrInfer, leaves_and_random) {
  Attrs iota = axes({1});
  iota.shape = {2, 3};
  EXPECT_EQ(infer_text(Op::Iota, {}, iota), "i64[2, 3]");
  iota.axes = {2};
  EXPECT_EQ(infer_text(Op::Iota, {}, iota), "E0304: iota has no axis 2: i64[2, 3] has 2 axes");
  Attrs rng = shape({4});
  rng.dtype = F64;
  EXPECT_EQ(infer_text(Op::RngUniform, {type(U64, {2})}, rng), "f64[4]");
  EXPECT_EQ(infer_text(Op::RngUniform, {type(U64, {3})}, rng),
            "E0202: rng_uniform takes a generator's state u64[2], not u64[3]");
  EXPECT_EQ(infer_text(Op::RngAdvance, {type(U64, {2})}), "u64[2]");
  rng.dtype = I32;
  EXPECT_EQ(infer_text(Op::RngNormal, {type(U64, {2})}, rng), "E0202: rng_normal gives floats, not i32");
}

TEST(IrInfer, views) {
  EXPECT_EQ(infer_text(Op::Broadcast, {type(F32, {1, 3})}, shape({4, 2, 3})), "f32[4, 2, 3]");
  EXPECT_EQ(infer_text(Op::Broadcast, {type(F32, {2, 3})}, shape({3})),
            "E0301: cannot broadcast f32[2, 3] to [3]\nnote: it has 2 axes, the shape 1");
  EXPECT_EQ(infer_text(Op::Broadcast, {type(F32, {2})}, shape({3})),
            "E0301: cannot broadcast f32[2] to [3]\nnote: broadcasting aligns trailing axes: 2 against 3");
  EXPECT_EQ(infer_text(Op::Reshape, {type(F32, {2, 3})}, shape({6})), "f32[6]");
  EXPECT_EQ(infer_text(Op::Reshape, {type(F32, {})}, shape({1, 1})), "f32[1, 1]");
  EXPECT_EQ(infer_text(Op::Reshape, {type(F32, {2, 3})}, shape({4})),
            "E0305: cannot reshape f32[2, 3] to [4]\nnote: 6 elements against 4");
  EXPECT_EQ(infer_text(Op::Reshape, {of(F32, {unknown("N", 1), Dim::known(3)})}, shape({6})), "f32[6]");
  EXPECT_EQ(infer_text(Op::Reshape, {of(F32, {unknown("N", 1), Dim::known(3)})}, shape({4})),
            "E0305: cannot reshape f32[N, 3] to [4]\nnote: 4 elements is not a multiple of 3");
  EXPECT_EQ(infer_text(Op::Reshape, {type(F32, {2})}, shape({-2})),
            "E0303: reshape of shape [-2]: an extent is negative");
  EXPECT_EQ(infer_text(Op::Transpose, {of(F32, {named("A", 1), named("B", 2)})}, axes({1, 0})),
            "f32[B=2, A=1]");
  EXPECT_EQ(infer_text(Op::Transpose, {type(F32, {2, 3})}, axes({0, 0})),
            "E0304: permute_dims names axis 0 twice");
  EXPECT_EQ(infer_text(Op::Transpose, {type(F32, {2, 3})}, axes({0})),
            "E0304: permute_dims of f32[2, 3] needs 2 axes, not 1");
}

TEST(IrInfer, regions) {
  const Type x = type(F32, {10, 4});
  EXPECT_EQ(infer_text(Op::Slice, {x}, region({9, 0}, {5, 4}, {-2, 1})), "f32[5, 4]");
  EXPECT_EQ(infer_text(Op::Slice, {x}, region({0, 0}, {0, 4}, {1, 1})), "f32[0, 4]");
  EXPECT_EQ(infer_text(Op::Slice, {x}, region({9, 0}, {6, 4}, {-2, 1})),
            "E0303: the region of slice leaves f32[10, 4] on axis 0\nnote: 6 elements from 9 by -2, of an "
            "extent of 10");
  EXPECT_EQ(infer_text(Op::Slice, {x}, region({0, 0}, {1, 1}, {0, 1})),
            "E0303: a step of slice is 0 on axis 0");
  EXPECT_EQ(infer_text(Op::Slice, {x}, region({0, 0}, {3, 4}, {INT64_MAX, 1})).substr(0, 5), "E0303");
  EXPECT_EQ(infer_text(Op::UpdateSlice, {x, type(F32, {2, 4})}, region({8, 0}, {}, {1, 1})), "f32[10, 4]");
  EXPECT_EQ(infer_text(Op::UpdateSlice, {x, type(F32, {3, 4})}, region({8, 0}, {}, {1, 1})).substr(0, 5),
            "E0303");
  EXPECT_EQ(infer_text(Op::UpdateSlice, {x, type(F64, {2, 4})}, region({8, 0}, {}, {1, 1})),
            "E0201: cannot write f64[2, 4] into a region of f32[10, 4]\nnote: the element types differ: f32 "
            "against f64");
}

TEST(IrInfer, take_and_concat) {
  EXPECT_EQ(infer_text(Op::Take, {type(F32, {5, 6, 7}), type(I8, {2, 3})}, axes({1})), "f32[5, 2, 3, 7]");
  EXPECT_EQ(infer_text(Op::Take, {type(F32, {5}), type(F32, {2})}, axes({0})),
            "E0202: cannot index f32[5] with f32[2]\nnote: an index array holds integers, not f32");
  EXPECT_EQ(infer_text(Op::Take, {type(F32, {5}), type(I64, {2})}, axes({1})),
            "E0304: take has no axis 1: f32[5] has 1 axis");
  EXPECT_EQ(infer_text(Op::Concat, {type(F32, {2, 3}), type(F32, {0, 3}), type(F32, {4, 3})}, axes({0})),
            "f32[6, 3]");
  EXPECT_EQ(infer_text(Op::Concat, {type(F32, {2, 3}), type(F32, {2, 4})}, axes({0})),
            "E0308: cannot concatenate f32[2, 3] and f32[2, 4]\n"
            "note: extents other than axis 0 must be equal: 3 against 4");
  EXPECT_EQ(infer_text(Op::Concat, {}, axes({0})), "E0203: concat takes at least one operand");
}

TEST(IrInfer, reductions) {
  EXPECT_EQ(infer_text(Op::Sum, {type(F16, {2, 3})}, axes({1})), "f16[2]");
  EXPECT_EQ(infer_text(Op::Sum, {type(F16, {2, 3})}, axes({0, 1}, true)), "f16[1, 1]");
  EXPECT_EQ(infer_text(Op::Sum, {type(Bool, {2})}, axes({0})), "i64[]");
  EXPECT_EQ(infer_text(Op::Prod, {type(I8, {2})}, axes({0})), "i8[]");
  EXPECT_EQ(infer_text(Op::ArgMax, {type(F32, {2, 3})}, axes({1})), "i64[2]");
  EXPECT_EQ(infer_text(Op::ArgMax, {type(F32, {2, 3})}, axes({0, 1})), "i64[]");
  EXPECT_EQ(infer_text(Op::ArgMax, {type(F32, {2, 3, 4})}, axes({0, 1})),
            "E0304: argmax of f32[2, 3, 4] takes one axis or all, not 2");
  EXPECT_EQ(infer_text(Op::Any, {type(I8, {2})}, axes({0})),
            "E0202: cannot apply any to i8[2]\nnote: any takes bool, not i8");
  EXPECT_EQ(infer_text(Op::Sum, {type(F32, {2})}, axes({1})), "E0304: sum has no axis 1: f32[2] has 1 axis");
  EXPECT_EQ(infer_text(Op::Sum, {type(F32, {2, 2})}, axes({0, 0})), "E0304: sum names axis 0 twice");
  EXPECT_EQ(infer_text(Op::ReduceMax, {type(F32, {3, 0})}, axes({1})),
            "E0304: max of f32[3, 0] over axis 1, which is empty");
  EXPECT_EQ(infer_text(Op::ReduceMax, {type(F32, {0, 0})}, axes({1})), "f32[0]");
  EXPECT_EQ(infer_text(Op::ReduceMax, {of(F32, {unknown("N", 1), Dim::known(0)})}, axes({1})), "f32[N]");
  EXPECT_EQ(infer_text(Op::Sum, {type(F32, {3, 0})}, axes({1})), "f32[3]");
}

TEST(IrInfer, matmul) {
  EXPECT_EQ(infer_text(Op::MatMul, {type(F32, {2, 3}), type(F32, {3, 4})}), "f32[2, 4]");
  EXPECT_EQ(infer_text(Op::MatMul, {type(F32, {3}), type(F32, {3, 4})}), "f32[4]");
  EXPECT_EQ(infer_text(Op::MatMul, {type(F32, {2, 3}), type(F32, {3})}), "f32[2]");
  EXPECT_EQ(infer_text(Op::MatMul, {type(F32, {3}), type(F32, {3})}), "f32[]");
  EXPECT_EQ(infer_text(Op::MatMul, {type(F32, {5, 1, 2, 3}), type(F32, {7, 3, 4})}), "f32[5, 7, 2, 4]");
  EXPECT_EQ(infer_text(Op::MatMul,
                       {of(F32, {named("B", 2), named("D", 3)}), of(F32, {named("E", 4), named("D", 3)})}),
            "E0302: cannot matrix-multiply f32[B=2, D=3] and f32[E=4, D=3]\n"
            "note: the inner extents must be equal: D=3 against E=4\nhelp: transpose the second operand");
  EXPECT_EQ(infer_text(Op::MatMul, {type(F32, {}), type(F32, {3})}),
            "E0302: cannot matrix-multiply f32[] and f32[3]\n"
            "note: a matrix product needs at least one axis on each side\nhelp: scale with `*`");
  EXPECT_EQ(infer_text(Op::MatMul, {type(F32, {2, 2, 3}), type(F32, {3, 3, 4})}).substr(0, 5), "E0302");
}

TEST(IrInfer, limits_of_rank_and_size) {
  const Type wide = type(F32, {1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(infer_text(Op::Take, {wide, type(I64, {2, 2})}, axes({0})),
            "E0306: f32[2, 2, 1, 1, 1, 1, 1, 1, 1] has 9 axes; at most 8 are allowed");
  EXPECT_EQ(infer_text(Op::Broadcast, {type(F32, {})}, shape({int64_t{1} << 40, int64_t{1} << 40})),
            "E0307: f32[1099511627776, 1099511627776] has more elements than can be counted");
  // 2^61 elements can be counted, their bytes cannot.
  EXPECT_EQ(infer_text(Op::Broadcast, {type(F32, {})}, shape({int64_t{1} << 61})).substr(0, 5), "E0307");
  EXPECT_EQ(infer_text(Op::Broadcast, {type(I8, {})}, shape({int64_t{1} << 62})), "i8[4611686018427387904]");
  EXPECT_EQ(infer_text(Op::Concat, {type(I8, {int64_t{1} << 62}), type(I8, {int64_t{1} << 62})}, axes({0}))
                .substr(0, 5),
            "E0307");
}

}  // namespace
}  // namespace gk::ir
