#include "compiler/passes/pipeline.h"

#include "compiler/passes/cse.h"
#include "compiler/passes/dce.h"
#include "compiler/passes/expand.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/lower.h"
#include "compiler/passes/plan_memory.h"
#include "compiler/passes/regions.h"
#include "compiler/passes/simplify.h"

namespace gk::passes {

Result<void> poll(const Options& options) {
  if (options.interrupted && options.interrupted())
    return fail(ErrorKind::Interrupted, "E0806", "interrupted");
  return {};
}

Result<Schedule> run_pipeline(ir::Module module, const Options& options) {
  const auto done = [&](const char* pass) -> Result<void> {
    GK_CHECK(ir::verify(module));
    if (options.after_pass) options.after_pass(pass, module);
    GK_CHECK(poll(options));
    return {};
  };
  GK_CHECK(done("trace"));
  GK_CHECK(simplify(module));
  GK_CHECK(done("simplify"));
  GK_CHECK(unroll_loops(module, options));
  GK_CHECK(expand_products(module));
  GK_CHECK(expand_concats(module));
  GK_CHECK(done("expand"));
  GK_CHECK(tidy_regions(module));
  GK_CHECK(simplify(module));
  GK_CHECK(done("regions"));
  GK_CHECK(cse(module));
  GK_CHECK(done("cse"));
  GK_CHECK(dce(module));
  GK_CHECK(done("dce"));
  return make_schedule(std::move(module), options);
}

Result<Schedule> make_schedule(ir::Module module, const Options& options) {
  GK_CHECK(fuse(module, options));
  GK_CHECK(ir::verify(module));
  if (options.after_pass) options.after_pass("fuse", module);
  GK_CHECK(poll(options));
  GK_TRY(Lowered lowered, lower(module, options));
  GK_TRY(Schedule schedule, plan_memory(module, std::move(lowered), options));
  for (const auto& kernel : schedule.kernels) GK_CHECK(ir::verify(*kernel));
  return schedule;
}

}  // namespace gk::passes
