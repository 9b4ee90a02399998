#include "compiler/passes/nan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/passes/lookup.h"

namespace gk::passes {

namespace {

using ir::KInst;
using ir::KKind;
using ir::KSize;

/// Where values come from, in a module and in its regions.
class Origins {
 public:
  explicit Origins(const ir::Module& m) : m_(m), look_(m) {}

  /// Whether every element is one of an array from outside the module or region.
  bool is_moved(ValueId v) const {
    if (!look_.node(v)) return true;
    const ir::Node& n = *look_.node(v);
    switch (n.op) {
      case Op::Input: return true;
      case Op::Cast: return gk::is_float(m_.type(n.operands[0]).dtype) && is_moved(n.operands[0]);
      case Op::Broadcast:
      case Op::Reshape:
      case Op::Transpose:
      case Op::Slice:
      case Op::Take: return is_moved(n.operands[0]);
      case Op::Where: return is_moved(n.operands[1]) && is_moved(n.operands[2]);
      case Op::UpdateSlice:
      case Op::Concat:
        return std::all_of(n.operands.begin(), n.operands.end(), [&](ValueId o) { return is_moved(o); });
      default: return false;
    }
  }

  /// The text of what computed the elements, behind whatever only moves them.
  Span span(ValueId v) const {
    if (!look_.node(v)) return {};
    const ir::Node& n = *look_.node(v);
    Span inner{};
    switch (n.op) {
      case Op::Cast:
      case Op::Broadcast:
      case Op::Reshape:
      case Op::Transpose:
      case Op::Slice: inner = span(n.operands[0]); break;
      case Op::UpdateSlice:
        inner = is_moved(n.operands[1]) ? span(n.operands[0]) : span(n.operands[1]);
        break;
      case Op::Loop:
      case Op::If:
      case Op::While:
      case Op::Repeat: inner = in_regions(n, v); break;
      default: break;
    }
    return inner.valid() ? inner : n.span;
  }

 private:
  // Of two branches the first that computes it.
  Span in_regions(const ir::Node& n, ValueId v) const {
    const auto k = static_cast<size_t>(std::find(n.results.begin(), n.results.end(), v) - n.results.begin());
    for (const ir::Region& r : n.regions)
      if (const ValueId y = r.yields[ir::region_form(n.op).yield + k]; !is_moved(y)) return span(y);
    return {};
  }

  const ir::Module& m_;
  Lookup look_;
};

/// A kernel that finds the first NaN of n elements and then reads n elements beyond it: the fault of that
/// read is the report.
std::shared_ptr<const ir::Kernel> search(DType t) {
  auto k = std::make_shared<ir::Kernel>();
  k->kind = ir::Kernel::Kind::Reduce;
  k->name = "nan_check";
  k->uses_faults = true;
  k->params.resize(2);
  k->params[0].dtype = t;
  k->params[0].read = true;
  k->params[0].name = "x";
  k->params[1].kind = ir::KParam::Kind::Scalar;
  k->params[1].dtype = DType::I64;
  k->params[1].name = "n";
  k->reduce_axes = {KSize::dynamic(1)};
  ir::KBlock* block = &k->body;
  const auto add = [&](KKind kind, DType type, std::vector<int> args) -> KInst& {
    KInst& i = block->insts.emplace_back();
    i.kind = kind;
    i.dtype = type;
    i.args = std::move(args);
    i.result = k->num_values++;
    return i;
  };
  const auto compute = [&](Op op, std::vector<int> args, DType type) {
    KInst& i = add(KKind::Compute, type, std::move(args));
    i.op = op;
    return i.result;
  };
  const auto count = [&] {
    KInst& i = add(KKind::ScalarParam, DType::I64, {});
    i.param = 1;
    return i.result;
  };
  KInst& element = add(KKind::Load, t, {});
  element.access.param = 0;
  element.access.strides = {KSize::fixed(1)};
  const int is_nan = compute(Op::IsNan, {element.result}, DType::Bool);
  KInst& axis = add(KKind::AxisIndex, DType::I64, {});
  axis.axis = 0;
  const int at = axis.result;
  ir::KReduction first;
  first.op = ir::ReduceOp::Min;
  first.value = compute(Op::Where, {is_nan, at, count()}, DType::I64);
  first.value_dtype = first.accumulator = DType::I64;
  k->reductions = {first};

  block = &k->epilogue;
  KInst& found = add(KKind::ReduceResult, DType::I64, {});
  found.reduction = 0;
  const int index = found.result;
  const int n = count();
  const int there = compute(Op::Lt, {index, n}, DType::Bool);
  const int beyond = compute(Op::Add, {index, n}, DType::I64);
  const int zero = add(KKind::Const, DType::I64, {}).result;
  block->insts.back().value = Scalar::of_int(0);
  const int read = compute(Op::Where, {there, beyond, zero}, DType::I64);
  KInst& report = add(KKind::Gather, t, {read});
  report.axis = 0;
  report.access.param = 0;
  report.size = KSize::dynamic(1);
  report.stride = KSize::fixed(1);
  return k;
}

/// By its own name, or by that of the record or list that it is a part of.
bool is_exempt(const std::string& name, const std::vector<std::string>& exempt) {
  return std::any_of(exempt.begin(), exempt.end(), [&](const std::string& e) {
    return name == e || name.starts_with(e + ".") || name.starts_with(e + "[");
  });
}

bool writes(const program::Step& s, int slot) {
  return std::any_of(s.writes.begin(), s.writes.end(), [&](const program::Ref& r) {
    return r.kind == program::Ref::Kind::Slot && r.index == slot;
  });
}

program::Step check_of(const program::Slot& slot, const NanSite& site, Span written_at) {
  program::Step s;
  s.label = fmt::format("nan check{}{}", slot.name.empty() ? "" : " of ", slot.name);
  s.span = site.span.valid() ? site.span : written_at;
  program::Ref whole;
  whole.index = site.slot;
  whole.size_bytes = slot.size_bytes;
  s.reads = {whole};
  program::Arg x, n;
  x.ref = whole;
  n.kind = program::Arg::Kind::Value;
  n.value = Scalar::of_int(slot.size_bytes / size_bytes(slot.dtype));
  s.args = {x, n};
  program::FaultSite fault;
  fault.kind = program::FaultSite::kNotANumber;
  fault.span = s.span;
  fault.name = slot.name;
  fault.shape = slot.shape;
  s.fault_sites = {fault};
  return s;
}

}  // namespace

std::vector<NanSite> nan_sites(const ir::Module& m, const std::vector<std::string>& exempt) {
  const Origins origins(m);
  std::vector<NanSite> sites;
  for (const ir::Output& o : m.outputs) {
    const ir::SlotInfo& slot = m.slots[static_cast<size_t>(o.slot)];
    if (!gk::is_float(slot.type.dtype) || is_exempt(slot.name, exempt) || origins.is_moved(o.value)) continue;
    sites.push_back({o.slot, origins.span(o.value)});
  }
  return sites;
}

void add_nan_checks(Schedule& schedule, const std::vector<NanSite>& sites) {
  program::Program& p = schedule.program;
  std::multimap<size_t, const NanSite*> after;  // the step that writes last
  for (const NanSite& site : sites) {
    if (p.slots[static_cast<size_t>(site.slot)].size_bytes == 0) continue;
    for (size_t i = p.steps.size(); i-- > 0;)
      if (writes(p.steps[i], site.slot)) {
        after.emplace(i, &site);
        break;
      }
  }
  if (after.empty()) return;
  std::map<DType, int> kernels;
  std::vector<program::Step> steps;
  std::vector<KernelUse> uses;
  std::vector<std::vector<Schedule>> bodies;
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const Span written_at = p.steps[i].span;
    steps.push_back(std::move(p.steps[i]));
    uses.push_back(std::move(schedule.uses[i]));
    bodies.push_back(std::move(schedule.bodies[i]));
    for (auto [it, end] = after.equal_range(i); it != end; ++it) {
      const program::Slot& slot = p.slots[static_cast<size_t>(it->second->slot)];
      const auto [kernel, fresh] = kernels.emplace(slot.dtype, static_cast<int>(schedule.kernels.size()));
      if (fresh) schedule.kernels.push_back(search(slot.dtype));
      steps.push_back(check_of(slot, *it->second, written_at));
      KernelUse use;
      use.kernel = kernel->second;
      use.reduce_axes = {steps.back().args[1].value.i};
      uses.push_back(std::move(use));
      bodies.emplace_back();
    }
  }
  p.steps = std::move(steps);
  schedule.uses = std::move(uses);
  schedule.bodies = std::move(bodies);
}

}  // namespace gk::passes
