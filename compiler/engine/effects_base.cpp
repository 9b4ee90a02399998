#include "compiler/engine/effects_base.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/formats/format.h"
#include "compiler/formats/npy.h"
#include "runtime/base/nan_found.h"

namespace gk::engine {

std::string EffectsBase::format(const interp::Array& a, bool shorten) {
  formats::PrintOptions options;
  if (shorten) options.threshold = 0;
  return formats::format_array(a, options);
}
std::string EffectsBase::format(const Scalar& s) { return formats::format_scalar(s); }
Result<std::string> EffectsBase::format(const Scalar& s, std::string_view spec) {
  return formats::format_spec(s, spec);
}
Result<std::string> EffectsBase::format(std::string_view text, std::string_view spec) {
  return formats::format_spec(text, spec);
}

Result<std::vector<sema::StoredArray>> EffectsBase::load(const std::string& path) {
  Progress shown(progress, fmt::format("reading {}", path));
  if (path.ends_with(".npz")) return formats::open_npz(path, memory_limit_bytes);
  std::vector<sema::StoredArray> out(1);
  out[0].read = [path] { return formats::read_npy(path); };
  return out;
}

Result<void> EffectsBase::save(const std::string& path,
                               const std::vector<std::pair<std::string, interp::Array>>& arrays) {
  if (path.ends_with(".npz")) return formats::write_npz(path, arrays);
  return formats::write_npy(path, arrays.at(0).second);
}

Result<void> EffectsBase::check_nan(const interp::Array& a, const std::string& name, Span span) {
  if (!gk::is_float(a.dtype)) return {};
  for (int64_t i = 0; i < a.size(); ++i)
    if (std::isnan(a.get(i).f)) return fail(nan_found(name, a.shape, i).at(span));
  return {};
}

}  // namespace gk::engine
