// gk::Value: numbers in and out, and what is said of values that do not fit.
#include <fmt/format.h>

#include <cmath>

#include "compiler/engine/api/core.h"
#include "compiler/sema/host_number.h"

namespace gk::engine {

gk::Result<sema::Value> number_in(const api::Value& v) {
  const Scalar s = Access::scalar_of(v);
  if (static_cast<int>(s.dtype) >= kDTypeCount)
    return fail(ErrorKind::Type, "E0202", "there is no such dtype");
  return v.has_dtype() ? sema::Value::of_scalar(s) : sema::Value::host(s);
}

api::Value number_out(const sema::Value& v) { return Access::number(v.scalar, !v.weak); }

}  // namespace gk::engine

namespace gk::api {

using detail::Access;

namespace {

std::string describe(const TypeInfo& t) {
  switch (t.kind) {
    case TypeInfo::Kind::Any: return "any value";
    case TypeInfo::Kind::None: return "nothing";
    case TypeInfo::Kind::Number: return std::string(name(t.dtype));
    case TypeInfo::Kind::Text: return "a text";
    case TypeInfo::Kind::Array: return "an array";
    case TypeInfo::Kind::List: return "a list";
    case TypeInfo::Kind::Tuple: return fmt::format("a tuple of {}", t.items.size());
    case TypeInfo::Kind::Record: return fmt::format("a record of {}", fmt::join(t.names, ", "));
  }
  return "a value";
}

std::string describe(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::None: return "nothing";
    case Value::Kind::Number:
      if (v.has_dtype() || v.dtype() == DType::Bool) return std::string(name(v.dtype()));
      return is_float(engine::inner(v.dtype())) ? "a float" : "an integer";
    case Value::Kind::Text: return "a text";
    case Value::Kind::Array:
      return fmt::format("{}[{}]", name(v.tensor().dtype()), fmt::join(v.tensor().shape(), ", "));
    case Value::Kind::List: return fmt::format("a list of {}", v.items().size());
    case Value::Kind::Tuple: return fmt::format("a tuple of {}", v.items().size());
    case Value::Kind::Record: return fmt::format("a record of {}", fmt::join(v.names(), ", "));
  }
  return "a value";
}

Error no_number(const Value& v, std::string_view as) {
  return engine::to_public(
      nullptr, make_error(gk::ErrorKind::Type, "E0211",
                          v.kind() == Value::Kind::Number
                              ? fmt::format("this number is no {}: it would not stay the same", as)
                              : fmt::format("the value is {}, not a number", describe(v))));
}

}  // namespace

Result<Value> Value::of_dtype(DType t) const {
  return engine::guarded(nullptr, [&]() -> gk::Result<Value> {
    if (static_cast<int>(engine::inner(t)) >= kDTypeCount)
      return fail(gk::ErrorKind::Type, "E0202", "there is no such dtype");
    GK_TRY(auto s, sema::host_fit(sema::host_number(Access::scalar_of(*this)), engine::inner(t)));
    return Access::number(s, true);
  });
}

Result<int64_t> Value::try_as_int() const {
  if (kind_ != Kind::Number) return no_number(*this, "int64_t");
  if (!is_float(engine::inner(dtype_))) {
    if (dtype_ == DType::U64 && int_ < 0) return no_number(*this, "int64_t");
    return int_;
  }
  constexpr double kEnd = 9223372036854775808.0;  // 2**63
  if (std::trunc(float_) != float_ || float_ < -kEnd || float_ >= kEnd) return no_number(*this, "int64_t");
  return static_cast<int64_t>(float_);
}

Result<uint64_t> Value::try_as_uint() const {
  if (kind_ == Kind::Number && dtype_ == DType::U64) return static_cast<uint64_t>(int_);
  if (kind_ == Kind::Number && is_float(engine::inner(dtype_)) && float_ >= 0x1p63 && float_ < 0x1p64)
    return static_cast<uint64_t>(float_);  // whole, as all floats of that size
  auto i = try_as_int();
  if (!i || *i < 0) return no_number(*this, "uint64_t");
  return static_cast<uint64_t>(*i);
}

Result<double> Value::try_as_double() const {
  if (kind_ != Kind::Number) return no_number(*this, "double");
  if (is_float(engine::inner(dtype_))) return float_;
  const bool large = dtype_ == DType::U64 && int_ < 0;
  const double f = large ? static_cast<double>(static_cast<uint64_t>(int_)) : static_cast<double>(int_);
  const bool exact = large ? f < 0x1p64 && static_cast<uint64_t>(f) == static_cast<uint64_t>(int_)
                           : f < 0x1p63 && static_cast<int64_t>(f) == int_;
  if (!exact) return no_number(*this, "double");
  return f;
}

namespace detail {

Error mismatch(const Value& v, const TypeInfo& wanted) {
  return engine::to_public(
      nullptr, make_error(gk::ErrorKind::Type, "E0211",
                          fmt::format("the result is {}, but {} is wanted", describe(v), describe(wanted))));
}

Result<Value> number_of(Context& ctx, const Value& v, DType to) {
  Value n = v;
  if (v.kind() == Value::Kind::Array && v.tensor().size() == 1) {
    std::byte bytes[8]{};
    if (auto r = v.tensor().try_to_host_raw(ctx, bytes, v.tensor().size_bytes()); !r) return r.error();
    n = Access::number(Scalar::load(engine::inner(v.tensor().dtype()), bytes), true);
  }
  TypeInfo wanted;
  wanted.kind = TypeInfo::Kind::Number;
  wanted.dtype = to;
  if (n.kind() != Value::Kind::Number) return mismatch(v, wanted);
  const Scalar s = Access::scalar_of(n);
  const gk::DType target = engine::inner(to);
  if (is_bool(s.dtype) != is_bool(target)) return mismatch(v, wanted);
  if (!n.has_dtype())
    return engine::guarded(nullptr, [&]() -> gk::Result<Value> {
      if (gk::is_float(s.dtype) && !gk::is_float(target))
        return fail(gk::ErrorKind::Type, "E0211",
                    fmt::format("the result is a float, but {} is wanted", name(to)));
      GK_TRY(auto fitted, sema::host_fit(sema::host_number(s), target));
      return Access::number(fitted, true);
    });
  if (s.dtype != target && promote(s.dtype, target) != target) return mismatch(v, wanted);
  return Access::number(s.cast(target), true);
}

std::vector<std::string> split_names(const char* list) {
  std::vector<std::string> names(1);
  for (; *list; ++list)
    if (*list == ',')
      names.emplace_back();
    else if (*list != ' ')
      names.back() += *list;
  return names;
}

}  // namespace detail
}  // namespace gk::api
