// The model itself, on what is easily said by hand; and that seeds mean the same program everywhere.
#include <gtest/gtest.h>

#include "tests/property/generator.h"

namespace gk::property {

namespace {

Array one(DType t, double v) {
  Array a{t, {1}, {Cell{}}};
  if (is_floating(t))
    a.cells[0].f = v;
  else
    a.cells[0].i = static_cast<int64_t>(v);
  return a;
}

double result(const std::string& op, const Array& a, const Array& b) {
  const Array r = apply_binary(op, of_array(a), of_array(b)).a;
  return is_floating(r.dtype) ? r.cells[0].f : static_cast<double>(r.cells[0].i);
}

}  // namespace

TEST(Model, integers_wrap_and_floor) {
  EXPECT_EQ(result("+", one(DType::I8, 127), one(DType::I8, 1)), -128);
  EXPECT_EQ(result("*", one(DType::U8, 200), one(DType::U8, 2)), 144);
  EXPECT_EQ(result("//", one(DType::I32, -7), one(DType::I32, 2)), -4);
  EXPECT_EQ(result("%", one(DType::I32, -7), one(DType::I32, 2)), 1);
  EXPECT_EQ(result("//", one(DType::I8, -128), one(DType::I8, -1)), -128);
  EXPECT_EQ(result(">>", one(DType::I16, -5), one(DType::I16, 20)), -1);
  EXPECT_THROW(result("//", one(DType::I32, 1), one(DType::I32, 0)), Invalid);
}

TEST(Model, floats_round_after_each_operation) {
  EXPECT_EQ(result("+", one(DType::F16, 2048), one(DType::F16, 1)), 2048);
  EXPECT_EQ(result("+", one(DType::BF16, 256), one(DType::BF16, 1)), 256);
  EXPECT_EQ(result("*", one(DType::F32, 16777217), one(DType::F32, 1)), 16777216);
  EXPECT_EQ(converted(one(DType::F32, 300), DType::I8).cells[0].i, 127);
  EXPECT_EQ(result("+", one(DType::I32, 3), one(DType::F16, 0.5)), 3.5);
}

TEST(Model, numbers_take_the_dtype_of_what_they_meet) {
  EXPECT_EQ(apply_binary("*", of_array(one(DType::F64, 1)), of_float(0.1)).a.cells[0].f, 0.1);
  EXPECT_EQ(apply_binary("*", of_array(one(DType::F32, 1)), of_float(0.1)).a.cells[0].f, 0.1F);
  EXPECT_EQ(apply_binary("*", of_array(one(DType::U8, 1)), of_float(0.5)).a.dtype, DType::F32);
  EXPECT_THROW(apply_binary("+", of_array(one(DType::U8, 1)), of_int(256)), Invalid);
}

TEST(Model, what_is_written_through_one_name_no_other_sees) {
  Program p;
  Stmt x, y, w;
  x.kind = y.kind = Stmt::Kind::Var;
  x.name = "x";
  x.value.kind = Expr::Kind::Make;
  x.value.text = "arange";
  x.value.args = {integer(3)};
  y.name = "y";
  y.value = name_of("x");
  w.kind = Stmt::Kind::Write;
  w.place = name_of("x");
  w.op = ".+=";
  w.value = integer(5);
  p.body = {x, y, w};
  p.results = {name_of("x"), name_of("y")};
  const Outcome o = run_model(p);
  EXPECT_EQ(o.results[0].cells[2].i, 7);
  EXPECT_EQ(o.results[1].cells[2].i, 2);
}

TEST(Generator, a_seed_is_one_program) {
  for (uint64_t seed : {1, 77, 4711}) EXPECT_EQ(to_text(generate(seed), {}), to_text(generate(seed), {}));
  EXPECT_NE(to_text(generate(1), {}), to_text(generate(2), {}));
}

}  // namespace gk::property
