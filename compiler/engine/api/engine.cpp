// gk::Engine: opening a device, statistics, giving memory back.
#include <fmt/format.h>

#include <cstdio>

#include "compiler/engine/api/core.h"
#include "runtime/base/options.h"
#include "runtime/hal/device.h"

namespace gk::api {

using engine::EngineCore;

namespace {

gk::Result<std::shared_ptr<hal::Device>> open_device(const EngineOptions& o) {
  if (o.device == "interp")
    return fail(make_error(gk::ErrorKind::Usage, "E0512", "the interpreter cannot be embedded")
                    .note("it runs modules as they are and makes no graphs; gkrun has it for comparison")
                    .help("use the device \"host\""));
  if (o.memory_limit_bytes < 0 || o.host_threads < 0)
    return fail(gk::ErrorKind::Usage, "E0512", "a limit or a number of threads is negative");
  engine::install_host_loader();
  hal::OpenOptions options;
  options.threads = o.host_threads;
  options.memory_limit_bytes = o.memory_limit_bytes;
  options.native_context = o.native_context;
  if (!o.device.empty()) return hal::open(o.device, options);
  if (auto first = hal::open("cuda", options); first || o.native_context) return first;
  return hal::open("host", options);
}

// Nobody is there to hear of what `warn` throws.
codegen::Compiler::Warn warner(std::function<void(const Error&)> warn) {
  return [warn = std::move(warn)](const gk::Error& e) {
    const Error told = engine::to_public(nullptr, e);
    try {
      if (warn)
        warn(told);
      else
        std::fprintf(stderr, "gk: warning[%s]: %s\n", told.code().c_str(), told.message().c_str());
    } catch (...) {
    }
  };
}

gk::Result<std::shared_ptr<detail::EngineImpl>> make(EngineOptions o) {
  auto e = engine::make_handle<detail::EngineImpl>();
  GK_TRY(e->device, open_device(o));
  GK_TRY(e->runtime, exec::Runtime::create(e->device, o.memory_limit_bytes));
  std::string cache;
  if (o.use_cache) cache = o.cache_dir.empty() ? options().cache_dir : o.cache_dir;
  e->cache = std::make_shared<engine::ProgramCache>(*e->device, cache, warner(std::move(o.warn)),
                                                    engine::NanCheck{o.nan_check, std::move(o.nan_exempt)});
  e->out = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  if (o.out) e->out = engine::guarded_output(std::move(o.out));
  e->memory_limit_bytes = o.memory_limit_bytes;
  e->device_id = e->device->info().id;
  e->device_name = e->device->info().name;
  return e;
}

}  // namespace

Result<Engine> Engine::open(EngineOptions options) {
  auto r = engine::guarded(nullptr, [&] { return make(std::move(options)); });
  if (!r) return r.error();
  return Engine(std::move(*r));
}

/// Throws the error of an empty handle where nothing is behind it.
static const std::shared_ptr<detail::EngineImpl>& behind(const Engine& e) {
  auto i = engine::need(e, "the engine");
  if (!i) engine::to_public(nullptr, i.error()).raise();
  return detail::Access::impl(e);
}

const std::string& Engine::device() const { return behind(*this)->device_id; }
const std::string& Engine::device_name() const { return behind(*this)->device_name; }
bool Engine::is_cuda() const { return behind(*this)->device->info().target == program::TargetKind::Cuda; }

EngineStats Engine::stats() const {
  EngineStats s;
  if (behind(*this)->home.left()) return s;
  const auto pool = behind(*this)->runtime->pool().stats();
  s.in_use_bytes = pool.in_use_bytes;
  s.cached_bytes = pool.cached_bytes;
  s.peak_bytes = pool.peak_bytes;
  s.limit_bytes = pool.limit_bytes;
  s.leases = pool.leases;
  s.pending_releases = impl_->runtime->pool().retired().pending();
  const auto programs = impl_->cache->stats();
  s.compiles = programs.compiles;
  s.cache_hits = programs.hits;
  const auto compiled = impl_->cache->compiler().stats();
  s.kernels_compiled = compiled.kernels_compiled;
  s.disk_cache_hits = compiled.disk_cache_hits;
  s.driver_calls = impl_->device->driver_calls();
  return s;
}

void Engine::reset_peak() {
  if (!behind(*this)->home.left()) impl_->runtime->pool().reset_peak();
}

Result<void> Engine::try_reclaim() {
  return engine::guarded(nullptr, [&]() -> gk::Result<void> {
    GK_TRY(auto e, engine::need(*this, "the engine"));
    if (e->home.left()) return fail(engine::used_after_fork());
    std::lock_guard lock(e->runtime_mutex);
    return e->runtime->reclaim();
  });
}

std::vector<std::string> Engine::release_failures() const {
  if (behind(*this)->home.left()) return {};
  return impl_->runtime->pool().retired().failures();
}

}  // namespace gk::api
