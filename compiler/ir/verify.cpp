// The invariants of a module. Every failure is a compiler bug (E0901), so messages speak of IR, not of
// source.
#include <fmt/format.h>

#include "compiler/ir/kernel.h"
#include "compiler/ir/module.h"

namespace gk::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Module& m) : m_(m), state_(m.value_types.size(), State::Undefined) {}

  Result<void> run() {
    GK_CHECK(slots());
    if (!m_.top.params.empty() || !m_.top.yields.empty())
      return bad("the top block has parameters or yields");
    GK_CHECK(nodes(m_.top));
    return outputs();
  }

 private:
  enum class State : uint8_t { Undefined, Live, Left };

  static Failure bad(std::string what, Span span = {}) {
    return fail(ErrorKind::Internal, "E0901", "invalid IR: " + std::move(what), span);
  }

  Result<void> slots() const {
    for (size_t i = 0; i < m_.slots.size(); ++i) {
      const SlotInfo& s = m_.slots[i];
      GK_CHECK(concrete(s.type, fmt::format("slot {}", i)));
      if (s.fresh && s.is_input) return bad(fmt::format("fresh slot {} is an input", i));
      if (s.fresh && !s.is_output) return bad(fmt::format("fresh slot {} is not an output", i));
    }
    return {};
  }

  static Result<void> concrete(const Type& t, const std::string& what) {
    if (!t.fully_known()) return bad(fmt::format("{} has an unknown extent: {}", what, to_string(t)));
    if (t.rank() > kMaxRank) return bad(fmt::format("{} has rank {}", what, t.rank()));
    if (!num_elements(t.shape())) return bad(fmt::format("{} is too large: {}", what, to_string(t)));
    return {};
  }

  Result<void> define(ValueId v, Span span) {
    if (v < 0 || v >= static_cast<ValueId>(state_.size()))
      return bad(fmt::format("%{} has no type", v), span);
    State& s = state_[static_cast<size_t>(v)];
    if (s != State::Undefined) return bad(fmt::format("%{} is defined twice", v), span);
    s = State::Live;
    GK_CHECK(concrete(m_.type(v), fmt::format("%{}", v)));
    return {};
  }

  Result<void> use(ValueId v, Span span) const {
    if (v < 0 || v >= static_cast<ValueId>(state_.size()))
      return bad(fmt::format("%{} is not a value", v), span);
    switch (state_[static_cast<size_t>(v)]) {
      case State::Undefined: return bad(fmt::format("%{} is used before its definition", v), span);
      case State::Left: return bad(fmt::format("%{} is used outside its loop", v), span);
      case State::Live: return {};
    }
    return {};
  }

  Result<void> nodes(const Block& b) {
    for (const Node& n : b.nodes) GK_CHECK(node(n));
    return {};
  }

  Result<void> node(const Node& n) {
    if (n.op >= Op::kCount) return bad("a node has no op", n.span);
    std::vector<Type> types;
    for (ValueId v : n.operands) {
      GK_CHECK(use(v, n.span));
      types.push_back(m_.type(v));
    }
    if (has_regions(n.op) != !n.regions.empty())
      return bad(fmt::format("{} {} regions", info(n.op).name, n.regions.empty() ? "lacks" : "has"), n.span);
    auto want = has_regions(n.op) ? regions(n, types) : result_types(m_, n.op, types, n.attrs);
    if (!want && has_regions(n.op)) return fail(std::move(want).error());
    if (!want) return bad(fmt::format("{}: {}", info(n.op).name, want.error().message), n.span);
    if (n.op == Op::Input && !m_.slots[static_cast<size_t>(n.attrs.index)].is_input)
      return bad(fmt::format("input of slot {}, which is not an input", n.attrs.index), n.span);
    if (n.op == Op::Param) GK_CHECK(param(n));
    if (n.op == Op::KernelCall) GK_CHECK(verify(*n.attrs.kernel));
    if ((n.op == Op::Loop) != (n.body != nullptr))
      return bad(fmt::format("{} {} a body", info(n.op).name, n.body ? "has" : "lacks"), n.span);
    if (n.op == Op::Loop) GK_CHECK(loop(n, types));
    if (want->size() != n.results.size())
      return bad(fmt::format("{} has {} results, not {}", info(n.op).name, want->size(), n.results.size()),
                 n.span);
    for (size_t i = 0; i < n.results.size(); ++i) {
      GK_CHECK(define(n.results[i], n.span));
      const Type& have = m_.type(n.results[i]);
      if (!have.same_as((*want)[i]))
        return bad(fmt::format("%{} = {} is {}, not {}", n.results[i], info(n.op).name, to_string((*want)[i]),
                               to_string(have)),
                   n.span);
    }
    return {};
  }

  // See Note [Regions].
  Result<std::vector<Type>> regions(const Node& n, const std::vector<Type>& types) const {
    const bool loop = n.op == Op::While;
    if (types.empty() || !types[0].same_as(Type::of(DType::Bool, {})))
      return bad("the first operand is not a condition, bool[]", n.span);
    if (n.regions.size() != (loop ? 1U : 2U))
      return bad(fmt::format("there are {} regions", n.regions.size()), n.span);
    const size_t around = types.size() - 1;
    for (const Region& r : n.regions) {
      if (!r.module) return bad("a region is missing", n.span);
      const Module& m = *r.module;
      GK_CHECK(verify(m));
      if (m.fuse != m_.fuse || m.fast_math != m_.fast_math || m.tf32 != m_.tf32)
        return bad("a region has other flags than what is around it", n.span);
      if (r.scalars.size() != m.params.size())
        return bad(
            fmt::format("a region has {} params, of which {} are given", m.params.size(), r.scalars.size()),
            n.span);
      for (size_t i = 0; i < r.scalars.size(); ++i)
        if (r.scalars[i] < 0 || r.scalars[i] >= static_cast<int>(m_.params.size()) ||
            m_.params[static_cast<size_t>(r.scalars[i])].dtype != m.params[i].dtype)
          return bad(fmt::format("param {} of a region is not param {} around it", i, r.scalars[i]), n.span);
      const size_t first = n.regions[0].module->slots.size();
      if (m.slots.size() < around || m.slots.size() != first || (loop && m.slots.size() != around + 1))
        return bad(fmt::format("a region has {} slots for {} operands", m.slots.size(), around), n.span);
      for (size_t s = 0; s < m.slots.size(); ++s) {
        const SlotInfo& slot = m.slots[s];
        const bool good = s < around ? slot.type.same_as(types[s + 1]) && !slot.fresh
                          : loop     ? slot.type.same_as(types[0]) && slot.is_output && !slot.is_input
                                     : slot.fresh && slot.type.same_as(n.regions[0].module->slots[s].type);
        if (!good)
          return bad(fmt::format("slot {} of a region is {}, which is not what belongs there", s,
                                 to_string(slot.type)),
                     n.span);
      }
    }
    std::vector<Type> out;
    for (int s : result_slots(n)) out.push_back(n.regions[0].module->slots[static_cast<size_t>(s)].type);
    return out;
  }

  Result<void> param(const Node& n) const {
    if (n.attrs.index < 0 || n.attrs.index >= static_cast<int64_t>(m_.params.size()))
      return bad(fmt::format("no scalar slot {}", n.attrs.index), n.span);
    if (m_.params[static_cast<size_t>(n.attrs.index)].dtype != n.attrs.value.dtype)
      return bad(fmt::format("scalar slot {} is not {}", n.attrs.index, name(n.attrs.value.dtype)), n.span);
    return {};
  }

  Result<void> loop(const Node& n, const std::vector<Type>& carried) {
    const Block& b = *n.body;
    if (n.attrs.index < 0) return bad("a loop has a negative trip count", n.span);
    if (b.params.size() != carried.size() + 1 || b.yields.size() != carried.size())
      return bad(fmt::format("a loop carries {} values but its body takes {} and yields {}", carried.size(),
                             static_cast<int64_t>(b.params.size()) - 1, b.yields.size()),
                 n.span);
    const size_t mark = defined_.size();
    for (size_t i = 0; i < b.params.size(); ++i) {
      GK_CHECK(define(b.params[i], n.span));
      defined_.push_back(b.params[i]);
      const Type want = i == 0 ? Type::of(DType::I64, {}) : carried[i - 1];
      if (!m_.type(b.params[i]).same_as(want))
        return bad(fmt::format("loop parameter %{} is {}, not {}", b.params[i],
                               to_string(m_.type(b.params[i])), to_string(want)),
                   n.span);
    }
    for (const Node& inner : b.nodes) {
      GK_CHECK(node(inner));
      defined_.insert(defined_.end(), inner.results.begin(), inner.results.end());
    }
    for (size_t i = 0; i < b.yields.size(); ++i) {
      GK_CHECK(use(b.yields[i], n.span));
      if (!m_.type(b.yields[i]).same_as(carried[i]))
        return bad(fmt::format("a loop yields %{} as {}, not {}", b.yields[i],
                               to_string(m_.type(b.yields[i])), to_string(carried[i])),
                   n.span);
    }
    for (; defined_.size() > mark; defined_.pop_back())
      state_[static_cast<size_t>(defined_.back())] = State::Left;
    return {};
  }

  Result<void> outputs() const {
    std::vector<bool> written(m_.slots.size(), false);
    for (const Output& o : m_.outputs) {
      GK_CHECK(use(o.value, {}));
      if (o.slot < 0 || o.slot >= static_cast<int>(m_.slots.size()))
        return bad(fmt::format("no output slot {}", o.slot));
      const SlotInfo& s = m_.slots[static_cast<size_t>(o.slot)];
      if (!s.is_output) return bad(fmt::format("slot {} is not an output", o.slot));
      if (!s.type.same_as(m_.type(o.value)))
        return bad(fmt::format("output %{} is {}, its slot {}", o.value, to_string(m_.type(o.value)),
                               to_string(s.type)));
      if (written[static_cast<size_t>(o.slot)]) return bad(fmt::format("slot {} is written twice", o.slot));
      written[static_cast<size_t>(o.slot)] = true;
    }
    for (size_t i = 0; i < m_.slots.size(); ++i)
      if (m_.slots[i].is_output && !written[i]) return bad(fmt::format("output slot {} is not written", i));
    return {};
  }

  const Module& m_;
  std::vector<State> state_;
  std::vector<ValueId> defined_;  // of the loops now open, innermost last
};

}  // namespace

Result<void> verify(const Module& m) { return Verifier(m).run(); }

}  // namespace gk::ir
