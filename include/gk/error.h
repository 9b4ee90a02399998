// Errors of the public interface. Every call that can fail has two forms: f() throws a gk::Error, try_f()
// returns a gk::Result and throws nothing of gk's. An Error is a value as well as an exception; copying one
// is cheap and cannot fail. Codes ("E0716") are stable and explained by gk::explain() and docs/errors.md.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gk/config.h"

GK_API_BEGIN

/// Who has to act. Syntax, Type, Shape and Unsupported are about the program text or the arguments; Capture
/// about what may be done while a graph is made; Usage about a call that makes no sense.
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

/// A marked part of a source text. Lines and columns count from 1.
struct Place {
  std::string file{};
  int line = 0, column = 0;
  int end_line = 0, end_column = 0;  // just behind it
  uint32_t begin = 0, end = 0;       // bytes of the text
  std::string label{};               // what is said of it; may be empty
};

struct ErrorData {
  ErrorKind kind = ErrorKind::Internal;
  std::string code{};           // "E0301"
  std::string message{};        // one sentence
  std::vector<Place> places{};  // the first is where it happened; empty where there is no text
  std::vector<std::string> notes{};
  std::vector<std::string> helps{};  // how to write it instead
  std::string rendered{};            // all of it as gkrun shows it
  bool compiling = false;            // raised by compile()
};

class Error : public std::exception {
 public:
  explicit Error(ErrorData data);
  /// `first`, with further errors; what it renders as is all of them.
  Error(const Error& first, std::vector<Error> more);
  Error(const Error& o) noexcept;
  Error& operator=(const Error& o) noexcept;
  ~Error() override;
  ErrorKind kind() const noexcept { return data_->kind; }
  const std::string& code() const noexcept { return data_->code; }
  const std::string& message() const noexcept { return data_->message; }
  const std::vector<Place>& places() const noexcept { return data_->places; }
  const std::vector<std::string>& notes() const noexcept { return data_->notes; }
  const std::vector<std::string>& helps() const noexcept { return data_->helps; }
  /// Further mistakes found by the same compile(), each an Error like this one.
  const std::vector<Error>& more() const noexcept;
  const std::string& rendered() const noexcept { return data_->rendered; }
  /// "E0716: the executable was closed"
  const char* what() const noexcept override;
  /// Throws it as the class below that fits: what the throwing forms do with the error of their twins.
  [[noreturn]] void raise() const;

 private:
  std::shared_ptr<const ErrorData> data_;
  std::shared_ptr<const std::string> what_;
  std::shared_ptr<const std::vector<Error>> more_;  // null: none
};

/// The text given to compile() is wrong; places, helps and more say where, how to mend it and what else is.
class CompileError : public Error {
 public:
  using Error::Error;
  explicit CompileError(const Error& e) : Error(e) {}
  ~CompileError() override;
};
/// Something that cannot be done while a graph is made, or a graph or capture that refuses: E07xx.
class CaptureError : public Error {
 public:
  using Error::Error;
  explicit CaptureError(const Error& e) : Error(e) {}
  ~CaptureError() override;
};
class OutOfMemory : public Error {
 public:
  using Error::Error;
  explicit OutOfMemory(const Error& e) : Error(e) {}
  ~OutOfMemory() override;
};
/// The device, its driver or its memory.
class DeviceError : public Error {
 public:
  using Error::Error;
  explicit DeviceError(const Error& e) : Error(e) {}
  ~DeviceError() override;
};

/// A value or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Error e) : v_(std::in_place_index<1>, std::move(e)) {}
  bool has_value() const noexcept { return v_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  /// The value; where there is none the error is thrown.
  T& value() & { return need(), std::get<0>(v_); }
  const T& value() const& { return need(), std::get<0>(v_); }
  T value() && { return need(), std::move(std::get<0>(v_)); }
  T& operator*() & { return std::get<0>(v_); }
  const T& operator*() const& { return std::get<0>(v_); }
  T operator*() && { return std::move(std::get<0>(v_)); }
  T* operator->() { return &std::get<0>(v_); }
  const T* operator->() const { return &std::get<0>(v_); }
  /// Only where there is no value.
  const Error& error() const { return std::get<1>(v_); }

 private:
  void need() const {
    if (!has_value()) error().raise();
  }
  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error e) : v_(std::move(e)) {}
  bool has_value() const noexcept { return v_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (!has_value()) error().raise();
  }
  const Error& error() const { return std::get<1>(v_); }

 private:
  std::variant<std::monostate, Error> v_;
};

GK_API_END
