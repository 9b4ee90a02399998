// Extents as the arguments of a call.
#include "compiler/sema/builtin_args.h"
#include "compiler/sema/host_number.h"

namespace gk::sema {

Result<std::vector<std::optional<int64_t>>> extents_of(const Evaluator& ev, Call& call, size_t from,
                                                       std::vector<ir::Dim>* named) {
  std::vector<std::optional<int64_t>> out;
  struct Extent {
    const Value& value;
    Span span;
    bool alone;  // the text of the span is its own
  };
  std::vector<Extent> values;
  for (size_t i = from; i < call.args.size(); ++i) {
    const auto& a = call.args[i];
    if (!a.name.empty())
      return fail(ErrorKind::Type, "E0206", fmt::format("`{}` has no argument `{}`", call.callee, a.name),
                  a.span);
    if (a.value.kind == VKind::Tuple || a.value.kind == VKind::List)
      for (const auto& v : a.value.items->items) values.push_back({v, a.span, false});
    else
      values.push_back({a.value, a.span, true});
  }
  for (const auto& [v, span, alone] : values) {
    if (v.is_unknown() || (v.is_scalar() && !v.known)) {
      out.push_back(std::nullopt);
      if (named) named->push_back(ir::Dim{-1, v.symbol, v.text});
      continue;
    }
    if (!v.is_scalar() || !is_integer(v.scalar.dtype)) {
      Error e = make_error(ErrorKind::Type, "E0212",
                           fmt::format("an extent is a host integer, not {}", describe(v)), span);
      std::string text = alone ? ev.written(span) : v.is_scalar() ? number_text(v.scalar) : "…";
      if (v.is_scalar() && text.find_first_not_of("0123456789") == std::string::npos) text += ".0";
      if (v.is_scalar() || (v.is_array() && v.array->type.rank() == 0))
        e.helps = {fmt::format("convert it: `{}`", as_host_integer(v, text))};
      else if (v.is_array())
        e.helps = {"write the extents as a tuple: `(2, 3)`"};
      return fail(std::move(e));
    }
    GK_TRY(const int64_t extent, small_integer(v, "an extent", span));
    out.push_back(extent);
    if (named) named->push_back(ir::Dim::known(extent, v.text));
  }
  if (out.size() > kMaxRank)
    return fail(ErrorKind::Shape, "E0306", "the rank is over the limit of 8", call.span);
  return out;
}

}  // namespace gk::sema
