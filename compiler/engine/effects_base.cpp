#include "compiler/engine/effects_base.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/engine/format.h"
#include "compiler/engine/npy.h"

namespace gk::engine {

std::string EffectsBase::format(const interp::Array& a) { return format_array(a); }
std::string EffectsBase::format(const Scalar& s) { return format_scalar(s); }
Result<std::string> EffectsBase::format(const Scalar& s, std::string_view spec) {
  return format_spec(s, spec);
}
Result<std::string> EffectsBase::format(std::string_view text, std::string_view spec) {
  return format_spec(text, spec);
}

Result<std::vector<std::pair<std::string, interp::Array>>> EffectsBase::load(const std::string& path) {
  Progress shown(progress, fmt::format("reading {}", path));
  if (path.ends_with(".npz")) return read_npz(path);
  GK_TRY(auto a, read_npy(path));
  std::vector<std::pair<std::string, interp::Array>> out;
  out.emplace_back("", std::move(a));
  return out;
}

Result<void> EffectsBase::save(const std::string& path,
                               const std::vector<std::pair<std::string, interp::Array>>& arrays) {
  if (path.ends_with(".npz")) return write_npz(path, arrays);
  return write_npy(path, arrays.at(0).second);
}

Result<void> EffectsBase::check_nan(const interp::Array& a, const std::string& name, Span span) {
  if (!gk::is_float(a.dtype)) return {};
  for (int64_t i = 0; i < a.size(); ++i)
    if (std::isnan(a.get(i).f))
      return fail(
          ErrorKind::Runtime, "E0805",
          fmt::format("{} has a NaN at element {}", name.empty() ? "the result" : "`" + name + "`", i), span);
  return {};
}

}  // namespace gk::engine
