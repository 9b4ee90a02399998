// Effects on a device of the runtime: units compiled, loaded and run; graphs built, launched and updated.
// Owns nothing but its way to a runtime and a program cache, which sessions have to themselves and the
// contexts of an engine share. While the runtime records, what is executed becomes part of the graph.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/engine/effects_base.h"
#include "compiler/engine/program_cache.h"
#include "runtime/exec/exec.h"

namespace gk::engine {

/// What Storage::memory points to.
struct Memory {
  memory::BlockPtr block;               // device or pinned
  int64_t offset_bytes = 0;             // where the array begins in it
  std::shared_ptr<interp::Array> host;  // host placement
  memory::BlockPtr device_copy;         // of a host array, made at its first use on the device
  // What the device wrote stands in the copy alone until the host reads the array.
  bool copy_is_newer = false;
  bool written_by_graphs = false;  // any launch may have written the copy
  // Not null: the elements are still in a file, and there is no memory for them yet.
  std::function<Result<interp::Array>()> stored{};
};

/// What the embedding interface asks beside sema.
class DeviceEffectsBase : public EffectsBase {
 public:
  /// The memory that work on an array touches; a host array is sent over once.
  virtual Result<exec::SlotBinding> slot_of(sema::Storage& s) = 0;

  struct Collected {
    std::shared_ptr<exec::Loaded> program;
    exec::Bindings bindings;
    Span span{};
  };
  /// Not null: what is executed is gathered here and nothing runs.
  std::vector<Collected>* collected = nullptr;
  Layout layout;  // of what is executed next
};

/// A session's own: device, runtime and cache. Errors: Device E0501, E0502.
Result<std::unique_ptr<EffectsBase>> make_device_effects(const std::string& device,
                                                         int64_t memory_limit_bytes,
                                                         const std::string& cache_dir,
                                                         codegen::Compiler::Warn warn = {},
                                                         NanCheck nan_check = {});
std::unique_ptr<DeviceEffectsBase> make_device_effects(std::shared_ptr<exec::Runtime> runtime,
                                                       std::shared_ptr<ProgramCache> cache);

/// Lets hal/host load what codegen makes. Idempotent, thread-safe.
void install_host_loader();

}  // namespace gk::engine
