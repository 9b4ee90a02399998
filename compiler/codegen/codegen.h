// Kernel IR to machine code, for the host CPU (ORC object) and NVIDIA GPUs (PTX, then cubin by
// ptxas-equivalent in the driver or by the ptxas program at test time). The only user of LLVM. Promises:
// equal kernel keys give equal code; + - * / sqrt are never contracted (unless fast_math); code never reads
// or writes outside its arrays.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/passes/pipeline.h"
#include "runtime/base/error.h"
#include "runtime/program/program.h"

namespace gk::codegen {

using Interrupted = std::function<bool()>;

struct Target {
  program::TargetKind kind = program::TargetKind::Host;
  std::string cpu;            // Host: an x86-64 processor by LLVM's name; empty: this machine's
  int sm = 90;                // Cuda: 75, 80, 86, 89, 90, 100, 120 …
  int multiprocessors = 132;  // Cuda
  int64_t shared_bytes_max = 48 * 1024;
};

struct Stats {
  int64_t kernels_compiled = 0;
  int64_t memory_cache_hits = 0;
  int64_t disk_cache_hits = 0;
  double llvm_ms = 0, assemble_ms = 0;
};

/// Compiles kernels and keeps their code, in memory and, for a non-empty cache_dir, on disk (processes of one
/// user may share it; what cannot be trusted is a miss). Thread-safe.
class Compiler {
 public:
  /// Told what is no error, on the thread that compiles; may be null.
  using Warn = std::function<void(const Error&)>;
  Compiler(Target target, std::string cache_dir, Warn warn = {});
  ~Compiler();
  /// PTX to a cubin (the driver's linker, by the engine): with one, codes of new programs are cubins and
  /// these, not the PTX, are what the disk keeps. Set before the first build.
  using Assembler = std::function<Result<std::string>(const std::string& ptx, int sm)>;
  void set_assembler(Assembler assembler);
  /// Fills codes, functions, launch dims and fault arguments of the schedule. `interrupted` is asked by
  /// several threads, before each kernel, each of LLVM's passes over a small one, and every few milliseconds
  /// while a large one is compiled. Errors: Internal, Interrupted E0806.
  Result<std::shared_ptr<const program::Program>> build(passes::Schedule schedule,
                                                        const Interrupted& interrupted = {});
  /// Text for --emit=llvm and --emit=ptx.
  Result<std::string> llvm_text(const std::shared_ptr<const ir::Kernel>& k,
                                const Interrupted& interrupted = {});
  Result<std::string> ptx_text(const std::shared_ptr<const ir::Kernel>& k,
                               const Interrupted& interrupted = {});
  /// Forgets the codes of a program that cannot be loaded, those on disk too. True where some came from
  /// there: building anew may help.
  bool distrust(const program::Program& p);
  Stats stats() const;
  const Target& target() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Entry points of a host object: fn(params, begin, end).
using HostEntry = void (*)(void* const* params, int64_t begin, int64_t end);
/// A host object linked into this process by LLVM's JIT linker; unlinked when destroyed. The engine wraps it
/// as a hal::Module.
class HostImage {
 public:
  static Result<std::shared_ptr<HostImage>> load(const program::Code& code);
  ~HostImage();
  HostEntry find(std::string_view name) const;  // null: no such function

 private:
  struct Impl;
  explicit HostImage(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gk::codegen
