// Loading programs and running them at once.
#include <fmt/format.h>

#include "runtime/exec/walk.h"

namespace gk::exec {

Loaded::Loaded(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loaded::~Loaded() = default;
const program::Program& Loaded::program() const { return *impl_->program; }

Loaded::Impl::~Impl() {
  core->dismiss(first_step);
  // Launches that were submitted may still run this code.
  Kept kept;
  for (auto& m : modules) kept.push_back(std::move(m));
  modules.clear();
  if (!kept.empty()) core->retire(std::move(kept));
}

Result<std::shared_ptr<Loaded>> Loaded::create(Runtime& rt, std::shared_ptr<const program::Program> p) {
  const std::shared_ptr<Core>& core = rt.impl().core;
  if (p->target != core->device().info().target) {
    return fail(ErrorKind::Device, "E0509",
                fmt::format("'{}' was compiled for another kind of device than {}", p->name,
                            core->device().info().id));
  }
  GK_CHECK(check_program(*p));
  core->drain();
  std::vector<std::shared_ptr<hal::Module>> modules;
  for (const auto& code : p->codes) {
    GK_TRY(std::shared_ptr<hal::Module> m, core->module(*code));
    modules.push_back(std::move(m));
  }
  std::vector<hal::Function*> functions;
  for (const program::Step& s : p->steps) {
    hal::Function* f = nullptr;
    if (s.kind == program::Step::Kind::Launch) {
      GK_TRY(f, modules[static_cast<size_t>(s.code)]->function(s.function));
    }
    functions.push_back(f);
  }
  auto impl = std::make_unique<Impl>();
  impl->core = core;
  impl->first_step = core->enlist(p);
  impl->program = std::move(p);
  impl->modules = std::move(modules);
  impl->functions = std::move(functions);
  return std::shared_ptr<Loaded>(new Loaded(std::move(impl)));
}

Result<void> run(Runtime& rt, Loaded& program, const Bindings& bindings) {
  Core& core = *rt.impl().core;
  core.drain();
  GK_CHECK(check_bindings(program.program(), bindings, {}));
  memory::BlockPtr arena;
  if (program.program().arena_bytes > 0) {
    GK_TRY(arena, core.arena(program.program().arena_bytes));
  }
  for (const SlotBinding& slot : bindings.slots) GK_CHECK(slot.block->acquire(core.timeline()));
  core.mark_busy();
  const Frame frame{&program.impl(), &bindings, arena ? arena->address() : nullptr, core.faults()};
  hal::NodeId last = -1;
  return walk(core.stream(), frame, last, nullptr);
}

}  // namespace gk::exec
