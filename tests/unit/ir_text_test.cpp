#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "compiler/ir/text.h"
#include "tests/unit/ir_build.h"

namespace gk::ir {
namespace {

using enum DType;
using test::Build;
using test::type;

void collect(const Region& r, std::set<Op>& out) {
  for (const Node& n : r.nodes) {
    out.insert(n.op);
    for (const Region& inner : n.regions) collect(inner, out);
  }
}

Attrs axes(std::vector<int64_t> v) {
  Attrs a;
  a.axes = std::move(v);
  return a;
}

// Every op of the table at least once.
Module every_op() {
  Build b;
  b.m.name = "every \"op\"\n";
  b.m.fuse = false;
  b.m.tf32 = true;
  const ValueId x = b.input({F32, {Dim::known(2, "B"), Dim::known(3, "2*N")}});
  const ValueId n = b.input(type(I32, {4}));
  const ValueId c = b.input(type(Bool, {4}));
  const ValueId state = b.input(type(U64, {2}));
  b.m.slots[0].name = "x";
  b.m.params.push_back(Scalar::of_float(0.1, F32));
  Attrs a;
  a.value = b.m.params[0];
  b.add(Op::Param, {}, a);
  const ValueId zero = b.constant(Scalar::of_float(-0.0, F64));
  b.constant(Scalar::of_float(std::nan(""), BF16));
  b.constant({F64, 0, std::bit_cast<double>(0xfff8000000000123)});
  b.constant(Scalar::of_int(-1, U64));
  b.constant(Scalar::of_bool(true));
  for (int i = 0; i < static_cast<int>(Op::kCount); ++i) {
    const Op op = static_cast<Op>(i);
    const OpInfo& o = info(op);
    if (o.cls == OpClass::Elementwise) {
      using enum OperandClass;
      const ValueId v = o.operands == Bool ? c : o.operands == Integer || o.operands == BoolOrInteger ? n : x;
      std::vector<ValueId> operands(static_cast<size_t>(o.arity), v);
      if (op == Op::Where) operands = {c, n, n};
      if (op == Op::PowInt) {
        Attrs exponent;
        exponent.dtype = I64;
        operands[1] = b.add(Op::Cast, {x}, exponent);
      }
      Attrs to;
      to.dtype = F16;
      b.add(op, operands, to);
    } else if (o.cls == OpClass::Reduction) {
      Attrs over = axes({0});
      over.keepdims = i % 2 == 0;
      b.add(op, {o.operands == OperandClass::Bool ? c : x}, over);
    }
  }
  Attrs iota = axes({1});
  iota.shape = {2, 3};
  b.add(Op::Iota, {}, iota);
  Attrs rng;
  rng.shape = {5};
  rng.dtype = F64;
  b.add(Op::RngUniform, {state}, rng);
  b.add(Op::RngNormal, {state}, rng);
  Attrs advance;
  advance.index = 10;
  b.add(Op::RngAdvance, {state}, advance);
  Attrs shape;
  shape.shape = {4, 2, 3};
  b.add(Op::Broadcast, {x}, shape);
  shape.shape = {6};
  b.add(Op::Reshape, {x}, shape);
  const ValueId t = b.add(Op::Transpose, {x}, axes({1, 0}));
  Attrs region;
  region.starts = {1, 0}, region.shape = {2, 3}, region.steps = {-1, 1};
  const ValueId s = b.add(Op::Slice, {x}, region);
  b.add(Op::UpdateSlice, {x, s}, region);
  b.m.top.nodes.back().attrs.shape = {};
  b.add(Op::Take, {x, n}, axes({1}));
  b.add(Op::Concat, {x, x, s}, axes({0}));
  b.add(Op::MatMul, {x, t});
  b.m.top.nodes.back().group = 3;
  // A loop in a loop.
  Region looping = b.region({type(I64, {}), b.m.type(x), type(F64, {}), b.m.type(x)}, [&](const auto& p) {
    b.with_regions(Op::Loop, {},
                   {b.region({type(I64, {})}, [](const auto&) { return std::vector<ValueId>{}; })});
    return std::vector{b.add(Op::Add, {p[1], p[3]}), p[2]};
  });
  const ValueId looped = b.with_regions(Op::Loop, {x, zero, x}, {std::move(looping)}, 7)[0];
  const auto kernel = std::make_shared<const Kernel>(test::divide_kernel());
  Attrs call;
  call.kernel = kernel;
  call.name = "divide";
  call.index = 128;
  call.shape = {4};
  const ValueId four = b.constant(Scalar::of_int(4));
  const ValueId z = b.add(Op::KernelCall, {n, n, n, four}, call);
  b.add(Op::KernelCall, {z, n, n, four}, call);
  // A loop on the device with a branch in it.
  const Attrs every = axes({0});
  const Type ints = b.m.type(n);
  Region turn = b.region({ints}, [&](const auto& t) {
    const ValueId all = b.add(Op::All, {b.add(Op::Lt, {t[0], t[0]})}, every);
    Attrs number;
    number.value = b.m.params[0];
    Region then = b.region({ints}, [&](const auto& p) {
      return std::vector{b.add(Op::Neg, {p[0]}), b.constant(Scalar::of_float(2, F16))};
    });
    Region otherwise = b.region({ints}, [&](const auto& p) {
      b.add(Op::Param, {}, number);
      return std::vector{p[0], b.constant(Scalar::of_float(2, F16))};
    });
    return std::vector{all, b.branch({all, t[0]}, std::move(then), std::move(otherwise))[0]};
  });
  const ValueId holds = b.add(Op::Any, {c}, every);
  b.output(b.with_regions(Op::While, {holds, n}, {std::move(turn)})[0]);
  Region repeated = b.region({ir::Type::of(DType::I64, {}), ints}, [&](const auto& p) {
    return std::vector{b.add(Op::Add, {p[1], p[1]})};
  });
  b.output(b.with_regions(Op::Repeat, {n}, {std::move(repeated)}, 3)[0]);
  b.output(looped);
  b.output(z);
  b.m.slots[1].is_output = true;
  b.m.outputs.push_back({z, 1});
  return std::move(b.m);
}

TEST(IrText, every_op_round_trips) {
  const Module m = every_op();
  std::set<Op> seen;
  collect(m.top, seen);
  EXPECT_EQ(seen.size(), static_cast<size_t>(Op::kCount));
  const auto ok = verify(m);
  ASSERT_TRUE(ok) << ok.error().message;
  const std::string text = print(m);
  const auto back = parse(text);
  ASSERT_TRUE(back) << back.error().message << "\n" << text;
  EXPECT_EQ(print(*back), text);
  EXPECT_EQ(back->name, m.name);
  EXPECT_EQ(back->fuse, false);
  EXPECT_EQ(back->tf32, true);
  EXPECT_EQ(back->type(0).dims[1].name, "2*N");
  EXPECT_EQ(back->params[0], m.params[0]);
  ASSERT_EQ(back->top.nodes.size(), m.top.nodes.size());
  for (size_t i = 0; i < m.top.nodes.size(); ++i)
    EXPECT_EQ(back->top.nodes[i].attrs.value, m.top.nodes[i].attrs.value);
}

TEST(IrText, reads_as_documented) {
  const std::string text = R"(module "step" {
  slot 0: f32[B=2, 3] input "x"
  slot 1: f32[B=2, 3] output fresh
  param 0: f32 0.1
  %0: f32[B=2, 3] = input {slot=0}
  %1: f32[] = param {index=0, value=f32 0.1}
  %2: f32[2, 3] = broadcast_to %1 {shape=[2, 3]}
  %3: f32[B=2, 3] = loop %0, %2 {trips=4} do (%4: i64[], %5: f32[B=2, 3], %7: f32[2, 3]) {
    %6: f32[B=2, 3] = multiply %5, %7 {group=1}
    yield %6
  }
  output %3 -> 1
}
)";
  const auto m = parse(text);
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(print(*m), text);
}

TEST(IrText, regions_read_as_documented) {
  const std::string text = R"(module "count" {
  slot 0: i64[] input output "n"
  slot 1: bool[] input "more"
  slot 2: f32[] output fresh
  param 0: i64 3
  %0: i64[] = input {slot=0, name="n"}
  %1: bool[] = input {slot=1, name="more"}
  %2: i64[] = while %1, %0 do (%3: i64[]) {
    %4: i64[] = param {index=0, value=i64 3}
    %5: i64[] = add %3, %4
    %6: bool[] = less %5, %4
    yield %6, %5
  }
  %7: f32[] = if %1 then () {
    %8: f32[] = const {value=f32 1}
    yield %8
  } else () {
    %9: f32[] = const {value=f32 2}
    yield %9
  }
  output %2 -> 0
  output %7 -> 2
}
)";
  const auto m = parse(text);
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(print(*m), text);
  EXPECT_EQ(print(Module(*m)), text);
}

TEST(IrText, equal_kernels_are_one_section) {
  const std::string text = print(every_op());
  EXPECT_NE(text.find("@0 = kernel \"divide\" user faults {"), std::string::npos);
  EXPECT_EQ(text.find("@1 ="), std::string::npos);
}

TEST(IrText, scalars_read_back_exactly) {
  std::mt19937_64 random(1);
  for (int t = 0; t < kDTypeCount; ++t)
    for (int i = 0; i < 300; ++i) {
      const uint64_t raw = random();
      const Scalar s = Scalar::load(static_cast<DType>(t), &raw);
      const auto back = text::parse_digits(s.dtype, text::digits(s));
      ASSERT_TRUE(back) << text::digits(s);
      EXPECT_EQ(*back, s) << text::digits(s);
    }
  EXPECT_FALSE(text::parse_digits(I8, "128"));
  EXPECT_FALSE(text::parse_digits(U8, "-1"));
  EXPECT_FALSE(text::parse_digits(F32, "1.5x"));
  EXPECT_FALSE(text::parse_digits(F64, "nan:0000000000000000"));
  EXPECT_FALSE(text::parse_digits(Bool, "1"));
}

TEST(IrText, errors_give_the_line) {
  const auto m = parse("module \"a\" {\n  %0: f32[] = frobnicate\n}\n");
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, "E0199");
  EXPECT_EQ(m.error().message, "IR text, line 2: an operation expected");
  for (const char* text :
       {"", "module", "module \"", "module \"\\x", "module \"a\" {", "module \"a\" {}x",
        "module \"a\" { %0: f32[-1] = const {value=f32 1} }", "module \"a\" { slot 1: f32[] }",
        "module \"a\" { %99999999: f32[] = const {value=f32 1} }", "module \"a\" { output %0 -> 0 }",
        "module \"a\" { %0: f32[] = sqrt %0 }",
        "module \"a\" { kernel_call {kernel=@0, shape=[1,1,1,1,1,1,1,1,1]} }",
        "module \"a\" { kernel_call {kernel=@0, threads=0, shape=[]} }"})
    EXPECT_FALSE(parse(text)) << text;
}

TEST(IrText, parsed_modules_are_verified) {
  const auto m = parse("module \"a\" { %0: f32[2] = const {value=f32 1} }");
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, "E0901");
}

TEST(IrText, deep_nesting_is_an_error) {
  std::string text = "module \"a\" {";
  for (int i = 0; i < 5000; ++i) text += " loop {trips=1} do (%" + std::to_string(i) + ": i64[]) {";
  EXPECT_FALSE(parse(text));
}

// Texts near a good one: cut short, with bytes changed, with pieces repeated. Any answer will do but a crash.
TEST(IrText, damaged_text_is_survived) {
  const std::string good = print(every_op());
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  int parsed = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string text = good;
    for (size_t edits = 1 + below(3); edits-- > 0;) {
      const size_t at = below(text.size());
      switch (below(5)) {
        case 0: text[at] = static_cast<char>(below(256)); break;
        case 1: text.erase(at, 1 + below(10)); break;
        case 2: text.insert(at, text.substr(below(text.size()), below(30))); break;
        case 3: text[at] = "0123456789-%@{}[]=,\""[below(20)]; break;
        default:
          if (below(4) == 0) text.resize(at + 1);
      }
    }
    if (const auto m = parse(text)) {
      ++parsed;
      const auto again = parse(print(*m));
      ASSERT_TRUE(again) << again.error().message << "\n" << text;
      EXPECT_EQ(print(*again), print(*m));
    }
  }
  EXPECT_GT(parsed, 0);
}

}  // namespace
}  // namespace gk::ir
