// The number that a host scalar holds. Owns nothing but its share in where the number came from. Promises: a
// number that comes from the arguments of a captured function's call is used for later calls only where it
// was computed with; whoever reads it makes it steer, see Note [Prologues] in prologue.h. Reading is what
// `i`, `f`, cast() and the conversion to Scalar do; peek() is for those who note down what they compute.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "runtime/base/dtype.h"

namespace gk::sema {

class Prologue;

/// Which number of which call.
struct Origin {
  std::shared_ptr<Prologue> prologue;
  int32_t at = -1;
  /// The number decides what the capture becomes.
  void read() const;
};

/// One field of a number. Its value is read by using it.
template <class T>
class Watched {
 public:
  Watched() = default;
  Watched(T value, const Origin* origin) : value_(value), origin_(origin) {}
  operator T() const {
    if (origin_) origin_->read();
    return value_;
  }
  T peek() const { return value_; }

 private:
  T value_{};
  const Origin* origin_ = nullptr;
};

class HostScalar {
 public:
  DType dtype = DType::I64;
  Watched<int64_t> i;
  Watched<double> f;

  HostScalar() = default;
  HostScalar(const Scalar& s) : dtype(s.dtype), i(s.i, nullptr), f(s.f, nullptr) {}
  HostScalar(const Scalar& s, std::shared_ptr<const Origin> origin)
      : dtype(s.dtype), i(s.i, origin.get()), f(s.f, origin.get()), origin_(std::move(origin)) {}
  operator Scalar() const { return {dtype, i, f}; }
  Scalar cast(DType to) const { return Scalar(*this).cast(to); }
  double as_double() const { return Scalar(*this).as_double(); }
  bool is_float() const { return gk::is_float(dtype); }
  friend bool operator==(const HostScalar& a, const HostScalar& b) { return Scalar(a) == Scalar(b); }

  Scalar peek() const { return {dtype, i.peek(), f.peek()}; }
  const Origin* origin() const { return origin_.get(); }
  const std::shared_ptr<const Origin>& shared_origin() const { return origin_; }

 private:
  std::shared_ptr<const Origin> origin_;
};

}  // namespace gk::sema

template <class T>
struct fmt::formatter<gk::sema::Watched<T>> : fmt::formatter<T> {
  template <class Context>
  auto format(const gk::sema::Watched<T>& w, Context& ctx) const {
    return fmt::formatter<T>::format(static_cast<T>(w), ctx);
  }
};
