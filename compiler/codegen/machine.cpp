#include "compiler/codegen/machine.h"

#include <gk_libdevice.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <set>

#include "compiler/codegen/llvm.h"

namespace gk::codegen {

namespace {

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    // LLVM ends the process by itself when memory runs out. What its frames hold is lost then.
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // A second, narrower copy of every vector loop costs more to compile than the last few elements gain by
    // it.
    auto& options = llvm::cl::getRegisteredOptions();
    if (const auto it = options.find("enable-epilogue-vectorization"); it != options.end())
      static_cast<llvm::cl::opt<bool>*>(it->second)->setValue(false);
  });
}

/// The newest architecture that LLVM knows and whose PTX runs on `sm`, with the oldest PTX version that has
/// it; never below 7.8, which every driver since CUDA 11.8 takes.
std::pair<int, int> ptx_version(int sm) {
  static constexpr std::pair<int, int> kKnown[] = {{75, 78},  {80, 78},  {86, 78},  {87, 78},
                                                   {89, 78},  {90, 78},  {100, 86}, {103, 88},
                                                   {110, 90}, {120, 87}, {121, 88}};
  std::pair<int, int> best = kKnown[0];
  for (const auto& k : kKnown)
    if (k.first <= sm) best = k;
  return best;
}

struct HostCpu {
  std::string triple, cpu, features;
  bool wide = false;
};

HostCpu host_cpu(const std::string& named) {
  HostCpu h;
  h.triple = llvm::sys::getProcessTriple();
  if (!named.empty()) {
    h.cpu = named;
    return h;
  }
  h.cpu = llvm::sys::getHostCPUName().str();
  std::set<std::string> sorted;
  for (const auto& f : llvm::sys::getHostCPUFeatures()) {
    sorted.insert((f.second ? "+" : "-") + f.first().str());
    if (f.first() == "avx512vnni" && f.second) h.wide = true;
  }
  for (const std::string& f : sorted) h.features += (h.features.empty() ? "" : ",") + f;
  return h;
}

// Note [Passes over host code]
// Kernels are small and come straight from expressions: what pays are numbers kept in registers, loops in the
// form that the vectoriser wants, vectors, and a cleaning before and after. Everything here is at most about
// linear in the code; LLVM's own pipelines take several times as long and give no faster kernels.
constexpr const char* kHostPasses =
    "function(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-rotate,licm),simplifycfg,instcombine<no-verify-fixpoint>,loop(indvars),loop-vectorize,"
    "instcombine<no-verify-fixpoint>,simplifycfg<hoist-common-insts>,loop-unroll<O3>,early-cse<memssa>,"
    "loop-mssa(licm),instcombine<no-verify-fixpoint>,adce,simplifycfg)";
/// The functions that the optimiser may put in the place of loops: those of host_symbols.cpp. It knows many
/// more (strlen, memcmp …), which nobody links.
llvm::TargetLibraryInfoImpl known_functions(const llvm::Triple& triple, bool cuda) {
  llvm::TargetLibraryInfoImpl known(triple);
  known.disableAllFunctions();
  if (!cuda)
    for (const llvm::LibFunc f : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset})
      known.setAvailable(f);
  return known;
}

Error llvm_error(std::string what) { return make_error(ErrorKind::Internal, "E0901", std::move(what)); }

}  // namespace

std::string machine_text(const Target& target) {
  std::string text = "LLVM " LLVM_VERSION_STRING " ";
  if (target.kind == program::TargetKind::Cuda) {
    const auto [sm, ptx] = ptx_version(target.sm);
    return text + "sm_" + std::to_string(sm) + " ptx" + std::to_string(ptx);
  }
  const HostCpu h = host_cpu(target.cpu);
  return text + h.triple + " " + h.cpu + " " + h.features;
}

Machine::Machine() = default;
Machine::~Machine() = default;

// Its first virtual function; the address of a function by its name may be that of a jump to it.
const void* Machine::code() const { return **reinterpret_cast<const void* const* const*>(machine_.get()); }

Result<std::unique_ptr<Machine>> Machine::create(const Target& target, bool fast_math) {
  initialise_llvm();
  std::unique_ptr<Machine> m(new Machine);
  m->target_ = target;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = fast_math ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Strict;
  options.FunctionSections = false;
  std::string triple, cpu, features;
  if (target.kind == program::TargetKind::Cuda) {
    const auto [sm, ptx] = ptx_version(target.sm);
    triple = "nvptx64-nvidia-cuda";
    cpu = "sm_" + std::to_string(sm);
    features = "+ptx" + std::to_string(ptx);
  } else {
    const HostCpu h = host_cpu(target.cpu);
    triple = h.triple;
    cpu = h.cpu;
    features = h.features;
    if (h.wide) m->vector_width_ = "512";
  }
  std::string why;
  const llvm::Triple t(triple);
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(t, why);
  if (!found) return fail(llvm_error("LLVM has no target " + triple + ": " + why));
  m->machine_.reset(found->createTargetMachine(t, cpu, features, options, llvm::Reloc::PIC_,
                                               llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!m->machine_) return fail(llvm_error("LLVM could not make a machine for " + triple + " " + cpu));
  return m;
}

void Machine::prepare(llvm::Module& m) const {
  m.setTargetTriple(machine_->getTargetTriple());
  m.setDataLayout(machine_->createDataLayout());
  if (target_.kind == program::TargetKind::Cuda)
    m.addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", 0u);
  if (target_.kind != program::TargetKind::Host) return;
  const bool fma = machine_->getMCSubtargetInfo()->checkFeatures("+fma");
  m.addModuleFlag(llvm::Module::Override, "gk-fma", fma ? 1u : 0u);
  m.addModuleFlag(llvm::Module::Override, "gk-f64-lanes", vector_width_ == "512" ? 8u : fma ? 4u : 2u);
}

Result<void> Machine::optimise(llvm::Module& m, const std::function<bool()>& interrupted) const {
  std::string why;
  llvm::raw_string_ostream out(why);
  if (llvm::verifyModule(m, &out)) return fail(llvm_error("generated code is malformed: " + why));
  const bool cuda = target_.kind == program::TargetKind::Cuda;
  bool math = false;
  for (llvm::Function& f : m) math |= f.isDeclaration() && f.getName().starts_with("__nv_");
  if (cuda && math) {
    const std::string_view bytes = libdevice_bitcode();
    if (bytes.empty()) return fail(llvm_error("this build has no libdevice"));
    auto library = llvm::getLazyBitcodeModule(
        llvm::MemoryBufferRef(llvm::StringRef(bytes.data(), bytes.size()), "libdevice"), m.getContext());
    if (!library) return fail(llvm_error("libdevice: " + llvm::toString(library.takeError())));
    (*library)->setTargetTriple(m.getTargetTriple());
    (*library)->setDataLayout(m.getDataLayout());
    if (llvm::Linker::linkModules(m, std::move(*library), llvm::Linker::LinkOnlyNeeded))
      return fail(llvm_error("libdevice could not be linked"));
    for (llvm::Function& f : m)
      if (!f.isDeclaration() && f.getCallingConv() != llvm::CallingConv::PTX_Kernel)
        f.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  if (!vector_width_.empty())
    for (llvm::Function& f : m)
      if (!f.isDeclaration()) f.addFnAttr("prefer-vector-width", vector_width_);

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = !cuda;
  tuning.SLPVectorization = false;
  llvm::PassInstrumentationCallbacks callbacks;
  bool stopped = false;
  if (interrupted)
    callbacks.registerShouldRunOptionalPassCallback([&](llvm::StringRef, llvm::Any) {
      stopped = stopped || interrupted();
      return !stopped;
    });
  llvm::PassBuilder builder(machine_.get(), tuning, std::nullopt, &callbacks);
  functions.registerPass(
      [&] { return llvm::TargetLibraryAnalysis(known_functions(machine_->getTargetTriple(), cuda)); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  if (cuda) {
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(m, modules);
  } else {
    llvm::ModulePassManager passes;
    if (auto e = builder.parsePassPipeline(passes, kHostPasses))
      return fail(llvm_error("the passes over host code: " + llvm::toString(std::move(e))));
    passes.run(m, modules);
  }
  // The loop vectoriser had functions of vectors to choose from.
  if (llvm::GlobalVariable* kept = m.getGlobalVariable("llvm.compiler.used", true)) {
    kept->eraseFromParent();
    for (llvm::Function& f : llvm::make_early_inc_range(m)) {
      f.removeDeadConstantUsers();
      if (f.hasInternalLinkage() && f.use_empty()) f.eraseFromParent();
    }
  }
  if (stopped) return fail(ErrorKind::Interrupted, "E0806", "interrupted");
  return {};
}

Result<std::string> Machine::emit(llvm::Module& m, bool assembly) const {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(
      known_functions(machine_->getTargetTriple(), target_.kind == program::TargetKind::Cuda)));
  const auto type = assembly || target_.kind == program::TargetKind::Cuda
                        ? llvm::CodeGenFileType::AssemblyFile
                        : llvm::CodeGenFileType::ObjectFile;
  if (machine_->addPassesToEmitFile(passes, out, nullptr, type))
    return fail(llvm_error("LLVM cannot emit this file type"));
  passes.run(m);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace gk::codegen
