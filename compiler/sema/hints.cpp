#include "compiler/sema/hints.h"

#include <fmt/format.h>

#include <cmath>

namespace gk::sema {

namespace {

constexpr size_t kShortOperand = 24;  // longer ones stay `…`

// "[:, new]" where an array of extents `few` could stand for the leading axes of `many`.
std::optional<std::string> axes_to_add(const ir::Dims& few, const ir::Dims& many) {
  if (few.empty() || few.size() >= many.size()) return std::nullopt;
  ir::Dims widened = few;
  widened.resize(many.size(), ir::Dim::known(1));
  if (!ir::broadcast(widened, many)) return std::nullopt;
  std::string text;
  for (size_t i = 0; i < many.size(); ++i)
    text += fmt::format("{}{}", i ? ", " : "[", i < few.size() ? ":" : "new");
  return text + "]";
}

// Which operand the help says to convert: the integer that a float literal meets, the bool, the u64.
bool to_convert_left(const Error& e, const Value& a, const Value& b) {
  if (e.code == "E0203") return !(a.is_scalar() && a.weak);
  const auto dtype = [](const Value& v) { return v.is_array() ? v.array->type.dtype : v.scalar.dtype; };
  const bool bools = is_bool(dtype(a)) != is_bool(dtype(b));
  return bools ? is_bool(dtype(a)) : dtype(a) == DType::U64;
}

}  // namespace

std::string for_float_literal(const Value& v, DType t, const Value* other, DType default_float) {
  const bool host = other && other->is_scalar();
  std::string help =
      other ? fmt::format("convert the {}: `{}(…)`", host ? "integer" : "array", name(default_float))
            : fmt::format("convert it: `{}(…)` truncates", name(t));
  if (v.known && v.scalar.f == std::trunc(v.scalar.f) && std::fabs(v.scalar.f) < 0x1p63)
    help += fmt::format(", or write an integer: `{:.0f}`", v.scalar.f);
  return help;
}

Error advised(Error e, const Value& a, const Value& b, const std::string& left, const std::string& right) {
  if ((e.code == "E0203" || e.code == "E0205") && !e.helps.empty()) {
    const std::string& operand = to_convert_left(e, a, b) ? left : right;
    const std::string_view gap = "(…)";
    for (size_t at = 0; operand.size() <= kShortOperand;) {
      at = e.helps[0].find(gap, at);
      if (at == std::string::npos) break;
      e.helps[0].replace(at, gap.size(), "(" + operand + ")");
    }
  }
  if (e.code == "E0301" && a.is_array() && b.is_array()) {
    const auto &x = a.array->type.dims, &y = b.array->type.dims;
    const bool first = x.size() < y.size();
    const std::string& operand = first ? left : right;
    const bool name = operand.find_first_of(" (+-*/@[{") == std::string::npos;
    if (const auto brackets = first ? axes_to_add(x, y) : axes_to_add(y, x))
      e = std::move(e).help(fmt::format("add an axis: `{}{}`", name ? operand : "(…)", *brackets));
  }
  return e;
}

}  // namespace gk::sema
