// Words for errors about operands. Owns the phrase "add f32[2] and f32[3]" that messages are made of, and
// the explanation of a failed broadcast. Promises that sema and the IR rules say the same thing for the same
// mistake. Not for spans or labels: whoever has the source adds them.
#pragma once

#include <span>
#include <string>

#include "compiler/ir/ops.h"

namespace gk::ir {

/// "add f32[B=2, C=4] and f32[B=2]", "subtract f32[2] from f32[3]", "apply minimum to i8[] and i8[2]".
std::string phrase(Op op, std::span<const Type> operands);
/// The same of operands in words.
std::string phrase(Op op, std::span<const std::string> operands);

/// E0301 for two operands whose shapes do not broadcast: "cannot <phrase>", with the note on the axes that
/// disagree and, where one more axis would do, a help. Requires that broadcast(a.dims, b.dims) fails.
Error broadcast_error(Op op, const Type& a, const Type& b);

}  // namespace gk::ir
