// From traced modules to loaded programs. Owns the compiler, and keeps programs by the structure of their
// module: scalar values and names are not part of it, and code is shared between programs whose kernels have
// equal text, so a new extent or value compiles nothing. Promises the same program for the same structure.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "compiler/codegen/codegen.h"
#include "compiler/engine/effects_base.h"
#include "compiler/ir/module.h"
#include "runtime/exec/exec.h"

namespace gk::engine {

/// The structure of a module as bytes: ops, operands, attributes, types, slots; spans only where a fault may
/// name them. Not names, not the values of scalar parameters.
std::string structure_key(const ir::Module& m);

class ProgramCache {
 public:
  ProgramCache(exec::Runtime& runtime, const std::string& cache_dir, Counters& counters,
               const std::function<void(std::string_view)>& progress);
  /// Compiles what is new, loads it, keeps it.
  Result<std::shared_ptr<exec::Loaded>> get(const ir::Module& m, Recording* recording);
  codegen::Compiler& compiler() { return *compiler_; }

 private:
  passes::Options pass_options(const ir::Module& m);

  exec::Runtime& runtime_;
  Counters& counters_;
  const std::function<void(std::string_view)>& progress_;
  std::unique_ptr<codegen::Compiler> compiler_;
  struct Entry {
    std::shared_ptr<exec::Loaded> loaded;
    std::vector<std::shared_ptr<const ir::Kernel>> kernels;  // alive while the key holds their addresses
  };
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace gk::engine
