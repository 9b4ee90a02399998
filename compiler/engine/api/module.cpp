// gk::Module: finding functions and kernels, and holding a C++ signature against a definition.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/engine/api/core.h"

namespace gk::api {

using engine::guarded;
using sema::VKind;

namespace {

gk::Result<std::shared_ptr<detail::CallableImpl>> find(const std::shared_ptr<detail::ModuleImpl>& m,
                                                       std::string_view name, std::optional<VKind> kind) {
  if (!m) return fail(gk::ErrorKind::Capture, "E0716", "the module is empty");
  GK_TRY(auto entry, m->context->enter());
  // "m.f": of an imported file.
  auto scope = m->evaluator->root();
  std::string_view rest = name;
  while (scope && rest.find('.') != std::string_view::npos) {
    auto inner = scope->names.find(rest.substr(0, rest.find('.')));
    rest.remove_prefix(rest.find('.') + 1);
    scope = inner == scope->names.end() ? nullptr : inner->second->get().module;
  }
  auto it = scope ? scope->names.find(rest) : m->evaluator->root()->names.end();
  if (!scope || it == scope->names.end())
    return fail(gk::ErrorKind::Type, "E0401", fmt::format("`{}` has no function `{}`", m->name, name));
  const auto& v = it->second->get();
  if (v.kind != VKind::Function && v.kind != VKind::Kernel)
    return fail(gk::ErrorKind::Type, "E0207",
                fmt::format("`{}` is {}, which cannot be called", name, describe(v)), it->second->span);
  if (kind && v.kind != *kind)
    return fail(gk::ErrorKind::Type, "E0207",
                fmt::format("`{}` is {}, not {}", name, describe(v),
                            *kind == VKind::Kernel ? "a kernel" : "a function"),
                it->second->span);
  auto c = engine::make_handle<detail::CallableImpl>();
  c->module = m;
  c->name = name;
  c->value = v;
  return c;
}

std::string written(const syntax::SourceMap& sources, const syntax::TypeExpr& t) {
  return sources.text(t.span.file).substr(t.span.begin, t.span.end - t.span.begin);
}

std::string in_cpp(const TypeInfo& t) {
  switch (t.kind) {
    case TypeInfo::Kind::Number: return fmt::format("a number of {}", name(t.dtype));
    case TypeInfo::Kind::Text: return "a string";
    case TypeInfo::Kind::Array: return "a Tensor";
    case TypeInfo::Kind::List: return "a vector";
    case TypeInfo::Kind::Tuple: return fmt::format("a tuple of {}", t.items.size());
    case TypeInfo::Kind::Record: return fmt::format("a struct of {}", fmt::join(t.names, ", "));
    case TypeInfo::Kind::None: return "void";
    case TypeInfo::Kind::Any: break;
  }
  return "a value";
}

// Holds C++ types against declared ones. What the definition leaves open is looked at when it is called.
class Matcher {
 public:
  Matcher(detail::ModuleImpl& m, const sema::Value& f) : m_(m), scope_(f.callable->scope) {}

  bool fits(const TypeInfo& t, const syntax::TypeExpr& declared, bool is_result) const {
    using K = syntax::TypeExpr::Kind;
    if (t.kind == TypeInfo::Kind::Any) return true;
    switch (declared.kind) {
      case K::Named:
        if (auto d = gk::parse_dtype(declared.name))
          return fits_dtype(t, *d, declared.has_dims && !declared.dims.empty(), is_result);
        if (const auto* body = named(declared.name)) return fits(t, *body, is_result);
        return true;
      case K::List: return t.kind == TypeInfo::Kind::List && fits(t.items[0], *declared.element, is_result);
      case K::Record:
        return t.kind == TypeInfo::Kind::Record && t.names == declared.field_names &&
               all(t, declared, is_result);
      case K::Tuple: return t.kind == TypeInfo::Kind::Tuple && all(t, declared, is_result);
    }
    return true;
  }

 private:
  bool all(const TypeInfo& t, const syntax::TypeExpr& declared, bool is_result) const {
    if (t.items.size() != declared.fields.size()) return false;
    for (size_t i = 0; i < t.items.size(); ++i)
      if (!fits(t.items[i], *declared.fields[i], is_result)) return false;
    return true;
  }
  static bool fits_dtype(const TypeInfo& t, gk::DType d, bool has_axes, bool is_result) {
    if (t.kind == TypeInfo::Kind::Array) return true;  // a scalar may be an array of a single element
    if (t.kind != TypeInfo::Kind::Number || has_axes) return false;
    const gk::DType n = engine::inner(t.dtype);
    // A number that is given is a host number: it is converted if it fits, which the call tells.
    if (!is_result) return is_bool(n) == is_bool(d) && (!is_float(n) || is_float(d));
    return d == n || (!is_bool(d) && promote(d, n) == n);
  }
  const syntax::TypeExpr* named(const std::string& type) const {
    sema::Evaluator& ev = *m_.evaluator;
    auto v = ev.lookup(type, scope_);
    if (!v || v->get().kind != VKind::Type || !v->get().type_def) return nullptr;
    return v->get().type_def->body;
  }
  detail::ModuleImpl& m_;
  std::shared_ptr<sema::Scope> scope_;
};

template <class T>
auto sources_of(const std::shared_ptr<T>& m) {
  return m ? &m->context->engine->sources : nullptr;
}

}  // namespace

const std::string& Module::name() const {
  static const std::string none;
  return impl_ ? impl_->name : none;
}

Result<Callable> Module::try_function(std::string_view name) const {
  auto r = guarded(sources_of(impl_), [&] { return find(impl_, name, std::nullopt); });
  if (!r) return r.error();
  return Callable(std::move(*r));
}

Result<Kernel> Module::try_kernel(std::string_view name) const {
  auto r = guarded(sources_of(impl_), [&] { return find(impl_, name, VKind::Kernel); });
  if (!r) return r.error();
  return Kernel(std::move(*r));
}

Result<Value> Module::try_constant(std::string_view name) const {
  return guarded(sources_of(impl_), [&]() -> gk::Result<Value> {
    if (!impl_) return fail(gk::ErrorKind::Capture, "E0716", "the module is empty");
    GK_TRY(auto entry, impl_->context->enter());
    const auto& names = impl_->evaluator->root()->names;
    auto it = names.find(name);
    if (it == names.end() || !(it->second->get().is_scalar() || it->second->get().kind == VKind::String))
      return fail(gk::ErrorKind::Type, "E0401", fmt::format("`{}` has no constant `{}`", impl_->name, name));
    const auto& v = it->second->get();
    if (v.kind == VKind::String) return Value(v.text);
    return engine::number_out(v);
  });
}

static std::vector<std::string> names_of(const std::shared_ptr<detail::ModuleImpl>& m, VKind kind) {
  std::vector<std::string> out;
  if (!m) return out;
  auto entry = m->context->enter();
  if (!entry) return out;
  for (const auto& [name, v] : m->evaluator->root()->names)
    if (v->get().kind == kind) out.push_back(name);
  return out;
}

std::vector<std::string> Module::functions() const { return names_of(impl_, VKind::Function); }
std::vector<std::string> Module::kernels() const { return names_of(impl_, VKind::Kernel); }

Result<Callable> Module::check_signature(std::string_view name, const std::vector<TypeInfo>& params,
                                         const TypeInfo& result) const {
  auto r = guarded(sources_of(impl_), [&]() -> gk::Result<std::shared_ptr<detail::CallableImpl>> {
    GK_TRY(auto c, find(impl_, name, VKind::Function));
    GK_TRY(auto entry, impl_->context->enter());
    if (c->value.callable->lambda) return c;
    const auto& fn = *c->value.callable->fn;
    const auto& sources = impl_->context->engine->sources;
    if (params.size() > fn.params.size())
      return fail(gk::ErrorKind::Type, "E0206",
                  fmt::format("`{}` takes {} arguments, not {}", name, fn.params.size(), params.size()),
                  fn.name_span);
    const Matcher matcher(*impl_, c->value);
    for (size_t i = 0; i < fn.params.size(); ++i) {
      const auto& p = fn.params[i];
      if (i >= params.size()) {
        if (p.fallback) continue;
        return fail(gk::ErrorKind::Type, "E0206",
                    fmt::format("`{}` needs an argument for `{}`", name, p.name), p.span);
      }
      if (p.is_mut != params[i].is_mut)
        return fail(
            make_error(gk::ErrorKind::Type, "E0206",
                       fmt::format("`{}` of `{}` is {}`mut`", p.name, name, p.is_mut ? "" : "not "), p.span)
                .help(p.is_mut ? "write `Tensor&` in the signature" : "write `Tensor` in the signature"));
      if (p.type && !matcher.fits(params[i], *p.type, false))
        return fail(gk::ErrorKind::Type, "E0211",
                    fmt::format("`{}` is declared {}, which {} does not fit", p.name,
                                written(sources, *p.type), in_cpp(params[i])),
                    p.span);
    }
    if (fn.result && result.kind != TypeInfo::Kind::None && !matcher.fits(result, *fn.result, true))
      return fail(gk::ErrorKind::Type, "E0211",
                  fmt::format("the result of `{}` is declared {}, which does not fit {}", name,
                              written(sources, *fn.result), in_cpp(result)),
                  fn.name_span);
    return c;
  });
  if (!r) return r.error();
  return Callable(std::move(*r));
}

}  // namespace gk::api
