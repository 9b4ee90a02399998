// What programs take and give: a Value is an array, a number, a text, or a list, tuple or record of values. A
// number of C++ is a host number, as a literal of the program's text is: it takes the dtype of what it meets,
// whatever its C++ type; Value::scalar(f32, x) is a scalar of a dtype.
// Owns the mapping between C++ types and values, by which functions are typed: numbers, Tensor, std::string,
// std::vector (a list), std::tuple and std::pair (a tuple), and structs listed with GK_FIELDS (a record).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "gk/tensor.h"

GK_API_BEGIN

class Value {
 public:
  enum class Kind : uint8_t { None, Number, Text, Array, List, Tuple, Record };
  Value() = default;
  Value(Tensor t) : kind_(Kind::Array), tensor_(std::move(t)) {}
  Value(std::string text) : kind_(Kind::Text), text_(std::move(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  template <class T>
  requires std::is_arithmetic_v<T> Value(T x) : kind_(Kind::Number), dtype_(dtype_of<T>()) {
    if constexpr (std::is_floating_point_v<T>)
      float_ = static_cast<double>(x);
    else
      int_ = static_cast<int64_t>(x);
  }
  /// A scalar of that dtype. Errors: E0203 (an integer that the dtype does not hold, a float for an integer
  /// dtype), E0202 (there is no such dtype).
  template <class T>
  requires std::is_arithmetic_v<T>
  static Value scalar(DType t, T x) { return try_scalar(t, x).value(); }
  template <class T>
  requires std::is_arithmetic_v<T>
  static Result<Value> try_scalar(DType t, T x) { return Value(x).of_dtype(t); }
  static Value list(std::vector<Value> items) { return {Kind::List, std::move(items), {}}; }
  static Value tuple(std::vector<Value> items) { return {Kind::Tuple, std::move(items), {}}; }
  static Value record(std::vector<std::string> names, std::vector<Value> items) {
    return {Kind::Record, std::move(items), std::move(names)};
  }

  Kind kind() const { return kind_; }
  const Tensor& tensor() const { return tensor_; }
  const std::string& text() const { return text_; }
  /// Of a number: its own where it is a scalar of a dtype, else that of the C++ type.
  DType dtype() const { return dtype_; }
  bool has_dtype() const { return has_dtype_; }
  /// The number, where that type holds it exactly (NaN is one number; a bool is 0 or 1). Errors: E0211 (no
  /// number, or not exact).
  int64_t as_int() const { return try_as_int().value(); }
  uint64_t as_uint() const { return try_as_uint().value(); }
  double as_double() const { return try_as_double().value(); }
  Result<int64_t> try_as_int() const;
  Result<uint64_t> try_as_uint() const;
  Result<double> try_as_double() const;
  const std::vector<Value>& items() const { return items_; }        // List, Tuple, Record
  const std::vector<std::string>& names() const { return names_; }  // Record

 private:
  friend struct detail::Access;
  Result<Value> of_dtype(DType t) const;
  Value(Kind kind, std::vector<Value> items, std::vector<std::string> names)
      : kind_(kind), items_(std::move(items)), names_(std::move(names)) {}
  Kind kind_ = Kind::None;
  DType dtype_ = DType::F32;
  bool has_dtype_ = false;
  int64_t int_ = 0;
  double float_ = 0;
  Tensor tensor_;
  std::string text_;
  std::vector<Value> items_;
  std::vector<std::string> names_;
};

/// A C++ type as functions see it, to be held against a definition.
struct TypeInfo {
  enum class Kind : uint8_t { Any, None, Number, Text, Array, List, Tuple, Record } kind = Kind::Any;
  DType dtype = DType::F32;       // Number
  bool is_mut = false;            // a parameter `Tensor&`
  std::vector<TypeInfo> items{};  // List: one
  std::vector<std::string> names{};
};

/// Fields<S> lists the fields of a struct; GK_FIELDS writes it.
template <class S>
struct Fields {
  static constexpr bool known = false;
};

namespace detail {

/// Errors: E0211, with what is there and what was asked for.
Error mismatch(const Value& v, const TypeInfo& wanted);
/// A number as dtype `to`, as the language converts it: a host number where it fits, another where promotion
/// gives `to`. An array of a single element is read back, with the context that made it. Errors: E0211, E0203
/// (it does not fit), E0703 (a read-back while a graph is made).
Result<Value> number_of(Context& ctx, const Value& v, DType to);

template <class T>
struct Convert;

template <class T>
TypeInfo info_of() {
  return Convert<T>::info();
}

template <>
struct Convert<Value> {
  static TypeInfo info() { return {}; }
  static Value to(const Value& v) { return v; }
  static Result<Value> from(Context&, const Value& v) { return v; }
};
template <>
struct Convert<Tensor> {
  static TypeInfo info() { return {.kind = TypeInfo::Kind::Array}; }
  static Value to(const Tensor& t) { return t; }
  static Result<Tensor> from(Context&, const Value& v) {
    if (v.kind() != Value::Kind::Array) return mismatch(v, info());
    return v.tensor();
  }
};
template <>
struct Convert<std::string> {
  static TypeInfo info() { return {.kind = TypeInfo::Kind::Text}; }
  static Value to(const std::string& t) { return t; }
  static Result<std::string> from(Context&, const Value& v) {
    if (v.kind() != Value::Kind::Text) return mismatch(v, info());
    return v.text();
  }
};
template <class T>
requires std::is_arithmetic_v<T>
struct Convert<T> {
  static TypeInfo info() { return {.kind = TypeInfo::Kind::Number, .dtype = dtype_of<T>()}; }
  static Value to(T x) { return x; }
  static Result<T> from(Context& ctx, const Value& v) {
    auto n = number_of(ctx, v, dtype_of<T>());
    if (!n) return n.error();
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(n->as_double());
    } else if constexpr (std::is_same_v<T, bool>) {
      return n->as_int() != 0;
    } else if constexpr (std::is_unsigned_v<T>) {
      return static_cast<T>(n->as_uint());
    } else {
      return static_cast<T>(n->as_int());
    }
  }
};
template <class T>
struct Convert<std::vector<T>> {
  static TypeInfo info() { return {.kind = TypeInfo::Kind::List, .items = {info_of<T>()}}; }
  static Value to(const std::vector<T>& list) {
    std::vector<Value> items;
    for (const auto& x : list) items.push_back(Convert<T>::to(x));
    return Value::list(std::move(items));
  }
  static Result<std::vector<T>> from(Context& ctx, const Value& v) {
    if (v.kind() != Value::Kind::List) return mismatch(v, info());
    std::vector<T> list;
    for (const auto& x : v.items()) {
      auto item = Convert<T>::from(ctx, x);
      if (!item) return item.error();
      list.push_back(std::move(*item));
    }
    return list;
  }
};

/// Puts the items of `v` one by one into `out...`; the first error wins.
template <class... T, size_t... I>
Result<void> from_items(Context& ctx, const Value& v, std::index_sequence<I...>, T&... out) {
  Result<void> r;
  auto one = [&](auto& x, const Value& item) {
    auto c = Convert<std::remove_reference_t<decltype(x)>>::from(ctx, item);
    if (c)
      x = std::move(*c);
    else
      r = c.error();
    return c.has_value();
  };
  (void)(one(out, v.items()[I]) && ...);
  return r;
}

template <class T, class... P>
struct ConvertTuple {
  static TypeInfo info() { return {.kind = TypeInfo::Kind::Tuple, .items = {info_of<P>()...}}; }
  static Value to(const T& t) {
    return std::apply([](const P&... x) { return Value::tuple({Convert<P>::to(x)...}); }, t);
  }
  static Result<T> from(Context& ctx, const Value& v) {
    if (v.kind() != Value::Kind::Tuple || v.items().size() != sizeof...(P)) return mismatch(v, info());
    T t;
    auto ok = std::apply(
        [&](P&... x) { return from_items(ctx, v, std::make_index_sequence<sizeof...(P)>(), x...); }, t);
    if (!ok) return ok.error();
    return t;
  }
};
template <class... P>
struct Convert<std::tuple<P...>> : ConvertTuple<std::tuple<P...>, P...> {};
template <class A, class B>
struct Convert<std::pair<A, B>> : ConvertTuple<std::pair<A, B>, A, B> {};

template <class S>
requires Fields<S>::known struct Convert<S> {
  static TypeInfo info() {
    return Fields<S>::with_fields(static_cast<S*>(nullptr), []<class... P>(P S::*...) {
      return TypeInfo{
          .kind = TypeInfo::Kind::Record, .items = {info_of<P>()...}, .names = Fields<S>::names()};
    });
  }
  static Value to(const S& s) {
    return Fields<S>::with_fields(&s, [&]<class... P>(P S::*... field) {
      return Value::record(Fields<S>::names(), {Convert<P>::to(s.*field)...});
    });
  }
  static Result<S> from(Context& ctx, const Value& v) {
    if (v.kind() != Value::Kind::Record || v.names() != Fields<S>::names()) return mismatch(v, info());
    S s{};
    auto ok = Fields<S>::with_fields(&s, [&]<class... P>(P S::*... field) {
      return from_items(ctx, v, std::make_index_sequence<sizeof...(P)>(), s.*field...);
    });
    if (!ok) return ok.error();
    return s;
  }
};

/// A parameter as written in a signature: by value or const reference; `Tensor&` is one the function writes,
/// and so is a reference to a struct of arrays.
template <class P>
TypeInfo param_info() {
  using Plain = std::remove_cvref_t<P>;
  constexpr bool is_mut = std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;
  static_assert(!is_mut || !std::is_arithmetic_v<Plain>, "a number is passed by value");
  TypeInfo t = info_of<Plain>();
  t.is_mut = is_mut;
  return t;
}

/// "a, b" to {"a", "b"}.
std::vector<std::string> split_names(const char* list);

}  // namespace detail
GK_API_END

#define GK_FIELD_1(S, a) &S::a
#define GK_FIELD_2(S, a, ...) &S::a, GK_FIELD_1(S, __VA_ARGS__)
#define GK_FIELD_3(S, a, ...) &S::a, GK_FIELD_2(S, __VA_ARGS__)
#define GK_FIELD_4(S, a, ...) &S::a, GK_FIELD_3(S, __VA_ARGS__)
#define GK_FIELD_5(S, a, ...) &S::a, GK_FIELD_4(S, __VA_ARGS__)
#define GK_FIELD_6(S, a, ...) &S::a, GK_FIELD_5(S, __VA_ARGS__)
#define GK_FIELD_7(S, a, ...) &S::a, GK_FIELD_6(S, __VA_ARGS__)
#define GK_FIELD_8(S, a, ...) &S::a, GK_FIELD_7(S, __VA_ARGS__)
#define GK_FIELD_PICK(a, b, c, d, e, f, g, h, chosen, ...) chosen
#define GK_FIELD_POINTERS(S, ...)                                                                    \
  GK_FIELD_PICK(__VA_ARGS__, GK_FIELD_8, GK_FIELD_7, GK_FIELD_6, GK_FIELD_5, GK_FIELD_4, GK_FIELD_3, \
                GK_FIELD_2, GK_FIELD_1)                                                              \
  (S, __VA_ARGS__)
/// At global scope: struct S stands for a record with these fields, in this order (at most eight).
#define GK_FIELDS(S, ...)                                                          \
  template <>                                                                      \
  struct gk::api::Fields<S> {                                                      \
    static constexpr bool known = true;                                            \
    static const std::vector<std::string>& names() {                               \
      static const std::vector<std::string> n = detail::split_names(#__VA_ARGS__); \
      return n;                                                                    \
    }                                                                              \
    template <class P, class F>                                                    \
    static auto with_fields(P*, F f) {                                             \
      return f(GK_FIELD_POINTERS(S, __VA_ARGS__));                                 \
    }                                                                              \
  }
