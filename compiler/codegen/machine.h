// LLVM's target machines, the optimisation pipeline and the emission of objects and assembly. Owns the choice
// of CPU, PTX version and floating-point options. Promises that one Machine serves one thread, and that
// nothing is fused or reassociated by the back end unless asked. Not for what the code does.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compiler/codegen/codegen.h"
#include "runtime/base/error.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace gk::codegen {

/// "x86_64… znver3 +avx2…", "sm_90 +ptx78 LLVM 22.1": what a machine depends on, for the key.
std::string machine_text(const Target& target);

class Machine {
 public:
  static Result<std::unique_ptr<Machine>> create(const Target& target, bool fast_math);
  ~Machine();
  void prepare(llvm::Module& m) const;  // triple, data layout, module flags
  /// Verifies, links libdevice's functions where used, optimises. Errors: Interrupted once `interrupted` is
  /// true, which each pass asks first.
  Result<void> optimise(llvm::Module& m, const std::function<bool()>& interrupted = {}) const;
  /// A relocatable object (host) or PTX; `assembly`: text on the host too.
  Result<std::string> emit(llvm::Module& m, bool assembly = false) const;
  /// An address in the code of LLVM.
  const void* code() const;

 private:
  Machine();
  Target target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::string vector_width_;
};

}  // namespace gk::codegen
