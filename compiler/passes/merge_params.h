// Two parameters of a kernel become one, where a pass found that they are the same memory, read and written
// at the same points through one access. Owns nothing.
#pragma once

#include "compiler/passes/draft.h"

namespace gk::passes {

/// `read` goes away, `written` is read and written. Updates the step's arguments and buffer uses too.
void merge_params(LoweredStep& s, int read, int written);

}  // namespace gk::passes
