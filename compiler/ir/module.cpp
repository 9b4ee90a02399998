#include "compiler/ir/module.h"

#include <fmt/format.h>

#include "compiler/ir/kernel.h"

namespace gk::ir {
namespace {

Failure call_error(const Attrs& attrs, std::string_view code, std::string_view what) {
  return fail(ErrorKind::Type, code, fmt::format("cannot call kernel {}: {}", attrs.name, what));
}

// Operands of a kernel call are its parameters, in order; a scalar parameter takes a 0-d value.
Result<std::vector<Type>> kernel_results(std::span<const Type> operands, const Attrs& attrs) {
  if (!attrs.kernel) return call_error(attrs, "E0203", "it has no body");
  const Kernel& k = *attrs.kernel;
  if (operands.size() != k.params.size())
    return call_error(attrs, "E0203",
                      fmt::format("it takes {} operands, not {}", k.params.size(), operands.size()));
  if (attrs.shape.rank() != static_cast<int>(k.axes.size()))
    return call_error(attrs, "E0304",
                      fmt::format("it runs over {} axes, not {}", k.axes.size(), attrs.shape.rank()));
  for (int i = 0; i < attrs.shape.rank(); ++i) {
    const KSize& axis = k.axes[static_cast<size_t>(i)];
    if (attrs.shape[i] < 0 || (axis.param < 0 && axis.value != attrs.shape[i]))
      return call_error(attrs, "E0303",
                        fmt::format("its axis {} cannot have the extent {}", i, attrs.shape[i]));
  }
  std::vector<Type> out;
  for (size_t i = 0; i < operands.size(); ++i) {
    const KParam& p = k.params[i];
    const Type& t = operands[i];
    const size_t rank = p.kind == KParam::Kind::Buffer ? p.extents.size() : 0;
    if (t.dtype != p.dtype || t.dims.size() != rank)
      return call_error(
          attrs, "E0201",
          fmt::format("parameter {} is {} of {} axes, not {}", i, name(p.dtype), rank, to_string(t)));
    for (size_t d = 0; d < rank; ++d)
      if (p.extents[d].param < 0 && equal(Dim::known(p.extents[d].value), t.dims[d]) == Tri::No)
        return call_error(attrs, "E0303",
                          fmt::format("parameter {} has the extent {} on axis {}, not {}", i,
                                      p.extents[d].value, d, to_string(t.dims[d])));
    if (p.kind == KParam::Kind::Buffer && p.written) out.push_back(t);
  }
  return out;
}

}  // namespace

Result<std::vector<Type>> result_types(const Module& m, Op op, std::span<const Type> operands,
                                       const Attrs& attrs) {
  switch (op) {
    case Op::Input: {
      if (attrs.index < 0 || attrs.index >= static_cast<int64_t>(m.slots.size()))
        return fail(ErrorKind::Type, "E0203", fmt::format("no slot {}", attrs.index));
      return std::vector<Type>{m.slots[static_cast<size_t>(attrs.index)].type};
    }
    case Op::KernelCall: return kernel_results(operands, attrs);
    default: {
      GK_TRY(Type t, infer(op, operands, attrs));
      return std::vector<Type>{std::move(t)};
    }
  }
}

Result<ValueId> append(Module& m, Region& r, Op op, std::vector<ValueId> operands, Attrs attrs, Span span) {
  std::vector<Type> types;
  for (ValueId v : operands) {
    if (v < 0 || v >= static_cast<ValueId>(m.value_types.size()))
      return fail(ErrorKind::Internal, "E0901", fmt::format("operand %{} is not a value", v), span);
    types.push_back(m.type(v));
  }
  auto results = result_types(m, op, types, attrs);
  if (!results) return fail(std::move(results).error().at(span));
  Node n;
  n.op = op;
  n.operands = std::move(operands);
  n.attrs = std::move(attrs);
  n.span = span;
  for (Type& t : *results) n.results.push_back(m.new_value(std::move(t)));
  const ValueId first = n.results.empty() ? -1 : n.results[0];
  r.nodes.push_back(std::move(n));
  return first;
}

std::vector<Type> result_types(const Module& m, const Node& n) {
  std::vector<Type> out;
  const std::vector<ValueId>& yields = n.regions[0].yields;
  for (size_t i = region_form(n.op).yield; i < yields.size(); ++i) out.push_back(m.type(yields[i]));
  return out;
}

std::vector<ValueId> append(Module& m, Region& r, Node n) {
  for (Type& t : result_types(m, n)) n.results.push_back(m.new_value(std::move(t)));
  std::vector<ValueId> results = n.results;
  r.nodes.push_back(std::move(n));
  return results;
}

}  // namespace gk::ir
