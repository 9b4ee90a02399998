// A Context: one thread's way to an engine's device, with a stream of its own or one of the host program's.
// Compiles, makes arrays, runs functions and records graphs. Used by one thread at a time: a call from a
// second thread while another is inside is refused (E0710) and changes nothing. Different contexts of one
// engine run at once and may use each other's arrays; the order of their work on an array is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gk/engine.h"
#include "gk/function.h"
#include "gk/graph.h"

GK_API_BEGIN

namespace detail {
struct ContextImpl;
struct TokenImpl;
}  // namespace detail

struct ContextOptions {
  /// A stream of the host program's own (a CUstream), which must outlive the context; without it the context
  /// has one. Errors: E0510.
  std::optional<CUstream_st*> stream{};
};

/// Which calls of other threads the driver forbids while a graph is made: none, those of the capturing
/// thread, all. The stricter ones are there to debug libraries.
enum class CaptureMode : uint8_t { Relaxed, ThreadLocal, Global };

struct CaptureOptions {
  std::string name{};
  CaptureMode mode = CaptureMode::Relaxed;
  /// Record on this stream (a CUstream): non-blocking, of the device's context, idle, not capturing. Errors:
  /// E0712.
  std::optional<CUstream_st*> stream{};
  /// What cannot be recorded gives no graph (false) instead of an error. Everything else is an error still.
  bool quiet = false;
};

/// Lets a thread started inside a capture take part in it, with a context of its own.
class CaptureToken {
 public:
  CaptureToken() = default;

 private:
  friend class Context;
  friend struct detail::Access;
  explicit CaptureToken(std::shared_ptr<detail::TokenImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<detail::TokenImpl> impl_;
};

class Context {
 public:
  explicit Context(const Engine& engine, ContextOptions options = {})
      : Context(open(engine, options).value()) {}
  static Result<Context> open(const Engine& engine, ContextOptions options = {});
  /// Takes part in a capture of another thread until it is closed or dropped, which must be before the
  /// capture ends. What it is given is recorded, one thread after the other as they come. Errors: E0713 (the
  /// capture has ended).
  explicit Context(const CaptureToken& token) : Context(open(token).value()) {}
  static Result<Context> open(const CaptureToken& token);

  Engine engine() const;
  /// The driver's stream (a CUstream) that the context's work goes to; null on the host device. While a graph
  /// is made, that of the recording: what the host program gives to it becomes part of the graph.
  CUstream_st* stream() const { return try_stream().value(); }
  Result<CUstream_st*> try_stream() const;
  /// The host program's own work, given to stream() next, uses this array: it comes after whoever used the
  /// array last, and later users come after it. While a graph is made, the graph keeps the array, as it does
  /// what gk itself uses. Needed where another context used the array, and in captures.
  void use(const Tensor& x) const { try_use(x).value(); }
  Result<void> try_use(const Tensor& x) const;
  /// Whether a graph is being made.
  bool is_capturing() const;

  /// Checks a text and evaluates its definitions: const, fn, kernel, type, import, pragma. Other statements
  /// are checked and not run. `name` is what diagnostics call it; imports are relative to its folder. Errors:
  /// CompileError.
  Module compile(std::string_view name, std::string_view text) const {
    return try_compile(name, text).value();
  }
  Result<Module> try_compile(std::string_view name, std::string_view text) const;

  /// A new array; its contents are undefined. Errors: E0601 (out of memory), E0303 (a negative extent), E0306
  /// (over eight axes), E0307 and E0602 (too large to count). While a graph is made, memory that was dropped
  /// inside it is used again.
  Tensor empty(DType dtype, Shape shape, MemoryPlace place = MemoryPlace::Device) {
    return try_empty(dtype, std::move(shape), place).value();
  }
  Result<Tensor> try_empty(DType dtype, Shape shape, MemoryPlace place = MemoryPlace::Device);
  Tensor zeros(DType dtype, Shape shape) { return try_zeros(dtype, std::move(shape)).value(); }
  Result<Tensor> try_zeros(DType dtype, Shape shape) { return try_full(dtype, std::move(shape), 0); }
  /// `value` is a number, converted to `dtype`.
  Tensor full(DType dtype, Shape shape, Value value) {
    return try_full(dtype, std::move(shape), std::move(value)).value();
  }
  Result<Tensor> try_full(DType dtype, Shape shape, Value value);
  /// With the contents of memory of the host program's, row-major.
  template <class T>
  Tensor from_host(const std::vector<T>& data, Shape shape) {
    return try_from_host(data, std::move(shape)).value();
  }
  template <class T>
  Result<Tensor> try_from_host(const std::vector<T>& data, Shape shape) {
    return try_from_host(dtype_of<T>(), std::move(shape), data.data(),
                         static_cast<int64_t>(data.size() * sizeof(T)));
  }
  Result<Tensor> try_from_host(DType dtype, Shape shape, const void* data, int64_t size_bytes);

  /// Waits for the context's work and raises what went wrong in it. Errors: E0801 (an index out of range),
  /// E0802 (division by zero), E0703 (while a graph is made).
  void synchronize() const { try_synchronize().value(); }
  Result<void> try_synchronize() const;
  /// Calls `f` on some thread, in the order of the context's work; while a graph is made, at every launch. It
  /// must not call the device. What it throws is kept, and the next wait of the context gives it as E0512.
  void host_call(std::function<void()> f) const { try_host_call(std::move(f)).value(); }
  Result<void> try_host_call(std::function<void()> f) const;

  /// Runs `f`, recording what it calls instead of running it: functions and kernels of this context's
  /// modules, copies, host calls, and the host program's own work on stream(). An exception ends and discards
  /// the capture and goes on as it was. Errors: E0718 (a capture inside a capture), E0708, E0711, E0712,
  /// E0714 (a thread that takes part is not done), E0715.
  Graph capture(const std::function<void()>& f, CaptureOptions options = {}) const;
  /// Errors of gk's, also those that f() throws, are returned; other exceptions go through.
  Result<Graph> try_capture(const std::function<void()>& f, CaptureOptions options = {}) const;
  /// A graph without nodes, to add() to.
  Graph graph(std::string name = {}) const {
    return capture([] {}, {.name = std::move(name)});
  }
  /// Inside a capture: records `f` as a named node.
  Node node(std::string name, NodeOptions options, const std::function<void()>& f) const;
  Node node(std::string name, const std::function<void()>& f) const { return node(std::move(name), {}, f); }
  Result<Node> try_node(std::string name, NodeOptions options, const std::function<void()>& f) const;
  /// Inside a capture: what other threads need to take part. Errors: E0703 (no capture is open).
  CaptureToken capture_token() const { return try_capture_token().value(); }
  Result<CaptureToken> try_capture_token() const;
  /// Records `f` into a graph of the host program's own (a CUgraph), after these of its nodes; returns the
  /// nodes that later work comes after. All that is used stays alive until that graph and all executables of
  /// it are gone. Errors: as capture(), E0510.
  std::vector<CUgraphNode_st*> record_into(CUgraph_st* graph, const std::vector<CUgraphNode_st*>& after,
                                           const std::function<void()>& f) const;
  Result<std::vector<CUgraphNode_st*>> try_record_into(CUgraph_st* graph,
                                                       const std::vector<CUgraphNode_st*>& after,
                                                       const std::function<void()>& f) const;

  /// Asks what the context runs just now to stop (E0806). From any thread, or a signal handler.
  void interrupt() const;
  /// Ends it now: leaves a capture that it takes part in. Later use: E0716. A second call does nothing.
  void close() const { try_close().value(); }
  Result<void> try_close() const;

 private:
  friend struct detail::Access;
  explicit Context(std::shared_ptr<detail::ContextImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<detail::ContextImpl> impl_;
};

template <class R, class... P>
Result<R> Function<R(P...)>::try_call(P... args) const {
  auto v = Callable::try_call(std::vector<Value>{detail::Convert<std::remove_cvref_t<P>>::to(args)...});
  if (!v) return v.error();
  if constexpr (std::is_void_v<R>) {
    return {};
  } else {
    Context ctx = context();
    return detail::Convert<R>::from(ctx, *v);
  }
}

GK_API_END
