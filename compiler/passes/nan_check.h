// Searching arrays for NaN after they are written, for --nan-check. Owns which arrays of a module are
// searched, and the steps that do it: one a written array, behind its last writer, which reports a fault like
// an index out of range. Promises the first NaN in row-major order. Not for the interpreter, which looks by
// itself at what nan_sites() names.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/passes/pipeline.h"

namespace gk::passes {

struct NanSite {
  int slot = -1;
  Span span{};  // of what computed the elements; may be invalid
};

/// The arrays of floats that the module writes, but for those of these names and their parts, and those that
/// only get elements which other arrays hold already: these were searched when they were written, or are the
/// program's inputs.
std::vector<NanSite> nan_sites(const ir::Module& m, const std::vector<std::string>& exempt);

/// Adds the steps. `sites` are of the module that the schedule was made of.
void add_nan_checks(Schedule& schedule, const std::vector<NanSite>& sites);

}  // namespace gk::passes
