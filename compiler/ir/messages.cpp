#include "compiler/ir/messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace gk::ir {
namespace {

// The first pair of trailing-aligned extents that cannot agree, from the last axis on.
std::string disagreement(const Dims& a, const Dims& b) {
  const size_t common = std::min(a.size(), b.size());
  for (size_t i = 1; i <= common; ++i) {
    const Dim &x = a[a.size() - i], &y = b[b.size() - i];
    if (equal(x, y) == Tri::No && x.value != 1 && y.value != 1)
      return fmt::format("broadcasting aligns trailing axes: {} against {}", to_string(x), to_string(y));
  }
  return {};
}

}  // namespace

std::string phrase(Op op, std::span<const Type> operands) {
  std::vector<std::string> names;
  for (const Type& t : operands) names.push_back(to_string(t));
  return phrase(op, names);
}

std::string phrase(Op op, std::span<const std::string> names) {
  if (names.size() == 2) {
    const std::string &a = names[0], &b = names[1];
    switch (op) {
      case Op::Add: return fmt::format("add {} and {}", a, b);
      case Op::Sub: return fmt::format("subtract {} from {}", b, a);
      case Op::Mul: return fmt::format("multiply {} and {}", a, b);
      case Op::Div:
      case Op::FloorDiv: return fmt::format("divide {} by {}", a, b);
      case Op::Mod: return fmt::format("take the remainder of {} by {}", a, b);
      case Op::PowInt:
      case Op::Pow: return fmt::format("raise {} to the power {}", a, b);
      case Op::Eq:
      case Op::Ne:
      case Op::Lt:
      case Op::Le:
      case Op::Gt:
      case Op::Ge: return fmt::format("compare {} and {}", a, b);
      case Op::MatMul: return fmt::format("matrix-multiply {} and {}", a, b);
      case Op::UpdateSlice: return fmt::format("write {} into a region of {}", b, a);
      case Op::Take: return fmt::format("index {} with {}", a, b);
      default: break;
    }
  }
  if (op == Op::Concat) return fmt::format("concatenate {}", fmt::join(names, " and "));
  if (op == Op::Neg && names.size() == 1) return fmt::format("negate {}", names[0]);
  if (names.empty()) return fmt::format("apply {}", info(op).name);
  std::string list = names[0];
  for (size_t i = 1; i < names.size(); ++i) list += (i + 1 == names.size() ? " and " : ", ") + names[i];
  return fmt::format("apply {} to {}", info(op).name, list);
}

Error broadcast_error(Op op, const Type& a, const Type& b) {
  const Type both[] = {a, b};
  Error e = make_error(ErrorKind::Shape, "E0301", "cannot " + phrase(op, both));
  std::string note = disagreement(a.dims, b.dims);
  if (!note.empty()) e.notes.push_back(std::move(note));
  // The usual mistake: a vector meant for the leading axis.
  if (a.rank() != b.rank()) {
    const bool first = a.rank() < b.rank();
    Dims small = first ? a.dims : b.dims;
    const Dims& large = first ? b.dims : a.dims;
    std::string index = ":";
    for (size_t i = 1; i < small.size(); ++i) index += ", :";
    while (small.size() < large.size()) {
      small.push_back(Dim::known(1));
      index += ", new";
    }
    if (broadcast(small, large))
      e.helps.push_back(
          fmt::format("add an axis: index the {} operand with `[{}]`", first ? "first" : "second", index));
  }
  return e;
}

}  // namespace gk::ir
