#include <gtest/gtest.h>

#include "compiler/ir/parse_kernel.h"
#include "tests/unit/ir_build.h"

namespace gk::interp {
namespace {

using test::array;
using test::Build;
using test::numbers;
using enum DType;
using V = std::vector<double>;

struct Ran {
  std::vector<V> results;
  std::string fault;
  Span span;
};

// Calls a kernel on arrays and scalars (0-d), over `axes`.
Ran call(const std::string& text, const std::vector<Array>& args, const Shape& axes) {
  ir::text::Reader in(text);
  auto k = ir::text::read_kernel(in);
  EXPECT_TRUE(k) << k.error().message;
  if (!k) return {};
  Build b;
  std::vector<ir::ValueId> operands;
  for (const Array& a : args) operands.push_back(b.input(ir::Type::of(a.dtype, a.shape)));
  ir::Attrs attrs;
  attrs.kernel = std::make_shared<const ir::Kernel>(std::move(*k));
  attrs.shape = axes;
  b.add(ir::Op::KernelCall, operands, attrs);
  const size_t inputs = b.m.slots.size();
  for (const ir::ValueId v : std::vector(b.m.top.nodes.back().results)) b.output(v);
  const auto valid = ir::verify(b.m);
  EXPECT_TRUE(valid) << valid.error().message;
  if (!valid) return {};
  std::vector<Array> slots = args;
  const auto r = run(b.m, {}, slots);
  Ran out;
  for (size_t i = inputs; i < slots.size() && !slots[i].bytes.empty(); ++i)
    out.results.push_back(numbers(slots[i]));
  if (!r) out.fault = r.error().code + ": " + r.error().message, out.span = r.error().span;
  return out;
}

TEST(InterpKernel, divides_with_faults_at_their_span) {
  const std::string text = print(test::divide_kernel());
  const auto n = [](double v) { return array(I64, {}, {v}); };
  Ran r = call(
      text, {array(I32, {3}, {9, 9, 9}), array(I32, {3}, {7, 8, -9}), array(I32, {3}, {2, 4, 2}), n(3)}, {3});
  EXPECT_EQ(r.fault, "");
  EXPECT_EQ(r.results, std::vector<V>{(V{3, 2, -5})});
  r = call(text, {array(I32, {3}, {9, 9, 9}), array(I32, {3}, {7, 8, -9}), array(I32, {3}, {2, 0, 2}), n(3)},
           {3});
  EXPECT_EQ(r.fault, "E0802: division by zero");
  EXPECT_EQ(r.span.begin, 10u);
  EXPECT_EQ(r.results, std::vector<V>{(V{3, 0, -5})});
  // Extents that are not the arrays' would read elsewhere.
  r = call(text, {array(I32, {3}, {9, 9, 9}), array(I32, {3}, {7, 8, -9}), array(I32, {3}, {2, 0, 2}), n(4)},
           {3});
  EXPECT_EQ(r.fault, "E0901: kernel divide is called with extents that are not its arrays'");
}

// z[i + 1] = x[i + 1] + 1 over 3 points: the last is out of range for both.
TEST(InterpKernel, bad_loads_give_zero_and_bad_stores_are_skipped) {
  const std::string head = R"(kernel "shift" user faults {
  param 0: buffer f32 [3] read write "z"
  param 1: buffer f32 [3] read "x"
  axes [3]
  values 6
  body {
    %0: i64 = axis {axis=0}
    %1: i64 = const {value=i64 1}
    %2: i64 = add %0, %1
    %3: f32 = const {value=f32 1}
)";
  const Array z = array(F32, {3}, {7, 7, 7}), x = array(F32, {3}, {10, 20, 30});
  Ran r = call(head + R"(
    %4: f32 = load_indexed %2 {param=1} @0:40-44
    %5: f32 = add %4, %3
    store_indexed f32 %0, %5 {param=0}
  } })",
               {z, x}, {3});
  EXPECT_EQ(r.fault, "E0801: index 3 is out of range for axis 0 with extent 3");
  EXPECT_EQ(r.span.begin, 40u);
  EXPECT_EQ(r.results, std::vector<V>{(V{21, 31, 1})});
  r = call(head + R"(
    %4: f32 = load_indexed %0 {param=1}
    %5: f32 = add %4, %3
    store_indexed f32 %2, %5 {param=0} @0:50-54
  } })",
           {z, x}, {3});
  EXPECT_EQ(r.fault, "E0801: index 3 is out of range for axis 0 with extent 3");
  EXPECT_EQ(r.results, std::vector<V>{(V{7, 11, 21})});
  r = call(head + R"(
    %4: f32 = load_indexed %2 {param=1, unchecked}
    store_indexed f32 %2, %4 {param=0, unchecked}
  } })",
           {z, x}, {3});
  EXPECT_EQ(r.fault, "") << "unchecked, and still inside its arrays";
  EXPECT_EQ(r.results, std::vector<V>{(V{7, 20, 30})});
}

// Collatz steps of i + 1, at most 100, by while; then only odd counts kept, by for with continue.
TEST(InterpKernel, control_flow) {
  const Ran r = call(R"(kernel "collatz" user {
  param 0: buffer i64 [6] read write
  axes [6]
  local 0: i64 "n"
  local 1: i64 "steps"
  local 2: i64 "k"
  values 40
  body {
    %0: i64 = axis {axis=0}
    %1: i64 = const {value=i64 1}
    %2: i64 = const {value=i64 2}
    %3: i64 = const {value=i64 3}
    %4: i64 = add %0, %1
    %5: i64 = const {value=i64 0}
    set i64 %4 {local=0}
    set i64 %5 {local=1}
    while do {
      %6: i64 = get {local=0}
      %7: bool = not_equal %6, %1
      result %7
    } then {
      %8: i64 = get {local=0}
      %9: i64 = bitwise_and %8, %1
      %10: bool = equal %9, %1
      if %10 do {
        %11: i64 = multiply %8, %3
        %12: i64 = add %11, %1
        set i64 %12 {local=0}
      } then {
        %13: i64 = right_shift %8, %1
        set i64 %13 {local=0}
      }
      %14: i64 = get {local=1}
      %15: i64 = add %14, %1
      set i64 %15 {local=1}
      %16: i64 = const {value=i64 7}
      %17: bool = equal %15, %16
      if %17 do {
        break
      }
    }
    %18: i64 = const {value=i64 10}
    %19: i64 = const {value=i64 -3}
    for %18, %5, %19 {local=2} do {
      %20: i64 = get {local=2}
      %21: i64 = const {value=i64 7}
      %22: bool = equal %20, %21
      if %22 do {
        continue
      }
      %23: i64 = get {local=1}
      %24: i64 = const {value=i64 100}
      %25: i64 = add %23, %24
      set i64 %25 {local=1}
    }
    %26: i64 = get {local=1}
    store_indexed i64 %0, %26 {param=0, unchecked}
  }
})",
                     {array(I64, {6}, {0, 0, 0, 0, 0, 0})}, {6});
  EXPECT_EQ(r.fault, "");
  // for visits 10, 7, 4, 1 and skips 7: three hundreds. 3 takes 7 steps, 6 stops at the break.
  EXPECT_EQ(r.results, std::vector<V>{(V{300, 301, 307, 302, 305, 307})});
}

TEST(InterpKernel, atomics_give_the_old_value) {
  const auto run_atomic = [](const std::string& op) {
    return call(R"(kernel "a" user faults {
  param 0: buffer i32 [1] read write
  param 1: buffer i32 [4] write
  axes [4]
  values 5
  body {
    %0: i64 = axis {axis=0}
    %1: i64 = const {value=i64 0}
    %2: i32 = cast %0
    %3: i32 = atomic %1, %2 {param=0, atomic=)" +
                    op + R"(}
    store_indexed i32 %0, %3 {param=1}
  }
})",
                {array(I32, {1}, {2}), array(I32, {4}, {0, 0, 0, 0})}, {4})
        .results;
  };
  EXPECT_EQ(run_atomic("add"), (std::vector<V>{{8}, {2, 2, 3, 5}}));
  EXPECT_EQ(run_atomic("min"), (std::vector<V>{{0}, {2, 0, 0, 0}}));
  EXPECT_EQ(run_atomic("max"), (std::vector<V>{{3}, {2, 2, 2, 2}}));
  EXPECT_EQ(run_atomic("and"), (std::vector<V>{{0}, {2, 0, 0, 0}}));
  EXPECT_EQ(run_atomic("or"), (std::vector<V>{{3}, {2, 2, 3, 3}}));
  EXPECT_EQ(run_atomic("xor"), (std::vector<V>{{2}, {2, 2, 3, 1}}));
  EXPECT_EQ(run_atomic("exchange"), (std::vector<V>{{3}, {2, 0, 1, 2}}));
}

TEST(InterpKernel, two_axes_run_in_row_major_order) {
  const Ran r = call(R"(kernel "order" user faults {
  param 0: buffer i64 [1] read write
  param 1: buffer i64 [2, 3] write
  axes [2, 3]
  values 5
  body {
    %0: i64 = axis {axis=0}
    %1: i64 = axis {axis=1}
    %2: i64 = const {value=i64 0}
    %3: i64 = const {value=i64 1}
    %4: i64 = atomic %2, %3 {param=0, atomic=add}
    store_indexed i64 %0, %1, %4 {param=1}
  }
})",
                     {array(I64, {1}, {0}), array(I64, {2, 3}, {0, 0, 0, 0, 0, 0})}, {2, 3});
  EXPECT_EQ(r.results, (std::vector<V>{{6}, {0, 1, 2, 3, 4, 5}}));
}

TEST(InterpKernel, strided_access_gather_and_draws) {
  const Ran r = call(R"(kernel "map" map faults {
  param 0: buffer f64 [2, 2] read
  param 1: buffer f64 [2, 2] write
  axes [2, 2]
  values 7
  body {
    %0: f64 = load {param=0, strides=[1, 2], offset=0}
    %1: i64 = axis {axis=0}
    %2: f64 = gather %1 {param=0, strides=[0, 1], offset=0, axis=0, size=1, stride=2} @0:8-9
    %3: u64 = const {value=u64 5}
    %4: f64 = rng_uniform %3, %3
    %5: f64 = floor %4
    %6: f64 = add %0, %2
    store f64 %6 {param=1, strides=[2, 1], offset=0}
  }
})",
                     {array(F64, {2, 2}, {1, 2, 3, 4}), array(F64, {2, 2}, {0, 0, 0, 0})}, {2, 2});
  EXPECT_EQ(r.fault, "E0801: index 1 is out of range for axis 0 with extent 1");
  // The transpose, plus row 0 where the gathered index is inside.
  EXPECT_EQ(r.results, std::vector<V>{(V{2, 5, 2, 4})});
}

}  // namespace
}  // namespace gk::interp
