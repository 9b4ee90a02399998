// The version text: what was built, and with what.
#include <fmt/format.h>

#include "gk_config.h"
#include "include/gk/gk.h"

namespace gk {

std::string version() {
  return fmt::format("gk {} (LLVM {}, CUDA headers {})", GK_VERSION, GK_LLVM_VERSION, GK_CUDA_VERSION);
}

}  // namespace gk
