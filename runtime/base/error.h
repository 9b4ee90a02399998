// Errors as values. Owns Error, Span and Result; promises that an Error carries everything a
// diagnostic needs (code, span, labels, notes, fixes) so that any layer can raise one and only the
// command line renders it. Not for control flow inside one function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace gk {

/// What went wrong, by who has to act on it. Exit statuses follow from it (see docs/errors.md).
enum class ErrorKind : uint8_t {
  Syntax,
  Type,
  Shape,
  Unsupported,
  Device,
  OutOfMemory,
  Capture,
  Lease,
  Interrupted,
  Assertion,
  Io,
  Usage,
  Runtime,
  Internal,
};

/// A half-open byte range of a source file. `file` indexes the SourceMap; -1 is "no source".
struct Span {
  int32_t file = -1;
  uint32_t begin = 0;
  uint32_t end = 0;
  bool valid() const { return file >= 0; }
};

/// A secondary mark in a diagnostic.
struct Label {
  Span span;
  std::string text;
};

/// One diagnostic. `code` is "E0301"-like and stable; messages are sentences without a final stop.
struct Error {
  ErrorKind kind = ErrorKind::Internal;
  std::string code;
  std::string message;
  Span span{};
  std::string span_text{};  // what is written under the primary mark
  std::vector<Label> labels{};
  std::vector<std::string> notes{};
  std::vector<std::string> helps{};

  Error at(Span s) && {
    if (!span.valid()) span = s;
    return std::move(*this);
  }
  Error mark(std::string text) && {
    span_text = std::move(text);
    return std::move(*this);
  }
  Error label(Span s, std::string text) && {
    labels.push_back({s, std::move(text)});
    return std::move(*this);
  }
  Error note(std::string text) && {
    notes.push_back(std::move(text));
    return std::move(*this);
  }
  Error help(std::string text) && {
    helps.push_back(std::move(text));
    return std::move(*this);
  }
};

/// An Error away from the value, so that a Result takes little more room than what it usually holds.
class BoxedError {
 public:
  BoxedError(Error e) : error_(std::make_unique<Error>(std::move(e))) {}
  BoxedError(const BoxedError& other) : error_(std::make_unique<Error>(*other.error_)) {}
  BoxedError(BoxedError&&) noexcept = default;
  BoxedError& operator=(const BoxedError& other) { return *this = BoxedError(other); }
  BoxedError& operator=(BoxedError&&) noexcept = default;
  Error& operator*() { return *error_; }
  const Error& operator*() const { return *error_; }

 private:
  std::unique_ptr<Error> error_;  // null only in what was moved from
};

/// What converts to any Result that holds its error.
using Failure = tl::unexpected<BoxedError>;

/// A value or an Error.
template <class T>
class Result : public tl::expected<T, BoxedError> {
  using Base = tl::expected<T, BoxedError>;

 public:
  using Base::Base;
  Error& error() & { return *Base::error(); }
  const Error& error() const& { return *Base::error(); }
  Error&& error() && { return std::move(*Base::error()); }
  /// The error, for a Result of another type.
  Failure failure() && { return Failure(std::move(*this).Base::error()); }
};

inline Error make_error(ErrorKind kind, std::string_view code, std::string message, Span span = {}) {
  Error e;
  e.kind = kind;
  e.code = code;
  e.message = std::move(message);
  e.span = span;
  return e;
}

/// Wraps an Error so that it converts to any Result<T>.
inline Failure fail(Error e) { return Failure(std::move(e)); }
inline Failure fail(ErrorKind kind, std::string_view code, std::string message, Span span = {}) {
  return fail(make_error(kind, code, std::move(message), span));
}

}  // namespace gk

#define GK_CONCAT_(a, b) a##b
#define GK_CONCAT(a, b) GK_CONCAT_(a, b)
/// Evaluates a Result<void>-like expression and returns its error from the enclosing function.
#define GK_CHECK(...)                                                                         \
  do {                                                                                        \
    if (auto gk_result_ = (__VA_ARGS__); !gk_result_) return std::move(gk_result_).failure(); \
  } while (0)
/// GK_TRY(auto x, expr): binds the value or returns the error from the enclosing function.
#define GK_TRY_IMPL(tmp, decl, ...)          \
  auto tmp = (__VA_ARGS__);                  \
  if (!tmp) return std::move(tmp).failure(); \
  decl = std::move(*tmp)
#define GK_TRY(decl, ...) GK_TRY_IMPL(GK_CONCAT(gk_try_, __LINE__), decl, __VA_ARGS__)
