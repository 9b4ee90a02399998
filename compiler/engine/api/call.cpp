// Calls of functions and kernels: arguments to the evaluator's values and back.
#include <fmt/format.h>

#include "compiler/engine/api/arguments.h"
#include "compiler/sema/sites.h"

namespace gk::engine {

namespace {

using api::LaunchShape;

Result<api::Value> result_of(ContextCore& c, const sema::Value& v) {
  switch (v.kind) {
    case sema::VKind::None: return api::Value();
    case sema::VKind::Scalar: return number_out(v);
    case sema::VKind::String: return api::Value(v.text);
    case sema::VKind::Array: {
      GK_TRY(auto t, tensor_of(c, v.array));
      return api::Value(Access::make<api::Tensor>(std::move(t)));
    }
    case sema::VKind::Strings: {
      std::vector<api::Value> items;
      for (const auto& s : *v.strings) items.emplace_back(s);
      return api::Value::list(std::move(items));
    }
    case sema::VKind::List:
    case sema::VKind::Tuple:
    case sema::VKind::Record: {
      std::vector<api::Value> items;
      for (const auto& i : v.items->items) {
        GK_TRY(auto item, result_of(c, i));
        items.push_back(std::move(item));
      }
      if (v.kind == sema::VKind::List) return api::Value::list(std::move(items));
      if (v.kind == sema::VKind::Tuple) return api::Value::tuple(std::move(items));
      return api::Value::record(v.items->names, std::move(items));
    }
    default:
      return fail(ErrorKind::Type, "E0211",
                  fmt::format("the function gives {}, which cannot leave the program", sema::describe(v)));
  }
}

}  // namespace

Result<api::Value> call_value(const CallableImpl& callable, const std::vector<api::Value>& args,
                              const LaunchShape& shape) {
  auto& module = *callable.module;
  auto& c = *module.context;
  auto& ev = *module.evaluator;
  GK_TRY(auto entry, c.enter());
  if (gathered_here() > 0 && !c.as_capture())
    return fail(make_error(ErrorKind::Capture, "E0717",
                           fmt::format("`{}` belongs to another context than the update", callable.name))
                    .note("it would run now; nothing has happened")
                    .help("compile the module in the context that is given to update()"));
  c.interrupted.store(false, std::memory_order_relaxed);
  const auto& def = *callable.value.callable;
  const bool kernel = callable.value.kind == sema::VKind::Kernel;
  if (!kernel && !def.fn)
    return fail(ErrorKind::Type, "E0207", fmt::format("`{}` cannot be called", callable.name));
  const auto& params = kernel ? def.kernel->params : def.fn->params;
  const Span span = kernel ? def.kernel->name_span : def.fn->name_span;
  if (args.size() > params.size())
    return fail(ErrorKind::Type, "E0206",
                fmt::format("`{}` takes {} arguments, not {}", callable.name, params.size(), args.size()),
                span);
  if (!kernel && (shape.grid || shape.block || shape.shared_bytes))
    return fail(ErrorKind::Usage, "E0512",
                fmt::format("`{}` is no kernel: a launch shape is for kernels", callable.name), span);
  if (shape.block > 1024)
    return fail(ErrorKind::Shape, "E0303", fmt::format("a block has 1 to 1024 threads, not {}", shape.block),
                span);
  if (auto most = c.engine->device->info().shared_bytes_max;
      c.engine->device->info().target == program::TargetKind::Cuda && shape.shared_bytes > most)
    return fail(
        ErrorKind::Shape, "E0303",
        fmt::format("a block has {} bytes of shared memory at most, not {}", most, shape.shared_bytes), span);
  // What is known already runs with arrays that are used again for each call.
  if (!shape.grid && !shape.block && !shape.shared_bytes && !c.as_capture()) {
    if (!c.arguments) c.arguments = std::make_shared<ArgumentRoom>();
    ArgumentRoom::Use room(*c.arguments);
    if (room) {
      Arguments arguments(*c.engine, &*room);
      GK_CHECK(arguments.take(args, params, span));
      sema::Value made;
      GK_TRY(const bool again, ev.sites().call_again(span, arguments.inputs(), made));
      if (again) return result_of(c, made);
    }
  }
  Arguments arguments(*c.engine, nullptr);
  GK_CHECK(arguments.take(args, params, span));
  std::vector<sema::Value>& values = arguments.values();
  c.effects->layout = {shape.grid, shape.shared_bytes};
  struct Unshape {
    DeviceEffectsBase& effects;
    ~Unshape() { effects.layout = {}; }
  } unshape{*c.effects};
  const auto follow = [&]() -> Result<sema::Value> {
    sema::Call call;
    call.callee = callable.name;
    call.span = span;
    for (size_t i = 0; i < args.size(); ++i) {
      sema::CallArg a;
      a.span = params[i].span;
      a.value = values[i];
      a.is_mut = params[i].is_mut;
      if (a.is_mut) a.place = &values[i];
      call.args.push_back(std::move(a));
    }
    return ev.unit_from_host(
        [&] {
          return kernel ? ev.launch_kernel(def, call, shape.block)
                        : ev.call_value(callable.value, call, ev.root());
        },
        c.as_capture(), span, arguments.storages());
  };
  auto made = shape.block ? follow() : ev.sites().call(span, arguments.inputs(), follow);
  if (!made) return fail(std::move(made.error()));
  return result_of(c, *made);
}

api::Result<api::Value> call_callable(const CallableImpl* callable, const std::vector<api::Value>& args,
                                      const LaunchShape& shape) {
  if (!callable) return to_public(nullptr, make_error(ErrorKind::Capture, "E0716", "the function is empty"));
  return guarded(&callable->module->context->engine->sources,
                 [&] { return call_value(*callable, args, shape); });
}

}  // namespace gk::engine

namespace gk::api {

Result<Value> Callable::try_call(std::vector<Value> args, LaunchShape shape) const {
  return engine::call_callable(impl_.get(), args, shape);
}

const std::string& Callable::name() const {
  static const std::string none;
  return impl_ ? impl_->name : none;
}
bool Callable::is_kernel() const { return impl_ && impl_->value.kind == sema::VKind::Kernel; }
Context Callable::context() const {
  return detail::Access::make<Context>(impl_ ? impl_->module->context : nullptr);
}

}  // namespace gk::api
