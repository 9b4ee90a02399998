// The invariants of a module. Every failure is a compiler bug (E0901), so messages speak of IR, not of
// source.
#include <fmt/format.h>

#include <utility>

#include "compiler/ir/kernel.h"
#include "compiler/ir/module.h"

namespace gk::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Module& m) : m_(m), home_(m.value_types.size(), kNowhere) {}

  Result<void> run() {
    GK_CHECK(slots());
    if (!m_.top.params.empty() || !m_.top.yields.empty())
      return bad("the top region has parameters or yields");
    for (const Node& n : m_.top.nodes) GK_CHECK(node(n));
    return outputs();
  }

 private:
  static constexpr int kNowhere = -1;

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
    if (v < 0 || v >= static_cast<ValueId>(home_.size())) return bad(fmt::format("%{} has no type", v), span);
    int& home = home_[static_cast<size_t>(v)];
    if (home != kNowhere) return bad(fmt::format("%{} is defined twice", v), span);
    home = region_;
    GK_CHECK(concrete(m_.type(v), fmt::format("%{}", v)));
    return {};
  }

  Result<void> use(ValueId v, Span span) const {
    if (v < 0 || v >= static_cast<ValueId>(home_.size()))
      return bad(fmt::format("%{} is not a value", v), span);
    const int home = home_[static_cast<size_t>(v)];
    if (home == kNowhere) return bad(fmt::format("%{} is used before its definition", v), span);
    if (home != region_) return bad(fmt::format("%{} is used outside its region", v), span);
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
    if (has_regions(n.op)) GK_CHECK(regions(n, types));
    auto want = has_regions(n.op) ? result_types(m_, n) : result_types(m_, n.op, types, n.attrs);
    if (!want) return bad(fmt::format("{}: {}", info(n.op).name, want.error().message), n.span);
    if (n.op == Op::Input && region_ != 0) return bad("an input stands in a region", n.span);
    if (n.op == Op::Input && !m_.slots[static_cast<size_t>(n.attrs.index)].is_input)
      return bad(fmt::format("input of slot {}, which is not an input", n.attrs.index), n.span);
    if (n.op == Op::Param) GK_CHECK(param(n));
    if (n.op == Op::KernelCall) GK_CHECK(verify(*n.attrs.kernel));
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
  Result<void> regions(const Node& n, const std::vector<Type>& types) {
    const RegionForm form = region_form(n.op);
    const Type condition = Type::of(DType::Bool, {});
    if (form.operand == 1 && (types.empty() || !types[0].same_as(condition)))
      return bad("the first operand is not a condition, bool[]", n.span);
    if (form.param == 1 && n.attrs.index < 0) return bad("a loop has a negative trip count", n.span);
    if (n.regions.size() != (n.op == Op::If ? 2U : 1U))
      return bad(fmt::format("{} has {} regions", info(n.op).name, n.regions.size()), n.span);
    if (form.carries && n.results.size() > num_inputs(n))
      return bad(
          fmt::format("{} carries {} values but has {}", info(n.op).name, n.results.size(), num_inputs(n)),
          n.span);
    std::vector<Type> params(form.param, Type::of(DType::I64, {})), yields(form.yield, condition);
    params.insert(params.end(), types.begin() + static_cast<long>(form.operand), types.end());
    for (size_t k = 0; k < n.results.size(); ++k) {
      if (form.carries)
        yields.push_back(types[form.operand + k]);
      else if (const ValueId r = n.results[k]; r >= 0 && r < static_cast<ValueId>(home_.size()))
        yields.push_back(m_.type(r));
    }
    for (const Region& r : n.regions) GK_CHECK(region(n, r, params, yields));
    return {};
  }

  Result<void> region(const Node& n, const Region& r, const std::vector<Type>& params,
                      const std::vector<Type>& yields) {
    const auto fits = [&](const char* what, const std::vector<ValueId>& have,
                          const std::vector<Type>& want) -> Result<void> {
      if (have.size() != want.size())
        return bad(
            fmt::format("a region of {} has {} {}s, not {}", info(n.op).name, have.size(), what, want.size()),
            n.span);
      for (size_t i = 0; i < have.size(); ++i)
        if (!m_.type(have[i]).same_as(want[i]))
          return bad(fmt::format("{} %{} of {} is {}, not {}", what, have[i], info(n.op).name,
                                 to_string(m_.type(have[i])), to_string(want[i])),
                     n.span);
      return {};
    };
    const int around = std::exchange(region_, ++regions_);
    for (const ValueId p : r.params) GK_CHECK(define(p, n.span));
    GK_CHECK(fits("parameter", r.params, params));
    for (const Node& inner : r.nodes) GK_CHECK(node(inner));
    for (const ValueId y : r.yields) GK_CHECK(use(y, n.span));
    GK_CHECK(fits("yield", r.yields, yields));
    region_ = around;
    return {};
  }

  Result<void> param(const Node& n) const {
    if (n.attrs.index < 0 || n.attrs.index >= static_cast<int64_t>(m_.params.size()))
      return bad(fmt::format("no scalar slot {}", n.attrs.index), n.span);
    if (m_.params[static_cast<size_t>(n.attrs.index)].dtype != n.attrs.value.dtype)
      return bad(fmt::format("scalar slot {} is not {}", n.attrs.index, name(n.attrs.value.dtype)), n.span);
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
  std::vector<int> home_;  // by value: the region that defines it, by number
  int region_ = 0, regions_ = 0;
};

}  // namespace

Result<void> verify(const Module& m) { return Verifier(m).run(); }

}  // namespace gk::ir
