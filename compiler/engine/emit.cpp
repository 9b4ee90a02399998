// --emit: texts of what the compiler made.
#include <fmt/format.h>

#include <set>

#include "compiler/engine/program_cache.h"
#include "compiler/engine/session_impl.h"

namespace gk {

namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) out += (i ? "\n" : "") + parts[i];
  return out;
}

void kernels_of(const passes::Schedule& s, std::vector<std::shared_ptr<const ir::Kernel>>& out) {
  out.insert(out.end(), s.kernels.begin(), s.kernels.end());
  for (const auto& step : s.bodies)
    for (const auto& body : step) kernels_of(body, out);
}

// The kernels of all units, compiled for a target that may not be the one they ran on.
Result<std::string> code_of(const std::vector<std::shared_ptr<ir::Module>>& modules, program::TargetKind kind,
                            int sm, bool ptx, const codegen::Interrupted& interrupted) {
  codegen::Target target;
  target.kind = kind;
  target.sm = sm;
  codegen::Compiler compiler(target, "");
  passes::Options options;
  options.target = kind;
  options.interrupted = interrupted;
  std::set<std::string> seen;
  std::string out;
  for (const auto& m : modules) {
    GK_TRY(auto schedule, passes::run_pipeline(*m, options));
    std::vector<std::shared_ptr<const ir::Kernel>> kernels;
    kernels_of(schedule, kernels);
    for (const auto& k : kernels) {
      if (!seen.insert(ir::key(*k)).second) continue;
      GK_TRY(auto text, ptx ? compiler.ptx_text(k, interrupted) : compiler.llvm_text(k, interrupted));
      out += text + "\n";
    }
  }
  return out;
}

}  // namespace

Status Session::Impl::emitted(Emit what, std::string& result, const std::function<Status()>& body) {
  const auto interrupted = [this] { return interrupt_flag.load(std::memory_order_relaxed); };
  auto& log = effects->emit_log;
  log = {};
  log.on = true;
  const Status s = body();
  log.on = false;
  switch (what) {
    case Emit::Ir: result = joined(log.ir); break;
    case Emit::Plan: result = joined(log.plans); break;
    case Emit::Graph: result = joined(log.graphs); break;
    case Emit::Dot: result = joined(log.dots); break;
    case Emit::Llvm:
    case Emit::Ptx: {
      const bool ptx = what == Emit::Ptx;
      const bool cuda = effects->device_json().find("\"cuda") != std::string::npos;
      auto code = code_of(log.modules, ptx || cuda ? program::TargetKind::Cuda : program::TargetKind::Host,
                          options.emit_sm ? options.emit_sm : 75, ptx, interrupted);
      if (!code) return report(code.error(), true);
      result = *code;
      break;
    }
    case Emit::Ast: break;
  }
  return s;
}

Status Session::Impl::emit_tree(std::string_view name, std::string_view text, std::string& result) {
  const int32_t file = sources.add(std::string(name), std::string(text));
  auto parsed =
      syntax::parse(sources, file, [this] { return interrupt_flag.load(std::memory_order_relaxed); });
  if (!parsed.errors.empty()) return report_all(parsed.errors, true);
  result = syntax::dump(parsed.module);
  return Status::Ok;
}

Status Session::emit(Emit what, std::string_view name, std::string_view text, std::string& result) {
  if (what < Emit::Ast || what > Emit::Dot)
    return impl_->report(make_error(ErrorKind::Type, "E0512", "what to emit is no gk::Emit"), false);
  impl_->interrupt_flag = false;
  if (what == Emit::Ast) return impl_->emit_tree(name, text, result);
  if (impl_->opened != Status::Ok) return impl_->opened;
  return impl_->emitted(what, result, [&] { return run(name, text); });
}

}  // namespace gk
