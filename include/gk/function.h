// Compiled text and what can be called in it. A Module belongs to the context that compiled it and is used
// like it, by one thread at a time; compiling the same text with another context finds all code made. A call
// of a function is one unit of work: what its body does is fused and planned as a whole, and while a graph is
// made it becomes one operation of the graph.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gk/value.h"

GK_API_BEGIN

namespace detail {
struct ModuleImpl;
struct CallableImpl;
}  // namespace detail

/// How a kernel is laid out on the device; zeros are chosen. Kernels go over all their points whatever the
/// grid is. The host device has none of these.
struct LaunchShape {
  uint32_t grid = 0;          // blocks
  uint32_t block = 0;         // threads a block, 1 … 1024
  uint32_t shared_bytes = 0;  // dynamic shared memory a block, beyond what the kernel asks for
};

/// A function or kernel of a module. Calls take their arguments by position; a parameter that is `mut` takes
/// an array and writes to it. Errors of calls: E0206 (number of arguments), E0202, E0211 (types), E0303,
/// E0306 (shapes), E0404 (an array given to `mut` overlaps another argument), E0716 (freed), E0717 (an array
/// of another engine), E0710 (wrong thread); and whatever the function's body raises.
class Callable {
 public:
  Callable() = default;
  explicit operator bool() const noexcept { return impl_ != nullptr; }
  const std::string& name() const;
  bool is_kernel() const;
  Value call(std::vector<Value> args, LaunchShape shape = {}) const {
    return try_call(std::move(args), shape).value();
  }
  Result<Value> try_call(std::vector<Value> args, LaunchShape shape = {}) const;

 protected:
  friend class Module;
  friend struct detail::Access;
  explicit Callable(std::shared_ptr<detail::CallableImpl> impl) : impl_(std::move(impl)) {}
  Context context() const;
  std::shared_ptr<detail::CallableImpl> impl_;
};

/// A kernel: `k(z, x, y)`, or `k.with({.block = 128})(z, x, y)`.
class Kernel : public Callable {
 public:
  Kernel() = default;
  template <class... A>
  void operator()(const A&... args) const {
    call(std::vector<Value>{Value(args)...}, shape_);
  }
  Kernel with(LaunchShape shape) const {
    Kernel k = *this;
    k.shape_ = shape;
    return k;
  }
  const LaunchShape& shape() const { return shape_; }

 private:
  friend class Module;
  using Callable::Callable;
  LaunchShape shape_;
};

template <class Signature>
class Function;

/// A function with its C++ signature, checked when it was made.
template <class R, class... P>
class Function<R(P...)> : public Callable {
 public:
  Function() = default;
  R operator()(P... args) const { return try_call(std::forward<P>(args)...).value(); }
  Result<R> try_call(P... args) const;
  using Callable::call;

 private:
  friend class Module;
  explicit Function(Callable f) : Callable(std::move(f)) {}
};

class Module {
 public:
  Module() = default;
  explicit operator bool() const noexcept { return impl_ != nullptr; }
  const std::string& name() const;

  /// A function by its C++ signature: fn<Tensor(Tensor, float)>("f"), `Tensor&` for a parameter that is
  /// `mut`. Errors: E0401 (no such function), E0206 (number of parameters, mut), E0211 (a type that does not
  /// fit what is declared).
  template <class Signature>
  Function<Signature> fn(std::string_view name) const {
    return try_fn<Signature>(name).value();
  }
  template <class Signature>
  Result<Function<Signature>> try_fn(std::string_view name) const {
    auto f = checked<Signature>(name, static_cast<Signature*>(nullptr));
    if (!f) return f.error();
    return Function<Signature>(std::move(*f));
  }
  /// A function whose arguments are looked at when it is called.
  Callable function(std::string_view name) const { return try_function(name).value(); }
  Result<Callable> try_function(std::string_view name) const;
  Kernel kernel(std::string_view name) const { return try_kernel(name).value(); }
  Result<Kernel> try_kernel(std::string_view name) const;
  /// The value of a `const` that is a number or a text. Errors: E0401.
  Value constant(std::string_view name) const { return try_constant(name).value(); }
  Result<Value> try_constant(std::string_view name) const;
  /// Names of functions and of kernels, sorted.
  std::vector<std::string> functions() const;
  std::vector<std::string> kernels() const;

 private:
  friend class Context;
  friend struct detail::Access;
  explicit Module(std::shared_ptr<detail::ModuleImpl> impl) : impl_(std::move(impl)) {}
  template <class Signature, class R, class... P>
  Result<Callable> checked(std::string_view name, R (*)(P...)) const {
    const std::vector<TypeInfo> params = {detail::param_info<P>()...};
    TypeInfo result;
    if constexpr (std::is_void_v<R>)
      result.kind = TypeInfo::Kind::None;
    else
      result = detail::info_of<R>();
    return check_signature(name, params, result);
  }
  Result<Callable> check_signature(std::string_view name, const std::vector<TypeInfo>& params,
                                   const TypeInfo& result) const;
  std::shared_ptr<detail::ModuleImpl> impl_;
};

GK_API_END
