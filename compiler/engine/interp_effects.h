// Effects on the reference interpreter: arrays in host memory, units interpreted node by node, graphs as
// lists of units. Owns nothing beyond its arrays. Promises the definition of every result, not speed.
#pragma once

#include <memory>

#include "compiler/engine/effects_base.h"

namespace gk::engine {

std::unique_ptr<EffectsBase> make_interp_effects(int64_t memory_limit_bytes);

}  // namespace gk::engine
