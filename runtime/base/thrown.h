// What the standard library throws, as an error: nothing that runs out ends the host program. Not for
// exceptions of the host program's own functions.
#pragma once

#include <exception>

#include "runtime/base/error.h"

namespace gk {

/// E0601.
Error out_of_host_memory();
/// E0601 where memory, or the means for one more thread, ran out; else E0901.
Error thrown(const std::exception& e);

}  // namespace gk
