// PTX of every script and example, assembled by ptxas for each architecture that gk serves. Owns the emission
// and the calls of ptxas; equal kernels of several scripts are assembled once. Without a ptxas ($GK_PTXAS)
// the tests are skipped and say so.
#pragma once

#include <filesystem>

namespace gk::test {

/// Registers the test ptx.NAME.sm_NN for each of sm_75, 80, 90, 100, 120.
void add_ptx_tests(const std::filesystem::path& root, const std::filesystem::path& script);

}  // namespace gk::test
