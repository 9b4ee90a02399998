// Offsets for temporaries in one arena. First fit over lifetimes, in order of birth. Promises 256-byte
// alignment and that two temporaries alive at one step do not overlap.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/error.h"

namespace gk::passes {

struct ArenaRequest {
  int64_t begin = 0, end = 0;  // positions of the first and last step that use it, both included
  int64_t size_bytes = 0;
  int64_t offset = 0;  // the answer
};

/// The size of the arena. Errors: OutOfMemory E0602 when it overflows.
Result<int64_t> plan_arena(std::vector<ArenaRequest>& requests);

}  // namespace gk::passes
