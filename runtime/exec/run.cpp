// Loading programs and running them at once.
#include <fmt/format.h>

#include "runtime/exec/core.h"
#include "runtime/exec/recording.h"
#include "runtime/exec/spares.h"
#include "runtime/exec/walk.h"

namespace gk::exec {
namespace {

Result<Resolved> resolve(Core& core, const std::shared_ptr<const program::Program>& p, Loaded::Impl& loaded) {
  const size_t first = loaded.modules.size();
  for (const auto& code : p->codes) {
    GK_TRY(std::shared_ptr<hal::Module> m, core.module(*code));
    loaded.modules.push_back(std::move(m));
  }
  Resolved r;
  r.program = p.get();
  r.first_step = core.enlist(p);
  loaded.first_steps.push_back(r.first_step);
  r.functions.reserve(p->steps.size());
  r.bodies.resize(p->steps.size());
  for (size_t i = 0; i < p->steps.size(); ++i) {
    const program::Step& s = p->steps[i];
    hal::Function* f = nullptr;
    if (s.kind == program::Step::Kind::Launch) {
      GK_TRY(f, loaded.modules[first + static_cast<size_t>(s.code)]->function(s.function));
    }
    r.functions.push_back(f);
    for (const program::Body& b : s.bodies) {
      GK_TRY(Resolved inner, resolve(core, b.program, loaded));
      r.bodies[i].push_back(std::move(inner));
    }
  }
  return r;
}

}  // namespace

Loaded::Loaded(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loaded::~Loaded() = default;
const program::Program& Loaded::program() const { return *impl_->program; }

Loaded::Impl::~Impl() {
  for (Spare& s : core->spares().remove(this)) end(core, std::move(s));
  for (const int64_t first : first_steps) core->dismiss(first);
  // Work that was submitted may still run this code.
  core->retire(std::move(modules));
}

Result<std::shared_ptr<Loaded>> Loaded::create(Runtime& rt, std::shared_ptr<const program::Program> p) {
  const std::shared_ptr<Core>& core = rt.impl().core;
  if (p->targets.empty() || p->targets[0] != core->device().info().target) {
    return fail(ErrorKind::Device, "E0509",
                fmt::format("'{}' was compiled for another kind of device than {}", p->name,
                            core->device().info().id));
  }
  GK_CHECK(check_program(*p));
  core->tidy();
  auto impl = std::make_unique<Impl>();
  impl->core = core;
  impl->program = p;
  impl->uses = slot_uses(*p);
  GK_TRY(impl->resolved, resolve(*core, p, *impl));
  return std::shared_ptr<Loaded>(new Loaded(std::move(impl)));
}

Result<void> run(Runtime& rt, const std::shared_ptr<Loaded>& program, const Bindings& bindings, Span span) {
  Runtime::Impl& r = rt.impl();
  if (program == nullptr) return fail(ErrorKind::Internal, "E0902", "no program to run", span);
  if (program->impl().core != r.core) {
    return fail(ErrorKind::Capture, "E0717", "the program was loaded by another engine", span);
  }
  if (r.recording != nullptr) return r.recording->call(r, program, bindings, span);
  GK_CHECK(r.ready());
  GK_CHECK(check_bindings(program->program(), bindings, span));
  memory::BlockPtr arena;
  if (program->program().arena_bytes > 0) {
    GK_TRY(arena, r.arena_for(program->program().arena_bytes));
    GK_CHECK(arena->acquire(*r.timeline));
  }
  for (const SlotBinding& slot : bindings.slots) GK_CHECK(slot.block->acquire(*r.timeline));
  r.submitting(r.faults, program->program().uses_faults);
  if (r.room == nullptr) r.room = std::make_shared<RunRoom>();
  RunRoom& room = *r.room;
  Frame frame = frame_of(program->impl(), bindings, arena ? arena->address() : nullptr, r.faults->address(),
                         std::move(room.slots));
  hal::NodeId last = -1;
  Result<void> done = walk(room.walker, r.stream(), frame, last);
  room.slots = std::move(frame.slots);
  return done;
}

}  // namespace gk::exec
