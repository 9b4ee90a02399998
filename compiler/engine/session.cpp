// gk::Session: check first, then run; diagnostics; tests; statistics.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "compiler/engine/callback.h"
#include "compiler/engine/device_effects.h"
#include "compiler/engine/importer.h"
#include "compiler/engine/inherited.h"
#include "compiler/engine/interp_effects.h"
#include "compiler/engine/session_impl.h"
#include "compiler/sema/builtins.h"
#include "compiler/sema/sites.h"
#include "compiler/syntax/tokens.h"
#include "runtime/base/options.h"
#include "runtime/base/thrown.h"
#include "runtime/hal/device.h"

namespace gk {

using syntax::StmtKind;

namespace {

constexpr size_t kMaxShownErrors = 20;

}  // namespace

void Session::Impl::out(std::string_view text) {
  if (options.out)
    engine::guarded_output(options.out)(text);
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
}

void Session::Impl::err(std::string_view text) {
  if (!options.err) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    return;
  }
  try {
    options.err(text);
  } catch (...) {
    // There is nobody else to tell, and the status tells that there was something.
  }
}

namespace {

syntax::ErrorFormat format_of(const SessionOptions& o) {
  switch (o.format) {
    case DiagnosticFormat::Human: return syntax::ErrorFormat::Human;
    case DiagnosticFormat::Short: return syntax::ErrorFormat::Short;
    case DiagnosticFormat::Json: break;
  }
  return syntax::ErrorFormat::Json;
}

}  // namespace

void Session::Impl::warn(const Error& e) {
  err(syntax::render(sources, e, format_of(options), options.color, "warning"));
}

Status Session::Impl::report(const Error& e, bool compile) {
  err(syntax::render(sources, e, format_of(options), options.color));
  if (e.kind == ErrorKind::Interrupted) return Status::Interrupted;
  if (e.kind == ErrorKind::OutOfMemory) return Status::OutOfMemory;
  return compile ? Status::CompileError : Status::RuntimeError;
}

Status Session::Impl::report_all(const std::vector<Error>& errors, bool compile) {
  Status s = Status::Ok;
  for (size_t i = 0; i < errors.size() && i < kMaxShownErrors; ++i) s = report(errors[i], compile);
  if (errors.size() > kMaxShownErrors && options.format == DiagnosticFormat::Human) {
    // Reading ends at so many syntax errors, checking at so many others.
    const bool ended = errors.size() == syntax::kMaxErrors || errors.size() >= sema::kMostErrors;
    err(fmt::format("… and {}{} more errors\n", ended ? "at least " : "", errors.size() - kMaxShownErrors));
  }
  return s;
}

std::shared_ptr<syntax::Module> Session::Impl::prepare(std::string_view name, std::string_view text,
                                                       Status* status) {
  int32_t file = sources.add(std::string(name), std::string(text));
  auto parsed =
      syntax::parse(sources, file, [this] { return interrupt_flag.load(std::memory_order_relaxed); });
  if (!parsed.errors.empty()) {
    *status = report_all(parsed.errors, true);
    return nullptr;
  }
  auto module = std::make_shared<syntax::Module>(std::move(parsed.module));
  modules.push_back(module);
  auto errors = checker->run(*module, checker->root());
  if (!errors.empty()) {
    *status = report_all(errors, true);
    return nullptr;
  }
  for (const auto& [define, value] : options.defines)
    if (!checker->used_defines.contains(define)) {
      *status = report(make_error(ErrorKind::Usage, "E1101",
                                  fmt::format("-D {}: the program has no const of that name", define)),
                       true);
      return nullptr;
    }
  if (!options.args.empty() && !options.unused_args_help.empty() && !checker->used_args) {
    *status = report(make_error(ErrorKind::Usage, "E1101",
                                fmt::format("the program has no use for its argument `{}`", options.args[0]))
                         .help(options.unused_args_help),
                     true);
    return nullptr;
  }
  *status = Status::Ok;
  return module;
}

Status Session::Impl::run_blocks(StmtKind kind, std::string_view name, std::string_view text,
                                 std::string_view filter, const std::function<Status(const Blocks&)>& body) {
  if (opened != Status::Ok) return opened;
  interrupt_flag = false;
  auto pattern = engine::Pattern::parse(filter);
  if (!pattern) return report(pattern.error(), true);
  return guarded([&] {
    Status s;
    auto module = prepare(name, text, &s);
    if (!module) return s;
    Blocks all;
    for (const auto& stmt : module->stmts)
      if (stmt->kind == kind && pattern->chooses(stmt->text)) all.push_back(stmt.get());
    if (all.empty() && !pattern->chooses_all())
      return report(make_error(ErrorKind::Usage, "E1101",
                               fmt::format("no {} matches `{}`", kind == StmtKind::Test ? "test" : "bench",
                                           pattern->text())),
                    true);
    warn_of_others(kind, *pattern);
    s = execute(*module);
    return s == Status::Ok ? body(all) : s;
  });
}

void Session::Impl::warn_of_others(StmtKind kind, const engine::Pattern& pattern) {
  const char* one = kind == StmtKind::Test ? "test" : "bench";
  const char* many = kind == StmtKind::Test ? "tests" : "benches";
  for (const auto& module : checker->kept_modules) {
    int count = 0;
    for (const auto& stmt : module->stmts) count += stmt->kind == kind && pattern.chooses(stmt->text);
    if (count == 0) continue;
    const std::string& file = sources.name(module->span.file);
    warn(make_error(ErrorKind::Usage, "E1101",
                    count == 1 ? fmt::format("a {} in the imported file {} is not run", one, file)
                               : fmt::format("{} {} in the imported file {} are not run", count, many, file))
             .note(fmt::format("--{} runs those of the file that it is given", one))
             .help(fmt::format("`gkrun --{} {}`", one, file)));
  }
}

Status Session::Impl::settle() {
  auto r = effects->synchronize();
  if (!r) return report(r.error(), false);
  // An interruption that came too late to stop anything still ends the program.
  if (interrupt_flag) return report(make_error(ErrorKind::Interrupted, "E0806", "interrupted"), false);
  return Status::Ok;
}

Status Session::Impl::execute(const syntax::Module& module) {
  runner->satisfied.insert(checker->satisfied.begin(), checker->satisfied.end());
  auto errors = runner->run(module, runner->root());
  if (!errors.empty()) {
    // A fault of work that had been submitted came first.
    if (auto r = effects->synchronize(); !r && errors[0].code != r.error().code) report(r.error(), false);
    return report_all(errors, false);
  }
  return settle();
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// A child by fork() leaves it alone: its threads stayed with the parent.
Session::~Session() {
  if (impl_->home.left()) (void)impl_.release();
}
Status Session::open_status() const { return impl_->opened; }
void Session::interrupt() { impl_->interrupt_flag.store(true, std::memory_order_relaxed); }

/// E0512.
static std::optional<Error> wrong_option(const SessionOptions& o) {
  const auto wrong = [](std::string what) { return make_error(ErrorKind::Type, "E0512", std::move(what)); };
  if (o.memory_limit_bytes < 0)
    return wrong(fmt::format("memory_limit_bytes is {}; 0 stands for no limit", o.memory_limit_bytes));
  if (o.emit_sm < 0) return wrong(fmt::format("emit_sm is {}; 90 stands for sm_90", o.emit_sm));
  if (o.format < DiagnosticFormat::Human || o.format > DiagnosticFormat::Json)
    return wrong("format is no DiagnosticFormat");
  return std::nullopt;
}

std::unique_ptr<Session> Session::open(SessionOptions given) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(given);
  auto& o = impl->options;
  if (auto bad = wrong_option(o)) {
    impl->opened = impl->report(*bad, false);
    return std::unique_ptr<Session>(new Session(std::move(impl)));
  }
  std::string cache;
  if (o.use_cache) cache = o.cache_dir.empty() ? options().cache_dir : o.cache_dir;
  sema::EvalOptions eval;
  eval.args = o.args;
  for (const auto& [n, v] : o.defines) eval.defines[n] = v;
  eval.seeded = o.seeded;
  eval.seed = o.seed;
  eval.unchecked = o.unchecked;
  eval.importer = engine::make_importer(impl->sources);
  eval.interrupted = [p = impl.get()] { return p->interrupt_flag.load(std::memory_order_relaxed); };
  eval.warn = [p = impl.get()](const Error& e) { p->warn(e); };
  impl->checker = std::make_unique<sema::Evaluator>(impl->sources, nullptr, eval);
  std::string device = o.device;
  Result<std::unique_ptr<engine::EffectsBase>> made = nullptr;
  if (device == "interp") {
    made = engine::make_interp_effects(o.memory_limit_bytes);
  } else {
    auto make = [&](const std::string& on) {
      return engine::make_device_effects(on, o.memory_limit_bytes, cache,
                                         [p = impl.get()](const Error& e) { p->warn(e); },
                                         {o.nan_check, o.nan_exempt});
    };
    try {
      made = make(device.empty() ? "cuda" : device);
      if (!made && device.empty()) made = make("host");
    } catch (const std::exception& e) {
      made = fail(thrown(e));
    }
  }
  if (!made) {
    impl->report(made.error(), false);
    impl->opened = made.error().kind == ErrorKind::OutOfMemory ? Status::OutOfMemory : Status::NoDevice;
    return std::unique_ptr<Session>(new Session(std::move(impl)));
  }
  impl->effects = std::move(*made);
  impl->effects->out = [p = impl.get()](std::string_view t) { p->out(t); };
  impl->effects->progress = o.progress;
  impl->effects->interrupt_flag = &impl->interrupt_flag;
  impl->effects->sync = o.sync;
  impl->effects->eager = o.eager;
  impl->effects->nan_check = {o.nan_check, o.nan_exempt};
  impl->effects->memory_limit_bytes = o.memory_limit_bytes;
  impl->runner = std::make_unique<sema::Evaluator>(impl->sources, impl->effects.get(), eval);
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Status Session::Impl::guarded(const std::function<Status()>& body) {
  if (home.left()) return report(engine::used_after_fork(), false);
  try {
    return body();
  } catch (const engine::CallbackThrew& e) {
    return report(e.error(), false);
  } catch (const std::exception& e) {
    return report(thrown(e), false);
  }
}

Status Session::check(std::string_view name, std::string_view text) {
  return impl_->guarded([&] {
    impl_->interrupt_flag = false;
    Status s;
    impl_->prepare(name, text, &s);
    return s;
  });
}

Status Session::run(std::string_view name, std::string_view text) {
  if (impl_->opened != Status::Ok) return impl_->opened;
  return impl_->guarded([&] {
    impl_->interrupt_flag = false;
    Status s;
    auto module = impl_->prepare(name, text, &s);
    return module ? impl_->execute(*module) : s;
  });
}

Status Session::test(std::string_view name, std::string_view text, std::string_view filter,
                     TestReport& report) {
  return impl_->run_blocks(StmtKind::Test, name, text, filter, [&](const Impl::Blocks& tests) {
    Status s = Status::Ok;
    for (const auto* stmt : tests) {
      auto r = impl_->runner->run_apart(*stmt->body, impl_->runner->root());
      if (r) r = impl_->effects->synchronize();
      if (r) {
        ++report.passed;
        impl_->out(fmt::format("test \"{}\" ... ok\n", stmt->text));
        continue;
      }
      ++report.failed;
      impl_->out(fmt::format("test \"{}\" ... FAILED\n", stmt->text));
      s = impl_->report(r.error(), false);
      if (s == Status::Interrupted) break;
    }
    return s;
  });
}

std::string Session::stats_json() const {
  nlohmann::json j;
  if (!impl_->effects || impl_->home.left()) return "{}";
  const auto& e = *impl_->effects;
  const auto& c = e.counters;
  j["device"] = nlohmann::json::parse(e.device_json());
  j["units"] = c.units;
  j["compiles"] = c.compiles;
  j["cache_hits"] = c.unit_cache_hits;
  j["repeats"] = impl_->runner ? impl_->runner->sites().repeats() : 0;
  j["disk_cache_hits"] = e.disk_cache_hits();
  j["kernels"] = e.kernels_compiled();
  j["graphs"] = c.graphs;
  j["executables"] = c.executables;
  j["nodes"] = c.nodes;
  j["launches"] = c.launches;
  j["driver_calls"] = e.driver_calls();
  j["leases"] = c.leases;
  j["arena_bytes"] = c.arena_bytes;
  j["updates_patched"] = c.updates_patched;
  j["updates_graph"] = c.updates_graph;
  j["updates_reinstantiated"] = c.updates_reinstantiated;
  if (!c.last_update_reason.empty()) j["last_update_reason"] = c.last_update_reason;
  j["peak_bytes"] = e.peak_bytes();
  j["compile_ms"] = c.compile_ms;
  return j.dump();
}

std::string Session::pass_times() const {
  if (!impl_->effects) return "";
  std::string text;
  for (const auto& [name, ms] : impl_->effects->counters.pass_ms)
    text += fmt::format("{:>10.3f} ms  {}\n", ms, name);
  return text + fmt::format("{:>10.3f} ms  total\n", impl_->effects->counters.compile_ms);
}

std::string list_devices(bool json) {
  engine::install_host_loader();
  nlohmann::json all = nlohmann::json::array();
  std::string text;
  for (const auto& d : hal::list_devices()) {
    all.push_back({{"id", d.id},
                   {"name", d.name},
                   {"sm", d.sm},
                   {"multiprocessors", d.multiprocessors},
                   {"memory_bytes", d.total_bytes},
                   {"driver", d.driver}});
    text += fmt::format("{:<8} {}{}, {} {}, {:.1f} GiB{}\n", d.id, d.name,
                        d.sm ? fmt::format(" (sm_{})", d.sm) : "", d.multiprocessors,
                        d.sm ? "multiprocessors" : "threads", static_cast<double>(d.total_bytes) / (1 << 30),
                        d.driver.empty() ? "" : ", driver " + d.driver);
  }
  return json ? all.dump(2) + "\n" : text;
}

std::string list_builtins(bool json) {
  nlohmann::json all = nlohmann::json::array();
  std::string text;
  for (const sema::Builtin& b : sema::public_builtins()) {
    all.push_back({{"name", b.name}, {"signature", b.signature}, {"doc", b.doc}});
    text += fmt::format("{:<40} {}\n", b.signature, b.doc);
  }
  return json ? all.dump(2) + "\n" : text;
}

std::string explain(std::string_view code) { return std::string(syntax::explain(code)); }

}  // namespace gk
