// If, While and Repeat: a step whose bodies are schedules of their own. Each region becomes a module with
// slots, which are parts of the memory around it.
//
// Note [Places of results]
// The slots of a body are the operands that regions only read, and the results. A result that continues an
// operand begins as its content, and what regions change of it is written in place: a region that leaves it
// writes nothing. A carried value continues itself. A result of an If continues what both regions change in
// part or not at all (continued_input), or else an operand that nobody needs after the If, where a region
// leaves it or computes the result from it point by point. Any other result is written by both regions.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "compiler/passes/copier.h"
#include "compiler/passes/lower_group.h"

namespace gk::passes {
namespace {

// How a yield is computed from a parameter that it may be written over.
struct Reading {
  bool reads = false;
  bool same = true;  // each element at the point of writing alone
};
Reading reading(const Lookup& l, const ir::Region& region, size_t yield, ValueId param) {
  Reading r;
  std::unordered_map<ValueId, bool> seen;
  std::vector<std::pair<ValueId, bool>> stack{{region.yields[yield], true}};
  while (!stack.empty()) {
    auto [v, same] = stack.back();
    stack.pop_back();
    while (l.operand(v) >= 0 &&
           std::find(region.params.begin(), region.params.end(), v) == region.params.end())
      v = l.operand(v);
    if (v == param) {
      r.reads = true;
      r.same = r.same && same;
      continue;
    }
    const Node* n = l.node(v);
    if (!n || is_reduction(n->op)) continue;  // a kernel of its own, ahead of the one that writes
    const auto [it, fresh] = seen.try_emplace(v, same);
    if (!fresh && (it->second == same || !it->second)) continue;
    it->second = same;
    const ValueId base = continued_value(l, v);
    if (n->op == Op::If && base < 0) {
      const auto k = std::find(n->results.begin(), n->results.end(), v) - n->results.begin();
      for (const ir::Region& inner : n->regions)
        stack.emplace_back(inner.yields[static_cast<size_t>(k)], same);
      continue;
    }
    for (ValueId o : n->operands) stack.emplace_back(o, same && (o == base || ir::is_elementwise(n->op)));
  }
  return r;
}

// Inputs that nobody reads are none.
void take_inputs(ir::Module& m) {
  std::vector<bool> used(m.value_types.size(), false);
  for (const Node& n : m.top.nodes)
    for (ValueId v : n.operands) used[static_cast<size_t>(v)] = true;
  for (const ir::Output& o : m.outputs) used[static_cast<size_t>(o.value)] = true;
  std::erase_if(m.top.nodes,
                [&](const Node& n) { return n.op == Op::Input && !used[static_cast<size_t>(n.results[0])]; });
  for (const Node& n : m.top.nodes)
    if (n.op == Op::Input) m.slots[static_cast<size_t>(n.attrs.index)].is_input = true;
}

// The numbers that `r` uses become those of `m`; gives which numbers of `around` they are.
void take_numbers(ir::Region& r, const Module& around, Module& m, std::vector<int>& numbers) {
  for (Node& n : r.nodes) {
    for (ir::Region& inner : n.regions) take_numbers(inner, around, m, numbers);
    if (n.op != Op::Param) continue;
    const int number = static_cast<int>(n.attrs.index);
    const auto at = std::find(numbers.begin(), numbers.end(), number);
    n.attrs.index = at - numbers.begin();
    if (at != numbers.end()) continue;
    numbers.push_back(number);
    m.params.push_back(around.params[static_cast<size_t>(number)]);
  }
}

}  // namespace

// Where the whole of `v` is in memory.
Result<int> Lowerer::home(ValueId v) {
  if (in_memory(v)) return buffer_of(v);
  return materialise(v);
}

// Whether result `k` of `n` may have the place of its input `i`: nobody reads that after `n`, and if the
// result comes to a slot in the end, it may be there from then on.
bool Lowerer::dies_into(const Node& n, size_t i, size_t k) const {
  const ValueId v = n.operands[ir::region_form(n.op).operand + i];
  const bool input = look_.op(v) == Op::Input;
  if (!in_memory(v) || std::count(n.operands.begin(), n.operands.end(), v) != 1) return false;
  if (is_output_[static_cast<size_t>(v)] && !input) return false;
  const int end = end_of(n.results[k]);
  if (input && look_.node(v)->attrs.index != end) return false;
  for (size_t at = static_cast<size_t>(look_.top(v)) + 1; at < m_.top.nodes.size(); ++at)
    for (const ValueId o : m_.top.nodes[at].operands) {
      if (o == v && &m_.top.nodes[at] != &n && at > static_cast<size_t>(look_.top(n.results[k])))
        return false;
      if (!input && look_.op(o) == Op::Input && look_.node(o)->attrs.index == end) return false;
    }
  return true;
}

// Decides from the last node back what continues what, since a place depends on where its value ends.
void Lowerer::find_ends() {
  for (const ir::Output& o : m_.outputs)
    if (const auto [it, fresh] = ends_.try_emplace(o.value, o.slot);
        !fresh && m_.slots[static_cast<size_t>(o.slot)].is_input)
      it->second = o.slot;
  for (size_t i = m_.top.nodes.size(); i-- > 0;) {
    const Node& n = node(static_cast<int>(i));
    if (n.op == Op::If) continued_[&n] = continued(n);
    for (size_t k = 0; k < n.results.size(); ++k) {
      const int end = end_of(n.results[k]);
      if (end < 0) continue;
      ValueId base = continued_value(look_, n.results[k]);
      if (n.op == Op::If) {
        const int input = continued_[&n][k];
        base = input < 0 ? -1 : n.operands[static_cast<size_t>(input) + 1];
      } else if (kinds_[i] == NodeKind::Map) {
        base = -1;  // written as a whole
      }
      if (base >= 0) ends_.try_emplace(base, end);
    }
  }
}

// The slot that gets `v`, changed in part or not at all; -1: none.
int Lowerer::end_of(ValueId v) const {
  const auto it = ends_.find(v);
  return it == ends_.end() ? -1 : it->second;
}

// The input that each result of an If continues; -1: none.
std::vector<int> Lowerer::continued(const Node& n) const {
  std::vector<int> out(n.results.size(), -1);
  std::vector<bool> taken(num_inputs(n), false);
  const auto take = [&](size_t k, int i) {
    out[k] = i;
    taken[static_cast<size_t>(i)] = true;
  };
  const auto suits = [&](size_t i, size_t k) {
    bool wanted = false;
    for (const ir::Region& r : n.regions) {
      const bool left = continued_param(look_, r, k) == static_cast<int>(i);
      const Reading how = left ? Reading{true, true} : reading(look_, r, k, r.params[i]);
      if (!how.same) return false;
      wanted = wanted || how.reads;
    }
    return wanted;
  };
  const auto take_dying = [&](bool input) {
    for (size_t k = 0; k < n.results.size(); ++k)
      for (size_t i = 0; i < taken.size() && out[k] < 0; ++i)
        if (const ValueId v = n.operands[i + 1]; !taken[i] && (look_.op(v) == Op::Input) == input &&
                                                 m_.type(v).same_as(m_.type(n.results[k])) && suits(i, k) &&
                                                 dies_into(n, i, k))
          take(k, static_cast<int>(i));
  };
  take_dying(true);  // the array that the result replaces
  std::vector<int> left = out;
  bool idle = true;  // a region that computes nothing has nothing to copy either
  for (size_t k = 0; k < n.results.size(); ++k) {
    const int first = continued_param(look_, n.regions[0], k),
              second = continued_param(look_, n.regions[1], k);
    if (out[k] < 0) left[k] = continued_input(look_, n, k);
    if (out[k] < 0 && left[k] >= 0 && first == second) take(k, left[k]);
    idle = idle && left[k] >= 0 && left[k] == (n.regions[0].nodes.empty() ? first : second);
  }
  for (size_t k = 0; k < n.results.size(); ++k)
    if (out[k] < 0 && left[k] >= 0 && (idle || !in_memory(n.operands[static_cast<size_t>(left[k]) + 1])))
      take(k, left[k]);
  take_dying(false);
  return out;
}

// The places of a body: for each slot the input that it begins as and the result that it ends as, or -1.
std::vector<Lowerer::Place> Lowerer::places(const Node& n) const {
  std::vector<Place> out;
  std::vector<int> from(n.results.size());
  std::iota(from.begin(), from.end(), 0);
  if (n.op == Op::If) from = continued_.at(&n);
  std::vector<bool> placed(n.results.size(), false);
  for (size_t i = 0; i < num_inputs(n); ++i) {
    const auto k =
        static_cast<size_t>(std::find(from.begin(), from.end(), static_cast<int>(i)) - from.begin());
    out.push_back({static_cast<int>(i), k < from.size() ? static_cast<int>(k) : -1});
    if (k < from.size()) placed[k] = true;
  }
  for (size_t k = 0; k < from.size(); ++k)
    if (!placed[k]) out.push_back({from[k], static_cast<int>(k)});
  return out;
}

Lowerer::Body Lowerer::body(const Node& n, const ir::Region& r, const std::vector<Place>& places) const {
  const ir::RegionForm form = ir::region_form(n.op);
  Body b;
  b.module.name = m_.name;
  b.module.fuse = m_.fuse;
  b.module.fast_math = m_.fast_math;
  b.module.tf32 = m_.tf32;
  Copier copier(m_, b.module);
  for (const Place& p : places) {
    const ValueId v = p.input >= 0 ? n.operands[form.operand + static_cast<size_t>(p.input)]
                                   : n.results[static_cast<size_t>(p.result)];
    ir::SlotInfo slot;
    slot.type = m_.type(v);
    slot.fresh = p.input < 0;
    const int around = p.result >= 0              ? end_of(n.results[static_cast<size_t>(p.result)])
                       : look_.op(v) == Op::Input ? static_cast<int>(look_.node(v)->attrs.index)
                                                  : -1;
    if (around >= 0) slot.name = m_.slots[static_cast<size_t>(around)].name;
    b.module.slots.push_back(std::move(slot));
  }
  for (size_t i = 0; i < num_inputs(n); ++i) {
    Node in;
    in.op = Op::Input;
    in.attrs.index = static_cast<int64_t>(i);  // inputs are the first places
    in.results = {copier.fresh(r.params[form.param + i])};
    b.module.top.nodes.push_back(std::move(in));
  }
  const ValueId turn = n.op == Op::Repeat ? copier.fresh(r.params[0]) : -1;
  for (const Node& i : r.nodes) b.module.top.nodes.push_back(copier.node(i));
  for (size_t s = 0; s < places.size(); ++s) {
    const auto [input, result] = places[s];
    if (result < 0) continue;
    const ValueId y = r.yields[form.yield + static_cast<size_t>(result)];
    if (input >= 0 && y == r.params[form.param + static_cast<size_t>(input)]) continue;  // left as it is
    b.module.slots[s].is_output = true;
    b.module.outputs.push_back({copier.now(y), static_cast<int>(s)});
  }
  if (n.op == Op::While) {
    ir::SlotInfo more;
    more.type = m_.type(n.operands[0]);
    more.is_output = true;
    b.module.outputs.push_back({copier.now(r.yields[0]), static_cast<int>(b.module.slots.size())});
    b.module.slots.push_back(std::move(more));
  }
  take_inputs(b.module);
  take_numbers(b.module.top, m_, b.module, b.numbers);
  if (n.op == Op::Repeat) {
    Node number;
    number.op = Op::Param;
    number.attrs.index = static_cast<int64_t>(b.numbers.size());
    number.attrs.value = Scalar::of_int(0);
    number.attrs.dtype = DType::I64;
    number.results = {turn};
    b.module.top.nodes.insert(b.module.top.nodes.begin(), std::move(number));
    b.module.params.push_back(Scalar::of_int(0));
    b.numbers.push_back(program::Body::kTurn);
  }
  return b;
}

Result<void> Lowerer::branch(const Node& n) {
  using Kind = program::Step::Kind;
  const bool conditional = n.op != Op::Repeat, loop = n.op != Op::If;
  const size_t first = ir::region_form(n.op).operand;
  LoweredStep s;
  s.step.kind = n.op == Op::If ? Kind::If : n.op == Op::While ? Kind::While : Kind::Repeat;
  s.step.times = n.attrs.index;
  s.step.label = ir::info(n.op).name;
  s.step.span = n.span;
  Options options = options_;
  options.after_pass = nullptr;
  int64_t arena_bytes = 0;
  bool works = false;
  const std::vector<Place> at = places(n);
  // Both regions of an If may write all of a place and read none: then what was there does not matter.
  std::vector<bool> read(at.size(), loop);
  for (const ir::Region& r : n.regions) {
    Body b = body(n, r, at);
    for (size_t i = 0; i < at.size(); ++i)
      read[i] = read[i] || b.module.slots[i].is_input || !b.module.slots[i].is_output;
    GK_TRY(Schedule made, make_schedule(std::move(b.module), options));
    arena_bytes = std::max(arena_bytes, made.program.arena_bytes);
    works = works || !made.program.steps.empty();
    out_.fused_ops += made.program.fused_ops;
    s.bodies.push_back(std::move(made));
    s.scalars.push_back(std::move(b.numbers));
  }
  if (n.op == Op::If && s.bodies[1].program.steps.empty()) s.bodies.pop_back();

  BufferUse condition;
  condition.param = LoweredStep::kCondition;
  condition.size_bytes = 1;
  condition.read = true;
  if (n.op == Op::While) {
    GK_TRY(const int from, home(n.operands[0]));
    condition.buffer = new_buffer(DType::Bool, {});
    condition.written = true;
    s.inherits.push_back({from, condition.buffer});
  } else if (conditional) {
    GK_TRY(condition.buffer, dense(n.operands[0], condition.offset_bytes));
  }
  if (conditional) s.buffers.push_back(condition);

  for (size_t i = 0; i < at.size(); ++i) {
    const ValueId from = at[i].input < 0 ? -1 : n.operands[first + static_cast<size_t>(at[i].input)];
    const ValueId to = at[i].result < 0 ? -1 : n.results[static_cast<size_t>(at[i].result)];
    const ValueId v = to < 0 ? from : to;
    BufferUse u;
    u.param = static_cast<int>(i);
    u.size_bytes = look_.elements(v) * size_bytes(dtype(v));
    u.read = from >= 0 && read[i];
    u.written = to >= 0;
    if (!u.written) {
      GK_TRY(u.buffer, dense(from, u.offset_bytes));
      u.offset_bytes *= size_bytes(dtype(v));
    } else {
      u.buffer = buffer_of(to);
      if (u.read) {
        GK_TRY(const int before, home(from));
        s.inherits.push_back({before, u.buffer});
      }
    }
    s.buffers.push_back(u);
  }
  if (!works) {
    for (const auto& i : s.inherits)
      if (!conditional || i.to != condition.buffer) copy(i.from, i.to);
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
