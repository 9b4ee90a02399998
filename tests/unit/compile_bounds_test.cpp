// What bounds the compiler's work: the size of kernels, the points at which one kernel computes a value, and
// that each phase hears an interruption. Counts only, never times.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/codegen/codegen.h"
#include "compiler/syntax/parse.h"
#include "tests/unit/passes_support.h"

namespace gk::passes_test {
namespace {

using passes::Options;
using passes::Schedule;

Schedule plan(const Builder& b, const Options& options = {}) {
  auto s = passes::run_pipeline(b.m, options);
  EXPECT_TRUE(s) << (s ? "" : s.error().message);
  return s ? std::move(*s) : Schedule{};
}

size_t instructions(const ir::KBlock& b) {
  size_t n = b.insts.size();
  for (const ir::KInst& i : b.insts)
    for (const auto& inner : i.blocks) n += instructions(*inner);
  return n;
}
size_t most_instructions(const Schedule& s) {
  size_t most = 0;
  for (const auto& k : s.kernels) most = std::max(most, instructions(k->body) + instructions(k->epilogue));
  return most;
}
size_t all_instructions(const Schedule& s) {
  size_t sum = 0;
  for (const auto& k : s.kernels) sum += instructions(k->body) + instructions(k->epilogue);
  return sum;
}

TEST(CompileBounds, functions_count_as_what_they_expand_to) {
  const auto chain = [](Op op) {
    Builder b;
    ValueId x = b.input(DType::F32, {100});
    for (int i = 0; i < 400; ++i) x = b.op(op, {x});
    b.out(x);
    return b;
  };
  EXPECT_EQ(plan(chain(Op::Abs)).program.steps.size(), 1U);
  const Schedule functions = plan(chain(Op::Erf));
  EXPECT_GE(functions.program.steps.size(), 8U);
  EXPECT_LE(most_instructions(functions), 60U);
  EXPECT_EQ(check(chain(Op::Erf), {}), "");
}

// Each level reads the one before at two points, no two of which meet: all in one kernel would be 2^16 loads.
TEST(CompileBounds, values_read_at_many_points_are_stored) {
  Builder b;
  constexpr int64_t kExtent = 1 << 17;
  ValueId x = b.input(DType::I32, {kExtent});
  int64_t n = kExtent;
  for (int i = 0; i < 16; ++i) {
    const int64_t by = int64_t{1} << i;
    n -= by;
    x = b.op(Op::Add, {b.slice(x, {by}, {n}, {1}), b.slice(x, {0}, {n}, {1})});
  }
  b.out(x);
  const Schedule s = plan(b);
  EXPECT_LE(s.program.steps.size(), 16U);
  EXPECT_LE(all_instructions(s), 1000U);
}

// Every value is used twice, 60 levels deep.
TEST(CompileBounds, what_is_shared_is_computed_once) {
  Builder b;
  ValueId x = b.input(DType::I64, {100}), y = b.op(Op::Add, {x, x});
  for (int i = 0; i < 60; ++i) {
    const ValueId next = b.op(Op::Add, {b.op(Op::Mul, {x, y}), x});
    x = y;
    y = next;
  }
  b.out(b.reduce(Op::Sum, b.op(Op::Mul, {x, y}), {0}));
  b.out(b.reduce(Op::ReduceMax, y, {0}));
  const Schedule s = plan(b);
  EXPECT_LE(s.program.steps.size(), 3U);
  EXPECT_LE(all_instructions(s), 400U);
  EXPECT_EQ(check(b, {}), "");
}

TEST(CompileBounds, numbers_are_no_part_of_a_kernels_text) {
  const auto text = [](double scale, double shift) {
    Builder b;
    const ValueId x = b.input(DType::F32, {64});
    b.out(b.op(Op::Add, {b.op(Op::Mul, {x, b.scalar(scale, {64})}), b.scalar(shift, {64})}));
    return ir::key(*plan(b).kernels.at(0));
  };
  EXPECT_EQ(text(2.5, 3), text(7.25, 1e9));
  EXPECT_NE(text(2.5, 3), text(1, 3));  // a product by 1 is none
}

TEST(CompileBounds, every_phase_hears_an_interruption) {
  std::string program;
  for (int i = 0; i < 2000; ++i) program += "let y = x + 1\n";
  syntax::SourceMap sources;
  const auto parsed = syntax::parse(sources, sources.add("long.gk", program), [] { return true; });
  ASSERT_EQ(parsed.errors.size(), 1U);
  EXPECT_EQ(parsed.errors[0].code, "E0806");
  EXPECT_EQ(parsed.errors[0].kind, ErrorKind::Interrupted);

  Builder b;
  b.out(b.op(Op::Sin, {b.input(DType::F32, {100})}));
  Options options;
  options.interrupted = [] { return true; };
  const auto stopped = passes::run_pipeline(b.m, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::Interrupted);

  codegen::Compiler compiler({}, "");
  for (int after : {0, 1, 5}) {  // before the kernel, and between passes over it
    int asked = 0;
    const auto built = compiler.build(plan(b), [&] { return asked++ >= after; });
    ASSERT_FALSE(built) << after;
    EXPECT_EQ(built.error().kind, ErrorKind::Interrupted);
  }
  EXPECT_EQ(compiler.stats().kernels_compiled, 0);
  EXPECT_TRUE(compiler.build(plan(b), [] { return false; }));
}

}  // namespace
}  // namespace gk::passes_test
