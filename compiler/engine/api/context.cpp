// gk::Context: a runtime for one thread, what waits for it and what compiles with it.
#include <fmt/format.h>

#include "compiler/engine/api/core.h"
#include "compiler/engine/importer.h"
#include "compiler/syntax/parse.h"

namespace gk::engine {

Result<std::shared_ptr<ContextCore>> ContextCore::make(EnginePtr engine, std::optional<void*> native_stream) {
  if (engine->home.left()) return fail(used_after_fork());
  auto c = engine::make_handle<ContextImpl>();
  c->engine = std::move(engine);
  GK_TRY(c->runtime, c->engine->runtime->fork(native_stream));
  c->effects = make_device_effects(c->runtime, c->engine->cache);
  c->effects->out = c->engine->out;
  c->effects->interrupt_flag = &c->interrupted;
  c->effects->memory_limit_bytes = c->engine->memory_limit_bytes;
  c->plain = std::make_unique<sema::Evaluator>(c->engine->sources, c->effects.get(), sema::EvalOptions{});
  return std::static_pointer_cast<ContextCore>(c);
}

ContextCore::~ContextCore() {
  (void)leave();
  if (recording) std::exchange(recording, nullptr)->discard();  // begun and never ended
  held = std::nullopt;
  plain = nullptr;
  effects = nullptr;
}

Result<void> ContextCore::leave() {
  if (!takes_part) return {};
  takes_part = false;
  auto r = std::exchange(recording, nullptr);
  return r->leave(*runtime);
}

Result<Owner::Entry> ContextCore::enter() {
  const auto refuse = [] {
    return fail(ErrorKind::Capture, "E0716", "the context was closed or moved from");
  };
  if (closed) return refuse();
  GK_TRY(auto entry, owner.enter("the context"));
  if (closed) return refuse();
  return entry;
}

ContextImpl& behind(const std::shared_ptr<ContextImpl>& c) {
  if (c) return *c;
  // Never destroyed: handles may be asked until the very end.
  static ContextImpl* const closed = [] {
    auto* made = new ContextImpl;
    made->engine = engine::make_handle<api::detail::EngineImpl>();
    made->closed = true;
    return made;
  }();
  return *closed;
}

Result<void> ContextCore::refuse_in_capture(std::string_view what) const {
  if (is_gathering()) return refuse_in_update(what);
  if (!is_recording()) return {};
  return fail(make_error(ErrorKind::Capture, "E0703", fmt::format("{} inside a capture", what))
                  .note("a capture records device work; nothing in it runs until the graph is launched")
                  .help("move it before the capture, or after the launch"));
}

Result<void> ContextCore::refuse_in_update(std::string_view what) const {
  if (!is_gathering()) return {};
  return fail(make_error(ErrorKind::Capture, "E0705", fmt::format("{} in an update", what))
                  .note("an update takes one call of a function or kernel; nothing has changed"));
}

}  // namespace gk::engine

namespace gk::api {

using engine::ContextCore;
using engine::guarded;
using syntax::StmtKind;

namespace {

std::shared_ptr<detail::ContextImpl> impl_of(const engine::ContextPtr& c) {
  return std::static_pointer_cast<detail::ContextImpl>(c);
}

// Statements that define something: the only ones that compile() evaluates.
bool is_definition(const syntax::Stmt& s) {
  switch (s.kind) {
    case StmtKind::Fn:
    case StmtKind::Kernel:
    case StmtKind::TypeDef:
    case StmtKind::Import:
    case StmtKind::Pragma: return true;
    case StmtKind::Let: return s.bind == syntax::BindKind::Const;
    default: return false;
  }
}

Error all_of(const syntax::SourceMap& sources, const std::vector<gk::Error>& errors) {
  Error first = engine::to_public(&sources, errors[0], true);
  if (errors.size() == 1) return first;
  std::vector<Error> more;
  for (size_t i = 1; i < errors.size(); ++i) more.push_back(engine::to_public(&sources, errors[i], true));
  return Error(first, std::move(more));
}

}  // namespace

Result<Context> Context::open(const Engine& engine, ContextOptions options) {
  auto r = guarded(nullptr, [&]() -> gk::Result<engine::ContextPtr> {
    GK_TRY(auto e, engine::need(engine, "the engine"));
    std::optional<void*> stream;
    if (options.stream) stream = *options.stream;
    return ContextCore::make(e, stream);
  });
  if (!r) return r.error();
  return Context(impl_of(*r));
}

Result<Context> Context::open(const CaptureToken& token) {
  auto r = guarded(nullptr, [&]() -> gk::Result<engine::ContextPtr> {
    GK_TRY(auto t, engine::need(token, "the capture token"));
    GK_TRY(auto c, ContextCore::make(t->engine, std::nullopt));
    GK_CHECK(t->recording->join(*c->runtime));
    c->recording = t->recording;
    c->graph_to_be = t->graph;
    c->takes_part = true;
    return c;
  });
  if (!r) return r.error();
  return Context(impl_of(*r));
}

Engine Context::engine() const {
  if (!impl_) return detail::Access::make<Engine>(std::shared_ptr<detail::EngineImpl>());
  return detail::Access::make<Engine>(std::static_pointer_cast<detail::EngineImpl>(impl_->engine));
}

Result<CUstream_st*> Context::try_stream() const {
  auto& c = engine::behind(impl_);
  return guarded(&c.engine->sources, [&]() -> gk::Result<CUstream_st*> {
    GK_TRY(auto entry, c.enter());
    GK_CHECK(c.refuse_in_update("work on a stream"));
    if (!c.is_recording()) {
      // From now on there may be work in it that only the host program knows.
      c.runtime->timeline().expose();
      return static_cast<CUstream_st*>(c.runtime->stream().native());
    }
    GK_TRY(auto s, c.recording->stream());
    return static_cast<CUstream_st*>(s);
  });
}

Result<void> Context::try_use(const Tensor& x) const {
  auto& c = engine::behind(impl_);
  return guarded(&c.engine->sources, [&]() -> gk::Result<void> {
    GK_TRY(auto entry, c.enter());
    GK_TRY(auto t, engine::need_tensor(*c.engine, x));
    GK_CHECK(c.refuse_in_update("work of the host program's own"));
    if (c.is_recording()) return c.recording->use(t->block);
    auto& timeline = c.runtime->timeline();
    timeline.expose();
    return t->block->acquire(timeline);
  });
}

bool Context::is_capturing() const {
  auto& c = engine::behind(impl_);
  auto entry = c.enter();
  return entry && c.is_recording();
}

Result<Module> Context::try_compile(std::string_view name, std::string_view text) const {
  auto& c = engine::behind(impl_);
  std::optional<Error> mistakes;
  auto r = guarded(&c.engine->sources, [&]() -> gk::Result<std::shared_ptr<detail::ModuleImpl>> {
    GK_TRY(auto entry, c.enter());
    auto& sources = c.engine->sources;
    auto refuse = [&](const std::vector<gk::Error>& errors) {
      mistakes = all_of(sources, errors);
      return fail(errors[0]);
    };
    int32_t file = sources.find_or_add(std::string(name), std::string(text));
    c.interrupted.store(false, std::memory_order_relaxed);
    const auto interrupted = [&c] { return c.interrupted.load(std::memory_order_relaxed); };
    auto parsed = syntax::parse(sources, file, interrupted);
    if (!parsed.errors.empty()) return refuse(parsed.errors);
    auto m = engine::make_handle<detail::ModuleImpl>();
    m->context = impl_;
    m->name = name;
    m->tree = std::make_shared<syntax::Module>(std::move(parsed.module));
    sema::EvalOptions options;
    options.importer = engine::make_importer(sources);
    options.interrupted = interrupted;
    {
      sema::Evaluator checker(sources, nullptr, options);
      if (auto errors = checker.run(*m->tree, checker.root()); !errors.empty()) return refuse(errors);
    }
    std::erase_if(m->tree->stmts, [](const auto& s) { return !is_definition(*s); });
    m->evaluator = std::make_unique<sema::Evaluator>(sources, c.effects.get(), options);
    if (auto errors = m->evaluator->run(*m->tree, m->evaluator->root()); !errors.empty())
      return refuse(errors);
    return m;
  });
  if (mistakes) return *mistakes;
  if (!r) return r.error();
  return Module(std::move(*r));
}

Result<void> Context::try_synchronize() const {
  auto& c = engine::behind(impl_);
  return guarded(&c.engine->sources, [&]() -> gk::Result<void> {
    GK_TRY(auto entry, c.enter());
    GK_CHECK(c.refuse_in_capture("waiting for the device"));
    return c.runtime->synchronize();
  });
}

Result<void> Context::try_host_call(std::function<void()> f) const {
  auto& c = engine::behind(impl_);
  return guarded(&c.engine->sources, [&]() -> gk::Result<void> {
    GK_TRY(auto entry, c.enter());
    if (!f) return fail(gk::ErrorKind::Usage, "E0512", "the function to call is empty");
    GK_CHECK(c.refuse_in_update("a call of the host"));
    return c.runtime->host_call(std::move(f));
  });
}

void Context::interrupt() const { engine::behind(impl_).interrupted.store(true, std::memory_order_relaxed); }

Result<void> Context::try_close() const {
  auto& c = engine::behind(impl_);
  if (c.closed) return {};
  return guarded(&c.engine->sources, [&]() -> gk::Result<void> {
    GK_TRY(auto entry, c.enter());
    if (c.is_recording() && !c.takes_part) GK_CHECK(c.refuse_in_capture("closing the context"));
    GK_CHECK(c.refuse_in_update("closing the context"));
    c.closed = true;
    return c.leave();
  });
}

}  // namespace gk::api
