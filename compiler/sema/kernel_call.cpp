// User kernels as the evaluator sees them: checked where they are defined, launched where they are called.
#include <fmt/format.h>

#include "compiler/ir/key_bytes.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/guards.h"

namespace gk::sema {

using syntax::BindKind;
using syntax::ExprKind;

KernelOptions Evaluator::kernel_options(const ScopePtr& scope) {
  KernelOptions options;
  options.unchecked = options_.unchecked;
  options.fast_math = fast_math_;
  {
    const Instead file(default_float_, file_of(*scope).default_float);
    options.default_float = default_float_;
  }
  options.interrupted = [this] { return !poll({}); };
  auto find = [this, scope](const std::string& n) { return lookup(n, scope); };
  options.find_const = [find](const std::string& n) -> std::optional<Scalar> {
    auto v = find(n);
    if (!v || v->kind != BindKind::Const || !v->get().is_scalar() || !v->get().known) return std::nullopt;
    return v->get().scalar;
  };
  options.const_is_weak = [find](const std::string& n) {
    auto v = find(n);
    return v && v->get().is_scalar() && v->get().weak;
  };
  options.find_outer = [this, find](const std::string& n) -> std::optional<OuterName> {
    auto v = find(n);
    if (!v) return std::nullopt;
    const Value& value = v->get();
    using Kind = OuterName::Kind;
    if (value.is_scalar()) return OuterName{Kind::Number, strengthen(value).scalar.dtype};
    if (value.is_array()) return OuterName{Kind::Array, value.array->type.dtype, value.array->type.rank()};
    const bool called = value.kind == VKind::Function || value.kind == VKind::Kernel;
    return OuterName{called ? Kind::Function : Kind::Other};
  };
  options.written = [this](Span span) { return written(span); };
  options.library = [this, of = options.default_float](const std::string& n) { return library_.find(n, of); };
  return options;
}

Result<void> Evaluator::check_kernel(const syntax::KernelDef& k, const ScopePtr& scope) {
  std::vector<KernelArg> args;
  auto inner = std::make_shared<Scope>();
  inner->parent = scope;
  inner->function_boundary = true;
  for (const auto& p : k.params) {
    KernelArg a;
    if (p.fallback)
      return fail(ErrorKind::Unsupported, "E0405",
                  "defaults of a kernel's parameters are not yet implemented", p.fallback->span);
    if (!p.type) return {};  // generic: checked where it is launched
    auto dtype = parse_dtype(p.type->name);
    if (p.type->kind != syntax::TypeExpr::Kind::Named || !dtype)
      return fail(ErrorKind::Type, "E0202", "a kernel takes arrays and scalars of a dtype", p.span);
    a.is_array = p.type->has_dims;
    a.type.dtype = *dtype;
    for (const auto& d : p.type->dims) {
      GK_CHECK([&]() -> Result<void> {
        if (d->kind == ExprKind::Name && !lookup(d->text, inner)) {
          a.type.dims.push_back(fresh_dim(d->text));
          return {};
        }
        if (d->kind == ExprKind::Name || d->kind == ExprKind::Int || d->kind == ExprKind::Wildcard) {
          GK_TRY(auto dim, eval_dim(*d, inner));
          a.type.dims.push_back(dim);
        } else {
          a.type.dims.push_back(fresh_dim());
        }
        return {};
      }());
    }
    args.push_back(std::move(a));
  }
  auto r = lower_kernel(k, args, kernel_options(scope));
  if (!r) return fail(std::move(r.error()));
  return {};
}

Result<Value> Evaluator::launch_kernel(const Callable& c, Call& call, int64_t threads) {
  const syntax::KernelDef& def = *c.kernel;
  if (call.args.size() != def.params.size())
    return fail(make_error(ErrorKind::Type, "E0206",
                           fmt::format("`{}` takes {} arguments, not {}", def.name, def.params.size(),
                                       call.args.size()),
                           call.span)
                    .label(def.name_span, "defined here"));
  auto inner = std::make_shared<Scope>();
  inner->parent = c.scope;
  inner->function_boundary = true;
  std::vector<KernelArg> args;
  ir::KeyBytes key;
  key.number(static_cast<int64_t>(reinterpret_cast<uintptr_t>(&def)));
  key.flag(fast_math_);
  for (size_t i = 0; i < call.args.size(); ++i) {
    auto& a = call.args[i];
    const auto& p = def.params[i];
    if (!a.name.empty())
      return fail(ErrorKind::Type, "E0206", "a kernel takes its arguments by position", a.span);
    if (p.is_mut != a.is_mut) {
      Error e =
          make_error(ErrorKind::Type, "E0206",
                     fmt::format("`{}` of `{}` is {}`mut`", p.name, def.name, p.is_mut ? "" : "not "), a.span)
              .label(p.span, "declared here");
      return fail(p.is_mut ? std::move(e).help(fmt::format("say so at the call: `mut {}`", written(a.span)))
                           : std::move(e));
    }
    if (a.value.is_unknown()) return Value::unknown();
    if (!a.value.is_array() && !a.value.is_scalar())
      return fail(ErrorKind::Type, "E0202",
                  fmt::format("a kernel takes arrays and scalars, not {}", describe(a.value)), a.span);
    KernelArg k;
    if (p.type) {
      // `mut` arrays must have the dtype as it is.
      auto dtype = parse_dtype(p.type->name);
      if (a.is_mut && a.value.is_array() && dtype && a.value.array->type.dtype != *dtype)
        return fail(
            make_error(ErrorKind::Type, "E0211",
                       fmt::format("`{}` is {}, but {} is declared", p.name, describe(a.value), p.type->name),
                       a.span)
                .label(p.span, "declared here"));
      auto r = conform(a.value, *p.type, inner, true, a.span, fmt::format("`{}`", p.name));
      if (!r) return fail(std::move(r.error()).label(p.span, "declared here"));
      if (!a.is_mut) a.value = std::move(*r);
    } else {
      // A number that changes with a loop stays one of the host, which then goes through the loop.
      if (a.value.is_array() && a.value.array->number) needs_host_ = true;
      GK_TRY(a.value, settled(a.value, a.span));
      k.weak = a.value.is_scalar() && a.value.weak;
    }
    k.is_array = a.value.is_array();
    if (a.value.is_scalar()) {
      auto v = std::make_shared<Variable>();
      v->kind = BindKind::Const;
      v->span = p.span;
      v->value = a.value;
      inner->names[p.name] = v;
    }
    if (a.value.is_array())
      k.type = a.value.array->type;
    else
      k.type.dtype = k.weak && a.value.scalar.dtype == DType::U64 ? DType::I64 : a.value.scalar.dtype;
    key.flag(k.is_array | k.weak << 1);
    key.flag(static_cast<int>(k.type.dtype));
    key.flag(k.type.rank());
    args.push_back(std::move(k));
  }
  GK_CHECK(check_overlap(call));
  if (auto ok = check_kernel_args(def, args, kernel_options(c.scope)); !ok)
    return fail(std::move(ok.error()).at(call.span));
  auto& lowered = kernels_[key.bytes];
  if (!lowered) {
    auto r = lower_kernel(def, args, kernel_options(c.scope));
    if (!r) {
      kernels_.erase(key.bytes);
      return fail(std::move(r.error()).label(call.span, "in this launch"));
    }
    lowered = std::make_shared<LoweredKernel>(std::move(*r));
  }
  ir::Attrs attrs;
  attrs.kernel = lowered->kernel;
  attrs.name = def.name;
  attrs.index = threads;
  std::vector<ir::Dim> extents;
  for (const auto& e : def.extents) {
    auto evaluated = eval_dim(*e, inner);
    if (!evaluated) return fail(std::move(evaluated.error()).label(call.span, "in this launch"));
    const ir::Dim d = *evaluated;
    extents.push_back(d);
    if (attrs.shape.rank() == kMaxRank)
      return fail(ErrorKind::Shape, "E0306", "a kernel has eight axes at most", e->span);
    attrs.shape.push_back(d.is_known() ? d.value : 0);
  }
  GK_TRY(auto numbers, kernel_numbers(lowered, args, call));
  std::vector<ArrayPtr> operands;
  std::vector<ir::Type> results;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Value zero = Value::of_scalar(Scalar{args[i].type.dtype, 0, 0});
    const auto given = numbers.find(static_cast<int>(i));
    const Value& v = !args[i].weak ? call.args[i].value : given != numbers.end() ? given->second : zero;
    GK_TRY(auto a, as_array(v, args[i].type.dtype, call.args[i].span));
    operands.push_back(a);
    if (call.args[i].is_mut) results.push_back(a->type);
  }
  ir::Node node;
  for (const auto& a : operands) {
    GK_TRY(auto id, value_of(a, call.span));
    node.operands.push_back(id);
  }
  if (!running()) {
    for (auto& a : call.args)
      if (a.is_mut) {
        auto fresh = trace_->pending(a.place->array->type, -1);
        GK_CHECK(overwrite(a.place->array, fresh, call.span));
      }
    return Value::none();
  }
  if (!num_elements(attrs.shape))
    return fail(ErrorKind::Shape, "E0307", "the kernel's extents have a product over 2^63", call.span);
  node.op = ir::Op::KernelCall;
  node.span = as_called(call.span);
  for (const auto& x : lowered->extent_params)
    node.operands.push_back(trace_->param(
        Scalar::of_int(args[static_cast<size_t>(x.param)].type.dims[static_cast<size_t>(x.axis)].value),
        call.span));
  for (const auto& d : extents) node.operands.push_back(trace_->param(Scalar::of_int(d.value), call.span));
  // A number's parameter stands behind all others, or is the argument's own.
  for (const auto& [param, number] : numbers) {
    if (param < static_cast<int>(args.size())) continue;
    GK_TRY(auto a, as_array(number, number.scalar.peek().dtype, call.span));
    GK_TRY(auto id, value_of(a, call.span));
    node.operands.push_back(id);
  }
  node.attrs = std::move(attrs);
  auto ids = trace_->append_node(std::move(node), results);
  size_t k = 0;
  for (auto& a : call.args) {
    if (!a.is_mut) continue;
    auto fresh = trace_->pending(results[k], ids[k]);
    ++k;
    GK_CHECK(overwrite(a.place->array, fresh, call.span));
  }
  return Value::none();
}

/// What the host computes for this launch, by the parameter that takes it. See Note [Kernel numbers].
Result<std::map<int, Value>> Evaluator::kernel_numbers(std::shared_ptr<const LoweredKernel> kernel,
                                                       const std::vector<KernelArg>& args, const Call& call) {
  // Noted as a step, so that a later call of a captured function computes its own.
  struct Work {
    std::shared_ptr<const LoweredKernel> kernel;
    std::vector<std::optional<int64_t>> extents;
    size_t params;
  };
  const KernelNumbers& numbers = kernel->numbers;
  std::map<int, Value> out;
  if (numbers.uses().empty()) return out;
  auto work = std::make_shared<Work>(Work{kernel, {}, args.size()});
  for (const auto& e : numbers.extent_leaves()) {
    const ir::Dim& d = args[static_cast<size_t>(e.param)].type.dims[static_cast<size_t>(e.axis)];
    work->extents.push_back(d.is_known() ? std::optional(d.value) : std::nullopt);
  }
  for (size_t k = 0; k < numbers.uses().size(); ++k) {
    const KernelNumbers::Use& use = numbers.uses()[k];
    const std::vector<int> params = numbers.arguments_of(use);
    std::vector<Value> given;
    for (int p : params) given.push_back(call.args[static_cast<size_t>(p)].value);
    HostStep step = [work, k, params](Evaluator&, const std::vector<Value>& values) -> Result<Value> {
      std::vector<std::optional<Scalar>> arguments(work->params);
      for (size_t i = 0; i < params.size(); ++i)
        if (values[i].known) arguments[static_cast<size_t>(params[i])] = values[i].scalar.peek();
      const KernelNumbers::Use& use = work->kernel->numbers.uses()[k];
      GK_TRY(auto number, work->kernel->numbers.value(use, {arguments, work->extents}));
      return number ? Value::of_scalar(*number) : Value::unknown_scalar(use.dtype);
    };
    auto number = comes_from_call(given) ? on_host(given, std::move(step)) : step(*this, given);
    if (!number) return fail(std::move(number.error()).label(call.span, "in this launch"));
    out[use.param] = std::move(*number);
  }
  return out;
}

}  // namespace gk::sema
