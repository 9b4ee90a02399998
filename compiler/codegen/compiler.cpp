// Compiler: keys, caches, threads, and packing into a Program.
#include <fmt/format.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "compiler/codegen/apart.h"
#include "compiler/codegen/disk_cache.h"
#include "compiler/codegen/machine.h"
#include "compiler/codegen/shells.h"
#include "runtime/base/process.h"
#include "runtime/base/thrown.h"

namespace gk::codegen {

using program::Code;
using program::TargetKind;

namespace {

/// Raised whenever the same kernel text gives other code.
constexpr const char* kVersion = "gk codegen 5";
constexpr size_t kMostThreads = 16;
/// Kernels of more instructions are compiled where nobody has to wait for them; smaller ones take less than
/// anybody notices.
constexpr size_t kHeavy = 100;
constexpr size_t kCompileBytes = size_t{64} << 20;  // what LLVM may map for one kernel, roughly
constexpr size_t kHelperBytes = size_t{144} << 20;  // with a stack, and what malloc reserves for a thread

double elapsed_ms(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
}

std::string digest(const std::string& text) {
  const auto hash =
      llvm::SHA256::hash(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  return llvm::toHex(llvm::ArrayRef<uint8_t>(hash.data(), hash.size()), true);
}

const char* stem(ir::Kernel::Kind k) {
  switch (k) {
    case ir::Kernel::Kind::Map: return "gk_map_";
    case ir::Kernel::Kind::Reduce: return "gk_reduce_";
    case ir::Kernel::Kind::MatMul: return "gk_matmul_";
    case ir::Kernel::Kind::User: return "gk_user_";
  }
  return "gk_";
}

/// The entry's name in texts that people read: after what the kernel does.
std::string entry_in_text(const ir::Kernel& k) {
  constexpr size_t kLongest = 64;
  std::string name = stem(k.kind);
  for (char c : k.name) {
    if (name.size() >= kLongest) break;
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain || name.back() != '_') name += plain ? c : '_';
  }
  return name.back() == '_' ? name + "kernel" : name;
}

void emit_kernel(llvm::Module& m, const ir::Kernel& k, const Variant& v, const std::string& name) {
  Emitter e(m, k, v);
  const bool cuda = v.kind == TargetKind::Cuda;
  switch (k.kind) {
    case ir::Kernel::Kind::Map:
    case ir::Kernel::Kind::User: return cuda ? map_cuda(e, name) : map_host(e, name);
    case ir::Kernel::Kind::Reduce: return cuda ? reduce_cuda(e, name) : reduce_host(e, name);
    case ir::Kernel::Kind::MatMul: return cuda ? matmul_cuda(e, name) : matmul_host(e, name);
  }
}

/// Extents for texts made without a launch: what is not fixed counts as large.
Extents guess_extents(const ir::Kernel& k) {
  Extents e;
  for (const ir::KSize& s : k.axes) e.axes.push_back(s.param < 0 ? s.value : 1024);
  for (const ir::KSize& s : k.reduce_axes) e.reduce_axes.push_back(s.param < 0 ? s.value : 1024);
  return e;
}

/// About how long its code takes to make.
size_t instructions(const ir::KBlock& b) {
  size_t n = b.insts.size();
  for (const ir::KInst& i : b.insts)
    for (const auto& inner : i.blocks) n += instructions(*inner);
  return n;
}

/// One kernel to be compiled, and what became of it.
struct Job {
  std::shared_ptr<const ir::Kernel> kernel;
  Variant variant;
  std::string key;
  std::shared_ptr<const Code> code;
  std::optional<Error> error;
};

}  // namespace

struct Compiler::Impl {
  Impl(Target t, std::string folder, Warn warn)
      : target(t), disk(std::move(folder), std::move(warn)), machine(machine_text(t)) {}

  Code::Format format() const {
    if (target.kind == TargetKind::Host) return Code::Format::HostObject;
    return assembler ? Code::Format::Cubin : Code::Format::Ptx;
  }

  std::string key_of(const ir::Kernel& k, const Variant& v) const {
    std::string text = std::string(kVersion) + "\n" + machine + "\n" + v.text() + "\n";
    text += assembler ? "cubin\n" : "\n";
    return digest(text + ir::key(k));
  }

  /// Optimised code as text or object.
  Result<std::string> generate(const std::shared_ptr<const ir::Kernel>& k, const Variant& v,
                               const std::string& name, bool llvm_text, const Interrupted& interrupted = {}) {
    GK_TRY(std::shared_ptr<Machine> machine_for, borrow_machine(v.kind, k->fast_math));
    const Work work = [machine_for, k, v, name, llvm_text](const Interrupted& unwanted) {
      return generate(*machine_for, *k, v, name, llvm_text, unwanted);
    };
    const bool heavy = interrupted && instructions(k->body) + instructions(k->epilogue) > kHeavy &&
                       address_space_left(kCompileBytes + kHelperBytes);
    auto text = heavy ? run_apart(work, interrupted, machine_for->code()) : work(interrupted);
    if (!text && text.error().kind == ErrorKind::Interrupted) return text;  // it may be in use still
    const std::lock_guard lock(mutex);
    idle[{v.kind, k->fast_math}].push_back(std::move(machine_for));
    return text;
  }

  // A machine takes as long to make as a small kernel to compile, and serves one thread at a time.
  Result<std::shared_ptr<Machine>> borrow_machine(TargetKind kind, bool fast_math) {
    {
      const std::lock_guard lock(mutex);
      auto& waiting = idle[{kind, fast_math}];
      if (!waiting.empty()) {
        auto m = std::move(waiting.back());
        waiting.pop_back();
        return m;
      }
    }
    Target t = target;
    t.kind = kind;
    return Machine::create(t, fast_math);
  }

  // Touches nothing of this object: it may go on when nobody waits for it any more.
  static Result<std::string> generate(const Machine& machine_for, const ir::Kernel& k, const Variant& v,
                                      const std::string& name, bool llvm_text,
                                      const Interrupted& interrupted) {
    GK_CHECK(ir::verify(k));
    llvm::LLVMContext context;
    // Remarks and warnings (a loop that was not unrolled) are nobody's business at run time.
    context.setDiagnosticHandlerCallBack([](const llvm::DiagnosticInfo*, void*) {}, nullptr);
    llvm::Module module(name, context);
    machine_for.prepare(module);
    emit_kernel(module, k, v, name);
    GK_CHECK(machine_for.optimise(module, interrupted));
    if (interrupted && interrupted()) return fail(ErrorKind::Interrupted, "E0806", "interrupted");
    if (!llvm_text) return machine_for.emit(module);
    std::string text;
    llvm::raw_string_ostream out(text);
    module.print(out, nullptr);
    return text;
  }

  void compile(Job& job, const Interrupted& interrupted) {
    const auto start = std::chrono::steady_clock::now();
    auto code = std::make_shared<Code>();
    const std::string name = stem(job.kernel->kind) + job.key.substr(0, 12);
    auto bytes = generate(job.kernel, job.variant, name, false, interrupted);
    const double llvm_ms = elapsed_ms(start);
    double assemble_ms = 0;
    if (bytes && target.kind == TargetKind::Cuda && assembler) {
      const auto assembling = std::chrono::steady_clock::now();
      bytes = assembler(*bytes, target.sm);
      assemble_ms = elapsed_ms(assembling);
    }
    if (!bytes) {
      job.error = std::move(bytes).error();
      return;
    }
    code->format = format();
    code->key = job.key;
    code->bytes = std::move(*bytes);
    code->functions.push_back(name);
    disk.put(*code);
    job.code = code;
    const std::lock_guard lock(mutex);
    codes.emplace(job.key, job.code);
    ++stats.kernels_compiled;
    stats.llvm_ms += llvm_ms;
    stats.assemble_ms += assemble_ms;
  }

  // An exception must not leave a thread, and LLVM gives nothing else when memory runs out.
  void compile_one(Job& job, const Interrupted& interrupted) {
    if (!address_space_left(kCompileBytes)) {
      job.error = out_of_host_memory().note(
          fmt::format("making code needs {} MiB of address space", kCompileBytes >> 20));
      return;
    }
    try {
      compile(job, interrupted);
    } catch (const std::exception& e) {
      job.error = thrown(e);
    }
  }

  /// From memory or disk; null: has to be compiled.
  std::shared_ptr<const Code> find(const std::string& key) {
    {
      const std::lock_guard lock(mutex);
      if (auto it = codes.find(key); it != codes.end()) {
        ++stats.memory_cache_hits;
        return it->second;
      }
    }
    auto code = disk.find(key, format());
    if (!code) return nullptr;
    const std::lock_guard lock(mutex);
    ++stats.disk_cache_hits;
    from_disk.insert(key);
    codes.emplace(key, code);
    return code;
  }

  void compile_all(std::vector<Job*> jobs, const Interrupted& interrupted) {
    std::atomic<size_t> next{0};
    auto work = [&] {
      for (size_t i = next++; i < jobs.size(); i = next++) {
        if (interrupted && interrupted())
          jobs[i]->error = make_error(ErrorKind::Interrupted, "E0806", "interrupted");
        else
          compile_one(*jobs[i], interrupted);
      }
    };
    size_t threads = std::min({jobs.size(), size_t{std::thread::hardware_concurrency()}, kMostThreads});
    while (threads > 1 && !address_space_left(kCompileBytes + (threads - 1) * kHelperBytes)) --threads;
    std::vector<std::thread> helpers;
    try {
      for (size_t t = 1; t < threads; ++t) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // Those that could be started, and this one, do it.
    }
    work();
    for (std::thread& t : helpers) t.join();
  }

  Target target;
  DiskCache disk;
  std::string machine;
  Assembler assembler;
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Code>> codes;
  std::set<std::string> from_disk;  // keys of codes that the disk gave
  std::map<std::pair<TargetKind, bool>, std::vector<std::shared_ptr<Machine>>> idle;  // by target, fast_math
  Stats stats;
};

Compiler::Compiler(Target target, std::string cache_dir, Warn warn)
    : impl_(std::make_unique<Impl>(target, std::move(cache_dir), std::move(warn))) {}
Compiler::~Compiler() = default;
const Target& Compiler::target() const { return impl_->target; }
void Compiler::set_assembler(Assembler assembler) { impl_->assembler = std::move(assembler); }

Stats Compiler::stats() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->stats;
}

Result<std::shared_ptr<const program::Program>> Compiler::build(passes::Schedule schedule,
                                                                const Interrupted& interrupted) {
  program::Program& p = schedule.program;
  std::vector<Job> jobs;
  std::map<std::string, size_t> job_of_key;
  std::vector<size_t> job_of_step(p.steps.size(), 0);
  for (size_t s = 0; s < p.steps.size(); ++s) {
    program::Step& step = p.steps[s];
    for (size_t b = 0; b < step.bodies.size(); ++b) {
      GK_TRY(step.bodies[b].program, build(std::move(schedule.bodies[s][b]), interrupted));
    }
    if (step.kind != program::Step::Kind::Launch) continue;
    const passes::KernelUse& use = schedule.uses[s];
    const ir::Kernel& k = *schedule.kernels[static_cast<size_t>(use.kernel)];
    std::vector<std::optional<int64_t>> scalars(k.params.size());
    for (size_t a = 0; a < step.args.size() && a < scalars.size(); ++a)
      if (step.args[a].kind == program::Arg::Kind::Value && !step.args[a].value.is_float())
        scalars[a] = step.args[a].value.i;
    const Extents extents{use.axes, use.reduce_axes, use.threads};
    const Variant v = choose_variant(k, impl_->target, extents, scalars);
    step.dims = choose_dims(k, impl_->target, v, extents);
    const std::string key = impl_->key_of(k, v);
    const auto [at, fresh] = job_of_key.emplace(key, jobs.size());
    if (fresh)
      jobs.push_back({schedule.kernels[static_cast<size_t>(use.kernel)], v, key, nullptr, std::nullopt});
    job_of_step[s] = at->second;

    if (!k.uses_faults) continue;
    if (step.fault_sites.empty())
      for (const ir::FaultSite& f : ir::fault_sites(k))
        step.fault_sites.push_back({static_cast<uint8_t>(f.kind), f.span, "", {}});
    program::Arg faults, number;
    faults.kind = program::Arg::Kind::Faults;
    number.kind = program::Arg::Kind::StepIndex;
    step.args.push_back(faults);
    step.args.push_back(number);
    p.uses_faults = true;
  }
  std::vector<Job*> missing;
  for (Job& j : jobs) {
    j.code = impl_->find(j.key);
    if (!j.code) missing.push_back(&j);
  }
  impl_->compile_all(missing, interrupted);
  p.codes.clear();
  for (Job& j : jobs) {
    if (j.error) return fail(std::move(*j.error));
    p.codes.push_back(j.code);
  }
  for (size_t s = 0; s < p.steps.size(); ++s) {
    if (p.steps[s].kind != program::Step::Kind::Launch) continue;
    p.steps[s].code = static_cast<int32_t>(job_of_step[s]);
    p.steps[s].function = p.codes[job_of_step[s]]->functions.at(0);
  }
  return std::make_shared<const program::Program>(std::move(p));
}

bool Compiler::distrust(const program::Program& p) {
  bool any = false;
  for (const auto& code : p.codes) {
    {
      const std::lock_guard lock(impl_->mutex);
      if (impl_->from_disk.erase(code->key) == 0) continue;
      impl_->codes.erase(code->key);
    }
    impl_->disk.remove(code->key);
    any = true;
  }
  for (const auto& step : p.steps)
    for (const auto& body : step.bodies) any = distrust(*body.program) || any;
  return any;
}

Result<std::string> Compiler::llvm_text(const std::shared_ptr<const ir::Kernel>& k,
                                        const Interrupted& interrupted) {
  const Variant v = choose_variant(*k, impl_->target, guess_extents(*k), {});
  return impl_->generate(k, v, entry_in_text(*k), true, interrupted);
}

Result<std::string> Compiler::ptx_text(const std::shared_ptr<const ir::Kernel>& k,
                                       const Interrupted& interrupted) {
  Target t = impl_->target;
  t.kind = TargetKind::Cuda;
  const Variant v = choose_variant(*k, t, guess_extents(*k), {});
  return impl_->generate(k, v, entry_in_text(*k), false, interrupted);
}

}  // namespace gk::codegen
