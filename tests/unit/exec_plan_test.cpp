// The text of a program: --emit=plan.
#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

TEST(ExecPlan, text_is_exact) {
  program::Program p;
  p.name = "step";
  p.slots = {{"x", DType::F32, {4, 8}, 128, true, false, false},
             {"", DType::F32, {8}, 32, false, true, true}};
  p.scalars = {Scalar::of_float(0.5)};
  p.arena_bytes = 256;
  p.temporaries = 1;
  p.temporaries_bytes = 128;
  program::Step launch;
  launch.label = launch.function = "maximum+add";
  launch.dims.items = 32;
  launch.dims.grain = 16;
  launch.args = {pointer(slot(0, 128)), pointer(arena(0, 128)), scalar_slot(0), value(Scalar::of_int(32))};
  launch.reads = {slot(0, 128)};
  launch.writes = {arena(0, 128)};
  program::Step product;
  product.kind = program::Step::Kind::Library;
  auto& call = product.library.emplace<program::MatMulCall>();
  call.m = 4, call.n = 2, call.k = 8;
  call.trans_b = call.has_bias = true;
  call.activation = program::MatMulCall::Activation::Relu;
  product.reads = {arena(0, 128), slot(0, 64, 64), slot(1, 8)};
  product.writes = {slot(1, 32)};
  program::Step copy;
  copy.kind = program::Step::Kind::Copy;
  copy.reads = {arena(128, 32)};
  copy.writes = {slot(1, 32)};
  p.steps = {launch, product, copy};
  EXPECT_EQ(
      program::print(p),
      "program step target=host steps=3 arena=256 temporaries=1 (128 bytes unplanned)\n"
      "  slot 0 x: f32[4, 8] 128 bytes read\n"
      "  slot 1 -: f32[8] 32 bytes written fresh\n"
      "  scalar 0 = 0.5: f32\n"
      "  step 0 launch maximum+add items=32 grain=16 (x, arena[0..128), scalar 0: f32, 32: i64) reads x "
      "writes arena[0..128)\n"
      "  step 1 library matmul f32 m=4 n=2 k=8 b^T bias relu reads arena[0..128), x[64..128), %1[0..8) "
      "writes "
      "%1\n"
      "  step 2 copy reads arena[128..160) writes %1\n");
  p.targets = {program::TargetKind::Cuda};
  EXPECT_NE(program::print(p).find("step 0 launch maximum+add grid=1x1x1 block=1x1x1 shared=0 ("),
            std::string::npos);
}

}  // namespace
}  // namespace gk::test
