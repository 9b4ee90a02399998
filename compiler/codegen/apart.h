// Work that nobody may have to wait for: it runs on a thread of its own, on data that it owns, while the
// caller asks now and then whether it is still wanted. Owns the threads whose work became unwanted until they
// have ended. Promises that none of them runs when the process begins to destroy what LLVM keeps, and that
// its end is not delayed by them. Not for short work, which a thread costs more than.
#pragma once

#include <functional>
#include <string>

#include "compiler/codegen/codegen.h"
#include "runtime/base/error.h"

namespace gk::codegen {

/// Asked by the work, on its own thread: whether to stop soon. It outlives the call.
using Work = std::function<Result<std::string>(const Interrupted& unwanted)>;

/// What `work` gives, or Interrupted E0806 soon after `interrupted` is true, which the calling thread asks
/// every few milliseconds. The work then goes on to where it asks itself; it must hold what it uses. `code`
/// is an address in the code of LLVM: see Note [Threads that nobody waits for].
Result<std::string> run_apart(Work work, const Interrupted& interrupted, const void* code);

}  // namespace gk::codegen
