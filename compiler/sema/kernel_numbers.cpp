#include "compiler/sema/kernel_numbers.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "compiler/sema/host_number.h"

namespace gk::sema {

int KernelNumbers::add(std::vector<int64_t> key, Node n) {
  key.push_back(static_cast<int64_t>(n.what));
  const auto [at, fresh] = known_.try_emplace(std::move(key), static_cast<int>(nodes_.size()));
  if (fresh) nodes_.push_back(std::move(n));
  return at->second;
}

int KernelNumbers::argument(int param, DType kind) {
  Node n;
  n.what = What::Argument;
  n.kind = kind;
  n.a = param;
  return add({param}, std::move(n));
}

int KernelNumbers::extent(int param, int axis) {
  Node n;
  n.what = What::Extent;
  n.kind = DType::I64;
  n.a = param;
  n.b = axis;
  n.at = static_cast<int>(extents_.size());
  const size_t before = nodes_.size();
  const int id = add({param, axis}, std::move(n));
  if (nodes_.size() > before) extents_.push_back({param, axis});
  return id;
}

int KernelNumbers::number(const Scalar& s) {
  Node n;
  n.kind = is_bool(s.dtype) ? DType::Bool : s.is_float() ? DType::F64 : DType::I64;
  n.value = s;
  return add({static_cast<int64_t>(s.dtype), s.i, std::bit_cast<int64_t>(s.f)}, std::move(n));
}

int KernelNumbers::apply(ir::Op op, const std::vector<int>& args, DType kind, Span span) {
  Node n;
  n.what = What::Apply;
  n.kind = kind;
  n.op = op;
  n.args = args;
  n.span = span;
  std::vector<int64_t> key{static_cast<int64_t>(op)};
  key.insert(key.end(), args.begin(), args.end());
  return add(std::move(key), std::move(n));
}

int KernelNumbers::use(int node, DType t, bool convert, const std::vector<NumberGuard>& guards, int fresh,
                       Span span) {
  auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& u) {
    return u.node == node && u.dtype == t && u.convert == convert;
  });
  if (use == uses_.end()) use = uses_.insert(uses_.end(), {node, t, convert, fresh, {}});
  const bool known =
      std::any_of(use->places.begin(), use->places.end(), [&](const Place& p) { return p.guards == guards; });
  if (!known) use->places.push_back({guards, span});
  return use->param;
}

std::vector<int> KernelNumbers::needed(const Use& use) const {
  std::set<int> found;
  std::vector<int> reached{use.node};
  for (const Place& p : use.places)
    for (const NumberGuard& g : p.guards) reached.push_back(g.node);
  while (!reached.empty()) {
    const int id = reached.back();
    reached.pop_back();
    if (!found.insert(id).second) continue;
    const Node& n = nodes_[static_cast<size_t>(id)];
    reached.insert(reached.end(), n.args.begin(), n.args.end());
  }
  return {found.begin(), found.end()};
}

std::vector<int> KernelNumbers::arguments_of(const Use& use) const {
  std::vector<int> params;
  for (int id : needed(use))
    if (is_argument(id)) params.push_back(param_of(id));
  return params;
}

Result<std::optional<Scalar>> KernelNumbers::value(const Use& use, const Given& given) const {
  using Number = Result<std::optional<Scalar>>;
  std::map<int, Number> numbers;
  const auto at = [&](int id) -> const Number& { return numbers.at(id); };
  const auto computed = [&](const Node& n) -> Number {
    switch (n.what) {
      case What::Argument: return given.arguments[static_cast<size_t>(n.a)];
      case What::Number: return std::optional(n.value);
      case What::Extent: {
        const auto& e = given.extents[static_cast<size_t>(n.at)];
        return e ? std::optional(Scalar::of_int(*e)) : std::nullopt;
      }
      case What::Apply: break;
    }
    // What is not chosen, and what the left side of a logical operation decides, has no errors.
    const bool chooses = n.op == ir::Op::Where;
    if (chooses || n.op == ir::Op::And || n.op == ir::Op::Or) {
      const Number& first = at(n.args[0]);
      if (!first || !*first) return first;
      if (chooses) {
        const Number& chosen = at(n.args[(*first)->i ? 1 : 2]);
        if (!chosen || !*chosen) return chosen;
        return std::optional(n.kind == DType::F64 ? (*chosen)->cast(DType::F64) : **chosen);
      }
      if (is_bool((*first)->dtype) && ((*first)->i != 0) == (n.op == ir::Op::Or)) return *first;
    }
    std::vector<Scalar> args;
    for (int a : n.args) {
      const Number& v = at(a);
      if (!v || !*v) return v;
      args.push_back(**v);
    }
    auto r = host_apply(n.op, args);
    if (!r) return fail(std::move(r.error()).at(n.span));
    return std::optional(*r);
  };
  for (int id : needed(use)) numbers.emplace(id, computed(nodes_[static_cast<size_t>(id)]));

  // Guards stand in the order of the text: an earlier one decides whether a later one is asked.
  for (const Place& p : use.places) {
    bool needed_here = true;
    for (const NumberGuard& g : p.guards) {
      const Number& v = at(g.node);
      if (!v || !*v) return v;
      needed_here = ((*v)->i != 0) == g.holds;
      if (!needed_here) break;
    }
    if (!needed_here) continue;
    const Number& v = at(use.node);
    if (!v || !*v) return v;
    if (use.convert) return std::optional((*v)->cast(use.dtype));
    auto fitted = host_fit(**v, use.dtype);
    if (!fitted) return fail(std::move(fitted.error()).at(p.span));
    return std::optional(*fitted);
  }
  return std::optional(Scalar{use.dtype, 0, 0});
}

}  // namespace gk::sema
