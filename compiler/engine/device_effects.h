// Effects on a device of the runtime: units compiled, loaded and run; graphs built, launched and updated.
// Owns the runtime and the program cache of one session.
#pragma once

#include <memory>
#include <string>

#include "compiler/engine/effects_base.h"

namespace gk::engine {

/// Errors: Device E0501, E0502.
Result<std::unique_ptr<EffectsBase>> make_device_effects(const std::string& device,
                                                         int64_t memory_limit_bytes,
                                                         const std::string& cache_dir);

/// Lets hal/host load what codegen makes. Idempotent.
void install_host_loader();

}  // namespace gk::engine
