#include <gtest/gtest.h>

#include "compiler/ir/parse_kernel.h"
#include "tests/unit/ir_build.h"

namespace gk::ir {
namespace {

using enum DType;

Kernel read(const std::string& text) {
  text::Reader in(text);
  auto k = text::read_kernel(in);
  EXPECT_TRUE(k) << k.error().message;
  return k ? std::move(*k) : Kernel{};
}

// Every kind of instruction, kernel by kernel.
const char* const kTexts[] = {
    R"(kernel "control" user faults fast_math {
  param 0: buffer i32 [p2, 4] read write "z"
  param 1: scalar f32 "h"
  param 2: scalar i64
  axes [p2, 4]
  local 0: i64 "i"
  local 1: i32 "acc"
  values 20
  body {
    %0: i64 = axis {axis=0}
    %1: i64 = axis {axis=1}
    %2: i64 = extent {param=0, axis=1}
    %3: i64 = const {value=i64 1}
    %4: f32 = scalar {param=1}
    %5: i32 = cast %4
    set i32 %5 {local=1}
    for %0, %2, %3 {local=0} do {
      %6: i32 = get {local=1}
      %7: i32 = remainder %6, %5 @0:12-30
      set i32 %7 {local=1}
      %8: bool = less %7, %5
      if %8 do {
        break
      } then {
        continue
      }
    }
    while do {
      %9: i32 = get {local=1}
      %10: bool = greater %9, %5
      result %10
    } then {
      %11: i32 = get {local=1}
      %12: i32 = subtract %11, %5
      set i32 %12 {local=1}
    }
    %13: i32 = load_indexed %0, %1 {param=0}
    store_indexed i32 %0, %1, %13 {param=0, unchecked}
    %14: i32 = atomic %0, %1, %13 {param=0, atomic=add}
    atomic i32 %0, %1, %14 {param=0, atomic=exchange, unchecked}
  }
}
)",
    R"(kernel "sum" reduce faults {
  param 0: buffer f32 [] read
  param 1: buffer f32 [] write
  axes [16]
  reduce_axes [p2]
  values 12
  body {
    %0: i64 = axis {axis=1}
    %1: f32 = gather %0 {param=0, strides=[0, 0], offset=0, axis=0, size=8, stride=1}
    %2: f32 = load {param=0, strides=[p2, 1], offset=-3}
    %3: u64 = const {value=u64 7}
    %4: f32 = rng_uniform %3, %3
    %5: f32 = rng_normal %3, %3
    %6: f32 = add %1, %2
  }
  reduction sum %6: f32 in f32
  reduction argmax %2: f32 in i64
  epilogue {
    %7: f32 = reduce_result {reduction=0}
    %8: i64 = reduce_result {reduction=1}
    store f32 %7 {param=1, strides=[1], offset=0}
  }
}
)",
    R"(kernel "matmul" matmul {
  param 0: buffer f16 [] read
  param 1: buffer f16 [] read
  param 2: buffer f16 [] write
  axes [8, 8]
  reduce_axes [4]
  values 2
  matmul f16 in f32 a {param=0, strides=[4, 0, 1], offset=0} b {param=1, strides=[0, 1, 8], offset=0}
  epilogue {
    %0: f32 = reduce_result {reduction=0}
    %1: f16 = cast %0
    store f16 %1 {param=2, strides=[8, 1], offset=0}
  }
}
)"};

TEST(IrKernel, text_round_trips) {
  for (const char* text : kTexts) EXPECT_EQ(print(read(text)), text);
}

TEST(IrKernel, good_kernels_verify) {
  for (const char* text : {kTexts[0], kTexts[2]}) {
    const auto r = verify(read(text));
    EXPECT_TRUE(r) << r.error().message;
  }
  // The reduce kernel speaks of parameter 2, which it lacks.
  Kernel k = read(kTexts[1]);
  EXPECT_EQ(verify(k).error().message, "invalid kernel sum: no parameter 2 for a size");
  KParam n;
  n.kind = KParam::Kind::Scalar;
  n.dtype = I64;
  k.params.push_back(n);
  const auto r = verify(k);
  EXPECT_TRUE(r) << r.error().message;
}

TEST(IrKernel, key_drops_names_and_spans_alone) {
  Kernel a = test::divide_kernel(), b = test::divide_kernel();
  b.name = "other";
  b.params[0].name = "q";
  b.body.insts[3].span = {1, 2, 3};
  EXPECT_EQ(key(a), key(b));
  EXPECT_NE(print(a), print(b));
  const auto differs = [&](auto&& change) {
    Kernel c = test::divide_kernel();
    change(c);
    return key(c) != key(a);
  };
  EXPECT_TRUE(differs([](Kernel& k) { k.fast_math = true; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.params[1].dtype = I64; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.params[1].written = true; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.axes[0] = KSize::fixed(3); }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body.insts[1].checked = false; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body.insts[3].op = Op::Mod; }));
  EXPECT_TRUE(differs([](Kernel& k) { k.body.insts[4].dtype = F32; }));
}

TEST(IrKernel, fault_sites_are_numbered_in_textual_order) {
  const auto sites = fault_sites(test::divide_kernel());
  ASSERT_EQ(sites.size(), 4u);
  EXPECT_EQ(sites[0].kind, FaultSite::Kind::Load);
  EXPECT_EQ(sites[2].kind, FaultSite::Kind::DivideByZero);
  EXPECT_EQ(sites[2].span.begin, 10u);
  EXPECT_EQ(sites[3].kind, FaultSite::Kind::Store);
  EXPECT_EQ(fault_sites(read(kTexts[0])).size(), 3u) << "unchecked instructions are no sites";
}

TEST(IrKernel, division_by_a_constant_is_a_site_only_for_zero) {
  for (const int64_t divisor : {0, 3}) {
    Kernel k = test::divide_kernel();
    KInst& load = k.body.insts[2];
    load.kind = KKind::Const;
    load.args.clear();
    load.value = Scalar::of_int(divisor, I32);
    EXPECT_EQ(fault_sites(k).size(), divisor == 0 ? 3u : 2u);
  }
}

template <class F>
std::string broken(F&& damage) {
  Kernel k = test::divide_kernel();
  damage(k);
  const auto r = verify(k);
  if (r) return "valid";
  const std::string prefix = "invalid kernel divide: ";
  EXPECT_TRUE(r.error().message.starts_with(prefix)) << r.error().message;
  return r.error().message.substr(prefix.size());
}

TEST(IrKernel, verify_catches_each_breakage) {
  EXPECT_EQ(broken([](Kernel&) {}), "valid");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[3].args[0] = 9; }), "floor_divide: %9 is not defined here");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[1].args[0] = 2; }), "load_indexed: %2 is not defined here");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[2].result = 1; }), "load_indexed: %1 is defined twice");
  EXPECT_EQ(broken([](Kernel& k) { k.num_values = 2; }), "load_indexed: %2 is past num_values");
  EXPECT_EQ(broken([](Kernel& k) { k.num_values = -1; }), "-1 values");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[0].axis = 1; }), "axis: no axis 1");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[0].dtype = I32; }), "axis: the result must be i64");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[1].param = 3; }),
            "load_indexed: parameter 3 is not a buffer");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[1].param = 0; }),
            "load_indexed: parameter 0 is not declared so");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[4].param = 1; }),
            "store_indexed: parameter 1 is not declared so");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[1].args.push_back(0); }), "load_indexed: 2 indices");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[3].op = Op::Not; }),
            "logical_not: logical_not takes 1 operand, not 2");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[3].op = Op::Sum; }), "sum: not an elementwise op");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[3].dtype = I64; }), "floor_divide: the result must be i32");
  EXPECT_EQ(broken([](Kernel& k) { k.axes[0] = KSize::dynamic(0); }), "size parameter 0 is not a scalar i64");
  EXPECT_EQ(broken([](Kernel& k) { k.uses_faults = false; }), "it has fault sites but does not use faults");
  EXPECT_EQ(broken([](Kernel& k) { k.kind = Kernel::Kind::Reduce; }),
            "only reduce and matmul kernels have reduce_axes, and they must");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[0].kind = KKind::Break; }), "break: outside a loop");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[0].kind = KKind::ReduceResult; }),
            "reduce_result: outside the epilogue");
  EXPECT_EQ(broken([](Kernel& k) { k.body.insts[0].kind = KKind::VarGet; }), "get: no local -1");
  EXPECT_EQ(broken([](Kernel& k) { k.body.result = 0; }), "a block other than a condition has a result");
}

TEST(IrKernel, values_of_a_block_end_with_it) {
  std::string text = kTexts[0];
  const auto at = text.find("%13: i32 = load_indexed %0, %1");
  text.replace(at, 30, "%13: i32 = abs %11            ");
  text.replace(text.find("{param=0}", at), 9, "");
  EXPECT_EQ(verify(read(text)).error().message, "invalid kernel control: abs: %11 is not defined here");
}

}  // namespace
}  // namespace gk::ir
