#include "compiler/sema/hints.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/sema/host_number.h"

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

Error fitting_help(Error e, const Scalar& number, DType t, const Value* other) {
  if (e.code != "E0203") return e;
  if (number.is_float() && !gk::is_float(t)) {
    std::string help = fmt::format("convert it: `{}(…)` truncates", name(t));
    if (number.f == std::trunc(number.f) && std::fabs(number.f) < 0x1p63)
      help += fmt::format(", or write an integer: `{:.0f}`", number.f);
    return std::move(e).help(std::move(help));
  }
  if (!other) {
    const char* what = gk::is_float(t) ? "gives an infinity" : "wraps";
    return std::move(e).help(fmt::format("convert it: `{}({})` {}", name(t), number_text(number), what));
  }
  // The least dtype that holds both.
  for (DType wide : {DType::I16, DType::I32, DType::I64, DType::U64, DType::F32, DType::F64})
    if (gk::is_float(wide) == gk::is_float(t) && promote(wide, t) == wide && host_fit(number, wide))
      return std::move(e).help(
          fmt::format("convert the {}: `{}(…)`", other->is_scalar() ? "other side" : "array", name(wide)));
  return e;
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
  // Bools do not meet numbers.
  const auto bools = [](const Value& v) {
    return (v.is_array() && is_bool(v.array->type.dtype)) || (v.is_scalar() && is_bool(v.scalar.dtype));
  };
  const bool computable = (a.is_array() || a.is_scalar()) && (b.is_array() || b.is_scalar());
  if (computable && (e.code == "E0201" || e.code == "E0204") && bools(a) != bools(b)) {
    const Value& number = bools(a) ? b : a;
    const bool fraction =
        number.is_array() ? gk::is_float(number.array->type.dtype) : gk::is_float(number.scalar.dtype);
    e.helps = {fmt::format("convert the bools: `{}({})`", fraction ? "f32" : "i32", bools(a) ? left : right)};
  }
  // The last two axes change places; of a matrix `.T` says it.
  if (e.code == "E0302" && !e.helps.empty() && a.is_array() && b.is_array())
    for (const auto& [v, text, which] : {std::tuple{&a, &left, "first"}, {&b, &right, "second"}}) {
      const int rank = v->array->type.rank();
      if (rank < 3 || e.helps[0] != fmt::format("transpose the {} operand", which)) continue;
      std::string axes;
      for (int i = 0; i < rank; ++i)
        axes += fmt::format("{}{}", i ? ", " : "", i < rank - 2 ? i : 2 * rank - 3 - i);
      e.helps = {fmt::format("transpose the {} operand: `transpose({}, ({}))`", which, *text, axes)};
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
