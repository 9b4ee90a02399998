// If and While: a step whose bodies are schedules of their own. What a body changes is an array that starts
// as the operand's content and is written in place.
#include <algorithm>

#include "compiler/passes/lower_group.h"

namespace gk::passes {

// Where the whole of `v` is in memory.
Result<int> Lowerer::home(ValueId v) {
  if (in_memory(v)) return buffer_of(v);
  return materialise(v);
}

Result<void> Lowerer::branch(const Node& n) {
  const bool loop = n.op == Op::While;
  LoweredStep s;
  s.step.kind = loop ? program::Step::Kind::While : program::Step::Kind::If;
  s.step.label = ir::info(n.op).name;
  s.step.span = n.span;
  Options options = options_;
  options.after_pass = nullptr;
  int64_t arena_bytes = 0;
  bool works = false;
  for (const ir::Region& r : n.regions) {
    GK_TRY(Schedule body, run_pipeline(ir::clone(*r.module), options));
    arena_bytes = std::max(arena_bytes, body.program.arena_bytes);
    works = works || !body.program.steps.empty();
    out_.fused_ops += body.program.fused_ops;
    s.bodies.push_back(std::move(body));
    s.scalars.push_back(r.scalars);
  }
  if (n.op == Op::If && s.bodies[1].program.steps.empty()) s.bodies.pop_back();

  BufferUse condition;
  condition.param = LoweredStep::kCondition;
  condition.size_bytes = 1;
  condition.read = true;
  if (loop) {
    GK_TRY(const int from, home(n.operands[0]));
    condition.buffer = new_buffer(DType::Bool, {});
    condition.written = true;
    s.inherits.push_back({from, condition.buffer});
  } else {
    GK_TRY(condition.buffer, dense(n.operands[0], condition.offset_bytes));
  }
  s.buffers.push_back(condition);

  const std::vector<int> results = ir::result_slots(n);
  for (size_t i = 0; i + 1 < n.operands.size(); ++i) {
    const ValueId v = n.operands[i + 1];
    BufferUse u;
    u.param = static_cast<int>(i);
    u.size_bytes = look_.elements(v) * size_bytes(dtype(v));
    const auto at = std::find(results.begin(), results.end(), static_cast<int>(i));
    if (at == results.end()) {
      GK_TRY(u.buffer, dense(v, u.offset_bytes));
      u.offset_bytes *= size_bytes(dtype(v));
      u.read = true;
    } else {
      // Both branches of an If may write all of it and read none: then what was there does not matter.
      u.read = loop || std::any_of(n.regions.begin(), n.regions.end(), [&](const ir::Region& r) {
                 return r.module->slots[i].is_input || !r.module->slots[i].is_output;
               });
      u.buffer = buffer_of(n.results[static_cast<size_t>(at - results.begin())]);
      u.written = true;
      if (u.read) {
        GK_TRY(const int from, home(v));
        s.inherits.push_back({from, u.buffer});
      }
    }
    s.buffers.push_back(u);
  }
  for (size_t k = 0; k < results.size(); ++k) {
    if (results[k] + 1 < static_cast<int>(n.operands.size())) continue;
    const ValueId v = n.results[k];
    BufferUse u;
    u.param = results[k];
    u.buffer = buffer_of(v);
    u.size_bytes = look_.elements(v) * size_bytes(dtype(v));
    u.written = true;
    s.buffers.push_back(u);
  }
  if (!works) {
    for (const auto& i : s.inherits)
      if (i.to != condition.buffer) copy(i.from, i.to);
    return {};
  }
  if (arena_bytes > 0) {
    BufferUse u;
    u.param = LoweredStep::kArena;
    u.buffer = new_buffer(DType::U8, {arena_bytes});
    u.size_bytes = arena_bytes;
    u.written = true;
    s.buffers.push_back(u);
  }
  out_.steps.push_back(std::move(s));
  return {};
}

}  // namespace gk::passes
