// Support of the tests of compiler/passes: a builder of modules, and an executor that runs a Schedule over
// plain host memory, one point at a time, checking every access against what the step declares. Slow and
// obvious; points may run in reverse, which shows where a kernel depends on their order.
#pragma once

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "compiler/interp/interp.h"
#include "compiler/ir/module.h"
#include "compiler/passes/pipeline.h"
#include "tests/unit/region_build.h"

namespace gk::passes_test {

using ir::Op;
using ir::ValueId;

struct Builder : test::RegionBuild {
  ValueId input(DType t, const Shape& s, const std::string& name = "x");
  ValueId op(Op op, std::vector<ValueId> operands, ir::Attrs attrs = {});
  ValueId constant(double v, DType t = DType::F32);
  ValueId scalar(double v, const Shape& s, DType t = DType::F32) { return broadcast(constant(v, t), s); }
  ValueId param(double v, DType t = DType::F32);
  ValueId broadcast(ValueId v, const Shape& s);
  ValueId reshape(ValueId v, const Shape& s);
  ValueId transpose(ValueId v, std::vector<int64_t> axes);
  ValueId slice(ValueId v, const Shape& starts, const Shape& extents, const Shape& steps);
  ValueId update(ValueId base, ValueId value, const Shape& starts, const Shape& steps);
  ValueId reduce(Op op, ValueId v, std::vector<int64_t> axes, bool keepdims = false);
  ValueId cast(ValueId v, DType t);
  Shape shape(ValueId v) const { return m.type(v).shape(); }
  /// A new array.
  int out(ValueId v);
  /// Over the array of a slot that an input reads.
  void into(ValueId v, int slot);
  int slot_of(ValueId input) const;
};

/// Random contents for the inputs; integers in [1, 8], floats in [-2, 2].
std::vector<interp::Array> make_slots(const ir::Module& m, uint32_t seed);

struct Execution {
  bool reverse = false;
  std::vector<std::string> errors;  // accesses outside what a step declares, unknown instructions
};
void execute(const passes::Schedule& s, const std::vector<Scalar>& scalars, std::vector<interp::Array>& slots,
             Execution& e);

/// "" where two arrays agree, up to the order of sums.
std::string difference(const interp::Array& want, const interp::Array& have, size_t slot);

/// "" if the schedule of `m` gives what the interpreter gives, else what differs.
std::string check(const Builder& b, const passes::Options& options, uint32_t seed = 1);

}  // namespace gk::passes_test
