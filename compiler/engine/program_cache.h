// From traced modules to loaded programs. Owns the compiler, and keeps programs by the structure of their
// module: scalar values and names are not part of it, and code is shared between programs whose kernels have
// equal text, so a new extent or value compiles nothing. Promises the same program for the same structure, to
// all threads that ask; of the programs those used last are kept, up to a limit. Thread-safe: one compiles at
// a time, and what is known is had meanwhile.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "compiler/codegen/codegen.h"
#include "compiler/engine/effects_base.h"
#include "compiler/engine/lru.h"
#include "compiler/ir/module.h"
#include "runtime/exec/exec.h"

namespace gk::engine {

/// The structure of a module as bytes: ops, operands, attributes, types, slots; spans only where a fault may
/// name them. Not names, not the values of scalar parameters.
std::string structure_key(const ir::Module& m);

/// How a kernel of one's own is laid out; zeros leave it to the compiler.
struct Layout {
  uint32_t grid = 0;
  uint32_t shared_bytes = 0;
  bool given() const { return grid || shared_bytes; }
};

class ProgramCache {
 public:
  /// What one asker wants to know of what is done for it.
  struct Asker {
    Counters& counters;
    const std::function<void(std::string_view)>& progress;
    EmitLog* log = nullptr;
    std::function<bool()> interrupted{};  // asked every few milliseconds
  };
  /// `warn` (may be null) is told what is no error, on the thread that asks.
  ProgramCache(hal::Device& device, const std::string& cache_dir, codegen::Compiler::Warn warn = {},
               NanCheck nan_check = {});
  /// Compiles what is new, loads it, keeps it. Errors: of the compiler and the loader; Interrupted E0806.
  Result<std::shared_ptr<exec::Loaded>> get(exec::Runtime& runtime, const ir::Module& m, const Asker& asker,
                                            const Layout& shape = {});
  codegen::Compiler& compiler() { return *compiler_; }
  struct Stats {
    int64_t compiles = 0, hits = 0;
  };
  Stats stats();

 private:
  passes::Options pass_options();
  /// Null: it is not known, or the asker wants to see it made.
  std::shared_ptr<exec::Loaded> find(const std::string& key, const Asker& asker);
  Result<std::shared_ptr<exec::Loaded>> make(exec::Runtime& runtime, const ir::Module& m, const Asker& asker,
                                             const Layout& shape);
  Result<std::shared_ptr<const program::Program>> compile(const ir::Module& m, const Asker& asker,
                                                          const Layout& shape);

  static constexpr int64_t kMostBytes = int64_t{16} << 20;

  std::mutex compiling_;  // of who compiles
  std::mutex mutex_;      // the statistics and the entries; never held while something is compiled
  Stats stats_;
  hal::Device& device_;
  const NanCheck nan_check_;
  std::unique_ptr<codegen::Compiler> compiler_;
  Lru<std::shared_ptr<exec::Loaded>> entries_{kMostBytes};
};

}  // namespace gk::engine
