#include "compiler/sema/kernel_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gk::sema {
namespace {

using syntax::Expr;
using syntax::ExprKind;

std::optional<int64_t> const_extent(const Expr& e, const KernelOptions& options) {
  if (e.kind == ExprKind::Int && e.uint_value <= INT64_MAX) return static_cast<int64_t>(e.uint_value);
  if (e.kind != ExprKind::Name || !options.find_const) return std::nullopt;
  std::optional<Scalar> c = options.find_const(e.text);
  if (c && is_integer(c->dtype) && c->i >= 0) return c->i;
  return std::nullopt;
}

/// The type as the user wrote it, for messages.
std::string written(const KernelParamInfo& p) {
  if (p.plain_type) return std::string(name(p.dtype));
  std::vector<std::string> parts;
  for (const KernelExtent& e : p.extents)
    parts.push_back(e.fixed >= 0
                        ? (e.name.empty() ? std::to_string(e.fixed) : fmt::format("{}={}", e.name, e.fixed))
                    : e.name.empty() ? "_"
                                     : e.name);
  return fmt::format("{}[{}]", name(p.dtype), fmt::join(parts, ", "));
}

/// The error about one argument, with the parameter shown.
Failure mismatch(const KernelParamInfo& p, const char* code, ErrorKind kind, std::string message) {
  return fail(
      make_error(kind, code, std::move(message)).label(p.span, fmt::format("`{}` is {}", p.name, p.text)));
}

Result<void> read_type(const syntax::Param& param, const KernelArg& arg, KernelParamInfo& p,
                       const KernelOptions& options) {
  if (!param.type) {
    p.dtype = arg.type.dtype;
    p.is_buffer = arg.is_array;
    p.plain_type = !arg.is_array;
    p.weak = arg.weak;
    if (arg.is_array) p.extents.resize(arg.type.dims.size());
    p.text = written(p);
    return {};
  }
  const syntax::TypeExpr& t = *param.type;
  p.annotated = true;
  std::optional<DType> dtype = t.kind == syntax::TypeExpr::Kind::Named ? parse_dtype(t.name) : std::nullopt;
  if (!dtype)
    return fail(make_error(ErrorKind::Type, "E0202", "a kernel takes scalars and arrays of a dtype", t.span)
                    .help("pass the fields of a record one by one, for example `x: f32[n]`"));
  if (!t.placement.empty())
    return fail(ErrorKind::Unsupported, "E0405",
                fmt::format("`{}` arrays as kernel parameters are not yet implemented", t.placement), t.span);
  if (t.dims.size() > static_cast<size_t>(kMaxRank))
    return fail(ErrorKind::Shape, "E0302",
                fmt::format("the rank is over {}, the highest supported", kMaxRank), t.span);
  p.dtype = *dtype;
  p.plain_type = !t.has_dims;
  p.is_buffer = t.has_dims || arg.is_array;
  for (const auto& d : t.dims) {
    KernelExtent e;
    e.span = d->span;
    if (d->kind == ExprKind::Name) e.name = d->text;
    if (auto c = const_extent(*d, options)) e.fixed = *c;
    p.extents.push_back(std::move(e));
  }
  p.text = written(p);
  return {};
}

Result<void> check_one(const KernelParamInfo& p, const KernelArg& arg) {
  std::string have = arg.is_array ? ir::to_string(arg.type) : std::string(name(arg.type.dtype));
  if (p.plain_type && arg.is_array && !arg.type.dims.empty())
    return mismatch(p, "E0202", ErrorKind::Type, fmt::format("`{}` takes a scalar, not {}", p.name, have));
  if (!p.plain_type && !arg.is_array)
    return mismatch(p, "E0202", ErrorKind::Type,
                    fmt::format("`{}` takes an array, not the scalar {}", p.name, have));
  if (!arg.is_array) return {};
  if (arg.type.dims.size() != p.extents.size())
    return mismatch(p, "E0302", ErrorKind::Shape,
                    fmt::format("`{}` takes an array of {} {}, not {}", p.name, p.extents.size(),
                                p.extents.size() == 1 ? "axis" : "axes", have));
  if (arg.type.dtype != p.dtype) {
    auto e = make_error(ErrorKind::Type, "E0201", fmt::format("`{}` takes {}, not {}", p.name, p.text, have));
    e.labels.push_back({p.span, fmt::format("`{}` is {}", p.name, p.text)});
    if (!p.is_mut) e.helps.push_back(fmt::format("convert it: `{}(…)`", name(p.dtype)));
    return fail(std::move(e));
  }
  for (size_t i = 0; i < p.extents.size(); ++i) {
    int64_t want = p.extents[i].fixed;
    if (want >= 0 && ir::equal(ir::Dim::known(want), arg.type.dims[i]) == ir::Tri::No)
      return mismatch(p, "E0303", ErrorKind::Shape,
                      fmt::format("`{}` takes {}, not {}: axis {} differs", p.name, p.text, have, i));
  }
  return {};
}

/// Two axes with one dimension name must be equal.
Result<void> check_names(const KernelSignature& s, const std::vector<KernelArg>& args) {
  for (size_t i = 0; i < s.params.size(); ++i) {
    const KernelParamInfo& p = s.params[i];
    for (size_t axis = 0; axis < p.extents.size(); ++axis) {
      const KernelExtent& e = p.extents[axis];
      auto at = std::find(s.dim_names.begin(), s.dim_names.end(), e.name);
      if (e.fixed >= 0 || at == s.dim_names.end()) continue;
      LoweredKernel::ExtentParam source = s.dim_sources[static_cast<size_t>(at - s.dim_names.begin())];
      const KernelArg& first = args[static_cast<size_t>(source.param)];
      const ir::Dim& a = first.type.dims[static_cast<size_t>(source.axis)];
      const ir::Dim& b = args[i].type.dims[axis];
      if (ir::equal(a, b) != ir::Tri::No) continue;
      const KernelParamInfo& q = s.params[static_cast<size_t>(source.param)];
      auto err = make_error(ErrorKind::Shape, "E0303",
                            fmt::format("`{}` is {} in {} and {} in {}", e.name, a.value,
                                        ir::to_string(first.type), b.value, ir::to_string(args[i].type)));
      err.labels.push_back({q.span, fmt::format("`{}` is {}", q.name, q.text)});
      return fail(std::move(err).label(p.span, fmt::format("`{}` is {}", p.name, p.text)));
    }
  }
  return {};
}

}  // namespace

Result<KernelSignature> read_kernel_signature(const syntax::KernelDef& def,
                                              const std::vector<KernelArg>& args,
                                              const KernelOptions& options) {
  if (args.size() != def.params.size())
    return fail(make_error(ErrorKind::Type, "E0206",
                           fmt::format("kernel `{}` takes {} argument{}, not {}", def.name, def.params.size(),
                                       def.params.size() == 1 ? "" : "s", args.size()))
                    .label(def.name_span, "defined here"));
  KernelSignature s;
  std::set<std::string> names;
  for (size_t i = 0; i < args.size(); ++i) {
    const syntax::Param& param = def.params[i];
    KernelParamInfo p;
    p.name = param.name;
    p.span = param.span;
    p.is_mut = param.is_mut;
    if (!names.insert(p.name).second)
      return fail(ErrorKind::Unsupported, "E0404", fmt::format("two parameters are called `{}`", p.name),
                  param.span);
    GK_CHECK(read_type(param, args[i], p, options));
    if (p.is_mut && p.plain_type)
      return fail(
          make_error(ErrorKind::Type, "E0202", fmt::format("`mut {}` must be an array", p.name), param.span)
              .help(fmt::format("for one number write `mut {}: {}[]`", p.name, name(p.dtype))));
    GK_CHECK(check_one(p, args[i]));
    s.params.push_back(std::move(p));
  }
  // A parameter's name in brackets is that parameter's value, which the caller checks, not a dimension.
  for (size_t i = 0; i < s.params.size(); ++i)
    for (size_t axis = 0; axis < s.params[i].extents.size(); ++axis) {
      KernelExtent& e = s.params[i].extents[axis];
      if (e.fixed >= 0 || names.count(e.name)) e.name.clear();
      if (e.name.empty() || std::find(s.dim_names.begin(), s.dim_names.end(), e.name) != s.dim_names.end())
        continue;
      s.dim_names.push_back(e.name);
      s.dim_sources.push_back({static_cast<int>(i), static_cast<int>(axis)});
    }
  GK_CHECK(check_names(s, args));
  return s;
}

Result<void> check_kernel_args(const syntax::KernelDef& def, const std::vector<KernelArg>& args,
                               const KernelOptions& options) {
  GK_TRY(KernelSignature s, read_kernel_signature(def, args, options));
  return {};
}

}  // namespace gk::sema
